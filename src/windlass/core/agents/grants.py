"""What an agent may call. Every route and every tool declares one grant; without one it is a person's alone."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from windlass.core.errors import NotAllowed


class Grant(StrEnum):
    """What a call is about. The entrance of each surface asks here before anything else is done."""

    PERSON = "person"
    """Only a person may call it, about anything."""
    RUN = "run"
    """Only an agent may call it, about its own run."""
    OPEN = "open"
    """Anyone: it tells nothing of any project."""
    PROJECT = "project"
    """Anyone: an agent about its own project, whatever folder it names, and about its own mail."""
    AGENT = "agent"
    """Anyone about the agent that is named, as the next three: an agent only about one of its own project."""
    TASK = "task"
    CHANGE = "change"
    CONVERSATION = "conversation"

    @property
    def names(self) -> bool:
        """Whether the call names something that belongs to a project."""
        return self in (Grant.AGENT, Grant.TASK, Grant.CHANGE, Grant.CONVERSATION)


def may_call(grant: Grant, *, run: bool) -> bool:
    """Whether agents (`run`) or people may make such calls at all."""
    return grant is not (Grant.PERSON if run else Grant.RUN)


def check_call(grant: Grant, *, run: bool) -> None:
    """Raise NotAllowed where agents, or people, may not make such calls."""
    if may_call(grant, run=run):
        return
    if run:
        raise NotAllowed(
            "An agent may not do that; only a person outside every run can.",
            hint="Inside a run: `windlass agent complete`, `windlass agent ask`, `windlass agent fail`.",
        )
    raise NotAllowed(
        "Only an agent can give its own signal; this caller is outside every run.",
        hint="`windlass list` shows who is at work; `windlass stop NAME` ends it, `windlass send` tells it.",
    )


def covers(grant: Grant, project: str, owners: Collection[str]) -> bool:
    """Whether an agent of a project may make a call about something that belongs to these projects."""
    return not grant.names or (bool(project) and project in owners)
