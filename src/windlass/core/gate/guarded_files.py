"""Guarded files, whose changes wait for a person: they say how changes are tested, or what agents may do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator

from windlass.core.settings.schema import Settings

SETTINGS = ".windlass/config.toml"

_APART = re.compile(r"[;&|()\n]+|\b(?:if|then|elif|else|do|while|until)\b")
_BEFORE = re.compile(r"\w+=.*|!|time|exec|env|nice|nohup|command|timeout|-.*|[\d.]+[smh]?")
"""Words that may come before the name of a program."""
_INTERPRETERS = re.compile(r"(ba|da|z|k)?sh|python[\d.]*|node|deno|bun|ruby|perl|php|Rscript|tsx|ts-node|\.|source")
_RECIPES = {
    **dict.fromkeys(("make", "gmake"), ("Makefile", "makefile", "GNUmakefile")),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "rake": ("Rakefile",),
}
"""Programs that execute a file of the repository."""


def guarded(files: Iterable[str], settings: Settings, always: Iterable[str]) -> str:
    """The first of these files that waits for a person."""
    guards = (*always, *settings.gate.guarded, *_tests(settings))
    return next((file for file in files if any(_covers(file, guard) for guard in guards)), "")


def decides(file: str, settings: Settings, always: Iterable[str]) -> str:
    """Why a file is guarded, after \"which\"."""
    if file == SETTINGS or file in _tests(settings):
        return "decides how changes are tested"
    if any(_covers(file, guard) for guard in always):
        return "decides what agents are told and may do"
    return "is guarded by the settings"


def scripts(command: str) -> set[str]:
    """The files of a repository that a shell command executes, not those that it reads."""
    return {file.removeprefix("./") for part in _APART.split(command) for file in _executed(part)}


def _tests(settings: Settings) -> set[str]:
    return scripts(settings.checks.command) | scripts(settings.checks.setup)


def _executed(part: str) -> Iterator[str]:
    try:
        words = shlex.split(part)
    except ValueError:  # an open quote: the command was split inside it
        words = part.split()
    while words and _BEFORE.fullmatch(words[0]):
        words = words[1:]
    if not words:
        return
    yield words[0]
    name = words[0].rpartition("/")[2]
    yield from _RECIPES.get(name, ())
    if _INTERPRETERS.fullmatch(name):
        script = next((word for word in words[1:] if not word.startswith("-") or word in ("-c", "-m", "-e")), "")
        if not script.startswith("-"):
            yield script


def _covers(file: str, guard: str) -> bool:
    """Whether a guard names a file, or a folder above it; `ci`, `ci/`, `./ci` and `ci/**` are the same folder."""
    name = guard.removeprefix("./").removesuffix("*").removesuffix("*").rstrip("/")
    return file == name or file.startswith(f"{name}/")
