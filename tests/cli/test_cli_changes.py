"""The output of commands about changes: the queue, one change, and its review."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Stream
from samples import CHANGE, EVIL
from typing_room import WITHIN, Keyboard

COMMENT: dict[str, Any] = {
    "id": "m12",
    "from": "quiet-fox",
    "body": "This loses the lock.",
    "file": "login.py",
    "line": 12,
    "blocking": True,
    "open": True,
    "reply_to": None,
    "head": "e" * 40,
    "age_seconds": 60.0,
}
REVIEW = {"from": "quiet-fox", "opinion": "changes", "head": "e" * 40, "summary": "Nearly.", "time": 1000.0}
SHOWN: dict[str, Any] = {
    **CHANGE,
    "state": "held",
    "reason": "m12 by quiet-fox blocks it",
    "undoes": None,
    "head": "e" * 40,
    "comments": [COMMENT],
    "learnings": "",
    "reviews": [REVIEW],
}


def _then_quiet(lines: list[str], silence: threading.Event) -> Iterator[str]:
    yield from lines
    silence.wait(WITHIN)


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("GET /queue", lambda _: {"as_of": time.time(), "items": [CHANGE]})
        yield fake


class TestQueue:
    def test_shows_the_order_and_what_is_next(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Who is tested, who follows, and what waits for a person."""
        held = {**CHANGE, "id": "c2", "state": "held", "reason": "There is no check command.", "hold": "checks"}
        items = [CHANGE, {**CHANGE, "id": "c4", "state": "queued"}, held]
        daemon.teach("GET /queue", {"as_of": time.time(), "items": items})

        shown = keyboard.type("queue").stdout

        assert "Next: c3, being tested; then c4. Held until someone acts: c2. Run `windlass config set checks" in shown
        assert "There is no check command." in shown

    def test_json_has_the_stable_keys(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Programs get the promised keys."""
        (item,) = json.loads(keyboard.type("queue", "--json").stdout)

        assert set("id branch task agent state reason candidate checks".split()) <= set(item)

    def test_a_pause_is_said_with_its_reason(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A queued change is not called next, and the command that resumes the queue is named."""
        pause = {"project": "shop", "paused": True, "since": 1.0, "reason": f"release {EVIL}"}
        item = {**CHANGE, "state": "queued", "reason": "the queue is paused", "paused": True}
        daemon.teach("GET /queue", {"as_of": time.time(), "paused": [pause], "items": [item]})

        shown = keyboard.type("queue").stdout

        assert "The queue of shop is paused (release" in shown
        assert "windlass queue resume" in shown
        assert "Nothing lands now." in shown
        assert "\x1b" not in shown

    def test_watching_shows_it_anew_at_every_step_of_a_change(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Listening begins before looking; what happens to runs is no news here."""
        silence = threading.Event()
        happened = ((1, "run.output"), (2, "change.landed"))
        lines = [f'id: {n}\ndata: {{"seq": {n}, "kind": "{kind}"}}\n\n' for n, kind in happened]
        daemon.teach("GET /events", lambda _: Stream(_then_quiet(lines, silence)))
        process = keyboard.open("queue", "--watch", "--json")
        assert process.stdout is not None

        shown = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.kill()
        process.communicate(timeout=WITHIN)
        silence.set()

        assert [each[0]["id"] for each in shown] == ["c3", "c3"]
        assert [path for _, path, _, _ in daemon.asked] == ["/events", "/queue", "/queue"]

    @pytest.mark.parametrize("verb", ["drop", "hold", "release", "retry", "first"])
    def test_a_verb_says_what_became_of_the_change(self, keyboard: Keyboard, daemon: FakeDaemon, verb: str) -> None:
        """Each is one call; with --json the change is the answer."""
        daemon.teach(f"POST /changes/c3/{verb}", {**CHANGE, "state": "held", "reason": f"by hand {EVIL}"})
        words = ("--reason", "not today") if verb in ("drop", "hold") else ()

        assert keyboard.type("queue", verb, "c3", *words).stdout.startswith("c3 held: by hand \\x1b")
        assert json.loads(keyboard.type("queue", verb, "c3", "--json").stdout)["id"] == "c3"
        assert daemon.asked[0][3] == ({"reason": "not today"} if words else {})

    def test_options_of_the_list_are_not_ignored_before_a_verb(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """`queue --json drop c3` would look as if it had an effect."""
        told = keyboard.type("queue", "--json", "drop", "c3")

        assert told.returncode == 2
        assert "go after its name" in told.stderr
        assert daemon.asked == []


class TestChange:
    def test_shows_what_blocks_it_and_the_way_out(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """State, checks, comments with their place, what reviews came to, and what to type next."""
        daemon.teach("GET /changes/c3", SHOWN)

        shown = keyboard.type("change", "show", "c3").stdout

        assert shown.startswith("c3 held: m12 by quiet-fox blocks it")
        assert "BLOCKS  m12 by quiet-fox, 1 min ago  login.py:12\n  This loses the lock." in shown
        assert "quiet-fox wants changes (at eeeeeeeeee)\n  Nearly." in shown
        assert "pytest -q: passed" in shown
        assert "windlass change resolve c3 m12" in shown
        assert json.loads(keyboard.type("change", "show", "c3", "--json").stdout) == SHOWN

    def test_a_landed_one_leads_to_its_receipt(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And to nothing that could still be done to it."""
        settled = {**COMMENT, "open": False}
        daemon.teach("GET /changes/c3", {**SHOWN, "state": "landed", "reason": "", "comments": [settled]})

        shown = keyboard.type("change", "show", "c3").stdout

        assert "settled  m12" in shown
        assert shown.rstrip().endswith("Next: windlass receipt c3")

    def test_nobodys_words_steer_the_terminal(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Comments, places, names and summaries are made harmless."""
        comment = {**COMMENT, "body": EVIL, "file": EVIL, "from": EVIL}
        daemon.teach("GET /changes/c3", {**SHOWN, "comments": [comment], "reviews": [{**REVIEW, "summary": EVIL}]})

        shown = keyboard.on_terminal("change", "show", "c3")[1]

        assert "\x1b]52" not in shown
        assert "\u202e" not in shown

    def test_a_comment_is_one_call(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A blocking comment names the command that settles it; the text may come from standard input."""
        daemon.teach("POST /changes/c3/comments", COMMENT)

        told = keyboard.type("change", "comment", "c3", "--file", "login.py", "--line", "12", "-", stdin="This loses.")

        assert "m12 blocks c3 until it is settled: windlass change resolve c3 m12" in told.stdout
        assert daemon.asked[0][3] == {"body": "This loses.", "file": "login.py", "line": 12, "blocking": False}

    def test_comments_of_a_change_are_completed(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """After the change's id, those that were made on it."""
        daemon.teach("GET /changes/c3", SHOWN)
        words = {"COMP_WORDS": "windlass change resolve c3 m", "COMP_CWORD": "4", "_WINDLASS_COMPLETE": "bash_complete"}

        assert "m12" in keyboard.type(**words).stdout


class TestReview:
    def test_waiting_ends_as_the_review_ends(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The summary is said; changes wanted is exit 1, approval 0, and no end at all is named."""
        task = {"id": "t9", "state": "waiting", "reason": ""}
        daemon.teach("POST /changes/c3/review", {"change": "c3", "task": task, "agent": "quiet-fox"})
        daemon.teach("GET /tasks/t9/wait", lambda _: Stream.of({"task": task, "settled": True}))
        daemon.teach("GET /changes/c3", SHOWN)
        wants = keyboard.type("review", "c3", "--provider", "x", "--wait")
        daemon.teach("GET /changes/c3", {**SHOWN, "comments": [], "reviews": [{**REVIEW, "opinion": "approve"}]})
        approves = keyboard.type("review", "c3", "--provider", "x", "--wait", "--json")
        daemon.teach("GET /changes/c3", {**SHOWN, "comments": [], "reviews": []})
        fails = keyboard.type("review", "c3", "--provider", "x", "--wait")

        assert (wants.returncode, "Nearly." in wants.stdout, "wants changes: m12" in wants.stderr) == (1, True, True)
        assert (approves.returncode, json.loads(approves.stdout)["review"]["opinion"]) == (0, "approve")
        assert (fails.returncode, "came to no end" in fails.stderr) == (1, True)
