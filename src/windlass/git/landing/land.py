"""Making the commit that main would move to, and moving main."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from windlass.core.display import word
from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TakenBack, Unfit, WindlassError
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.git.files import folder_exists, shown
from windlass.git.hub import LOST, Hubs, Locks
from windlass.git.inspect import NESTED, unsupported
from windlass.git.landing.forward import CheckoutMoves, moved
from windlass.git.landing.merge import explain, merge
from windlass.git.landing.shapes import LandingCommits, stands_on
from windlass.git.locks import locked
from windlass.git.program import GitProgram
from windlass.git.user_repository import RECEIVE, UserRepository

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_NAMED = 20


class MainLanding:
    """Stages changes in the hub and lands them in the user's repository."""

    def __init__(
        self,
        git: GitProgram,
        hubs: Hubs,
        user: UserRepository,
        moves: CheckoutMoves,
        *,
        now: Callable[[], float],
        landed: Callable[[Project, str, str], None],
    ) -> None:
        self._git = git
        self._moves = moves
        self._hubs = hubs
        self._user = user
        self._now = now
        self._landed = landed
        self._locks = Locks()
        self._receipts: dict[str, tuple[Candidate, Landing]] = {}
        """The last one of each project: who has landed a stack asks for the receipts of all in it."""

    async def stage(
        self, project: Project, head: str, message: str, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        main = await self._hubs.main(project)
        before = onto or main
        hub = await self._hubs.open(project)
        for commit in (head, before):
            await self._require(hub, commit)
        commits = await self._hubs.commits(hub, before, head)
        if not commits:
            tree = await self._git.tree_of(hub, before)
            return Candidate(commit=before, tree=tree, before=before, commits=(), files=(), head=head)
        await self._refuse_taken_back(hub, main, head)
        merged = await merge(self._git, hub, before, head)
        if merged.files:
            raise Conflict(
                await explain(self._git, hub, merged, before, head),
                hint="Merge origin/main into the branch, resolve the conflict and commit.",
            )
        entries = await self._entries(hub, before, merged.tree)
        await self._refuse_unfit(hub, entries)
        settings = await self._user.settings(project.path)
        landing = LandingCommits(self._git, hub, before, head, merged.tree, message, settings.environment)
        commit, shape = await landing.commit(shape)
        await self._hubs.put(hub, {f"refs/windlass/candidates/{commit}": commit})
        return Candidate(
            commit=commit,
            tree=merged.tree,
            before=before,
            commits=tuple(commits),
            files=tuple(shown(name) for _, name in entries),
            head=head,
            shape=shape,
        )

    async def land(self, project: Project, *stack: Candidate) -> Landing:
        top = stack[-1]
        async with self._locks(project.id):
            hub = await self._hubs.open(project)
            await self._require(hub, top.commit)
            tip = await self._hubs.main(project)
            # On the very commit that a stack was made on it can't have landed; that it was is proven below.
            if tip == stack[0].before != top.commit or not await self._hubs.contains(hub, tip, top.commit):
                await self._prove(project, hub, stack, tip)
                await self._move(project, hub, replace(top, before=tip))
                self._landed(project, tip, top.commit)
                await self._hubs.follow(project, tip, top.commit, await self._times(hub, stack))
            await self._drop(project, top)
        receipt = await self.receipt(project, top)
        self._receipts[project.id] = top, receipt
        return receipt

    async def _require(self, hub: Path, commit: str) -> None:
        if not _COMMIT.fullmatch(commit):
            raise BadInput(f"{commit[:80]!r} is not a commit's name.")
        if await self._git.kind(hub, commit) != "commit":
            raise NotFound(f"The hub has no commit {commit}.", hint="Run `windlass doctor`.")

    async def _refuse_taken_back(self, hub: Path, main: str, head: str) -> None:
        """Raise TakenBack if an agent's history would bring back commits that a person has taken out of main."""
        lost = [*self._hubs.below(hub, LOST).values()]
        if not lost:
            return
        gone = set((await self._git.ours(hub, "rev-list", *lost, "--not", main)).text.split())
        own = (await self._git.ours(hub, "log", "--format=%H %s", head, "--not", main)).text.splitlines()
        if back := [line for line in own if line.partition(" ")[0] in gone]:
            raise TakenBack("\n".join(back[:_MOST_NAMED]))

    async def _refuse_unfit(self, hub: Path, entries: Sequence[tuple[bytes, bytes]]) -> None:
        """Raise Unfit if main would then have something that Windlass refuses to work on."""
        new = [(*facts.split()[1:4:2], name) for facts, name in entries if not facts.endswith(b"D")]
        found = await unsupported(new, lambda blob: self._git.blob(hub, blob))
        if found is None:
            return
        name, what = word(shown(found[0])), found[1]
        if found[0] in [name for mode, _, name in new if mode == NESTED]:
            raise Unfit(
                f"{name} is a nested repository: its files would not land",
                hint=f"Take it out of the branch: git rm --cached {name}",
            )
        raise Unfit(
            f"{name} is for {what}, which Windlass does not handle yet", hint=f"Take that out of {name} and commit."
        )

    async def _prove(self, project: Project, hub: Path, stack: Sequence[Candidate], below: str) -> None:
        """Ask git again for all that must be true before main may move, whatever was computed before.

        Each change of the stack is on the commit below it, and brings its own difference and nothing else.
        """
        for candidate in stack:
            if below != candidate.before:
                raise Conflict(f"{project.main} has moved to {below[:12]} since the change was tested.")
            if not await stands_on(self._git, hub, candidate, below):
                raise Conflict(f"{candidate.commit[:12]} was not made on {project.main} as it is.")
            head = candidate.head or (await self._git.parents_of(hub, candidate.commit))[1]
            again = await merge(self._git, hub, below, head)
            if again.files or not (candidate.tree == again.tree == await self._git.tree_of(hub, candidate.commit)):
                raise Conflict(f"{candidate.commit[:12]} does not hold the tree that was tested.")
            below = candidate.commit

    async def _move(self, project: Project, hub: Path, candidate: Candidate) -> None:
        """Where main is checked out, git's own fast-forward guards the files there; else only the ref moves."""
        places = [checkout for checkout in await self._user.checkouts(project.path) if checkout.branch == project.main]
        here = [place.path for place in places if not place.prunable]
        if len(here) > 1:
            raise NotAllowed(
                f"{project.main} is checked out more than once: {', '.join(here)}.", hint="Leave it in all but one."
            )
        if busy := await self._user.occupied(project):
            raise NotAllowed(f"{busy}.", hint="Finish that, or give it up; then it lands.")
        if here and not folder_exists(here[0]):
            raise NotAllowed(f"{project.main} is checked out at {here[0]}, which is missing now.")
        await self._moves.finish(project)
        await self._moves.require_room(project, candidate, (f"{project.path}/.git", *here))
        # The user's repository gets the objects under a hidden ref, so that no gc takes them.
        lent = f"{candidate.commit}:{_lent(candidate.commit)}"
        await self._git.ours(hub, "push", "-q", "--no-verify", RECEIVE, "--", project.path, lent)
        try:
            await (self._moves.forward(project, here[0], candidate) if here else self._swap(project, candidate))
        except WindlassError:
            await self._drop(project, candidate)
            raise

    async def _swap(self, project: Project, candidate: Candidate) -> None:
        ref = f"refs/heads/{project.main}"
        how = ("update-ref", "-m", "windlass land", ref, candidate.commit, candidate.before)
        ran = await self._git.move_theirs(project.path, *how)
        if ran.code:
            raise locked(ran.err) or moved(project, ran)

    async def _drop(self, project: Project, candidate: Candidate) -> None:
        await self._git.theirs(project.path, "update-ref", "-d", _lent(candidate.commit), ok=(0, 1, 128))

    async def receipt(self, project: Project, candidate: Candidate) -> Landing:
        known, landing = self._receipts.get(project.id, (None, None))
        if landing and known == candidate:
            return landing
        hub = await self._hubs.open(project)
        entries = await self._entries(hub, candidate.before, candidate.tree)
        return Landing(
            main=project.main,
            before=candidate.before,
            after=candidate.commit,
            tree=candidate.tree,
            commits=candidate.commits,
            files=tuple(shown(name) for _, name in entries),
            landed_at=await self._landed_at(hub, candidate.commit),
            top=candidate.top,
            proof=candidate.proof,
        )

    async def _landed_at(self, hub: Path, commit: str) -> float:
        """When a commit landed: written once, and read from then on."""
        if not await self._hubs.ref(hub, _time(commit)):
            await self._hubs.put(hub, {_time(commit): await self._now_as_blob(hub)})
        return float(await self._git.blob(hub, _time(commit)))

    async def _times(self, hub: Path, stack: Sequence[Candidate]) -> dict[str, str]:
        """The refs that say when each change of a stack has landed: now."""
        return dict.fromkeys((_time(candidate.commit) for candidate in stack), await self._now_as_blob(hub))

    async def _now_as_blob(self, hub: Path) -> str:
        return (await self._git.ours(hub, "hash-object", "-w", "--stdin", stdin=repr(self._now()).encode())).text

    async def _entries(self, hub: Path, before: str, tree: str) -> list[tuple[bytes, bytes]]:
        """The files that differ: modes, objects and kind of the difference, and the name."""
        return (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", before, tree)).pairs


def _time(commit: str) -> str:
    return f"refs/windlass/landed/{commit}"


def _lent(commit: str) -> str:
    return f"refs/windlass/landing/{commit}"
