"""The same work with a peer, cli-agent-orchestrator from PyPI, on the same machine in the same run.

    .venv/bin/python benchmarks/side_by_side.py [--quick] [--write] [--installed FOLDER]

The peer is installed into a virtual environment of its own, in a temporary folder that goes at the end. Its agents are
shell scripts on loopback: its own provider for tests, `mock_cli`, starts them, and needs no coding CLI, no login and no
network. Ours are scripts, too, started by the provider `command`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median

from contestants import Bell, Contestant, Floor, Peer, Windlass, installed
from measure import CannotRun
from report import machine, markdown, replace, taken
from whole import git, repository

FILES = 200
"""Of the repository that both work on."""
HEAD = ("what, from outside", "floor", "Windlass", "peer", "peer / Windlass", "floor is")
NOT_COMPARED = (
    "Not compared: checks, landing, reviews and the queue, to which the peer, driven like this, has no counterpart; "
    "and what is left after a crash. `start` does more with us: each of our agents has a worktree of its own, and the "
    "peer's share the folder. A message reaches the peer's agent as keys typed into its terminal, and ours through a "
    "request that waits. Idle of the peer is its server and its tmux, without the processes that these start."
)


def main(arguments: list[str]) -> int:
    """Measure both and print the table."""
    asked = _parser().parse_args(arguments)
    try:
        lines = compare(asked.installed, quick=asked.quick)
    except CannotRun as error:
        sys.stderr.write(f"Not measured: {error}\n")
        return 1
    sys.stdout.write("\n".join(lines) + "\n")
    if asked.write:
        replace("side by side", lines)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Windlass beside cli-agent-orchestrator, on the same work.")
    parser.add_argument("--quick", action="store_true", help="fewer agents and rounds")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    parser.add_argument("--installed", type=Path, metavar="FOLDER", help="a virtual environment that has the peer")
    return parser


def compare(environment: Path | None, *, quick: bool) -> list[str]:
    """The lines of the table, with when and on what it was taken."""
    rounds, agents, seconds = (3, 3, 10.0) if quick else (9, 20, 62.0)
    with tempfile.TemporaryDirectory(prefix="wl") as folder, ExitStack() as stack:
        place = Path(folder)
        programs, version = installed(environment, place / "peer")
        source = repository(place / "repo", FILES)
        git(source, "reset", "-q", "--hard")
        hub = place / "hub.git"
        git(place, "clone", "-q", "--bare", str(source), str(hub))
        ours = stack.enter_context(closing(Windlass(place / "ours", source)))
        theirs = stack.enter_context(closing(Peer(place / "theirs", source, programs)))
        floor = Floor(hub, Bell(place / "floor"))
        rows = _rows(floor, ours, theirs, rounds=rounds, agents=agents, seconds=seconds)
    note = (
        f"Taken on {taken()}; {machine()}; {version}; medians of {rounds}{', quick' if quick else ''}. {NOT_COMPARED}"
    )
    return [markdown(HEAD), markdown(("---",) * len(HEAD)), *map(markdown, rows), "", note]


def _rows(
    floor: Floor, ours: Contestant, theirs: Contestant, *, rounds: int, agents: int, seconds: float
) -> list[tuple[str, ...]]:
    started = _turns([floor.start, ours.start, theirs.start], agents - 1)  # each has one that listens already
    listed = _turns([floor.command, ours.list, theirs.list], rounds)
    sent = _turns([floor.message, ours.message, theirs.message], rounds)
    idle = _idle((ours, theirs), seconds)
    back = _turns([floor.command, ours.restart, theirs.restart], min(rounds, 5))
    many = f"{agents} agents alive"
    return [
        _row(f"`list`, command → exit, {many}", listed, "ms", "a bare Python that ends"),
        _row("start: command → the agent's first words", started, "ms", "`git clone --shared` and a spawn"),
        _row(f"message: command → the agent has it, {many}", sent, "ms", "a bare Python that writes to a pipe"),
        _row(f"idle: processor time, {many}", idle, "%", ""),
        _row(f"restart: server started → its first `list`, {many}", back, "ms", "a bare Python that ends"),
    ]


def _turns(ways: Sequence[Callable[[], float]], rounds: int) -> list[float]:
    """Medians of each way, taken turn by turn."""
    samples = [[way() for way in ways] for _ in range(rounds)]
    return [median(column) for column in zip(*samples, strict=True)]


def _idle(both: tuple[Contestant, Contestant], seconds: float) -> list[float]:
    """Percent of one processor, both in the same time; nothing is the floor."""
    time.sleep(seconds / 5)  # what was sent before is done
    before = [contestant.busy() for contestant in both]
    time.sleep(seconds)
    return [0.0, *((each.busy() - was) / seconds * 100 for each, was in zip(both, before, strict=True))]


def _row(what: str, values: Sequence[float], unit: str, floor: str) -> tuple[str, ...]:
    shown = [f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}" for value in values]
    _, ours, theirs = values
    return what, shown[0] if floor else "-", shown[1], shown[2], f"{theirs / max(ours, 1e-9):.1f}", floor or "-"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
