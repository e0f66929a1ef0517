"""The one place that executes git."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from windlass.core.errors import TimedOut, Unavailable
from windlass.git.files import folder_exists
from windlass.git.locks import freed, locked
from windlass.git.questions import GitObject, LastingGits

OLDEST = (2, 38)
"""The first git whose `merge-tree --write-tree` merges without a checkout."""

LARGEST_OUTPUT = 256 << 20
LARGEST_COMPLAINT = 64 << 10
PATIENCE = 600.0
"""Seconds. A planted FIFO could make git wait for ever."""

MOST_TRIES = 100
"""How often a command is repeated because something that was in its way is gone."""

ANY = range(-64, 256)
"""Every exit code, for a caller that looks at it."""

INSTALL = "Install git 2.38 or newer, for example with `apt install git` or `brew install git`."

FSYNC = "committed,reference"
"""What is on the disk before git goes on, so that no power cut leaves a ref without its objects."""

_OFF = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.alternateRefsCommand=true"),
    *("-c", "core.quotePath=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
_OURS = (
    *_OFF,
    *("-c", "diff.external="),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.excludesFile=/dev/null"),
    *("-c", "core.untrackedCache=false"),
    *("-c", "core.safecrlf=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "protocol.file.allow=always"),
)
QUESTIONS = frozenset(
    "cat-file check-ref-format config diff diff-files diff-tree for-each-ref fsck log ls-files ls-tree merge-base"
    " pack-objects rev-list rev-parse symbolic-ref version worktree".split()
)
"""Commands that write nothing (`config` does, but only into a hub that is not there yet)."""
_READ_WORKTREES = frozenset("diff-files hash-object ls-files update-index".split())
"""Commands whose complaints are about files of an agent's, and no reason to mend a hub."""
_NO_REASON = (
    *("fsck error in packed object", "unpack-objects error", "pack has bad object"),
    " did not send all necessary objects",
)
"""Last words of a git that has told the reason before."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The answer of a git command."""

    code: int
    out: bytes
    err: str
    cut: bool = False
    """Whether the output was longer than allowed, and is only its beginning."""

    @property
    def text(self) -> str:
        return self.out.decode("utf-8", "replace").strip()

    @property
    def names(self) -> list[bytes]:
        """The parts of an output that `-z` has ended with NULs."""
        return [part for part in self.out.split(b"\0") if part]

    @property
    def pairs(self) -> list[tuple[bytes, bytes]]:
        """The same, two by two: such as the state and the name of a file."""
        names = self.names
        return list(zip(names[::2], names[1::2], strict=True))

    @property
    def words(self) -> str:
        """The last complaint of git that has a reason, without its prefix; of too long an output, the limit."""
        if self.cut:
            return f"more than {len(self.out) >> 20} MB"
        lines = [re.sub(r"^(fatal|error|warning): ", "", line) for line in self.err.splitlines() if line.strip()]
        reasons = [line for line in lines if not line.endswith(_NO_REASON)] or lines
        return " ".join(reasons[-1:]) or f"exit code {self.code}"


def no_step(name: str) -> None:
    """Ignore a step."""
    del name


async def nothing_mended(hub: str, complaint: str) -> bool:
    """Leave a hub as it is."""
    del hub, complaint
    return False


Mend = Callable[[str, str], Awaitable[bool]]
"""Mends a hub that git complains about. Returns whether trying again may help."""


class GitProgram:
    """The git that is installed, called in two ways: with our settings only, or in the user's repository."""

    def __init__(
        self, environment: Mapping[str, str], step: Callable[[str], None], mend: Mend = nothing_mended
    ) -> None:
        self._step = step
        self._mend = mend
        kept = {name: value for name, value in environment.items() if not _unwanted(name)}
        self._theirs = kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
        self._ours = self._theirs | {
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
        }
        self._checked = False
        self._lasting = LastingGits(self._ours, _OURS)
        self._theirs_lasting = LastingGits(self._theirs, _OFF)

    def close(self) -> None:
        """End the gits that stay."""
        self._lasting.close()
        self._theirs_lasting.close()

    async def require(self) -> None:
        """Refuse to go on without a git that is new enough."""
        if self._checked:
            return
        said = (await self._run(["version"], self._theirs, cwd="/")).text
        found = re.search(r"(\d+)\.(\d+)", said)
        if not found or (int(found[1]), int(found[2])) < OLDEST:
            raise Unavailable(f"This git is too old for Windlass: {said or 'no version'}.", hint=INSTALL)
        self._checked = True

    async def ours(
        self,
        hub: Path | None,
        *args: str,
        cwd: Path | None = None,
        stdin: bytes = b"",
        extra: Mapping[str, str] | None = None,
        ok: Sequence[int] = (0,),
        limit: int = 0,
        cut: bool = False,
    ) -> Ran:
        """Run git on the hub (or on nothing yet) with no setting but our own: nothing that is found can execute."""
        environment = self._ours | ({"GIT_DIR": str(hub)} if hub else {}) | dict(extra or {})
        again = partial(self._run, [*_OURS, *args], environment, cwd=str(cwd or hub or "/"), stdin=stdin, limit=limit)
        ran = await again()
        tries = 0
        while ran.code and tries < MOST_TRIES and (freed(ran.err, environment) or await self._mended(hub, args, ran)):
            ran, tries = await again(), tries + 1
        if ran.cut and not cut:
            raise Unavailable(f"git {args[0]} said {ran.words}.")
        return ran if ran.cut or ran.code in ok else _raise(args, ran)

    async def _mended(self, hub: Path | None, args: Sequence[str], ran: Ran) -> bool:
        return hub is not None and _verb(args) not in _READ_WORKTREES and await self._mend(str(hub), ran.err)

    async def commit(self, hub: Path, name: str) -> GitObject | None:
        """A commit of the hub; None where it is none, or can't be told without a git of its own."""
        found = await self._lasting.contents(hub, name)
        return found if found and found.kind == "commit" else None

    async def kind(self, hub: Path, name: str) -> str:
        """The kind of an object of the hub; nothing if it is missing."""
        found = await self._lasting.kind(hub, name)
        return found.kind if found and found.kind else (await self.ours(hub, "cat-file", "-t", name, ok=ANY)).text

    async def blob(self, hub: Path, name: str) -> bytes:
        """What a file of the hub holds."""
        found = await self._lasting.contents(hub, name)
        return found.content if found and found.kind == "blob" else (await self.ours(hub, "cat-file", "blob", name)).out

    async def tree_of(self, hub: Path, commit: str) -> str:
        found = await self.commit(hub, commit)
        return found.tree if found else (await self.ours(hub, "rev-parse", f"{commit}^{{tree}}")).text

    async def parents_of(self, hub: Path, commit: str) -> tuple[str, ...]:
        found = await self.commit(hub, commit)
        return found.parents if found else tuple((await self.ours(hub, "rev-parse", f"{commit}^@")).text.split())

    async def object_of_theirs(self, path: str, name: str) -> GitObject | None:
        """What a name stands for in the user's repository; None if only a git of its own can tell."""
        return await self._theirs_lasting.kind(Path(path, ".git"), name)

    async def theirs(self, path: str, *args: str, stdin: bytes = b"", ok: Sequence[int] = (0,)) -> Ran:
        """Run git in the user's repository with the user's own settings, hooks and fsmonitor off."""
        if not folder_exists(path):
            raise Unavailable(f"The folder {path} is missing.", hint="Put it back, or run `windlass init` elsewhere.")
        ran = await self._run([*_OFF, *args], self._theirs, cwd=path, stdin=stdin)
        return ran if ran.code in ok else _raise(args, ran)

    async def move_theirs(self, path: str, *args: str) -> Ran:
        """Let git change the user's checkout. It finishes even if we die: no pipe of ours can break it off."""
        environment = self._theirs | {"GIT_REFLOG_ACTION": "windlass land"}
        with self._steps(_verb(args)), tempfile.TemporaryFile() as said:
            argv = ["git", *_OFF, "-c", f"core.fsync={FSYNC}", *args]
            process = await _spawn(argv, environment, path, stdin=asyncio.subprocess.DEVNULL, out=said.fileno())
            code = await _finished(process)
            said.seek(0)
            return Ran(code, b"", said.read(LARGEST_COMPLAINT).decode("utf-8", "replace"))

    async def _run(
        self,
        args: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        stdin: bytes = b"",
        limit: int = 0,
    ) -> Ran:
        with self._steps(_verb(args)):
            return await self._execute(args, environment, cwd=cwd, stdin=stdin, limit=limit or LARGEST_OUTPUT)

    @contextmanager
    def _steps(self, verb: str) -> Iterator[None]:
        """A step before and after each command that writes."""
        if verb in QUESTIONS:
            yield
            return
        self._step(f"git.{verb}.before")
        yield
        self._step(f"git.{verb}.after")

    async def _execute(
        self,
        args: Sequence[str],
        environment: Mapping[str, str],
        *,
        cwd: str,
        stdin: bytes,
        limit: int,
    ) -> Ran:
        source = asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL
        process = await _spawn(["git", *args], environment, cwd, stdin=source)
        try:
            async with asyncio.timeout(PATIENCE):
                return await _converse(process, stdin, limit)
        except TimeoutError as error:
            raise TimedOut(f"git {_verb(args)} took longer than {PATIENCE:.0f} s and was ended.") from error
        finally:
            if process.returncode is None:
                _kill(process)
                await process.wait()


async def _spawn(
    argv: Sequence[str], environment: Mapping[str, str], cwd: str, *, stdin: int, out: int | None = None
) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            env=environment,
            cwd=cwd,
            stdin=stdin,
            stdout=pipe if out is None else out,
            stderr=pipe if out is None else out,
            start_new_session=True,
            restore_signals=out is None,  # a limit on files is an error that git cleans up after, and no signal
        )
    except FileNotFoundError as error:
        if not folder_exists(cwd):
            raise Unavailable(f"The folder {cwd} is missing.") from error
        raise Unavailable("git is not installed.", hint=INSTALL) from error
    except OSError as error:
        raise Unavailable(f"git could not be started in {cwd}: {error.strerror}.") from error


async def _finished(process: asyncio.subprocess.Process) -> int:
    """Wait for the end even when cancelled: a process that is let go of would be killed half-way."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await waiting
        raise


async def _converse(process: asyncio.subprocess.Process, stdin: bytes, limit: int) -> Ran:
    assert process.stdout and process.stderr
    _, (out, cut), (err, _) = await asyncio.gather(
        _feed(process.stdin, stdin),
        _keep(process.stdout, limit, process),
        _keep(process.stderr, LARGEST_COMPLAINT),
    )
    code = await process.wait()
    return Ran(code, out, err.decode("utf-8", "replace"), cut)


async def _feed(stream: asyncio.StreamWriter | None, content: bytes) -> None:
    if stream is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        stream.write(content)
        await stream.drain()
    stream.close()


async def _keep(
    stream: asyncio.StreamReader, limit: int, ends: asyncio.subprocess.Process | None = None
) -> tuple[bytes, bool]:
    """Read to the end and keep the beginning; a process that says too much can be ended for it."""
    kept, cut = bytearray(), False
    while chunk := await stream.read(1 << 16):
        room = limit - len(kept)
        kept += chunk[:room]
        if len(chunk) > room and not cut:
            cut = True
            if ends:
                _kill(ends)
    return bytes(kept), cut


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _unwanted(name: str) -> bool:
    return name.startswith(("GIT_", "LC_")) or name in ("LANG", "LANGUAGE")


def _verb(args: Sequence[str]) -> str:
    """The subcommand in a command line that may begin with settings."""
    rest = list(args)
    while rest[:1] == ["-c"]:
        rest = rest[2:]
    return rest[0] if rest else ""


def _raise(args: Sequence[str], ran: Ran) -> Ran:
    raise locked(ran.err) or Unavailable(f"git {_verb(args)} failed: {ran.words}.", hint="Run `windlass doctor`.")
