"""What a person is shown about agents: derived from rows, with its evidence and its age."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from windlass.core import display, policy
from windlass.core.address import HUMAN
from windlass.core.errors import WindlassError
from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.change import Change, ChangeState
from windlass.core.nouns.message import Kind, Message
from windlass.core.nouns.project import Absence, Project, halt
from windlass.core.nouns.run import Cost, Outcome, Run, Usage
from windlass.core.nouns.task import Task
from windlass.core.ports import Ports
from windlass.core.ports.archive import Saved
from windlass.core.ports.store import Reading
from windlass.core.runs import retry_rules
from windlass.engine.projects.absences import Absences
from windlass.engine.radar.tick import Key, Radar
from windlass.engine.records.documents import text_of
from windlass.engine.records.lookup import get
from windlass.engine.records.messages import channel_of, current_task, open_questions
from windlass.engine.runs.worktree import setup_document
from windlass.engine.slots import Slots
from windlass.engine.views.rescue import newest_removal

PAGE = 200
"""How many finished agents are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One agent, as it is now."""

    agent: Agent
    project: str
    """The name of its project."""
    status: Status
    evidence: str
    age: float
    """Seconds since the newest fact about it."""
    task: Task | None
    run: Run | None
    change: Change | None
    paused: str = ""
    """Why no change lands in its project, if none does."""
    cost: Cost = field(default_factory=Cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One agent with all that belongs to it."""

    view: View
    runs: Sequence[Run]
    usage: Usage
    worktree: str
    output: str
    """The output of the checks that its change failed."""
    questions: Sequence[Message]
    reports: Sequence[Message]
    setup: str = ""
    """What the set-up of its worktree printed."""
    rescue: Saved | None = None
    """What was saved when its worktree was removed."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The time of a look, and the facts that the store does not have."""

    now: float
    gone: frozenset[str]
    """Live runs whose process has gone."""
    fits: Callable[[Agent], bool]
    """Whether an agent may start a run."""
    held: Callable[[Task], str]
    """Why the radar keeps a task from beginning, if it does."""
    absent: Mapping[str, Absence] = field(default_factory=dict)
    """The projects that can't be worked on, by id."""

    def away(self, agent: Agent) -> str:
        """Why an agent can't be started, if one of its projects can't be worked on."""
        return next((self.absent[key].told(self.now) for key in agent.projects if key in self.absent), "")


class Statuses:
    """Answers who does what, since when, and how we know."""

    def __init__(self, ports: Ports, slots: Slots, radar: Radar, absences: Absences) -> None:
        self.store = ports.store
        self.git = ports.git
        self.clock = ports.clock
        self.slots = slots
        self.radar = radar
        self.absences = absences

    async def every(self, *, retired: bool = False, project: str = "") -> list[View]:
        """The agents at work, newest first; with `retired`, the finished ones after them."""
        gone, unseen, absent = await self.slots.gone(), await self.radar.unseen(), await self.absences.all()

        def question(store: Reading) -> list[View]:
            agents = store.agents(project=project)
            if retired:
                forgotten = {each.id for each in store.projects(forgotten=True) if each.forgotten}
                finished = store.agents(project=project, retired=True, limit=PAGE)
                agents += [agent for agent in finished if agent.project not in forgotten]
            return _views(store, agents, replace(self._moment(store, gone, unseen), absent=absent))

        return await self.store.read(question)

    async def live_runs(self) -> list[Run]:
        """The runs that have no outcome yet."""
        return await self.store.read(lambda store: store.live_runs())

    def _moment(self, store: Reading, gone: frozenset[str], unseen: Container[Key]) -> Moment:
        fits = partial(self.slots.fits, store, gone=gone)
        return Moment(self.clock.now(), gone, fits, partial(self.radar.held, store, unseen=unseen))

    async def page(self, name: str, *, viewer: str = "") -> Page:
        """All about one agent, as far as another may see it."""
        page = await self._page(name, viewer)
        project = await self.store.read(lambda store: store.find(Project, page.view.agent.project))
        if page.view.agent.retired_at is None or project is None:
            return page
        return replace(page, rescue=newest_removal(await self.git.archive.saved(project, page.view.agent)))

    async def _page(self, name: str, viewer: str) -> Page:
        gone, unseen, absent = await self.slots.gone(), await self.radar.unseen(), await self.absences.all()

        def question(store: Reading) -> Page:
            agent = get(store, Agent, name)
            project = store.find(Project, agent.project)
            view = _views(store, [agent], replace(self._moment(store, gone, unseen), absent=absent))[0]
            runs = store.runs_of(agent.id)
            messages = store.messages(channel_of(view.task.id)) if view.task else []
            return Page(
                view=view,
                runs=runs,
                usage=sum((run.usage for run in runs), Usage()),
                worktree=self.git.worktree_path(project, agent) if project else "",
                output=_failed_output(store, view.change),
                questions=[each for each in open_questions(store, agent.id) if not each.hidden_from(viewer)],
                setup=text_of(store, setup_document(agent)),
                reports=[said for said in messages if _is_report(said) and not said.hidden_from(viewer)],
            )

        return await self.store.read(question)


def _is_report(message: Message) -> bool:
    return str(HUMAN) in message.to and message.kind is Kind.REPORT


def _failed_output(store: Reading, change: Change | None) -> str:
    if change is None or not change.checks or change.checks[-1].passed:
        return ""
    return text_of(store, f"{change.project}/{change.checks[-1].document}")


def _views(store: Reading, agents: Sequence[Agent], moment: Moment) -> list[View]:
    latest = store.latest_runs([each.id for each in agents])
    spoke = store.last_output([each.id for each in latest.values()])
    costs = store.costs([each.id for each in agents])
    owed = {*store.readers_waiting()}
    views = (_view(store, agent, latest.get(agent.id), spoke, moment, owed=agent.id in owed) for agent in agents)
    return [replace(view, cost=costs.get(view.agent.id, Cost())) for view in views]


def _view(
    store: Reading, agent: Agent, run: Run | None, spoke: dict[str, float], moment: Moment, *, owed: bool
) -> View:
    task = current_task(store, agent.id)
    change = store.change_of_task(task.id) if task else None
    project = store.find(Project, agent.project)
    target = store.find(Project, change.project) if change else None
    away = moment.away(agent) if agent.retired_at is None else ""
    there = moment.absent.get(change.project) if change else None
    paused = halt(target, there, moment.now) if target and change and not change.ended else ""
    status = policy.status_of(run, task, change, persistent=agent.persistent)
    last = spoke.get(run.id) if run else None
    mail = _mail(store, agent) if owed and _rest(run, task) <= moment.now else ""
    if run and run.live:
        evidence = _of_live(run, last, moment)
    else:
        evidence = _joined(_evidence(agent, run, task, change, moment, paused=paused), mail)
    return View(
        agent=agent,
        project=project.name if project else agent.project,
        status=status,
        evidence=_joined(evidence, "" if away in evidence else away),
        age=max(0.0, moment.now - _newest(agent, run, task, change, last)),
        task=task,
        run=run,
        change=change,
        paused=paused,
    )


def _newest(agent: Agent, run: Run | None, task: Task | None, change: Change | None, spoke: float | None) -> float:
    times = [agent.created_at, spoke]
    if run:
        times += [run.starting_at, run.started_at, run.ended_at]
    if task:
        times += [task.created_at, task.ended_at]
    if change:
        times += [change.queued_at, change.landing.landed_at if change.landing else None]
    return max(time for time in times if time is not None)


def _evidence(
    agent: Agent, run: Run | None, task: Task | None, change: Change | None, moment: Moment, *, paused: str
) -> str:
    now = moment.now
    if change and not (task and task.ended) and change.state is not ChangeState.REJECTED:
        reason = (paused if change.queued else "") or change.reason
        return f"{change.id} is {change.state}" + (f": {reason}" if reason else "")
    if change and change.landing:
        return f"{change.id} landed {display.age(now - change.landing.landed_at)} ago as {change.landing.after[:10]}"
    if run is None:
        return _before_any_run(agent, task, moment)
    ago = f"{display.age(now - run.ended_at)} ago" if run.ended_at is not None else ""
    if change and change.state is ChangeState.REJECTED:
        return f"{change.id} came back {ago}: {change.reason}"
    return (
        f"run {run.number} {run.outcome} {ago}" + (f": {run.reason}" if run.reason else "") + _goes_on(run, task, now)
    )


def _goes_on(run: Run, task: Task | None, now: float) -> str:
    """When an agent whose account has no quota starts again by itself."""
    until = _rest(run, task)
    if not until:
        return ""
    return f"; goes on in {display.age(until - now)}" if until > now else "; about to go on"


def _rest(run: Run | None, task: Task | None) -> float:
    """Until when an agent whose account has no quota rests; 0: it does not."""
    exhausted = run is not None and run.outcome is Outcome.EXHAUSTED and task is not None and not task.ended
    return (retry_rules.rest_until([run]) or 0.0) if run and exhausted else 0.0


_NOTHING = "nothing to do"


def _mail(store: Reading, agent: Agent) -> str:
    """Why messages that should wake it do not."""
    reasons = (each.reason for each in store.undelivered(reader=agent.id) if each.wakes)
    return next((f"mail waits: {reason}" for reason in reasons if reason not in ("", policy.NEED_NOT)), "")


def _joined(evidence: str, mail: str) -> str:
    return f"{evidence}; {mail}" if mail and evidence != _NOTHING else mail or evidence


def _before_any_run(agent: Agent, task: Task | None, moment: Moment) -> str:
    if task is None:
        return _NOTHING
    if task.ended:
        return task.reason
    if away := moment.away(agent):
        return f"can't start: {away}"
    try:
        if not moment.fits(agent):
            return "waits for a free slot"
    except WindlassError as error:  # its project's files are broken; those of others are shown all the same
        return f"can't start: {error}"
    return moment.held(task) or "about to start"


def _of_live(run: Run, spoke: float | None, moment: Moment) -> str:
    now = moment.now
    if run.identity is None:
        return f"starting for {display.age(now - run.starting_at)}" + (f": {run.reason}" if run.reason else "")
    gone = f"gone, {run.reason or 'about to be judged'}"
    process = f"pid {run.identity.pid} {gone if run.id in moment.gone else 'alive'}"
    said = f"last output {display.age(now - spoke)} ago" if spoke is not None else "no output yet"
    stopping = ", asked to stop" if run.stopping else ""
    return f"{process}, {said}{stopping}"
