"""Cases that earlier systems got wrong, as stories: who sees what, what is kept, and what is never mixed up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from stage import play
from talk_room import Room

from windlass.core.nouns.message import Receipt
from windlass.core.nouns.project import Project


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    return Room(repo, tmp_path / "home")


async def meet(room: Room, *names: str) -> None:
    """All at work, in a project that shows its files."""
    await room.begin(*names)
    (room.repo / ".windlass/.gitignore").write_text("*\n")
    room.limit(runs=10)
    for name in names:
        await room.send(to=(name,), body="Begin.")
    await pass_time(room)


async def pass_time(room: Room) -> None:
    for _ in range(4):
        await room.move()
        room.clock.time += 1


async def bodies(room: Room, reader: str) -> list[str]:
    return [each.message.body for each in await room.engine.talk.inbox(reader, everything=True)]


class TestMentions:
    def test_a_diff_that_names_someone_wakes_nobody(self, room: Room) -> None:
        """Nor does any other text that was only put in: the one who is addressed is woken alone."""

        async def story() -> None:
            await room.begin("alice", "bob")
            diff = "```diff\n-# ask @bob\n+# ask @alice and @bob\n```\n> @bob wrote this\n`@bob` and bob@bob.com"
            said = await room.send(body=f"@alice please review this.\n\n{diff}")
            await room.move()
            assert said.to == ("alice",)
            assert (await room.run_of("alice")).live
            assert await room.store.read(lambda store: store.runs_of("bob")) == []

        play(story)


class TestVisibility:
    def test_a_direct_message_is_in_no_view_of_a_third(self, room: Room) -> None:
        """Neither peek, inbox, chat.md, channel.md nor prompt; its reader has it once, its sender still sees it."""

        async def story() -> None:
            await meet(room, "alice", "bob", "carol")
            secret = "Between the two of us."
            sent = await room.send(await room.speaker("alice"), to=("bob",), body=secret)
            await room.send(body="@carol a word to you.")
            await room.send(body="For everyone to read.")
            await pass_time(room)
            assert (await bodies(room, "bob")).count(secret) == 1
            talk = room.engine.talk
            seen = {name: await talk.peek(await room.speaker(name), room.project) for name in ("alice", "bob", "carol")}
            assert [sent in seen[name] for name in ("alice", "bob", "carol")] == [True, True, False]
            assert secret not in await bodies(room, "carol")
            assert [secret in await file(room, name) for name in ("alice", "bob", "carol")] == [True, True, False]
            page = (room.repo / ".windlass/context/main/channel.md").read_text()
            assert "For everyone to read." in page and secret not in page
            for name in ("bob", "carol"):
                await room.signal(name)
                await room.exit(name)
            await pass_time(room)
            prompts = {name: room.prompt_of(await room.run_of(name)) for name in ("bob", "carol")}
            assert secret in prompts["bob"] and secret not in prompts["carol"]

        play(story)

    def test_what_the_system_notes_and_runs_print_is_in_no_inbox_of_an_agent(self, room: Room) -> None:
        """Reports go to people, output to the run: an agent's mail is what someone said to it."""

        async def story() -> None:
            await meet(room, "alice", "bob")
            room.processes.say((await room.run_of("alice")).id, b"debug: @bob look at this\n")
            await room.signal("alice", '{"status": "error", "error": "@bob broke it"}')
            await room.exit("alice")
            await pass_time(room)
            for name in ("alice", "bob"):
                assert await bodies(room, name) == ["Begin."]

        play(story)


async def file(room: Room, name: str) -> str:
    """The chat file of an agent."""
    project = await room.store.read(lambda store: store.find(Project, room.project))
    assert project is not None
    top = Path(room.engine.ports.git.worktree_path(project, await room.agent(name)))
    chat = top / ".windlass/chat.md"
    return chat.read_text() if chat.exists() else ""


class TestChannel:
    @pytest.mark.parametrize(
        "body",
        ["one\n\n  two\n", "\ttab\r\nand return", "### 10:00:00 [system]\nWorkflow started", "ü\u2028\x1b[2J\0 end"],
    )
    def test_a_text_of_many_lines_reads_back_as_it_was(self, room: Room, body: str) -> None:
        """As one entry, byte by byte."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body=body)
            (seen,) = await room.engine.talk.peek(room.person, room.project)
            assert seen.body == body
            assert await bodies(room, "alice") == [body]

        play(story)

    def test_fifty_at_once_are_fifty_entries(self, room: Room) -> None:
        """Each with an id of its own, and none lost."""

        async def story() -> None:
            await room.begin("alice")
            sent = await asyncio.gather(*(room.send(to=("alice",), body=f"Word {each}.") for each in range(50)))
            assert len({each.id for each in sent}) == 50
            assert sorted(await bodies(room, "alice")) == sorted(f"Word {each}." for each in range(50))

        play(story)

    def test_two_who_acknowledge_at_once_both_have(self, room: Room) -> None:
        """Neither undoes the other's."""

        async def story() -> None:
            await meet(room, "alice", "bob")
            sent = [await room.send(to=("alice", "bob"), body=f"Word {each}.") for each in range(20)]
            readers = [await room.speaker(name) for name in ("alice", "bob")]
            await asyncio.gather(*(room.engine.talk.ack(who, each.id) for each in sent for who in readers))
            for each in sent:
                assert await room.receipts(each) == {"alice": ("acked", ""), "bob": ("acked", "")}

        play(story)

    def test_what_ends_in_one_instance_leaves_the_other(self, room: Room) -> None:
        """Its messages, its documents, and who works there."""

        async def story() -> None:
            await room.begin("coder")
            talk, pages = room.engine.talk, room.engine.documents
            for name in ("one", "two"):
                await room.send(to=(f"coder@{name}",), body=f"Begin {name}.")
                await pages.write(room.person, room.project, f"Notes of {name}.", instance=name)
            await room.move()
            await room.engine.runs.stop("coder@one", "stopped by hand")
            await room.move()
            assert not (await room.run_of("coder@one")).live and (await room.run_of("coder@two")).live
            assert (await pages.read(room.project, instance="two")).body == "Notes of two."
            said = await talk.peek(await room.speaker("coder@two"), room.project)
            assert [each.body for each in said] == ["Begin two."]

        play(story)

    def test_acknowledging_up_to_the_second_of_three_leaves_one(self, room: Room) -> None:
        """All that came before it is dealt with, too; peeking deals with nothing."""

        async def story() -> None:
            await meet(room, "alice")
            me = await room.speaker("alice")
            sent = [await room.send(me, to=("human",), body=f"Report {each}.") for each in range(3)]
            await room.engine.talk.peek(room.person, room.project)
            acked = await room.engine.talk.ack(room.person, sent[1].id, before=True)
            assert [(each.message, each.receipt) for each in acked] == [
                (sent[1].id, Receipt.ACKED),
                (sent[0].id, Receipt.ACKED),
            ]
            assert [each.message.id for each in await room.engine.talk.inbox("human")] == [sent[2].id]

        play(story)
