"""Conversations and shared documents, from the command line."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Refusal
from typing_room import Keyboard, in_a_repository

ASKED: dict[str, Any] = {
    "conversationId": "m12",
    "status": "pending",
    "toAgentId": "coder",
    "question": "Which port?",
    "fromAgentId": None,
    "answer": None,
    "answerId": None,
    "unread": False,
    "reason": "",
}
ANSWERED = ASKED | {"status": "answered", "fromAgentId": "coder", "answer": "8080.", "answerId": "m13", "unread": True}
QUESTION = {"conversationId": "m12", "fromAgentId": "tester", "question": "Which port?", "taskId": "t3"}
MESSAGE: dict[str, Any] = {
    "id": "m7",
    "time": 1000.0,
    "from": "coder",
    "to": [],
    "message": "Done.",
    "channel": "main",
    "kind": "say",
    "reply_to": None,
    "direct": False,
    "claims": None,
    "status": {},
    "readers": [],
}
TITLE: dict[str, Any] = {
    "name": "notes",
    "instance": "main",
    "revision": 3,
    "author": "coder",
    "time": 1000.0,
    "age_seconds": 5.0,
    "bytes": 6,
}


@pytest.fixture
def keyboard(tmp_path: Path) -> Keyboard:
    return in_a_repository(tmp_path)


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("POST /conversations", ASKED)
        fake.teach("POST /messages/m13/ack", {"receipt": "acked", "status": "acked"})
        yield fake


class TestConversations:
    def test_ask_waits_and_prints_the_answer(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Asked again until there is one; acknowledged when it was shown."""
        answers = iter([ASKED, ANSWERED])
        daemon.teach("GET /conversations/m12", lambda _: next(answers))

        ended = keyboard.type("ask", "--from", "tester", "--agent-id", "coder", "Which port?")

        assert (ended.returncode, ended.stdout) == (0, "8080.\n")
        wanted = {"agent_id": "coder", "from": "tester", "question": "Which port?", "path": str(keyboard.folder)}
        assert daemon.asked[0][3].pop("key") and daemon.asked[0][3] == wanted
        assert [path for _, path, _, _ in daemon.asked][-1] == "/messages/m13/ack"

    def test_a_question_that_may_have_been_heard_is_asked_again_under_the_same_key(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """So that it is asked once; a program may give a key of its own."""
        daemon.cut = 2
        ended = keyboard.type("ask", "--agent-id", "coder", "--no-wait", "Which port?")
        assert ended.returncode == 0, ended.stderr
        keys = [body["key"] for *_, body in daemon.asked]
        assert len(keys) == 3 and len(set(keys)) == 1
        keyboard.type("ask", "--agent-id", "coder", "--no-wait", "--key", "mine", "Which port?")
        assert daemon.asked[-1][3]["key"] == "mine"

    def test_an_answer_that_was_shown_is_acknowledged_when_the_daemon_comes_back(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """Who has the answer has it, and is not told that something failed."""

        def answered(_query: str) -> Any:
            daemon.cut = 2
            return ANSWERED

        daemon.teach("GET /conversations/m12", answered)
        ended = keyboard.type("ask", "--agent-id", "coder", "Which port?")
        assert (ended.returncode, ended.stdout) == (0, "8080.\n"), ended.stderr
        assert [path for _, path, _, _ in daemon.asked][-3:] == ["/messages/m13/ack"] * 3

    def test_an_answer_that_was_read_elsewhere_is_not_acknowledged_again(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """With --json, the keys that programs know."""
        daemon.teach("GET /conversations/m12", ANSWERED | {"unread": False})
        shown = json.loads(keyboard.type("ask", "--task-id", "t3", "Which port?", "--json").stdout)
        assert shown == {"conversationId": "m12", "status": "answered", "answer": "8080.", "fromAgentId": "coder"}
        assert daemon.asked[-1][1] == "/conversations/m12"

    def test_one_need_not_wait_and_may_give_up(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Giving up is exit code 7; the question stays."""
        assert "the answer comes to your inbox" in keyboard.type("ask", "--phase-id", "t1", "--no-wait", "Why?").stdout
        daemon.teach("GET /conversations/m12", ASKED)
        ended = keyboard.type("ask", "--agent-id", "coder", "--timeout", "0.3s", "Why?")
        assert (ended.returncode, "Nobody answered m12 in 0.3 s" in ended.stderr) == (7, True)
        assert "m12 stays open" in ended.stderr and "windlass listen --conversation-id m12" in ended.stderr

    def test_no_answer_will_come_is_said_at_once(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Who ended how, what to do, and an exit code of its own."""
        daemon.teach("GET /conversations/m12", ASKED | {"reason": "coder's run 3 ended (done) without an answer"})
        ended = keyboard.type("ask", "--agent-id", "coder", "Why?")
        assert (ended.returncode, ended.stdout) == (8, "")
        assert "No answer to m12 will come: coder's run 3 ended (done) without an answer." in ended.stderr
        assert "windlass show coder" in ended.stderr and "m12 stays open" in ended.stderr
        told = keyboard.type("ask", "--agent-id", "coder", "Why?", "--json")
        assert (told.returncode, json.loads(told.stdout)["conversationId"]) == (8, "m12")
        assert "ended (done)" in json.loads(told.stdout)["reason"]

    def test_an_answer_can_be_waited_for_later(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """As if one had never stopped waiting; and one listens for one thing."""
        daemon.teach("GET /conversations/m12", ANSWERED)
        assert keyboard.type("listen", "--conversation-id", "m12").stdout == "8080.\n"
        assert daemon.asked[-1][1] == "/messages/m13/ack"
        assert keyboard.type("listen").returncode == 2
        assert keyboard.type("listen", "--agent-id", "coder", "--conversation-id", "m12").returncode == 2

    @pytest.mark.parametrize(
        "words",
        [("Why?",), ("--agent-id", "a", "--task-id", "t1", "Why?"), ("--agent-id", "A", "Why?"), ("--task-id", "")],
    )
    def test_whom_to_ask_must_be_clear(self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]) -> None:
        """One of the three, and a question."""
        assert keyboard.type("ask", *words).returncode == 2
        assert daemon.asked == []

    def test_listen_prints_the_first_question_as_a_line(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """It waits for one."""
        answers = iter([{"conversation": None}, {"conversation": QUESTION}, {"conversation": QUESTION}])
        daemon.teach("GET /conversations/listen", lambda _: next(answers))
        ended = keyboard.type("listen", "--agent-id", "coder")
        assert ended.stdout.count("\n") == 1
        assert json.loads(ended.stdout) == QUESTION
        assert json.loads(keyboard.type("listen", "--agent-id", "coder", "--json").stdout) == QUESTION

    def test_who_listens_must_be_said(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And a refusal is passed on."""
        assert keyboard.type("listen").returncode == 2
        daemon.teach("GET /conversations/listen", Refusal("NotAllowed", "You are tester."))
        assert keyboard.type("listen", "--agent-id", "coder").returncode == 5

    def test_listening_goes_on_when_the_daemon_comes_back(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """An answer that breaks off is asked for again."""
        daemon.cut = 2
        daemon.teach("GET /conversations/listen", {"conversation": QUESTION})
        assert json.loads(keyboard.type("listen", "--agent-id", "coder").stdout) == QUESTION
        assert len(daemon.asked) > 2

    def test_a_conversation_is_answered_without_a_name(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And prints what programs expect."""
        daemon.teach(
            "POST /conversations/m12/answer",
            {
                "conversationId": "m12",
                "status": "answered",
                "answerId": "m13",
                "toAgentId": "tester",
                "askedAgentId": "coder",
            },
        )
        ended = keyboard.type("answer", "--conversation-id", "m12", "8080.")
        assert ended.stdout == '{"conversationId":"m12","status":"answered"}\n'
        assert ended.stderr == "tester has your answer to m12, which it had asked coder.\n"
        inside = keyboard.type("answer", "--conversation-id", "m12", "8080.", WINDLASS_RUN="r1")
        assert (inside.returncode, inside.stderr) == (0, ""), "the one asked knows whom it answers"
        assert daemon.asked[-1][3] == {"answer": "8080."}

    def test_an_answer_that_may_have_been_heard_is_given_again(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The same words from the same one are the same answer."""
        daemon.cut = 2
        settled = {"conversationId": "m12", "status": "answered", "answerId": "m13"}
        daemon.teach("POST /conversations/m12/answer", settled | {"toAgentId": "tester", "askedAgentId": "coder"})
        ended = keyboard.type("answer", "--conversation-id", "m12", "8080.")
        assert ended.returncode == 0, ended.stderr
        assert [body for *_, body in daemon.asked] == [{"answer": "8080."}] * 3

    @pytest.mark.parametrize(
        "words", [(), ("coder",), ("--conversation-id", "m12"), ("--conversation-id", "m12", "coder", "8080.")]
    )
    def test_a_name_or_a_conversation_but_not_both(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]
    ) -> None:
        """Ambiguous words are refused, with the form to write instead."""
        ended = keyboard.type("answer", *words)
        assert (ended.returncode, "answer" in ended.stderr) == (2, True)
        assert daemon.asked == []


class TestWaiting:
    def test_waiting_goes_on_from_where_it_was(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Nothing that is said between two requests is missed."""
        answers = iter([{"items": [], "since": "m6"}, {"items": [MESSAGE], "since": "m7"}])
        daemon.teach("GET /messages/wait", lambda _: next(answers))
        ended = keyboard.type("context", "wait")
        assert ended.returncode == 0 and "coder  (main)\n  Done." in ended.stdout
        assert ["since=m6" in query for _, _, query, _ in daemon.asked] == [False, True]

    def test_where_it_begins_is_known_before_it_waits(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """So that what is said while the daemon is away is heard from the next one."""

        def answer(query: str) -> Any:
            if "since=" in query:
                return {"items": [MESSAGE], "since": "m7"}
            daemon.cut = 2
            return {"items": [], "since": "m6"}

        daemon.teach("GET /messages/wait", answer)
        assert keyboard.type("context", "wait").returncode == 0
        queries = [query for _, _, query, _ in daemon.asked]
        assert "timeout=0&" in f"{queries[0]}&", "the first one is short"
        assert ["since=m6" in each for each in queries] == [False, True, True, True]

    def test_nothing_in_time_is_exit_code_7(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """With a sentence, not a trace."""
        daemon.teach("GET /messages/wait", {"items": [], "since": "m0"})
        ended = keyboard.type("context", "wait", "--timeout", "0.2s")
        assert (ended.returncode, ended.stdout) == (7, "")
        assert "Nothing was said in 0.2 s." in ended.stderr
        told = keyboard.type("context", "wait", "--timeout", "0.2s", "--json")
        assert (told.returncode, json.loads(told.stdout)) == (7, {"items": [], "since": "m0"})


class TestDocuments:
    def test_a_document_is_printed_as_it_is(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Byte by byte where it goes into a file; the revision is in the JSON."""
        daemon.teach("GET /documents/notes", TITLE | {"body": "a\n\tü"})
        assert keyboard.bytes("context", "document", "read") == "a\n\tü".encode()
        assert json.loads(keyboard.type("context", "document", "read", "--json").stdout)["revision"] == 3
        shown = keyboard.on_terminal("context", "document", "read")[1]
        assert shown.startswith("a\n") and shown.endswith("ü\n"), "on a terminal, its last line ends"
        daemon.teach("GET /documents/plan", TITLE | {"body": "x"})
        keyboard.type("context", "document", "read", "--name", "plan", "--revision", "2", "--instance", "pr-7")
        assert daemon.asked[-1][1] == "/documents/plan"
        assert daemon.asked[-1][2].endswith("&instance=pr-7&revision=2")

    def test_writing_and_adding(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A write may say which revision it replaces; adding needs none."""
        daemon.teach("POST /documents/notes", TITLE | {"body": "x"})
        ended = keyboard.type("context", "document", "write", "-", "--revision", "2", stdin="new\n")
        assert ended.stdout == "notes is at revision 3.\n"
        assert daemon.asked[-1][3] == {"body": "new\n", "path": str(keyboard.folder), "revision": 2}
        keyboard.type("context", "document", "append", "more")
        assert daemon.asked[-1][3] == {"body": "more", "append": True, "path": str(keyboard.folder)}
        shown = json.loads(keyboard.type("context", "document", "append", "more", "--json").stdout)
        assert shown == TITLE

    def test_a_document_can_be_emptied(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """No revision of it is lost."""
        daemon.teach("POST /documents/notes", TITLE | {"body": ""})
        assert keyboard.type("context", "document", "write", "").returncode == 0
        assert daemon.asked[-1][3]["body"] == ""

    def test_a_conflict_is_said_with_both_revisions(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Exit code 4."""
        daemon.teach("POST /documents/notes", Refusal("Conflict", "It has revision 3 by now, not 2.", "Read it again."))
        ended = keyboard.type("context", "document", "write", "x", "--revision", "2")
        assert (ended.returncode, ended.stderr.count("\n")) == (4, 2)

    def test_the_list_and_the_history(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Who wrote what, and when."""
        daemon.teach("GET /documents", lambda _: {"as_of": time.time(), "items": [TITLE]})
        daemon.teach("GET /documents/notes/history", lambda _: {"as_of": time.time(), "items": [TITLE, TITLE]})
        lines = keyboard.type("context", "document", "list").stdout.splitlines()
        assert lines[0].split() == ["NAME", "REVISION", "BY", "AGE", "BYTES"]
        assert lines[1].split() == ["notes", "3", "coder", "5", "s", "6"]
        assert len(json.loads(keyboard.type("context", "document", "history", "--json").stdout)) == 2
        daemon.teach("GET /documents", {"as_of": time.time(), "items": []})
        assert "No document yet" in keyboard.type("context", "document", "list").stdout

    @pytest.mark.parametrize("words", [("write",), ("append", " "), ("read", "--name", " ")])
    def test_what_is_empty_is_refused(self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]) -> None:
        """Before the daemon is asked."""
        assert keyboard.type("context", "document", *words).returncode == 2
        assert daemon.asked == []


COMMANDS = [
    *(("send",), ("peek",), ("inbox",), ("read",), ("ack",), ("ask",), ("listen",), ("answer",), ("watch",)),
    *(("agent", each) for each in ("send-message", "list-messages", "ack-message")),
    *(("context", each) for each in ("send", "read", "peek", "wait")),
    *(("context", "document", each) for each in ("list", "read", "write", "append", "history")),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_explains_itself_with_examples(keyboard: Keyboard, words: tuple[str, ...]) -> None:
    """And has its JSON form, without asking a daemon."""
    text = keyboard.type(*words, "--help").stdout
    assert f"Examples:\n    windlass {' '.join(words)}" in text
    assert "json" in text.lower()
