"""Which providers are here, told from files, variables and what programs say of themselves."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

import patience
from windlass.core.nouns.run import Usage
from windlass.core.runs.provider import Login, Presence, Provider
from windlass.providers import load, presence
from windlass.web.routes.providers import shape

CODEX = load().get("codex")


def program(folder: Path, text: str) -> Path:
    """A codex of our own."""
    path = folder / "bin" / "codex"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def looked(folder: Path, provider: Provider = CODEX, **variables: str) -> Presence:
    environment = {"PATH": f"{folder}/bin:/usr/bin:/bin", "HOME": str(folder)} | variables
    return asyncio.run(presence.look(lambda: [provider], environment))[0]


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    """Nothing is asked of a program that is not installed."""
    found = looked(tmp_path)
    assert not found.installed
    assert (found.path, found.version) == ("", "")


def test_the_version_is_asked_and_compared(tmp_path: Path) -> None:
    """The version that we have driven is told from any other."""
    path = program(tmp_path, "echo WARNING >&2; echo codex-cli 0.166.0")
    assert looked(tmp_path) == Presence(provider=CODEX, path=str(path), version="0.166.0", login=Login.NO, evidence="")
    assert shape(looked(tmp_path))["verified_here"] is True

    program(tmp_path, "echo codex-cli 0.200.1")
    assert looked(tmp_path).version == "0.200.1"
    assert shape(looked(tmp_path))["verified_here"] is False


@pytest.mark.parametrize("text", ["exit 1", "echo no number", "kill -9 $$"])
def test_a_program_without_a_version(tmp_path: Path, text: str) -> None:
    """What says nothing useful is there all the same."""
    program(tmp_path, text)
    found = looked(tmp_path)
    assert (found.installed, found.version) == (True, "")


def test_a_program_that_hangs_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not answer is ended with all that it started, and the rest is told without it."""
    monkeypatch.setattr(presence, "PATIENCE", 0.3)
    program(tmp_path, f"sleep 600 & echo $! > {tmp_path}/child; sleep 600; touch {tmp_path}/over")
    assert looked(tmp_path).version == ""
    assert not (tmp_path / "over").exists()
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + patience.seconds(10)
    while alive(child):
        assert time.monotonic() < deadline


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_variable_or_a_file_says_who_is_logged_in(tmp_path: Path) -> None:
    """A key in the environment, or the file that logging in leaves; the secret itself is not told."""
    found = looked(tmp_path, OPENAI_API_KEY="sk-secret")
    assert (found.login, found.evidence) == (Login.YES, "$OPENAI_API_KEY")
    assert "sk-secret" not in str(shape(found))

    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    assert looked(tmp_path).evidence == "~/.codex/auth.json"
    assert looked(tmp_path, CODEX_HOME=str(tmp_path / "other")).evidence == "~/.codex/auth.json"


def test_a_variant_is_looked_at_in_its_own_account(tmp_path: Path) -> None:
    """The folder that a variant's environment names is where its login is looked for."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "auth.json").write_text("{}")
    variant = replace(CODEX, environment=lambda _: {"CODEX_HOME": str(tmp_path / "work")})
    assert looked(tmp_path, variant).evidence == "$CODEX_HOME/auth.json"


def test_nothing_is_claimed_without_a_sign(tmp_path: Path) -> None:
    """A provider that names no sign of a login has an unknown one."""
    assert looked(tmp_path, load().get("command")).login is Login.UNKNOWN


def test_tokens_have_a_price() -> None:
    """What codex does not say is priced by its model: new, remembered and written tokens; other models have none."""
    used = Usage(input_tokens=1_000_000, cached_tokens=400_000, output_tokens=100_000)
    assert CODEX.price("gpt-5.5", used) == pytest.approx(0.6 * 5 + 0.4 * 0.5 + 0.1 * 30)
    assert CODEX.price("gpt-5.5-2026-04-23", used) == CODEX.price("gpt-5.5", used)
    assert CODEX.price("somebody-else's", used) == 0.0
    assert CODEX.price("", used) == 0.0


def test_looking_takes_no_environment_of_ours() -> None:
    """Looking at all providers works in the environment that we have."""
    found = asyncio.run(presence.look(load().all, os.environ))
    assert [each.provider.name for each in found] == [each.name for each in load().all()]
