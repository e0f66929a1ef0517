"""Starting a program that outlives us: own session, default signals, none of our descriptors, and our stamp."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.run import Identity
from windlass.core.ports.processes import Launch
from windlass.process.proc import process, words_of
from windlass.process.run_folder import RunFolder
from windlass.process.sandbox.bubblewrap import Bubblewrap
from windlass.process.starting.spawner import refusal

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
_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW

Begin = Callable[[Sequence[str], Mapping[str, str], Sequence[int]], Identity]
"""Starts a program with an environment and the descriptors that become its first ones."""


def start_shim(
    launch: Launch, folder: RunFolder, environment: Mapping[str, str], bubblewrap: Bubblewrap, begin: Begin
) -> Identity:
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
    with _opened(stdin, os.O_RDONLY) as given, _opened(str(folder.output), _APPEND) as output:
        return begin(argv, environment, (given, output, output))


@contextmanager
def _opened(path: str, flags: int) -> Iterator[int]:
    try:
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise refusal(error) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def is_shim(identity: Identity) -> bool:
    """Whether this process is a run's shim, and not its program or something that it left.

    A session leader without words has only just been started: the kernel tells its words a moment later.
    """
    found = process(identity.pid)
    if found is None or found.pid != found.session:
        return False
    words = words_of(found.pid)
    return words == [""] or words[3:4] == [_SHIM_NAME]


def locate(argv: Sequence[str], environment: Mapping[str, str], cwd: str) -> str:
    """The absolute path of the program, as its own environment finds it."""
    if not argv or not argv[0]:
        raise BadInput("There is no program to start.")
    name = argv[0]
    places = [""] if "/" in name else environment.get("PATH", DEFAULT_PATH).split(":")
    for place in places:
        path = Path(cwd, place, name)
        if os.access(path, os.X_OK) and path.is_file():  # in this order: a folder on PATH may be closed to us
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
