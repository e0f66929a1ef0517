"""How likely a stack is to pass: from the rates, and from the trials that passed and failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod

from windlass.core.gate.stacks import QueuedChange, Rates, Trial, TrialVerdict

_SURE = 0.03
"""How much of the usual doubt remains about a change that has passed by itself."""
_LEAST = 0.0005
"""No chance is taken for smaller than this."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """Changes of which at least one is bad, unless all their failures were chance."""

    members: tuple[str, ...]
    clean: float
    """How likely all of them were good, before anything failed."""
    chance: float
    """How likely the failures were chance, if all of them are good."""

    def odds(self, clean: float) -> float:
        """How likely some of them are good, which would be so with the chance `clean` had nothing failed."""
        lucky = self.clean * self.chance
        return (lucky + clean - self.clean) / (lucky + 1 - self.clean)


class Beliefs:
    """The odds of each change in the queue."""

    def __init__(self, queue: Sequence[QueuedChange], trials: Iterable[Trial], rates: Rates, *, strict: bool) -> None:
        self.places = {entry.change: place for place, entry in enumerate(queue)}
        self.flaky = max(rates.flaky, _LEAST)
        known = [trial for trial in trials if trial.verdict and self.places.keys() >= set(trial.stack)]
        self.failed = [trial for trial in known if trial.verdict is TrialVerdict.FAILED]
        passed = [trial for trial in known if trial.verdict is TrialVerdict.PASSED]
        self.passed = [frozenset(trial.stack) for trial in passed if not trial.old]
        earlier = (trial.stack for trial in passed if trial.old)
        self.proven_before = {entry.change for entry in queue if entry.proven}.union(*earlier)
        self.proven = self.proven_before.union(*self.passed)
        self.strict = strict
        doubt = {change: rates.bad * (_SURE if change in self.proven else 1) for change in self.places}
        self.good = {change: 1 - max(bad, _LEAST) for change, bad in doubt.items()}
        alone = Counter(trial.stack[0] for trial in self.failed if len(trial.stack) == 1 and not trial.mixed)
        self.alone = {change: alone[change] for change in self.places}
        """How often each failed by itself."""
        self.groups = self._groups(rates)
        self.group_of = {member: group for group in self.groups for member in group.members}

    def _groups(self, rates: Rates) -> list[Suspects]:
        """Disjoint groups of suspects, the smallest first."""
        found: Counter[frozenset[str]] = Counter()
        for failed, times in self._unexplained().items():
            found[failed - self.proven or failed] += times
        groups: list[Suspects] = []
        taken: set[str] = set()
        for suspects in sorted(found, key=lambda failed: (len(failed), min(map(self.places.__getitem__, failed)))):
            if taken.isdisjoint(suspects):
                taken |= suspects
                groups.append(self._group(suspects, found[suspects], rates))
        return groups

    def _unexplained(self) -> Counter[frozenset[str]]:
        """Sets that failed, and how often, without those that a smaller failed set or a larger passed set explains."""
        counted = Counter(frozenset(trial.stack) for trial in self.failed)
        counted |= Counter({frozenset((change,)): times for change, times in self.alone.items() if times})
        smallest = [failed for failed in counted if not any(other < failed for other in counted)]

        def explained(failed: frozenset[str]) -> bool:
            return not self.strict and len(failed) > 1 and any(failed <= passed for passed in self.passed)

        return Counter({failed: counted[failed] for failed in smallest if not explained(failed)})

    def _group(self, suspects: frozenset[str], times: int, rates: Rates) -> Suspects:
        members = tuple(sorted(suspects, key=self.places.__getitem__))
        if len(members) == 1:
            self.good[members[0]] = min(self.good[members[0]], 1 - max(rates.bad, _LEAST))
        return Suspects(members, prod(self.good[member] for member in members), self.flaky**times)

    def chance(self, stack: Iterable[str]) -> float:
        """How likely a stack is to pass."""
        odds = Odds(self)
        for change in stack:
            odds.add(change)
        return odds.passing


@dataclass(slots=True)
class Odds:
    """How likely a stack is to pass, while it grows."""

    beliefs: Beliefs
    _free: float = 1.0
    _held: dict[tuple[str, ...], float] = field(default_factory=dict)

    def add(self, change: str) -> float:
        """Put one more on top, and say how likely the stack is to pass then."""
        good = self.beliefs.good[change]
        group = self.beliefs.group_of.get(change)
        if group is None:
            self._free *= good
        else:
            self._held[group.members] = self._held.get(group.members, 1.0) * good
        return self.passing

    @property
    def passing(self) -> float:
        groups = (self.beliefs.group_of[members[0]].odds(clean) for members, clean in self._held.items())
        return self._free * prod(groups) * (1 - self.beliefs.flaky)
