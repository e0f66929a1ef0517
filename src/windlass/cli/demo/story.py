"""The story of the demo: five tasks, and the state of each, from the daemon's events alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from windlass.cli.output import Row
from windlass.core.display import short
from windlass.core.errors import WindlassError

_LOOK = "Run `windlass demo --keep` to keep everything for a closer look."


@dataclass(frozen=True, slots=True)
class Story:
    """One task, played from the script of its name."""

    name: str
    title: str
    returned: str = ""
    """If the gate must send it back once: the beginning of a line that its author must be told then."""


STORIES = (
    Story("cents", "Fix cents lost in split()"),
    Story("thousands", "Set thousands apart", returned="AssertionError"),
    Story("discount", "Add discounts"),
    Story("readme", "Add a README example"),
    Story("tip", "Let split() share a tip", returned="CONFLICT"),
)
"""The scripts say who waits for whom: tip begins before cents lands, and is done after that."""


_DOING = {
    "starting": "",
    "running": "in its own clone",
    "queued": "as {change}",
    "testing": "{change} on main",
    "rejected": "as {change}",
    "landed": "as {change}",
}


@dataclass(slots=True)
class Part:
    """The state of one story."""

    story: Story
    agent: str
    state: str = "starting"
    change: str = ""
    reason: str = ""
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    told: list[str] = field(default_factory=list)
    """The decisive line of each refusal, as its author was told."""

    @property
    def doing(self) -> str:
        """The state of the agent or of its change, with a few words."""
        words = "to repair {change}" if self.state == "running" and self.told else _DOING[self.state]
        return f"{self.state} {words.format(change=self.change)}"

    @property
    def seconds(self) -> float:
        return (time.monotonic() if self.ended is None else self.ended) - self.began


Tell = Callable[[str, str], None]
"""Called with an actor and what it did, in words."""


class Storyline:
    """The state of all stories. Events update it; it tells people the steps, and puts signs for waiting agents."""

    def __init__(self, *, tell: Tell, sign: Callable[[str], None]) -> None:
        self.parts: dict[str, Part] = {}
        self.landed: list[str] = []
        self._tell = tell
        self._sign = sign
        self._owners: dict[str, Part] = {}
        """The part of each agent, by its name."""

    def add(self, story: Story, task: str, agent: str) -> None:
        self.parts[task] = self._owners[agent] = Part(story, agent)

    @property
    def finished(self) -> bool:
        return len(self.landed) == len(STORIES)

    def follow(self, event: Row) -> None:
        """Update the state by one event. Raises WindlassError for an ending that no script has."""
        noun, _, verb = event["kind"].partition(".")
        row: Row = next((became for became in event.get("became", ()) if became["noun"] == noun), {})
        step = _STEPS.get(event["kind"])
        if step and (part := self._part(noun, row)):
            step(self, part, row, event)
        elif noun in ("task", "change") and verb in _WRONG and (part := self._part(noun, row)):
            raise WindlassError(
                f"{part.agent} did not do what its script says: {noun} {verb}: {row.get('reason') or 'no reason'}.",
                hint=_LOOK,
            )

    def judge(self) -> None:
        """Raises WindlassError unless every expected refusal happened once, and for its reason."""
        for part in self.parts.values():
            expected = [part.story.returned] if part.story.returned else []
            if len(part.told) != len(expected) or not all(map(str.startswith, part.told, expected)):
                raise WindlassError(f"{part.agent} was sent back {len(part.told)} times: {part.told}.", hint=_LOOK)

    def _part(self, noun: str, row: Row) -> Part | None:
        if noun == "task":
            return self.parts.get(row.get("id", ""))
        if noun == "message":
            return self._owners.get(next(iter(row["to"]), ""))
        return self.parts.get(row.get("task", ""))

    def _started(self, part: Part, run: Row, _event: Row) -> None:
        part.state = "running"
        if run["number"] == 1:
            self._sign(f"{part.story.name}.started")
            self._tell(part.agent, f"begins: {part.story.title}")
        else:
            self._tell(part.agent, "works again, with that in its prompt")

    def _finished(self, part: Part, run: Row, _event: Row) -> None:
        self._tell(part.agent, f"is done: {run['result'] or run['reason']}")

    def _queued(self, part: Part, change: Row, _event: Row) -> None:
        part.state, part.change = "queued", change["id"]

    def _staged(self, part: Part, change: Row, _event: Row) -> None:
        part.state = "testing"
        self._tell("gate", f"tests {change['id']} on the tree that main would have")

    def _landed(self, part: Part, change: Row, event: Row) -> None:
        part.state, part.ended = "landed", time.monotonic()
        self.landed.append(change["id"])
        seconds = sum(check["seconds"] for check in change["checks"])
        below = (change["landing"].get("top") or event["after"]) != event["after"]  # main moves once for a whole stack
        where = "lands, with the next" if below else f"lands: main is now {short(event['after'])}"
        self._tell("gate", f"{change['id']} passed in {seconds:.1f} s and {where}")
        self._sign(f"{part.story.name}.landed")

    def _rejected(self, part: Part, change: Row, _event: Row) -> None:
        part.state, part.reason = "rejected", change["reason"]

    def _mailed(self, part: Part, message: Row, _event: Row) -> None:
        if message["sender"] == "system" and part.state == "rejected":
            wanted, lines = part.story.returned or "\0", map(str.strip, message["body"].splitlines())
            part.told.append(next((line for line in lines if line.startswith(wanted)), part.reason))
            self._tell("gate", f"refuses {part.change}, and tells {part.agent}: {part.told[-1]}")


_STEPS: dict[str, Callable[[Storyline, Part, Any, Any], None]] = {
    "run.started": Storyline._started,
    "run.finished": Storyline._finished,
    "change.queued": Storyline._queued,
    "change.staged": Storyline._staged,
    "change.landed": Storyline._landed,
    "change.rejected": Storyline._rejected,
    "message.sent": Storyline._mailed,
}
_WRONG = ("failed", "paused", "cancelled", "held", "closed")
"""Endings that no story has."""
