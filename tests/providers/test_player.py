"""The player, as the daemon starts it: a process in a worktree with a few variables."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import patience
from windlass.core.runs.provider import StartRequest
from windlass.core.runs.signal import BadSignal, Question, SaidDone, SaidError, SaidQuestions, Signal, read_signal
from windlass.providers import load

LIMIT = patience.seconds(30)

Git = Callable[..., str]


@dataclass(frozen=True)
class Stage:
    """A worktree with everything that a scripted agent is given."""

    worktree: Path
    folder: Path

    @property
    def signal_file(self) -> Path:
        return self.worktree / ".windlass/output/signal.json"

    @contextmanager
    def begin(self, script: str, *, number: int = 1, prompt: str = "") -> Iterator[subprocess.Popen[bytes]]:
        """The agent while it runs; gone afterwards, whatever happened."""
        (self.folder / "script").write_text(script)
        (self.folder / "prompt.md").write_text(prompt)
        files = {"script": str(self.folder / "script")}
        start = StartRequest(prompt_file="", number=number, session="", options={"script_name": "my.yaml"}, files=files)
        variables = {
            "WINDLASS_AGENT": "quick-otter",
            "WINDLASS_RUN_NUMBER": str(number),
            "WINDLASS_PROMPT": str(self.folder / "prompt.md"),
            "WINDLASS_SIGNAL": str(self.signal_file),
        }
        with subprocess.Popen(
            load().get("scripted").argv(start),
            cwd=self.worktree,
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def play(self, script: str, *, number: int = 1, prompt: str = "") -> tuple[int, str]:
        with self.begin(script, number=number, prompt=prompt) as process:
            output, _ = process.communicate(timeout=LIMIT)
        return process.returncode, output.decode()

    def signalled(self) -> Signal:
        return read_signal(self.signal_file.read_bytes())


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> Stage:
    (repo / ".git/info/exclude").write_text(".windlass/\n")
    folder = tmp_path / "run"
    folder.mkdir()
    return Stage(repo, folder)


class TestWork:
    def test_an_agent_writes_commits_and_is_done(self, stage: Stage, git: Git) -> None:
        """The whole of an ordinary run: output, files, a commit and a signal."""
        code, output = stage.play(
            "- say: I am {agent}, run {number}\n"
            "- write: {deep/er/a b.txt: \"by {agent}\\n\", 'é.txt': ''}\n"
            "- append: {deep/er/a b.txt: more}\n"
            '- commit: It\'s "quoted" $HOME\n'
            "- done: Done … really.\n"
        )

        assert code == 0
        assert output.startswith("I am quick-otter, run 1\n")
        assert (stage.worktree / "deep/er/a b.txt").read_text() == "by quick-otter\nmore"
        assert (stage.worktree / "é.txt").read_text() == ""
        assert git("log", "-1", "--format=%s", cwd=stage.worktree) == 'It\'s "quoted" $HOME'
        assert git("status", "--porcelain", cwd=stage.worktree) == ""
        assert stage.signalled() == SaidDone("Done … really.")

    def test_the_same_script_can_be_played_again(self, stage: Stage, git: Git) -> None:
        """A second run finds its work done, and does not fail."""
        script = (
            "- replace: {path: README.md, old: small, new: tiny}\n"
            "- write: {a: b}\n- delete: c\n- commit: Work\n- done\n"
        )

        assert stage.play(script)[0] == 0
        code, output = stage.play(script, number=2)

        assert (code, output) == (0, "nothing to commit\n")
        assert git("rev-list", "--count", "HEAD", cwd=stage.worktree) == "2"
        assert (stage.worktree / "README.md").read_text() == "# A tiny project\n"

    def test_each_run_plays_its_own_list(self, stage: Stage) -> None:
        """The number of the run chooses."""
        script = "runs:\n- [say: one]\n- [say: two]\n"

        assert [stage.play(script, number=number)[1] for number in (1, 2, 3)] == ["one\n", "two\n", "two\n"]

    @pytest.mark.parametrize("take", ["ours", "theirs"])
    def test_a_conflict_is_decided_for_one_side(self, stage: Stage, git: Git, take: str) -> None:
        """`take` mends a conflict with main in one step."""
        _conflict_in(stage.worktree, git)

        code, output = stage.play(f"- merge: {{ref: origin/main, take: {take}}}\n- done\n")

        assert code == 0, output
        assert (stage.worktree / "a.txt").read_text() == {"ours": "mine\n", "theirs": "main's\n"}[take]
        assert git("rev-list", "--count", "HEAD..origin/main", cwd=stage.worktree) == "0"

    def test_a_conflict_is_mended_by_hand(self, stage: Stage, git: Git) -> None:
        """Without `take`, the next steps write the file and commit the merge, even to the tree they had."""
        _conflict_in(stage.worktree, git)

        code, output = stage.play('- merge: origin/main\n- write: {a.txt: "mine\\n"}\n- commit: Keep mine\n- done\n')

        assert code == 0, output
        assert "CONFLICT" in output
        assert (stage.worktree / "a.txt").read_text() == "mine\n"
        assert git("rev-list", "--count", "HEAD..origin/main", cwd=stage.worktree) == "0"

    def test_a_prompt_with_the_expected_text_lets_it_go_on(self, stage: Stage) -> None:
        """`expect` finds the exact text, over several lines too."""
        script = "- expect: |-\n    E   assert 1 == 2\n    line two\n- done\n"

        assert stage.play(script, prompt="x\nE   assert 1 == 2\nline two\ny")[0] == 0
        assert stage.play(script, prompt="x\nE   assert 1 == 2\n\nline two\ny")[0] == 1


class TestFailures:
    @pytest.mark.parametrize(
        ("step", "said"),
        [
            ("expect: the output", "my.yaml:2: expect: the prompt does not contain 'the output'"),
            ("run: exit 3", "my.yaml:2: run: 'exit 3' ended with 3"),
            ("replace: {path: README.md, old: x-y, new: z}", "my.yaml:2: replace: README.md does not contain 'x-y'"),
            ("merge: no-such-ref", "my.yaml:2: merge: git fetch ended with 128"),
            ("write: {README.md/x: y}", "my.yaml:2: write: [Errno 17] File exists: 'README.md'"),
            ("emit: no-such-file", "my.yaml:2: emit: [Errno 2] No such file or directory: 'no-such-file'"),
        ],
    )
    def test_a_step_that_fails_ends_the_run_with_its_line(self, stage: Stage, step: str, said: str) -> None:
        """The error is signalled and printed, and nothing after it is done."""
        code, output = stage.play(f"- say: begin\n- {step}\n- say: never\n")

        assert code == 1
        assert stage.signalled() == SaidError(said)
        assert said in output
        assert "never" not in output

    def test_a_command_may_fail_if_it_is_said(self, stage: Stage) -> None:
        """`may_fail` goes on after any exit code."""
        assert stage.play("- run: {command: exit 3, may_fail: true}\n- say: on\n") == (0, "on\n")


class TestEndings:
    def test_questions_are_numbered(self, stage: Stage) -> None:
        """A list of questions becomes one signal."""
        assert stage.play("- ask: [Why?, How?]\n- say: never\n") == (0, "")
        assert stage.signalled() == SaidQuestions((Question("q1", "Why?"), Question("q2", "How?")))

    def test_an_error_is_signalled_with_exit_code_one(self, stage: Stage) -> None:
        """`error` is a claim and an exit."""
        assert stage.play("- error: No way.\n")[0] == 1
        assert stage.signalled() == SaidError("No way.")

    def test_an_exit_says_nothing(self, stage: Stage) -> None:
        """`exit`, and the end of the list, leave no signal."""
        assert stage.play("- exit: 7\n- say: never\n") == (7, "")
        assert stage.play("- say: over\n") == (0, "over\n")
        assert not stage.signal_file.exists()

    def test_a_crash_is_a_kill(self, stage: Stage) -> None:
        """What was said before it is out; nothing runs after it."""
        assert stage.play("- say: last words\n- crash\n- say: never\n") == (-signal.SIGKILL, "last words\n")

    def test_a_hanging_agent_ends_when_asked(self, stage: Stage) -> None:
        """`hang` waits for ever, and SIGTERM ends it."""
        with stage.begin("- say: here\n- hang\n") as process:
            assert process.stdout and process.stdout.readline() == b"here\n"
            process.terminate()
            assert process.wait(LIMIT) == -signal.SIGTERM

    def test_a_deaf_agent_must_be_killed(self, stage: Stage) -> None:
        """After `ignore-term`, SIGTERM changes nothing; its commands still end by it."""
        script = "- ignore-term\n- run: {command: kill $$; echo alive, may_fail: true}\n- say: here\n- hang\n"
        with stage.begin(script) as process:
            assert process.stdout and process.stdout.readline() == b"here\n"
            process.terminate()
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
            process.kill()
            assert process.wait(LIMIT) == -signal.SIGKILL


class TestTrouble:
    @pytest.mark.parametrize(
        ("value", "content"),
        [
            ("{status: done}", b'{"status": "done"}'),
            ("{text: ''}", b""),
            ('{text: \'{"status": "do\'}', b'{"status": "do'),
            ("{value: {status: done}, encoding: utf-8-sig}", b'\xef\xbb\xbf{"status": "done"}'),
            ("{text: x, encoding: utf-16}", "x".encode("utf-16")),
            ("[1, 2]", b"[1, 2]"),
            ("5", b"5"),
        ],
    )
    def test_any_signal_can_be_written(self, stage: Stage, value: object, content: bytes) -> None:
        """Good and bad signals, byte for byte; the run goes on after it."""
        assert stage.play(f"- signal: {value}\n- say: on\n") == (0, "on\n")
        assert stage.signal_file.read_bytes() == content

    def test_odd_things_can_stand_in_for_a_signal(self, stage: Stage) -> None:
        """Links, pipes, folders and fifty megabytes."""
        kinds = {}
        for kind in ("link", "pipe", "folder", "huge"):
            stage.signal_file.parent.mkdir(parents=True, exist_ok=True)
            assert stage.play(f"- signal: {{kind: {kind}}}\n") == (0, "")
            kinds[kind] = stage.signal_file.lstat()
            stage.signal_file.rename(stage.folder / kind)

        assert stat.S_ISLNK(kinds["link"].st_mode)
        assert stat.S_ISFIFO(kinds["pipe"].st_mode)
        assert stat.S_ISDIR(kinds["folder"].st_mode)
        assert kinds["huge"].st_size == 50_000_000

    @pytest.mark.parametrize("session", [False, True])
    def test_children_outlive_the_agent(self, stage: Stage, session: bool) -> None:
        """They hold its output open, in its session or in their own."""
        with stage.begin(f"- children: {{count: 2, seconds: 100, session: {str(session).lower()}}}\n") as process:
            assert process.wait(LIMIT) == 0
            left = _sleepers(stage.worktree)
            sessions = {os.getsid(pid) for pid in left}
            for pid in left:
                os.kill(pid, signal.SIGKILL)

        assert len(left) == 2
        assert sessions == (set(left) if session else {os.getsid(0)})

    def test_recorded_lines_are_printed_byte_for_byte(self, stage: Stage) -> None:
        """Invalid UTF-8, CRLF and a last line without an end come out as they were."""
        recorded = b'{"type":"system"}\r\n\xff\x00\x1b[31m\nhalf'
        (stage.worktree / "lines.jsonl").write_bytes(recorded)

        with stage.begin("- emit: {file: lines.jsonl, delay: 0.01}\n") as process:
            assert process.communicate(timeout=LIMIT)[0] == recorded

    @pytest.mark.parametrize(("line", "lines"), [(99, 1000), (0, 0), (200_000, 0), (7, 12500)])
    def test_any_amount_can_be_printed(self, stage: Stage, line: int, lines: int) -> None:
        """Exactly so many bytes, in lines of exactly that length."""
        code, output = stage.play(f"- print: {{bytes: 100000, line: {line}}}\n")

        assert code == 0
        assert len(output) == 100_000
        assert output.count("\n") == lines


def test_the_player_is_light() -> None:
    """A scripted agent starts without the libraries of the daemon."""
    code = "import sys, windlass.providers.script.play; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", code), capture_output=True, text=True, check=True)

    assert not {"msgspec", "asyncio", "dataclasses", "subprocess", "click"} & set(done.stdout.split())


def test_a_worktree_cannot_shadow_the_players_modules(stage: Stage) -> None:
    """A repository with a yaml.py of its own does not change how the agent is played."""
    (stage.worktree / "yaml.py").write_text("raise SystemExit(9)")
    (stage.worktree / "windlass").mkdir()
    (stage.worktree / "windlass/__init__.py").write_text("raise SystemExit(9)")

    assert stage.play("- say: fine\n") == (0, "fine\n")


def test_a_bad_signal_is_bad_to_our_reader(stage: Stage) -> None:
    """What the script calls half a signal is one to the daemon."""
    stage.play('- signal: {text: \'{"status": "do\'}\n')

    assert isinstance(stage.signalled(), BadSignal)
    with pytest.raises(ValueError, match="Unterminated"):
        json.loads(stage.signal_file.read_bytes())


def _conflict_in(worktree: Path, git: Git) -> None:
    """Main and the agent's branch have both written a.txt; `origin` is another repository."""
    origin = worktree.parent / "origin"
    git("clone", "-q", str(worktree), str(origin), cwd=worktree.parent)
    for folder, text in ((origin, "main's\n"), (worktree, "mine\n")):
        if folder == worktree:
            git("checkout", "-q", "-b", "work/otter", cwd=folder)
        (folder / "a.txt").write_text(text)
        git("add", "-A", cwd=folder)
        git("commit", "-q", "-m", "Write a.txt", cwd=folder)
    git("remote", "add", "origin", str(origin), cwd=worktree)


def _sleepers(worktree: Path) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == worktree:
                found += [int(entry.name)] if (entry / "comm").read_text() == "sleep\n" else []
        except OSError:
            continue
    return found
