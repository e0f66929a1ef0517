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
        self.places = {each.change: place for place, each in enumerate(queue)}
        self.flaky = max(rates.flaky, _LEAST)
        known = [trial for trial in trials if trial.verdict and self.places.keys() >= set(trial.stack)]
        self.failed = [each for each in known if each.verdict is TrialVerdict.FAILED]
        earlier = [each.stack for each in known if each.verdict is TrialVerdict.PASSED and each.old]
        self.passed = [frozenset(each.stack) for each in known if each.verdict is TrialVerdict.PASSED and not each.old]
        self.proven_before = {entry.change for entry in queue if entry.proven}.union(*earlier)
        self.proven = self.proven_before.union(*self.passed)
        self.strict = strict
        self.good = {each: 1 - max(rates.bad * (_SURE if each in self.proven else 1), _LEAST) for each in self.places}
        self.alone = self._alone(queue)
        self.groups = self._groups(rates)
        self.group_of = {member: group for group in self.groups for member in group.members}

    def _alone(self, queue: Sequence[QueuedChange]) -> dict[str, int]:
        """How often each failed by itself."""
        seen = Counter(each.stack[0] for each in self.failed if len(each.stack) == 1 and not each.mixed)
        return {entry.change: seen[entry.change] for entry in queue}

    def _groups(self, rates: Rates) -> list[Suspects]:
        """Disjoint groups of suspects, the smallest first."""
        found: Counter[frozenset[str]] = Counter()
        for failed, times in self._unexplained().items():
            found[failed - self.proven or failed] += times
        groups: list[Suspects] = []
        taken: set[str] = set()
        for suspects in sorted(found, key=lambda each: (len(each), min(map(self.places.__getitem__, each)))):
            if taken.isdisjoint(suspects):
                taken |= suspects
                groups.append(self._group(suspects, found[suspects], rates))
        return groups

    def _unexplained(self) -> Counter[frozenset[str]]:
        """Sets that failed, and how often, without those that a smaller failed set or a larger passed set explains."""
        counted = Counter(frozenset(each.stack) for each in self.failed)
        counted |= Counter({frozenset((each,)): times for each, times in self.alone.items() if times})
        sets = list(counted)
        return Counter(
            {
                each: counted[each]
                for each in sets
                if not any(other < each for other in sets)
                and (self.strict or len(each) == 1 or not any(each <= passed for passed in self.passed))
            }
        )

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
