"""Making the commit that main would move to, and moving main."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from windlass.core.errors import BadInput, Conflict, NotAllowed, NotFound, TakenBack, Unavailable, WindlassError
from windlass.core.nouns.change import Candidate, Landing, LandingShape
from windlass.core.nouns.project import Project
from windlass.git.files import shown, there
from windlass.git.hub import LOST, Hubs, Locks
from windlass.git.landing.merge import explain, merge
from windlass.git.landing.shapes import Making, second_parent, stands_on
from windlass.git.locks import locked
from windlass.git.program import ANY, GitProgram, Ran
from windlass.git.user_repository import RECEIVE, UserRepository

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_MOST_NAMED = 20
_IN_THE_WAY = ("would be overwritten", "would lose untracked", "not concluded your", "unmerged", "needs merge")


class Gateway:
    """Stages changes in the hub and lands them in the user's repository."""

    def __init__(self, git: GitProgram, hubs: Hubs, user: UserRepository, now: Callable[[], float]) -> None:
        self._git = git
        self._hubs = hubs
        self._user = user
        self._now = now
        self._locks = Locks()

    async def stage(
        self, project: Project, head: str, message: str, *, onto: str = "", shape: LandingShape = LandingShape.MERGE
    ) -> Candidate:
        """Bring a commit onto main, or onto a candidate."""
        main = await self._hubs.main(project)
        before = onto or main
        hub = await self._hubs.open(project)
        for each in (head, before):
            await self._require(hub, each)
        if await self._hubs.contains(hub, before, head):
            tree = await self._tree(hub, before)
            return Candidate(commit=before, tree=tree, before=before, commits=(), files=(), head=head)
        await self._refuse_taken_back(hub, main, head)
        merged = await merge(self._git, hub, before, head)
        if merged.files:
            raise Conflict(
                await explain(self._git, hub, merged, before, head),
                hint="Merge origin/main into the branch, mend the conflict and commit.",
            )
        files = await self._files(hub, before, merged.tree)
        habits = await self._user.habits(project.path)
        made = Making(self._git, hub, before, head, merged.tree, message, habits.environment)
        commit, shape = await made.commit(shape)
        await self._git.ours(hub, "update-ref", f"refs/windlass/candidates/{commit}", commit)
        commits = (await self._git.ours(hub, "rev-list", f"{before}..{head}")).text.split()
        return Candidate(
            commit=commit,
            tree=merged.tree,
            before=before,
            commits=tuple(commits),
            files=files,
            head=head,
            shape=shape,
        )

    async def land(self, project: Project, *stack: Candidate) -> Landing:
        """Move the user's main to the last candidate, or to nowhere. Landing what has landed changes nothing."""
        top = stack[-1]
        async with self._locks(project.id):
            hub = await self._hubs.open(project)
            await self._require(hub, top.commit)
            tip = await self._hubs.main(project)
            if not await self._hubs.contains(hub, tip, top.commit):
                await self._prove(project, hub, stack, tip)
                await self._move(project, hub, replace(top, before=tip))
                await self._hubs.main(project)
            await self._drop(project, top)
        return await self.receipt(project, top)

    async def _require(self, hub: Path, commit: str) -> None:
        if not _COMMIT.fullmatch(commit):
            raise BadInput(f"{commit[:80]!r} is not a commit's name.")
        if (await self._git.ours(hub, "cat-file", "-t", commit, ok=ANY)).text != "commit":
            raise NotFound(f"The hub has no commit {commit}.", hint="Run `windlass doctor`.")

    async def _refuse_taken_back(self, hub: Path, main: str, head: str) -> None:
        """A person who rewrites main takes commits out of it: they do not come back in an agent's history."""
        lost = (await self._git.ours(hub, "for-each-ref", "--format=%(objectname)", LOST)).text.split()
        if not lost:
            return
        gone = set((await self._git.ours(hub, "rev-list", *lost, "--not", main)).text.split())
        own = (await self._git.ours(hub, "log", "--format=%H %s", head, "--not", main)).text.splitlines()
        if back := [each for each in own if each.partition(" ")[0] in gone]:
            raise TakenBack("\n".join(back[:_MOST_NAMED]))

    async def _prove(self, project: Project, hub: Path, stack: Sequence[Candidate], tip: str) -> None:
        """Ask git again for all that must be true before main may move, whatever was computed before."""
        below = tip
        for each in stack:
            await self._prove_one(project, hub, each, below)
            below = each.commit

    async def _prove_one(self, project: Project, hub: Path, candidate: Candidate, below: str) -> None:
        """One change stands on what is below it, and brings its own difference and nothing else."""
        if below != candidate.before:
            raise Conflict(f"{project.main} has moved to {below[:12]} since the change was tested.")
        if not await stands_on(self._git, hub, candidate, below):
            raise Conflict(f"{candidate.commit[:12]} was not made on {project.main} as it is.")
        again = await merge(self._git, hub, below, candidate.head or await second_parent(self._git, hub, candidate))
        if again.files or not (candidate.tree == again.tree == await self._tree(hub, candidate.commit)):
            raise Conflict(f"{candidate.commit[:12]} does not hold the tree that was tested.")

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
        if here and not there(here[0]):
            raise NotAllowed(f"{project.main} is checked out at {here[0]}, which is not there now.")
        await self._lend(project, hub, candidate.commit)
        try:
            await (self._forward(project, here[0], candidate) if here else self._swap(project, candidate))
        except WindlassError:
            await self._drop(project, candidate)
            raise

    async def _lend(self, project: Project, hub: Path, commit: str) -> None:
        """Give the user's repository the objects, under a hidden ref so that no gc takes them."""
        refspec = f"{commit}:{_lent(commit)}"
        await self._git.ours(hub, "push", "-q", "--no-verify", RECEIVE, "--", project.path, refspec)

    async def _forward(self, project: Project, checkout: str, candidate: Candidate) -> None:
        how = ("--ff-only", "--no-overwrite-ignore", "--no-autostash", "--no-squash", "--no-verify-signatures", "-q")
        off = ("-c", "submodule.recurse=false")
        ran = await self._git.move_theirs(checkout, *off, "merge", *how, candidate.commit)
        if ran.code:
            raise _refusal(project, checkout, ran)
        if await self._user.tip(project) != candidate.commit:
            raise Conflict(f"{project.main} moved while the change was landing.")

    async def _swap(self, project: Project, candidate: Candidate) -> None:
        ref = f"refs/heads/{project.main}"
        how = ("update-ref", "-m", "windlass land", ref, candidate.commit, candidate.before)
        ran = await self._git.move_theirs(project.path, *how)
        if ran.code:
            raise locked(ran.err) or _moved(project, ran)

    async def _drop(self, project: Project, candidate: Candidate) -> None:
        await self._git.theirs(project.path, "update-ref", "-d", _lent(candidate.commit), ok=(0, 1, 128))

    async def receipt(self, project: Project, candidate: Candidate) -> Landing:
        """What a landing brought; the same whenever it is asked."""
        hub = await self._hubs.open(project)
        files = await self._files(hub, candidate.before, candidate.tree)
        return Landing(
            main=project.main,
            before=candidate.before,
            after=candidate.commit,
            tree=candidate.tree,
            commits=candidate.commits,
            files=files,
            landed_at=await self._landed_at(hub, candidate.commit),
            top=candidate.top,
            proof=candidate.proof,
        )

    async def _landed_at(self, hub: Path, commit: str) -> float:
        """When it landed: said once, and the same whenever it is asked again."""
        ref = f"refs/windlass/landed/{commit}"
        if not await self._hubs.ref(hub, ref):
            blob = await self._git.ours(hub, "hash-object", "-w", "--stdin", stdin=repr(self._now()).encode())
            await self._git.ours(hub, "update-ref", ref, blob.text)
        return float((await self._git.ours(hub, "cat-file", "blob", ref)).text)

    async def _tree(self, hub: Path, commit: str) -> str:
        return (await self._git.ours(hub, "rev-parse", f"{commit}^{{tree}}")).text

    async def _files(self, hub: Path, before: str, tree: str) -> tuple[str, ...]:
        """The files that differ. A nested repository among them is refused: only its name would land."""
        said = (await self._git.ours(hub, "diff-tree", "-r", "-z", "--no-renames", before, tree)).names
        for facts, name in zip(said[::2], said[1::2], strict=True):
            if facts.split()[1] == b"160000":
                raise Conflict(
                    f"{shown(name)} is a nested repository: its files would not land, and Windlass does not handle"
                    " submodules yet.",
                    hint=f"Take it out of the branch: git rm --cached '{shown(name)}'",
                )
        return tuple(shown(each) for each in said[1::2])


def _lent(commit: str) -> str:
    return f"refs/windlass/landing/{commit}"


def _refusal(project: Project, checkout: str, ran: Ran) -> WindlassError:
    """Git's reason for leaving a checkout as it is, in our words."""
    if problem := locked(ran.err):
        return problem
    if any(each in ran.err for each in _IN_THE_WAY):
        return NotAllowed(
            f"Your checkout {checkout} is in the way: {_reason(ran.err)}",
            hint="Commit, stash or move what is named there; then it lands.",
        )
    if "fast-forward" in ran.err:
        return _moved(project, ran)
    return Unavailable(f"git could not move {project.main} in {checkout}: {ran.words}")


def _moved(project: Project, ran: Ran) -> Conflict:
    return Conflict(f"{project.main} has moved since the change was tested: {ran.words}")


def _reason(err: str) -> str:
    """Git's sentence and the files it names, on one line."""
    lines = [line for line in err.splitlines() if line.strip() and not line.startswith(("Please", "Aborting", "hint:"))]
    sentence = " ".join(line.removeprefix("error: ").removeprefix("fatal: ") for line in lines if line[0] != "\t")
    files = ", ".join(line.strip() for line in lines if line[0] == "\t")
    return f"{sentence} {files}".strip()
