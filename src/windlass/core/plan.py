"""The planner of the gate: what lands, what goes back, and what is tested next. Pure; engine and simulation call it."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.core.trial import Clash, Entry, Plan, Rates, Rules, Trial, Verdict, in_order


def plan(
    entries: Sequence[Entry], trials: Sequence[Trial], clashes: Sequence[Clash], rates: Rates, rules: Rules
) -> Plan:
    """What to do now, from the line and all that is known about it."""
    line = in_order(entries)
    present = [each for each in trials if not each.old]
    passed = [each.stack for each in present if each.verdict is Verdict.PASSED]
    fails = {
        each.change: max(each.tries, sum(t.stack == (each.change,) and t.verdict is Verdict.FAILED for t in present))
        for each in line
    }
    reject = tuple(each.change for each in line if fails[each.change] > rules.retries)
    land = next(((each.change,) for each in line if (each.change,) in passed), ())
    head = next((each.change for each in line if each.change not in (*reject, *land)), "")
    under_way = [each.stack for each in trials if each.verdict is None]
    wanted = [(head,)] if head and not land and (head,) not in under_way else []
    stop = tuple(each for each in under_way if each != (head,))
    free = rules.runners - len(under_way) + len(stop)
    return Plan(land=land, reject=reject, start=tuple(wanted[:free]), stop=stop)
