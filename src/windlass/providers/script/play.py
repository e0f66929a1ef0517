"""The player: performs the steps of a script in the current folder, as an agent would."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from windlass.providers.script import shell
from windlass.providers.script.parse import Script, ScriptStep, parse

_HUGE = 50_000_000
_PIECE = 65_536


class End(Exception):
    """The run is over, with this exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Fail(Exception):
    """A step could not be done. The text says why."""


def play(file: str, name: str, environment: Mapping[str, str]) -> int:
    """Play the steps of this run. Returns the exit code."""
    script = parse(Path(file).read_text(encoding="utf-8"), name)
    return Player(script, environment).play()


class Player:
    """One run of a scripted agent."""

    def __init__(self, script: Script, environment: Mapping[str, str]) -> None:
        self.script = script
        self.agent = environment.get("WINDLASS_AGENT", "")
        self.number = int(environment.get("WINDLASS_RUN_NUMBER", "1"))
        self.prompt = environment.get("WINDLASS_PROMPT", "")
        self.signal_file = Path(environment.get("WINDLASS_SIGNAL", ".windlass/output/signal.json"))

    def play(self) -> int:
        try:
            for step in self.script.steps(self.number):
                self._do(step)
        except End as end:
            return end.code
        return 0

    def _do(self, step: ScriptStep) -> None:
        try:
            VERBS[step.verb](self, **step.values)
        except (Fail, OSError, UnicodeError) as error:
            words = f"{self.script.name}:{step.line}: {step.verb}: {error}"
            self.say(words)
            self.error(words)

    # ── work ─────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str) -> None:
        _out(f"{self._filled(text)}\n".encode("utf-8", "replace"))

    def write(self, files: Mapping[str, str], mode: str = "w") -> None:
        for path, text in files.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            with Path(path).open(mode, encoding="utf-8", newline="") as file:
                file.write(self._filled(text))

    def append(self, files: Mapping[str, str]) -> None:
        self.write(files, "a")

    def replace(self, path: str, old: str, new: str) -> None:
        text = Path(path).read_bytes().decode()
        if old in text:
            Path(path).write_bytes(text.replace(old, new).encode())
        elif not new or new not in text:
            raise Fail(f"{path} does not contain {old!r}")

    def delete(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def run(self, command: str, may_fail: bool = False) -> None:
        code = shell.call("sh", "-c", command)
        if code and not may_fail:
            raise Fail(f"{command!r} ended with {code}")

    def commit(self, message: str) -> None:
        self._git("add", "-A")
        merging = shell.call("git", "rev-parse", "-q", "--verify", "MERGE_HEAD", quiet=True) == 0
        if not merging and shell.call("git", "diff", "--cached", "--quiet", quiet=True) == 0:
            self.say("nothing to commit")
        else:
            self._git("commit", "-m", message)

    def merge(self, ref: str, take: str = "") -> None:
        self._git("fetch", "-q", "origin")
        code = shell.call("git", "merge", "--no-edit", *(("-X", take) if take else ()), ref)
        conflicts = shell.call("git", "diff", "--quiet", "--diff-filter=U", quiet=True) != 0
        if code and not conflicts:
            raise Fail(f"git merge ended with {code}")

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def expect(self, text: str) -> None:
        if text not in Path(self.prompt).read_text(encoding="utf-8"):
            raise Fail(f"the prompt does not contain {text!r}")

    # ── the end of a run ─────────────────────────────────────────────────────────────────────────────────

    def done(self, text: str = "") -> None:
        self._signal({"status": "done", "result": text})
        raise End(0)

    def ask(self, questions: list[str]) -> None:
        numbered = [{"id": f"q{number}", "question": text} for number, text in enumerate(questions, start=1)]
        self._signal({"status": "questions", "questions": numbered})
        raise End(0)

    def error(self, text: str) -> None:
        self._signal({"status": "error", "error": text})
        raise End(1)

    def exit(self, code: int) -> None:
        raise End(code)

    def crash(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(self) -> None:
        while True:
            signal.pause()

    # ── trouble ──────────────────────────────────────────────────────────────────────────────────────────

    def signal(self, value: Any = None, text: str | None = None, encoding: str = "utf-8", kind: str = "") -> None:
        if kind:
            self._put_odd(kind)
        else:
            self._put((json.dumps(value, ensure_ascii=False) if text is None else text).encode(encoding))

    def ignore_term(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def children(self, count: int, seconds: float = 60.0, session: bool = False) -> None:
        for _ in range(count):
            shell.begin("sleep", str(seconds), session=session)

    def emit(self, file: str = "", lines: Iterable[str] = (), delay: float = 0.0) -> None:
        recorded = (
            Path(file).read_bytes().splitlines(keepends=True) if file else [f"{line}\n".encode() for line in lines]
        )
        for line in recorded:
            _out(line)
            time.sleep(delay)

    def print(self, line: int = 100, **amount: int) -> None:
        row = b"." * (line or _PIECE) + (b"\n" if line else b"")
        left = amount["bytes"]
        while left > 0:
            left -= _out((row * (_PIECE // len(row) or 1))[:left])

    # ── parts of steps ────────────────────────────────────────────────────────────────────────────────────────────

    def _filled(self, text: str) -> str:
        return text.replace("{agent}", self.agent).replace("{number}", str(self.number))

    def _git(self, *words: str) -> None:
        if code := shell.call("git", *words):
            raise Fail(f"git {words[0]} ended with {code}")

    def _signal(self, value: Mapping[str, Any]) -> None:
        self._put(json.dumps(value, ensure_ascii=False).encode())

    def _put(self, content: bytes) -> None:
        """Write the signal in one step, so that nobody sees half of it."""
        self.signal_file.parent.mkdir(parents=True, exist_ok=True)
        draft = self.signal_file.with_name(f".{self.signal_file.name}.new")
        draft.write_bytes(content)
        draft.replace(self.signal_file)

    def _put_odd(self, kind: str) -> None:
        """Put something in the signal's place that is not a plain file, or a huge one."""
        if kind == "link":
            target = self.signal_file.with_name("elsewhere.json")
            target.write_text('{"status": "done"}', encoding="utf-8")
            self.signal_file.symlink_to(target)
        elif kind == "pipe":
            os.mkfifo(self.signal_file)
        elif kind == "folder":
            self.signal_file.mkdir()
        else:
            self._put(b" " * _HUGE)


VERBS: dict[str, Callable[..., None]] = {
    "say": Player.say,
    "write": Player.write,
    "append": Player.append,
    "replace": Player.replace,
    "delete": Player.delete,
    "run": Player.run,
    "commit": Player.commit,
    "merge": Player.merge,
    "sleep": Player.sleep,
    "expect": Player.expect,
    "done": Player.done,
    "ask": Player.ask,
    "error": Player.error,
    "exit": Player.exit,
    "crash": Player.crash,
    "hang": Player.hang,
    "signal": Player.signal,
    "ignore-term": Player.ignore_term,
    "children": Player.children,
    "emit": Player.emit,
    "print": Player.print,
}


def _out(content: bytes) -> int:
    """Print at once: what an agent says is followed live."""
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
    return len(content)
