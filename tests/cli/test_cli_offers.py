"""A shell offers only names that the command takes when Tab is pressed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon
from typing_room import Keyboard, in_a_repository

LETTER = {"id": "m12", "channel": "main", "message": "Look."}


def agent(name: str, instance: str = "") -> dict[str, Any]:
    return {"name": name, "instance": instance, "project": "web shop", "task_title": "Fix it"}


@pytest.fixture
def keyboard(tmp_path: Path) -> Keyboard:
    return in_a_repository(tmp_path)


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("GET /agents", {"items": [agent("swift-otter"), agent("replier", "default")]})
        fake.teach("GET /projects/agents", {"agents": [{"name": "coder", "role": "Writes"}], "problems": []})
        fake.teach("GET /inbox", {"items": [LETTER, LETTER, LETTER | {"id": "m13"}]})
        fake.teach("GET /messages", {"items": [LETTER, LETTER | {"id": "m14", "channel": "task/t3"}]})
        yield fake


def completed(keyboard: Keyboard, words: str) -> list[str]:
    """The names that a shell offers for the last word."""
    count = str(len(words.split(" ")) - 1)
    asked = {"_WINDLASS_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": count}
    ended = keyboard.type(**asked)
    assert ended.stderr == ""
    return [part.removeprefix("plain,") for part in ended.stdout.split()]


def test_readers_are_offered_by_the_names_that_work(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Those defined, those at work in this project, their instances, and the person."""
    every = ["coder", "swift-otter", "replier@default", "@default", "human"]
    assert completed(keyboard, "windlass send hello --to ") == every
    assert completed(keyboard, "windlass send hello --to @") == ["@default"]
    assert completed(keyboard, "windlass send hello --to replier@d") == ["replier@default"]
    assert completed(keyboard, "windlass ask --agent-id ") == ["coder", "swift-otter", "replier@default"]
    assert any("path=" in query for _, path, query, _ in daemon.asked if path == "/agents"), "of this project"


def test_a_name_that_only_tells_projects_apart_is_short(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Where it is read in its own project; commands that know no project take the whole of it."""
    daemon.teach("GET /agents", {"items": [agent("coder", "web-shop")]})
    assert completed(keyboard, "windlass send hello --to ") == ["coder", "human"]
    assert completed(keyboard, "windlass show ") == ["coder@web-shop"]


def test_only_those_at_work_can_be_stopped(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Not the person, and nobody who is only defined."""
    assert completed(keyboard, "windlass stop ") == ["swift-otter", "replier@default", "@default"]
    assert completed(keyboard, "windlass stop @") == ["@default"]


def test_each_thing_is_offered_once(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Messages, agents and channels: none twice, and none that stands there already."""
    assert completed(keyboard, "windlass ack ") == ["m12", "m13"]
    assert completed(keyboard, "windlass ack m12 m") == ["m13"]
    assert completed(keyboard, "windlass peek --since m") == ["m12", "m14"]
    assert completed(keyboard, "windlass send hello --reply-to m14") == ["m14"]
    assert completed(keyboard, "windlass show ") == ["swift-otter", "replier@default"]
    assert completed(keyboard, "windlass send hello --to coder --to s") == ["swift-otter"]
    assert completed(keyboard, "windlass peek --channel ") == ["main", "@default", "task/t3"]


def test_without_a_daemon_agents_files_are_read(keyboard: Keyboard, tmp_path: Path) -> None:
    """From wherever one stands in the repository; no daemon is started, and nothing is said about bad files."""
    folder = tmp_path / ".windlass/agents"
    folder.mkdir(parents=True)
    (folder / "coder.md").write_text("---\nname: coder\nrole: Writes\n---\nYou write.\n")
    (folder / "bad.md").write_text("---\nname: [\n")
    keyboard.folder = folder
    assert completed(keyboard, "windlass send hello --to ") == ["coder", "human"]
    assert completed(keyboard, "windlass ask --agent-id c") == ["coder"]
    assert not keyboard.home.exists()


def test_a_shell_takes_an_address_for_one_word(keyboard: Keyboard) -> None:
    """Bash breaks words at an @ unless it is told otherwise."""
    assert 'COMP_WORDBREAKS="${COMP_WORDBREAKS//@/}"' in keyboard.type("completion", "bash").stdout
