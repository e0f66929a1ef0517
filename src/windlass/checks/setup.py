"""What a set-up has left in a tree, and until when it may be used again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LOCK_FILES = re.compile(
    r"package-lock\.json|yarn\.lock|pnpm-lock\.yaml|uv\.lock|poetry\.lock|requirements.*\.txt|pyproject\.toml"
    r"|Cargo\.lock|go\.sum|Gemfile\.lock|composer\.lock"
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A set-up that was done: for which key, and what it made beside the commit's own files."""

    key: str
    kept: tuple[str, ...]


def setup_key(command: str, locks: Mapping[str, str]) -> str:
    """The same set-up on the same lock files has the same key."""
    return hashlib.sha256(json.dumps([command, sorted(locks.items())]).encode()).hexdigest()


def read_prepared(file: Path) -> Prepared | None:
    """What was remembered; nothing if it was never done, or not to its end."""
    try:
        value = json.loads(file.read_text("utf-8"))
        return Prepared(value["key"], tuple(value["kept"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_prepared(file: Path, prepared: Prepared) -> None:
    """Remember it, in one step."""
    beside = file.with_name(f"{file.name}.new")
    beside.write_text(json.dumps({"key": prepared.key, "kept": prepared.kept}), "utf-8")
    beside.replace(file)
