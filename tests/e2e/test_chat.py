"""chat.md with a real daemon and real processes: agents and a person talk by writing lines into files."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from e2e_stage import Stage, lines, stage

from patience import until

CHAT = ".windlass/chat.md"


@pytest.fixture
def house() -> Iterator[Stage]:
    with stage() as house:
        house.wl("init", "--yes", "--checks", "true")
        yield house
        house.wl("stop", "--all")


def hears(words: str) -> str:
    """A shell command that ends when an agent's own file has these words."""
    return f"until grep -qF '{words}' {CHAT} 2>/dev/null; do sleep 0.02; done"


def says(to: str, text: str) -> str:
    """A shell command by which an agent says something."""
    return f'echo "[$WINDLASS_AGENT-to-{to}]: {text}" >> {CHAT}'


def text(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def add(file: Path, line: str) -> None:
    with file.open("a") as open_file:
        open_file.write(line)


def is_said(house: Stage, words: str) -> bool:
    return words in house.wl("peek", "--limit", "10000").out


def test_agents_and_a_person_talk_by_files_alone(house: Stage) -> None:
    """Each hears what is for it, and the project's file shows all of it."""
    own = house.repo / CHAT
    two = house.work(
        "Two", lines(hears("please look"), says("human", "I look"), "echo b > b && git add b", "git commit -qm b")
    )
    one = house.work(
        "One", lines(says(two, "please look"), hears("thanks, both"), "echo a > a && git add a", "git commit -qm a")
    )
    until(lambda: "I look" in text(own), "the answer")
    add(own, f"[human-to-{one}] @ [{two}]: thanks, both\n")
    until(lambda: len([each for each in house.queue() if each["state"] == "landed"]) == 2, "both to land")

    shown = [line for line in own.read_text().splitlines() if "look" in line]
    # whoever has mail begins again, and so these commands say it again
    assert [*dict.fromkeys(shown)] == [f"[{one}-to-{two}]: please look", f"[{two}-to-human]: I look"]


def test_the_last_words_are_heard_and_the_worktree_goes(house: Stage) -> None:
    """A chat file is no work that would have to be kept."""
    name = house.work("Bye", lines("echo a > a && git add a", "git commit -qm a", says("human", "bye")))
    until(lambda: "bye" in text(house.repo / CHAT), "its last words")
    until(lambda: not [*(house.state / "worktrees").glob(f"*/{name}")], "its worktree to go")


def test_one_that_never_stops_writing_holds_up_nobody_else(house: Stage) -> None:
    """Each file has its turn: others are heard meanwhile, by their files and by commands."""
    stop, speak = house.flag("stop"), house.flag("speak")
    noise = f"for n in $(seq 100); do {says('human', 'noise $n')}; done"
    house.work("Flood", f"while [ ! -e {stop} ]; do {noise}; sleep 0.1; done")
    words = says("human", "HELP by file"), "windlass send 'HELP by command' --to human"
    house.work("Speak", lines(house.waits_for(speak), *words, house.waits_for(stop)))
    until(lambda: "noise 100" in text(house.repo / CHAT), "the noise")
    speak.touch()
    try:
        for each in ("HELP by file", "HELP by command"):
            until(partial(is_said, house, each), each)
    finally:
        stop.touch()


def test_lines_are_heard_after_a_crash(house: Stage) -> None:
    """What was written while there was no daemon is sent by the next one, and nothing twice."""
    name = house.work("Wait", lines(hears("three"), "echo a > a && git add a", "git commit -qm a"))
    own = house.repo / CHAT
    add(own, f"[human-to-{name}]: one\n")
    until(partial(is_said, house, "one"), "the first line")
    os.kill(house.daemon, signal.SIGKILL)
    add(own, f"[human-to-{name}]: two\n[human-to-{name}]: three\n")
    house.wl("list")
    until(lambda: [each for each in house.queue() if each["state"] == "landed"], "it to land")
    said = [line for line in own.read_text().splitlines() if line.startswith("[human-to-")]
    assert said == [f"[human-to-{name}]: {each}" for each in ("one", "two", "three")]
