"""Thirty agents finish at once: what should land lands, and about as many checks run as the simulation says."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import Stage, stage, until

from windlass.core.simulate import Setting, World, imagine, live
from windlass.core.trial import Rules

AGENTS, RUNNERS, SEED = 30, 2, 5
SETTING = Setting(
    branches=AGENTS, bad=0.1, flaky=0.05, conflict=0.07, together=0.07, rules=Rules(runners=RUNNERS, retries=1)
)
CHECK = """
cd "$1" || exit 9
number=$(flock "$2/runs" sh -c 'echo run >> "$1"; wc -l < "$1"' sh "$2/runs")
sleep 0.3
! grep -qx "$number" "$2/flakes" || exit 3
! ls bad-* >/dev/null 2>&1 || exit 1
for left in red-*-left; do
    [ ! -e "$left" ] || [ ! -e "${left%left}right" ] || exit 1
done
"""


def work_of(change: str, world: World) -> str:
    """The command of an agent that makes just this change of a world."""
    files = {f"own-{change}": change}
    if change in world.bad:
        files[f"bad-{change}"] = "bad"
    for number, pair in enumerate(sorted(map(sorted, world.conflicts))):
        if change in pair:
            files[f"shared-{number}"] = change
    for number, pair in enumerate(sorted(map(sorted, world.red))):
        if change in pair:
            files[f"red-{number}-{'left' if change == pair[0] else 'right'}"] = change
    writes = "; ".join(f"echo {text} > {name}" for name, text in files.items())
    return f"{writes}; git add -A; git commit -qm {change}"


def in_the_order_of(queue: list[Any], world: World) -> World:
    """The same world, with changes in the order in which they stand in line."""
    return World(tuple(each["title"] for each in queue), world.bad, world.conflicts, world.red)


class Told:
    """A chance that says which checks fail by chance, in the order in which they run."""

    def __init__(self, flakes: frozenset[int]) -> None:
        self.flakes = flakes
        self.number = 0

    def random(self) -> float:
        self.number += 1
        return 0.0 if self.number in self.flakes else 1.0


def all_in_line(house: Stage, world: World) -> list[Any]:
    """Thirty agents, each at its work, until all have brought their change; nothing lands yet."""
    house.wl("queue", "pause")
    for change in world.changes:
        house.wl("work", change, "--command", work_of(change, world))
    until(lambda: len(house.queue()) == AGENTS, "all changes to be in line", within=240)
    return sorted(house.queue(), key=lambda each: int(each["id"][1:]))


@pytest.mark.slow
def test_what_should_land_lands_in_as_many_checks_as_the_simulation_says(tmp_path: Path) -> None:
    """Some are bad, some conflict, some are red only together, and some checks fail by chance."""
    chance = random.Random(SEED)
    world = imagine(SETTING, chance)
    flakes = frozenset(each for each in range(1, 300) if chance.random() < SETTING.flaky)
    (tmp_path / "flakes").write_text("".join(f"{each}\n" for each in sorted(flakes)))
    (tmp_path / "check.sh").write_text(CHECK)
    settings = f"[limits]\nruns = 8\nreturns = 0\n[gate]\nrunners = {RUNNERS}\n"
    with stage(checks=f'sh {tmp_path}/check.sh "$PWD" {tmp_path}', settings=settings) as house:
        ordered = in_the_order_of(all_in_line(house, world), world)
        house.wl("queue", "resume")
        over = ("landed", "held", "closed")
        until(lambda: all(each["state"] in over for each in house.queue()), "all to be decided", within=240)
        landed = {each["title"] for each in house.queue() if each["state"] == "landed"}
        assert landed.isdisjoint(world.bad)
        assert not world.broken(landed)
        assert not any(world.conflicting(each, landed - {each}) for each in landed)
        left_out = set(world.changes) - landed - world.bad
        for each in left_out:
            others = [next(iter(pair - {each})) for pair in (*world.conflicts, *world.red) if each in pair]
            assert not landed.isdisjoint(others), f"{each} had no reason to stay behind"
        assert house.wl("doctor", "--check").code == 0
    runs = len((tmp_path / "runs").read_text().splitlines())
    predicted = live(ordered, SETTING, Told(flakes)).runs
    print(f"{len(landed)} of {AGENTS} landed in {runs} checks; {predicted} were predicted")  # noqa: T201 - whoever asks with -s wants to know
    assert abs(runs - predicted) <= 0.15 * predicted
