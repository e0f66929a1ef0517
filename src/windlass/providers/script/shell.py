"""Programs that a scripted agent starts. The subprocess module would cost a tenth of its start-up time."""

from __future__ import annotations

import os
import signal

_NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
_NO_OUTPUT = tuple((os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_WRONLY, 0) for number in (1, 2))
_USUAL = (signal.SIGTERM, signal.SIGPIPE)
"""Signals that a program gets as everyone expects, whatever the player ignores."""


def call(*words: str) -> int:
    """Run a program, its output among ours; its exit code, negative if it was killed."""
    return _wait(os.posix_spawnp(words[0], words, os.environ, file_actions=[_NO_INPUT], setsigdef=_USUAL))


def quietly(*words: str) -> int:
    """The same without its output."""
    return _wait(os.posix_spawnp(words[0], words, os.environ, file_actions=[_NO_INPUT, *_NO_OUTPUT], setsigdef=_USUAL))


def begin(*words: str, session: bool) -> int:
    """Start a program and leave it; it keeps our output open."""
    return os.posix_spawnp(words[0], words, os.environ, file_actions=[_NO_INPUT], setsid=session, setsigdef=_USUAL)


def _wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
