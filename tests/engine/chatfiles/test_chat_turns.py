"""Chat files take turns: nobody who writes on and on, and no line that can't be sent, holds up the others for long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chat_stage import ChatStage, add, text
from stage import SetClock, play

from windlass.core.errors import Conflict, Unavailable
from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.project import Project
from windlass.engine.chatfiles.quiet_files import FORGOTTEN, QuietFiles
from windlass.engine.chatfiles.reader import PATIENCE, TURN
from windlass.engine.messages.talk import Sent


class Babbler:
    """Whoever adds two lines to its file for each one that is sent, and so never comes to an end."""

    def __init__(self, stage: ChatStage, file: Path) -> None:
        self.stage = stage
        self.file = file
        self.put = stage.engine.talk.put
        self.lines = f"[{stage.one}-to-human]: and\n[{stage.one}-to-human]: on\n"

    async def hear(self, speaker: Speaker, new: NewMessage, project: Project) -> Sent:
        """Send what someone says; the babbler goes on meanwhile."""
        if speaker.address == self.stage.one:
            add(self.file, self.lines)
        return await self.put(speaker, new, project)


@pytest.fixture
def never_stops(stage: ChatStage, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the first agent write without an end."""

    async def begin() -> Babbler:
        await stage.begin()
        babbler = Babbler(stage, await stage.file(stage.one))
        monkeypatch.setattr(stage.engine.talk, "put", babbler.hear)
        add(babbler.file, babbler.lines * TURN)
        return babbler

    return begin


def test_one_that_never_stops_writing_takes_turns_with_the_others(stage: ChatStage, never_stops: Any) -> None:
    """After so many messages of one file the others are read; and it goes on where it was."""

    async def story() -> None:
        babbler = await never_stops()
        add(await stage.file(stage.two), f"[{stage.two}-to-human]: help\n    me\n[{stage.two}-to-human]: now\n")
        await stage.engine.ticks["chat"].tick()
        said = await stage.said()
        assert [each.body for each in said if each.sender == stage.two] == ["help\nme"]
        assert len([each for each in said if each.sender == stage.one]) == TURN
        for _ in range(2):
            await stage.engine.ticks["chat"].tick()
        mine = [each.body for each in await stage.said() if each.sender == stage.one]
        assert mine == text(babbler.file).replace(f"[{stage.one}-to-human]: ", "").split()[: 3 * TURN]

    play(story)


@pytest.mark.parametrize("gone", [False, True])
def test_what_is_added_later_holds_up_nobody_s_other_words(stage: ChatStage, never_stops: Any, gone: bool) -> None:
    """Before it says something else, or has gone, what stood there is taken in: not what comes while that is done."""

    async def story() -> None:
        babbler = await never_stops()
        stood = len(text(babbler.file).splitlines())
        me = await stage.engine.talk.speaker((await stage.run_of(stage.one)).id)
        await stage.engine.talk.catch_up(me, await stage.project(), gone=gone)
        assert stood <= len(await stage.said()) < stood + TURN

    play(story)


def test_a_line_that_can_not_be_sent_now_is_tried_on(stage: ChatStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """But not for ever: after a while its writer is told, and what stands below goes on; what stands above was sent."""

    async def story() -> None:
        await stage.begin()
        put, tried = stage.engine.talk.put, list[str]()

        async def halting(speaker: Speaker, new: NewMessage, project: Project) -> Sent:
            tried.append(new.body)
            if new.body == "b":
                raise Unavailable("the library is closed")
            return await put(speaker, new, project)

        monkeypatch.setattr(stage.engine.talk, "put", halting)
        for body in "abc":
            add(stage.own, f"[human-to-{stage.one}]: {body}\n")
        for _ in range(3):
            await stage.move(troubled=True)
            stage.clock.time += 1
        assert (await stage.bodies(), tried.count("a"), await stage.said(system=True)) == (["a"], 1, [])
        stage.clock.time += PATIENCE
        await stage.move(troubled=True)
        assert await stage.bodies() == ["a", "c"]
        assert "line 2 was not sent: the library is closed" in (await stage.said(system=True))[0].body

    play(story)


def test_a_line_that_someone_else_is_in_the_way_of_is_told(stage: ChatStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what is in the log under its key was said before."""

    async def story() -> None:
        await stage.begin()

        async def taken(_speaker: Speaker, _new: NewMessage, _project: Project) -> Sent:
            raise Conflict("the name is taken")

        monkeypatch.setattr(stage.engine.talk, "put", taken)
        add(stage.own, f"[human-to-{stage.one}]: a\n")
        await stage.pass_time()
        assert "line 1 was not sent: the name is taken" in (await stage.said(system=True))[0].body

    play(story)


def test_what_is_gone_is_not_remembered(stage: ChatStage) -> None:
    """Neither the file of an agent whose worktree has gone, nor how a file looked that nobody asks about."""

    async def story() -> None:
        await stage.begin()
        kept = stage.engine._chat.reader
        assert len(kept._kept) == 4
        await stage.finish(stage.one, "b.txt", "b\n")
        await stage.pass_time()
        await stage.pass_time()
        assert len(kept._kept) == 3

    play(story)


def test_how_a_file_looked_is_forgotten_when_nobody_asks() -> None:
    """It may be gone."""

    async def story() -> None:
        clock = SetClock()
        still = QuietFiles(clock)
        for number in range(10):
            assert not still.is_quiet(f"file {number}", "x", lambda: None)
            clock.time += FORGOTTEN / 2
        assert len(still._seen) == 2

    play(story)


@pytest.mark.parametrize("by_agent", [True, False])
def test_a_log_that_was_pasted_is_told_of_once(stage: ChatStage, *, by_agent: bool) -> None:
    """Not once for every turn that reading it takes; and it does not use up all that its writer may be told."""

    async def story() -> None:
        await stage.begin()
        file = await stage.file(stage.one) if by_agent else stage.own
        add(file, "".join(f"line {number} of some log\n" for number in range(500)))
        for _ in range(20):
            await stage.pass_time()
        told = [each for each in await stage.said(system=True) if "and 495 more" in each.body]
        assert len(told) == len([each for each in await stage.said(system=True) if "was not sent" in each.body]) == 1

    play(story)
