"""The problems of a file that people write, each with its place and its remedy."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import NamedTuple

from windlass.core.files.tree import Place

MOST_PROBLEMS = 100
"""Errors that are told of one file, and as many warnings."""


class Gravity(StrEnum):
    ERROR = "error"
    """The file can't be used."""
    WARNING = "warning"
    """The file is used all the same."""


class FileProblem(NamedTuple):
    """Something wrong with a file of the repository."""

    file: str
    line: int
    words: str
    gravity: Gravity = Gravity.ERROR
    column: int = 0
    """Where in the line, from 1; 0 where only the line is known."""
    field: str = ""
    """The path of keys to it, such as `agents.coder.model`."""
    remedy: str = ""
    """The next step of the person."""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")
        return f"{place}: {self.gravity}: {self.sentence}"

    @property
    def sentence(self) -> str:
        """The problem without its place."""
        field = f"{self.field}: " if self.field else ""
        return f"{field}{self.words} {self.remedy}".rstrip()


class Notes:
    """Collects the problems of one file."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[FileProblem] = []
        self._counted = Counter[Gravity]()

    def refuse(self, at: Place, field: str, words: str, remedy: str = "", gravity: Gravity = Gravity.ERROR) -> None:
        self._counted[gravity] += 1
        if self._counted[gravity] <= MOST_PROBLEMS:
            self.problems.append(FileProblem(self.file, at[0], words, gravity, at[1], field, remedy))

    def warn(self, at: Place, field: str, words: str, remedy: str = "") -> None:
        self.refuse(at, field, words, remedy, Gravity.WARNING)

    @property
    def errors(self) -> int:
        """How many errors there are, also those beyond what is kept."""
        return self._counted[Gravity.ERROR]

    @property
    def full(self) -> bool:
        """Whether further errors are dropped, so that nobody needs to look for more, or for a near miss."""
        return self.errors >= MOST_PROBLEMS

    def in_order(self) -> tuple[FileProblem, ...]:
        """The problems by place, each once."""
        return tuple(sorted(dict.fromkeys(self.problems), key=lambda problem: (problem.line, problem.column)))
