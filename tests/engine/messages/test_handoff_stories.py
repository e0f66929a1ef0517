"""Whom an agent may hand work to: its file says so, whatever way it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import play
from talk_room import AGENT, Room

from windlass.core.errors import NotAllowed
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Project


class ChatRoom(Room):
    """A room whose agents write into the chat of their worktrees."""

    async def meet(self, *names: str) -> None:
        await self.begin(*names, more="handoff_to: [bob]\n")
        (self.repo / ".windlass/.gitignore").write_text("*\n")
        await self.send(to=("alice",), body="Begin.")
        await self.pass_time()

    async def pass_time(self) -> None:
        for _ in range(4):
            await self.move()
            self.clock.time += 1

    async def write(self, name: str, line: str) -> None:
        project = await self.store.read(lambda store: store.find(Project, self.project))
        assert project is not None
        top = self.engine.ports.git.worktree_path(project, await self.agent(name))
        with (Path(top) / ".windlass/chat.md").open("a", encoding="utf-8") as file:
            file.write(line)
        await self.pass_time()

    async def said(self, sender: str) -> list[Message]:
        said = await self.store.read(lambda store: store.said(self.project, limit=1000))
        return [each for each in said if each.sender == sender]


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> ChatRoom:
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    return ChatRoom(repo, tmp_path / "home")


class TestChat:
    def test_a_line_to_one_whom_the_file_does_not_allow_is_answered(self, room: ChatRoom) -> None:
        """Nobody is started by it; one that is allowed is handed the work."""

        async def story() -> None:
            await room.meet("alice", "bob", "carol")
            await room.write("alice", "[alice-to-carol]: take it\n[alice-to-bob] @ [carol]: or you\n")
            assert await room.said("alice") == []
            assert await room.store.read(lambda store: store.runs_of("carol")) == []
            notes = [each for each in await room.said("system") if "chat.md" in each.body]
            told = "\n".join(note.body for note in notes)
            assert {note.to for note in notes} == {("alice",)} and "only a person adds others to handoff_to in" in told
            assert told.count("was not sent: alice may not hand work to carol: its file allows bob.") == 2
            await room.write("alice", "[alice-to-bob]: then you\n")
            assert [each.to for each in await room.said("alice")] == [("bob",)]
            assert (await room.run_of("bob")).live

        play(story)

    def test_an_answer_is_no_hand_off(self, room: ChatRoom) -> None:
        """Nor is a question; nor a word to a person, or to everyone, who start nobody."""

        async def story() -> None:
            await room.meet("alice", "bob", "carol")
            await room.send(to=("carol",), body="Begin.")
            await room.pass_time()
            await room.write("carol", "[carol-to-human]: hello\n[carol-to-all]: hello all\n")
            await room.ask(await room.speaker("carol"), "Is it done?", agent="alice")
            await room.write("alice", "[alice-to-carol]: it is\n")
            assert [each.body for each in await room.said("alice")] == ["it is"]
            assert [each.body for each in await room.said("carol")] == ["hello", "hello all", "Is it done?"]

        play(story)


def test_one_in_an_instance_is_allowed_by_its_name(room: ChatRoom) -> None:
    """A file names agents, not where they work."""

    async def story() -> None:
        await room.meet("alice", "bob", "carol")
        await room.send(to=("bob@pr-7",), body="Begin.")
        me = await room.speaker("alice")
        sent = await room.send(me, to=("bob@pr-7",), kind=Kind.HANDOFF, body="Over to you.")
        assert sent.to == ("bob@pr-7",)
        with pytest.raises(NotAllowed, match="may not hand work to carol@pr-7"):
            await room.send(me, to=("carol@pr-7",), kind=Kind.HANDOFF, body="Over to you.")

    play(story)


@pytest.mark.parametrize("named", [True, False])
def test_whoever_is_called_is_handed_work(room: ChatRoom, *, named: bool) -> None:
    """By name or by a mention: one whom the file does not allow is refused; one who is only spoken of is not called."""

    async def story() -> None:
        await room.meet("alice", "bob", "carol")
        me = await room.speaker("alice")
        with pytest.raises(NotAllowed, match="alice may not hand work to carol: its file allows bob") as refused:
            await (room.send(me, to=("carol",), body="Test it.") if named else room.send(me, body="@carol test it."))
        assert "only a person adds others to handoff_to in .windlass/agents/alice.md" in refused.value.hint
        assert (await room.send(me, body="@bob test it, as @carol said.")).to == ("bob",)
        assert (await room.send(me, everyone=True, body="Done.")).broadcast

    play(story)


def test_an_agent_is_told_to_whom_it_may_hand_work(room: ChatRoom) -> None:
    """In its prompt, with how to do it; one whose file names nobody may hand it to anyone."""

    async def story() -> None:
        await room.meet("alice", "bob")
        told = room.prompt_of(await room.run_of("alice"))
        assert "- You call on others to work, or hand work on, only to: bob." in told
        assert 'windlass send "…" --to NAME --done "…" --file F --why "…"' in told
        (room.repo / ".windlass/agents/bob.md").write_text(AGENT.format(name="bob", more=""))
        await room.send(to=("bob",), body="Begin.")
        await room.pass_time()
        assert "only to:" not in room.prompt_of(await room.run_of("bob"))

    play(story)
