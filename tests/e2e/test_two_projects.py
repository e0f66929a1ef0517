"""Two projects with agents of the same name: who stands in one hears, reads and writes there, and is told otherwise."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from e2e_stage import WITHIN, Stage, stage

from patience import until

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
        for repo in (self.one, self.two):
            house.wl("init", "--yes", cwd=repo)
        self.asked = self.ask("In one?", cwd=self.one)
        until(lambda: "run.started" in {event["kind"] for event in house.events()}, "the first one's coder")

    def ask(self, question: str, *, cwd: Path) -> str:
        words = ("ask", question, "--agent-id", "coder", "--no-wait", "--json")
        return str(self.house.wl(*words, cwd=cwd).value["conversationId"])


@pytest.fixture(scope="module")
def street() -> Iterator[Street]:
    with stage(settings="[limits]\nruns = 8\n", WINDLASS_SANDBOX="off") as made:
        yield Street(made)
        made.wl("stop", "--all", "--everywhere")


def test_a_question_is_heard_where_it_was_asked(street: Street) -> None:
    """Not by the other project's agent of that name, in no view."""
    wl = street.house.wl
    assert wl("listen", "--agent-id", "coder", cwd=street.one).value["question"] == "In one?"
    assert "Nobody asked coder" in wl("listen", "--agent-id", "coder", "--timeout", "0.5s", cwd=street.two, code=7).err
    assert wl("inbox", "coder", "--json", cwd=street.two).value == []
    assert wl("peek", "--to", "coder", "--json", cwd=street.two).value == []


def test_mail_of_another_project_says_of_which(street: Street) -> None:
    """It is shown, and acknowledged, wherever its reader stands; but never as if it were this project's."""
    wl = street.house.wl
    for name, folder in (("one", street.one), ("two", street.two)):
        wl("send", f"Of {name}.", "--to", "human", cwd=folder)
    for words in (("inbox",), ("read",)):
        heads = [line for line in wl(*words, cwd=street.two).out.splitlines() if "human → human" in line]
        assert [head.endswith("of repo)") for head in heads] == [True, False], heads
    assert wl("read", "--json", cwd=street.one).value == []
    kept = wl("inbox", "--all", "--json", cwd=street.two).value
    assert [(each["message"], each["project"], each["here"]) for each in kept[-2:]] == [
        ("Of one.", "repo", False),
        ("Of two.", "shop", True),
    ]
    assert "of shop)" in wl("inbox", "--all", cwd=OUTSIDE).out


class TestWatch:
    """What happens in the project that one stands in; in all, where one says so or stands in none."""

    def said(self, street: Street, *words: str, cwd: Path, last: str) -> list[dict[str, Any]]:
        """Every event from the beginning, until one message is told."""
        program = (*street.house.program, "watch", "--since", "0", *words)
        seen = []
        with subprocess.Popen(program, cwd=cwd, env=street.house.environment, stdout=subprocess.PIPE) as watching:
            assert watching.stdout
            for line in watching.stdout:
                seen.append(json.loads(line))
                if seen[-1].get("message", {}).get("message") == last:
                    watching.kill()
                    break
        return seen

    def test_only_this_project_is_told(self, street: Street) -> None:
        """Runs, messages and receipts of the other are left out; statuses and files, too."""
        wl = street.house.wl
        wl("send", "First of one.", "--to", "human", cwd=street.one)
        wl("send", "Last of two.", "--to", "human", cwd=street.two)
        seen = self.said(street, cwd=street.two, last="Last of two.")
        assert "First of one." not in json.dumps(seen)
        assert {each["kind"].partition(".")[0] for each in seen} >= {"project", "message"}
        assert not {each["kind"] for each in seen} & {"run.started", "status.changed"}, "nobody works in this one"
        for words, folder in ((("--all", "--json"), street.two), ((), OUTSIDE)):
            everything = self.said(street, *words, cwd=folder, last="Last of two.")
            assert "First of one." in json.dumps(everything)
            assert "run.started" in {each["kind"] for each in everything}

    def test_numbers_go_on_where_nothing_is_told(self, street: Street) -> None:
        """Whoever is cut off does not begin far back. The header of the standard says where, unless `since` does."""
        wl = street.house.wl
        wl("send", "The end of two.", "--to", "human", cwd=street.two)
        wl("send", "The end of one.", "--to", "human", cwd=street.one)
        end = self.said(street, cwd=street.two, last="The end of two.")[-1]["seq"]
        last = self.said(street, cwd=street.one, last="The end of one.")[-1]["seq"]
        begun, seen = stream(street.house, f"/events?since={end}&path={quote(str(street.two))}", until=last)
        assert begun == end and b"The end of one." not in seen
        assert stream(street.house, "/events", last=end)[0] == end
        assert stream(street.house, f"/events?since={last}", last=end)[0] == last


def stream(house: Stage, path: str, *, until: int = 0, last: int | None = None) -> tuple[int, bytes]:
    """The first number of a stream, and all that it has said when it gets to another."""
    connection = http.client.HTTPConnection("windlass")
    seen = b""
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(WITHIN)
        door.connect(str(house.state / "daemon.sock"))
        connection.sock = door
        connection.request("GET", path, headers={"Last-Event-ID": str(last)} if last else {})
        with connection.getresponse() as answer:
            numbers: list[int] = []
            while not numbers or numbers[-1] < until:
                seen += (line := answer.readline())
                numbers += [int(line[4:])] if line.startswith(b"id: ") else []
    return numbers[0], seen


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


def test_stopping_all_means_the_project_of_the_folder(street: Street) -> None:
    """Another project's agents go on, which is said; outside every project all are meant."""
    wl = street.house.wl
    stopped = wl("stop", "--all", "--json", cwd=street.two).value
    assert (stopped["stopped"], len(stopped["elsewhere"])) == ([], 1)
    assert "Nothing was running in shop." in wl("stop", "--all", cwd=street.two).out
    assert wl("list", "--json").value[0]["status"] == "running"
    assert wl("stop", "--all", "--json", cwd=OUTSIDE).value["stopped"] == stopped["elsewhere"]
