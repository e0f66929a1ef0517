"""Verbs: work, init, stop, undo, watch, and an agent's own signals."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from fake_daemon import FakeDaemon, Stream, events
from typing_room import Keyboard, in_a_repository


def a_view(state: str, /, *, settled: bool = False, landed: bool = False, **change: Any) -> dict[str, Any]:
    """One object of the wait stream."""
    return {
        "task": {"id": "t1", "title": "Fix it", "state": state, "reason": "because"},
        "agent": {"name": "kind-yak", "status": "running", "evidence": "pid 1 alive"},
        "change": {"id": "c1", "reason": "", **change} if change else None,
        "questions": [{"id": "m1", "question": "May I?"}],
        "settled": settled,
        "landed": landed,
    }


def test_an_answer_is_sent_word_by_word(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """As it was typed; with --json, the message that came of it."""
    daemon.teach("POST /agents/kind-yak/answer", {"message": {"id": "m1", "body": "q1: yes"}})

    assert "kind-yak has your answer" in keyboard.type("answer", "kind-yak", "q1=yes").stdout
    assert daemon.asked[-1][3]["words"] == ["q1=yes"]
    shown = json.loads(keyboard.type("answer", "kind-yak", "q1=yes", "--json").stdout)
    assert shown["message"]["id"] == "m1"


def test_an_answer_is_given_again_when_the_daemon_comes_back(keyboard: Keyboard, daemon: FakeDaemon) -> None:
    """Under the same key, by which the daemon knows one that it has heard; another answer has another."""
    daemon.teach("POST /agents/kind-yak/answer", {"message": {"id": "m1", "body": "Yes."}})
    daemon.cut = 2

    ended = keyboard.type("answer", "kind-yak", "Yes.")

    assert (ended.returncode, ended.stdout.startswith("kind-yak has your answer")) == (0, True), ended.stderr
    assert [request[3]["words"] for request in daemon.asked] == [["Yes."]] * 3
    keyboard.type("answer", "kind-yak", "Yes.")
    keys = [request[3]["key"] for request in daemon.asked]
    assert len({*keys[:3]}) == 1 and keys[3] not in keys[:3]


class TestWork:
    @pytest.fixture(autouse=True)
    def _task(self, daemon: FakeDaemon) -> None:
        daemon.teach(
            "POST /tasks", {"task": {"id": "t1", "title": "Fix it"}, "agent": "kind-yak", "branch": "work/kind-yak"}
        )

    def test_the_environment_names_the_provider_where_no_option_does(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """Also when the daemon was started without the variable; an option is stronger."""
        keyboard.type("work", "Fix it", WINDLASS_PROVIDER="scripted")
        assert daemon.asked[-1][3]["provider"] == "scripted"
        keyboard.type("work", "Fix it", "--command", "true", WINDLASS_PROVIDER="scripted")
        assert daemon.asked[-1][3]["provider"] == "command"

    @pytest.mark.parametrize(("words", "sent"), [((), "on"), (("--sandbox", "off"), "off")])
    def test_the_shells_word_about_the_sandbox_counts_where_no_option_does(
        self, keyboard: Keyboard, daemon: FakeDaemon, words: tuple[str, ...], sent: str
    ) -> None:
        """The daemon may have been started in another shell, so the command sends it."""
        keyboard.type("work", "Fix it", *words, WINDLASS_SANDBOX="on")
        assert daemon.asked[-1][3]["sandbox"] == sent
        keyboard.type("work", "Fix it")
        assert "sandbox" not in daemon.asked[-1][3]

    def test_what_is_typed_about_the_agent_is_sent(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Its name, provider, model, permissions and sandbox; an empty name is a slip, and nothing is sent."""
        typed = {"agent": "coder", "provider": "codex", "model": "gpt-5.5", "permissions": "read", "sandbox": "off"}
        keyboard.type("work", "Fix it", *(word for name, value in typed.items() for word in (f"--{name}", value)))
        sent = daemon.asked[-1][3]
        assert {key: sent.get(key) for key in typed} == typed
        for name in ("--agent", "--provider", "--model"):
            ended = keyboard.type("work", "Fix it", name, "")
            assert (ended.returncode, "empty" in ended.stderr) == (2, True)
        assert daemon.asked[-1][3] == sent

    def test_says_who_works_where_and_what_to_type_next(
        self, keyboard: Keyboard, daemon: FakeDaemon, tmp_path: Path
    ) -> None:
        """The folder, the brief from standard input and the script's text are sent."""
        (tmp_path / "play.yaml").write_text("- say: hello\n")

        ended = keyboard.type("work", "Fix it", "--brief", "-", "--script", "play.yaml", stdin="at length")

        assert "kind-yak works on t1" in ended.stdout
        assert "work/kind-yak" in ended.stdout
        assert "windlass logs kind-yak -f" in ended.stdout
        assert daemon.asked[-1][3] == {
            "path": str(tmp_path),
            "title": "Fix it",
            "brief": "at length",
            "provider": "scripted",
            "options": {"script": "- say: hello\n", "script_name": "play.yaml"},
        }

    def test_waiting_ends_well_only_when_it_has_landed(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A line per change of state, then the receipt's command."""
        views = [a_view("active"), a_view("landing", state="testing")]
        views += [a_view("done", state="landed", settled=True, landed=True)]
        daemon.teach("GET /tasks/t1/wait", lambda _: Stream.of(*views))

        ended = keyboard.type("work", "Fix it", "--wait")

        assert ended.returncode == 0
        assert "kind-yak  running\nkind-yak  c1 testing\n" in ended.stdout
        assert "windlass receipt c1" in ended.stdout

    @pytest.mark.parametrize(
        ("project", "sentence"),
        [
            ({"new": True}, "shop is a new project: what passes its checks lands on trunk."),
            ({"checks": ""}, "It has no check command, so changes wait: `windlass init`"),
            ({"waits": "trunk is red: make failed"}, "Nothing lands there now: trunk is red: make failed."),
        ],
    )
    def test_what_is_set_up_and_why_nothing_would_land_is_said(
        self, keyboard: Keyboard, daemon: FakeDaemon, project: dict[str, Any], sentence: str
    ) -> None:
        """Once, when the work is given; about a project that is ready, nothing."""
        ready = {"name": "shop", "main": "trunk", "new": False, "checks": "make", "waits": ""}
        given = {"agent": "kind-yak", "branch": "work/kind-yak", "task": {"id": "t1", "title": "Fix it"}}
        daemon.teach("POST /tasks", {**given, "project": ready})
        before = keyboard.type("work", "Fix it").stdout
        daemon.teach("POST /tasks", {**given, "project": ready | project})

        assert sentence in keyboard.type("work", "Fix it").stdout.removeprefix(before)
        assert sentence not in before

    @pytest.mark.parametrize(
        ("view", "sentence"),
        [
            (a_view("failed", settled=True), "t1 failed: because\nRun `windlass logs kind-yak`"),
            (a_view("waiting", settled=True), 'kind-yak asks: May I?\nRun `windlass answer kind-yak "…"`'),
            (a_view("landing", settled=True, state="held", reason="no checks"), "c1 is held: no checks"),
            (
                a_view("landing", settled=True, state="held", hold="guard", reason="it changes the Makefile"),
                "`windlass change diff c1`; `windlass queue release c1` lets it land",
            ),
            (
                a_view("landing", settled=True, state="held", hold="human", reason="held by hand: until Monday"),
                "`windlass queue release c1` lets it go on",
            ),
            (a_view("done", settled=True), "nothing to land"),
        ],
    )
    def test_every_other_end_is_1_with_the_reason_and_the_next_command(
        self, keyboard: Keyboard, daemon: FakeDaemon, view: dict[str, Any], sentence: str
    ) -> None:
        """It ran, and did not land."""
        daemon.teach("GET /tasks/t1/wait", lambda _: Stream.of(view))

        ended = keyboard.type("work", "Fix it", "--wait")

        assert ended.returncode == 1
        assert sentence in ended.stderr

    def test_time_runs_out_with_7_and_the_agent_goes_on(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Giving up waiting is not giving up the work."""
        silence = threading.Event()
        daemon.teach("GET /tasks/t1/wait", lambda _: Stream(events(end=silence)))

        ended = keyboard.type("work", "Fix it", "--wait", "--timeout", "0.2s")
        silence.set()

        assert ended.returncode == 7
        assert "it goes on" in ended.stderr

    def test_waiting_survives_a_daemon_that_goes_and_comes_back(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """The next daemon is asked on."""
        landed = a_view("done", state="landed", settled=True, landed=True)
        answers = iter([Stream.of(a_view("active"), cut=True), Stream.of(landed)])
        daemon.teach("GET /tasks/t1/wait", lambda _: next(answers))

        assert keyboard.type("work", "Fix it", "--wait").returncode == 0

    def test_waiting_gives_up_on_a_daemon_that_always_goes_away(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A fault in the daemon is no reason to wait for ever."""
        daemon.teach("GET /tasks/t1/wait", lambda _: Stream.of(cut=True))

        assert keyboard.type("work", "Fix it", "--wait").returncode == 6

    def test_json_prints_the_end_and_nothing_else(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """One object, for programs."""
        landed = a_view("done", state="landed", settled=True, landed=True)
        daemon.teach("GET /tasks/t1/wait", lambda _: Stream.of(a_view("active"), landed))

        assert json.loads(keyboard.type("work", "Fix it", "--wait", "--json").stdout) == landed


FOUND = {"command": "", "setup": "", "guess": {"command": "pytest -q", "setup": "", "because": "tests/ is there"}}
NOTHING = {"command": "", "setup": "", "guess": {"command": "", "setup": "", "because": ""}}


class TestInit:
    @pytest.fixture(autouse=True)
    def _project(self, daemon: FakeDaemon) -> None:
        made = {"id": "p1", "name": "shop", "path": "/s", "main": "trunk", "config": "/s/.windlass/config.toml"}
        daemon.teach("POST /projects", made)

    def test_yes_takes_what_is_found_and_says_what_it_wrote(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """No question is asked."""
        daemon.teach("GET /projects/checks", FOUND)

        shown = keyboard.type("init", "--yes").stdout

        assert daemon.asked[-1][3]["checks_command"] == "pytest -q"
        assert "/s/.windlass/config.toml" in shown
        assert "pytest -q" in shown

    def test_nothing_found_says_that_changes_are_held(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And how to change that."""
        daemon.teach("GET /projects/checks", NOTHING)

        shown = keyboard.type("init", "--yes").stdout

        assert "checks_command" not in daemon.asked[-1][3]
        assert "held" in shown
        assert "windlass config set checks.command" in shown

    def test_without_a_terminal_nobody_is_asked_and_nothing_written(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """A command found in a repository is not taken without a yes."""
        daemon.teach("GET /projects/checks", FOUND)

        ended = keyboard.type("init")

        assert ended.returncode == 2
        assert "--yes takes `pytest -q`" in ended.stderr
        assert [method for method, *_ in daemon.asked] == ["GET"]

    @pytest.mark.parametrize(("typed", "taken"), [("\n", "pytest -q"), ("make test\n", "make test"), ("-\n", None)])
    def test_on_a_terminal_one_may_take_it_change_it_or_leave_it(
        self, keyboard: Keyboard, daemon: FakeDaemon, typed: str, taken: str | None
    ) -> None:
        """Enter takes what was found."""
        daemon.teach("GET /projects/checks", FOUND)

        code, shown = keyboard.on_terminal("init", stdin=typed)

        assert code == 0
        assert "tests/ is there" in shown
        assert daemon.asked[-1][3].get("checks_command") == taken

    def test_what_is_set_already_is_kept(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Init can be repeated."""
        daemon.teach("GET /projects/checks", {**FOUND, "command": "make test"})

        ended = keyboard.type("init")

        assert ended.returncode == 0
        assert "make test" in ended.stdout
        assert "checks_command" not in daemon.asked[-1][3]


class TestStop:
    def test_one_unknown_name_does_not_keep_the_others_alive(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """All are tried; the exit code is the problem's."""
        daemon.teach("POST /agents/kind-yak/stop", {"stopped": ["kind-yak"]})

        ended = keyboard.type("stop", "no-one", "kind-yak")

        assert ended.stdout == "Stopped kind-yak.\n"
        assert ended.returncode == 3

    def test_all_is_one_request(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """And nothing running is no failure."""
        daemon.teach("POST /stop", {"stopped": []})

        ended = keyboard.type("stop", "--all")

        assert (ended.returncode, ended.stdout) == (0, "Nothing was running.\n")

    def test_all_means_the_project_here_and_says_who_goes_on_elsewhere(
        self, keyboard: Keyboard, daemon: FakeDaemon
    ) -> None:
        """The daemon is asked about this folder, unless it is said that all projects are meant."""
        daemon.teach("POST /stop", {"stopped": [], "project": "shop", "elsewhere": ["kind-yak"]})
        in_a_repository(keyboard.folder)

        said = keyboard.type("stop", "--all").stdout
        keyboard.type("stop", "--all", "--everywhere")

        assert said.startswith("Nothing was running in shop.\nOf other projects kind-yak go on: ")
        assert "`windlass stop --all --everywhere`" in said
        assert [body for _, path, _, body in daemon.asked if path == "/stop"] == [{"path": str(keyboard.folder)}, {}]

    def test_all_names_the_changes_that_go_on(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A person's own branch lands although every agent was stopped, unless it is dropped."""
        daemon.teach("POST /stop", {"stopped": ["kind-yak"], "going_on": [{"id": "c7", "title": "Mine\x1b[2J"}]})

        said = keyboard.type("stop", "--all").stdout

        assert said.startswith("Stopped kind-yak.\nc7 (Mine\\x1b[2J) goes on")
        assert "`windlass queue drop c7`" in said


class TestUndo:
    def test_waiting_returns_when_it_has_landed(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Every step is shown; exit 0 only when main is as it was."""
        states = iter(["queued", "testing", "landed"])
        daemon.teach("POST /changes/c3/undo", {"id": "c9", "state": "queued", "reason": ""})
        daemon.teach("GET /changes/c9", lambda _: {"id": "c9", "state": next(states), "reason": ""})
        event = 'id: 1\ndata: {"seq": 1, "kind": "change.moved", "subject": "c9"}\n\n'
        daemon.teach("GET /events", lambda _: Stream([event, event]))

        ended = keyboard.type("undo", "c3", "--wait")

        assert ended.returncode == 0
        assert ended.stdout.splitlines()[1:] == ["c9  queued", "c9  testing", "c9  landed"]


class TestSignal:
    def test_complete_ask_and_fail_reach_the_daemon(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Three ways to end a run, one verb."""
        daemon.teach("POST /agent/signal", {})

        for words in (("complete", "Done."), ("ask", "May I?", "Which?"), ("fail", "No disk.")):
            assert keyboard.type("agent", *words).returncode == 0

        done, asked, failed = [body for *_, body in daemon.asked]
        assert done == {"status": "done", "result": "Done."}
        assert [each["question"] for each in asked["questions"]] == ["May I?", "Which?"]
        assert failed == {"status": "error", "error": "No disk."}

    def test_while_the_daemon_is_away_the_signal_is_left_in_its_file(self, keyboard: Keyboard, tmp_path: Path) -> None:
        """An agent's last word is not lost."""
        file = tmp_path / "out" / "signal.json"

        ended = keyboard.type("agent", "complete", "Done.", WINDLASS_SIGNAL=str(file), WINDLASS_RUN="r1")

        assert ended.returncode == 0
        assert json.loads(file.read_text()) == {"status": "done", "result": "Done."}
        assert [path.name for path in file.parent.iterdir()] == ["signal.json"]

    def test_outside_a_run_it_is_not_allowed(self, keyboard: Keyboard) -> None:
        """Only agents end runs."""
        assert keyboard.type("agent", "fail", "x").returncode == 5
