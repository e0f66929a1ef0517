"""The demo's texts: a small package that agents work on, and the scripts that play the agents."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

_SUFFIX = ".txt"
"""The package's files have it, so that no tool takes them for code of ours."""


def package_files() -> dict[str, str]:
    """Every file of the package, by its path there."""
    return dict(_files(resources.files(__name__) / "package", ""))


def script(name: str) -> str:
    """What one agent does."""
    return (resources.files(__name__) / "scripts" / f"{name}.yaml").read_text(encoding="utf-8")


def _files(folder: Traversable, place: str) -> Iterator[tuple[str, str]]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from _files(path, f"{place}{path.name}/")
        else:
            yield place + path.name.removesuffix(_SUFFIX), path.read_text(encoding="utf-8")
