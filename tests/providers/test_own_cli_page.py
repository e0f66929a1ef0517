"""docs/providers.md, followed by a stranger: every block is run as it stands."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import patience
import windlass
from windlass.core.nouns.run import TroubleKind
from windlass.core.runs.provider import Provider
from windlass.core.settings.schema import Settings, build
from windlass.providers import load

TOP = Path(__file__).parent.parent.parent
PAGE = TOP / "docs" / "providers.md"
SOURCE = Path(windlass.__file__).parent.parent
PROGRAM = (
    f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(SOURCE)!r})\nfrom windlass.cli.main import run\nrun()\n"
)
PATIENCE = patience.seconds(60)


def blocks(language: str) -> list[str]:
    """Those of the page's part about one's own CLI."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text().partition("## Add your own CLI")[2], re.DOTALL)


def described(text: str) -> Mapping[str, Provider]:
    """The providers of a person who has pasted this into the file."""
    settings = build(Settings, ("config.toml", tomllib.loads(text)))
    found = load()
    found.accept(settings)
    found.described = lambda: settings.providers
    return {each.name: each for each in found.all() if each.own}


@pytest.fixture
def stranger(own_home: Path) -> Iterator[dict[str, str]]:
    """The variables of someone who has just installed Windlass: nothing is where it is not by default."""
    home, programs = own_home / "home", own_home / "bin"
    programs.mkdir()
    (programs / "windlass").write_text(PROGRAM)
    (programs / "windlass").chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("WINDLASS_", "XDG_"))}
    variables = kept | {"HOME": str(home), "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCE)}
    yield variables
    run("windlass daemon stop", variables, home)


def run(text: str, variables: Mapping[str, str], folder: Path) -> str:
    """What a shell says when all of this is pasted into it; it must end well."""
    done = subprocess.run(
        ("sh", "-e", "-c", text),
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_table_is_current() -> None:
    """The page says of each provider what the provider is."""
    page = runpy.run_path(str(TOP / "scripts" / "providers_page.py"))["page"]
    assert PAGE.read_text() == page(), "run scripts/docs"


def test_a_stranger_adds_a_cli(stranger: dict[str, str], own_home: Path) -> None:
    """Whoever pastes the page's blocks, one after the other, has a provider of their own and its work on main."""
    home = own_home / "home"
    make, describe, work = blocks("sh")

    run(make, stranger, home)
    listed = run(describe, stranger, home)
    assert "a stand-in that writes poems" in listed
    run(work, stranger, home)

    repository = home / "try-my-agent"
    assert "winch" in run("git show main:POEM.md", stranger, repository)
    (agent,) = json.loads(run("windlass list --all --json", stranger, repository))
    shown = json.loads(run(f"windlass show {agent['name']} --json", stranger, repository))
    assert re.fullmatch(r"\d+", shown["runs"][0]["session"])
    assert shown["provider"] == "my-agent"


def test_what_is_here_is_shown(stranger: dict[str, str], own_home: Path) -> None:
    """For people and for programs: another version than the one we tried, who is logged in, what is not installed."""
    home = own_home / "home"
    (own_home / "bin" / "codex").write_text("#!/bin/sh\necho codex-cli 0.200.1\n")
    (own_home / "bin" / "codex").chmod(0o755)
    (home / ".windlass").mkdir(mode=0o700)
    (home / ".windlass" / "config.toml").write_text('[providers.mine]\ncommand = ["no-such-program"]\n')
    variables = stranger | {"OPENAI_API_KEY": "sk-secret"}

    told = run("windlass providers", variables, home)
    assert "with 0.166.0 on 2026-11-15; this is 0.200.1" in told
    assert "yes, by $OPENAI_API_KEY" in told
    assert "sk-secret" not in told

    items = {each["name"]: each for each in json.loads(run("windlass providers --json", variables, home))}
    assert (items["codex"]["verified_here"], items["codex"]["version"]) == (False, "0.200.1")
    assert (items["mine"]["own"], items["mine"]["installed"], items["mine"]["verified"]) == (True, False, None)
    assert items["mine"]["permissions"]["read"]["flags"] is None
    assert items["codex"]["permissions"]["edit"]["flags"][0] == "-s"
    assert items["codex"]["sandbox"] in ("bubblewrap", "unenforced")


def test_what_the_page_describes_can_be_pasted() -> None:
    """Each description on the page is one that is accepted."""
    found = [name for block in blocks("toml") for name in described(block)]
    assert found == ["opencode", "codex-work"]


def test_the_events_of_the_page_s_example_are_read() -> None:
    """The fields that the page names are those of recorded output."""
    provider = described(blocks("toml")[0])["opencode"]
    recorded = Path(__file__).with_name("recorded") / "opencode"
    lines = (recorded / "basic.jsonl").read_text().splitlines()
    readings = [provider.read(line) for line in lines]
    assert {reading.session for reading in readings} == {"ses_e1f87ce5dffexqNVUZXBRYPh6h"}
    assert next(reading.text for reading in readings if reading.text) == "I will create the file."
    assert sum(reading.usage.input_tokens for reading in readings if reading.usage) == 200
    assert sum(reading.usage.tool_uses for reading in readings if reading.usage) == 1

    ends = {"auth-401": TroubleKind.AUTH, "rate-429": TroubleKind.THROTTLE}
    for name, kind in ends.items():
        last = provider.read((recorded / f"{name}.jsonl").read_text().splitlines()[-1])
        assert last.trouble is not None
        assert last.trouble.kind is kind
