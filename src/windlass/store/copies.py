"""A verified copy of the store beside it, and the way back to it."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from windlass.core.errors import Conflict, NotFound, Unavailable
from windlass.store import open_file, schema
from windlass.store.errors import unavailable

IDS_LEFT_OUT = 1000
"""Ids of each kind that a restored store skips: those that were given after the copy are in folders and refs."""


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back."""

    copied_at: float
    events: int
    aside: tuple[str, ...]
    """Where the files are that were in its place."""
    unknown_runs: tuple[str, ...]
    """Runs that have a folder, and that the copy does not know."""


def copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.copy")


def make_copy(connection: sqlite3.Connection, path: Path) -> None:
    """Copy the whole store; the copy is checked, private and durable before it takes the place of the last one."""
    copy = copy_of(path)
    partial = copy.with_name(f"{copy.name}.partial")
    partial.unlink(missing_ok=True)
    schema.create_private(partial)
    with closing(sqlite3.connect(partial)) as target:
        connection.backup(target)
    home, events = _facts(partial)
    if copy.exists() and _knows_more(copy, home, events):
        copy.rename(_free(copy))
    schema.put_in_place(partial, copy)


def restore(path: Path, runs: Path) -> Restored:
    """Put the copy in the store's place. Raises NotFound without one, and Conflict where the store is sound."""
    copy = copy_of(path)
    if not copy.exists():
        raise NotFound(f"There is no copy {copy}.", hint=_others(path))
    try:
        _, events = _facts(copy)
        _refuse_sound(path, events)
        new = path.with_name(f"{path.name}.new")
        new.unlink(missing_ok=True)
        schema.create_private(new)
        shutil.copyfile(copy, new)
        known = _prepared(new)
        aside = tuple(str(_put_aside(file)) for file in _files(path) if os.path.lexists(file))
        schema.put_in_place(new, path)
    except (sqlite3.Error, OSError) as error:
        raise unavailable(str(copy), error) from error
    there = sorted(folder.name for folder in runs.iterdir()) if runs.is_dir() else []
    return Restored(copy.stat().st_mtime, events, aside, tuple(name for name in there if name not in known))


def refuse_lost(path: Path, traces: Sequence[Path]) -> None:
    """Refuse to begin anew in a home that had a store: its traces are there, and the store is not."""
    left = [folder for folder in traces if folder.is_dir() and any(folder.iterdir())]
    if os.path.lexists(path) or not (left or copy_of(path).exists()):
        return
    what = " and ".join(str(folder) for folder in left) or str(copy_of(path))
    way = "`windlass doctor --restore` puts the last copy back." if copy_of(path).exists() else _others(path)
    raise Unavailable(
        f"The store {path} is missing, and {what} shows that there was one.",
        hint=f"{way} To begin anew, set WINDLASS_HOME to another folder.",
    )


def _facts(file: Path) -> tuple[str, int]:
    """The home and the number of events of a store that is sound in every page. Raises Unavailable."""
    how = "mode=ro" if _wal(file).exists() else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?{how}", uri=True)) as connection:
            (ours,) = connection.execute("PRAGMA application_id").fetchone()
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            (home,) = connection.execute("SELECT value FROM meta WHERE key = 'home'").fetchone()
            (events,) = connection.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise Unavailable(f"{file} is damaged: {error}.") from error
    if ours != open_file.APPLICATION_ID or found != "ok":
        raise Unavailable(f"{file} is damaged: {found}.")
    return str(home), int(events)


def _knows_more(copy: Path, home: str, events: int) -> bool:
    """Whether a copy has what the new one has not: it is of another store, or of a later time. It is then kept."""
    try:
        before = _facts(copy)
    except Unavailable:
        return True
    return before[0] != home or before[1] > events


def _refuse_sound(path: Path, events: int) -> None:
    try:
        _, there = _facts(path) if path.exists() else ("", -1)
    except Unavailable:
        return
    if there >= 0:
        raise Conflict(
            f"The store {path} is there and sound, with {there} events; the copy has {events}.",
            hint=f"Nothing was changed. To go back to the copy, move {path.name} away first.",
        )


def _prepared(new: Path) -> frozenset[str]:
    """Let no id be given twice. Returns the runs that the copy knows."""
    with closing(sqlite3.connect(new)) as connection, connection:
        connection.execute("UPDATE counters SET last = last + ?", (IDS_LEFT_OUT,))
        return frozenset(str(key) for (key,) in connection.execute("SELECT id FROM runs"))


def _put_aside(file: Path) -> Path:
    aside = _free(file.with_name(f"{file.name}.aside"))
    file.rename(aside)
    return aside


def _free(wanted: Path) -> Path:
    numbers = (wanted.with_name(f"{wanted.name}-{number}") for number in range(1, 10_000))
    return next(place for place in numbers if not os.path.lexists(place))


def _files(path: Path) -> Sequence[Path]:
    return (path, _wal(path), path.with_name(f"{path.name}-shm"))


def _wal(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _others(path: Path) -> str:
    """Older copies, which were made before a new version changed the store."""
    found = sorted(file.name for file in path.parent.glob(f"{path.name}.before-*"))
    return f"There is an older one, {found[-1]}: copy it to {path}." if found else "Put back a copy of your own."
