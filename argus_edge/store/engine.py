"""Where the store is and how it is opened: SQLite in the user's data folder, for several writers at once, or a URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import platformdirs
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from argus_edge.artifacts import host_errors
from argus_edge.errors import MissingDependencyError, UsageError

STORE = "ARGUS_EDGE_STORE"
DATA = "ARGUS_EDGE_DATA"
FILE = "argus-edge.db"
BUSY_S = 30.0
BACKENDS = ("sqlite", "postgresql")


def data_folder() -> Path:
    """Return the folder of what the tool keeps: ``$ARGUS_EDGE_DATA``, else the system's usual place."""
    override = os.environ.get(DATA)
    return Path(override).expanduser() if override else Path(platformdirs.user_data_dir("argus-edge"))


def store_url() -> str:
    """Return the database's URL: ``$ARGUS_EDGE_STORE`` (a URL or a file), else SQLite in the data folder."""
    override = os.environ.get(STORE)
    if override and "://" in override:
        return override
    path = Path(override).expanduser() if override else data_folder() / FILE
    return f"sqlite:///{path.resolve()}"


def remedy() -> str:
    """Return the next step where the database cannot be used: what the user has set decides."""
    if os.environ.get(STORE):
        return f"check {STORE}, or unset it to keep the record in your data folder"
    return f"export {DATA}=FOLDER keeps it elsewhere"


def open_engine(url: str | None = None) -> Engine:
    """Return the engine for a URL; SQLite's folder is made, private to the user.

    Raises
    ------
    HostError
        No permission or no room where the file is to be.
    UsageError
        Not a database's URL.
    MissingDependencyError
        The database's driver is not installed.
    """
    given = url or store_url()
    try:
        engine = create_engine(_address(given))
    except (ArgumentError, NoSuchModuleError) as error:
        raise UsageError(
            f"{STORE} is not a database that can be used: {error}.",
            next_step=f"export {STORE}=postgresql+psycopg://USER@HOST/NAME, or a file's path",
        ) from error
    except ModuleNotFoundError as error:
        raise MissingDependencyError(error.name or "the driver", "postgres", needed_for="The store") from error
    if engine.dialect.name == "sqlite" and engine.url.database:
        path = Path(engine.url.database)
        with host_errors(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Reports hold addresses and names of the user's boards.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _address(given: str) -> URL:
    address = make_url(given)
    if address.get_backend_name() not in BACKENDS:
        raise ArgumentError(f"{address.get_backend_name()} is neither SQLite nor PostgreSQL")
    return address


def _prepare_sqlite(connection: Any, _: Any) -> None:
    """Let several processes write: readers never block, a writer waits for the other."""
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {int(BUSY_S * 1000)}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()
