"""Crashes and full disks around chat.md: nothing is lost, and nothing is said twice."""

from __future__ import annotations

from typing import Any

import pytest
from chat_stage import HUMAN, ChatStage, Halt, text
from stage import play

from windlass.core.errors import Unavailable
from windlass.core.messages.new_message import NewMessage


class TestCrash:
    """The daemon dies between two steps, and another takes over."""

    def test_between_sending_and_saving_nothing_is_sent_twice(
        self, stage: ChatStage, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The lines are read again, and known by their keys; also if the file was edited meanwhile."""

        async def story() -> None:
            await stage.begin()

            async def halt(*_: object, **__: object) -> None:
                raise Halt

            monkeypatch.setattr(stage.engine._chat.reader, "save", halt)
            lines = f"[human-to-{stage.one}]: a\n[human-to-{stage.one}]: a\n"
            stage.own.write_text(lines)
            with pytest.raises(Halt):
                await stage.pass_time()
                await stage.pass_time()
            assert await stage.bodies() == ["a"]  # the second might have gone on
            stage.own.write_text(f"\n\n{lines}[human-to-{stage.one}]: b\n")
            await stage.restart_and_pass()
            assert await stage.bodies() == ["a", "a", "b"]

        play(story)

    @pytest.mark.parametrize("written", [False, True])
    def test_around_writing_each_message_appears_once(
        self, stage: ChatStage, monkeypatch: pytest.MonkeyPatch, written: bool
    ) -> None:
        """Whether or not it was written when the daemon died; and nobody takes it for a message of the writer's."""

        async def story() -> None:
            await stage.begin()
            port: Any = stage.engine.ports.chats
            append = port.append

            async def halt(*given: Any) -> bool:
                if written:
                    await append(*given)
                raise Halt

            monkeypatch.setattr(port, "append", halt)
            await stage.engine.talk.send(
                HUMAN, NewMessage(body="hi", project=(await stage.project()).id, to=(stage.one,))
            )
            with pytest.raises(Halt):
                await stage.pass_time()
            await stage.restart_and_pass()
            assert await stage.bodies() == ["hi"]
            for file in (stage.own, await stage.file(stage.one)):
                assert text(file) == f"[human-to-{stage.one}]: hi\n"

        play(story)

    def test_a_full_disk_delays_and_loses_nothing(self, stage: ChatStage, monkeypatch: pytest.MonkeyPatch) -> None:
        """What could not be written is written when that is possible again."""

        async def story() -> None:
            await stage.begin()
            port: Any = stage.engine.ports.chats

            async def full(*_: Any) -> bool:
                raise Unavailable("the disk is full")

            with monkeypatch.context() as patch:
                patch.setattr(port, "append", full)
                project = (await stage.project()).id
                for body in ("a", "b"):
                    await stage.engine.talk.send(HUMAN, NewMessage(body=body, project=project, to=(stage.one,)))
                    await stage.move(troubled=True)
            for _ in range(3):
                await stage.move(troubled=True)
                stage.clock.time += 1
            assert text(stage.own) == f"[human-to-{stage.one}]: a\n[human-to-{stage.one}]: b\n"
            assert await stage.bodies() == ["a", "b"]

        play(story)
