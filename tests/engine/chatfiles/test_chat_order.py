"""Stories of order in chat.md: what was written first is said first, in whatever way its writer goes on."""

from __future__ import annotations

import asyncio

import pytest
from chat_stage import HUMAN, ChatStage, add
from review_stage import proposed, reviewed, said, says
from stage import play

from windlass.core.messages.new_message import NewMessage
from windlass.engine.chatfiles.quiet_files import QUIET


@pytest.mark.parametrize("dies", [False, True])
def test_what_was_written_first_is_said_first(stage: ChatStage, dies: bool) -> None:
    """Also where its writer goes on in another way, before we look or while we are away; and it is said once."""

    async def story() -> None:
        await stage.begin()
        file, run = await stage.file(stage.one), (await stage.run_of(stage.one)).id
        add(file, f"[{stage.one}-to-{stage.two}]: First.\n[{stage.one}-to-{stage.two}]: Second.\n[{stage.one}-to-")
        if dies:
            await stage.restart()
        speaker = await stage.engine.talk.speaker(run)
        third = NewMessage(body="Third.", project=speaker.project, to=(stage.two,))
        await stage.engine.talk.send(speaker, third)
        assert await stage.bodies() == ["First.", "Second.", "Third."]
        add(file, f"{stage.two}]: Fifth.\n")
        await stage.engine.callers.ask(await stage.engine.callers.identify(speaker), "Sixth?", agent=stage.two)
        await stage.pass_time()
        assert await stage.bodies() == ["First.", "Second.", "Third.", "Fifth.", "Sixth?"]

    play(story)


def test_an_agent_that_writes_bad_lines_again_and_again_is_left_alone(stage: ChatStage) -> None:
    """One good line beside each bad one, and it wakes itself for ever: no brake holds what the system says."""

    async def story() -> None:
        await stage.begin()
        stage.limit(runs=10, hops=5, wakes=5)
        file = await stage.file(stage.one)
        before = len(await stage.store.read(lambda store: store.runs_of(stage.one)))
        for number in range(12):
            add(file, f"[{stage.one}-to-human]: sorry {number}\n[{stage.one}-to-system]: sorry {number}\n")
            await stage.pass_time()
            if (await stage.run_of(stage.one)).live:
                await stage.signal(stage.one, '{"status": "questions", "questions": [{"id": "q", "question": "?"}]}')
                await stage.exit(stage.one)
            await stage.pass_time()
            if not (await stage.run_of(stage.one)).live:
                return
        runs = len(await stage.store.read(lambda store: store.runs_of(stage.one)))
        raise AssertionError(f"woken {runs - before} times within {stage.clock.time - 1000} s, without a person")

    play(story)


def test_good_lines_between_the_bad_ones_wake_nobody_for_ever(stage: ChatStage) -> None:
    """It is woken a few times only, until a person writes to it; then a few times again."""

    async def story() -> None:
        await stage.begin()
        file, project = await stage.file(stage.one), (await stage.project()).id
        for _ in range(2):
            for number in range(5):
                for to in ("human", "human", "system"):
                    add(file, f"[{stage.one}-to-{to}]: {number}\n")
                    await stage.pass_time()
            await stage.engine.talk.send(HUMAN, NewMessage(body="mind the form", project=project, to=(stage.one,)))
        items = await stage.engine.talk.inbox(stage.one, everything=True)
        woken = [item.delivery.wakes for item in items if item.message.sender == "system"]
        assert woken == [True, True, True, False, False] * 2

    play(story)


def test_one_that_writes_a_bad_line_now_and_then_is_left_alone(stage: ChatStage) -> None:
    """Two good ones, each for itself, and one bad one: that is no reason to be woken for ever, either."""

    async def story() -> None:
        await stage.begin()
        stage.limit(runs=10, hops=5, wakes=5)
        file = await stage.file(stage.one)
        for number in range(8):
            for to in ("human", "human", "system"):
                add(file, f"[{stage.one}-to-{to}]: {number}\n")
                await stage.pass_time()
            if (await stage.run_of(stage.one)).live:
                await stage.signal(stage.one, '{"status": "questions", "questions": [{"id": "q", "question": "?"}]}')
                await stage.exit(stage.one)
            await stage.pass_time()
        assert not (await stage.run_of(stage.one)).live

    play(story)


def test_what_is_being_written_is_not_cut_by_another_word(stage: ChatStage) -> None:
    """A program of the agent writes a message of two lines; between them the agent says something else."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one)
        add(file, f"[{stage.one}-to-{stage.two}]: first line\n")
        me = await stage.engine.talk.speaker((await stage.run_of(stage.one)).id)
        project = await stage.project()
        other = NewMessage(body="something else", project=project.id, to=(stage.three,))
        speaking = asyncio.create_task(stage.engine.talk.send(me, other))
        await asyncio.sleep(QUIET / 2)  # its writer needs a moment, less than we wait
        add(file, "    second line\n")
        await speaking
        assert await stage.bodies() == ["first line\nsecond line", "something else"]

    play(story)


def test_a_question_at_the_end_of_a_run_comes_after_what_was_written_before(stage: ChatStage) -> None:
    """Words in chat.md and the question with which the run ends reach the person in this order."""

    async def story() -> None:
        await stage.begin()
        add(await stage.file(stage.one), f"[{stage.one}-to-human]: I have looked at both files.\n")
        await stage.signal(stage.one, '{"status": "questions", "questions": [{"id": "q", "question": "Which one?"}]}')
        await stage.exit(stage.one)
        await stage.move()
        await stage.pass_time()
        mine = [each.body for each in await stage.said() if each.sender == stage.one]
        assert len(mine) == 2 and "looked at both" in mine[0], mine

    play(story)


def test_a_person_s_line_is_not_overtaken_by_their_command(stage: ChatStage) -> None:
    """A line was written while the daemon was away; the command that starts it speaks after it."""

    async def story() -> None:
        await stage.begin()
        add(stage.own, f"[human-to-{stage.one}]: first\n")
        await stage.restart()
        project = await stage.project()
        person = await stage.engine.talk.speaker("")
        await stage.engine.talk.send(person, NewMessage(body="second", project=project.id, to=(stage.one,)))
        await stage.pass_time()
        assert await stage.bodies() == ["first", "second"]

    play(story)


def test_a_comment_on_a_change_comes_after_what_was_written_before(stage: ChatStage) -> None:
    """Its author hears a reviewer's words in the order in which they were said, settling included."""

    async def story() -> None:
        await stage.begin()
        author, change = await proposed(stage)
        reviewer = await reviewed(stage, change)
        file, run = await stage.file(reviewer), (await stage.run_of(reviewer)).id
        add(file, f"[{reviewer}-to-{author}]: I begin with the lock.\n")
        comment = await says(stage, reviewer, change)
        add(file, f"[{reviewer}-to-{author}]: I was wrong.\n")
        await stage.engine.reviews.resolve(run, change, comment.id, "It is held elsewhere.")
        await stage.pass_time()
        found = {each.id: each for each in [*await stage.said(), *await said(stage, change)]}.values()
        mine = [each.body for each in sorted(found, key=lambda each: int(each.id[1:])) if each.sender == reviewer]
        assert mine == ["I begin with the lock.", comment.body, "I was wrong.", "It is held elsewhere."]

    play(story)


def test_a_person_s_line_is_not_overtaken_by_their_answer(stage: ChatStage) -> None:
    """`windlass answer NAME` is a command like any other."""

    async def story() -> None:
        await stage.begin()
        await stage.signal(stage.one, '{"status": "questions", "questions": [{"id": "q", "question": "Which?"}]}')
        await stage.exit(stage.one)
        await stage.pass_time()
        add(stage.own, f"[human-to-{stage.one}]: first\n")
        await stage.engine.talk.answer(stage.one, ["second"])
        await stage.pass_time()
        mine = [each.body for each in await stage.said() if each.sender == "human"]
        assert ["first" in mine[0], "second" in mine[1]] == [True, True], mine

    play(story)
