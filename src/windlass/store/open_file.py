"""Opening the store's file, or refusing it in a clear sentence without touching it."""

from __future__ import annotations

import sqlite3
import stat
import uuid
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from windlass.core.errors import Unavailable
from windlass.store import schema
from windlass.store.errors import unavailable
from windlass.store.schema import Migration

APPLICATION_ID = 0x574E444C
"""Says `WNDL` in the file's header: this database is ours."""

_MAGIC = b"SQLite format 3\0"
_CHECKED_SIZE = 64 * 1024 * 1024
"""Up to this size every page is looked at on opening (some 60 ms); beyond, `verify` does it."""
_KEPT = "It is kept as it is. `windlass doctor --restore` puts the last copy in its place, and keeps it aside."


def open_writer(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """The one connection that writes, to a store that is sound and up to date."""
    try:
        if not path.exists():
            _make(path, migrations)
        _inspect(path, migrations)
        return _connect_writer(path, migrations)
    except (sqlite3.Error, OSError) as error:
        raise unavailable(str(path), error) from error


def open_reader(path: Path) -> sqlite3.Connection:
    """A connection that can only read; any one thread at a time may use it."""
    connection = _connect(path, "mode=ro")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    return connection


def _make(path: Path, migrations: Sequence[Migration]) -> None:
    """Build a new store beside its place and rename it: an empty file there is never ours."""
    wal = path.with_name(f"{path.name}-wal")
    if wal.exists():
        raise Unavailable(f"The store {path} is missing, but {wal.name} beside it is not.", hint=_KEPT)
    new = path.with_name(f"{path.name}.new")
    for leftover in (new, *new.parent.glob(f"{new.name}-*")):
        leftover.unlink(missing_ok=True)
    schema.create_private(new)
    with closing(_connect(new, "mode=rw")) as connection:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        schema.upgrade(connection, new, migrations)
        connection.execute("INSERT INTO meta VALUES ('home', ?)", (str(uuid.uuid4()),))
    schema.put_in_place(new, path)


def _inspect(path: Path, migrations: Sequence[Migration]) -> None:
    """Look at a store without leaving a trace, and refuse one that is not ours to write."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise Unavailable(f"The store {path} is not a regular file.", hint=_KEPT)
    with path.open("r+b") as file:  # nothing is written: this says now, not later, whether something could be
        if file.read(len(_MAGIC)) != _MAGIC:
            raise Unavailable(f"The store {path} is not a database.", hint=_KEPT)
    wal = path.with_name(f"{path.name}-wal")
    # Without a log beside it the file alone is the store, and `immutable` keeps SQLite from making one.
    how = "mode=ro" if wal.exists() else "mode=ro&immutable=1"
    with closing(_connect(path, how)) as connection:
        try:
            _check_owner(connection, path, migrations)
            fault = check_pages(connection) if found.st_size <= _CHECKED_SIZE else ""
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            fault = str(error)
    if fault:
        raise Unavailable(f"The store {path} is damaged: {fault}.", hint=_KEPT)


def _check_owner(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise Unavailable(f"The store {path} is the database of another program.", hint=_KEPT)
    written, known = schema.version(connection), len(migrations)
    if written > known:
        raise Unavailable(
            f"The store {path} was written by a newer windlass (schema {written}, this one knows {known}).",
            hint="Update windlass; the file is left as it is.",
        )


def check_pages(connection: sqlite3.Connection) -> str:
    """What SQLite itself finds wrong with the file, or nothing."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    return "" if found == "ok" else " ".join(found.split())


def _connect_writer(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    connection = _connect(path, "mode=rw")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        connection.execute("BEGIN IMMEDIATE")  # the log beside the file must be writable too
        connection.execute("ROLLBACK")
        schema.upgrade(connection, path, migrations)
    except BaseException:
        connection.close()
        raise
    return connection
