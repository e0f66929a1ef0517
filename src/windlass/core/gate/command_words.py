"""The words of a shell command, and the files of a repository that they may name. No shell is understood here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise, zip_longest

_ENDS = r"\s;&|()<>{}'\"`$=,:@!\\"
"""What no word has in it."""
_WORD = re.compile(rf"[^{_ENDS}\[\]*?]+")
_WILD_WORD = re.compile(rf"[^{_ENDS}]*[*?\[][^{_ENDS}]*")
_WILD = re.compile(r"(\*\*/|\*\*|\*|\?|\[[^\]]*\]?)")
_SHAPES = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*"}
_HERE = re.compile(r"\$(PWD\b|\{PWD\})")
_VARIABLE = re.compile(r"\$(?:\w+|\{\w+\})")
_CHOICE = re.compile(r"\{[^\s{}]*,[^\s{}]*\}")
_GLUED = re.compile(r"-[A-Za-z](?=[^-])")
"""An option of one letter, with its value glued to it."""
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_RUN = re.compile(r"-[bBdEiIOPqRsSuvx]*m(.*)")
"""Python's option that runs a module, alone or behind others: `-m`, `-Bm`, `-mtools`."""
_INTERPRETER = re.compile(r"(?:.*/)?(?:python|pypy|node|nodejs|tsx|ts-node)[\d.]*")
_SCRIPT = re.compile(r".*\.(sh|bash|zsh|ksh|fish|mk|bat|cmd|ps1)|[^.]+")
_MOST_PIECES = 8
"""Words in a row that may be one name, such as that of a folder with spaces in it."""


class CommandWords:
    """Every word may be a file, a folder that others are below, or a Python module."""

    def __init__(self, command: str) -> None:
        command = _HERE.sub(".", command)
        self._said = _WORD.findall(_VARIABLE.sub(" ", command))
        wild = _WILD_WORD.findall(_CHOICE.sub("**", _VARIABLE.sub("**", command)))
        self._wild = {word: _shape(word.removeprefix("./")) for word in wild if re.search(r"\w", word)}
        glued = [_GLUED.sub("", word, count=1) for word in self._said if _GLUED.match(word)]
        self.paths = {path for word in (*self._said, *glued, *_rows(self._said)) if (path := as_path(word))}

    @cached_property
    def programs(self) -> set[str]:
        """What may be the names of programs."""
        return {path.rpartition("/")[2] for path in self.paths}

    def names(self, file: str) -> bool:
        """Whether a word is this file or leads through it, from the top or from any folders that other words name."""
        ends = list(self.ends(file))
        literal = [shape for word, shape in self._wild.items() if not _WILD.search(_name(word))]
        return any(end in self._folders or any(shape.fullmatch(end) for shape in literal) for end in ends)

    def folders_of_scripts(self, file: str) -> list[str]:
        """The folders of the words whose wildcards mean this file, if it is a script: most that they mean is source."""
        if not _SCRIPT.fullmatch(_name(file)):
            return []
        ends = list(self.ends(file))
        return [word.rpartition("/")[0] for word, shape in self._wild.items() if any(map(shape.fullmatch, ends))]

    def names_module(self, file: str) -> bool:
        """Whether a dotted word is this file as a module, or a package that it is in."""
        named = {path for word in self._said if "." in word for path in _stems(word)}
        return any(end in named for end in self.ends(_stem(file)))

    def runs_module(self, file: str) -> bool:
        """Whether this file is, or would become, the module of an `-m`: a new one hides the one that was meant."""
        return any(end in self._run for end in self.ends(_stem(file)))

    @cached_property
    def _run(self) -> set[str]:
        said = pairwise([*self._said, ""])
        modules = [found[1] or after for word, after in said if (found := _RUN.fullmatch(word))]
        plain = pairwise(word for word in self._said if not word.startswith("-"))
        started = [as_path(after) for word, after in plain if _INTERPRETER.fullmatch(word)]
        mains = {f"{path}{end}" for path in started for end in ("", "/__main__", "/index") if path}
        return mains | {path for word in modules for path in _stems(word)}

    @cached_property
    def _folders(self) -> set[str]:
        """All paths, and the folders above them, where a `..` may lead."""
        return {folder for path in self.paths for folder in _upwards(path)}

    def ends(self, file: str) -> Iterator[str]:
        """A path as it is from the top, and from each place that folders lead to, one after the other."""
        parts = " ".join(_WORD.findall(file)).split("/")
        starts = [0]
        for end in range(1, len(parts)):
            if any("/".join(parts[start:end]) in self._folders for start in starts):
                starts.append(end)
        return ("/".join(parts[start:]) for start in starts)


def _rows(words: Sequence[str]) -> Iterator[str]:
    """Words in a row as one name; what was between them does not count."""
    for count in range(2, _MOST_PIECES + 1):
        for start in range(len(words) - count + 1):
            yield " ".join(words[start : start + count])


def _shape(word: str) -> re.Pattern[str]:
    """A word with wildcards as an expression."""
    pieces = _WILD.split(word)
    both = zip_longest(
        map(re.escape, pieces[::2]), (_SHAPES.get(piece, "[^/]") for piece in pieces[1::2]), fillvalue=""
    )
    return re.compile("".join(chain.from_iterable(both)))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def as_path(word: str) -> str:
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
