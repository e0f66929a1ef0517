"""Taking an agent's commits into the hub."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from windlass.core.errors import Conflict, Unavailable, WindlassError
from windlass.git.files import quoted
from windlass.git.program import ANY, GitProgram, Ran
from windlass.git.worktrees.untrusted import lent_objects
from windlass.system.files import NotPlain

_FEW = 100
"""Fewer objects than this are kept one by one; more become a pack."""
_LOOSE = ("unpack-objects", "-q", "--strict")
_PACK = ("index-pack", "--stdin", "--fix-thin", "--strict")
_NO_ROOM = ("No space left on device", "Disk quota exceeded")


class CommitIntake:
    """Copies commits from agents' clones into hubs.

    Git never runs in a clone, as `git fetch` would make it: the clone's settings are not read, and neither are its
    alternates. Its object files are lent to a git that works on the hub, and each object is hashed and checked again
    before it is kept.
    """

    def __init__(self, git: GitProgram) -> None:
        self._git = git

    async def bring(
        self, hub: Path, worktree: Path, commits: Iterable[str], known: Callable[[], Awaitable[Sequence[str]]]
    ) -> None:
        """Take commits in from a worktree's clone. Raises Conflict if they are damaged, or not in it.

        What is behind the known commits is there: the hub has refs that lead to them.
        """
        wanted = "".join(f"{commit}\n" for commit in commits).encode()
        tips = _without(await known())
        try:
            packed = await self._pack(hub, worktree, wanted + tips)
        except Conflict:
            if tips == (mended := _without(await known())):
                raise
            packed, tips = await self._pack(hub, worktree, wanted + mended), mended
        if count := int.from_bytes(packed[8:12], "big"):
            kept = await self._git.ours(hub, *(_LOOSE if count < _FEW else _PACK), stdin=packed, ok=ANY)
            if kept.code:
                raise _refusal("The commits are not sound", kept)
        asked = ("rev-list", "--objects", "--quiet", "--stdin")
        whole = await self._git.ours(hub, *asked, stdin=wanted + tips, ok=ANY)
        if whole.code:
            raise _refusal("The commits are not whole", whole)

    async def _pack(self, hub: Path, worktree: Path, revisions: bytes) -> bytes:
        """The objects that the hub lacks."""
        packing = ("pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset", "--threads=1")
        try:
            async with lent_objects(worktree) as folder:
                lent = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted(folder)}
                packed = await self._git.ours(hub, *packing, stdin=revisions, extra=lent, ok=ANY, cut=True)
        except (NotPlain, FileNotFoundError, PermissionError) as error:
            raise Conflict(f"The commits cannot be read: {error}.") from error
        except OSError as error:
            raise Unavailable(f"The objects of {worktree} could not be read: {error.strerror}.") from error
        if packed.cut or packed.code:
            raise _refusal("The commits cannot be read", packed)
        return packed.out


def _without(commits: Sequence[str]) -> bytes:
    """Commits, as what is not wanted."""
    return "".join(f"^{commit}\n" for commit in commits).encode()


def _refusal(what: str, ran: Ran) -> WindlassError:
    """Git's reason for not taking commits in. That there is no room is no fault of theirs, and passes."""
    if any(words in ran.err for words in _NO_ROOM):
        return Unavailable(f"There is no room for the commits: {ran.words}.", hint="Make room on the disk.")
    return Conflict(f"{what}: {ran.words}.")
