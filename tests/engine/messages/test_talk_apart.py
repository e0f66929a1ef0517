"""Whoever speaks stays in their place: in their channel, their project and their instance; and brakes hold."""

from __future__ import annotations

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput, NotAllowed, NotFound
from windlass.core.messages.members import Readers, Speaker
from windlass.core.nouns.message import Kind
from windlass.core.nouns.project import Project
from windlass.engine.records.messages import say


def test_an_agent_can_not_answer_what_the_gate_asked_a_person(room: Room) -> None:
    """It speaks in no channel but its own, answers only what it was asked itself, and a reply is no answer."""

    async def story() -> None:
        await room.begin("alice")
        name = await room.order()
        await room.move()
        task = await room.task_of(name)
        channel = f"task/{task.id}"
        ask = await room.store.write(
            lambda store: say(
                store, sender="system", to=("human",), body="Shall it land?", channel=channel, now=1.0, kind=Kind.ASK
            )
        )
        me = await room.speaker(name)
        with pytest.raises(NotAllowed, match="can't speak in task/t1"):
            await room.send(me, channel=channel, reply_to=ask.id, body="Yes.")
        with pytest.raises(BadInput, match="kind answer"):
            await room.send(me, kind=Kind.ANSWER, reply_to=ask.id, body="Yes.")
        await room.send(room.person, channel=channel, reply_to=ask.id, body="I shall see.")
        assert await room.store.read(lambda store: store.open_asks()) == [ask]

    play(story)


def test_an_instance_of_another_project_is_not_reached(room: Room) -> None:
    """Two projects may define the same agent; nobody gets the other one's mail."""

    async def story() -> None:
        await room.begin("coder")
        await room.send(to=("coder@pr-7",), body="Begin.")
        other = Project(id="other", name="other", path=str(room.repo), main="main")
        await room.store.write(lambda store: store.record("project.added", other.id, other))
        mine, room.project = room.project, other.id
        with pytest.raises(BadInput, match="another project"):
            await room.send(to=("coder@pr-7",), body="Theirs.")
        room.project = mine
        assert [each.message.body for each in await room.engine.talk.inbox("coder@pr-7")] == ["Begin."]

    play(story)


def test_mail_that_waits_for_ever_holds_up_nobody_else(room: Room) -> None:
    """However many letters wait for those who are not to be woken, a person's word still starts its reader."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("bob",), body="Begin.")
        await room.move()
        await room.engine.runs.stop("bob", "stopped by hand")
        await room.move()
        await room.exit("bob", 1)
        await room.move()
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        me = await room.speaker("alice")
        for number in range(1100):
            await room.send(me, to=("bob",), body=f"Word {number}.")
        name = await room.order()
        await room.move()
        await room.finish(name, "b.txt", "b\n")
        await room.move()
        await room.send(to=(name,), body="One thing more.")
        await room.move()
        assert (await room.run_of(name)).live

    play(story)


def test_a_broadcast_is_not_for_those_whose_work_is_finished(room: Room) -> None:
    """They would never read it."""

    async def story() -> None:
        await room.begin("alice")
        name = await room.order()
        await room.move()
        await room.finish(name, "b.txt", "b\n")
        await room.move()
        project = await room.engine.projects.get(room.project)
        assert (await room.engine.directory.members(project)).everyone(room.person) == Readers()

    play(story)


def test_a_person_s_word_to_one_that_has_just_finished_is_not_hushed(room: Room) -> None:
    """It came before the agent was retired, and waits only for a slot."""

    async def story() -> None:
        await room.begin("alice")
        name = await room.order()
        await room.move()
        await room.finish(name, "b.txt", "b\n")
        room.limit(runs=0)
        for tick in ("watch", "land"):
            await room.engine.ticks[tick].tick()
            await room.engine.settle()
        said = await room.send(to=(name,), body="One thing more.")
        await room.engine.ticks["tidy"].tick()
        assert (await room.agent(name)).retired_at is None
        room.limit(runs=8)
        await room.move()
        run = await room.run_of(name)
        assert run.live and said.body in room.prompt_of(run)

    play(story)


def test_who_is_called_again_and_again_within_a_minute_rests(room: Room) -> None:
    """Each call is a task of its own, and still counts."""

    async def story() -> None:
        await room.begin("alice", "bob")
        room.limit(wakes=3)
        await room.send(to=("bob",), body="Begin.")
        await room.move()
        me = await room.speaker("bob")
        for number in range(6):
            said = await room.send(me, to=("alice",), body=f"Word {number}.")
            await room.move()
            if (await room.run_of("alice")).live:
                await room.signal("alice")
                await room.exit("alice")
                await room.move()
        assert len(await room.store.read(lambda store: store.runs_of("alice"))) == 3
        assert "within a minute" in (await room.receipts(said))["alice"][1]

    play(story)


def test_after_a_person_s_word_hops_are_counted_anew(room: Room) -> None:
    """Else the next one would be held up at once, and a person needed at every step."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice",), body="Begin.")
        await room.send(to=("bob",), body="Begin.")
        await room.move()
        me, other = await room.speaker("alice"), await room.speaker("bob")
        for number in range(5):
            await room.send(me if number % 2 else other, to=("bob" if number % 2 else "alice",), body=f"{number}")
            await room.engine.talk.read(other if number % 2 else me)
        await room.send(to=("alice",), body="Go on.")
        await room.engine.talk.read(me)
        assert (await room.send(me, to=("bob",), body="I go on.")).hops == 1

    play(story)


def test_what_an_agent_hears_by_waiting_counts_as_a_hop(room: Room) -> None:
    """One that stays and waits for answers does not keep another awake for ever."""

    async def story() -> None:
        await room.begin("alice", "bob")
        room.limit(hops=6, wakes=0)
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        me = await room.speaker("alice")
        hops = []
        for number in range(4):
            said = await room.send(me, to=("bob",), body=f"Word {number}.")
            hops.append(said.hops)
            await room.move()
            if number == 3:
                break
            answer = await room.send(await room.speaker("bob"), to=("alice",), body=f"Answer {number}.")
            heard, _ = await room.engine.talk.wait(me, room.project, since=said.id, patience=0.1)
            assert [each.id for each in heard] == [answer.id]
            await room.signal("bob")
            await room.exit("bob")
            await room.move()
        assert hops == [1, 3, 5, 7]
        assert "without a person" in (await room.receipts(said))["bob"][1]
        assert len(await room.store.read(lambda store: store.runs_of("bob"))) == 3

    play(story)


def test_what_is_answered_counts_as_a_hop_until_a_person_speaks(room: Room) -> None:
    """Also where it reached the speaker before its run, or never."""

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "bob"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        first = await room.send(await room.speaker("bob"), body="I found something.")
        me = await room.speaker("alice")
        assert (await room.send(me, to=("bob",), body="What?", reply_to=first.id)).hops == 2
        await room.send(to=("alice",), body="Let it be.")
        assert (await room.send(me, to=("bob",), body="No matter.", reply_to=first.id)).hops == 1

    play(story)


def test_each_name_in_a_text_stands_for_one(room: Room) -> None:
    """Two names of the same agent do not shift the others."""

    async def story() -> None:
        await room.begin("zed", "coder", "bob")
        for name in ("zed", "coder", "bob"):
            await room.send(to=(f"{name}@one",), body="Begin.")
        await room.move()
        me: Speaker = await room.speaker("zed@one")
        said = await room.send(me, body="@human told @coder and @coder@one.\n\n@bob fix it")
        owed = {each.reader: each.wakes for each in await room.store.read(lambda store: store.receipts(said.id))}
        assert owed == {"human": True, "coder@one": False, "bob@one": True}

    play(story)


def test_a_private_question_s_answer_is_private(room: Room) -> None:
    """It stands where it was asked, and nobody else sees it."""

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "bob"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        ask = await room.send(await room.speaker("alice"), to=("human",), kind=Kind.ASK, body="The password?")
        answer = await room.engine.talk.answer("alice", ["It is x."])
        assert (answer.direct, answer.project, answer.reply_to) == (True, room.project, ask.id)
        assert answer not in await room.engine.talk.peek(await room.speaker("bob"), room.project)

    play(story)


@pytest.mark.parametrize("wrong", ["nowhere", "task/t99", "change/c99", "@", "@A b"])
def test_a_channel_that_is_none_is_refused(room: Room, wrong: str) -> None:
    """Else what is said there would be seen by nobody; the same goes for a reply to nothing."""

    async def story() -> None:
        await room.begin("alice")
        with pytest.raises((BadInput, NotFound)):
            await room.send(channel=wrong)
        with pytest.raises(NotFound, match="no message m99"):
            await room.send(reply_to="m99")

    play(story)


def test_hops_are_not_counted_anew_from_a_word_that_was_for_others(room: Room) -> None:
    """An agent can't answer what it was never meant to see, also not to be let go on by it."""

    async def story() -> None:
        await room.begin("alice", "bob", "carol")
        for name in ("alice", "bob", "carol"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        secret = await room.send(to=("carol",), body="Only for carol.")
        with pytest.raises(NotFound, match=f"There is no message {secret.id}"):
            await room.send(await room.speaker("alice"), to=("bob",), body="On and on.", reply_to=secret.id)
        await room.send(to=("carol@one",), body="Begin.")
        await room.move()
        own = await room.send(await room.speaker("carol@one"), body="Here we are alone.")
        with pytest.raises(NotFound, match=f"There is no message {own.id}"):
            await room.send(await room.speaker("alice"), to=("bob",), body="On and on.", reply_to=own.id)

    play(story)


def test_what_is_said_in_an_instance_is_no_title(room: Room) -> None:
    """Tasks are for all to see: the task of one who is called there does not tell other instances the words."""

    async def story() -> None:
        await room.begin("tester", "fresh")
        for name in ("tester@a", "fresh@a"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        await room.signal("fresh@a")
        await room.exit("fresh@a")
        await room.move()
        said = await room.send(await room.speaker("tester@a"), body="@fresh the secret plan is X")
        await room.move()
        task, run = await room.task_of("fresh@a"), await room.run_of("fresh@a")
        assert (said.channel, said.direct, run.task) == ("@a", False, task.id)
        assert (task.title, task.brief) == (f"{said.id} from tester@a", "")
        told = await room.store.read(lambda store: store.events(after=0, limit=10_000))
        rows = [row for each in told for row in each.became if row["noun"] != "message"]
        assert said.body not in str([*rows, *(each.data for each in told)])
        assert said.body in room.prompt_of(run)

    play(story)


def test_only_a_person_begins_an_instance(room: Room) -> None:
    """Else one agent could start any number of others; in an instance that is there it may call whom it likes."""

    async def story() -> None:
        await room.begin("alice", "bob")
        await room.send(to=("alice",), body="Begin.")
        await room.send(to=("alice@one",), body="Begin.")
        await room.move()
        me = await room.speaker("alice")
        with pytest.raises(NotAllowed, match="no instance @two, and only a person begins one"):
            await room.send(me, to=("bob@two",), body="Go.")
        assert (await room.send(me, to=("bob@one",), body="Go.")).to == ("bob@one",)

    play(story)


def test_an_agent_of_an_instance_speaks_to_all_of_its_own_only(room: Room) -> None:
    """Instances do not hear each other; one at home in the project, like a person, may speak to any."""

    async def story() -> None:
        await room.begin("alice", "bob")
        for name in ("alice", "alice@one", "bob@one", "bob@two"):
            await room.send(to=(name,), body="Begin.")
        await room.move()
        me = await room.speaker("alice@one")
        with pytest.raises(NotAllowed, match="alice@one can't speak to all of @two"):
            await room.send(me, to=("@two",), body="Our plan.")
        assert (await room.send(me, to=("@one",), body="Our plan.")).to == ("bob@one",)
        said = await room.send(await room.speaker("alice"), to=("@two",), body="Main is red.")
        assert (said.to, said.broadcast) == (("bob@two",), True)
        both = await room.send(to=("@one",), body="Main is red.")
        assert ({*both.to}, both.channel) == ({"alice@one", "bob@one"}, "@one")

    play(story)


def test_one_who_waits_from_a_message_on_misses_nothing(room: Room) -> None:
    """Also where more was said than is looked at in one go: the oldest first, and the rest the next time."""

    async def story() -> None:
        await room.begin("alice")
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        me, since = await room.speaker("alice"), "m1"
        for number in range(5):
            await room.send(me, body=f"{number}")
        heard = []
        for _ in range(2):
            said, since = await room.engine.talk.wait(room.person, room.project, since=since, patience=0, limit=3)
            heard += [each.body for each in said]
        assert heard == ["0", "1", "2", "3", "4"]
        await room.send(to=("alice",), body="At last.")
        found, _ = await room.engine.talk.wait(me, room.project, since="m1", patience=0, limit=2)
        assert [each.body for each in found] == ["At last."], "its own words do not hide what comes after them"

    play(story)


def test_what_all_may_see_is_a_title(room: Room) -> None:
    """In the project's own channel, a task is called by the words that began it."""

    async def story() -> None:
        await room.begin("tester", "fresh")
        await room.send(to=("tester",), body="Begin.")
        await room.move()
        await room.send(await room.speaker("tester"), body="@fresh please look\nat this")
        await room.move()
        assert (await room.task_of("fresh")).title == "@fresh please look"

    play(story)


def test_whoever_was_stopped_meanwhile_says_nothing_more(room: Room) -> None:
    """Neither a message, nor an answer, nor a signal, although it was let in before."""

    async def story() -> None:
        await room.begin("alice")
        await room.send(to=("alice",), body="Begin.")
        await room.move()
        ask = await room.ask(room.person, "Ready?", agent="alice")
        me = await room.speaker("alice")
        await room.engine.runs.stop("alice", "stopped by hand")
        with pytest.raises(NotAllowed, match="run is over"):
            await room.send(me, body="One thing more.")
        with pytest.raises(NotAllowed, match="run is over"):
            await room.engine.talk.settle(me, ask.id, "Yes.")
        with pytest.raises(NotAllowed, match="run is over"):
            await room.engine.runs.signal(me.run, {"status": "done"})

    play(story)
