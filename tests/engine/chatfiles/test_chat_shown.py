"""How far a chat file was shown: it goes on for those whom nothing concerns, too."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from stage import play
from talk_room import Room

from windlass.core.nouns.project import Project
from windlass.engine.chatfiles import files
from windlass.engine.chatfiles.files import ChatFile
from windlass.engine.messages.log import place


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    return Room(repo, tmp_path / "home")


def test_a_quiet_agent_is_not_shown_everything_anew(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked through once, and was for others, is behind it, also after a restart."""
    monkeypatch.setattr(files, "AT_ONCE", 5)

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "bob"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        for number in range(12):
            sent = await room.send(to=("bob",), body=f"Only for bob {number}.")
            await room.move()
        project = await room.store.read(lambda store: store.find(Project, room.project))
        assert project is not None
        alice = ChatFile(project, await room.agent("alice"), "")
        read, _ = await room.store.read(partial(files.load, alice))
        assert place(sent.id) - read.shown <= 5
        top = Path(room.engine.ports.git.worktree_path(project, await room.agent("alice")))
        later = await room.send(to=("alice",), body="And this is for you.")
        await room.restart()
        await room.move()
        shown = (top / ".windlass/chat.md").read_text()
        assert shown.count("And this is for you.") == 1 and "Only for bob" not in shown
        assert place(later.id) > read.shown

    play(story)


def test_what_is_shown_can_not_steer_a_terminal(room: Room) -> None:
    """People look at these files with programs that obey what stands in them; the log keeps every character."""

    async def story() -> None:
        await room.begin("alice")
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        sent = await room.send(to=("alice",), body="a\x1b[2Jb\x07\r\nc\u202ed")
        await room.move()
        project = await room.store.read(lambda store: store.find(Project, room.project))
        assert project is not None and sent.body == "a\x1b[2Jb\x07\r\nc\u202ed"
        top = Path(room.engine.ports.git.worktree_path(project, await room.agent("alice")))
        shown = (top / ".windlass/chat.md").read_bytes().decode()
        assert "[human-to-alice]: a\\x1b[2Jb\\x07\n    c\\u202ed\n" in shown

    play(story)
