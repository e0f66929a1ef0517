"""Choose the stacks to test next: the most telling ones, on top of sure ones, always with the queue's first change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from windlass.core.gate.odds import Beliefs, Odds
from windlass.core.gate.stacks import Clash, QueuedChange, Rules, Stack, Trial

_EVEN = 0.58
"""A test tells most when it is as likely to pass as to fail; a little more, because what passes also lands."""
_SURE = 0.75
"""A stack that is so likely to pass that others are put on top of it."""
_BOLD = 0.25
"""A stack that would land everything is worth a spare runner when it is as likely as this."""
_WORTH = 0.2
"""A unit is not split for a spare runner while it is less likely than this to fail."""
_FAINT = 0.1
"""A stack that is less likely to pass than this is better tested without others under it."""


class Draft:
    """The next stacks, chosen one after the other."""

    def __init__(
        self,
        queue: Sequence[QueuedChange],
        beliefs: Beliefs,
        rules: Rules,
        *,
        clashes: Iterable[Clash],
        under_way: Sequence[Trial],
        passed: Sequence[Stack],
    ) -> None:
        self.queue = queue
        self.beliefs = beliefs
        self.rules = rules
        self.under_way = [trial.stack for trial in under_way if not trial.old]
        self.known = {*passed, *(trial.stack for trial in under_way)}
        self.busy = {change for trial in under_way for change in trial.stack}.union(*passed)
        self.needs = {entry.change: self._needs(entry) for entry in queue if entry.needs}
        self.clashes: dict[str, list[frozenset[str]]] = {}
        for clash in clashes:
            self.clashes.setdefault(clash.change, []).append(frozenset(clash.under))

    def _needs(self, entry: QueuedChange) -> frozenset[str]:
        """The changes that must be below it; in a circle of needs, only those before it."""
        places = self.beliefs.places
        return frozenset(need for need in entry.needs if places.get(need, len(places)) < places[entry.change])

    def starts(self, free: int) -> list[Stack]:
        """Stacks to test, at most as many as there are free runners."""
        if free < 1:
            return []
        return (self._chain() if self.rules.strict else self._spread(free))[:free]

    def _chain(self) -> list[Stack]:
        """Strict: one more change at a time, each on top of all before it; changes that failed are tested alone."""
        wanted: list[Stack] = []
        chain: list[str] = []
        odds, likely = Odds(self.beliefs), True
        for change in (entry.change for entry in self.queue):
            if change in self.beliefs.group_of:
                wanted += [(change,)] if self._fits(change, ()) else []
            elif likely and len(chain) < self.rules.largest and self._fits(change, chain):
                likely = odds.add(change) >= _BOLD or not chain
                if likely:
                    chain.append(change)
                    wanted.append(tuple(chain))
        return [stack for stack in wanted if stack not in self.known]

    def _spread(self, free: int) -> list[Stack]:
        """Not strict: the most telling stacks, parts of failed ones and of unknown changes, apart from one another."""
        likely = [stack for stack in self.under_way if self.beliefs.chance(stack) >= _SURE]
        front = max(likely, key=len, default=())
        proven = [entry.change for entry in self.queue if entry.change in self.beliefs.proven]
        sure = self._fit(front, filter(self._idle, proven), aim=_SURE) or front
        units = self._units()
        chosen: list[Stack] = []
        if sure != front and self._sure_first(sure, front, units, free):
            chosen.append(sure)
            front = sure
        carried = sure if sure != front else ()
        bold = self._bold(front, free - len(chosen))
        for unit, count in self._shares(units, free - len(chosen) - bool(bold)):
            chosen += self._parts(unit, count, front, carried)
        return [*chosen, bold] if bold and bold not in chosen else chosen

    def _sure_first(self, sure: Stack, front: Stack, units: list[list[str]], free: int) -> bool:
        """Whether changes that have passed before are tested by themselves first, with all others on top."""
        if free > 2 or not units:
            return True
        first = units[0]
        before = self.beliefs.places[sure[len(front)]] < self.beliefs.places[first[0]]
        return before and len(self._fit((), first)) < 2

    @cached_property
    def _pool(self) -> list[str]:
        """Changes without any trial; if the rules say so, those that share parts side by side."""
        idle = [entry for entry in self.queue if self._idle(entry.change)]
        unknown = [entry for entry in idle if entry.change not in self.beliefs.proven]
        return [entry.change for entry in (_by_parts(unknown) if self.rules.partition else unknown)]

    def _idle(self, change: str) -> bool:
        return change not in self.busy and change not in self.beliefs.group_of

    def _units(self) -> list[list[str]]:
        """Groups of changes that can be tested apart from one another, in the order of the queue."""
        groups = [list(group.members) for group in self.beliefs.groups if self.busy.isdisjoint(group.members)]
        units = [*groups, self._pool] if self._pool else groups
        return sorted(units, key=lambda unit: self.beliefs.places[unit[0]])

    def _bold(self, front: Stack, free: int) -> Stack:
        """All unknown changes in one stack, if it may pass and a runner can be spared for it."""
        if free < 3 or len(self._pool) < 2:
            return ()
        stack = self._fit(front, self._pool, aim=0.0)
        return stack if self.beliefs.chance(stack) >= _BOLD else ()

    def _shares(self, units: list[list[str]], free: int) -> list[tuple[list[str], int]]:
        """How many tests each unit gets: one, and the spare ones where a part is most likely to fail."""
        counts = [1] * min(len(units), free)
        for _ in range(free - len(counts)):
            failing = [self._failing(unit, count) for unit, count in zip(units, counts, strict=False)]
            if max(failing, default=0) < _WORTH:
                break
            counts[failing.index(max(failing))] += 1
        return list(zip(units, counts, strict=False))

    def _failing(self, unit: list[str], count: int) -> float:
        if len(unit) <= count:
            return 0.0
        if unit[0] in self.beliefs.group_of:
            return 1 / count
        good: float = self.beliefs.good[unit[0]] ** (len(unit) / count)
        return 1 - good

    def _parts(self, unit: list[str], count: int, front: Stack, carried: Stack) -> Iterator[Stack]:
        """Split a unit into so many stacks; of a failed unit, the last part is known when the others are."""
        suspects = unit[0] in self.beliefs.group_of
        left = list(unit)
        for number in range(count):
            parts = count - number + (suspects and count < len(unit))
            size = -(-len(left) // parts) if count > 1 else len(left)
            stack = self._part(left, size, front, carried)
            if not stack:
                return
            yield stack
            left = [change for change in left if change not in stack]

    def _part(self, left: list[str], size: int, front: Stack, carried: Stack) -> Stack:
        """As much of a unit as makes an even bet: several changes on the carried stack, a single one on the front."""
        if not left:
            return ()
        alone = self._fit((), left, size)
        for base in (carried if len(alone) > 1 else (), front):
            stack = self._fit(base, left, size) if base else ()
            if left[0] in stack and self.beliefs.chance(stack) >= _FAINT and not self._failed_with(stack):
                return stack
        return alone

    def _failed_with(self, stack: Stack) -> bool:
        """Whether these changes have failed together: with others under them, they would fail again."""
        return any(set(trial.stack) <= set(stack) for trial in self.beliefs.failed if not trial.old)

    def _fit(self, base: Stack, candidates: Iterable[str], size: int = 0, *, aim: float = _EVEN) -> Stack:
        """As many of these on top of the base as bring the odds nearest to the aim; nothing if none fits."""
        stack, odds = list(base), Odds(self.beliefs)
        before = 1.0
        for change in base:
            before = odds.add(change)
        room = min(self.rules.largest, len(base) + size if size else self.rules.largest)
        for candidate in candidates:
            if len(stack) >= room:
                break
            if not self._fits(candidate, stack):
                continue
            after = odds.add(candidate)
            if len(stack) > len(base) and abs(after - aim) > abs(before - aim):
                break
            stack.append(candidate)
            before = after
        return tuple(stack) if len(stack) > len(base) else ()

    def _fits(self, change: str, stack: Sequence[str]) -> bool:
        """Whether the changes that it needs are below, and none that it clashes with."""
        if change not in self.needs and change not in self.clashes:
            return True
        below = set(stack)
        return self.needs.get(change, below) <= below and not any(
            under <= below for under in self.clashes.get(change, ())
        )


def _by_parts(entries: Sequence[QueuedChange]) -> list[QueuedChange]:
    """The same changes, with those side by side that share parts, directly or through others."""
    owner: dict[str, str] = {}

    def root(part: str) -> str:
        while owner.setdefault(part, part) != part:
            part = owner[part]
        return part

    for entry in entries:
        first, *others = sorted(entry.parts) or [""]
        for part in others:
            owner[root(part)] = root(first)
    places: dict[str, int] = {}
    keys = [places.setdefault(root(min(entry.parts, default="")), place) for place, entry in enumerate(entries)]
    return [entry for _, _, entry in sorted(zip(keys, range(len(keys)), entries, strict=True))]
