"""Programs that a scripted agent starts. The subprocess module would cost a tenth of its start-up time."""

from __future__ import annotations

import os
import signal

_NO_INPUT = (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)
_NO_OUTPUT = tuple((os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_WRONLY, 0) for number in (1, 2))
_USUAL = (signal.SIGTERM, signal.SIGPIPE)
"""Signals that a program gets as everyone expects, whatever the player ignores."""


def call(*words: str, quiet: bool = False) -> int:
    """Run a program, its output among ours unless it is quiet; its exit code, negative if it was killed."""
    return os.waitstatus_to_exitcode(os.waitpid(begin(*words, quiet=quiet), 0)[1])


def begin(*words: str, quiet: bool = False, session: bool = False) -> int:
    """Start a program and leave it; it keeps our output open."""
    streams = [_NO_INPUT, *(_NO_OUTPUT if quiet else ())]
    return os.posix_spawnp(words[0], words, os.environ, file_actions=streams, setsid=session, setsigdef=_USUAL)
