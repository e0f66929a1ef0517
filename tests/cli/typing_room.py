"""Where tests type commands: a home of their own, a real process per command, and a terminal if wanted."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from pathlib import Path

import forked
import patience
from forked import WINDLASS

WITHIN = patience.seconds(20)


class Keyboard:
    """Types `windlass …` in a folder, with a home that belongs to the test."""

    def __init__(self, home: Path, folder: Path) -> None:
        self.home = home
        self.folder = folder
        self.environment = {
            **forked.of_python(os.environ),
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(forked.SOURCE),
            "WINDLASS_HOME": str(home),
        }

    def type(self, *words: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return forked.run(
            (*WINDLASS, *words),
            given=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment | environment,
            timeout=WITHIN,
        )

    def bytes(self, *words: str) -> bytes:
        """Run one command and return the very bytes that it printed."""
        ran = forked.run((*WINDLASS, *words), stdout=subprocess.PIPE, env=self.environment, timeout=WITHIN)
        ran.check_returncode()
        return bytes(ran.stdout)

    def open(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        """Begin one command and read along."""
        return forked.begin(
            (*WINDLASS, *words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            env=self.environment | environment,
        )

    def on_terminal(self, *words: str, columns: int = 80, stdin: str = "", **environment: str) -> tuple[int, str]:
        """Run one command on a terminal of that width; returns its exit code and all that was shown."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = forked.begin(
            (*WINDLASS, *words),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self.folder,
            env=self.environment | {"TERM": "xterm"} | environment,
        )
        os.close(theirs)
        os.write(ours, stdin.encode())
        shown = _read_all(ours)
        return process.wait(WITHIN), shown.replace("\r\n", "\n")


def _read_all(terminal: int) -> str:
    shown = b""
    try:
        while piece := os.read(terminal, 65536):
            shown += piece
    except OSError:  # how Linux says that the other side has closed
        pass
    os.close(terminal)
    return shown.decode()


def in_a_repository(folder: Path) -> Keyboard:
    """Types in a folder that counts as the top of a repository."""
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return Keyboard(folder / "home", folder)
