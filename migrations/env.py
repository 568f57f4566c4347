"""Run migrations on the connection that the caller hands over (see oomrl.adapters.database.schema)."""

from __future__ import annotations

from alembic import context

from oomrl.adapters.database.tables import metadata
from oomrl.adapters.database.types import Exact, Utc


def render_item(kind: str, item: object, _autogen: object) -> str | bool:
    """Write our own types as plain ones: a migration must not change when the package's types do."""
    if kind == "type" and isinstance(item, Exact):
        return f"exact({item.scale})"
    if kind == "type" and isinstance(item, Utc):
        return "sa.DateTime(timezone=True)"
    return False


connection = context.config.attributes.get("connection")
if connection is None:
    raise RuntimeError("Expected a connection from oomrl.adapters.database.schema, was none: use `Store.open`")
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_item=render_item,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_type=True,
)
with context.begin_transaction():
    context.run_migrations()
