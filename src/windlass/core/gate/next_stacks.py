"""Which stacks to test next: what tells most, on top of what is sure, and the first in line always among them."""

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
"""Something is not taken apart for a spare runner while it is less likely than this to fail."""
_FAINT = 0.1
"""What is less likely to pass than this is better tested without others under it."""


class Draft:
    """The next stacks, chosen one after the other."""

    def __init__(
        self,
        line: Sequence[QueuedChange],
        beliefs: Beliefs,
        rules: Rules,
        *,
        clashes: Iterable[Clash],
        under_way: Sequence[Trial],
        passed: Sequence[Stack],
    ) -> None:
        self.line = line
        self.beliefs = beliefs
        self.rules = rules
        self.under_way = [each.stack for each in under_way if not each.old]
        self.known = {*passed, *(each.stack for each in under_way)}
        self.busy = {change for each in under_way for change in each.stack}.union(*passed)
        self.needs = {each.change: self._needs(each) for each in line if each.needs}
        self.clashes: dict[str, list[frozenset[str]]] = {}
        for clash in clashes:
            self.clashes.setdefault(clash.change, []).append(frozenset(clash.under))

    def _needs(self, entry: QueuedChange) -> frozenset[str]:
        """What must be below it: of a circle, only what comes before it."""
        places = self.beliefs.places
        return frozenset(need for need in entry.needs if places.get(need, len(places)) < places[entry.change])

    def starts(self, free: int) -> list[Stack]:
        """Stacks to test, at most as many as there are free runners."""
        if free < 1:
            return []
        return (self._chain() if self.rules.strict else self._spread(free))[:free]

    # every commit of main is tested

    def _chain(self) -> list[Stack]:
        """One more change at a time, each on top of all before it; those that failed are tested alone."""
        wanted: list[Stack] = []
        chain: list[str] = []
        odds, likely = Odds(self.beliefs), True
        for each in (entry.change for entry in self.line):
            if each in self.beliefs.group_of:
                wanted += [(each,)] if self._fits(each, ()) else []
            elif likely and len(chain) < self.rules.largest and self._fits(each, chain):
                likely = odds.add(each) >= _BOLD or not chain
                chain += [each] if likely else []
                wanted += [tuple(chain)] if likely else []
        return [each for each in wanted if each not in self.known]

    # only what main moves to is tested

    def _spread(self, free: int) -> list[Stack]:
        """What tells most: parts of what failed, and of what nothing is known of yet, apart from one another."""
        front = self._front()
        sure = self._sure(front)
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

    def _front(self) -> Stack:
        """The deepest stack under way that is likely to land."""
        likely = [each for each in self.under_way if self.beliefs.chance(each) >= _SURE]
        return max(likely, key=len, default=())

    def _sure(self, front: Stack) -> Stack:
        """The front, and on it what has passed before."""
        proven = (each.change for each in self.line if each.change in self.beliefs.proven)
        return self._fit(front, [each for each in proven if self._idle(each)], aim=_SURE) or front

    def _sure_first(self, sure: Stack, front: Stack, units: list[list[str]], free: int) -> bool:
        """Whether what has passed before is tested by itself, so that all else counts on top of it."""
        if free > 2 or not units:
            return True
        first = units[0]
        before = self.beliefs.places[sure[len(front)]] < self.beliefs.places[first[0]]
        return before and len(self._fit((), first)) < 2

    @cached_property
    def _pool(self) -> list[str]:
        """Changes of which nothing is known, those that share parts side by side if so ruled."""
        unknown = [each for each in self.line if self._idle(each.change) and each.change not in self.beliefs.proven]
        return [part.change for part in (_by_parts(unknown) if self.rules.partition else unknown)]

    def _idle(self, change: str) -> bool:
        return change not in self.busy and change not in self.beliefs.group_of

    def _units(self) -> list[list[str]]:
        """What can be tested apart from one another, in the order of the line."""
        groups = [list(group.members) for group in self.beliefs.groups if self.busy.isdisjoint(group.members)]
        units = [*groups, self._pool] if self._pool else groups
        return sorted(units, key=lambda each: self.beliefs.places[each[0]])

    def _bold(self, front: Stack, free: int) -> Stack:
        """All that nothing is known of in one stack, if it is no more than a bet and a runner can be spared for it."""
        if free < 3 or len(self._pool) < 2:
            return ()
        stack = self._fit(front, self._pool, aim=0.0)
        return stack if self.beliefs.chance(stack) >= _BOLD else ()

    def _shares(self, units: list[list[str]], free: int) -> list[tuple[list[str], int]]:
        """How many tests each unit gets: one, and what is left where a part is most likely to fail."""
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
        """So many parts of a unit, each a stack; of what failed, the last part is known when the others are."""
        suspects = unit[0] in self.beliefs.group_of
        left = list(unit)
        for number in range(count):
            parts = count - number + (suspects and count < len(unit))
            size = -(-len(left) // parts) if count > 1 else len(left)
            stack = self._part(left, size, front, carried)
            if not stack:
                return
            yield stack
            left = [each for each in left if each not in stack]

    def _part(self, left: list[str], size: int, front: Stack, carried: Stack) -> Stack:
        """As much of a unit as makes an even bet: on what is carried along if it is several, else on the front."""
        if not left:
            return ()
        alone = self._fit((), left, size)
        for base in (carried if len(alone) > 1 else (), front):
            stack = self._fit(base, left, size) if base else ()
            if left[0] in stack and self.beliefs.chance(stack) >= _FAINT and not self._failed_with(stack):
                return stack
        return alone

    def _failed_with(self, stack: Stack) -> bool:
        """Whether all of this has failed together: with others under it, it would do so again and tell nothing new."""
        return any(set(each.stack) <= set(stack) for each in self.beliefs.failed if not each.old)

    def _fit(self, base: Stack, candidates: Iterable[str], size: int = 0, *, aim: float = _EVEN) -> Stack:
        """As many of these on top of the base as bring the odds nearest to the aim; nothing if none fits."""
        stack, odds = list(base), Odds(self.beliefs)
        before = 1.0
        for each in base:
            before = odds.add(each)
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
        """Whether all it needs is below, and nothing that it clashes with."""
        if change not in self.needs and change not in self.clashes:
            return True
        below = set(stack)
        return self.needs.get(change, below) <= below and not any(
            under <= below for under in self.clashes.get(change, ())
        )


def _by_parts(entries: Sequence[QueuedChange]) -> list[QueuedChange]:
    """The same, with those side by side that share parts, directly or through others."""
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
    keys = [places.setdefault(root(min(each.parts, default="")), place) for place, each in enumerate(entries)]
    return [each for _, _, each in sorted(zip(keys, range(len(keys)), entries, strict=True))]
