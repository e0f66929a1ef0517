"""How a task went, as whoever coordinates it reads it: `<task-notification>`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from stage import play
from talk_room import Room

from windlass.core.errors import BadInput
from windlass.core.messages.task_notification import Notification, TaskEnding, notification_of, write_notification
from windlass.core.nouns.message import Kind
from windlass.core.nouns.run import Usage
from windlass.workdir.notification import read_notification


async def told(room: Room, name: str) -> Notification | None:
    page = await room.engine.status.page(name)
    return notification_of(page.view.task, page.runs)


class TestNotification:
    def test_what_a_run_reported_is_told_with_what_it_took(self, room: Room) -> None:
        """Nothing while it is at it; then id, status, summary, result and usage, and it reads back the same."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body="Please look.")
            await room.move()
            assert await told(room, "alice") is None
            run = await room.run_of("alice")
            used = replace(run, usage=Usage(input_tokens=2000, output_tokens=48, tool_uses=5))
            await room.store.write(lambda store: store.record("run.output", run.id, used))
            room.clock.time += 15
            await room.signal("alice", '{"status": "done", "result": "Found 15 files\\n<all> & more"}')
            await room.exit("alice")
            await room.move()
            found = await told(room, "alice")
            assert found == Notification(
                task="t1",
                status=TaskEnding.COMPLETED,
                summary="Found 15 files",
                result="Found 15 files\n<all> & more",
                tokens=2048,
                tools=5,
                milliseconds=15000,
            )
            assert read_notification(write_notification(found)) == found

        play(story)

    @pytest.mark.parametrize(
        ("signal", "status", "summary"),
        [
            ('{"status": "error", "error": "no idea"}', TaskEnding.FAILED, "no idea"),
            (
                '{"status": "questions", "questions": [{"id": "q1", "question": "Which?"}]}',
                TaskEnding.WAITING,
                "Which?",
            ),
        ],
    )
    def test_how_it_ended_is_told(self, room: Room, signal: str, status: TaskEnding, summary: str) -> None:
        """In the words that coordinators know."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body="Please look.")
            await room.move()
            await room.signal("alice", signal)
            await room.exit("alice")
            await room.move()
            found = await told(room, "alice")
            assert found is not None and (found.status, found.summary) == (status, summary)

        play(story)

    def test_one_that_was_stopped_is_told_so(self, room: Room) -> None:
        """And one that never had a task has nothing to tell."""

        async def story() -> None:
            await room.begin("alice")
            await room.send(to=("alice",), body="Please look.")
            await room.move()
            await room.engine.runs.stop("alice", "stopped by hand")
            await room.move()
            found = await told(room, "alice")
            assert found is not None and (found.status, found.summary) == (TaskEnding.STOPPED, "stopped by hand")
            assert notification_of(None, ()) is None

        play(story)


GOOD = write_notification(Notification(task="t1", status=TaskEnding.COMPLETED, summary="It is done"))


class TestSaid:
    @pytest.mark.parametrize("prologue", ["", "  \n", '<?xml version="1.0"?>\n', "<!-- hello -->"])
    def test_in_whatever_way_it_comes_it_is_a_report(self, room: Room, prologue: str) -> None:
        """Which starts nobody, and reads the same for all."""

        async def story() -> None:
            await room.begin("alice")
            sent = await room.send(to=("human",), body=prologue + GOOD)
            assert (sent.kind, read_notification(sent.body).summary) == (Kind.REPORT, "It is done")

        play(story)

    @pytest.mark.parametrize(
        ("wrong", "why"),
        [
            (GOOD.replace("completed", "weird"), "weird"),
            (GOOD.replace("<summary>", "<summary>a & b"), "is no XML"),
            (f'<!DOCTYPE x [<!ENTITY a "b">]>{GOOD}', "no document type"),
            (f'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd">{GOOD}', "no document type"),
        ],
    )
    def test_one_that_is_none_is_refused(self, room: Room, wrong: str, why: str) -> None:
        """Nobody is told something that only looks like one."""

        async def story() -> None:
            await room.begin("alice")
            with pytest.raises(BadInput, match=why):
                await room.send(to=("human",), body=wrong)
            assert (await room.send(to=("human",), body=f"Look: {GOOD}")).kind is Kind.SAY

        play(story)
