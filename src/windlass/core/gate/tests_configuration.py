"""Files that configure tests: by their name, or by some of their tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping

import msgspec.toml

FOLDERS = (".github/",)
"""What other machines do with a repository. No check of ours can tell whether a change to it is good."""
_FILES = re.compile(
    r"makefile|gnumakefile|\.?justfile|taskfile\.ya?ml|rakefile|tox\.ini|noxfile\.py|conftest\.py|\.?pytest\.(ini|toml)"
    r"|\.mocharc\..*|(jest|vitest|playwright|cypress|karma)\.(config|conf|workspace)\..*|phpunit\.xml(\.dist)?|\.rspec",
    re.IGNORECASE,
)
_SCRIPTS = ("scripts", "jest", "mocha", "ava", "vitest")
_TOOLS = (
    *(("tool", name) for name in ("pytest", "tox", "nox", "coverage", "poe", "taskipy")),
    *(("tool", "hatch", "envs"), ("tool", "pdm", "scripts"), ("tool", "uv", "scripts")),
)
_HEADER = re.compile(r"^\[([^\]\n]*)\]", re.MULTILINE)
_SECTIONS = re.compile(r"(tool:)?pytest|tox|testenv|coverage|aliases|DEFAULT")


def configures_tests(file: str) -> bool:
    """Whether all of a file is about tests."""
    return bool(_FILES.fullmatch(_name(file)))


def has_tables(file: str) -> bool:
    """Whether some tables of a file may be about tests."""
    return _name(file) in _READERS


def tables_for_tests(file: str, text: str | None) -> object:
    """What a file says about tests; nothing if there is no file, and all of it if it can't be read."""
    try:
        return _READERS[_name(file)](text) if text is not None else {}
    except (ValueError, RecursionError):
        return text


def _name(file: str) -> str:
    return file.rpartition("/")[2]


def _package(text: str) -> object:
    return _chosen(json.loads(text), [(name,) for name in _SCRIPTS])


def _pyproject(text: str) -> object:
    return _chosen(msgspec.toml.decode(text), _TOOLS)


def _setup(text: str) -> object:
    parts = _HEADER.split(text)
    return [pair for pair in zip(parts[1::2], parts[2::2], strict=True) if _SECTIONS.match(pair[0])]


def _chosen(document: object, keys: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], object]:
    return {key: found for key in keys if (found := _inside(document, key)) is not None}


def _inside(document: object, key: tuple[str, ...]) -> object:
    for name in key:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


_READERS: dict[str, Callable[[str], object]] = {
    "package.json": _package,
    "pyproject.toml": _pyproject,
    "setup.cfg": _setup,
}
