"""Guarded files, whose changes wait for a person: they say how changes are tested, or what agents may do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from windlass.core.gate import tests_configuration
from windlass.core.gate.command_words import CommandWords
from windlass.core.gate.links import Links
from windlass.core.gate.rules import touches_tests
from windlass.core.settings.schema import Settings

SETTINGS = ".windlass/config.toml"

_TESTS = "decides how changes are tested"
_AGENTS = "decides what agents are told and may do"
_DECLARED = "is guarded by the settings"
_ELSEWHERE = "decides what other machines do with this repository"


@dataclass(frozen=True, slots=True)
class GuardedFile:
    """A file that a change may not alter by itself."""

    name: str
    why: str
    """After "which"."""
    judges: bool = False
    """It is part of the tests: they can run with main's copy of it instead."""


class Guards:
    """The guards of a project; `always` are files and folders that no setting takes from them."""

    def __init__(self, settings: Settings, always: Iterable[str], links: Mapping[str, str]) -> None:
        self._always = tuple(always)
        self._links = Links(links)
        self._declared = settings.gate.guarded
        self._words = CommandWords(f"{settings.checks.command}\n{settings.checks.setup}")

    def suspects(self, files: Iterable[str]) -> list[str]:
        """Those of these files that may be guarded, by their names."""
        return [file for file in files if any(map(self._may_judge, self._links.names(file)))]

    def judge(self, file: str, before: str | None, after: str | None) -> GuardedFile | None:
        """Whether a change of this file is guarded, whose text was and is this; None: there is no such file."""
        found = (self._judge(name, before, after) for name in self._links.names(file))
        return next((replace(guarded, name=file) for guarded in found if guarded), None)

    def judge_unread(self, file: str) -> GuardedFile | None:
        """Whether a file is guarded whose text is too long to look into: it is if it may be."""
        return self.judge(file, "", "") or (GuardedFile(file, _TESTS, judges=True) if self.suspects([file]) else None)

    def _may_judge(self, name: str) -> bool:
        some = tests_configuration.has_tables(name) or tests_configuration.hides_module(name)
        return some or self._judge(name, "", "") is not None

    def _judge(self, file: str, before: str | None, after: str | None) -> GuardedFile | None:
        if file == SETTINGS:
            return GuardedFile(file, _TESTS)
        if any(_covers(file, guard) for guard in self._always):
            return GuardedFile(file, _AGENTS)
        if any(_covers(file, guard) for guard in self._declared):
            return GuardedFile(file, _DECLARED)
        if file.startswith(tests_configuration.FOLDERS):
            return GuardedFile(file, _ELSEWHERE)
        return GuardedFile(file, _TESTS, judges=True) if self._is_test(file, before, after) else None

    def _is_test(self, file: str, before: str | None, after: str | None) -> bool:
        """A file that a word names counts if main has it: what is new was not what the command meant."""
        programs = self._words.programs
        if tests_configuration.configures_tests(file, programs) or self._words.runs_module(file):
            return True
        if any(not touches_tests([folder]) for folder in self._words.folders_of_scripts(file)):
            return True
        if before is None and any(map(tests_configuration.hides_module, self._words.ends(file))):
            return True
        if before is not None and (self._words.names(file) or self._words.names_module(file)):
            return True
        if not tests_configuration.has_tables(file):
            return False
        tables = [tests_configuration.tables_for_tests(file, text, programs) for text in (before, after)]
        return tables[0] != tables[1]


def _covers(file: str, guard: str) -> bool:
    """Whether a guard names a file, or a folder above it; `ci`, `ci/`, `./ci` and `ci/**` are the same folder."""
    name = guard.removeprefix("./").removesuffix("*").removesuffix("*").rstrip("/")
    return file == name or file.startswith(f"{name}/")
