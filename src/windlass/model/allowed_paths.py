"""Where a model's tools may go: its own folders, and nowhere else by whatever name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from windlass.core.errors import NotAllowed, NotFound

_GIT = ".git"


class AllowedPaths:
    """The folders of a run. The first is where paths count from; what a link leads out to is outside."""

    def __init__(self, folders: Sequence[str], *, output: str = "") -> None:
        self.top = Path(folders[0]).resolve()
        self.roots = tuple(dict.fromkeys(Path(folder).resolve() for folder in folders))
        self.output = Path(self.top, output).resolve() if output else None
        """Where alone something may be written, if not everywhere."""

    def readable(self, path: str) -> Path:
        """The real place of a path that is there, in one of our folders."""
        found = self._inside(path)
        if not found.exists():
            raise NotFound(f"There is no {path}.")
        return found

    def writable(self, path: str) -> Path:
        """The real place of a path that may be written."""
        found = self._inside(path)
        if self.output is not None and not found.is_relative_to(self.output):
            raise NotAllowed(f"You may only read; you can write below {self.shown(self.output)} and nowhere else.")
        if any(_GIT in found.relative_to(root).parts for root in self.roots if found.is_relative_to(root)):
            raise NotAllowed("What is in .git is git's own.")
        if found.is_dir():
            raise NotAllowed(f"{path} is a folder.")
        return found

    def shown(self, path: Path) -> str:
        """A path as the model reads it."""
        return str(path.relative_to(self.top)) if path.is_relative_to(self.top) else str(path)

    def _inside(self, path: str) -> Path:
        if "\0" in path:
            raise NotAllowed("A path has no NUL characters.")
        try:
            real = Path(os.path.realpath(Path(self.top, path)))
        except (OSError, ValueError) as error:
            raise NotAllowed(f"{path[:200]!r} is no path.") from error
        if not any(real.is_relative_to(root) for root in self.roots):
            raise NotAllowed(f"{path[:200]} is outside of {self.top}, where you work.")
        return real
