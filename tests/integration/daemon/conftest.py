from tests.integration.database.conftest import (  # noqa: F401
    migrated_postgresql,
    migrated_sqlite,
    place,
    store,
)
