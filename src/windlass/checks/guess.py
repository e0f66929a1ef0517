"""Guess a repository's checks from the files at its top."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path

from windlass.system.files import read_file


def guess(top: Path) -> dict[str, str]:
    """A check command, a set-up and the reason; empty texts where nothing was found."""
    command, setup, because = next(filter(None, (look(top) for look in _LOOKS)), ("", "", ""))
    return {"command": command, "setup": setup, "because": because}


Found = tuple[str, str, str] | None


def _script(top: Path) -> Found:
    for name in ("scripts/test", "bin/test", "script/test"):
        if (top / name).is_file():
            return name, "", f"there is {name}"
    return None


def _make(top: Path) -> Found:
    for name in ("Makefile", "makefile", "GNUmakefile"):
        text = _text(top / name)
        for target in ("check", "test"):
            if re.search(rf"^{target}\s*:", text, re.MULTILINE):
                return f"make {target}", "", f"{name} has a target {target}"
    return None


def _node(top: Path) -> Found:
    try:
        scripts = json.loads(_text(top / "package.json") or "{}").get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return None
    if not isinstance(scripts, dict) or "test" not in scripts:
        return None
    if (top / "package-lock.json").is_file():
        return "npm test", "npm ci", "package.json has a test script"
    return "npm test", "npm install", "package.json has a test script"


def _manifest(top: Path) -> Found:
    for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if (top / name).is_file():
            return command, "", f"there is a {name}"
    return None


def _python(top: Path) -> Found:
    tests = [name for name in ("tests", "test") if (top / name).is_dir()]
    if _uses_pytest(top):
        return "python3 -m pytest -q", "", "the project is set up for pytest"
    if tests or any(top.glob("test_*.py")):
        return f"python3 -m unittest discover{_where(top, tests)}", "", "there are Python tests"
    return None


def _where(top: Path, tests: list[str]) -> str:
    """The start folder for unittest; a folder of tests that is a package is imported from the top."""
    if not tests:
        return ""
    package = (top / tests[0] / "__init__.py").is_file()
    return f" -s {tests[0]}" + (" -t ." if package else "")


def _uses_pytest(top: Path) -> bool:
    if (top / "pytest.ini").is_file() or "[tool:pytest]" in _text(top / "setup.cfg"):
        return True
    try:
        project = tomllib.loads(_text(top / "pyproject.toml"))
    except (tomllib.TOMLDecodeError, RecursionError):
        return False
    return "pytest" in project.get("tool", {}) or "pytest" in json.dumps(project)


def _text(file: Path) -> str:
    """The beginning of a plain file; a repository may bring anything, and a pipe or device is not read."""
    try:
        return read_file(None, os.path.realpath(file), 200_000).decode("utf-8", "replace")
    except OSError:
        return ""


_LOOKS: tuple[Callable[[Path], Found], ...] = (_script, _make, _node, _manifest, _python)
