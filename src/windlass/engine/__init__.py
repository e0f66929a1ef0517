"""The verbs and ticks of Windlass, over the ports. `Engine` is all that a surface may call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from windlass.core.ports import Ports
from windlass.engine.background import Background, Moves, Seats
from windlass.engine.bell import Bell
from windlass.engine.chatfiles.shared_files import Pages
from windlass.engine.chatfiles.tick import Chat
from windlass.engine.confinement import Confinements
from windlass.engine.forgetting import Forgetting
from windlass.engine.gate.changes import Changes
from windlass.engine.gate.land import Gate
from windlass.engine.gate.queue import Queue
from windlass.engine.gate.reviews import Reviews
from windlass.engine.messages.callers import Callers
from windlass.engine.messages.directory import Directory
from windlass.engine.messages.documents import Documents
from windlass.engine.messages.talk import Talk
from windlass.engine.projects.absences import Absences
from windlass.engine.projects.definitions import Definitions
from windlass.engine.projects.projects import Projects
from windlass.engine.projects.tasks import Tasks
from windlass.engine.radar.tick import Radar
from windlass.engine.runs.judge import Judge
from windlass.engine.runs.output_intake import Intake
from windlass.engine.runs.own_checks import OwnChecks
from windlass.engine.runs.packing import Packing
from windlass.engine.runs.start import Runs
from windlass.engine.runs.watch import Watch
from windlass.engine.slots import Slots
from windlass.engine.stopping import Stopping
from windlass.engine.tidy import Tidy
from windlass.engine.troubles import Troubles
from windlass.engine.views.audit import Audit
from windlass.engine.views.diffs import Diffs
from windlass.engine.views.journal import Journal
from windlass.engine.views.rescue import Rescue
from windlass.engine.views.run_output import RunOutput
from windlass.engine.views.status import Statuses
from windlass.engine.views.status_file import StatusFiles
from windlass.engine.waking.conversations import Conversations
from windlass.engine.waking.deliver import Deliver
from windlass.engine.waking.dispatch import Dispatch
from windlass.engine.waking.outlook import Outlook
from windlass.engine.workflows.workflows import Workflows

Tick = Callable[[], Awaitable[bool]]

STARTS_AT_ONCE = 8
ATTENDANTS_AT_ONCE = 1000
PROJECTS_AT_ONCE = 4

SHOWN = ("agent.", "change.", "daemon.", "instance.", "project.", "run.", "task.")
"""Events after which an agent may be shown in another way. What is only said, or written into a document, is not."""
STEPS = (
    *("daemon.", "instance.", "project.", "task."),
    *("agent.added", "agent.renewed", "run.asked", "run.crashed", "run.finished"),
    *("change.closed", "change.held", "change.landed", "change.queued", "change.ranked", "change.rejected"),
)
"""Events that may let something begin, land or end. That a run has begun, or a change is staged, does not."""
MAIL_SETTLED = ("message.acked", "message.held", "message.dropped")
"""Events after which a message wakes its reader no more."""


@dataclass(frozen=True, slots=True)
class Rhythm:
    """A tick, the seconds it waits at most, and the events that wake it."""

    tick: Tick
    every: float
    ear: asyncio.Event


class Engine:
    """Every topic, built once."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.bell = bell = Bell()
        ports.store.follow(bell.hear)
        self.troubles = Troubles(ports.clock, bell)
        self._starts = Background("start", self.troubles, at_once=STARTS_AT_ONCE)
        self._attendants = Background("watch", self.troubles, at_once=ATTENDANTS_AT_ONCE)
        self._landings = Background("land", self.troubles, at_once=PROJECTS_AT_ONCE)
        self._tests = Background("check", self.troubles, at_once=max(1, ports.processors))
        self.projects = Projects(ports)
        confinement = Confinements(ports)
        self.definitions = Definitions(ports, self.projects)
        self.tasks = Tasks(ports, self.projects, self.definitions, confinement)
        self.directory = Directory(ports, self.tasks)
        self.talk = Talk(ports, bell, confinement, self.directory)
        self.callers = Callers(ports, self.projects, self.directory, self.talk)
        self.documents = Documents(ports, confinement)
        moves: Moves = Moves(asyncio.Lock)
        seats: Seats = Seats(asyncio.Lock)
        self.absences = absences = Absences(ports)
        self.changes = Changes(ports, self.projects, moves, absences)
        self.queue = Queue(ports, self.projects, self.changes, moves)
        self.reviews = Reviews(ports, self.tasks, self.changes, talk=self.talk, troubles=self.troubles)
        self.rehearsals = OwnChecks(ports, self.projects)
        slots = Slots(ports)
        self.radar = Radar(ports, bell, self.troubles)
        self.status = Statuses(ports, slots, self.radar, absences)
        self.output = RunOutput(ports, bell)
        self.diffs = Diffs(ports, self.projects)
        self.rescue = Rescue(ports)
        self.journal = Journal(ports)
        self.audit = Audit(ports)
        self.runs = Runs(ports, bell, confinement, slots, background=self._starts, seats=seats)
        intake = Intake(ports, confinement)
        self._watch = Watch(ports, self.runs, intake, Judge(ports, confinement, self.talk), self._attendants)
        self._packing = Packing(ports, self.troubles)
        self._dispatch = Dispatch(ports, self.runs, slots, self.radar, self.troubles, absences=absences)
        self._deliver = Deliver(ports, bell, self.runs, slots, self.troubles, tasks=self.tasks, absences=absences)
        self.workflows = Workflows(ports, bell, self.tasks, self._deliver, self.changes)
        self.outlook = Outlook(ports, self._deliver)
        self.stopping = Stopping(ports, self.runs, self.changes, self.workflows)
        self.replies = Conversations(ports, bell, self._deliver)
        self._gate = Gate(
            ports,
            self.tasks,
            self.reviews,
            background=self._landings,
            tests=self._tests,
            moves=moves,
            absences=absences,
        )
        self._mirrors = StatusFiles(ports, self.troubles)
        self._chat = Chat(ports, bell, self.talk, Pages(ports, self.documents, self.troubles), self.troubles)
        self._tidy = Tidy(ports, self._chat, self.troubles, confinement=confinement, seats=seats)
        self.forgetting = Forgetting(ports, self.queue, self._tidy, absences=absences, seats=seats)

    @property
    def ticks(self) -> dict[str, Rhythm]:
        """The five ticks, and those of status files, workflows, radar, chat and packing.

        What the kernel stirs, `watch` attends to at once; its tick is for what nobody stirs. Each looks at everything
        from time to time, in case that an event did not wake it.
        """
        hear = self.bell.ear
        return {
            "watch": Rhythm(self._watch.tick, 2.0, asyncio.Event()),
            "dispatch": Rhythm(self._dispatch.tick, 30.0, hear(*STEPS)),
            "deliver": Rhythm(self._deliver.tick, 30.0, hear(*STEPS, "message.")),
            "land": Rhythm(self._gate.tick, 5.0, hear(*STEPS, "message.sent change/")),
            "tidy": Rhythm(self._tidy.tick, 60.0, hear(*STEPS, "message.held", "message.dropped")),
            "status": Rhythm(self._mirrors.tick, 60.0, hear(*SHOWN)),
            "radar": Rhythm(self.radar.tick, 10.0, self.radar.ear),
            "chat": Rhythm(self._chat.tick, 2.0, self._chat.ear),
            "workflows": Rhythm(self.workflows.tick, 30.0, hear(*STEPS, *MAIL_SETTLED)),
            "pack": Rhythm(self._packing.tick, 600.0, asyncio.Event()),
        }

    async def settle(self) -> None:
        """Wait for the work that ticks have begun beside themselves."""
        every = (self._starts, self._attendants, self._landings, self._tests)
        while any(background.active for background in every):
            for background in every:
                await background.settle()

    async def close(self) -> None:
        """Break off what is under way; the next daemon takes it up from the store."""
        for background in (self._landings, self._tests, self._starts, self._attendants):
            await background.close()
        self._chat.close()
        await self._mirrors.leave()
