"""The tidy tick: finished agents are retired, and clean worktrees removed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from windlass.core.address import HUMAN
from windlass.core.errors import NotAllowed, NotFound
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import MailItem, Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.task import Task, TaskState
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.runs.sandbox import own_folder
from windlass.engine.background import Seats
from windlass.engine.chatfiles.tick import Chat
from windlass.engine.confinement import Confinements
from windlass.engine.records import instances
from windlass.engine.records.closing import hush
from windlass.engine.records.messages import channel_of, tell_person
from windlass.engine.troubles import Troubles

log = logging.getLogger("windlass")


SHOWN_SECONDS = 3600.0
"""Seconds for which an agent with a cancelled task stays in the list."""


@dataclass(frozen=True, slots=True)
class Finished:
    """An agent that has nothing left to do."""

    agent: Agent
    projects: tuple[Project, ...]
    task: str
    landed: bool
    """Its task is done, and not given up."""


class Tidy:
    """Removes only what is saved elsewhere, and says where."""

    def __init__(
        self,
        ports: Ports,
        chat: Chat,
        troubles: Troubles,
        *,
        confinement: Confinements,
        seats: Seats,
    ) -> None:
        self.ports = ports
        self.confinement = confinement
        self.store = ports.store
        self.chat = chat
        self.troubles = troubles
        self.seats = seats

    async def tick(self) -> bool:
        """Retire every agent whose task is done, or was given up a while ago; and tell what went wrong."""
        now = self.ports.clock.now()
        with self.troubles.noted("tidy"):
            await self.troubles.tell(self.store)
        for finished in await self.store.read(lambda store: _finished(store, now)):
            with self.troubles.noted("tidy"):
                await self._retire(finished)
        return False

    async def _retire(self, finished: Finished) -> None:
        """Unless someone has called on it meanwhile; who does so from now on waits until its worktree is gone."""
        async with self.seats[finished.agent.id]:
            if not await self.store.read(partial(_is_called, finished)):
                await self._let_go(finished)

    async def _let_go(self, finished: Finished) -> None:
        agent = finished.agent
        if finished.landed:
            rescues, kept = await self.clear(agent, finished.projects)
        else:
            await self.chat.collect(agent)
            rescues, kept = {}, "its work has not landed"
        first = next(iter(rescues.values()), "")
        if finished.landed and kept:
            log.warning("%s", kept)
        now = self.ports.clock.now()

        def step(store: Writing) -> None:
            if _is_called(finished, store):
                return
            hush(store, agent.id, "its work is finished")
            store.record(
                "agent.retired", agent.id, replace(agent, retired_at=now), rescue=first, rescues=rescues, kept=kept
            )
            if finished.landed and kept:
                tell_person(store, kept, channel=channel_of(finished.task), now=now)

        await self.store.write(step)

    async def clear(self, agent: Agent, projects: Sequence[Project]) -> tuple[dict[str, str], str]:
        """Send what an agent has written; save and remove its worktrees, and its own home.

        Returns the refs that bring them back, by project, and why one is kept.
        """
        await self.chat.collect(agent)
        cleared = {project.id: await self._clear(project, agent) for project in projects}
        kept = " ".join(why for _, why in cleared.values() if why)
        if not kept:
            await self.ports.processes.discard(own_folder(self.ports.home, agent))
        refs = {project: ref for project, (ref, _) in cleared.items() if ref}
        return refs, await self._redacted(agent, projects[0], kept)

    async def _redacted(self, agent: Agent, project: Project, text: str) -> str:
        """A text that names files of an agent's, without the secrets of its last run."""
        run = (await self.store.read(lambda store: store.latest_runs([agent.id]))).get(agent.id)
        return (await self.confinement.redactor(run, project)).text(text) if run else text

    async def _clear(self, project: Project, agent: Agent) -> tuple[str, str]:
        """Remove one worktree. Returns the ref that brings it back, or why it was kept."""
        try:
            ref = await self.ports.git.remove_worktree(project, agent)
            log.info("removed the worktree of %s; its files are saved as %s", agent.id, ref)
            return ref, ""
        except NotFound as error:
            if not await self.ports.git.has_worktree(project, agent):
                return "", ""
            place = self.ports.git.worktree_path(project, agent)
            return "", f"The worktree of {agent.id} is kept, because it can't be saved: {error} Look at {place}."
        except NotAllowed as error:
            return "", f"{error} {error.hint}".strip()


def _is_called(finished: Finished, store: Reading) -> bool:
    """Whether it has something to do after all."""
    task = store.task_of(finished.agent.id)
    owed = store.undelivered(reader=finished.agent.id)
    mail = ((store.find(Message, delivery.message), delivery) for delivery in owed)
    called = (MailItem(said, one).calls and said.spawns for said, one in mail if said and said.sender == str(HUMAN))
    return task is None or task.id != finished.task or not task.ended or any(called)


def _finished(store: Reading, now: float) -> list[Finished]:
    """Agents without a live run whose task is over."""
    found = []
    for agent in store.agents_over():
        task = store.task_of(agent.id)
        if task and _is_over(task, now) and (not agent.stays or instances.is_dismissed(store, agent)):
            projects = tuple(project for key in agent.projects if (project := store.find(Project, key)))
            if projects:
                done = task.state is TaskState.DONE and not instances.holds(store, agent)
                found.append(Finished(agent, projects, task.id, done))
    return found


def _is_over(task: Task, now: float) -> bool:
    given_up = task.state is TaskState.CANCELLED and now - (task.ended_at or now) > SHOWN_SECONDS
    return task.state is TaskState.DONE or given_up
