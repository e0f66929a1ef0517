"""How a task went, as whoever coordinates it reads it: `<task-notification>`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from talk_room import Room, play

from windlass.core.notification import Ending, Notification, notification_of, write_notification
from windlass.core.run import Usage
from windlass.workdir.notification import read_notification


@pytest.fixture
def room(repo: Path, tmp_path: Path) -> Room:
    return Room(repo, tmp_path / "home")


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
                status=Ending.COMPLETED,
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
            ('{"status": "error", "error": "no idea"}', Ending.FAILED, "no idea"),
            ('{"status": "questions", "questions": [{"id": "q1", "question": "Which?"}]}', Ending.WAITING, "Which?"),
        ],
    )
    def test_how_it_ended_is_told(self, room: Room, signal: str, status: Ending, summary: str) -> None:
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
            assert found is not None and (found.status, found.summary) == (Ending.STOPPED, "stopped by hand")
            assert notification_of(None, ()) is None

        play(story)
