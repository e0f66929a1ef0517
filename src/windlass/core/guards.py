"""Files that nobody changes alone: they say how changes are tested, or what agents are told and may do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import pairwise

from windlass.core.settings import Settings

SETTINGS = ".windlass/config.toml"

_APART = re.compile(r"[;&|(){}<\n]+|\b(?:if|then|elif|else|do|while|until)\b")
_LINES = re.compile(r"\\\n")
_SCRIPT = re.compile(r"/|\.(sh|bash|py|js|mjs|cjs|ts|rb|pl|php|lua|R)$|^[Mm]akefile")
"""Arguments that are files, and likely such that are executed."""
_CODE = ("-c", "-lc", "-ec", "-e")
_BEFORE = re.compile(
    r"\w+=.*|!|time|exec|env|nice|nohup|command|timeout|sudo|xvfb-run|uv|poetry|pipenv|npx|run|-.*|[\d.]+[smh]?"
)
"""What may stand before the name of a program."""
_INTERPRETERS = re.compile(r"(ba|da|z|k)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|Rscript|tsx|ts-node|\.|source")
_RECIPES = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "gmake": ("Makefile", "makefile", "GNUmakefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
    "bun": ("package.json",),
    "rake": ("Rakefile",),
}
"""Programs that do what a file of the repository says."""


def guarded(files: Iterable[str], settings: Settings, always: Iterable[str]) -> str:
    """The first of these files that waits for a person."""
    guards, own = (*always, *settings.gate.guarded), _tests(settings)
    return next((each for each in files if each in own or any(_covers(each, guard) for guard in guards)), "")


def decides(file: str, settings: Settings, always: Iterable[str]) -> str:
    """Why a file is guarded, after \"which\"."""
    if file == SETTINGS or file in _tests(settings):
        return "decides how changes are tested"
    if any(_covers(file, each) for each in always):
        return "decides what agents are told and may do"
    return "is guarded by the settings"


def scripts(command: str) -> set[str]:
    """The files of a repository that a shell command seems to execute, or names as a script or by a path."""
    folder, found = "", set[str]()
    for part in _APART.split(_LINES.sub(" ", command)):
        words = _program(_words(part))
        if words[:1] == ["cd"]:
            folder = _joined(folder, *words[1:2])
        else:
            found |= {_joined(folder, each) for each in _executed(words)}
    return found


def _tests(settings: Settings) -> set[str]:
    return scripts(settings.checks.command) | scripts(settings.checks.setup)


def _executed(words: list[str]) -> Iterator[str]:
    if not words:
        return
    name = words[0].rpartition("/")[2]
    yield words[0]
    yield from (_joined(_elsewhere(words), each) for each in _RECIPES.get(name, ()))
    interprets = bool(_INTERPRETERS.fullmatch(name))
    for place, word in enumerate(words[1:], 1):
        if interprets and words[place - 1] in _CODE:
            yield from scripts(word)
        elif not word.startswith("-") and (_SCRIPT.search(word) or (interprets and place == 1)):
            yield word


def _elsewhere(words: list[str]) -> str:
    """The folder in which a program is told to look for what it is to do."""
    return next((then for word, then in pairwise(words) if word in ("-C", "--prefix", "--directory", "--cwd")), "")


def _program(words: list[str]) -> list[str]:
    """A command from its program on: what only says how to run it is left out."""
    while words and _BEFORE.fullmatch(words[0]):
        words = words[1:]
    return words


def _words(part: str) -> list[str]:
    try:
        return shlex.split(part)
    except ValueError:  # an open quote: what it holds was cut in two
        return part.replace("'", " ").replace('"', " ").split()


def _joined(*names: str) -> str:
    """Parts of a path from the top of the repository."""
    text = "/".join(each.removeprefix("$PWD/").removeprefix("./") for each in names if each not in ("", "."))
    return text.removeprefix("./")


def _covers(file: str, guard: str) -> bool:
    """Whether a file is what is guarded, or in it; `ci`, `ci/`, `./ci` and `ci/**` are the same folder."""
    name = guard.removeprefix("./").removesuffix("*").removesuffix("*").rstrip("/")
    return file == name or file.startswith(f"{name}/")
