"""One scenario with everything in it, played against a daemon that may be killed anywhere."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import forked
import patience
from windlass.cli.connection.client import Client
from windlass.cli.connection.http import Gone
from windlass.core.errors import Unavailable, WindlassError

PATIENCE = 90.0
"""Seconds that a scenario may take, on a machine that does other things too."""

CHECKS = "test ! -e broken && ! grep -rq '<<<<<<<' --include='*.txt' ."

SETTINGS = f'[checks]\ncommand = "{CHECKS}"\n[worktree]\ncopy = [".env"]\nsetup = "test -e .env"\n'

LANDS = (
    "- say: hello\n- run: 'until [ -e %(ready)s ]; do sleep 0.05; done'\n"
    "- write: {shared.txt: one}\n- commit: First\n- done: Wrote it.\n"
)
MENDED = (
    "runs:\n"
    "- [{say: careless}, {write: {broken: x}}, {commit: Break it}, done]\n"
    "- [{expect: broken}, {delete: broken}, {write: {b.txt: whole}}, {commit: Mend it}, done]\n"
)
ASKS = (
    "runs:\n- [{say: which?}, {ask: Which colour?}]\n"
    "- [{expect: blue}, {write: {c.txt: blue}}, {commit: Paint it}, done]\n"
)
CONFLICTS = (
    "runs:\n"
    "- [{run: 'until [ -e %(go)s ]; do sleep 0.05; done'}, {write: {shared.txt: other}}, {commit: Other}, done]\n"
    "- [{merge: {ref: origin/main, take: ours}}, {write: {shared.txt: both}}, {commit: Both}, done]\n"
)
HANGS = "- say: hanging\n- hang\n"
SCRIPTS = {"lands": LANDS, "mended": MENDED, "asks": ASKS, "conflicts": CONFLICTS, "hangs": HANGS}


@dataclass
class CrashStage:
    """A home, a repository, and a person who goes on whatever happens to the daemon."""

    folder: Path
    crash_at: str = ""
    steps: str = ""
    starts: int = 0
    stopped: bool = False
    _answered: bool = False
    _client: Client = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "h"
        self.repo = self.folder / "repo"
        self.go = self.folder / "go"
        self.ready = self.folder / "ready"
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        (self.repo / "README.md").write_text("# A small project\n")
        (self.repo / ".gitignore").write_text("/.windlass/\n")
        (self.repo / ".git" / "info" / "exclude").write_text("/.env\n")
        (self.repo / ".env").write_text("KEY=value\n")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Begin")
        (self.repo / ".windlass").mkdir()
        (self.repo / ".windlass" / ".gitignore").write_text("*\n")
        (self.repo / ".windlass" / "config.toml").write_text(SETTINGS)
        self._client = Client(str(self.home), start=self._start, waiting=lambda _: None, patience=patience.seconds(20))

    def git(self, *arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=self.repo, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def _start(self, home: str) -> None:
        """The first daemon may be told to die; those after it are not."""
        self.starts += 1
        asked = {"WINDLASS_CRASH_AT": self.crash_at if self.starts == 1 else "", "WINDLASS_STEPS": self.steps}
        told = self._type(
            "daemon", "start", WINDLASS_HOME=home, **{name: value for name, value in asked.items() if value}
        )
        if told.returncode:
            raise Unavailable(str(told.stderr))

    def ask(self, *path: str, **query: Any) -> Any:
        return self._persist(lambda: self._client.get(*path, **query))

    def _persist(self, call: Any) -> Any:
        """Try again as long as the daemon dies under us."""
        for _ in range(20):
            try:
                return call()
            except (Gone, ConnectionError, FileNotFoundError):
                continue
            except WindlassError as error:
                if "did not start" not in str(error) and "leave" not in str(error):
                    raise
        return call()

    def play(self) -> None:
        """Go through the whole scenario, doing each thing once."""
        deadline = patience.Deadline(PATIENCE)
        while not self._step():
            assert not deadline.passed(), f"stuck at {self.crash_at}: {self.facts()}"
            time.sleep(0.05)

    def _step(self) -> bool:
        """Look at the facts and do what is missing. True when all is over."""
        agents = {each["task_title"]: each for each in self.ask("agents", all=1)["items"]}
        missing = [title for title in SCRIPTS if title not in agents]
        if missing:
            self._add(missing[0], SCRIPTS[missing[0]] % {"go": self.go, "ready": self.ready})
            return False
        states = {title: self._state(each) for title, each in agents.items()}
        if "pid" in agents["conflicts"]["evidence"]:
            self.ready.touch()  # it stands on main as it was before `lands`
        if states["lands"] == "landed":
            self.go.touch()
        if agents["asks"]["status"] == "waiting":
            self._answer(agents["asks"]["name"])
        if agents["hangs"]["status"] == "running" and "last output" in agents["hangs"]["evidence"]:
            self._try("agents", agents["hangs"]["name"], "stop")
        landed = all(states[title] == "landed" for title in ("lands", "mended", "asks", "conflicts"))
        return landed and agents["hangs"]["status"] == "stopped" and self._tidy(agents)

    def _state(self, agent: dict[str, Any]) -> str:
        change = self.ask("agents", agent["name"])["change"]
        return str(change["state"]) if change else "none"

    def _tidy(self, agents: dict[str, Any]) -> bool:
        """Whether what landed has been cleared away."""
        worktrees = [Path(self.ask("agents", agent["name"])["worktree"]) for agent in agents.values()]
        return sum(worktree.exists() for worktree in worktrees) == 1

    def _add(self, title: str, script: str) -> None:
        self._try("tasks", path=str(self.repo), title=title, options={"script": script}, provider="scripted")

    def _answer(self, name: str) -> None:
        if self.ask("agents", name)["questions"]:
            self._try("agents", name, "answer", body="blue")

    def _try(self, *path: str, **body: Any) -> None:
        """Do it once; whether it was done before the daemon died, the next look tells."""
        try:
            self._client.post(*path, **body)
        except (Gone, ConnectionError, FileNotFoundError):
            return
        except WindlassError as error:
            assert type(error).__name__ in ("Conflict", "Unavailable", "TimedOut"), error

    def facts(self) -> dict[str, Any]:
        """All that must be the same however often the daemon died."""
        found: dict[str, Any] = {}
        for agent in self.ask("agents", all=1)["items"]:
            page = self.ask("agents", agent["name"])
            found[agent["task_title"]] = {
                "status": agent["status"],
                "runs": [(run["number"], run["cause"], run["outcome"], run["exit_code"]) for run in page["runs"]],
                "change": page["change"] and (page["change"]["state"], page["change"]["returns"]),
                "reports": [report["body"].split(" ", 1)[-1] for report in page["reports"]],
                "said": self._said(agent["name"]) if agent["task_title"] != "conflicts" else "depends on the order",
            }
        found["main"] = sorted(self.git("ls-tree", "-r", "main").splitlines())
        merges = self.git("log", "--merges", "--first-parent", "--format=%s", "main").splitlines()
        found["landed"] = sorted(merge.split(": ", 1)[1] for merge in merges)
        found["checkout"] = self.git("status", "--porcelain")
        return found

    def broken(self) -> list[str]:
        """The promises that `doctor --check` finds broken."""
        found = self._persist(lambda: list(self._client.stream("doctor", "check")))
        return [f"{each['name']}: {each['detail']}" for each in found if not each["ok"]]

    def _said(self, name: str) -> list[str]:
        chunks = self._persist(lambda: list(self._client.stream("agents", name, "logs")))
        runs: dict[int, str] = {}
        for chunk in chunks:
            runs[chunk["number"]] = runs.get(chunk["number"], "") + chunk["text"]
        return [_without_names(runs[number]) for number in sorted(runs)]

    def leave(self) -> None:
        """Stop the daemon."""
        self._type("daemon", "stop", WINDLASS_HOME=str(self.home))

    def _type(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(forked.SOURCE), **variables}
        pipe = subprocess.PIPE
        words, within = (*forked.WINDLASS, *words), patience.seconds(30)
        return forked.run(words, cwd="/", env=environment, stdout=pipe, stderr=pipe, timeout=within, text=True)


def _without_names(text: str) -> str:
    """An agent's output without the lines that have its own name or a commit in them."""
    return "\n".join(line for line in text.splitlines() if "work/" not in line and "main" not in line)
