"""Brings a store up to the schema of this version, once, however many hosts open it at the same time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection, Engine, inspect, text

from argus_edge.artifacts import locked
from argus_edge.errors import InputError

# The newest revision under migrations/versions; a test holds the two together.
HEAD = "0002"
# Any number that no other application of the same database locks.
ADVISORY_LOCK = 0x41524755


def ensure_current(engine: Engine) -> None:
    """Migrate the store if it is not at :data:`HEAD`.

    Alembic is imported only then: looking is one query.

    Raises
    ------
    InputError
        A newer version of the tool made it.
    """
    with engine.connect() as connection:
        if _revision(connection) == HEAD:
            return
    with _alone(engine), engine.begin() as connection:
        found = _revision(connection)
        if found == HEAD:
            return
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", "argus_edge.store:migrations")
        config.attributes["connection"] = connection
        try:
            if found is not None:
                ScriptDirectory.from_config(config).get_revision(found)
        except CommandError as error:
            raise InputError(
                f"A newer argus-edge made this store (schema {found}; this one reads up to {HEAD}).",
                where=engine.url.render_as_string(hide_password=True),
                next_step="pip install --upgrade argus-edge",
            ) from error
        command.upgrade(config, "head")


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


@contextlib.contextmanager
def _alone(engine: Engine) -> Iterator[None]:
    """Hold back every other process that would migrate this store."""
    if engine.dialect.name == "postgresql":
        with engine.connect() as connection:
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": ADVISORY_LOCK})
            try:
                yield
            finally:
                connection.execute(text("SELECT pg_advisory_unlock(:key)"), {"key": ADVISORY_LOCK})
        return
    database = engine.url.database
    if not database or database == ":memory:":
        yield
        return
    with locked(f"{database}.lock"):
        yield
