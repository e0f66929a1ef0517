"""The demo's texts: a small package that agents work on, and the scripts that play the agents."""

from __future__ import annotations

from pathlib import Path

_HERE = Path(__file__).parent
_SUFFIX = ".txt"
"""The package's files have it, so that no tool takes them for code of ours."""


def package_files() -> dict[str, str]:
    """Every file of the package, by its path in the package."""
    top = _HERE / "package"
    files = (path for path in top.rglob("*") if path.is_file())
    return {str(path.relative_to(top)).removesuffix(_SUFFIX): path.read_text("utf-8") for path in files}


def script(name: str) -> str:
    """The script of one agent."""
    return (_HERE / "scripts" / f"{name}.yaml").read_text("utf-8")
