"""Shows and changes settings for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from windlass.core.errors import Unavailable
from windlass.core.nouns.project import Project
from windlass.daemon.settings import FOR_ALL, SettingsFiles, flat, project_file

IGNORED = """\
# What Windlass writes here while it works.
/input/
/output/
/chat.md
/context/
/process-status.json
/structure.json
/.*.*.*
"""
"""The last line: drafts, which replace another file a moment later."""


class SettingsFileEditor:
    """The settings files of the home and of projects."""

    def __init__(self, files: SettingsFiles, guess: Callable[[Path], Mapping[str, str]]) -> None:
        self.files = files
        self.guess = guess

    def shown(self, path: str, /) -> tuple[Mapping[str, Any], Sequence[str]]:
        self.files.check(path)
        return flat(self.files.at(path)), [str(file) for file in self.files.files(path)]

    def change(self, path: str, key: str, text: str, /) -> tuple[Any, str]:
        for_all = not path or key.startswith(FOR_ALL)
        file = self.files.home_file if for_all else project_file(path)
        return self.files.set(file, key, text), str(file)

    def write_project(self, project: Project, /, *, name: str, main: str, command: str, setup: str) -> str:
        file = project_file(project.path)
        values = {
            "project.name": name,
            "project.uuid": project.id,
            "project.main": main,
            "checks.command": command,
            "checks.setup": setup,
        }
        for key, text in values.items():
            if text:
                self.files.set(file, key, text)
        ignored = file.with_name(".gitignore")
        try:
            if not ignored.exists():
                ignored.write_text(IGNORED, "utf-8")
        except OSError as error:
            raise Unavailable(f"{ignored} cannot be written: {error.strerror}.") from error
        return str(file)

    def guess_checks(self, path: str, /) -> Mapping[str, str]:
        return self.guess(Path(path))
