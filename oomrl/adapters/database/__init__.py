"""The store on SQLAlchemy 2: SQLite in WAL mode by default, PostgreSQL by URL, Alembic for every change."""

from oomrl.adapters.database.bulk import Conflict
from oomrl.adapters.database.store import Store, Work

__all__ = ["Conflict", "Store", "Work"]
