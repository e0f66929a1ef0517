"""A chat file that its writer writes anew: new words are heard, and old ones beside them are not said again."""

from __future__ import annotations

from typing import Any

import pytest
from chat_stage import HUMAN, ChatStage, Halt, add, text
from stage import play

from windlass.core.messages.new_message import NewMessage
from windlass.engine.chatfiles.reader import LIMIT, TURN


@pytest.mark.parametrize("dies", [False, True])
def test_a_file_that_is_written_anew_is_read_whole(
    stage: ChatStage, monkeypatch: pytest.MonkeyPatch, dies: bool
) -> None:
    """New words before what was said earlier are not lost, also if we die while we send them."""

    async def story() -> None:
        await stage.begin()
        file, head = await stage.file(stage.one), f"[{stage.one}-to-{stage.two}]:"
        add(file, f"{head} still at it\n")
        await stage.pass_time()
        post = NewMessage(body="go on", project=(await stage.project()).id, to=(stage.one,))
        await stage.engine.talk.send(HUMAN, post)
        await stage.pass_time()
        shown = f"[human-to-{stage.one}]: go on\n"
        assert text(file) == f"{head} still at it\n{shown}"
        file.write_text(f"{head} the parser is broken, stop\n{shown}{head} and so is the lexer\n{head} still at it\n")
        if dies:
            reader: Any = stage.engine._chat.reader
            saved = reader.save

            async def halt(*given: Any, **how: Any) -> None:
                if given[1].offset:
                    raise Halt
                await saved(*given, **how)

            monkeypatch.setattr(reader, "save", halt)
            with pytest.raises(Halt):
                await stage.pass_time()
            await stage.restart()
        await stage.pass_time()
        add(file, f"{head} still at it\n")
        await stage.restart_and_pass()

        new = ["the parser is broken, stop", "and so is the lexer", "still at it"]
        assert await stage.bodies() == ["still at it", "go on", *new]
        assert text(file).count("go on") == 1
        assert await stage.said(system=True) == []

    play(story)


def test_it_may_be_longer_than_we_read_at_once(stage: ChatStage) -> None:
    """What is known is known in all of it."""

    async def story() -> None:
        await stage.begin()
        lines = [f"[human-to-{stage.one}]: {number} {'x' * 300_000} {number}\n" for number in range(6)]
        stage.own.write_text("".join(lines[:3]))
        await stage.pass_time()
        stage.own.write_text("".join((lines[3], lines[0], lines[4], lines[1], lines[5], lines[2])))
        assert stage.own.stat().st_size > LIMIT
        await stage.restart_and_pass()
        assert [body[0] for body in await stage.bodies()] == list("012345")

    play(story)


def test_what_was_known_further_on_is_new_when_it_comes_later(stage: ChatStage) -> None:
    """The file was written anew, and cut before we came to what is known in it: who says that now says it again."""

    async def story() -> None:
        await stage.begin()
        lines = [f"[human-to-{stage.one}]: {number}\n" for number in range(TURN + 2)]
        stage.own.write_text(lines[0])
        await stage.pass_time()
        stage.own.write_text("".join((*lines[1:], lines[0])))
        for _ in range(2):
            await stage.engine.ticks["chat"].tick()
            stage.clock.time += 1
        assert len(await stage.bodies()) == 1 + TURN
        stage.own.write_text("".join(lines[1 : TURN + 1]))
        await stage.pass_time()
        add(stage.own, lines[0])
        await stage.pass_time()
        assert await stage.bodies() == [*map(str, range(TURN + 1)), "0"]

    play(story)


@pytest.mark.parametrize("dies", [False, True])
def test_what_is_written_into_an_emptied_file_is_said(stage: ChatStage, dies: bool) -> None:
    """We have seen for a while that it is empty: what stands there now was written after that."""

    async def story() -> None:
        await stage.begin()
        line = f"[human-to-{stage.one}]: go on\n"
        for said in (1, 2, 3):
            add(stage.own, line)
            await stage.pass_time()
            assert await stage.bodies() == ["go on"] * said
            stage.own.write_text("")
            await stage.pass_time()
            await stage.pass_time()
            assert text(stage.own) == ""
            if dies:
                await stage.restart()

    play(story)
