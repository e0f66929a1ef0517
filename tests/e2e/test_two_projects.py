"""Two projects with agents of the same name: who stands in one hears, reads and writes there, and is told otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_stage import Stage, stage, until

PLAYER = """
[providers.player]
summary = "waits"
command = ["sh", "{player}"]
prompt = "stdin"
"""
AGENT = "---\nname: coder\nrole: Waits\nprovider: player\n---\nYou are coder.\n"
OUTSIDE = Path("/")


class Street:
    """A home, and two repositories that each define a coder; only the first one's has worked."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        self.one, self.two = house.repo, house.folder / "shop"
        player = house.flag("player.sh")
        player.write_text(f"{house.waits_for(house.flag('go'))}\n")
        with (house.state / "config.toml").open("a") as config:
            config.write(PLAYER.format(player=player))
        house.commit({".windlass/agents/coder.md": AGENT})
        house.git("clone", "-q", str(self.one), str(self.two), cwd=house.folder)
        for each in (self.one, self.two):
            house.wl("init", "--yes", cwd=each)
        self.asked = self.ask("In one?", cwd=self.one)
        until(lambda: house.wl("list", "--json").value, "the first one's coder")

    def ask(self, question: str, *, cwd: Path) -> str:
        words = ("ask", question, "--agent-id", "coder", "--no-wait", "--json")
        return str(self.house.wl(*words, cwd=cwd).value["conversationId"])


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    with stage(settings="[limits]\nruns = 8\n", WINDLASS_SANDBOX="off") as made:
        yield Street(made)
        made.wl("stop", "--all")


def test_a_question_is_heard_where_it_was_asked(street: Street) -> None:
    """Not by the other project's agent of that name, in no view."""
    wl = street.house.wl
    assert wl("listen", "--agent-id", "coder", cwd=street.one).value["question"] == "In one?"
    assert "Nobody asked coder" in wl("listen", "--agent-id", "coder", "--timeout", "0.5s", cwd=street.two, code=7).err
    assert wl("inbox", "coder", "--json", cwd=street.two).value == []
    assert wl("peek", "--to", "coder", "--json", cwd=street.two).value == []


class TestOutsideEveryProject:
    """One may still name an agent of one, and is told whose it is."""

    def test_speaking_to_an_agent_says_of_which_project_it_is(self, street: Street) -> None:
        """By `send` and `ask` alike."""
        wl, told = street.house.wl, f"coder is an agent of repo, in {street.one}."
        assert told in wl("send", "Hello.", "--to", "coder", cwd=OUTSIDE).err
        assert told in wl("ask", "Why?", "--agent-id", "coder", "--no-wait", cwd=OUTSIDE).err
        task = street.house.agent("coder")["task"]
        assert (
            f"coder is an agent of repo, in {street.one}."
            in wl("ask", "Why?", "--task-id", task, "--no-wait", cwd=OUTSIDE).err
        )
        assert wl("send", "Hello.", "--to", "coder", cwd=street.one).err == ""

    @pytest.mark.parametrize(
        "words", [("send", "Hello."), ("send", "Hello.", "--to", "codr"), ("ask", "Why?", "--agent-id", "codr")]
    )
    def test_nobody_known_is_no_project(self, street: Street, words: tuple[str, ...]) -> None:
        """And nothing is said."""
        assert "which project is meant" in street.house.wl(*words, cwd=OUTSIDE, code=2).err

    @pytest.mark.parametrize(
        "words",
        [
            ("peek",),
            ("context", "peek"),
            ("context", "wait"),
            ("context", "document", "read"),
            ("context", "document", "list"),
            ("context", "document", "append", "x"),
        ],
        ids=" ".join,
    )
    def test_what_needs_a_project_says_so(self, street: Street, words: tuple[str, ...]) -> None:
        """It does not look empty."""
        ended = street.house.wl(*words, cwd=OUTSIDE, code=3)
        assert "This folder belongs to no project." in ended.err
