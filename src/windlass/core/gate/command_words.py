"""The words of a shell command, and the files of a repository that they may name. No shell is understood here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

_WORD = re.compile(r"[^\s;&|()<>{}\[\]'\"`$=,:@!*?\\]+")
_GLUED = re.compile(r"-[A-Za-z](?=[^-])")
"""An option of one letter, with its value glued to it."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class CommandWords:
    """Every word may be a file, a folder that others are below, or a Python module."""

    def __init__(self, command: str) -> None:
        self._said = _WORD.findall(command)
        glued = [_GLUED.sub("", word, count=1) for word in self._said if _GLUED.match(word)]
        self.paths = {path for word in (*self._said, *glued) if (path := _path(word))}

    def names(self, file: str) -> bool:
        """Whether a word is this file, from the top or from any folders that other words name."""
        return self._reach(file, self.paths)

    def names_module(self, file: str) -> bool:
        """Whether a dotted word is this file as a module, or a package that it is in."""
        return self._reach(_stem(file), {path for word in self._said if "." in word for path in _stems(word)})

    def runs_module(self, file: str) -> bool:
        """Whether this file is, or would become, the module of an `-m`: a new one hides the one that was meant."""
        return self._reach(_stem(file), self._run)

    @cached_property
    def _run(self) -> set[str]:
        after = [word for before, word in zip(self._said, self._said[1:], strict=False) if before == "-m"]
        glued = [word[2:] for word in self._said if word.startswith("-m")]
        return {path for word in (*after, *glued) for path in _stems(word)}

    @cached_property
    def _folders(self) -> set[str]:
        """All paths, and the folders above them, where a `..` may lead."""
        return {folder for path in self.paths for folder in _upwards(path)}

    def _reach(self, file: str, wanted: Collection[str]) -> bool:
        """Whether a path is some folders, one after the other, and then one of those that are wanted."""
        parts = file.split("/")
        starts = [0]
        for end in range(1, len(parts)):
            if any("/".join(parts[start:end]) in self._folders for start in starts):
                starts.append(end)
        return any("/".join(parts[start:]) in wanted for start in starts)


def _path(word: str) -> str:
    """A word as a path from some folder; what leads above that folder is left out."""
    parts: list[str] = []
    for part in word.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _upwards(path: str) -> Iterator[str]:
    while path:
        yield path
        path = path.rpartition("/")[0]


def _stem(file: str) -> str:
    """A file without the endings of its name: `t.py` and `t.so` are the same module."""
    folder, slash, name = file.rpartition("/")
    return folder + slash + name.partition(".")[0]


def _stems(word: str) -> Iterable[str]:
    """The files that running a module executes: itself, and those of the packages around it."""
    if not _MODULE.fullmatch(word):
        return
    path = word.replace(".", "/")
    yield from (path, f"{path}/__main__", *(f"{package}/__init__" for package in _upwards(path)))
