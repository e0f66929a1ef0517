"""Guess a repository's checks from the files at its top."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path


def guess(top: Path) -> dict[str, str]:
    """A check command, a set-up and the reason; empty texts where nothing was found."""
    for look in _LOOKS:
        found = look(top)
        if found is not None:
            command, setup, because = found
            return {"command": command, "setup": setup, "because": because}
    return {"command": "", "setup": "", "because": ""}


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


def _cargo(top: Path) -> Found:
    return ("cargo test", "", "there is a Cargo.toml") if (top / "Cargo.toml").is_file() else None


def _go(top: Path) -> Found:
    return ("go test ./...", "", "there is a go.mod") if (top / "go.mod").is_file() else None


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
        opened = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        plain = stat.S_ISREG(os.fstat(opened).st_mode)
        return os.read(opened, 200_000).decode("utf-8", "replace") if plain else ""
    finally:
        os.close(opened)


_LOOKS: tuple[Callable[[Path], Found], ...] = (_script, _make, _node, _cargo, _go, _python)
