"""The requests and the output of commands that talk, for people and for programs."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Refusal
from samples import EVIL
from typing_room import WITHIN, Keyboard, in_a_repository

READER: dict[str, Any] = {"message": "m12", "name": "reviewer", "status": "pending", "wakes": True, "reason": ""}
MESSAGE: dict[str, Any] = {
    "id": "m12",
    "time": 1000.0,
    "from": "human",
    "to": ["reviewer", "coder"],
    "message": "Look at it.\nAll of it.",
    "channel": "main",
    "kind": "say",
    "reply_to": None,
    "direct": True,
    "claims": None,
    "status": {"reviewer": "pending", "coder": "pending"},
    "readers": [
        READER | {"outlook": "is started with it now"},
        READER | {"name": "coder", "outlook": "waits: busy; it is woken when this run ends"},
    ],
}
LETTER = MESSAGE | {"from": "coder", "to": ["human"], "reader": "human", "receipt": "read", "wakes": True, "reason": ""}
SENT = {"message": MESSAGE}


@pytest.fixture
def keyboard(tmp_path: Path) -> Keyboard:
    return in_a_repository(tmp_path)


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("POST /messages", SENT)
        fake.teach("GET /messages", lambda _: {"as_of": time.time(), "items": [MESSAGE]})
        fake.teach("GET /inbox", lambda _: {"as_of": time.time(), "items": [LETTER]})
        fake.teach("POST /inbox/read", lambda _: {"as_of": time.time(), "items": [LETTER], "told": []})
        fake.teach("POST /inbox/ack", {"as_of": 1.0, "items": []})
        fake.teach("POST /messages/m12/ack", READER | {"status": "acked"})
        yield fake


class TestSend:
    def test_says_for_each_reader_what_will_happen(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Who gets it, and whether now or why not."""
        shown = keyboard.type("send", "Look at it.", "--to", "reviewer", "--to", "coder@pr-7").stdout

        assert shown.splitlines() == [
            "m12 in main to reviewer, coder",
            "  reviewer  is started with it now",
            "  coder     waits: busy; it is woken when this run ends",
        ]
        sent = daemon.asked[-1][3]
        assert (sent["body"], sent["to"]) == ("Look at it.", ["reviewer", "coder@pr-7"])
        assert "all" not in sent and "handoff" not in sent

    def test_the_repository_that_one_stands_in_is_sent_but_not_from_inside_a_run(
        self, keyboard: Keyboard, daemon: FakeDaemon, tmp_path: Path
    ) -> None:
        """An agent's worktree is no project; the daemon knows whose it is."""
        keyboard.type("send", "Hello.", "--all")
        assert daemon.asked[-1][3]["path"] == str(tmp_path)
        assert daemon.asked[-1][3]["all"] is True
        keyboard.type("send", "Hello.", "--all", WINDLASS_RUN="r1")
        assert "path" not in daemon.asked[-1][3]

    def test_the_text_may_come_from_standard_input(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Line by line as it is; an empty one is refused before anything is sent."""
        keyboard.type("send", "-", "--to", "coder", stdin="one\n\n  two\n")
        assert daemon.asked[-1][3]["body"] == "one\n\n  two\n"
        ended = keyboard.type("send", "-", "--to", "coder", stdin=" \n")
        assert (ended.returncode, "TEXT is empty" in ended.stderr) == (2, True)
        assert len(daemon.asked) == 1

    def test_a_hand_off_says_what_was_done_and_why(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The text is what is needed. The daemon says what is missing, as for every other message."""
        given = ("--done", "It parses.", "--file", "a.py", "--file", "b.py", "--why", "0.3")
        keyboard.type("send", "Test it.", "--to", "tester", *given)
        wanted = {"done": "It parses.", "files": ["a.py", "b.py"], "why": "0.3"}
        assert daemon.asked[-1][3]["handoff"] == wanted
        daemon.teach("POST /messages", Refusal("BadInput", "Whom is it for?", "Name the reader with --to."))
        ended = keyboard.type("send", "@tester test it.", *given)
        assert (ended.returncode, ended.stderr) == (2, "windlass: Whom is it for?\nName the reader with --to.\n")
        assert (daemon.asked[-1][3]["to"], daemon.asked[-1][3]["handoff"]) == ([], wanted)

    def test_every_other_option_is_sent(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The sender, the channel, what it replies to, and a key of one's own."""
        typed = {"from": "coder", "channel": "task/t3", "reply_to": "m3", "key": "mine"}
        words = [word for name, value in typed.items() for word in (f"--{name.replace('_', '-')}", value)]
        keyboard.type("send", "Yes.", *words)
        assert {key: daemon.asked[-1][3].get(key) for key in typed} == typed

    def test_json_is_the_message(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """With the keys that the help promises."""
        value = json.loads(keyboard.type("send", "Look.", "--to", "coder", "--json").stdout)
        assert value == MESSAGE
        text = keyboard.type("send", "--help").stdout
        assert [key for key in [*value, "wakes", "reason", "outlook"] if not re.search(rf"\b{key}\b", text)] == []

    @pytest.mark.parametrize("whom", ["a@b@c", "Coder", "x@", "", "a b"])
    def test_what_is_no_address_is_refused_before_it_is_sent(
        self, keyboard: Keyboard, daemon: FakeDaemon, whom: str
    ) -> None:
        """With exit code 2 and how one is written."""
        ended = keyboard.type("send", "Hello.", "--to", whom)
        assert ended.returncode == 2
        assert "Write name" in ended.stderr or "lower-case" in ended.stderr
        assert daemon.asked == []

    @pytest.mark.parametrize(
        ("words", "says"),
        [
            (("send", "hello", "coder"), 'windlass send "…" --to NAME'),
            (("context", "send", "hello", "coder"), 'windlass context send "…" --to NAME'),
            (("ask", "coder", "Which port?"), 'windlass ask --agent-id NAME "…"'),
            (("send", "hello", "--to", "CODER"), "Did you mean coder?"),
            (("ask", "Why?", "--agent-id", "Coder@PR-7"), "Did you mean coder@pr-7?"),
            (("send", "hello", "--to"), "Run `windlass send --help` for examples."),
        ],
    )
    def test_a_slip_says_how_it_is_written(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...], says: str
    ) -> None:
        """Words without quotes, capitals, an option without its value."""
        ended = keyboard.type(*words)
        assert (ended.returncode, says in ended.stderr) == (2, True), ended.stderr
        assert daemon.asked == []

    def test_an_unknown_reader_is_an_error_with_the_near_miss(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """In the daemon's words, with exit code 3."""
        daemon.teach("POST /messages", Refusal("NotFound", "There is no agent codr here.", "Did you mean coder?"))
        ended = keyboard.type("send", "Hello.", "--to", "codr")
        assert (ended.returncode, ended.stdout) == (3, "")
        assert ended.stderr == "windlass: There is no agent codr here.\nDid you mean coder?\n"

    def test_nobody_addressed_is_said(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Something said to nobody is kept, and wakes nobody."""
        daemon.teach("POST /messages", {"message": MESSAGE | {"readers": []}})
        assert "nobody is addressed, so nobody is woken" in keyboard.type("send", "Hm.").stdout

    def test_a_daemon_that_dies_before_it_answers_is_told_again_under_the_same_key(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """So that it is said once, whether the first was heard or not."""
        daemon.cut = 2
        ended = keyboard.type("send", "Once.", "--to", "coder")

        assert ended.returncode == 0, ended.stderr
        keys = [body["key"] for *_, body in daemon.asked]
        assert len(keys) == 3 and len(set(keys)) == 1

    def test_without_a_daemon_an_agent_leaves_it_in_its_chat(self, keyboard: Keyboard, tmp_path: Path) -> None:
        """As lines that the daemon reads when it is back."""
        (tmp_path / "w/.windlass/output").mkdir(parents=True)
        inside = {
            "WINDLASS_RUN": "r1",
            "WINDLASS_AGENT": "coder",
            "WINDLASS_SIGNAL": str(tmp_path / "w/.windlass/output/signal.json"),
        }
        chat = tmp_path / "w/.windlass/chat.md"

        chat.touch()
        ended = keyboard.type("send", "Look at it.\n[x-to-y]: no", "--to", "reviewer", "--to", "human", **inside)

        assert ended.returncode == 0 and "Left in chat.md" in ended.stdout
        assert chat.read_text() == "\n[coder-to-reviewer] @ [human]: Look at it.\n    [x-to-y]: no\n"


class TestReading:
    def test_peek_shows_who_said_what_to_whom(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And passes on what was asked for."""
        ended = keyboard.type("peek", "--to", "coder", "--since", "m3", "--limit", "5", "--channel", "main")
        assert re.match(r"m12  \d\d:\d\d:\d\d  human → reviewer, coder  \(main, direct\)\n", ended.stdout)
        assert "\n  Look at it.\n  All of it.\n" in ended.stdout
        asked = {part for part in daemon.asked[-1][2].split("&") if not part.startswith("path=")}
        assert asked == {"channel=main", "limit=5", "since=m3", "to=coder"}

    @pytest.mark.parametrize("words", [("--limit", "0"), ("--since", "m/3"), ("--to", "A")])
    def test_what_can_not_be_is_refused(self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, str]) -> None:
        """With exit code 2, before the daemon is asked."""
        assert keyboard.type("peek", *words).returncode == 2
        assert daemon.asked == []

    def test_a_claim_is_shown_as_one(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A person's line that names an agent is the person's."""
        daemon.teach("GET /messages", {"as_of": 1.0, "items": [MESSAGE | {"claims": "coder", "kind": "handoff"}]})
        shown = keyboard.type("peek").stdout
        assert "human (says that it is coder) → " in shown
        assert "(main, handoff, direct)" in shown

    def test_text_that_would_steer_the_terminal_is_harmless(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """An agent chooses what it says, and nobody's terminal obeys it."""
        daemon.teach("GET /messages", {"as_of": 1.0, "items": [MESSAGE | {"message": EVIL, "channel": EVIL}]})
        for words in (("peek",), ("context", "peek")):
            assert not set("\x1b\u202e\x07") & set(keyboard.type(*words).stdout)

    def test_the_inbox_says_how_far_each_got_and_why_not_further(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """One's own, or that of an agent."""
        daemon.teach("GET /inbox", {"as_of": 1.0, "items": [LETTER | {"receipt": "failed", "reason": "it crashed"}]})
        assert "failed: it crashed" in keyboard.type("inbox", "coder", "--all").stdout
        assert daemon.asked[-1][2].startswith("name=coder&all=1")
        daemon.teach("GET /inbox", {"as_of": 1.0, "items": []})
        assert keyboard.type("inbox").stdout.startswith("Nothing for you.\n")
        assert keyboard.type("inbox", "coder").stdout.startswith("Nothing for coder.\n")

    def test_reading_and_acknowledging(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Messages that were shown are acknowledged, and no others."""
        assert "Look at it." in keyboard.type("read", "--limit", "1").stdout
        assert [request[1] for request in daemon.asked] == ["/inbox/read", "/inbox/ack"]
        assert [request[3] for request in daemon.asked] == [
            {"limit": 1, "look": True, "path": str(keyboard.folder)},
            {"ids": ["m12"]},
        ]
        keyboard.type("context", "read", "--since", "m9", "--channel", "main")
        assert daemon.asked[-2][3] == {"since": "m9", "channel": "main", "look": True, "path": str(keyboard.folder)}
        assert keyboard.type("ack", "m12").stdout == "m12 is acked.\n"
        assert json.loads(keyboard.type("ack", "m12", "--json").stdout)["status"] == "acked"
        assert keyboard.type("ack", "m/1").returncode == 2

    def test_several_can_be_acknowledged_at_once(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Each once; one that is not there keeps none of the others."""
        daemon.teach("POST /messages/m13/ack", READER | {"message": "m13", "status": "acked"})
        assert keyboard.type("ack", "m12", "m13", "m12").stdout == "m12 is acked.\nm13 is acked.\n"
        daemon.teach("POST /messages/m99/ack", Refusal("NotFound", "human was never sent m99."))
        ended = keyboard.type("agent", "ack-message", "m99", "m13")
        assert (ended.returncode, ended.stdout) == (3, "m13 is acked.\n")
        assert "never sent m99" in ended.stderr
        shown = json.loads(keyboard.type("ack", "m12", "m13", "--json").stdout)
        assert [each["message"] for each in shown] == ["m12", "m13"]
        assert keyboard.type("ack").returncode == 2
        daemon.teach("POST /messages/m13/ack", READER | {"message": "m13", "status": "acked", "acknowledged": 5})
        assert keyboard.type("ack", "m13", "--before").stdout == "m13 is acked, with 4 before it.\n"
        assert daemon.asked[-1][3] == {"before": True}

    def test_a_huge_message_is_cut_and_says_how_to_see_it_whole(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """`peek` cuts long messages; `read` and --json have them whole."""
        huge = "\n".join(f"line {number}" for number in range(9000))
        listing = {"as_of": 1.0, "items": [LETTER | {"message": huge}, LETTER | {"message": "short"}], "told": []}
        for request in ("GET /messages", "GET /inbox", "POST /inbox/read"):
            daemon.teach(request, listing)
        for words in (("peek",), ("inbox",), ("context", "peek"), ("agent", "list-messages")):
            shown = keyboard.type(*words).stdout
            assert len(shown) < 6000 and "line 8999" not in shown and "short" in shown
            assert f"… {len(huge) - 4000} characters more: `windlass {' '.join(words)} --full` shows them." in shown
            assert "line 8999" in keyboard.type(*words, "--full").stdout
        assert "line 8999" in keyboard.type("read").stdout
        assert json.loads(keyboard.type("peek", "--json").stdout)[0]["message"] == huge

    def test_reading_says_what_else_it_acknowledges(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Messages that the prompt contained are not shown again, and are acknowledged."""
        daemon.teach("POST /inbox/read", {"as_of": 1.0, "items": [], "told": ["m3", "m4"]})
        said = "Nothing new.\nAcknowledged, too, because your prompt told you: m3, m4.\n"
        assert keyboard.type("read").stdout == keyboard.type("context", "read").stdout == said
        assert json.loads(keyboard.type("read", "--json").stdout) == []
        assert [request[3] for request in daemon.asked if request[1] == "/inbox/ack"] == [{"ids": ["m3", "m4"]}] * 3
        assert "prompt" in keyboard.type("read", "--help").stdout

    @pytest.mark.parametrize("words", [("read",), ("read", "--json"), ("context", "read")])
    def test_what_nobody_could_see_is_not_acknowledged(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]
    ) -> None:
        """The reader has left before it is shown."""
        left = threading.Event()

        def unread(_query: str) -> Any:
            left.wait(WITHIN)
            return {"as_of": 1.0, "items": [LETTER], "told": ["m3"]}

        daemon.teach("POST /inbox/read", unread)
        with keyboard.open(*words) as reading:
            assert reading.stdout
            reading.stdout.close()
            left.set()
            reading.wait(WITHIN)
        assert [request[1] for request in daemon.asked] == ["/inbox/read"]

    def test_reading_goes_on_when_the_daemon_comes_back(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Looking and acknowledging count once: each is asked again, and shown is it once."""
        daemon.cut = 1

        def unread(_query: str) -> Any:
            daemon.cut = 1
            return {"as_of": 1.0, "items": [LETTER], "told": []}

        daemon.teach("POST /inbox/read", unread)
        ended = keyboard.type("read", "--json")
        assert (ended.returncode, len(json.loads(ended.stdout))) == (0, 1), ended.stderr
        assert [request[1] for request in daemon.asked] == ["/inbox/read"] * 2 + ["/inbox/ack"] * 2

    @pytest.mark.parametrize("words", [("ack", "m12", "m13"), ("agent", "ack-message", "m12", "m13")])
    def test_acknowledging_goes_on_when_the_daemon_comes_back(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]
    ) -> None:
        """It counts once, so it is done again; the others follow."""
        daemon.teach("POST /messages/m13/ack", READER | {"message": "m13", "status": "acked"})
        daemon.cut = 2
        ended = keyboard.type(*words)
        assert (ended.returncode, ended.stdout) == (0, "m12 is acked.\nm13 is acked.\n"), ended.stderr
        assert [request[1] for request in daemon.asked] == ["/messages/m12/ack"] * 3 + ["/messages/m13/ack"]

    @pytest.mark.parametrize("words", [("peek",), ("inbox",), ("read",), ("context", "peek"), ("context", "read")])
    def test_json_is_a_list(self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]) -> None:
        """Of messages, for programs."""
        [value] = json.loads(keyboard.type(*words, "--json").stdout)
        assert value["message"] == MESSAGE["message"]


class TestAgentNames:
    """The commands that agents of another system know."""

    def test_a_message_to_one_or_to_all(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The same verb as `send`."""
        keyboard.type("agent", "send-message", "supervisor", "Unclear.")
        assert (daemon.asked[-1][3]["to"], daemon.asked[-1][3]["body"]) == (["supervisor"], "Unclear.")
        keyboard.type("agent", "send-message", "--all", "Main is red.")
        assert (daemon.asked[-1][3]["all"], daemon.asked[-1][3]["body"]) == (True, "Main is red.")

    @pytest.mark.parametrize("words", [("supervisor",), ("--all", "x", "y"), ("a", "b", "c"), ("A B", "text")])
    def test_a_slip_is_a_usage_error(self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]) -> None:
        """Nothing is sent to the wrong one."""
        assert keyboard.type("agent", "send-message", *words).returncode == 2
        assert daemon.asked == []

    def test_the_list_has_the_promised_keys(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Id, from, to, timestamp, body, status."""
        [value] = json.loads(keyboard.type("agent", "list-messages", "--json").stdout)
        promised = {"id": "m12", "from": "coder", "to": ["human"], "timestamp": "1970-01-01T00:16:40Z"}
        promised |= {"body": MESSAGE["message"], "status": "read"}
        assert {key: value[key] for key in promised} == promised
        assert list(value)[:6] == list(promised)
        assert keyboard.type("agent", "ack-message", "m12").stdout == "m12 is acked.\n"
        assert "coder → human" in keyboard.type("agent", "list-messages").stdout


def test_how_a_task_went_is_printed_as_xml(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """For programs that coordinate; while an agent is at it, there is nothing to tell."""
    text = "<task-notification>\n  <task-id>t1</task-id>\n</task-notification>"
    daemon.teach("GET /agents/coder", {"notification": text})
    assert keyboard.type("show", "coder", "--xml").stdout == f"{text}\n"
    daemon.teach("GET /agents/coder", {"notification": None})
    ended = keyboard.type("show", "coder", "--xml")
    assert (ended.returncode, "still at it" in ended.stderr) == (3, True)
