"""What one order costs, from `work` to a landed change and a tidied agent: git processes, writes and reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cost_stage import Costs, costs, land, play

from windlass.engine import Engine

__all__ = ["costs"]

MOST_GITS, MOST_WRITES, MOST_READS = 30, 10, 75


def test_an_order_is_landed_and_tidied_with_few_git_processes_and_writes(repo: Path, costs: Costs) -> None:
    """At most thirty and ten, and some questions, once the first order has made what all of them use."""

    async def story(engine: Engine) -> None:
        await land(engine, repo)
        for _ in range(2):
            costs.restart()
            await land(engine, repo)
            assert len(costs.gits) <= MOST_GITS, Counter(costs.gits)
            assert costs.writes <= MOST_WRITES
            assert costs.reads <= MOST_READS, costs.askers

    play(story)


def test_the_thirtieth_landing_needs_no_more_git_processes_than_the_third(repo: Path, costs: Costs) -> None:
    """What landed before does not count."""

    async def story(engine: Engine) -> None:
        await land(engine, repo)
        await land(engine, repo)
        costs.restart()
        await land(engine, repo)
        third = len(costs.gits)
        await land(engine, repo, 26)
        costs.restart()
        await land(engine, repo)
        assert len(costs.gits) <= third, Counter(costs.gits)

    play(story)
