"""What Windlass promises, and how each promise is judged. The caller gathers the facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from windlass.core.display import short
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change, ChangeState, Landing
from windlass.core.nouns.message import Delivery, Message, Receipt
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Chunk, Outcome, Run
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports.archive import Proof, Saved, Whereabouts

MOST = 5
"""How many faults of one kind are put into words."""

NOT_AGENTS = ("human", "system")

_KEEP = "Keep the home folder as it is, and compare it with a copy."

PROMISES: Mapping[str, tuple[str, str]] = {
    "I1": ("landed trees", "Look at it with `windlass receipt`, and take it back with `windlass undo`."),
    "I2": ("history of main", "Look at main's reflog; `windlass receipt` names the commit that is missed."),
    "I3": ("landed differences", "Look at it with `windlass receipt`, and take it back with `windlass undo`."),
    "I4": ("messages", "See the agent with `windlass show`, and tell it again."),
    "I5": ("output", f"{_KEEP} What an agent printed is also in the home's runs folder."),
    "I6": ("one owner", "Stop one of them with `windlass stop`."),
    "I7": ("needs", "Stop the agent that began too early with `windlass stop`."),
    "I8": ("one daemon", "Run `windlass daemon stop`; end the other process by its pid if it stays."),
    "I9": ("processes", "See what they are with `ps`, and end what is left by its pid; see `windlass daemon logs`."),
    "I10": ("nothing deleted", f"{_KEEP} `windlass rescue list --all` shows what is saved."),
    "I11": ("errors", ""),
    "I12": ("store", f"{_KEEP} The store was changed by something else than Windlass."),
    "I13": (
        "objects",
        f"{_KEEP} An object that you have in another clone comes back with `git fetch` in your repository.",
    ),
    "I14": ("own repositories", "Nothing of it was taken in. See who made it with `windlass show`, and remove it."),
    "I15": ("projects", "Say `windlass project forget` again with its name or id; see `windlass list`."),
}
"""Each promise in a word or two, and what to do when it is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def finding(key: str, seen: str, problems: Iterable[str] = (), notes: Iterable[str] = ()) -> Finding:
    """The finding about one promise. A note tells of something that is not a fault of Windlass."""
    title, hint = PROMISES[key]
    wrong, known = [*problems], [*notes]
    detail = "; ".join([*_some(wrong), *([seen] if seen and not wrong else []), *_some(known)])
    return Finding(name=f"{key} {title}", ok=not wrong, detail=detail, hint=hint if wrong else "")


def counted(number: int, one: str, many: str = "") -> str:
    """`1 run`, `2 runs`, `2 deliveries`."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def _some(words: Sequence[str]) -> list[str]:
    return [*words[:MOST], *([f"and {len(words) - MOST} more"] if len(words) > MOST else [])]


def judge_tree(change: Change, proof: Proof) -> str:
    """I1: the tree that landed is the one that its checks passed on, and the one that the commit holds."""
    landing = change.landing
    if landing is None:
        return f"{change.id} is said to have landed, but has no receipt"
    if not proof.tree:
        return f"{change.id}: the hub has no commit {short(landing.after)}"
    if not any(check.passed and check.tree == landing.tested for check in change.checks):
        return f"{change.id}: no check is known to have passed on the tree that landed, {short(landing.tested)}"
    if landing.top and proof.top != landing.tested:
        return f"{change.id}: main moved to {short(landing.top)}, which does not hold tree {short(landing.tested)}"
    if proof.tree != landing.tree:
        held, tested = short(proof.tree), short(landing.tree)
        return f"{change.id}: its commit {short(landing.after)} holds tree {held}, and {tested} was tested"
    return ""


def judge_history(change: Change, landing: Landing, proof: Proof) -> str:
    """I2: main moved forward, from where it was to this commit."""
    after, before = short(landing.after), short(landing.before)
    if proof.tree and not proof.stands:
        return f"{change.id}: {before}, where {landing.main} was, is not what {after} was made on"
    if proof.whereabouts is Whereabouts.NEVER:
        return f"{change.id}: {landing.main} does not hold {after}, and its reflog does not know it"
    return ""


def note_history(change: Change, landing: Landing, proof: Proof) -> str:
    """I2: what someone else did to main, or what can't be known."""
    if proof.whereabouts is Whereabouts.REWRITTEN:
        return f"{change.id} is no longer in {landing.main}, which was rewritten by someone else"
    if proof.whereabouts is Whereabouts.UNKNOWN:
        return f"{change.id}: whether {landing.main} held it can't be seen any more"
    return ""


def judge_difference(change: Change, landing: Landing, proof: Proof) -> str:
    """I3: what landed is the change's own difference, and nothing else."""
    if not proof.tree:
        return ""  # I1 says that there is no such commit
    if proof.parents[1:] not in ((), (change.head,)):
        return f"{change.id}: {short(landing.after)} merges another commit than {short(change.head)}, the change's own"
    if proof.merged != landing.tree:
        again = f"tree {short(proof.merged)}" if proof.merged else "no tree"
        return f"{change.id}: merging it again gives {again}, and {short(landing.tree)} landed"
    return ""


def judge_message(message: Message, held: Collection[str]) -> list[str]:
    """I4: each reader that a message names has a delivery."""
    return [f"{message.id} is lost for {name}" for name in dict.fromkeys(message.to) if name not in held]


def judge_delivery(delivery: Delivery, message: Message | None, run: Run | None, *, known: bool, twice: bool) -> str:
    """I4: a delivery is owed, is the only one, can arrive, and was read when the run that carried it ended well."""
    if message is None or delivery.reader not in message.to:
        return f"{delivery.message} is on its way to {delivery.reader}, whom it does not name"
    if twice:
        return f"{delivery.id} is delivered twice"
    if not known and delivery.receipt in (Receipt.PENDING, Receipt.DELIVERED):
        return f"{delivery.id} waits for someone who is not there"
    well = (Outcome.DONE, Outcome.ASKED, Outcome.STOPPED)
    carried = run is not None and run.identity is not None and run.outcome in well
    if carried and delivery.receipt is Receipt.DELIVERED:
        return f"{delivery.id} is stuck: {delivery.run} carried it and ended, but it does not count as read"
    return ""


def judge_chunk(chunk: Chunk, end: int, there: bytes | None) -> str:
    """I5: a chunk follows on the last one, and holds what the process wrote (None where its file is gone)."""
    if chunk.offset > end:
        return f"{chunk.run}: bytes {end} to {chunk.offset} of its output are missing"
    if chunk.offset < end:
        return f"{chunk.run}: bytes {chunk.offset} to {end} of its output are kept twice"
    if there is not None and there != chunk.content:
        return f"{chunk.run}: bytes {chunk.offset} to {chunk.end} of its output are not what its file says"
    return ""


def judge_output(run: str, kept: int, told: int, *, live: bool, more: bool) -> str:
    """I5: as much is kept as the journal tells, and of an ended run as much as its file has."""
    if kept < told and not live:
        return f"{run}: {counted(kept, 'byte')} of its output are kept, and the journal tells of {told}"
    if kept > told:
        return f"{run}: {counted(kept, 'byte')} of its output are kept, but the journal tells only of {told}"
    if more and not live:
        return f"{run}: its file has more than the {counted(kept, 'byte')} that are kept"
    return ""


def judge_owners(live: Sequence[Run]) -> list[str]:
    """I6: one live run at most for an agent, and for a task."""
    found = []
    for what in ("agent", "task"):
        runs: dict[str, list[str]] = {}
        for run in live:
            runs.setdefault(getattr(run, what), []).append(run.id)
        found += [f"{what} {key} has {' and '.join(ids)} alive" for key, ids in runs.items() if len(ids) > 1]
    return found


def judge_needs(task: Task, needs: Mapping[str, Task | None]) -> list[str]:
    """I7: what a task needs was done before it began."""
    if task.state not in (TaskState.ACTIVE, TaskState.LANDING, TaskState.DONE):
        return []
    undone = (key for key, need in needs.items() if need is None or need.state is not TaskState.DONE)
    return [f"{task.id} is {task.state}, although {key}, which it needs, is not done" for key in undone]


def has_work(runs: Sequence[Run], change: Change | None) -> bool:
    """Whether an agent has, or may have, work that has not landed."""
    began = any(run.identity is not None for run in runs)
    return began and not (change and change.state is ChangeState.LANDED)


def was_told_lost(runs: Sequence[Run]) -> bool:
    """Whether someone took the worktree away under a run, and the run's outcome says so."""
    return any("worktree lost" in run.evidence for run in runs)


def was_given_up(agent: Agent, project: Project | None) -> bool:
    """I10: whether a person deleted the hub of a forgotten project, and this agent's saved work with it."""
    deleted = project.hub_deleted_at if project else None
    return deleted is not None and agent.retired_at is not None and agent.retired_at <= deleted


def judge_forgotten(project: Project, **going_on: Sequence[str]) -> list[str]:
    """I15: no run, task, change or agent goes on in a project that was forgotten."""
    return [
        f"{project.name} was forgotten, but has {kind} that go on: {', '.join(ids)}"
        for kind, ids in going_on.items()
        if ids
    ]


def judge_rescue(agent: str, ref: str, saved: Mapping[str, Saved]) -> str:
    """I10: the ref that a removal named still brings the work back."""
    if ref not in saved:
        return f"{agent}: {ref}, under which its work was saved, is gone"
    return "" if saved[ref].sound else f"{agent}: {ref} leads to a commit that is not there"
