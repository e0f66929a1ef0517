"""Commands inside a run wait for a daemon that is away, and say what did not happen if it stays away."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from fake_daemon import FakeDaemon
from typing_room import WITHIN, Keyboard

INSIDE = {"WINDLASS_RUN": "r1", "WINDLASS_AGENT": "coder"}
SOON = (
    "import sys; from windlass.cli import main; from windlass.cli.commands import messaging; "
    "messaging.AWAY = 0.3; sys.argv[0] = 'windlass'; main.run()"
)
"""The program with less patience."""
SETTLED = {"conversationId": "m12", "status": "answered", "toAgentId": "tester", "askedAgentId": "coder"}
MESSAGE: dict[str, Any] = {"id": "m13", "channel": "main", "readers": [], "to": []}
PAGE = {"name": "notes", "revision": 1, "body": "x"}
READ: dict[str, Any] = {"as_of": 1.0, "items": [], "told": []}
ASKED = {"conversationId": "m12", "status": "pending", "hint": ""}

SPOKEN: list[tuple[tuple[str, ...], str, Any, str]] = [
    (("answer", "--conversation-id", "m12", "8080."), "POST /conversations/m12/answer", SETTLED, "it was NOT answered"),
    (("context", "send", "@human which port?"), "POST /messages", {"message": MESSAGE}, "it was NOT sent"),
    (("send", "Hi.", "--to", "tester", "--key", "k1"), "POST /messages", {"message": MESSAGE}, "it was NOT sent"),
    (("send", "No chat is there.", "--to", "tester"), "POST /messages", {"message": MESSAGE}, "it was NOT sent"),
    (("ask", "Why?", "--agent-id", "tester", "--no-wait"), "POST /conversations", ASKED, "it was NOT asked"),
    (("context", "document", "append", "x"), "POST /documents/notes", PAGE, "it was NOT written"),
    (("context", "document", "write", "x"), "POST /documents/notes", PAGE, "it was NOT written"),
    (("context", "document", "read"), "GET /documents/notes", PAGE, "nothing was looked at"),
    (("context", "read"), "POST /inbox/read", READ, "nothing was read"),
    (("agent", "list-messages"), "GET /inbox", READ, "nothing was looked at"),
]


@pytest.mark.parametrize(("words", "request_", "answer", "lost"), SPOKEN, ids=[" ".join(each[0]) for each in SPOKEN])
class TestInsideARun:
    def test_it_waits_for_the_next_daemon(
        self, keyboard: Keyboard, words: tuple[str, ...], request_: str, answer: Any, lost: str
    ) -> None:
        """Says so in one line, and is heard once."""
        del lost
        process = keyboard.open(*words, **INSIDE)
        assert process.stderr
        assert process.stderr.readline() == "windlass: the daemon is away; waiting for it, at most 60 s.\n"
        with FakeDaemon(keyboard.home) as daemon:
            daemon.teach(request_, answer)
            _, err = process.communicate(timeout=WITHIN)
            assert (process.returncode, err) == (0, "")
            assert [f"{method} {path}" for method, path, *_ in daemon.asked] == [request_]

    def test_it_says_what_was_lost_when_none_comes(
        self, keyboard: Keyboard, words: tuple[str, ...], request_: str, answer: Any, lost: str
    ) -> None:
        """With exit code 6, so that nobody takes it for said."""
        del request_, answer
        ended = subprocess.run(
            [sys.executable, "-c", SOON, *words],
            capture_output=True,
            text=True,
            cwd=keyboard.folder,
            env=keyboard.environment | INSIDE,
            timeout=WITHIN,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (6, "")
        assert f"The daemon is away, and was not back in 0 s: {lost}." in ended.stderr
        assert not keyboard.home.exists(), "no daemon is started"


def test_what_may_have_been_added_is_not_added_again(keyboard: Keyboard) -> None:
    """Nobody knows whether it was heard: it says so, and leaves it to its writer to look."""
    with FakeDaemon(keyboard.home) as daemon:
        daemon.teach("POST /documents/notes", PAGE)
        daemon.cut = 1
        ended = keyboard.type("context", "document", "append", "x", **INSIDE)
        assert (ended.returncode, "not known whether" in ended.stderr) == (6, True)
        daemon.cut = 2
        assert keyboard.type("context", "document", "write", "x", **INSIDE).returncode == 0, "the same text is the same"
        assert json.dumps(daemon.asked[-1][3]) == '{"body": "x"}'
