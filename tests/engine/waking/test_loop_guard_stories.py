"""A chain of agents that is stopped says why, and what lets it go on; the person is told once, and can let it."""

from __future__ import annotations

from pathlib import Path

import pytest
from stage import play
from talk_room import Room

from windlass.core.nouns.message import Kind, Message

HOPS = "4 messages went from agent to agent without a person"
CIRCLE = "alice, bob, carol answer one another in a circle"


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


def remedy(*names: str) -> str:
    return f'`windlass send "Go on." {" ".join(f"--to {name}" for name in names)}`'


async def pass_on(room: Room, names: str, *, times: int) -> Message:
    """Each of these tells the next one something and ends, in turn; returns what was said last."""
    order = names.split()
    for turn in range(times):
        await room.move()
        room.clock.time += 1
        me, other = order[turn % len(order)], order[(turn + 1) % len(order)]
        said = await room.send(await room.speaker(me), to=(other,), body=f"Word {turn}.")
        await room.signal(me)
        await room.exit(me)
    await room.move()
    room.clock.time += 1
    return said


async def told(room: Room) -> list[Message]:
    """What the system has told the person."""
    items = await room.engine.talk.inbox("human")
    return [item.message for item in items if item.message.sender == "system"]


class TestBrakes:
    def test_a_chain_that_is_too_long_is_told_once_and_goes_on_by_the_command_that_is_shown(self, room: Room) -> None:
        """In the reason, in the evidence and in the person's inbox; not at every tick, nor after a restart."""

        async def story() -> None:
            await room.begin("alice", "bob")
            room.limit(hops=3)
            await room.send(to=("alice",), body="Begin.")
            said = await pass_on(room, "alice bob", times=4)
            reason = f"{HOPS}; a person's {remedy('alice')} lets it go on"
            assert (await room.receipts(said))["alice"] == ("pending", reason)
            evidence = (await room.engine.status.page("alice")).view.evidence
            assert evidence.endswith(f"; mail waits: {reason}")
            (report,) = await told(room)
            assert report.body == f"{said.id} from bob does not wake alice: {HOPS}. {remedy('alice')} lets it go on."
            assert (report.kind, report.to, report.direct) == (Kind.REPORT, ("human",), True)
            await room.restart()
            await room.move()
            assert await told(room) == [report] and not (await room.run_of("alice")).live
            await room.send(to=("alice",), body="Go on.")
            await room.move()
            run = await room.run_of("alice")
            assert run.live and said.body in room.prompt_of(run)
            assert (await room.send(await room.speaker("alice"), to=("bob",), body="I go on.")).hops == 1
            await room.move()
            assert (await room.run_of("bob")).live
            assert await told(room) == [report]

        play(story)

    def test_a_circle_is_told_and_goes_on(self, room: Room) -> None:
        """And if they go round again after a person spoke, the person is told again."""

        async def story() -> None:
            await room.begin("alice", "bob", "carol")
            room.limit(hops=0, wakes=0)
            for number in (1, 2):
                await room.send(to=("alice",), body="Go on.")
                said = await pass_on(room, "alice bob carol", times=9)
                reason = f"{CIRCLE}; a person's {remedy('alice')} lets it go on"
                assert (await room.receipts(said))["alice"] == ("pending", reason)
                reports = await told(room)
                assert len(reports) == number
                expected = f"{said.id} from carol does not wake alice: {CIRCLE}. {remedy('alice')} lets it go on."
                assert reports[-1].body == expected
            await room.send(to=("alice",), body="Go on.")
            await room.move()
            assert (await room.run_of("alice")).live

        play(story)

    def test_one_message_to_two_is_told_once_with_both(self, room: Room) -> None:
        """Nor is the person told again of what is said to them while they wait."""

        async def story() -> None:
            await room.begin("alice", "bob", "carol")
            room.limit(hops=1)
            await room.send(to=("alice",), body="Begin.")
            await room.move()
            await room.send(await room.speaker("alice"), to=("bob",), body="Tell them.")
            await room.move()
            me = await room.speaker("bob")
            said = await room.send(me, to=("alice", "carol"), body="Hear!")
            await room.signal("alice")
            await room.exit("alice")
            await room.move()
            for number in range(2):
                await room.send(me, to=("carol",), body=f"Hear {number}!")
                await room.move()
            (report,) = await told(room)
            assert report.body == (
                f"{said.id} from bob does not wake alice, carol: 2 messages went from agent to agent without a person. "
                f"{remedy('alice', 'carol')} lets them go on."
            )

        play(story)

    def test_one_that_is_woken_too_often_goes_on_by_itself(self, room: Room) -> None:
        """The reason says so, and nobody need be told."""

        async def story() -> None:
            await room.begin("alice", "bob")
            room.limit(wakes=1)
            await room.send(to=("bob",), body="Begin.")
            await room.move()
            for number in range(2):
                said = await room.send(await room.speaker("bob"), to=("alice",), body=f"Word {number}.")
                await room.move()
                if not number:
                    await room.signal("alice")
                    await room.exit("alice")
                    await room.move()
            reason = "it was woken 1 times within a minute; it goes on by itself within another minute"
            assert (await room.receipts(said))["alice"] == ("pending", reason)
            assert await told(room) == []
            room.clock.time += 60
            await room.move()
            assert (await room.run_of("alice")).live

        play(story)

    def test_a_brake_wakes_nobody(self, room: Room) -> None:
        """What the person is told is for no agent to see, and starts none."""

        async def story() -> None:
            await room.begin("alice", "bob")
            room.limit(hops=3)
            await room.send(to=("alice",), body="Begin.")
            await pass_on(room, "alice bob", times=4)
            (report,) = await told(room)
            await room.send(to=("bob",), body="What is it?")
            await room.move()
            assert report not in await room.engine.talk.peek(await room.speaker("bob"), room.project)
            assert report in await room.engine.talk.peek(room.person, room.project)
            assert not (await room.run_of("alice")).live

        play(story)
