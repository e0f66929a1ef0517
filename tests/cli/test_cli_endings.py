"""How commands end: exit codes, sentences, closed pipes, and when a daemon is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_daemon import FakeDaemon, Refusal, Stream
from typing_room import Keyboard

from windlass.cli.main import COMMANDS

NAMES = [name for topic in COMMANDS.values() for name in topic if name != "demo"]
PARTS = [("config", "get"), ("config", "set"), ("config", "path")]
PARTS += [("daemon", each) for each in ("start", "stop", "status", "logs")]
PARTS += [("rescue", each) for each in ("list", "show", "restore")]
PARTS += [("agent", each) for each in ("complete", "ask", "fail")]


class TestErrors:
    @pytest.mark.parametrize(
        ("kind", "code"),
        [("BadInput", 2), ("NotFound", 3), ("Conflict", 4), ("NotAllowed", 5), ("Unavailable", 6), ("TimedOut", 7)],
    )
    def test_each_kind_of_error_is_a_sentence_a_hint_and_its_exit_code(
        self, keyboard: Keyboard, daemon: FakeDaemon, kind: str, code: int
    ) -> None:
        """The same everywhere; nothing on standard output, no stack trace."""
        daemon.teach("GET /agents/kind-yak", Refusal(kind, "It is \x1b[2Jnot so.", "Do that."))

        ended = keyboard.type("show", "kind-yak")

        assert ended.returncode == code
        assert ended.stderr == "windlass: It is \\x1b[2Jnot so.\nDo that.\n"
        assert ended.stdout == ""

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            (("wrok", "x"), "Did you mean 'work'?"),
            (("list", "--jsn"), "Did you mean '--json'?"),
            (("show",), "Missing argument 'NAME'"),
            (("show", "../x"), "'../x' is not a name."),
            (("show", "-rf"), "No such option"),
            (("logs", "a" * 300), "300 characters"),
            (("receipt", "../c3"), "not the id of a change"),
            (("stop", "--all", "kind-yak"), "Say whom to stop"),
            (("stop", "--everywhere"), "it needs --all"),
            (("work", ""), "TITLE is empty"),
            (("work", "x", "--timeout", "3s"), "needs --wait"),
            (("work", "x", "--wait", "--timeout", "soon"), "is not a time"),
            (("work", "x", "--script", "a", "--command", "b"), "Choose --script or --command"),
            (("work", "x", "--command", "b", "--provider", "scripted"), "means the provider command"),
            (("answer", "kind-yak", " "), "TEXT is empty"),
            (("watch", "--since", "-1"), "--since"),
            (("logs", "kind-yak", "--raw", "--json"), "Choose --raw or --json"),
            (("completion", "tcsh"), "tcsh"),
            (("rescue", "show", ""), "names nothing that could be saved"),
            (("rescue", "restore", "1", "--branch", "a", "--to", "b"), "Choose --branch or --to"),
        ],
    )
    def test_bad_input_is_one_sentence_and_never_asks_a_daemon(
        self, keyboard: Keyboard, words: tuple[str, ...], sentence: str
    ) -> None:
        """Usage errors end with 2 and leave nothing behind."""
        ended = keyboard.type(*words)

        assert ended.returncode == 2
        assert sentence in ended.stderr
        assert ended.stderr.startswith("windlass: ")
        assert not keyboard.home.exists()

    def test_a_script_that_is_not_there_is_not_found(self, keyboard: Keyboard) -> None:
        """The file is named, and no daemon is started for it."""
        ended = keyboard.type("work", "Fix it", "--script", "no such.yaml")

        assert (ended.returncode, "no such.yaml" in ended.stderr) == (3, True)
        assert not keyboard.home.exists()

    def test_a_daemon_that_dies_while_answering_is_unavailable(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Half an answer is not an answer."""
        daemon.teach("GET /agents/kind-yak/logs", lambda _: Stream.of(cut=True))

        ended = keyboard.type("logs", "kind-yak")

        assert ended.returncode == 6
        assert "went away" in ended.stderr

    def test_an_answer_that_makes_no_sense_is_a_sentence_too(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Faults of ours show no stack trace, unless asked for."""
        daemon.teach("GET /agents", b"nonsense")

        assert keyboard.type("list").stderr.startswith("windlass: Something unexpected happened")
        assert "Traceback" in keyboard.type("list", WINDLASS_DEBUG="1").stderr

    def test_names_and_paths_reach_the_daemon_unharmed(
        self, keyboard: Keyboard, daemon: FakeDaemon, tmp_path: Path
    ) -> None:
        """A folder with spaces and letters of any alphabet is quoted in the request."""
        keyboard.folder = tmp_path / "my rép & co"
        keyboard.folder.mkdir()
        daemon.teach("GET /agents", {"as_of": 0.0, "items": []})

        assert keyboard.type("list", "--here").returncode == 0

        assert daemon.asked[-1][2].endswith("my%20r%C3%A9p%20%26%20co")


class TestHelp:
    @pytest.mark.parametrize("words", [*((name,) for name in NAMES), *PARTS], ids=" ".join)
    def test_every_command_teaches_with_an_example(self, keyboard: Keyboard, words: tuple[str, ...]) -> None:
        """--help works without a daemon and shows how the command is used."""
        ended = keyboard.type(*words, "--help")

        assert ended.returncode == 0
        assert "Examples:" in ended.stdout
        assert f"windlass {' '.join(words[:1])}" in ended.stdout.partition("Examples:")[2]
        assert not keyboard.home.exists()

    def test_the_first_page_lists_every_command_and_the_exit_codes(self, keyboard: Keyboard) -> None:
        """`windlass` alone teaches, and is no error."""
        ended = keyboard.type()

        assert ended.returncode == 0
        assert all(f"  {name} " in ended.stdout for name in NAMES)
        assert "7 timed out" in ended.stdout

    def test_version_names_the_program(self, keyboard: Keyboard) -> None:
        """One line, no daemon."""
        assert keyboard.type("--version").stdout.startswith("windlass ")
        assert not keyboard.home.exists()

    def test_the_client_imports_nothing_heavy(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """A command's time is mostly imports: none that it does not need."""
        daemon.teach("GET /agents", {"as_of": 0.0, "items": []})

        imported = keyboard.type("list", PYTHONPROFILEIMPORTTIME="1").stderr

        names = {line.rpartition("|")[2].strip() for line in imported.splitlines()}
        assert "click" in names
        assert not names & {"asyncio", "msgspec", "rich", "starlette", "http.client", "pathlib", "subprocess", "urllib"}


class TestCompletion:
    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_the_script_completes_both_names(self, keyboard: Keyboard, shell: str) -> None:
        """`windlass` and `wl`."""
        script = keyboard.type("completion", shell).stdout

        assert f"_WINDLASS_COMPLETE={shell}_complete" in script
        assert any(" wl" in line for line in script.splitlines()[-2:])
        assert not keyboard.home.exists()

    def test_names_come_from_a_daemon_that_runs(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """Agents and changes are completed by what the daemon knows."""
        daemon.teach("GET /agents", {"as_of": 0.0, "items": [{"name": "kind-yak"}, {"name": "swift-otter"}]})
        daemon.teach("GET /queue", {"as_of": 0.0, "items": [{"id": "c3", "title": "Fix"}]})

        assert _completed(keyboard, "windlass show k") == ["kind-yak"]
        assert _completed(keyboard, "windlass receipt c") == ["c3"]

    def test_without_a_daemon_there_are_none_and_none_is_started(self, keyboard: Keyboard) -> None:
        """Pressing Tab has no effects."""
        assert _completed(keyboard, "windlass show k") == []
        assert _completed(keyboard, "windlass rece") == ["receipt"]
        assert _completed(keyboard, "windlass config get limits.runs") == ["limits.runs"]
        assert not keyboard.home.exists()


def _completed(keyboard: Keyboard, line: str) -> list[str]:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1), "_WINDLASS_COMPLETE": "bash_complete"}
    ended = keyboard.type(**words)
    assert ended.stderr == ""
    return [part.partition(",")[2] for part in ended.stdout.split()]


class TestStarting:
    def test_status_starts_nothing_and_is_unavailable(self, keyboard: Keyboard) -> None:
        """Asking whether it runs is no reason to run."""
        ended = keyboard.type("daemon", "status", "--json")

        assert (ended.returncode, ended.stdout) == (6, "")
        assert not keyboard.home.exists()

    def test_stopping_what_does_not_run_is_done(self, keyboard: Keyboard) -> None:
        """Stop can be repeated."""
        assert keyboard.type("daemon", "stop").returncode == 0
        assert not keyboard.home.exists()

    def test_a_home_that_can_not_be_made_is_one_sentence(self, keyboard: Keyboard, tmp_path: Path) -> None:
        """A file stands where a folder should be."""
        (tmp_path / "file").touch()
        keyboard.environment["WINDLASS_HOME"] = str(tmp_path / "file" / "home")

        ended = keyboard.type("list")

        assert ended.returncode == 6
        assert "WINDLASS_HOME" in ended.stderr
        assert len(ended.stderr.splitlines()) == 2

    def test_a_daemon_that_dies_at_once_shows_its_last_words(self, keyboard: Keyboard) -> None:
        """The log's new lines say why; older ones are left out."""
        keyboard.home.mkdir()
        (keyboard.home / "daemon.log").write_text("from yesterday\n")
        (keyboard.home / "windlass.db").write_text("this is no database" * 100)

        ended = keyboard.type("list")

        assert ended.returncode == 6
        assert "The daemon did not start" in ended.stderr
        assert "Last lines of" in ended.stderr
        assert "from yesterday" not in ended.stderr

    def test_inside_a_run_no_daemon_is_started(self, keyboard: Keyboard) -> None:
        """It would die with the agent's processes."""
        ended = keyboard.type("list", WINDLASS_RUN="r1")

        assert ended.returncode == 6
        assert not keyboard.home.exists()

    def test_a_tilde_in_the_home_means_the_users_own(self, keyboard: Keyboard, daemon: FakeDaemon) -> None:
        """WINDLASS_HOME='~/home' is what it looks like, also where no shell expanded it."""
        daemon.teach("GET /agents", {"as_of": 0.0, "items": []})

        assert keyboard.type("list", WINDLASS_HOME="~/home").returncode == 0

    def test_a_home_with_a_long_path_works(self, tmp_path: Path) -> None:
        """A socket's path may have 107 bytes; a home's path may have more."""
        keyboard = Keyboard(tmp_path / ("x" * 150), tmp_path)
        with FakeDaemon(keyboard.home) as daemon:
            daemon.teach("GET /agents", {"as_of": 0.0, "items": []})

            assert keyboard.type("list").returncode == 0
