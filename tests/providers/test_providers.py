"""Providers are found by file name, and refuse what could not be run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from windlass.core.errors import BadInput, NotFound, Unavailable
from windlass.core.runs.provider import DoneSign, StartRequest
from windlass.providers import load


class TestFinding:
    def test_providers_are_found_by_their_files(self) -> None:
        """Every module of the package is a provider of the same name."""
        assert {"command", "scripted"} <= {each.name for each in load().all()}

    def test_an_unknown_name_is_refused_with_the_near_miss(self) -> None:
        """A typo names what was probably meant, and what there is."""
        with pytest.raises(NotFound, match="no provider scirpted") as refused:
            load().get("scirpted")

        assert (
            refused.value.hint == "Did you mean scripted? The providers are: claude, codex, command, model, scripted."
        )

    def test_a_program_that_is_not_installed_is_named(self, tmp_path: Path) -> None:
        """The refusal says what is missing and how to get it."""
        found = load(str(tmp_path))
        provider = replace(found.get("command"), program="aider", install="pipx install aider-chat")

        with pytest.raises(Unavailable, match="needs the program aider") as refused:
            found.require(provider)

        assert refused.value.hint == "pipx install aider-chat"

    def test_an_installed_program_is_fine(self) -> None:
        """What is on the PATH is not asked for."""
        found = load()

        for name in ("command", "scripted"):
            found.require(found.get(name))

    def test_a_provider_has_other_names(self) -> None:
        """An alias leads to the same provider, which is listed once."""
        found = load()

        assert found.get("claude-code") is found.get("claude")
        assert [each.name for each in found.all()].count("claude") == 1


class TestCommand:
    def test_a_command_is_given_to_the_shell_as_it_is(self) -> None:
        """Quotes, dollars and newlines reach sh untouched."""
        command = "echo \"$WINDLASS_AGENT\" 'a b'\ntrue"
        start = StartRequest(prompt_file="p", number=1, session="", options={"command": command})

        assert load().get("command").argv(start) == ("sh", "-c", command)
        assert load().get("command").claim is DoneSign.EXIT

    @pytest.mark.parametrize("command", ["", "  \n", "a\0b"])
    def test_a_command_that_cannot_run_is_refused(self, command: str) -> None:
        """Nothing is created for an empty command."""
        with pytest.raises(BadInput):
            load().get("command").check({"command": command})


class TestScripted:
    def test_a_script_is_checked_before_anything_is_created(self) -> None:
        """The file's own name is in the refusal."""
        with pytest.raises(BadInput, match=r"demo\.yaml:1:3: error: there is no step sya"):
            load().get("scripted").check({"script": "- sya: x", "script_name": "demo.yaml"})

        load().get("scripted").check({"script": "- say: x"})

    def test_every_line_is_shown_as_it_is(self) -> None:
        """The scripted provider speaks plain text."""
        assert load().get("scripted").read("hello").text == "hello"
