"""The demo's repository: make it, test it, and compare it with the receipts, all by plain git."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from windlass.cli.output import Row
from windlass.core.errors import Unavailable
from windlass.library.demo import package_files

MAIN = "main"

_SETTINGS = {"user.name": "Windlass demo", "user.email": "demo@windlass.invalid", "core.autocrlf": "false"}
"""The repository's own settings, so that it does not need the user's."""


def require_git() -> None:
    """Raises Unavailable without git; the daemon checks its version."""
    if shutil.which("git") is None:
        hint = "Install git 2.38 or newer, for example with `apt install git` or `brew install git`."
        raise Unavailable("git is not installed.", hint=hint)


def check_command() -> str:
    """The command that tests the package. Our own Python comes first: a version manager's shim may be slow."""
    beside = Path(sys.executable).with_name("python3")
    if shutil.which("python3") is None:
        return f"{shlex.quote(sys.executable)} -m unittest"
    if beside.exists():
        os.environ["PATH"] = f"{beside.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return "python3 -m unittest"


class Repository:
    """A small package with its tests, in one commit on main."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._git("init", "-q")
        self._git("symbolic-ref", "HEAD", f"refs/heads/{MAIN}")
        for name, value in _SETTINGS.items():
            self._git("config", name, value)
        for name, text in package_files().items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text, encoding="utf-8")
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "Begin")
        self.beginning = self._history()

    def begin_check(self, command: str) -> subprocess.Popen[str]:
        """Start the tests of the first commit in the background."""
        return subprocess.Popen(
            command,
            shell=True,
            cwd=self.path,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def expect_passed(self, tests: subprocess.Popen[str]) -> None:
        """Wait for the tests. Raises Unavailable unless they pass."""
        said = tests.communicate()[1]
        if tests.returncode:
            last = (said.strip().splitlines() or ["no reason was given"])[-1]
            raise Unavailable(f"The demo's own tests do not run here: {last}", hint="They need Python 3.11 or newer.")

    def compare(self, receipts: Sequence[Row]) -> tuple[str, bool]:
        """The commit of main, and whether every commit that main was at has the tree that the checks passed on."""
        tips = self._git("log", "-g", "--format=%H %T", MAIN).splitlines()
        proven = {f"{receipt['moved_to']} {receipt['tested_tree']}" for receipt in receipts if _passed(receipt)}
        landed = [*self.beginning, *(f"{receipt['after']} {receipt['tree']}" for receipt in receipts)]
        return tips[0].split()[0], {*tips} <= proven | {*self.beginning} and self._history() == landed

    def _history(self) -> list[str]:
        """The commits of main with their trees, the oldest first."""
        return self._git("log", "--first-parent", "--reverse", "--format=%H %T", MAIN).splitlines()

    def _git(self, *words: str) -> str:
        """Run git with the settings of this repository only."""
        ours = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ("git", *words), cwd=self.path, env=os.environ | ours, capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
            raise Unavailable(f"git {words[0]} failed: {reason}")
        return done.stdout


def _passed(receipt: Row) -> bool:
    checks = receipt["checks"]
    return bool(checks) and all(check["passed"] and check["tree"] == receipt["tested_tree"] for check in checks)
