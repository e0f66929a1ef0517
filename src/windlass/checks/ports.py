"""What checks need from other rooms; the daemon passes it in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from windlass.core.project import Project


class Ended(Protocol):
    """How a shell command ended."""

    @property
    def exit_code(self) -> int | None: ...
    @property
    def output(self) -> bytes: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def seconds(self) -> float: ...
    @property
    def timed_out(self) -> bool: ...


class Shell(Protocol):
    """Runs one shell command to its end, and ends all that it started."""

    async def __call__(
        self,
        command: str,
        *,
        cwd: str,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - it is the command's limit, and part of the answer
        output_limit: int,
        marker: str,
    ) -> Ended: ...


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
        """What lies there and is not part of the commit."""
        ...

    async def named(self, project: Project, commit: str, name: re.Pattern[str]) -> dict[str, str]:
        """The commit's files whose name matches, each with its content's id."""
        ...
