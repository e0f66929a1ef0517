"""`scripts/bench [NAME…]`: how fast we are, as ratios to floors in the same run, and what one operation costs."""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Protocol

from cli_command import cli_command
from counts import counts, exceeding
from event import event
from exit_handled import exit_handled
from idle import idle
from ingest import ingest
from kept_output import kept_output
from landed import landed
from landing import landing
from landing_many import landing_many
from list_past_agents import list_past_agents
from measure import CannotRun, Result
from message import message
from plan import planner
from promises import promises
from radar import radar
from reach import reach
from report import Line, Missing, machine, table, taken, write
from restart import restart
from sandbox import sandbox
from send_flat import send_flat
from start_agent import start_agent
from start_crowd import start_crowd
from start_many import start_many
from stop_all import stop_all
from talk import talk
from task_throughput import task_throughput
from workflow import workflow


class Bench(Protocol):
    """Measures something, in one line or several; `quick` with fewer or smaller rounds."""

    def __call__(self, *, quick: bool) -> Sequence[Result]: ...


BENCHES: dict[str, Bench] = {
    "counts": counts,
    "reach": reach,
    "crowd": start_crowd,
    "stop": stop_all,
    "idle": idle,
    "restart": restart,
    "landed": landed,
    "workflow": workflow,
    "send": send_flat,
    "landings": landing_many,
    "promises": promises,
    "ingest": ingest,
    "output": kept_output,
    "start": start_agent,
    "cli": cli_command,
    "starts": start_many,
    "sandbox": sandbox,
    "exit": exit_handled,
    "event": event,
    "message": message,
    "tasks": task_throughput,
    "list": list_past_agents,
    "landing": landing,
    "plan": planner,
    "radar": radar,
    "talk": talk,
}
"""The first ones, up to `start`, are what people feel, from outside; the others take one part each."""

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
    lines = [line for name in asked.names or BENCHES for line in _tried(name, quick=asked.quick, keep=asked.write)]
    if asked.json:
        sys.stdout.write(json.dumps([_row(line) for line in lines], indent=2) + "\n")
    else:
        sys.stdout.write("\n".join([*table(lines), "", f"Taken on {taken()}; {machine()}."]) + "\n")
    return int(any(isinstance(line, Missing) for line in lines))


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
    for _ in range(TRIES):
        if not (costs := exceeding()):
            return 0
    sys.stderr.write("".join(f"Costs more than it did: {cost}\n" for cost in costs))
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="How fast we are, beside floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which: {', '.join(BENCHES)}; default: all")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("--quick", action="store_true", help="smaller and shorter; the ratios swing more")
    parser.add_argument("--write", action="store_true", help="put what is measured into benchmarks/README.md")
    parser.add_argument(
        "--guard", action="store_true", help=f"only {', '.join(GUARDED)} and the counts; fail if much too slow"
    )
    return parser


def _measured(name: str, *, quick: bool) -> Sequence[Result]:
    """Run one, and say so meanwhile."""
    sys.stderr.write(f"{name} … ")
    sys.stderr.flush()
    began = time.perf_counter()
    results = BENCHES[name](quick=quick)
    sys.stderr.write(f"{time.perf_counter() - began:.0f} s\n")
    return results


def _tried(name: str, *, quick: bool, keep: bool) -> Sequence[Line]:
    """Run one. Where it can't run, say so in its place, and go on with the others."""
    lines: Sequence[Line]
    try:
        lines = _measured(name, quick=quick)
    except CannotRun as error:
        lines = [Missing(name, str(error))]
    except Exception as error:  # noqa: BLE001 - whatever it is, the line says it, and the exit code
        traceback.print_exc()
        lines = [Missing(name, f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")]
    if keep:
        write(lines, quick=quick)  # at once: the next one may take long, or end everything
    return lines


def _row(line: Line) -> dict[str, Any]:
    if isinstance(line, Missing):
        return asdict(line)
    return asdict(line) | {"ratio": line.ratio, "met": line.met}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
