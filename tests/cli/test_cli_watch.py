"""What `windlass watch` prints, and how it goes on when the daemon restarts."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Stream, events
from typing_room import WITHIN, Keyboard

from forked import SOURCE
from windlass.cli.commands.watch import KINDS


class TestWatch:
    def test_a_reader_that_leaves_ends_it_quietly(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """`windlass watch | head -1` returns although nothing more happens."""
        silence = threading.Event()
        daemon.teach("GET /events", lambda _: Stream(events(1, end=silence)))
        process = keyboard.open("watch")
        assert process.stdout is not None
        assert process.stderr is not None

        assert json.loads(process.stdout.readline())["seq"] == 1
        process.stdout.close()

        assert process.wait(WITHIN) == 0
        assert process.stderr.read() == ""
        process.stderr.close()
        silence.set()

    def test_goes_on_where_it_was_when_the_daemon_comes_back(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """No event is missed and none is printed twice."""
        silence = threading.Event()
        answers = iter([Stream(events(4, 5), cut=True), Stream(events(5, 6, 7, end=silence))])
        daemon.teach("GET /events", lambda _: next(answers))
        process = keyboard.open("watch", "--since", "3")
        assert process.stdout is not None

        seen = [json.loads(process.stdout.readline())["seq"] for _ in range(4)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WITHIN)
        silence.set()

        assert seen == [4, 5, 6, 7]
        assert [query for _, _, query, _ in daemon.asked] == ["since=3&feed=1", "since=5&feed=1"]
        assert process.returncode == 130

    @pytest.mark.parametrize("real", [True, False])
    def test_it_shows_the_project_of_a_repository(
        self, keyboard: Keyboard, daemon: FakeDaemon, tmp_path: Path, *, real: bool
    ) -> None:
        """An empty folder that is called like one, as sandboxes of other programs leave them, makes none."""
        (tmp_path / ".git").mkdir()
        if real:
            (tmp_path / ".git/HEAD").write_text("ref: refs/heads/main\n")
        silence = threading.Event()
        daemon.teach("GET /events", lambda _: Stream(events(1, end=silence)))
        process = keyboard.open("watch", "--since", "0")
        assert process.stdout is not None and process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WITHIN)
        silence.set()

        assert ("path=" in daemon.asked[0][2]) is real

    def test_a_restart_before_the_first_event_misses_nothing(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The daemon says where the journal stands, even when it has nothing to tell."""
        silence = threading.Event()
        answers = iter([Stream(["id: 9\n\n"], cut=True), Stream(events(10, end=silence))])
        daemon.teach("GET /events", lambda _: next(answers))
        process = keyboard.open("watch")
        assert process.stdout is not None

        assert json.loads(process.stdout.readline())["seq"] == 10
        process.kill()
        process.communicate(timeout=WITHIN)
        silence.set()
        assert daemon.asked[-1][2] == "since=9&feed=1"

    def test_kinds_are_chosen_by_pattern(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Only what matches is printed."""
        silence = threading.Event()
        lines = [
            f'id: {n}\ndata: {{"seq": {n}, "kind": "{kind}"}}\n\n'
            for n, kind in ((1, "run.output"), (2, "change.landed"))
        ]

        def stream() -> Iterator[str]:
            yield from lines
            silence.wait(WITHIN)

        daemon.teach("GET /events", lambda _: Stream(stream()))
        process = keyboard.open("watch", "--kind", "change.*")
        assert process.stdout is not None

        assert json.loads(process.stdout.readline()) == {"seq": 2, "kind": "change.landed"}
        process.kill()
        process.communicate(timeout=WITHIN)
        silence.set()
        assert daemon.asked[-1][2] == "", "nobody derives what is not wanted"

    def test_a_kind_that_nothing_has_is_said(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """With the near miss; it is waited for all the same, and a pattern may be for what comes."""
        daemon.teach("GET /events", lambda _: Stream(events(1)))
        with keyboard.open("watch", "--json", "--kind", "message.snt", "--kind", "run.*") as process:
            assert process.stdout and process.stderr
            said = process.stderr.readline()
            assert json.loads(process.stdout.readline())["seq"] == 1
            process.kill()
        assert said == "windlass: no event of kind 'message.snt' is known. Did you mean message.sent?\n"

    def test_every_kind_that_is_recorded_is_known(self) -> None:
        """A new step has its name in the list by which slips are seen."""
        sources = [*(SOURCE / "windlass/engine").rglob("*.py"), *(SOURCE / "windlass/store").glob("*.py")]
        recorded = re.compile(r"""record\(\s*"([a-z]+\.[a-z]+)\"""")
        found = {kind for source in sources for kind in recorded.findall(source.read_text())}
        assert len(found) > 30 and found - set(KINDS) == set()

    def test_messages_status_and_files_are_lines_too(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Events outside the journal have no number; the next daemon repeats them, and they are printed once."""
        silence = threading.Event()
        row: dict[str, Any] = {"noun": "message", "id": "m1", "sender": "human", "to": ["coder"], "body": "Hello."}
        row |= {"channel": "main", "kind": "say", "reply_to": ""}
        said = {"seq": 4, "time": 1.0, "kind": "message.sent", "subject": "m1", "became": [row]}
        status: dict[str, Any] = {
            "time": 1.0,
            "kind": "status.changed",
            "subject": "coder",
            "status": "running",
            "was": None,
        }
        files = {
            "time": 1.0,
            "kind": "files.changed",
            "subject": "coder",
            "added": ["a.py"],
            "edited": [],
            "removed": [],
        }
        first = ["id: 3\n\n", f"data: {json.dumps(status)}\n\n", f"id: 4\ndata: {json.dumps(said)}\n\n"]
        again = [f"data: {json.dumps(status | {'time': 2.0})}\n\n", f"data: {json.dumps(files)}\n\n"]

        def later() -> Iterator[str]:
            yield from again
            silence.wait(WITHIN)

        answers = iter([Stream(first, cut=True), Stream(later())])
        daemon.teach("GET /events", lambda _: next(answers))
        process = keyboard.open("watch")
        assert process.stdout is not None

        seen = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.kill()
        process.communicate(timeout=WITHIN)
        silence.set()

        message: dict[str, Any] = {"id": "m1", "from": "human", "to": ["coder"], "message": "Hello."}
        message |= {"channel": "main", "kind": "say", "reply_to": None}
        assert seen == [status, said | {"message": message}, files]
        assert daemon.asked[-1][2] == "since=4&feed=1"
