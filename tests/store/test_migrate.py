"""The store's schema: migrated once, whoever comes first, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import text

from argus_edge.errors import InputError
from argus_edge.store.engine import open_engine
from argus_edge.store.migrate import HEAD, ensure_current
from argus_edge.store.models import Base
from argus_edge.store.records import Store
from tests.support.postgres import postgres_url  # noqa: F401 - a fixture

WRITER = """
import sys
from argus_edge.store.records import Store
url, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = Store(url)
for index in range(count):
    fields = dict(device="pi5", profile="pi5", model="m", model_sha256=None, scenario="soak", entry="{}", context="{}")
    store.add(f"{name}-{index}", **fields)
    store.set_state(f"{name}-{index}", "done")
"""


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the URL of a store that nobody has opened yet."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    found = request.getfixturevalue("postgres_url")
    yield found
    engine = open_engine(found)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS runs, alembic_version"))


def test_the_migrated_schema_is_the_models(url: str) -> None:
    engine = open_engine(url)
    ensure_current(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_opening_again_changes_nothing(url: str) -> None:
    Store(url).add(
        "a", device="d", profile="p", model="m", model_sha256=None, scenario="soak", entry="{}", context="{}"
    )
    assert [record.id for record in Store(url).list()] == ["a"]


def test_several_writers_that_open_a_new_store_at_once_lose_nothing(url: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, f"w{index}", "20"], stderr=subprocess.PIPE)
        for index in range(4)
    ]
    for writer in writers:
        _, errors = writer.communicate(timeout=240)
        assert writer.returncode == 0, errors.decode()
    records = Store(url).list()
    assert len(records) == 80
    assert {record.state for record in records} == {"done"}


def test_a_newer_store_is_refused_and_left_alone(url: str) -> None:
    engine = open_engine(url)
    ensure_current(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(InputError, match="newer argus-edge made this store"):
        Store(url)


def test_head_is_the_newest_migration() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", "argus_edge.store:migrations")
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD
