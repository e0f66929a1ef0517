"""The stamp of a process: a number that the kernel keeps. All descendants inherit it, and none can take it off.

It is the hard limit on file locks, which the kernel has not used since version 2.4. A process can lower its limit, but
only root can raise one. So whoever has a lower one than the daemon was started by the daemon, whatever became of its
parents, its session and its environment.
"""

from __future__ import annotations

import resource
import zlib
from functools import cache

from windlass.core.errors import Unavailable
from windlass.process.proc import NO_STAMP
from windlass.process.starting.forker import LOCKS

_LEVEL, _HOME = 56, 28
"""Where the parts of a stamp begin: the level counts down where one daemon runs below another; then home and name."""
_PART = (1 << 28) - 1
_COMMAND = 1 << 27
"""In the part for the name: set for a check or a set-up, not set for a run."""
_HIGHEST = 62


def run_stamp(home: str, run: str) -> int:
    """The stamp of all processes of a run."""
    return _of_home(home) << _HOME | _part(run) & ~_COMMAND


def command_stamp(home: str, name: str) -> int:
    """The stamp of all processes of a check or a set-up."""
    return _of_home(home) << _HOME | _part(name) | _COMMAND


def is_of(home: str, stamp: int) -> bool:
    """Whether a process with this stamp was started by a daemon of this home."""
    return stamp != NO_STAMP and stamp >> _HOME & _PART == _part(home)


def is_command(stamp: int) -> bool:
    return bool(stamp & _COMMAND)


@cache
def own_stamp() -> int:
    """Our own as we were started: none, unless by a run of another home. A process of ours could lower it later."""
    hard = resource.getrlimit(LOCKS)[1]
    return NO_STAMP if hard == resource.RLIM_INFINITY else hard


def refuse_inside_a_run(home: str) -> None:
    """Refuse to be the daemon of a home inside one of its own runs, where it would end with the run."""
    if is_of(home, own_stamp()):
        raise Unavailable(
            "The daemon is not started by a run of its own, with which it would end.",
            hint="Start it outside every run; your signal file ($WINDLASS_SIGNAL) is read when it is back.",
        )


def _of_home(home: str) -> int:
    level = min(own_stamp() >> _LEVEL, _HIGHEST + 1) - 1
    if level < 0:
        raise Unavailable(
            "The limit on file locks is so low that processes can't be told apart by it.",
            hint="Start the daemon from a shell in which `ulimit -H -x` (or -w) says `unlimited`.",
        )
    return level << _LEVEL - _HOME | _part(home)


def _part(name: str) -> int:
    return zlib.crc32(name.encode()) & _PART
