"""The real coding CLIs, as a script would start them: each with a home of its own, and a model that we write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import pytest
from island import Island

import patience

TOP = Path(__file__).parent.parent.parent
WITHIN = patience.seconds(60)

CLAUDE = "claude -p --output-format stream-json --verbose --dangerously-skip-permissions".split()
CODEX = "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m gpt-5.5".split()
QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "IS_SANDBOX": "1",  # it takes no such orders from root otherwise
    "CLAUDE_CODE_MAX_RETRIES": "0",
}
CODEX_QUIET = "-c analytics.enabled=false -c check_for_update_on_startup=false --disable plugins --disable apps".split()


def program(name: str) -> str:
    """Where a CLI is. Without one there is no test, and in CI no test is a failure."""
    folder = Path(os.environ.get("WINDLASS_TEST_AGENTS") or TOP / ".agents/node_modules/.bin")
    found = folder / name
    if not found.exists():
        reason = f"there is no {found}; scripts/agents installs it, or WINDLASS_TEST_AGENTS says where it is"
        do_without(reason)
    return str(found)


def do_without(reason: str) -> NoReturn:
    """Skip what can't be tested here; in CI that is a failure."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a CLI ended, and what it said."""

    code: int
    lines: list[Any]
    errors: str

    @property
    def session(self) -> str:
        """The id by which the conversation is resumed."""
        found = next(line for line in self.lines if "session_id" in line or "thread_id" in line)
        return str(found.get("session_id") or found["thread_id"])

    @property
    def last(self) -> Any:
        return self.lines[-1]

    @property
    def words(self) -> str:
        """The last thing that the model said, or why there is none."""
        match self.last:
            case {"type": "result", "result": words}:
                return str(words)
            case {"type": "turn.failed", "error": {"message": words}}:
                return str(words)
        said = [line["item"]["text"] for line in self.lines if line.get("item", {}).get("type") == "agent_message"]
        return str(said[-1])


@dataclass(frozen=True, slots=True)
class Cli:
    """One CLI in a folder of its own, on an island with the model."""

    name: str
    place: Island
    folder: Path
    url: str
    more: dict[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()

    @property
    def project(self) -> Path:
        return self.folder / "project"

    def run(self, prompt: str, *, resume: str = "") -> Ended:
        """Run it to its end."""
        with self.running(prompt, resume=resume) as process:
            return ended(process)

    @contextmanager
    def running(self, prompt: str, *, resume: str = "") -> Iterator[subprocess.Popen[str]]:
        """It runs; at the end it does not."""
        for folder in ("project", "home", "tmp", "codex"):
            (self.folder / folder).mkdir(exist_ok=True)
        process = subprocess.Popen(
            self.place.there(*self._words(prompt, resume)),
            cwd=self.project,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        with process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)

    def _words(self, prompt: str, resume: str) -> list[str]:
        if self.name == "claude":
            return [program("claude"), *self.flags, *CLAUDE[1:], *(("--resume", resume) if resume else ()), prompt]
        scripted = (
            f'{{name="scripted",base_url="{self.url}/v1",env_key="SCRIPTED_KEY",wire_api="responses",'
            "request_max_retries=1,stream_max_retries=1,stream_idle_timeout_ms=20000}"
        )
        model = ("-c", "model_provider=scripted", "-c", f"model_providers.scripted={scripted}")
        return [
            program("codex"),
            *CODEX[1:],
            *self.flags,
            *CODEX_QUIET,
            *model,
            *(("resume", resume) if resume else ()),
            prompt,
        ]

    def _environment(self) -> dict[str, str]:
        """Nothing of the person who runs the tests: not even the folders where their CLIs are logged in."""
        mine = {"HOME": "home", "TMPDIR": "tmp", "CLAUDE_CONFIG_DIR": "claude", "CODEX_HOME": "codex"}
        folders = {name: str(self.folder / place) for name, place in mine.items()}
        keys = {"SCRIPTED_KEY": "sk-scripted", "ANTHROPIC_BASE_URL": self.url}
        login = {} if "CLAUDE_CODE_OAUTH_TOKEN" in self.more else {"ANTHROPIC_API_KEY": "sk-scripted"}
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **folders, **QUIET, **keys, **login, **self.more}


def ended(process: subprocess.Popen[str]) -> Ended:
    """What a process said until its end."""
    out, errors = process.communicate(timeout=WITHIN)
    return Ended(process.returncode, [json.loads(line) for line in out.splitlines()], errors)


def eventually(path: Path, within: float = WITHIN) -> None:
    """Wait for a file to be there."""
    deadline = time.monotonic() + within
    while not path.exists():
        assert time.monotonic() < deadline, f"no {path.name} in {within} s"
        time.sleep(0.02)


def written_down(words: str, folder: Path, within: float = WITHIN) -> None:
    """Wait for words to be in a conversation that is kept in a folder."""
    deadline = time.monotonic() + within
    while not any(words in path.read_text(errors="replace") for path in folder.rglob("*.jsonl")):
        assert time.monotonic() < deadline, f"no {words} in {folder.name} in {within} s"
        time.sleep(0.02)
