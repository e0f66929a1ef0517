"""The memory of a check tree's set-up, so that it can be used again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from windlass.system.files import write_whole


@dataclass(frozen=True, slots=True)
class PreparedTree:
    """A set-up that was done: for which key, and what it made beside the commit's own files."""

    key: str
    kept: tuple[str, ...]


def read_prepared(file: Path) -> PreparedTree | None:
    """Read the memory of a set-up; None if it was never done, or not to its end."""
    try:
        value = json.loads(file.read_text("utf-8"))
        return PreparedTree(value["key"], tuple(value["kept"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_prepared(file: Path, prepared: PreparedTree) -> None:
    """Remember it, in one step."""
    write_whole(file, json.dumps({"key": prepared.key, "kept": prepared.kept}).encode())
