"""Guarded files, whose changes wait for a person: they say how changes are tested, or what agents may do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windlass.core.gate import tests_configuration
from windlass.core.gate.command_words import CommandWords
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

    def __init__(self, settings: Settings, always: Iterable[str]) -> None:
        self._always = tuple(always)
        self._declared = settings.gate.guarded
        self._words = CommandWords(f"{settings.checks.command}\n{settings.checks.setup}")

    def suspects(self, files: Iterable[str]) -> list[str]:
        """Those of these files that may be guarded, by their names."""
        return [file for file in files if tests_configuration.has_tables(file) or self.judge(file, "", "")]

    def judge(self, file: str, before: str | None, after: str | None) -> GuardedFile | None:
        """Whether a change of this file is guarded, whose text was and is this; None: there is no such file."""
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
        if tests_configuration.configures_tests(file) or self._words.runs_module(file):
            return True
        if before is not None and (self._words.names(file) or self._words.names_module(file)):
            return True
        if not tests_configuration.has_tables(file):
            return False
        return tests_configuration.tables_for_tests(file, before) != tests_configuration.tables_for_tests(file, after)


def _covers(file: str, guard: str) -> bool:
    """Whether a guard names a file, or a folder above it; `ci`, `ci/`, `./ci` and `ci/**` are the same folder."""
    name = guard.removeprefix("./").removesuffix("*").removesuffix("*").rstrip("/")
    return file == name or file.startswith(f"{name}/")
