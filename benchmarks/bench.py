"""`scripts/bench [NAME…]`: how fast we are, as ratios to floors measured in the same run."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import Protocol

from cli_command import cli_command
from event import event
from exit_handled import exit_handled
from idle import idle
from ingest import ingest
from landing import landing
from landing_many import landing_many
from list_past_agents import list_past_agents
from measure import Result
from message import message
from plan import planner
from radar import radar
from restart import restart
from sandbox import sandbox
from start_agent import start_agent
from start_many import start_many
from stop_all import stop_all
from talk import talk
from task_throughput import task_throughput
from workflow import workflow


class Bench(Protocol):
    """Measures something, in one line or several; `quick` with fewer or smaller rounds."""

    def __call__(self, *, quick: bool) -> Sequence[Result]: ...


BENCHES: dict[str, Bench] = {
    "cli": cli_command,
    "start": start_agent,
    "starts": start_many,
    "stop": stop_all,
    "sandbox": sandbox,
    "exit": exit_handled,
    "event": event,
    "ingest": ingest,
    "message": message,
    "tasks": task_throughput,
    "list": list_past_agents,
    "restart": restart,
    "idle": idle,
    "landing": landing,
    "landings": landing_many,
    "plan": planner,
    "radar": radar,
    "talk": talk,
    "workflow": workflow,
}

GUARDED = ("cli", "tasks", "exit")
"""What every change is held to: what a person waits for with each command, what each step of each noun goes through,
and what everything else follows on. They are short, and ratios within one process swing little."""
GUARD = 3.0
"""How many times its goal a guarded ratio may be. It catches what makes us slow, not what makes a machine slow."""
TRIES = 3


def main(arguments: list[str]) -> int:
    """Run the named ones, or all; a table for people, or JSON."""
    asked = _parser().parse_args(arguments)
    if asked.guard:
        return guard()
    unknown = [each for each in asked.names if each not in BENCHES]
    if unknown:
        sys.stderr.write(f"There is no benchmark {unknown[0]}. There are: {', '.join(BENCHES)}\n")
        return 2
    results = [each for name in asked.names or BENCHES for each in _measured(name, quick=asked.quick)]
    if asked.json:
        rows = [asdict(result) | {"ratio": result.ratio, "met": result.met} for result in results]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_table(results)) + "\n")
    return 0


def guard() -> int:
    """Refuse a change that has made us much slower; who was only unlucky is measured again."""
    for name in GUARDED:
        for _ in range(TRIES):
            result = next(each for each in _measured(name, quick=True) if each.name == name)
            if result.excess <= GUARD:
                break
        else:
            sys.stderr.write(
                f"Too slow: {result.what} takes {result.ratio:.1f} times its floor, and at most "
                f"{result.goal * GUARD:g} are allowed. Look closer with `scripts/bench {name}`.\n"
            )
            return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="How fast we are, beside floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter; the ratios swing more")
    parser.add_argument("--guard", action="store_true", help=f"only {', '.join(GUARDED)}; fail if much too slow")
    return parser


def _measured(name: str, *, quick: bool) -> Sequence[Result]:
    """Run one, and say so meanwhile."""
    sys.stderr.write(f"{name} … ")
    sys.stderr.flush()
    began = time.perf_counter()
    results = BENCHES[name](quick=quick)
    sys.stderr.write(f"{time.perf_counter() - began:.0f} s\n")
    return results


def _table(results: Sequence[Result]) -> list[str]:
    head = ("NAME", "OURS", "FLOOR", "RATIO", "GOAL", "MET", "WHAT")
    rows = [head, *(_row(result) for result in results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(result: Result) -> tuple[str, ...]:
    ours, floor = _value(result.ours, result.unit), "-"
    ratio, goal = "-", _value(result.goal, result.unit)
    if result.floor is not None and result.ratio is not None:
        floor, ratio, goal = _value(result.floor, result.unit), f"{result.ratio:.2f}", f"{result.goal:g}"
    goal = f"{'≥' if result.at_least else '≤'} {goal}"
    return result.name, ours, floor, ratio, goal, "yes" if result.met else "no", result.what


def _value(value: float, unit: str) -> str:
    number = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{number} {unit}".strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
