"""`windlass gate simulate`: the planner played against chance, without a daemon."""

from __future__ import annotations

import json

import pytest
from typing_room import Keyboard

QUICK = ("gate", "simulate", "--branches", "20", "--seeds", "3")


def test_json_has_the_stable_keys_and_no_daemon_is_started(keyboard: Keyboard) -> None:
    """The JSON has means over all worlds, and sums of the failures that must not happen."""
    done = keyboard.type(*QUICK, "--json")
    found = json.loads(done.stdout)

    assert done.returncode == 0
    assert {"runs", "rounds", "serial_rounds", "speedup", "landed", "rejected", "returned", "seeds"} <= found.keys()
    assert [found[each] for each in ("broken_mains", "wrong_landings", "stuck")] == [0, 0, 0]
    assert not keyboard.home.exists()


def test_a_person_reads_rounds_and_the_speed_up(keyboard: Keyboard) -> None:
    """In words, with nothing on standard error where nobody watches."""
    done = keyboard.type(*QUICK)

    assert "one change after the other" in done.stdout
    assert "broken mains      0 in 3 worlds" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("0", 0.0), ("100%", 1.0)])
def test_a_share_is_percent_or_a_fraction(keyboard: Keyboard, text: str, share: float) -> None:
    """Whichever one prefers."""
    assert json.loads(keyboard.type(*QUICK, "--bad", text, "--json").stdout)["bad"] == share


@pytest.mark.parametrize("text", ["5", "-1%", "101%", "nan", "many", "%"])
def test_what_is_no_share_is_refused_with_an_example(keyboard: Keyboard, text: str) -> None:
    """5 could mean 5 % or 500 %, so it means neither."""
    done = keyboard.type("gate", "simulate", f"--bad={text}")

    assert done.returncode == 2
    assert "5% or 0.05" in done.stderr


def test_every_option_counts(keyboard: Keyboard) -> None:
    """Other rules and other worlds come to other numbers."""
    options = ("--strict", "--proven", "--runners 1", "--retries 3", "--together 50%", "--conflict 50%")
    plain = json.loads(keyboard.type(*QUICK, "--flaky", "10%", "--json").stdout)
    for option in options:
        other = json.loads(keyboard.type(*QUICK, "--flaky", "10%", *option.split(), "--json").stdout)
        assert {key for key in ("runs", "rounds", "landed", "rejected", "returned") if other[key] != plain[key]}, option
