"""Simulate the gate with random failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from windlass.cli.arguments import command, examples, json_option
from windlass.cli.output import page, say_answer, waiting_note

if TYPE_CHECKING:  # no command waits for an import that only names a type
    from windlass.core.gate.simulation import Setting, WorldResult


_RULES = ("runners", "retries", "strict")
"""Options that set the gate's rules; the others describe the changes."""


class Share(click.ParamType[float]):
    """A share such as 5% or 0.05."""

    name = "share"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        try:
            share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            self.fail(f"{value!r} is not a share; write 5% or 0.05.", param, ctx)
        if not 0 <= share <= 1:
            self.fail(f"{value!r} is not a share: it must be between 0% and 100%. Write 5% or 0.05.", param, ctx)
        return share


_Option = Callable[[Callable[..., None]], Callable[..., None]]


def _share(name: str, default: str, words: str) -> _Option:
    return click.option(f"--{name}", type=Share(), default=default, show_default=True, help=words)


def _count(name: str, default: int, most: int, words: str, *, least: int = 1) -> _Option:
    kind = click.IntRange(least, most)
    return click.option(f"--{name}", type=kind, default=default, show_default=True, help=words)


@click.group("gate", epilog=examples("windlass gate simulate\nwindlass gate simulate --bad 20% --runners 2"))
def gate_command() -> None:
    """The gate decides which changes land: see how fast it would be for you."""


@command(
    "simulate",
    """
    windlass gate simulate                                   a hundred changes, 5 % of them bad, four runners
    windlass gate simulate --bad 20% --runners 1             is one runner enough?
    windlass gate simulate --proven --conflict 0 --json      agents check before they are done
    """,
    group=gate_command,
)
@_count("branches", 100, 1000, "Changes that want to land.")
@_share("bad", "5%", "How many of them fail their checks by themselves.")
@_share("flaky", "2%", "How many checks fail by chance.")
@_share("conflict", "2%", "How many changes can't be merged with some other one.")
@_share("together", "1%", "How many are green alone, and red together with some other one.")
@_count("runners", 4, 64, "Checks that run at once.")
@_count("retries", 1, 10, "How often a change that failed alone is tried again.", least=0)
@_count("seeds", 100, 100_000, "Worlds to play; each is the same every time.")
@click.option("--proven", is_flag=True, help="Each change passed its own check before, so no bad one is in line.")
@click.option("--strict", is_flag=True, help="Test every commit that main gets, not only the last of several.")
@json_option
@click.pass_context
def simulate_command(ctx: click.Context, /, seeds: int, as_json: bool, **options: Any) -> None:
    """Play the gate's own planner against chance, and count how often a check runs until all is decided.

    A round is the time of one check. Serial is one change after the other on one runner, with the same retries. Exit 0
    only if main was never broken, nothing wrong landed, and nothing was left in line.
    """
    from windlass.core.gate.simulation import Setting, summed  # noqa: PLC0415
    from windlass.core.gate.stacks import Rules  # noqa: PLC0415

    rules = Rules(**{rule: options.pop(rule) for rule in _RULES})
    setting = Setting(**options, rules=rules)
    total = summed(_played(setting, seeds))
    answer = _answer(setting, total, seeds)
    say_answer(answer, "\n".join(page(_facts(answer))), as_json=as_json)
    ctx.exit(1 if total.broken_mains or total.wrong_landings or total.stuck else 0)


def _played(setting: Setting, seeds: int) -> Iterator[WorldResult]:
    """Yield the result of each simulated world; on a terminal, say how long it takes."""
    import random  # noqa: PLC0415

    from windlass.core.gate.simulation import play  # noqa: PLC0415

    note = waiting_note(f"Simulating {seeds} times,")
    began = time.monotonic()
    for seed in range(seeds):
        note(time.monotonic() - began)
        yield play(setting, random.Random(seed))
    note(0.0)


def _answer(setting: Setting, total: WorldResult, seeds: int) -> dict[str, Any]:
    """The answer: means over all worlds, and sums of the failures that must not happen."""
    means = ("runs", "rounds", "serial_rounds", "landed", "rejected", "returned")
    sums = ("broken_mains", "wrong_landings", "wrong_rejections", "unlucky_rejections", "stuck")
    world = ("branches", "bad", "flaky", "conflict", "together", "proven")
    return {
        **{name: getattr(setting, name) for name in world},
        **{rule: getattr(setting.rules, rule) for rule in _RULES},
        "seeds": seeds,
        **{name: round(getattr(total, name) / seeds, 2) for name in means},
        "speedup": round(total.serial_rounds / total.rounds, 2) if total.rounds else 1.0,
        **{name: getattr(total, name) for name in sums},
    }


def _facts(answer: dict[str, Any]) -> list[tuple[str, object]]:
    unlucky = f", {answer['unlucky_rejections']} of them because chance used up the retries"
    return [
        ("rounds", f"{answer['rounds']:g}, with {answer['runs']:g} checks on {answer['runners']} runners"),
        ("serial", f"{answer['serial_rounds']:g} rounds, one change after the other"),
        ("speed-up", f"{answer['speedup']:g} times"),
        ("landed", f"{answer['landed']:g} of {answer['branches']} changes"),
        ("rejected", f"{answer['rejected']:g} fail by themselves"),
        ("returned", f"{answer['returned']:g} conflict with what landed before them"),
        ("broken mains", f"{answer['broken_mains']} in {answer['seeds']} worlds"),
        ("wrong landings", str(answer["wrong_landings"])),
        ("wrong rejections", f"{answer['wrong_rejections']}{unlucky if answer['wrong_rejections'] else ''}"),
        ("left in line", f"{answer['stuck']} changes: please report this" if answer["stuck"] else ""),
    ]
