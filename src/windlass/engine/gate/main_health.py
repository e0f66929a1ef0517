"""Whether main itself passes its checks. While it does not, only repairs land, and an agent is asked for one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count

from windlass.core.errors import Conflict, WindlassError
from windlass.core.gate import rules as gate_rules
from windlass.core.gate.stacks import tries
from windlass.core.nouns.change import Candidate, Change, CheckResult
from windlass.core.nouns.message import Kind
from windlass.core.nouns.project import Project
from windlass.core.ports import Ports
from windlass.core.ports.store import Reading, Writing
from windlass.core.render import red_main
from windlass.core.settings.schema import Settings
from windlass.engine.checking import CheckRuns
from windlass.engine.projects.tasks import Order, Tasks
from windlass.engine.records.changes import recent_changes
from windlass.engine.records.documents import revised
from windlass.engine.records.messages import tell_person, withdraw

OUTPUT = "checks/main"
"""The document with the output of main's checks."""


class Health:
    """Tests main's own tip, and asks for a repair."""

    def __init__(self, ports: Ports, tasks: Tasks) -> None:
        self.store = ports.store
        self.git = ports.git
        self.checks = CheckRuns(ports)
        self.clock = ports.clock
        self.tasks = tasks

    async def known(self, project: Project, tip: str, settings: Settings) -> bool | None:
        """Whether main's tip is green; None if it was never tested."""
        candidate = await self._itself(project, tip)
        if candidate is None:
            return None
        tree = candidate.tree
        health = (await self.store.read(lambda store: store.find(Project, project.id)) or project).health
        if health and (health.tree, health.command) == (tree, settings.checks.command):
            return health.passed
        landed = await self.store.read(partial(_landed_on, project.id, tree, settings.checks.command))
        return True if landed else None

    async def _itself(self, project: Project, tip: str) -> Candidate | None:
        """Main's tip as a candidate; None if main has moved."""
        try:
            candidate = await self.git.stage(project, tip, "")
        except Conflict:
            return None
        return candidate if candidate.before == tip and not candidate.commits else None

    async def test(self, project: Project, tip: str, settings: Settings) -> bool | None:
        """Run the checks on main's tip, again if they fail, and record the result. Returns None if main has moved."""
        candidate = await self._itself(project, tip)
        if candidate is None:
            return None
        rates = gate_rules.rates(await self.store.read(partial(recent_changes, project.id)))
        for failed in count(1):
            result, output = await self.checks.run(project, candidate, settings)
            if result.passed or failed >= tries(settings.gate.retries, rates, 0):
                break
        if not result.passed:
            await self._ask_for_repair(project, result, output)
        await self._note(project, replace(result, document=OUTPUT), output)
        return result.passed

    async def recovered(self, project: Project, proof: CheckResult) -> None:
        """Record that main is green again, after it moved to a tree that passed."""
        current = await self.store.read(lambda store: store.find(Project, project.id)) or project
        if current.red:
            await self._note(project, proof, "")

    async def _note(self, project: Project, result: CheckResult, output: str) -> None:
        now = self.clock.now()

        def step(store: Writing) -> None:
            current = store.find(Project, project.id) or project
            then = replace(current, health=result)
            text = revised(store, project.id, OUTPUT, output, now=now)
            store.record("project.tested", project.id, then, text, passed=result.passed)
            if then.red != current.red:
                _tell(store, project, _news(then), now)
            if not then.red:
                withdraw(store, _channel(project), f"{project.main} is green again.", now)

        await self.store.write(step)

    async def _ask_for_repair(self, project: Project, result: CheckResult, output: str) -> None:
        """Add a task to repair main, one for each red tree; a crash adds no second one with the same title."""
        current = await self.store.read(lambda store: store.find(Project, project.id)) or project
        if current.red and current.health and current.health.tree == result.tree:
            return
        if result.exit_code in gate_rules.NOT_RUN:
            words = f"{project.main} can't be tested: {result.reason}: {result.command}. Install what is missing."
            await self.store.write(lambda store: _ask(store, project, words, self.clock.now()))
            return
        tasks = await self.store.read(lambda store: store.unfinished_tasks(project=project.id))
        if any(task.title == project.mending for task in tasks):
            return
        try:
            brief = red_main(project.main, result, output)
            await self.tasks.add(Order(path=project.path, title=project.mending, brief=brief))
        except WindlassError as error:
            words = f"{project.main} is red, and no agent could be asked to repair it: {error} {error.hint}".strip()
            await self.store.write(lambda store: _ask(store, project, words, self.clock.now()))


def _news(project: Project) -> str:
    """What a person is told when main has become red or green."""
    if not project.red:
        return f"{project.main} is green again: changes land."
    return (
        f"{project.red}. Until it is green, only repairs land. It is tested again when it moves, when a setting of the "
        "checks or their sandbox changes, when the daemon starts, and every five minutes."
    )


def _channel(project: Project) -> str:
    return f"project/{project.id}"


def _tell(store: Writing, project: Project, body: str, now: float, *, kind: Kind = Kind.REPORT) -> None:
    tell_person(store, body, channel=_channel(project), now=now, kind=kind)


def _ask(store: Writing, project: Project, body: str, now: float) -> None:
    """Ask the person, unless a question is open."""
    if not store.open_asks(channel=_channel(project), limit=1):
        _tell(store, project, body, now, kind=Kind.ASK)


def _landed_on(project: str, tree: str, command: str, store: Reading) -> Change | None:
    """A change that landed with a passed test of this tree."""
    landed = (change for change in store.changes(project=project, ended=True, limit=20) if change.landing)
    green = (
        change
        for change in landed
        if any(check.passed and (check.tree, check.command) == (tree, command) for check in change.checks)
    )
    return next(green, None)
