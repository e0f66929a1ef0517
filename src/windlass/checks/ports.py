"""The port through which checks get their trees; the daemon passes it in."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from windlass.core.nouns.project import Project


class Trees(Protocol):
    """Puts exactly one commit's tree at a path."""

    async def place(self, project: Project, commit: str, path: Path, *, keep: Sequence[str] = ()) -> bool:
        """Make the folder hold this commit; of what is not in it, only what is to be kept stays.

        Says whether that was all still there.
        """
        ...

    async def clear(self, path: Path) -> None:
        """Remove the folder."""
        ...

    async def leftovers(self, project: Project, path: Path) -> tuple[str, ...]:
        """Files in the folder that are not part of the commit."""
        ...

    async def named(self, project: Project, commit: str, name: re.Pattern[str]) -> dict[str, str]:
        """The commit's files whose name matches, each with its content's id."""
        ...
