"""A process that has imported Windlass once, and forks commands from itself: each begins in a fiftieth of a second.

`forked.py` runs it as `python fork_server.py LINE PADDING`. What it forks is like the program itself: its own streams,
folder, variables and words, also in /proc. A command that starts the daemon forks that as well, by the same function
that `python -m windlass.daemon` runs.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import io
import marshal
import os
import pkgutil
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

HEAD = struct.Struct("!I")
"""The length of a request: folder, words and variables. Three streams come with the head, and a line to report on."""
REPORT = struct.Struct("!ci")
BEGUN, ENDED = b"b", b"e"
"""Reported: its pid, by the new process when it is ready; and what `waitpid` says of it, by the server."""
PROGRAM = ("-c", "from windlass.cli.main import run; run()")
DAEMON = ("-P", "-m", "windlass.daemon")
PADDING = "-"
ROOM_FOR_WORDS, ROOM_FOR_VARIABLES = 16_000, 64_000
"""Bytes that /proc can show of a forked process; what has more is not forked."""
_APART = "windlass.model"
"""A program of its own, which no command and no daemon imports."""


def main() -> None:
    """Fork what is asked for, until the suite hangs up."""
    line = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    _clear_shown()
    subprocess.Popen = DaemonPopen  # type: ignore[misc,assignment]  # only in here, and in what is forked from here
    gc.freeze()
    gc.collect()
    children: dict[int, tuple[int, int]] = {}
    looking = select.poll()
    looking.register(line, select.POLLIN)
    while True:
        for descriptor, _ in looking.poll():
            if descriptor != line.fileno():
                looking.unregister(descriptor)
                _bury(descriptor, *children.pop(descriptor))
            elif (child := _serve(line)) is None:
                return
            else:
                children[child[0]] = child[1:]
                looking.register(child[0], select.POLLIN)


def _import_all() -> None:
    """Import every module of the commands and of the daemon."""
    import windlass.daemon.__main__  # noqa: PLC0415 - only the server has use for it

    for module in pkgutil.walk_packages(windlass.__path__, "windlass."):
        if not module.name.startswith(_APART) and not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def _serve(line: socket.socket) -> tuple[int, int, int] | None:
    """Fork one process; returns its descriptor, its pid and the line to report on. Nothing: nobody asks any more."""
    head, descriptors, _, _ = socket.recv_fds(line, HEAD.size, 4)
    if len(head) < HEAD.size:
        return None
    folder, words, variables = marshal.loads(line.recv(HEAD.unpack(head)[0], socket.MSG_WAITALL))
    *streams, report = descriptors
    pid = os.fork()
    if pid == 0:
        for place, stream in enumerate(streams):
            os.dup2(stream, place)
        sys.argv = ["-c", *(os.fsdecode(word) for word in words[1 + len(PROGRAM) :])]
        become(_run, folder, words, variables, partial(os.write, report, REPORT.pack(BEGUN, os.getpid())))
    for stream in streams:
        os.close(stream)
    return os.pidfd_open(pid), pid, report


def _bury(descriptor: int, pid: int, report: int) -> None:
    _, status = os.waitpid(pid, 0)
    with suppress(BrokenPipeError):  # nobody waits for it
        os.write(report, REPORT.pack(ENDED, status))
    os.close(report)
    os.close(descriptor)


# ── in the new process ───────────────────────────────────────────────────────────────────────────────────────


def become(
    main: Callable[[], object],
    folder: bytes,
    words: Sequence[bytes],
    variables: Mapping[bytes, bytes],
    ready: Callable[[], object] = lambda: None,
) -> NoReturn:
    """Be what the words say, as if this process had just begun with them: whoever asked for it sees it only then."""
    code: object = 1
    try:
        os.chdir(folder)
        os.environ.clear()
        os.environ.update({os.fsdecode(name): os.fsdecode(value) for name, value in variables.items()})
        _show(words, variables)
        time.tzset()
        sys.stdin, sys.stdout, sys.stderr = _stream(0, sys.stdin), _stream(1, sys.stdout), _stream(2, sys.stderr)
        ready()
        os.closerange(3, 1 << 20)  # also the pipe or line on which somebody waits for it to begin
        code = main()
    except SystemExit as ending:
        code = ending.code
    except BaseException:  # noqa: BLE001 - as an interpreter does: it says what happened, and ends
        traceback.print_exc()
    finally:
        _leave(code)


def _stream(number: int, like: TextIO) -> Any:
    """A standard stream as an interpreter opens it; none if it was closed."""
    try:
        raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    except OSError:
        return None
    buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
    return io.TextIOWrapper(buffer, like.encoding, like.errors, line_buffering=number == 2 or raw.isatty())


def _leave(code: object) -> NoReturn:
    """End as an interpreter ends: after its threads, and after what was to be done at the end."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _run() -> None:
    from windlass.cli.main import run  # noqa: PLC0415 - only the server has use for it

    run()


class DaemonPopen(subprocess.Popen[Any]):
    """Begins every program as ever, but for the daemon: that is forked, with all that was asked for its process."""

    def __init__(self, args: Any, **options: Any) -> None:
        words, variables = [os.fsencode(word) for word in args], _encoded(options.get("env") or os.environ)
        if tuple(args[1:]) == DAEMON and fits(words, variables):
            options["preexec_fn"] = partial(_become_daemon, words, variables)
        super().__init__(args, **options)


def _become_daemon(words: Sequence[bytes], variables: Mapping[bytes, bytes]) -> NoReturn:
    """Where another program would begin: its streams, session and folder are there already."""
    from windlass.daemon.__main__ import main  # noqa: PLC0415 - only the server has use for it

    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # as every interpreter begins
    gc.enable()
    sys.argv = ["windlass.daemon"]
    become(main, os.fsencode(Path.cwd()), words, variables)


# ── in /proc ─────────────────────────────────────────────────────────────────────────────────────────────────


def fits(words: Sequence[bytes], variables: Mapping[bytes, bytes]) -> bool:
    """Whether /proc can show them."""
    return len(_joined(words)) < ROOM_FOR_WORDS and len(_joined(_pairs(variables))) < ROOM_FOR_VARIABLES


def padded(words: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The words and variables of a server, with room in /proc for those of what it forks."""
    return [*words, PADDING * ROOM_FOR_WORDS], {**variables, PADDING: PADDING * ROOM_FOR_VARIABLES}


def _clear_shown() -> None:
    """Make the room empty that the server's own words and variables take; they go elsewhere."""
    kept = {name: value for name, value in os.environ.items() if name != PADDING}
    os.environ.clear()
    os.environ.update(kept)
    for begin, end in _rooms():
        ctypes.memset(begin, 0, end - begin)


def _show(words: Sequence[bytes], variables: Mapping[bytes, bytes]) -> None:
    """Let /proc say how this process began."""
    for (begin, end), text in zip(_rooms(), (_joined(words), _joined(_pairs(variables))), strict=True):
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, text, len(text))


def _rooms() -> tuple[tuple[int, int], tuple[int, int]]:
    """Where in memory the kernel looks for a process's words, and for its variables."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    words, words_end, variables, variables_end = (int(field) for field in fields[45:49])
    return (words, words_end), (variables, variables_end)


def _encoded(variables: Mapping[str, str]) -> dict[bytes, bytes]:
    return {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}


def _pairs(variables: Mapping[bytes, bytes]) -> list[bytes]:
    return [name + b"=" + value for name, value in variables.items()]


def _joined(parts: Sequence[bytes]) -> bytes:
    return b"".join(part + b"\0" for part in parts)


if __name__ == "__main__":
    main()
