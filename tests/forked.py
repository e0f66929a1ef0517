"""Begin Windlass commands: forked from a process that has imported Windlass, or the program where that differs."""

from __future__ import annotations

import inspect
import marshal
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fork_server
import windlass

FORK = "WINDLASS_TEST_FORK"
"""`no`: every command and daemon of the tests is a program of its own, as in a long run."""
WINDLASS = (sys.executable, *fork_server.PROGRAM)
SOURCE = Path(windlass.__file__).parent.parent
_OF_PYTHON = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "GLIBC_")
"""Variables that an interpreter heeds when it begins: with others than the server's, a command is not forked."""


def begin(words: Sequence[str], *, env: Mapping[str, str], **options: Any) -> subprocess.Popen[Any]:
    """Begin a command, as `subprocess.Popen` does; one of Windlass is forked."""
    kind = ForkedCommand if _may_fork(words, env) else subprocess.Popen
    return kind(words, env=env, **options)


def run(
    words: Sequence[str],
    *,
    timeout: float,
    stdin: Any = subprocess.PIPE,
    given: str | bytes | None = None,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end, as `subprocess.run` does; one of Windlass is forked."""
    with begin(words, stdin=stdin, **options) as process:
        try:
            said, complained = process.communicate(given, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, said, complained)


def _may_fork(words: Sequence[str], env: Mapping[str, str]) -> bool:
    if os.environ.get(FORK) == "no" or tuple(words[: len(WINDLASS)]) != WINDLASS:
        return False
    encoded = {os.fsencode(name): os.fsencode(value) for name, value in env.items()}
    return of_python(env) == server().variables and fork_server.fits(_encoded(words), encoded)


def of_python(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that an interpreter heeds when it begins."""
    return {name: value for name, value in variables.items() if name.startswith(_OF_PYTHON)}


def _encoded(words: Sequence[str]) -> list[bytes]:
    return [os.fsencode(word) for word in words]


class ForkServer:
    """A server of this process: begun when it is first needed, and gone with it."""

    def __init__(self) -> None:
        self._one_at_a_time = threading.Lock()
        self.variables = of_python(os.environ) | {"PYTHONPATH": str(SOURCE)}
        self._line, theirs = socket.socketpair()
        words, variables = fork_server.padded(
            (sys.executable, "-P", fork_server.__file__, str(theirs.fileno())), self.variables
        )
        with theirs:
            self._process = subprocess.Popen(
                words, cwd="/", env=variables, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()]
            )

    def fork(self, request: bytes, descriptors: Sequence[int]) -> None:
        """Ask for a process; it reports on the last of the descriptors."""
        with self._one_at_a_time:
            socket.send_fds(self._line, [fork_server.HEAD.pack(len(request))], descriptors)
            self._line.sendall(request)


def server() -> ForkServer:
    """The one that sees the same disks as we do: a test may mount some that only we and what we start can see."""
    return _server(str(Path("/proc/self/ns/mnt").readlink()))


@cache
def _server(_namespace: str) -> ForkServer:
    return ForkServer()


class ForkedCommand(subprocess.Popen[Any]):
    """A command that the server has forked; whoever began it sees no difference."""

    def _execute_child(self, *given: Any) -> None:
        """Let the server fork it, instead of an interpreter that starts."""
        replaced = inspect.signature(subprocess.Popen._execute_child)  # type: ignore[attr-defined]  # it is not public
        asked = replaced.bind(self, *given).arguments
        streams = [asked[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        variables = {os.fsencode(name): os.fsencode(value) for name, value in asked["env"].items()}
        request = marshal.dumps((os.fsencode(asked["cwd"] or Path.cwd()), _encoded(asked["args"]), variables))
        self._report, theirs = socket.socketpair()
        with theirs:
            descriptors = [place if stream == -1 else stream for place, stream in enumerate(streams)]
            server().fork(request, [*descriptors, theirs.fileno()])
        self.pid = self._reported(fork_server.BEGUN)
        self._child_created = True
        pipes = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
        self._close_pipe_fds(*(asked[name] for name in pipes))  # type: ignore[attr-defined]  # it is not public

    def _reported(self, expected: bytes) -> int:
        said = self._report.recv(fork_server.REPORT.size, socket.MSG_WAITALL)
        kind, number = fork_server.REPORT.unpack(said) if said else (b"", 0)
        if kind != expected:
            raise OSError(f"the command {self.args!r} did not begin, or whoever forks commands has gone: {said!r}")
        return int(number)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """What `os.waitpid` says of a child: nothing yet, or how it has ended."""
        if wait_flags & os.WNOHANG and not select.select([self._report], [], [], 0)[0]:
            return 0, 0
        status = self._reported(fork_server.ENDED)
        self._report.close()
        return self.pid, status

    def _internal_poll(self, **_: Any) -> int | None:
        with self._waitpid_lock:  # type: ignore[attr-defined]  # it is not public
            if self.returncode is None:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self._handle_exitstatus(status)  # type: ignore[attr-defined]  # it is not public
        return self.returncode
