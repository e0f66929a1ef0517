"""`scripts/bench [NAME…]`: how fast we are, as ratios to floors measured in the same run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict

from cli_command import cli_command
from list_past_agents import list_past_agents
from measure import Result
from start_agent import start_agent
from task_throughput import task_throughput

BENCHES: dict[str, Callable[[], Result]] = {
    "cli": cli_command,
    "start": start_agent,
    "tasks": task_throughput,
    "list": list_past_agents,
}


def main(arguments: list[str]) -> int:
    """Run the named ones, or all; a table for people, or JSON."""
    names = [each for each in arguments if not each.startswith("--")] or list(BENCHES)
    unknown = [each for each in names if each not in BENCHES]
    if unknown:
        sys.stderr.write(f"There is no benchmark {unknown[0]}. There are: {', '.join(BENCHES)}\n")
        return 2
    results = [BENCHES[name]() for name in names]
    if "--json" in arguments:
        rows = [asdict(each) | {"ratio": round(each.ratio, 2), "met": each.met} for each in results]
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(_table(results)) + "\n")
    return 0


def _table(results: list[Result]) -> list[str]:
    head = ("NAME", "OURS", "FLOOR", "RATIO", "GOAL", "WHAT")
    rows = [head, *(_row(each) for each in results)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(result: Result) -> tuple[str, ...]:
    goal = f"≤ {result.goal:g}" + ("" if result.met else "  missed")
    ours, floor = (f"{value:.3g} {result.unit}" for value in (result.ours, result.floor))
    return result.name, ours, floor, f"{result.ratio:.2f}", goal, result.what


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
