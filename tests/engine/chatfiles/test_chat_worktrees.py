"""A chat file and the worktree that it is in: nothing is lost with the one, and the next one begins anew."""

from __future__ import annotations

import os

import pytest
from chat_stage import HUMAN, ChatStage, add, text
from stage import play

from windlass.core.messages.new_message import NewMessage


@pytest.mark.parametrize("dies", [False, True])
def test_the_same_words_in_a_new_worktree_are_heard(stage: ChatStage, dies: bool) -> None:
    """Called again, an agent says at once what it always says, also while the daemon is being restarted."""

    async def story() -> None:
        await stage.begin()
        line = f"[{stage.one}-to-{stage.two}]: please review\n"
        add(await stage.file(stage.one), line)
        await stage.pass_time()
        assert await stage.bodies() == ["please review"]
        await stage.finish(stage.one, "b.txt", "b\n")
        await stage.pass_time()
        await stage.pass_time()
        file = await stage.file(stage.one)
        assert (await stage.agent(stage.one)).retired_at is not None and not file.exists()
        await stage.engine.talk.send(
            HUMAN, NewMessage(body="again", project=(await stage.project()).id, to=(stage.one,))
        )
        for name in ("deliver", "dispatch", "watch"):  # nobody has looked at chat.md when it is written
            await stage.engine.ticks[name].tick()
            await stage.engine.settle()
        assert (await stage.run_of(stage.one)).live and not file.exists()
        file.parent.mkdir(exist_ok=True)
        add(file, line)
        if dies:
            await stage.restart()
        await stage.pass_time()
        await stage.restart_and_pass()
        mine = [each.body for each in await stage.said() if each.sender == stage.one]
        assert mine.count("please review") == 2, mine

    play(story)


def test_a_last_line_without_its_end_is_said_when_its_writer_is_gone(stage: ChatStage) -> None:
    """`printf` writes no newline, and nothing can follow; while its writer lives, it waits."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one)
        add(file, f"[{stage.one}-to-{stage.two}]: mind\n    the lock")
        await stage.pass_time()
        assert await stage.bodies() == []
        await stage.finish(stage.one, "b.txt", "b\n")
        await stage.pass_time()
        await stage.pass_time()
        assert (await stage.agent(stage.one)).retired_at is not None and not file.exists()
        assert (await stage.bodies())[0] == "mind\nthe lock"

    play(story)


def test_a_pipe_in_the_place_of_a_finished_agents_file_is_let_be(stage: ChatStage) -> None:
    """While its agent runs, each try is a trouble; later nobody could put it right, and it is not tried for ever."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one)
        file.unlink()
        os.mkfifo(file)
        await stage.engine.talk.send(HUMAN, NewMessage(body="all hear this", project=(await stage.project()).id))

        async def tries() -> int:
            stage.clock.time += 10
            await stage.move(troubled=True)
            return sum(trouble.times for trouble in stage.engine.troubles.all())

        assert 0 < await tries() < await tries(), "its agent is at work"
        await stage.signal(stage.one, '{"status": "error", "error": "Too hard."}')
        await stage.exit(stage.one)
        known = await tries()
        assert [await tries() for _ in range(3)] == [known] * 3
        assert "all hear this" in (await stage.file(stage.two)).read_text()

    play(story)


def test_what_follows_a_line_without_its_end_stands_below_it(stage: ChatStage) -> None:
    """Its writer is gone, and comes back: what was said meanwhile is shown, and what it says then is a line again."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one)
        add(file, f"[{stage.one}-to-{stage.two}]: half")
        await stage.signal(stage.one, '{"status": "questions", "questions": [{"id": "q", "question": "Which?"}]}')
        await stage.exit(stage.one)
        await stage.pass_time()
        await stage.engine.talk.send(
            HUMAN, NewMessage(body="go on", project=(await stage.project()).id, to=(stage.one,))
        )
        await stage.pass_time()
        add(file, f"[{stage.one}-to-{stage.two}]: whole\n")
        await stage.restart_and_pass()
        mine = [each.body for each in await stage.said() if each.to == (stage.two,)]
        assert mine == ["half", "whole"]
        assert f"]: half\n[{stage.one}-to-human]: q: Which?" in text(file)
        assert f"\n[human-to-{stage.one}]: go on\n" in text(file)
        assert await stage.said(system=True) == []

    play(story)
