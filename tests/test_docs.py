"""Texts that speak of the program are held against it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import click
import pytest

from windlass.cli.main import windlass
from windlass.core import errors
from windlass.providers.script.parse import parse

TOP = Path(__file__).parent.parent
TEXTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md"), *(TOP / "changelog.d").glob("*.md")])
SOURCES = sorted((TOP / "src").rglob("*.py"))
COMMAND = re.compile(r"(?:`|^\$ |^\s*)(?:\./)?windlass ([a-z]+)(?: ([a-z]+(?:-[a-z]+)*)\b)?", re.MULTILINE)


def test_the_settings_page_is_current() -> None:
    """docs/settings.md says what core/settings/schema.py declares."""
    page = runpy.run_path(str(TOP / "scripts" / "settings_page.py"))["page"]
    assert (TOP / "docs" / "settings.md").read_text() == page(), "run scripts/docs"


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(TOP)))
def test_every_command_in_a_text_exists(path: Path) -> None:
    """A command that a page tells people to type is one that they can type."""
    in_code = "\n".join(re.findall(r"```console\n(.*?)```", path.read_text(), re.DOTALL))
    in_line = "\n".join(re.findall(r"`(?:\./)?windlass [^`]*`", path.read_text()))
    assert unknown(in_code + "\n" + in_line) == []


def test_every_command_in_a_hint_exists() -> None:
    """A hint never sends anyone to a command that is not there."""
    hints = "\n".join(each for path in SOURCES for each in re.findall(r"`windlass [^`]*`", path.read_text()))
    assert unknown(hints) == []


def unknown(text: str) -> list[str]:
    """Commands in a text that the program does not have."""
    return [f"{name} {sub}".strip() for name, sub in COMMAND.findall(text) if not exists(name, sub)]


def exists(name: str, sub: str) -> bool:
    context = click.Context(windlass)
    found = windlass.get_command(context, name)
    if isinstance(found, click.Group) and sub:
        return found.get_command(context, sub) is not None
    return found is not None


def test_every_file_that_a_page_names_is_there() -> None:
    """Pages that name files of the source name files that exist, so that a hop can be looked up."""
    named = re.compile(
        r"\b((?:core|engine|system|web|mcp|cli|daemon|git|process|store|workdir|checks|library|providers|model)/[\w/]+\.py)\b"
    )
    missing = {
        f"{path.relative_to(TOP)}: {name}"
        for path in TEXTS
        for name in named.findall(path.read_text())
        if not (TOP / "src/windlass" / name).exists() and not (TOP / "tests" / name).exists()
    }
    assert missing == set()


def test_every_place_in_the_tables_of_the_guide_is_there() -> None:
    """AGENTS.md sends a newcomer to folders and modules that exist; those to come are in italics."""
    text = re.sub(r"\*`[^`]+`\*", "", (TOP / "AGENTS.md").read_text())
    rows = re.findall(r"^\| [^|]+ \|([^|]*)\|([^|]*)\|([^|]*)\|$", text, re.MULTILINE)
    floors = ("core", "engine", "")
    named = {(floor, name) for row in rows for floor, cell in zip(floors, row, strict=True) for name in quoted(cell)}
    assert len(named) > 40
    assert {name for floor, name in named if "/" in name and not is_place(floor, name)} == set()


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def is_place(floor: str, name: str) -> bool:
    """Whether a name leads to a folder, a module or a script: from its floor, from the source, or from the top."""
    places = [TOP / "src/windlass" / floor / name, TOP / "src/windlass" / name, TOP / name]
    return any(place.exists() or place.with_suffix(".py").exists() for place in places)


def test_every_exit_code_is_explained() -> None:
    """The page that lists the exit codes names as many as there are kinds of errors."""
    line = (TOP / "README.md").read_text().partition("Exit codes:")[2].partition(".")[0]
    words = {"not found": errors.NotFound, "conflict": errors.Conflict, "not allowed": errors.NotAllowed}
    words |= {"bad input": errors.BadInput, "unavailable": errors.Unavailable, "timed out": errors.TimedOut}
    assert set(words.values()) == set(errors.KINDS.values())
    assert [word for word in words if word not in line] == []


def test_every_script_on_the_page_can_be_played() -> None:
    """What docs/scripts.md shows is a script."""
    shown = re.findall(r"```yaml\n(.*?)```", (TOP / "docs" / "scripts.md").read_text(), re.DOTALL)
    assert len(shown) >= 3
    for each in shown:
        parse(each, "docs/scripts.md")
