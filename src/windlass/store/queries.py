"""SQL by name, read once from `queries.sql`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_FILE = Path(__file__).with_name("queries.sql")
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


def load() -> Mapping[str, str]:
    """Every statement of the file, by its name."""
    _, *parts = _NAME.split(_FILE.read_text("utf-8"))
    return {name: sql.strip().rstrip(";") for name, sql in zip(parts[::2], parts[1::2], strict=True)}
