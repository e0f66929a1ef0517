"""What a small workflow costs, from its start to its end: git processes, writes and reads."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from cost_stage import Costs, costs, play

from windlass.engine import Engine
from windlass.engine.workflows.start import WorkflowStart

__all__ = ["costs"]

MOST_GITS, MOST_WRITES, MOST_READS = 15, 10, 75
FILE = "agents:\n  helper:\n    command: 'true'\nkickoff: '@helper go'\n"


async def run(engine: Engine, repo: Path, file: Path) -> None:
    """One agent that does nothing, until its instance has ended and it is tidied."""
    await engine.workflows.begin(WorkflowStart(path=str(repo), file=str(file)))
    ear = engine.bell.ear()
    while await engine.ports.store.read(lambda store: bool(store.instances(live=True) or store.agents())):
        ear.clear()
        await ear.wait()


def test_a_workflow_of_one_agent_runs_with_few_git_processes_writes_and_reads(repo: Path, costs: Costs) -> None:
    """Once the first has made what all of them use."""
    file = repo.parent / "small.yaml"
    file.write_text(FILE)

    async def story(engine: Engine) -> None:
        await run(engine, repo, file)
        for _ in range(2):
            costs.restart()
            await run(engine, repo, file)
            assert len(costs.gits) <= MOST_GITS, Counter(costs.gits)
            assert costs.writes <= MOST_WRITES, costs.writes
            assert costs.reads <= MOST_READS, costs.askers

    play(story)
