"""One git for each repository that stays and answers questions about its objects: no process for each question."""

from __future__ import annotations

import asyncio
import os
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MOST_GITS = 8
"""How many repositories have such a git; the one that was asked longest ago loses it."""
LARGEST_ANSWER = 1 << 20
PATIENCE = 60.0
"""Seconds."""

Identity = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class GitObject:
    """An object as git tells of it; of one that is missing, nothing."""

    name: str = ""
    kind: str = ""
    content: bytes = b""

    @property
    def tree(self) -> str:
        """The tree of a commit."""
        return self._named(b"tree ")[0]

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents of a commit."""
        return self._named(b"parent ")

    def _named(self, field: bytes) -> tuple[str, ...]:
        lines = self.content.partition(b"\n\n")[0].split(b"\n")
        return tuple(line[len(field) :].decode() for line in lines if line.startswith(field))


def identity(folder: Path) -> Identity | None:
    """What tells one repository from another that is put in its place, or is set up differently; None for none."""
    try:
        place = folder.stat()
        config = (folder / "config").stat() if folder.is_dir() else place
    except OSError:
        return None
    return (place.st_dev, place.st_ino, place.st_uid), (config.st_ino, config.st_size, config.st_mtime_ns)


class LastingGits:
    """Starts such gits when they are first needed, and again when one has ended or its repository is another.

    They only read, work in no folder, and end with the daemon: git leaves when nobody can ask it any more.
    """

    def __init__(self, environment: Mapping[str, str], settings: Sequence[str]) -> None:
        known = ("PATH", "HOME", "XDG_CONFIG_HOME")
        self._environment = {name: value for name, value in environment.items() if name in known}
        self._environment |= {name: value for name, value in environment.items() if name.startswith(("GIT_", "LC_"))}
        self._environment["GIT_NO_LAZY_FETCH"] = "1"
        self._settings = settings
        self._gits: dict[Path, LastingGit] = {}

    async def contents(self, folder: Path, name: str) -> GitObject | None:
        """An object with all that it holds. None if it can't be told so: then a git of its own must be asked."""
        return await self._ask(folder, "contents", name)

    async def kind(self, folder: Path, name: str) -> GitObject | None:
        """An object without what it holds. None as above."""
        return await self._ask(folder, "info", name)

    def close(self) -> None:
        """End them all."""
        for git in self._gits.values():
            git.end()
        self._gits.clear()

    async def _ask(self, folder: Path, verb: str, name: str) -> GitObject | None:
        if "\n" in name or not name:
            return None
        for _ in range(2):  # one that ended meanwhile is replaced once
            git = self._at(folder)
            if git is None:
                return None
            with suppress(OSError, EOFError, ValueError, TimeoutError):
                return await git.ask(verb, name)
            self._forget(folder, git)
        return None

    def _at(self, folder: Path) -> LastingGit | None:
        now, git = identity(folder), self._gits.pop(folder, None)
        if git and (git.identity != now or not git.lives):
            git.end()
            git = None
        if git is None and now is not None:
            git = self._start(folder, now)
        if git is not None:
            self._gits[folder] = git  # the last is the one that was asked last
        while len(self._gits) > MOST_GITS:
            self._gits.pop(next(iter(self._gits))).end()
        return git

    def _start(self, folder: Path, now: Identity) -> LastingGit | None:
        argv = ["git", *self._settings, f"--git-dir={folder}", "cat-file", "--batch-command"]
        try:
            return LastingGit(argv, self._environment, now)
        except OSError:
            return None

    def _forget(self, folder: Path, git: LastingGit) -> None:
        git.end()
        if self._gits.get(folder) is git:
            del self._gits[folder]


class LastingGit:
    """One such git. Whatever disturbs an answer ends it: the next question would get the rest."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], now: Identity) -> None:
        self.identity = now
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(
            argv, env=environment, cwd="/", stdin=pipe, stdout=pipe, stderr=nothing, bufsize=0, start_new_session=True
        )
        assert self._process.stdin and self._process.stdout
        self._stdin, self._stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._stdout, False)
        self._turn = asyncio.Lock()
        self._said = b""
        self.end = weakref.finalize(self, _end, self._process)

    @property
    def lives(self) -> bool:
        return self.end.alive and self._process.poll() is None

    async def ask(self, verb: str, name: str) -> GitObject:
        """The answer. Raises an OSError, EOFError, ValueError or TimeoutError where there is none."""
        async with self._turn:
            if not self.lives:
                raise EOFError
            try:
                async with asyncio.timeout(PATIENCE):
                    return await self._answer(verb, name)
            except BaseException:  # also when cancelled: half an answer may be on its way
                self.end()
                raise

    async def _answer(self, verb: str, name: str) -> GitObject:
        os.write(self._stdin, f"{verb} {name}\n".encode())
        head = (await self._until(lambda said: said.find(b"\n") + 1))[:-1].decode("utf-8", "replace")
        if head.endswith((" missing", " ambiguous")):
            return GitObject()
        found, kind, size = head.split(" ")
        if verb == "info":
            return GitObject(found, kind)
        length = int(size) + 1
        if length > LARGEST_ANSWER:
            raise ValueError(size)
        return GitObject(found, kind, (await self._until(lambda said: length if len(said) >= length else 0))[:-1])

    async def _until(self, length: Callable[[bytes], int]) -> bytes:
        """The next bytes, as many as are wanted once they are there."""
        while not (count := length(self._said)):
            await self._readable()
            more = os.read(self._stdout, 1 << 16)
            if not more:
                raise EOFError
            self._said += more
        taken, self._said = self._said[:count], self._said[count:]
        return taken

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_reader(self._stdout, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_reader(self._stdout)


def _end(process: subprocess.Popen[bytes]) -> None:
    """It only reads, so nothing is lost."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
    process.wait()
