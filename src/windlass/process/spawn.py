"""Starting a program that outlives us: own session, default signals, none of our descriptors."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable, WindlassError
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.process.proc import identify, process, words_of
from windlass.process.run_folder import RunFolder
from windlass.process.sandbox.bubblewrap import Bubblewrap

SHELL = "/bin/sh"

# $1 the run's folder, $2 where to work, then the program. Nothing is ever put into this text.
# Signals to the group are caught here, so that the end is still told, and a caught signal is the default again in the
# program. Once it has ended they are ignored. What the shell itself would say about a killed program stays out of the
# output. The exit code needs no rename: a reader takes it only with the newline at its end.
_SHIM = """\
trap : HUP INT QUIT TERM PIPE ALRM USR1 USR2
exec 3>&2 2>/dev/null
( cd "$2" 2>&3 || exit; unset OLDPWD; shift 2; exec "$@" 2>&3 3>&- )
set -- "$1" "$?"
trap '' HUP INT QUIT TERM PIPE ALRM USR1 USR2
umask 077
printf '%s\\n' "$2" >"$1/exit"
"""

_SHIM_NAME = "windlass-run"
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)

Action = tuple[int, int, int] | tuple[int, int] | tuple[int, int, str, int, int]


def start_shim(launch: Launch, folder: RunFolder, environment: Mapping[str, str], bubblewrap: Bubblewrap) -> Identity:
    """Start a run's program under a shim that writes its exit code into the run's folder; in its sandbox, if any."""
    check_folder(launch.cwd)
    command = [locate(launch.argv, environment, launch.cwd), *launch.argv[1:]]
    stdin = _stdin(launch)
    if launch.sandbox:
        command, environment = bubblewrap.wrapped(command, launch.cwd, environment, launch.sandbox)
    try:
        folder.prepare()
    except OSError as error:
        raise Unavailable(f"The folder {folder.path} could not be made: {error.strerror}.") from error
    argv = [SHELL, "-c", _SHIM, _SHIM_NAME, str(folder.path), launch.cwd, *command]
    output = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    actions: list[Action] = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(folder.output), output, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    return spawn(argv, environment, actions)


def is_shim(identity: Identity) -> bool:
    """Whether this process is a run's shim, and not its program or something that it left.

    A session leader without words has only just been started: the kernel tells its words a moment later.
    """
    found = process(identity.pid)
    if found is None or found.pid != found.session:
        return False
    words = words_of(found.pid)
    return words == [""] or words[3:4] == [_SHIM_NAME]


def spawn(argv: Sequence[str], environment: Mapping[str, str], streams: Iterable[Action]) -> Identity:
    """Start a program whose first three descriptors `streams` set up. It is our child: someone must reap it."""
    try:
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            environment,
            file_actions=[*streams, *((os.POSIX_SPAWN_CLOSE, number) for number in _inheritable())],
            setsid=True,
            setsigmask=(),
            setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
        )
    except OSError as error:
        raise _refusal(error) from error
    except ValueError as error:  # a NUL byte, or a name with "=" in it
        raise BadInput(f"The command or its environment can't be given to a program: {error}.") from error
    return _known(pid)


def _known(pid: int) -> Identity:
    """Name our new child, or take it back: nobody could ever follow or stop it."""
    try:
        if identity := identify(pid):
            return identity
    except Unavailable:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    raise Unavailable(f"The process {pid} was reaped by someone else while it was being started.")


def locate(argv: Sequence[str], environment: Mapping[str, str], cwd: str) -> str:
    """The absolute path of the program, as its own environment finds it."""
    if not argv or not argv[0]:
        raise BadInput("There is no program to start.")
    name = argv[0]
    places = [""] if "/" in name else environment.get("PATH", DEFAULT_PATH).split(":")
    for place in places:
        path = Path(cwd, place, name)
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise BadInput(
        f"The program {name!r} is not there, or can't be executed.",
        hint="Install it, or run `windlass doctor` to see which programs are found.",
    )


def check_folder(cwd: str) -> None:
    """Refuse a working folder that is not there."""
    if not Path(cwd).is_absolute():
        raise BadInput(f"The folder {cwd!r} is not an absolute path.")
    if not Path(cwd).is_dir():
        raise BadInput(
            f"The folder {cwd} is not there, so nothing can be started in it.",
            hint="Run `windlass doctor` to see which worktrees are lost.",
        )


def _stdin(launch: Launch) -> str:
    if launch.stdin and not Path(launch.stdin).is_file():
        raise BadInput(f"The input file {launch.stdin} of run {launch.run} is not there.")
    return launch.stdin or os.devnull


def _inheritable() -> list[int]:
    """Descriptors that a child would get from us: those that we were started with ourselves."""
    with os.scandir("/proc/self/fd") as entries:
        numbers = [int(entry.name) for entry in entries]
    return [number for number in numbers if number > 2 and _is_inheritable(number)]


def _is_inheritable(descriptor: int) -> bool:
    try:
        return os.get_inheritable(descriptor)
    except OSError:  # closed meanwhile
        return False


def _refusal(error: OSError) -> WindlassError:
    if error.errno == errno.E2BIG:
        return BadInput("The command and its environment are longer than the system allows.")
    if error.errno in _NO_ROOM:
        return Unavailable(
            f"The system has no room for another process: {error.strerror}.",
            hint="Stop an agent with `windlass stop NAME`, or raise the limits that `ulimit -a` shows.",
        )
    return Unavailable(f"The process could not be started: {error.strerror}.")


class Children:
    """Those we have started and not yet reaped. We never wait for a child that someone else started."""

    def __init__(self) -> None:
        self._pids: set[int] = set()

    def add(self, pid: int) -> None:
        self._pids.add(pid)

    def reap(self) -> None:
        """Take leave of all that have ended."""
        for pid in tuple(self._pids):
            with suppress(ChildProcessError):  # nobody has such a child: it was reaped
                if os.waitpid(pid, os.WNOHANG)[0] != pid:
                    continue
            self._pids.discard(pid)
