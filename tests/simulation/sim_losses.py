"""What was accepted must be there at the end: tasks, landings, commits and messages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from sim_world import World

from fakes.store import MemoryReading
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Delivery, Kind, Message, Receipt
from windlass.core.nouns.project import Project
from windlass.core.nouns.run import Outcome, Run
from windlass.core.nouns.task import Task, TaskState

BY_HAND = "by hand"
"""Why people drop and hold changes here."""
_MAIL = re.compile(rf"^## m(\d+) from .* \((?:{'|'.join(Kind)})\b", re.MULTILINE)
"""The heading of a message to the agent; that of one that it only overhears in its channel has no kind."""


class Losses:
    """Looks for what was accepted and is not there any more."""

    def __init__(self, world: World) -> None:
        self.world = world

    def all(self) -> Iterator[str]:
        """What was accepted and is not there any more."""
        world, now = self.world, self.world.now
        yield from (
            f"{each} was accepted and is lost" for each in world.witness.accepted if now.find(Task, each) is None
        )
        for key, reader in world.witness.answers.items():
            if now.find(Delivery, f"{key}/{reader}") is None:
                yield f"I4: {key} to {reader} was accepted and is lost"
        receipts = {each.landing.after for each in now._all(Change) if each.landing}
        for path, commit in world.witness.landed:
            if commit not in receipts and commit in self._line(path):  # some may be thrown away
                yield f"main moved to {commit[:8]}, and no change has landed"
        for task in now._all(Task):
            if task.state is TaskState.DONE and not self._is_spared(task) and not self._is_in_main(task):
                yield f"{task.id} is done, and main never had what {task.agent} committed"
        paths = [project.path for project in now.projects()]
        yield from (f"{each} is several projects" for each in set(paths) if paths.count(each) > 1)
        yield from self._mail()
        yield from self._words()

    def _line(self, path: str) -> Iterator[str]:
        """Where main of a repository has been on its way to its tip, newest first; not what it took in by merging."""
        commits, at = self.world.git.objects.commits, [self.world.git.repositories[path].branches["main"]]
        while at:
            yield at[0]
            at = list(commits[at[0]].parents[:1])

    def _is_spared(self, task: Task) -> bool:
        """Whether it was only to look, or a person has dropped what it wanted in one of its repositories."""
        dropped = any(each.reason == BY_HAND for each in self.world.now.changes_of_task(task.id))
        return bool(task.reviews) or dropped

    def _is_in_main(self, task: Task) -> bool:
        """Whether each main had at some time what the agent of a task, if that was its last one, has committed."""
        now, git = self.world.now, self.world.git
        agent, latest = now.find(Agent, task.agent), now.latest_runs([task.agent]).get(task.agent)
        if agent is None or latest is None or latest.task != task.id:
            return True
        refs = {project.path: git.hubs[project.id].refs for project in _projects(now, agent) if project.id in git.hubs}
        branch = f"refs/heads/{agent.branch}"  # which is not there where a task was given up before it began
        return all(self._had(path, refs[path][branch]) for path in refs if branch in refs[path])

    def _had(self, path: str, commit: str) -> bool:
        repository = self.world.git.repositories[path]
        tips = [tip for branch, tip, _ in repository.log if branch == "main"]
        return any(self.world.git.objects.contains(each, commit) for each in reversed(tips))

    def _told(self, run: Run) -> list[int]:
        """The numbers of the messages in a run's prompt, in order."""
        return [int(number) for number in _MAIL.findall(self._prompt(run.id))]

    def _mail(self) -> Iterator[str]:
        """I4: what counts as read stood in the prompt of the run that is named; once, unless that run crashed."""
        now = self.world.now
        shown: dict[tuple[str, str], list[Run]] = {}
        for run in now._all(Run):
            numbers = self._told(run) if self._ran(run) else []
            if numbers != sorted(numbers):
                yield f"I4: {run.id} was told {numbers}, out of order"
            for number in numbers:
                shown.setdefault((f"m{number}", run.agent), []).append(run)
        for (key, _), runs in shown.items():
            if any(each.outcome is not Outcome.CRASHED and each.trouble is None for each in runs[:-1]):
                yield f"I4: {key} was shown to {', '.join(each.id for each in runs)}"
        for delivery in now._all(Delivery):
            if delivery.receipt is Receipt.READ and delivery.run not in {
                each.id for each in shown.get((delivery.message, delivery.reader), ())
            }:
                yield f"I4: {delivery.id} counts as read in {delivery.run}, which was not told"

    def _words(self) -> Iterator[str]:
        """I4: what was accepted is there as it was said, owed to each reader, and taken once by those who take it."""
        now, witness = self.world.now, self.world.witness
        for key, message in witness.spoken.items():
            if now.find(Message, key) != message:
                yield f"I4: {key} is not what was said"
            for reader in message.to:
                if now.find(Delivery, f"{key}/{reader}") is None:
                    yield f"I4: {key} is lost on its way to {reader}"
        for each, times in Counter(witness.heard).items():
            shown = [run for run in now.runs_of(each[1]) if int(each[0][1:]) in self._told(run)]
            whole = [run for run in shown if run.outcome is not Outcome.CRASHED and run.trouble is None]
            read = [run for run in whole if self._ran(run)]
            if times + len(read) > 1:
                yield f"I4: {each[1]} has heard {each[0]} more than once"
        for (sender, reader), numbers in self._orders().items():
            if numbers != sorted(numbers):
                yield f"I4: {reader} heard {sender} out of order: {numbers}"

    def _orders(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of what readers took, in the order of taking, by sender and reader."""
        orders: dict[tuple[str, str], list[int]] = {}
        for key, reader in self.world.witness.heard:
            message = self.world.now.find(Message, key)
            if message is not None:
                orders.setdefault((message.sender, reader), []).append(int(key[1:]))
        return orders

    def _ran(self, run: Run) -> bool:
        return run.id in self.world.processes.started

    def _prompt(self, run: str) -> str:
        return self.world.workdirs.files.get(f"{self.world.workdirs.home}/runs/{run}/prompt.md", "")


def _projects(store: MemoryReading, agent: Agent) -> list[Project]:
    return [found for project in agent.projects if (found := store.find(Project, project))]
