"""Texts that would steer a terminal or mislead the eye: shown harmless wherever a person looks."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_stage import Stage, stage

import forked

pytestmark = pytest.mark.xdist_group("bad text")

CLIPBOARD, CLEAR, LINK = "\x1b]52;c;cm0=\x07", "\x1b[2J\x1b[H", "\x1b]8;;file:///etc\x1b\\here\x1b]8;;\x1b\\"
BIDI, C1, BACK = "\N{RIGHT-TO-LEFT OVERRIDE}txt.exe\N{POP DIRECTIONAL ISOLATE}", "\x9b31m", "safe\x08\x08\x08\x08evil"
EVIL = f"{CLEAR}{CLIPBOARD}{LINK}{BIDI}{C1}{BACK}"
HARMFUL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What no terminal may be sent, apart from tab and the ends of lines."""
WAITING = r"(\r\x1b\[2KWaiting for the daemon, \d+ s)+\r\x1b\[2K"
"""What a command shows and takes back while a slow machine's daemon has not answered yet."""


@dataclass(frozen=True)
class Story:
    """Whatever an agent can write has such text in it: titles, output, files, commits, checks, reports, questions."""

    house: Stage
    landed: str
    asked: str
    failed: str
    red: str


def script(*steps: object) -> str:
    return "".join(f"- {json.dumps(step)}\n" for step in steps)


@pytest.fixture(scope="module")
def story() -> Iterator[Story]:
    loud = "[limits]\nreminders = 0\nretries = 0\nreturns = 0\n"
    with stage(checks="cat *.evil 2>/dev/null; ! test -e bad", settings=loud) as house:
        (house.repo / ".windlass").mkdir()
        (house.repo / ".windlass/config.toml").write_text(f"[project]\nname = {json.dumps('p' + EVIL[:40])}\n")
        house.git("add", "-A")
        house.git("commit", "-qm", "Settings")
        name = f"x{CLEAR}{BIDI}.evil"
        writes = {"write": {name: EVIL + "\n"}}
        said = {"say": EVIL}
        commit = {"commit": f"C{EVIL}"}
        evil = f"Title {EVIL}"
        landed = house.play(evil, script(said, writes, commit, {"done": f"Result {EVIL}"}))
        house.event("agent.retired", landed)
        asked = house.play(evil, script(said, {"ask": f"May I {EVIL}?"}))
        house.event("run.asked")
        failed = house.play(evil, script(said, writes, {"error": f"Error {EVIL}"}))
        house.event("task.failed")
        red = house.play(evil, script(writes, {"write": {"bad": EVIL}}, commit, {"done": EVIL}))
        house.event("change.held")
        yield Story(house, landed, asked, failed, red)


@pytest.mark.parametrize(
    "words",
    [
        *("list --all", "queue --all", "receipt c1", "rescue list --all", "doctor", "config get", "daemon status"),
        *("show LANDED", "show ASKED", "show FAILED", "show RED", "logs FAILED", "diff FAILED", "diff RED"),
        *("rescue show FAILED/r3", "daemon logs", "doctor --check"),
    ],
)
def test_a_terminal_is_sent_nothing_that_it_would_obey(story: Story, words: str) -> None:
    """On a terminal each command shows what was written as text, and obeys none of it."""
    shown = on_terminal(story.house, *typed(story, words))
    assert HARMFUL.search(shown) is None, ascii(shown)
    assert len(shown) > 20


@pytest.mark.parametrize("words", ["list --all", "queue --all", "show LANDED", "show ASKED", "receipt c1"])
def test_json_is_plain_ascii_and_says_the_same(story: Story, words: str) -> None:
    """Programs get the very text, in escapes that no terminal knows."""
    raw = story.house.raw(*typed(story, words), "--json").decode("ascii")
    assert HARMFUL.search(raw) is None
    assert json.dumps(CLEAR)[1:-1] in json.dumps(json.loads(raw))


def test_what_is_watched_is_plain_ascii(story: Story) -> None:
    """Every event of the whole story, as `watch` prints it."""
    process = story.house.begin("watch", "--since", "0")
    assert process.stdout
    seen = b""
    while b'"change.held"' not in seen:
        seen += process.stdout.readline()
    process.kill()
    assert HARMFUL.search(seen.decode("ascii")) is None
    assert b"Title" in seen


def test_an_error_repeats_what_was_typed_harmlessly(story: Story) -> None:
    """Whatever stands in an argument, the complaint about it obeys nothing."""
    for words in (("show", EVIL), ("work", "x", "--provider", EVIL), ("config", "set", EVIL, "1"), ("receipt", EVIL)):
        said = on_terminal(story.house, *words)
        assert HARMFUL.search(said) is None, ascii(said)
    place = story.house.folder / f"no repository {CLEAR}{BIDI}"
    place.mkdir()
    said = on_terminal(story.house, "work", "Fix it", "--command", "true", cwd=place)
    assert "is not in a git repository" in said
    assert HARMFUL.search(said) is None, ascii(said)


def test_main_has_the_very_files_and_messages(story: Story) -> None:
    """Nothing is changed on the way to main: only what is shown is made harmless."""
    [file] = story.house.repo.glob("*.evil")
    assert file.read_bytes().decode() == EVIL + "\n"


def typed(story: Story, words: str) -> list[str]:
    """A command with the names of this story's agents."""
    names = {each.upper(): getattr(story, each) for each in ("landed", "asked", "failed", "red")}
    return [re.sub("[A-Z]{3,}", lambda found: names[found[0]], part) for part in words.split()]


def on_terminal(house: Stage, *words: str, cwd: Path | None = None) -> str:
    """What one command shows on a terminal, errors and all, however it ends."""
    ours, theirs = pty.openpty()
    environment = house.environment | {"TERM": "xterm", "NO_COLOR": "1"}
    command = (*forked.WINDLASS, *words)
    with forked.begin(command, cwd=cwd or house.repo, env=environment, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        shown = b""
        with suppress(OSError):  # how Linux says that the other side has closed
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    return re.sub(WAITING, "", shown.decode()).replace("\r\n", "\n")
