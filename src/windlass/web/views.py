"""The nouns as programs read them: keys that do not change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from windlass.core import codec
from windlass.core.address import SYSTEM
from windlass.core.agents.definition import Definition
from windlass.core.messages.questions import asked_ids
from windlass.core.messages.task_notification import notification_of, write_notification
from windlass.core.nouns.change import Change, CheckResult, Landing
from windlass.core.nouns.counted_tests import complaint
from windlass.core.nouns.event import Event
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Absence, Project, standing
from windlass.core.nouns.run import Cost, Run
from windlass.core.nouns.task import Task
from windlass.core.ports.archive import Contents
from windlass.core.runs.sandbox import UNENFORCED
from windlass.engine.messages.talk import Asked
from windlass.engine.radar.tick import Picture
from windlass.engine.views.rescue import Item
from windlass.engine.views.status import Page, View

TAIL = 4000
"""Characters of a failed check's output that are shown with its author."""


def agent(view: View) -> dict[str, Any]:
    """One line of `windlass list --json`."""
    return {
        "name": view.agent.name,
        "instance": view.agent.instance,
        "source": view.agent.source,
        "status": view.status,
        "evidence": view.evidence,
        "age_seconds": round(view.age, 3),
        "task": view.task.id if view.task else None,
        "provider": view.agent.provider,
        "model": (view.run.model if view.run else "") or view.agent.model,
        "permissions": view.agent.permissions,
        "sandbox": (view.run.sandbox or UNENFORCED) if view.run else None,
        "run": view.run.id if view.run else None,
        "cost_usd": view.cost.known,
        "task_title": view.task.title if view.task else "",
        "project": view.project,
        "unpriced_runs": view.cost.unpriced,
    }


def page(page: Page, *, now: float) -> dict[str, Any]:
    """`windlass show --json`."""
    view = page.view
    return agent(view) | {
        "role": view.agent.role,
        "parent": (view.task.parent or None) if view.task else None,
        "branch": view.agent.branch,
        "worktree": page.worktree,
        "session": view.run.session if view.run else "",
        "runs": [run(each) for each in page.runs],
        "usage": codec.plain(page.usage) | {"cost_usd": view.cost.known},
        "output": page.output[-TAIL:],
        "setup": page.setup[-TAIL:],
        "questions": [said(question) for question in page.questions],
        "reports": [{"time": report.sent_at, "from": report.sender, "body": report.body} for report in page.reports],
        "change": change(view.change, now=now, paused=view.paused) if view.change else None,
        "notification": write_notification(told) if (told := notification_of(view.task, page.runs)) else None,
        "rescue": {"id": page.rescue.id, "ref": page.rescue.ref} if page.rescue else None,
    }


def question(asked: Asked, *, now: float) -> dict[str, Any]:
    """One line of `windlass questions --json`."""
    ids = asked_ids(asked.message.body) if asked.message.sender == asked.agent.id else []
    return {
        **said(asked.message),
        "agent": asked.agent.id,
        "task": asked.task.id,
        "task_title": asked.task.title,
        "ids": ids,
        "example": " ".join(f'{key}="…"' for key in ids) or '"…"',
        "age_seconds": round(max(0.0, now - asked.message.sent_at), 3),
    }


def said(message: Message) -> dict[str, Any]:
    """A question. Of one that the gate asks, only the first paragraph: the rest is for the change's author."""
    asked = message.body.partition("\n\n")[0] if message.sender == str(SYSTEM) else message.body
    return {"id": message.id, "question": asked}


def run(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "number": run.number,
        "cause": run.cause,
        "outcome": run.outcome,
        "reason": run.reason,
        "evidence": list(run.evidence),
        "trouble": codec.plain(run.trouble) if run.trouble else None,
        "model": run.model,
        "sandbox": run.sandbox or UNENFORCED,
        "exit_code": run.exit_code,
        "pid": run.identity.pid if run.identity else None,
        "session": run.session,
        "base": run.base,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "usage": codec.plain(run.usage) | {"cost_usd": (Cost() + run.usage).known},
    }


def task(task: Task) -> dict[str, Any]:
    fields = codec.plain(task)
    return {name: fields[name] for name in fields if name != "wants"} | {"mode": task.mode}


def change(change: Change, *, now: float, paused: str) -> dict[str, Any]:
    """One line of `windlass queue --json`. `paused` says why nothing lands in its project; empty if changes land."""
    since = change.landing.landed_at if change.landing else change.queued_at
    return {
        "id": change.id,
        "branch": change.branch,
        "task": change.task or None,
        "agent": change.agent or None,
        "state": change.state,
        "reason": (paused if change.queued else "") or change.reason,
        "candidate": change.candidate.commit if change.candidate else None,
        "checks": [check(result) for result in change.checks],
        "title": change.title,
        "returns": change.returns,
        "undoes": change.undoes or None,
        "hold": change.hold,
        "rank": change.rank,
        "paused": bool(paused),
        "age_seconds": round(max(0.0, now - since), 3),
    }


def comment(message: Message, *, open_ones: Collection[str], now: float) -> dict[str, Any]:
    """One comment on a change; `open` if it still blocks the change."""
    remark = message.remark
    return {
        "id": message.id,
        "from": message.sender,
        "body": message.body,
        "file": (remark.file if remark else "") or None,
        "line": (remark.line if remark else 0) or None,
        "blocking": bool(remark and remark.blocking),
        "open": message.id in open_ones,
        "reply_to": message.reply_to or None,
        "head": remark.head if remark else None,
        "age_seconds": round(max(0.0, now - message.sent_at), 3),
    }


def review(message: Message) -> dict[str, Any]:
    """The opinion of one reviewer of a change."""
    remark = message.remark
    return {
        "from": message.sender,
        "opinion": remark.opinion if remark else None,
        "head": remark.head if remark else None,
        "summary": message.body,
        "time": message.sent_at,
    }


def pause(project: Project) -> dict[str, Any]:
    """Whether a project's queue is paused, since when and why."""
    why = {"since": project.paused_at, "reason": project.pause}
    return {"project": project.name, "paused": bool(project.paused), **why}


def gone(project: Project, absence: Absence) -> dict[str, Any]:
    """A project whose repository is gone, and since when that is known."""
    return {"project": project.name, "path": project.path, "since": absence.since, "reason": absence.reason}


def project(project: Project, absence: Absence | None, counts: tuple[int, int]) -> dict[str, Any]:
    """One line of `windlass project list --json`."""
    agents, changes = counts
    return {
        "id": project.id,
        "name": project.name,
        "path": project.path,
        "main": project.main,
        "state": standing(project, absence),
        "reason": absence.reason if absence else project.paused or project.red,
        "since": absence.since if absence else project.paused_at,
        "agents": agents,
        "changes": changes,
        "hub_deleted": project.hub_deleted_at is not None,
    }


def red(project: Project) -> dict[str, Any]:
    """A project whose main does not pass its own checks."""
    since = project.health.started_at if project.health else None
    return {"project": project.name, "main": project.main, "since": since, "reason": project.red}


def check(result: CheckResult) -> dict[str, Any]:
    keys = ("command", "tree", "passed", "exit_code", "seconds", "reason")
    return {key: getattr(result, key) for key in keys} | {"sandbox": result.sandbox or UNENFORCED}


def definition(definition: Definition) -> dict[str, Any]:
    """One agent of `windlass agents --json`."""
    keys = ("name", "role", "provider", "model", "permissions", "sandbox", "persistent", "file", "line")
    return {key: getattr(definition, key) for key in keys} | {
        "triggers": list(definition.triggers),
        "handoff_to": list(definition.handoff_to),
    }


def landing(landing: Landing | None) -> dict[str, Any] | None:
    """Where a change landed. Its commits and files may be very many: here they are counted, its receipt has them."""
    if landing is None:
        return None
    counts: dict[str, Any] = {"commits": len(landing.commits), "files": len(landing.files)}
    return {**codec.plain(landing), **counts}


def receipt(change: Change, landing: Landing, undoing: Change | None, part: slice) -> dict[str, Any]:
    """The receipt of a landed change: what landed, on which evidence, and how to take it back."""
    proof = [result for result in change.checks if result.passed and result.tree == landing.tested][-1:]
    return {
        "change": change.id,
        "title": change.title,
        "agent": change.agent or None,
        "task": change.task or None,
        "main": landing.main,
        "before": landing.before,
        "after": landing.after,
        "tree": landing.tree,
        "moved_to": landing.top or landing.after,
        "tested_tree": landing.tested,
        "tested_with": [key for result in proof for key in result.stack if key != change.id] if landing.top else [],
        "commit_count": len(landing.commits),
        "commits": list(landing.commits[part]),
        "file_count": len(landing.files),
        "files": list(landing.files[part]),
        "checks": [check(result) for result in proof],
        "tests": {
            "before": codec.plain(landing.tests_before),
            "after": codec.plain(proof[0].tests) if proof else None,
            "complaint": complaint(landing.tests_before, proof[0].tests if proof else None),
        },
        "failed_before": sum(not result.passed for result in change.checks),
        "landed_at": landing.landed_at,
        "undo": f"windlass undo {change.id}",
        "undone_by": undoing.id if undoing and undoing.landing else None,
    }


def rescue(item: Item, contents: Contents, part: slice) -> dict[str, Any]:
    """One line of `windlass rescue list --json`, with a part of its files."""
    return {
        "number": item.number,
        "id": item.saved.id,
        "agent": item.saved.agent,
        "saved_at": item.saved_at,
        "why": "its worktree was removed" if item.saved.removed else f"run {item.saved.label} ended",
        "commits": contents.commits,
        "file_count": len(contents.files),
        "files": list(contents.files[part]),
        "landed": item.saved.landed,
        "ref": item.saved.ref,
        "commit": item.saved.commit,
        "base": contents.base,
        "also": list(item.saved.also),
        "project": item.project.name,
    }


def radar(picture: Picture, *, now: float) -> dict[str, Any]:
    """`windlass radar --json`."""
    return {
        "as_of": now,
        "collisions": [
            {
                "severity": collision.severity,
                "agents": list(collision.agents),
                "with_main": collision.with_main,
                "files": list(collision.files),
                "paths": list(collision.paths),
                "sentence": collision.sentence,
                "age_seconds": round(max(0.0, now - collision.at), 3),
                "project": project.name,
            }
            for project, collision in picture.collisions
        ],
        "agents": [
            {
                "agent": target.agent.id,
                "project": target.project.name,
                "files": len(seen.look.files) if seen and seen.look else None,
                "paths": list(target.task.paths),
                "age_seconds": round(max(0.0, now - seen.at), 3) if seen and seen.look else None,
            }
            for target, seen in picture.looks
        ],
    }


def event(event: Event) -> dict[str, Any]:
    """One line of `windlass watch`."""
    return {
        "seq": event.seq,
        "time": event.time,
        "kind": event.kind,
        "subject": event.subject,
        **event.data,
        **({"became": list(event.became)} if event.became else {}),
    }
