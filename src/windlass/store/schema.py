"""Numbered migrations: applied in order, each all or nothing, with a copy of the file made first."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Unavailable

MIGRATIONS = Path(__file__).with_name("migrations")

_FILE = re.compile(r"(\d{3})_\w+\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the schema. Once it has been released it is never edited."""

    number: int
    name: str
    sql: str


def load(folder: Path) -> list[Migration]:
    """The migrations of a folder: 001, 002, 003 … without a gap."""
    named = sorted((found[1], path) for path in folder.iterdir() if (found := _FILE.fullmatch(path.name)))
    if [int(number) for number, _ in named] != list(range(1, len(named) + 1)):
        raise Unavailable(f"The migrations in {folder} are not numbered 001, 002, 003 and so on.")
    return [Migration(int(number), each.name, each.read_text("utf-8")) for number, each in named]


def version(connection: sqlite3.Connection) -> int:
    """The number of the last migration that was applied."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def upgrade(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Bring a store up to date; a store that holds something is copied to `….before-NNN` first."""
    done = version(connection)
    missing = migrations[done:]
    if done and missing:
        back_up(connection, path.with_name(f"{path.name}.before-{missing[0].number:03}"))
    for migration in missing:
        _apply(connection, path, migration)


def back_up(connection: sqlite3.Connection, copy: Path) -> None:
    """Copy the whole store, also what is not yet in its main file. The copy appears complete or not at all."""
    partial = copy.with_name(f"{copy.name}.partial")
    partial.unlink(missing_ok=True)
    create_private(partial)
    with closing(sqlite3.connect(partial)) as target:
        connection.backup(target)
    put_in_place(partial, copy)


def create_private(path: Path) -> None:
    """Make a new, empty file that only its owner can read."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))


def put_in_place(source: Path, target: Path) -> None:
    """Rename a finished file into its place, and sync the file and its folder."""
    _sync(source)
    source.replace(target)
    _sync(target.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _apply(connection: sqlite3.Connection, path: Path, migration: Migration) -> None:
    script = f"BEGIN IMMEDIATE;\n{migration.sql}\n;PRAGMA user_version = {migration.number};\nCOMMIT;"
    try:
        connection.executescript(script)
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise Unavailable(
            f"The store {path} could not be brought up to date by {migration.name}: {error}.",
            hint="It is as it was before; use the version of windlass that wrote it.",
        ) from error
