"""A chat file that never ends: after a stop nothing more of it is heard, and one run says only so much."""

from __future__ import annotations

import pytest
from chat_stage import HUMAN, ChatStage, add, text
from stage import play

from windlass.core.errors import NotAllowed
from windlass.core.messages.new_message import NewMessage
from windlass.engine.chatfiles.reader import MOST_HEARD, TURN


def lines(name: str, *words: str) -> str:
    return "".join(f"[{name}-to-human]: {word}\n" for word in words)


async def heard_from(stage: ChatStage, name: str) -> list[str]:
    return [message.body for message in await stage.said() if message.sender == name]


async def called_again(stage: ChatStage, name: str) -> None:
    """Let a person wake an agent, which begins another run."""
    before = await stage.run_of(name)
    await stage.engine.talk.send(HUMAN, NewMessage(body="Go on.", project=(await stage.project()).id, to=(name,)))
    await stage.pass_time()
    assert (await stage.run_of(name)).id != before.id


def test_after_a_stop_nothing_more_is_heard(stage: ChatStage) -> None:
    """Not even in the next run: only what is written then. The person is told once where the rest is."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one)
        add(file, lines(stage.one, *map(str, range(3 * TURN))))
        await stage.engine.ticks["chat"].tick()
        assert len(await heard_from(stage, stage.one)) == TURN

        await stage.engine.stopping.agent(stage.one)
        add(file, lines(stage.one, "I am still here"))
        await stage.pass_time()
        await stage.exit(stage.one)
        add(file, lines(stage.one, "and here"))
        await stage.pass_time()

        assert len(await heard_from(stage, stage.one)) == TURN
        (told,) = await stage.said(system=True)
        assert told.to == ("human",)
        assert f"From line {TURN + 1} on, {file}" in told.body
        await called_again(stage, stage.one)
        add(file, lines(stage.one, "again at work"))
        await stage.pass_time()
        assert (await heard_from(stage, stage.one))[TURN:] == ["again at work"]
        assert "and here" in text(file)

    play(story)


def test_a_stopped_run_says_nothing_in_other_ways(stage: ChatStage) -> None:
    """Its process may still be ending when it calls."""

    async def story() -> None:
        await stage.begin()
        run = await stage.run_of(stage.one)
        await stage.engine.stopping.agent(stage.one)

        with pytest.raises(NotAllowed, match="nobody speaks for it"):
            await stage.engine.talk.speaker(run.id)

    play(story)


def test_one_run_says_only_so_much(stage: ChatStage) -> None:
    """The rest is not said in the next run either; the file is kept when its worktree goes."""

    async def story() -> None:
        await stage.begin()
        file, run = await stage.file(stage.one), await stage.run_of(stage.one)
        add(file, lines(stage.one, *map(str, range(MOST_HEARD + TURN))))
        await stage.finish(stage.one, "a.txt", "a\n")
        await stage.pass_time()

        *written, result = await heard_from(stage, stage.one)
        assert (written, result) == ([str(number) for number in range(MOST_HEARD)], "Fixed.")
        over, kept = await stage.said(system=True)
        assert f"has written {MOST_HEARD} messages into .windlass/chat.md in one run. From line" in over.body
        assert f"is kept as {stage.home}/runs/{run.id}/chat.md" in kept.body
        assert not file.exists()
        assert text(stage.home / "runs" / run.id / "chat.md").splitlines()[-1].endswith(f" {MOST_HEARD + TURN - 1}")

    play(story)


def test_a_file_that_a_dead_daemon_has_kept_is_told_of(stage: ChatStage) -> None:
    """A daemon that dies between moving the rest and telling of it leaves the telling to the next one."""

    async def story() -> None:
        await stage.begin()
        file, run = await stage.file(stage.one), await stage.run_of(stage.one)
        add(file, lines(stage.one, *map(str, range(MOST_HEARD + TURN))))
        await stage.pass_time()
        kept = stage.home / "runs" / run.id / "chat.md"
        kept.parent.mkdir(parents=True, exist_ok=True)
        file.rename(kept)
        await stage.finish(stage.one, "a.txt", "a\n")
        await stage.pass_time()
        await stage.pass_time()

        _, told = await stage.said(system=True)
        assert f"is kept as {kept}" in told.body
        assert text(kept).splitlines()[-1].endswith(f" {MOST_HEARD + TURN - 1}")

    play(story)


def test_a_person_may_write_as_much_as_they_like(stage: ChatStage) -> None:
    """People are never throttled."""

    async def story() -> None:
        await stage.begin()
        add(stage.own, f"[human-to-{stage.one}]: and on\n" * (MOST_HEARD + 1))
        await stage.pass_time()

        assert len(await heard_from(stage, "human")) == MOST_HEARD + 1

    play(story)
