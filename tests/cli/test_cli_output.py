"""The output of commands, for people and for programs."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Stream
from samples import CHANGE, CHECK, EVIL
from typing_room import WITHIN, Keyboard

AGENT: dict[str, Any] = {
    "name": "swift-otter",
    "instance": "",
    "source": "work",
    "status": "running",
    "evidence": "pid 4711 alive, last output 3 s ago",
    "age_seconds": 34.0,
    "task": "t3",
    "provider": "scripted",
    "run": "r7",
    "cost_usd": 0.0,
    "task_title": "Fix the login race that shows when two requests meet in the night",
    "project": "shop",
}
RUN: dict[str, Any] = {
    "id": "r7",
    "number": 1,
    "cause": "task",
    "outcome": "crashed",
    "reason": "exit code 3",
    "evidence": [],
    "exit_code": 3,
    "pid": 4711,
    "session": "",
    "started_at": 1000.0,
    "ended_at": 1090.0,
    "usage": {},
}
PAGE: dict[str, Any] = {
    **AGENT,
    "runs": [RUN],
    "session": "s-1",
    "worktree": "/w/swift-otter",
    "branch": "work/swift-otter",
    "model": "gpt-5.5",
    "usage": {"input_tokens": 1234, "output_tokens": 5, "cost_usd": 0.12},
    "cost_usd": 0.12,
    "unpriced_runs": 0,
    "questions": [{"id": "q1", "question": "May I drop the table?"}],
    "change": CHANGE,
    "reports": [{"time": 1000.0, "body": "Half\ndone."}],
}
RECEIPT: dict[str, Any] = {
    "change": "c3",
    "title": "Fix the login race",
    "agent": "swift-otter",
    "task": "t3",
    "main": "trunk",
    "before": "a" * 40,
    "after": "b" * 40,
    "tree": "c" * 40,
    "commit_count": 1,
    "commits": ["d" * 40],
    "file_count": 2,
    "files": ["login.py", "test_login.py"],
    "checks": [CHECK],
    "landed_at": 1000.0,
    "moved_to": "bbbbbbbbbbbbbbbb",
    "tested_tree": "dddddddddddddddd",
    "tested_with": ["c4"],
    "tests": {"before": {"ran": 9, "skipped": 0}, "after": {"ran": 7, "skipped": 1}, "complaint": "2 fewer ran"},
    "failed_before": 1,
    "undo": "windlass undo c3",
}


@pytest.fixture
def daemon(keyboard: Keyboard) -> Iterator[FakeDaemon]:
    with FakeDaemon(keyboard.home) as fake:
        fake.teach("GET /agents", lambda _: {"as_of": time.time(), "items": [AGENT]})
        fake.teach("GET /queue", lambda _: {"as_of": time.time(), "items": [CHANGE]})
        fake.teach("GET /agents/swift-otter", PAGE)
        fake.teach("GET /changes/c3/receipt", RECEIPT)
        yield fake


class TestList:
    def test_shows_status_with_its_evidence_and_how_old_the_facts_are(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """One aligned line per agent, all of it when there is no terminal to fit."""
        lines = keyboard.type("list").stdout.splitlines()

        assert lines[0].split() == ["NAME", "SOURCE", "STATUS", "EVIDENCE", "AGE", "TASK", "PROVIDER"]
        assert AGENT["evidence"] in lines[1]
        assert AGENT["task_title"] in lines[1]
        assert lines[0].index("TASK") == lines[1].index("Fix the login")
        assert re.fullmatch(r"as of \d\.\d s ago", lines[-1])

    def test_json_is_an_array_with_the_stable_keys(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Programs get the promised keys."""
        keys = "name instance source status evidence age_seconds task provider run cost_usd".split()

        (item,) = json.loads(keyboard.type("list", "--json").stdout)

        assert set(keys) <= set(item)

    @pytest.mark.parametrize(
        ("dollars", "unpriced", "shown"),
        [(0.0, 0, ""), (1.5, 0, "$1.50"), (None, 2, "unknown"), (1.5, 1, "over $1.50")],
    )
    def test_a_price_that_nobody_knows_is_not_nothing(
        self, keyboard: Keyboard, daemon: FakeDaemon, *, dollars: float | None, unpriced: int, shown: str
    ) -> None:
        """Unknown, or more than what is known; the page of an agent says the same."""
        cost = {"cost_usd": dollars, "unpriced_runs": unpriced}
        daemon.teach("GET /agents", {"as_of": time.time(), "items": [AGENT | cost]})
        daemon.teach("GET /agents/swift-otter", PAGE | cost)

        row, page = keyboard.type("list").stdout.splitlines()[1], keyboard.type("show", "swift-otter").stdout

        assert row.endswith(f"scripted  {shown}".rstrip())
        assert f"5 out{', ' if shown else ''}{'cost unknown' if dollars is None else shown}\n" in page

    def test_ls_is_the_same_and_all_and_here_are_asked_for(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """--all and --here reach the daemon; --here as the folder that one stands in."""
        assert keyboard.type("ls", "--all", "--here").returncode == 0

        _, _, query, _ = daemon.asked[-1]
        assert query.startswith("all=1&path=%2F")

    def test_an_empty_list_says_what_to_do(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Nobody at work: the next command is named."""
        daemon.teach("GET /agents", {"as_of": time.time(), "items": []})

        assert "windlass work" in keyboard.type("list").stdout

    @pytest.mark.parametrize("columns", [100, 60, 40, 24])
    def test_no_line_is_wider_than_the_terminal(self, keyboard: Keyboard, daemon: FakeDaemon, columns: int) -> None:
        """Texts are shortened and columns spared, so that nothing wraps."""
        _, shown = keyboard.on_terminal("list", columns=columns, NO_COLOR="1")

        assert max(map(len, shown.splitlines())) <= columns
        assert "NAME" in shown
        assert "TASK" in shown

    def test_wide_letters_keep_the_columns_aligned(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A Japanese title takes two cells per letter."""
        daemon.teach("GET /agents", {"as_of": time.time(), "items": [{**AGENT, "task_title": "日本"}, AGENT]})

        first, second = keyboard.type("list").stdout.splitlines()[1:3]

        assert second.index("scripted") - first.index("scripted") == 2

    def test_colour_only_on_a_terminal_that_wants_it(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """None in a pipe, none with NO_COLOR, none on a dumb terminal."""
        assert "\x1b[" in keyboard.on_terminal("list")[1]
        assert "\x1b" not in keyboard.on_terminal("list", NO_COLOR="1")[1]
        assert "\x1b" not in keyboard.on_terminal("list", TERM="dumb")[1]
        assert "\x1b" not in keyboard.type("list").stdout


class TestHarmless:
    @pytest.mark.parametrize("words", [("list",), ("show", "swift-otter"), ("logs", "swift-otter"), ("queue",)])
    def test_no_agent_can_play_tricks_on_a_terminal(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...]
    ) -> None:
        """Clipboard, clear-screen and bidi sequences are shown as text."""
        daemon.teach("GET /agents", {"as_of": time.time(), "items": [{**AGENT, "task_title": EVIL}]})
        daemon.teach("GET /agents/swift-otter", {**PAGE, "reports": [{"time": 1.0, "body": EVIL}]})
        daemon.teach("GET /queue", {"as_of": time.time(), "items": [{**CHANGE, "reason": EVIL}]})
        chunk = {"run": "r7", "number": 1, "offset": 0, "time": 1.0, "raw": base64.b64encode(EVIL.encode()).decode()}
        daemon.teach("GET /agents/swift-otter/logs", lambda _: Stream.of(chunk))

        _, shown = keyboard.on_terminal(*words, columns=200, NO_COLOR="1")

        assert "gnp.exe" in shown
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)

    def test_json_is_ascii(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """JSON on a terminal is as harmless, and still says the same."""
        daemon.teach("GET /agents", {"as_of": time.time(), "items": [{**AGENT, "task_title": EVIL}]})

        shown = keyboard.type("list", "--json").stdout

        assert shown.isascii()
        assert json.loads(shown)[0]["task_title"] == EVIL


class TestShow:
    def test_a_page_has_runs_questions_and_the_next_commands(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """All about one agent, ending with what one would type next."""
        shown = keyboard.type("show", "swift-otter").stdout

        for part in ("crashed", "exit code 3", "1,234 tokens in, 5 out, $0.12", "May I drop", "c3 testing", "  done."):
            assert part in shown
        assert re.search(r"^Model +gpt-5\.5$", shown, re.MULTILINE)
        assert 'windlass answer swift-otter "…"' in shown

    def test_json_is_one_object_with_the_stable_keys(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Programs get all that the list has, and runs, session, worktree and usage."""
        page = json.loads(keyboard.type("show", "swift-otter", "--json").stdout)

        assert {"name", "status", "runs", "session", "worktree", "usage"} <= set(page)


class TestLogs:
    def test_raw_prints_the_very_bytes(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """--raw is for programs: nothing is changed."""
        content = "caf\u00e9 \x1b[1m\r\n".encode()
        chunk = {"run": "r7", "number": 1, "offset": 0, "time": 1.0, "raw": base64.b64encode(content).decode()}
        daemon.teach("GET /agents/swift-otter/logs", lambda _: Stream.of({**chunk, "text": "café"}))

        printed = keyboard.bytes("logs", "swift-otter", "--raw")

        assert printed == content

    def test_follow_and_run_are_asked_for_and_lines_come_as_they_are(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """Chunks that end in mid-line or in mid-letter are put together; a new run begins a new line."""
        pieces = ((2, 0, b"one\r"), (2, 4, b"\ntw\xc3"), (2, 8, b"\xb6"), (3, 0, b"three\n"))
        chunks = [
            {
                "run": f"r{number}",
                "number": number,
                "offset": offset,
                "time": 1.0,
                "raw": base64.b64encode(piece).decode(),
            }
            for number, offset, piece in pieces
        ]
        daemon.teach("GET /agents/swift-otter/logs", lambda _: Stream.of(*chunks))

        shown = keyboard.type("logs", "swift-otter", "-f", "--run", "2").stdout

        assert shown == "one\ntwö\nthree\n"
        assert daemon.asked[-1][2] == "follow=1&run=2"

    def test_output_for_programs_is_shown_as_what_it_means(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A CLI that prints JSON is read for people; its times are those of its chunks."""
        raw = base64.b64encode(b'{"type":"text"}\n').decode()
        chunk = {"run": "r7", "number": 1, "offset": 0, "time": 1.0, "raw": raw, "said": ["Reading a.py", "\x1b[2J"]}
        daemon.teach("GET /agents/swift-otter/logs", lambda _: Stream.of(chunk))

        assert keyboard.type("logs", "swift-otter").stdout == "Reading a.py\n\\x1b[2J\n"
        assert keyboard.type("logs", "swift-otter", "-t").stdout.startswith("00:00:01  Reading a.py\n00:00:01  ")


class TestDiff:
    def test_a_pipe_gets_the_exact_patch(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A difference for `git apply` is not escaped."""
        patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-\ta\x0c\n+b\n"
        daemon.teach("GET /agents/swift-otter/diff", {"diff": patch})

        assert keyboard.type("diff", "swift-otter").stdout == patch
        assert "\x0c" not in keyboard.on_terminal("diff", "swift-otter")[1]

    def test_no_character_of_a_diff_makes_a_line_of_its_own(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Or an added line could look like one that was there before; escapes are shown, and steer nothing."""
        forged = "@@ -1 +1,2 @@\n+x\x0c y\x85-z\u2028 w\x1b]52;c;aGk=\x07\n"
        daemon.teach("GET /agents/swift-otter/diff", {"diff": forged})
        shown = keyboard.on_terminal("diff", "swift-otter", NO_COLOR="1")[1]
        assert shown.replace("\r", "").splitlines()[1] == "+x\\x0c y\\x85-z\\u2028 w\\x1b]52;c;aGk=\\x07"


class TestReceipt:
    def test_ends_with_the_command_that_undoes_it(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Trees, checks and files; then how to take it back."""
        shown = keyboard.type("receipt", "c3").stdout

        assert "on trunk" in shown
        assert "landed at once with c4, checked together as dddddddddd" in shown
        assert "7 ran, 1 skipped; 2 fewer ran than before" in shown
        assert "1 time before, with these commits" in shown
        assert "pytest -q: passed in 1.2 s on tree cccccccccc (bubblewrap)" in shown
        assert "2: login.py, test_login.py" in shown
        assert shown.rstrip().endswith("windlass undo c3")


class TestDaemon:
    def test_status_json_has_the_stable_keys(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """pid, version, uptime, home and how many agents are at work."""
        status = {"pid": 7, "version": "0.1.0", "uptime_seconds": 3.0, "home": "/h", "agents": 2, "troubles": []}
        daemon.teach("GET /status", status)

        shown = json.loads(keyboard.type("daemon", "status", "--json").stdout)

        assert {"pid", "version", "uptime_seconds", "home", "agents"} <= set(shown)

    def test_logs_shows_the_last_lines_of_the_file_without_a_daemon(self, keyboard: Keyboard) -> None:
        """The log is read from the file, and made harmless."""
        keyboard.home.mkdir()
        (keyboard.home / "daemon.log").write_text("one\ntwo\nthree \x1b[2J\n")

        assert keyboard.type("daemon", "logs", "-n", "2").stdout == "two\nthree \\x1b[2J\n"

    def test_logs_follows_into_a_new_file(self, keyboard: Keyboard) -> None:
        """A log that was replaced is read on from its beginning."""
        keyboard.home.mkdir()
        log = keyboard.home / "daemon.log"
        log.write_text("one\n")
        process = keyboard.open("daemon", "logs", "-f")
        assert process.stdout is not None
        seen = [process.stdout.readline()]

        log.rename(keyboard.home / "daemon.log.1")
        log.write_text("two\n")
        seen.append(process.stdout.readline())
        process.stdout.close()

        assert seen == ["one\n", "two\n"]
        assert process.wait(WITHIN) == 0
        process.communicate()


class TestDoctor:
    def test_what_is_bad_has_its_remedy_and_the_exit_code_says_so(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Exit 0 only if nothing is wrong."""
        good = {"name": "git", "ok": True, "detail": "2.39", "hint": ""}
        bad = {"name": "sandbox", "ok": False, "detail": "no bubblewrap", "hint": "Install bubblewrap."}
        daemon.teach("GET /doctor", {"as_of": time.time(), "items": [good, bad]})
        ailing = keyboard.type("doctor")
        daemon.teach("GET /doctor", {"as_of": time.time(), "items": [good]})

        assert ailing.returncode == 1
        assert "Install bubblewrap." in ailing.stdout
        assert keyboard.type("doctor").returncode == 0


class TestConfig:
    def test_get_shows_all_or_one_and_a_typo_has_its_near_miss(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """One value is printed bare, for scripts."""
        values = {"checks.command": "make test", "limits.runs": 8}
        daemon.teach("GET /settings", {"values": values, "files": ["/h/config.toml"]})

        assert keyboard.type("config", "get", "checks.command").stdout == "make test\n"
        assert "limits.runs     8" in keyboard.type("config", "get").stdout
        typo = keyboard.type("config", "get", "limits.rnus")
        assert typo.returncode == 2
        assert "Did you mean limits.runs?" in typo.stderr
        assert keyboard.type("config", "path").stdout == "/h/config.toml\n"

    def test_set_says_where_it_was_written(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The file is named, and --home is passed on."""
        daemon.teach("POST /settings", {"key": "limits.runs", "value": 4, "file": "/h/config.toml"})

        shown = keyboard.type("config", "set", "--home", "limits.runs", "4").stdout

        assert shown == "limits.runs = 4   in /h/config.toml\n"
        assert daemon.asked[-1][3]["home"] is True
