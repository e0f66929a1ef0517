"""The prompt of a run, and the input files in its worktree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from windlass.core import codec
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Message
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Cause, Run
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading
from windlass.core.runs.file_tree import outline
from windlass.core.runs.prompt import Prompt, Workplace, build_prompt
from windlass.core.runs.workdir import Site
from windlass.engine.messages.handoffs import handoff_rule
from windlass.engine.records import instances
from windlass.engine.records.messages import home_channel

RECENT = 20
"""Messages of its channel that a called agent is told."""


class Briefings:
    """Puts together what an agent is told."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.store = ports.store

    async def prompt(self, run: Run, *, task: Task, site: Site, worktree: str, mail: Sequence[Message]) -> Prompt:
        """The prompt of a run, with what the project adds to it; who is called hears what was said before."""
        agent, project, provider = site.agent, site.project, self.ports.providers.get(run.provider)
        recent = await self.store.read(lambda store: recent_in(store, agent)) if run.cause is Cause.CALL else []
        instance = await self.store.read(lambda store: instances.of_agent(store, agent))
        return build_prompt(
            agent=agent,
            task=task,
            main=project.main,
            blocks=await self.ports.library.blocks(project.path),
            mail=mail,
            cause=run.cause,
            recent=recent,
            workplace=await self._workplace(project, worktree) if agent.role else None,
            resumed=bool(run.session),
            repositories={name: project.main for name, project in zip(site.names, site.projects, strict=True)}
            if agent.also
            else {},
            apart=provider.system,
            tools=provider.tools,
            hands_to=handoff_rule(agent, instance, await self.ports.library.roster(project.path)).names,
        )

    async def _workplace(self, project: Project, worktree: str) -> Workplace:
        files, cut = await self.ports.git.files(project)
        return Workplace(name=project.name, path=worktree, uuid=project.id, structure=outline(files, cut=cut))


def recent_in(store: Reading, agent: Agent) -> list[Message]:
    """The latest messages to all in an agent's channel."""
    home, instance = home_channel(store, agent), instances.of_agent(store, agent)
    since = instance.after if instance else 0
    said = store.said(agent.project, channel=home, viewer=agent.id, home=home, after=since, limit=RECENT)
    return [message for message in said if not message.direct]


def task_file(task: Task) -> str:
    """A task as a file: its id and title on top, then what is to be done."""
    title = codec.encode(task.title).decode()
    return f"---\nid: {task.id}\ntitle: {title}\n---\n\n{task.brief or task.title}\n"


def context_files(store: Reading, task: Task) -> Mapping[str, str]:
    """Read-only files about a task: the phase it belongs to, and the tasks that it needed."""
    phase = store.find(Task, task.parent) if task.parent else None
    needed = (store.find(Task, key) for key in task.needs)
    files = {f"tasks/{need.id}.md": task_file(need) for need in needed if need}
    return files | ({f"phases/{phase.id}.md": task_file(phase)} if phase else {})
