"""Start programs by way of the forker: each is known to us before it begins, and bears a stamp."""

from __future__ import annotations

import errno
import marshal
import os
import signal
import socket
import sys
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable, WindlassError
from windlass.core.nouns.run import Identity
from windlass.process.proc import boot_id
from windlass.process.starting.forker import GO, HEAD, REPLY

_NO_ROOM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)
_PATIENCE = 20.0
_NEEDED = ("LD_LIBRARY_PATH",)
"""What an interpreter may need of our environment."""


class Spawner:
    """Starts programs, from any thread. Its forker is begun when it is first needed, and ends with it."""

    def __init__(self, files: int | None = None) -> None:
        self.files = files
        """How many files a program may open; nothing: as many as we."""
        self._one_at_a_time = threading.Lock()
        self._line: socket.socket | None = None
        self._end: Callable[[], object] = lambda: None

    def spawn(
        self,
        argv: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[int],
        stamp: int,
        known: Callable[[Identity], None] = lambda _: None,
    ) -> Identity:
        """Start a program; the descriptors become its 0, 1, 2 and so on. `known` is called before it begins."""
        request = _request(argv, environment, stamp)
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise refusal(error) from error
        with ours:
            with theirs:
                identity = self._forked(request, [*streams, theirs.fileno()])
            known(identity)
            _let_go(ours, identity)
        return identity

    def close(self) -> None:
        """End the forker. What it started goes on."""
        self._end()
        self._line = None

    def _forked(self, request: bytes, descriptors: Sequence[int]) -> Identity:
        with self._one_at_a_time:
            line = self._line or self._begin()
            try:
                socket.send_fds(line, [HEAD.pack(len(request))], descriptors)
                line.sendall(request)
                reply = line.recv(REPLY.size, socket.MSG_WAITALL)
            except OSError:
                reply = b""
            if len(reply) < REPLY.size:
                self.close()
                raise Unavailable("The process that starts programs has gone.", hint="The next start begins a new one.")
        pid, started = REPLY.unpack(reply)
        if pid < 0:
            raise refusal(OSError(-pid, os.strerror(-pid)))
        return Identity(pid, started, boot_id())

    def _begin(self) -> socket.socket:
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                pid = _begin_forker(theirs.fileno(), self.files)
        except OSError as error:
            raise refusal(error) from error
        ours.settimeout(_PATIENCE)
        self._line = ours
        self._end = weakref.finalize(self, _end_forker, ours, pid)
        return ours


def _request(argv: Sequence[str], environment: Mapping[str, str], stamp: int) -> bytes:
    words = [os.fsencode(word) for word in argv]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    if any(b"\0" in part for part in (*words, *variables, *variables.values())) or any(b"=" in it for it in variables):
        raise BadInput("The command or its environment can't be given to a program: a NUL byte, or a name with `=`.")
    return marshal.dumps((words, variables, stamp))


def _let_go(gate: socket.socket, identity: Identity) -> None:
    """Let a new process become its program, which closes its end of the gate. Raises what it says if it can't."""
    gate.settimeout(_PATIENCE)
    try:
        gate.sendall(GO)
        problem = gate.recv(16)
    except (BrokenPipeError, ConnectionResetError):  # killed meanwhile: it has ended, as any program may
        return
    except TimeoutError as error:
        raise Unavailable(f"The process {identity.pid} did not begin its program in time.") from error
    if problem:
        raise refusal(OSError(int(problem), os.strerror(int(problem))))


def _begin_forker(line: int, files: int | None) -> int:
    limit = [] if files is None else [str(files)]
    program = [sys.executable, "-I", "-S", str(Path(__file__).with_name("forker.py")), *limit]
    streams = [(os.POSIX_SPAWN_DUP2, line, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    return os.posix_spawn(
        sys.executable,
        program,
        {name: os.environ[name] for name in _NEEDED if name in os.environ},
        file_actions=[*streams, *((os.POSIX_SPAWN_CLOSE, number) for number in _inheritable())],
        setsid=True,
        setsigmask=(),
        setsigdef=signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP},
    )


def _end_forker(line: socket.socket, pid: int) -> None:
    line.close()
    with suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


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


def refusal(error: OSError) -> WindlassError:
    """What the system's refusal to start something means."""
    if error.errno == errno.E2BIG:
        return BadInput("The command and its environment are longer than the system allows.")
    if error.errno in _NO_ROOM:
        return Unavailable(
            f"The system has no room for another process: {error.strerror}.",
            hint="Stop an agent with `windlass stop NAME`, or raise the limits that `ulimit -a` shows.",
        )
    return Unavailable(f"The process could not be started: {error.strerror}.")
