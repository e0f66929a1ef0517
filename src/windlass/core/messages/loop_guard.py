"""When agents talk on and on: hop by hop, in circles, or too fast. People are never held up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.core.address import HUMAN, SYSTEM
from windlass.core.display import some
from windlass.core.nouns.message import MailItem, Message
from windlass.core.nouns.run import Cause, Run
from windlass.core.settings.schema import Limits

LONGEST_CHAIN = 12
"""How many of those who spoke in a chain are remembered."""
ROUNDS = 3
"""How often the same agents may answer one another in a circle."""
SMALLEST_CIRCLE = 3
"""Two who answer one another have a conversation."""
MINUTE = 60.0
_BY_ITSELF = "it goes on by itself within another minute"


@dataclass(frozen=True, slots=True)
class LoopStop:
    """Why an agent is not woken by what others say."""

    reason: str
    until: float | None = None
    """When it goes on by itself; None: when a person says so."""
    message: str = ""
    """What does not wake it: of all that would, the one that came the longest way."""

    def words(self, reader: str) -> str:
        """The reason, and what lets it go on: a person's word, because those of agents are what is held up."""
        goes_on = f"a person's {remedy(reader)} lets it go on" if self.until is None else _BY_ITSELF
        return f"{self.reason}; {goes_on}"


def remedy(*readers: str) -> str:
    """The command with which a person lets them go on."""
    return f'`windlass send "Go on." {" ".join(f"--to {reader}" for reader in readers)}`'


def linked(sender: str, before: Sequence[Message]) -> tuple[int, tuple[str, ...]]:
    """Hops and chain of what an agent says who was told these; a person begins anew."""
    if sender in (str(HUMAN), str(SYSTEM)):
        return 0, ()
    led = max(before, key=lambda message: message.hops, default=None)
    hops, chain = (led.hops, led.chain) if led else (0, ())
    return hops + 1, (*chain, sender)[-LONGEST_CHAIN:]


def decide_brake(runs: Sequence[Run], items: Sequence[MailItem], limits: Limits, *, now: float) -> LoopStop | None:
    """Whether agents alone want to wake this one, and have done so too often."""
    calling = [item.message for item in items if item.calls]
    if not calling or any(message.sender in (str(HUMAN), str(SYSTEM)) for message in calling):
        return None
    worst = max(calling, key=lambda message: message.hops)
    if limits.hops and worst.hops > limits.hops:
        return LoopStop(f"{worst.hops} messages went from agent to agent without a person", message=worst.id)
    if circle := circle_of(worst.chain):
        return LoopStop(f"{some(circle)} answer one another in a circle", message=worst.id)
    return _pace(runs, limits, now)


def _pace(runs: Sequence[Run], limits: Limits, now: float) -> LoopStop | None:
    woken = [run.starting_at for run in runs if run.cause in (Cause.MAIL, Cause.CALL)]
    lately = sorted(at for at in woken if now - MINUTE < at <= now)
    if not limits.wakes or len(lately) < limits.wakes:
        return None
    return LoopStop(f"it was woken {len(lately)} times within a minute", lately[-limits.wakes] + MINUTE)


def circle_of(chain: Sequence[str]) -> tuple[str, ...]:
    """Those who have answered one another in the same order, again and again; nothing if nobody has."""
    for size in range(SMALLEST_CIRCLE, len(chain) // ROUNDS + 1):
        last = tuple(chain[-size:])
        if len(set(last)) == size and tuple(chain[-size * ROUNDS :]) == last * ROUNDS:
            return last
    return ()
