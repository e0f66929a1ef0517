"""Make `.venv` hold what a lock file says. Only the standard library: this runs before anything is installed."""

from __future__ import annotations

import compileall
import fcntl
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import IO

LOCKS = {"run": "requirements.lock", "dev": "requirements-dev.lock"}
TAIL = 15
UNAVAILABLE, INTERRUPTED = 6, 130


class Failed(Exception):
    """A step did not work; the argument is the last it said."""


class Setup:
    """One folder's `.venv`. A file in it, written last, says for which lock it is ready."""

    def __init__(self, root: Path, purpose: str) -> None:
        self.root = root
        self.purpose = purpose
        self.venv = root / ".venv"
        self.python = self.venv / "bin" / "python"
        self.uv = shutil.which("uv")

    def ready(self, purpose: str) -> bool:
        """Whether it is set up for a purpose, and not before a lock was changed."""
        if not self.complete(purpose):
            return False
        return all(_age(each) <= _age(self.mark(purpose)) for each in self.inputs(purpose))

    def complete(self, purpose: str) -> bool:
        """Whether a set-up for a purpose came to its end, in this place."""
        mark = self.mark(purpose)
        return mark.exists() and mark.read_text().rstrip("\n") == str(self.root) and self.python.exists()

    def mark(self, purpose: str) -> Path:
        return self.venv / f"ready-{purpose}"

    def inputs(self, purpose: str) -> tuple[Path, ...]:
        return self.root / "pyproject.toml", self.root / LOCKS[purpose]

    def run(self) -> None:
        """Set up, unless someone else just did. Without a mark of an earlier success all begins anew."""
        with (self.root / ".venv.lock").open("w") as lock:
            self.wait_for(lock)
            if self.ready(self.purpose):
                return
            begun = self.begin()
            self.install(lock)
            compileall.compile_dir(self.root / "src", quiet=2)
            for purpose in ("run", self.purpose):  # what develops it can run it
                shutil.copy2(begun, self.mark(purpose))
            begun.unlink()
            say("Ready.")

    def wait_for(self, lock: IO[str]) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another set-up is under way here; waiting for it …")
            fcntl.flock(lock, fcntl.LOCK_EX)

    def begin(self) -> Path:
        """Take back the marks, and note the time: what is changed from now on asks for another set-up."""
        usable = any(self.complete(lock) for lock in LOCKS)
        for lock in LOCKS:
            self.mark(lock).unlink(missing_ok=True)
        if self.venv.exists() and not usable:
            shutil.rmtree(self.venv)
        self.venv.mkdir(exist_ok=True)
        begun = self.venv / "begun"
        begun.write_text(f"{self.root}\n")
        newest = max(_age(each) for each in self.inputs(self.purpose))
        if newest > _age(begun):  # files from the future would else ask for a set-up at each use
            os.utime(begun, ns=(newest, newest))
        return begun

    def install(self, lock: IO[str]) -> None:
        lock_file = self.root / LOCKS[self.purpose]
        version = ".".join(map(str, sys.version_info[:3]))
        say(f"Setting up {self.venv} with Python {version} and {'uv' if self.uv else 'pip'} (once, some seconds) …")
        if not self.python.exists():
            step("making the environment", self.make_venv(), lock)
        step(f"installing {lock_file.name}", [*self.pip(), "-r", str(lock_file)], lock)
        here = ["--no-deps", "--no-build-isolation", "-e", str(self.root)]
        step("installing windlass", [*self.pip(), *here], lock)

    def make_venv(self) -> list[str]:
        if self.uv:
            return [self.uv, "venv", "--allow-existing", "--python", sys.executable, str(self.venv)]
        return [sys.executable, "-m", "venv", str(self.venv)]

    def pip(self) -> list[str]:
        if self.uv:
            return [self.uv, "pip", "install", "--compile-bytecode", "--python", str(self.python)]
        return [str(self.python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]


def step(what: str, command: list[str], lock: IO[str]) -> None:
    """Run a command and show on one line how far it is. It holds the lock too, in case we die before it."""
    say(f"  {what} …")
    environment = {name: value for name, value in os.environ.items() if name not in UNWANTED}
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        pass_fds=(lock.fileno(),),
    ) as process:
        assert process.stdout
        last = follow(process.stdout)
    if process.returncode:
        raise Failed("\n".join(last) or f"{command[0]} ended with exit code {process.returncode}.")


UNWANTED = {
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHOME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "PIP_USER",
    "PIP_TARGET",
    "PIP_PREFIX",
}
"""Variables that would install elsewhere, or without byte code."""


def follow(lines: Iterable[str]) -> deque[str]:
    """Show each line over the one before, where a person looks on; return the last ones."""
    last: deque[str] = deque(maxlen=TAIL)
    width = shutil.get_terminal_size().columns - 5
    for line in lines:
        last.append(line.rstrip())
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\033[K    {last[-1].strip()[:width]}")
            sys.stderr.flush()
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
    return last


def say(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def main(root: str, purpose: str) -> int:
    if purpose not in LOCKS:
        say(f"{purpose!r} is no purpose; use one of: {', '.join(LOCKS)}.")
        return 2
    setup = Setup(Path(root), purpose)
    try:
        if not setup.ready(purpose):
            setup.run()
    except KeyboardInterrupt:
        say("\nInterrupted; the next use begins anew.")
        return INTERRUPTED
    except (Failed, OSError) as error:
        say(f"{error}\n\nThe set-up of {setup.venv} did not work; above is the last that was said.")
        say("Hint: it needs a package index (pip's and uv's own settings decide which) and, without uv, Python's venv")
        say("module (Debian, Ubuntu: apt install python3-venv). Then run the same command again.")
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
