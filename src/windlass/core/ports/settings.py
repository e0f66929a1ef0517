"""The settings in force."""

from __future__ import annotations

from typing import Protocol

from windlass.core.settings.schema import Settings


class SettingsReader(Protocol):
    """The settings in force now; files are read anew when they have changed."""

    def at(self, path: str, /) -> Settings:
        """For the project whose checkout is there; with no path, for the home alone. While a file is broken, what it
        said before counts; a project's file that was never whole is refused."""
        ...

    def check(self, path: str, /) -> None:
        """Refuse a file that is broken now."""
        ...
