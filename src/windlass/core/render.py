"""Values as text for people and agents."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from windlass.core.display import one_name, some, word
from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.change import Change, CheckResult
from windlass.core.nouns.run import Run
from windlass.core.nouns.task import Task
from windlass.core.radar.collisions import Collision

TAIL = 12_000
"""How many characters of a check's output its author is shown: the last ones."""

MOST_NAMED = 50
"""How many files of a collision an agent is told of."""

_BACKTICKS = re.compile("`+")


def fenced(text: str) -> str:
    """Text as a Markdown code block that nothing in it can close."""
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}"


def quoted(text: str) -> str:
    """Somebody else's text within a message, a mark before each of its lines."""
    return "\n".join(f"> {line}" for line in text.splitlines())


def rejection(change: Change, result: CheckResult, output: str) -> str:
    """The message to an author about failed checks: the reason, the commands to repeat them, and the output."""
    reason = result.reason or f"exit code {result.exit_code}"
    merge = f"git fetch origin && git merge --no-edit {change.candidate.before}\n" if change.candidate else ""
    return _paragraphs(
        f"Your change {change.id} ({change.title}) did not land: the checks did not pass ({reason}).\n"
        f"They ran on the tree that main would have with your commits{_where(result)}. To see it in your worktree:",
        fenced(f"{merge}{result.command}"),
        _shown(output),
        "Fix it, commit to your branch, and signal done again.",
    )


def learnings(change: Change, refusals: Sequence[str]) -> str:
    """The document about a change that was given up: its title, every refusal, and where its commits are."""
    often = f"It went back {change.returns} time{'s' * (change.returns != 1)}."
    where = f"Its branch is {change.branch}, at {change.head}."
    head = f"# {change.id}: {change.title}\n\nGiven up: {change.reason}. {often} {where}"
    told = (f"## Refusal {number}\n\n{refusal}" for number, refusal in enumerate(refusals, 1))
    return _paragraphs(head, *told) + "\n"


def red_main(main: str, result: CheckResult, output: str) -> str:
    """The message to whoever fixes main: what fails there, and that all others wait for it."""
    return _paragraphs(
        f"The checks fail on {main} itself ({result.reason}){_where(result)}, so nothing else lands until it is green"
        " again.\n"
        "Find out why, and fix it with as small a change as you can. Do not weaken or skip a test. To see it:",
        fenced(result.command),
        _shown(output),
    )


def _where(result: CheckResult) -> str:
    """A check may fail for want of what its sandbox hides."""
    return ", in a sandbox without the person's home and services (sandbox.checks)" if result.sandbox else ""


def escalation(change: Change, reason: str) -> str:
    """The question to a person about a change that its author could not fix."""
    often = f" after going back {change.returns} times" if change.returns else ""
    return f"{change.id} ({change.title}) did not land{often}: {reason}. What shall {change.agent} do?"


def _paragraphs(*texts: str) -> str:
    return "\n\n".join(texts)


def _shown(output: str) -> str:
    tail = output[-TAIL:]
    if not tail.strip():
        return "They printed nothing."
    left_out = len(output) - len(tail)
    said = f"The end of the output ({left_out} characters before it are left out):" if left_out else "The output:"
    return _paragraphs(said, fenced(tail))


def taken_back_note(change: Change, main: str, commits: str) -> str:
    """The message to an author whose branch still has commits that a person has taken out of main."""
    return _paragraphs(
        f"Your change {change.id} ({change.title}) did not land: {main} was rewritten, and your branch still has"
        " commits that were taken out of it. They must not come back with your work:",
        fenced(commits[-TAIL:]),
        f"Put your own commits, and only those, onto {main} as it is now (COMMIT is the newest one above):",
        fenced(f"git fetch origin && git rebase --onto {word(f'origin/{main}')} COMMIT"),
        "Then signal done again.",
    )


def unfit_note(change: Change, problem: str, remedy: str) -> str:
    """The message to an author whose change could not land on any main."""
    return _paragraphs(
        f"Your change {change.id} ({change.title}) did not land: {problem}.", remedy, "Then signal done again."
    )


def conflict_note(change: Change, main: str, conflict: str) -> str:
    """The message to an author whose change conflicts with main."""
    return _paragraphs(
        f"Your change {change.id} ({change.title}) did not land: it conflicts with {main}. Git says:",
        fenced(conflict[-TAIL:]),
        "Take main in, resolve the conflicts keeping the intent of both sides, and commit the merge:",
        fenced(f"git fetch origin && git merge {word(f'origin/{main}')}"),
        "Then signal done again.",
    )


def collision_note(collision: Collision, other: str, main: str) -> str:
    """The message to an agent whose work collides with that of another agent, or with main."""
    names = fenced("\n".join(map(one_name, collision.files[:MOST_NAMED])))
    if collision.with_main:
        merge = fenced(f"git fetch origin && git merge {word(f'origin/{main}')}")
        moved = f"Your work conflicts with {main}, which has moved since you began, in:"
        return _paragraphs(moved, names, "Take it in while the conflict is small:", merge)
    return _paragraphs(
        f"As both are now, your work can't be merged with that of {other}, who is at the same files:",
        names,
        f"Whoever lands second has to merge. Keep your changes to {some(collision.files)} as small as your task"
        " allows, and leave the rest of these files as it is. If your work is finished, there is nothing to do:"
        " signal done again.",
    )


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The daemon, as a file shows it."""

    status: Status
    pid: int
    started_at: float
    last_event: float


def process_status(server: ServerEntry, agents: Iterable[str], *, utc: Callable[[float], str]) -> str:
    """The server and every agent's entry, as `process-status.json` shows them; `utc` writes a time."""
    daemon = {
        "status": str(server.status),
        "pid": server.pid,
        "startedAt": utc(server.started_at),
        "lastEvent": utc(server.last_event),
        "error": None,
    }
    entries = ",\n".join([_named("server", daemon), *agents])
    return f"{{\n{entries}\n}}\n"


def _named(name: str, entry: Mapping[str, object]) -> str:
    """One entry of an object, as it stands between its braces."""
    return json.dumps({name: entry}, indent=2, ensure_ascii=False)[2:-2]


def status_entry(
    agent: Agent, status: Status, run: Run | None, task: Task | None, *, utc: Callable[[float], str]
) -> str:
    """An agent, as `process-status.json` shows it."""
    entry: dict[str, str | None] = {
        "status": str(status),
        "sessionKey": (run.session or run.id) if run else None,
        "startedAt": utc(run.started_at or run.starting_at) if run else None,
        "task": task.title if task else None,
        "error": run.reason if run and status is Status.ERROR else None,
    }
    if run and run.ended_at is not None:
        entry["completedAt"] = utc(run.ended_at)
    return _named(agent.id, entry)
