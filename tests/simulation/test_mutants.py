"""The judge is judged: an engine that is broken on purpose does not get past it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import pytest
from sim_acts import RULES
from sim_draws import Rule
from sim_gate import PRESSED
from sim_gate_mutants import GATE_MUTANTS
from sim_mutants import ARRANGED_MUTANTS, MUTANTS, Patch
from sim_people import ARRANGED
from sim_play import play
from sim_talk import TALKED
from sim_talk_mutants import TALK_MUTANTS

import sample

SEEDS = range(300)
"""Histories in which a broken engine must be found out."""

GATE_SEEDS = (175, 357, 242, 178, 197, 72, 2055, 243, 315, 1517, *range(150))
"""The same for the gate; the first ones tell of rare moments there, such as a second thought just as main moves."""


def found_out(seeds: Iterable[int] = SEEDS, rules: Mapping[str, Rule] = RULES) -> str:
    """The first broken promise in these histories; nothing if there is none."""
    for seed in seeds:
        try:
            play(seed, rules=rules)
        except AssertionError as error:
            return f"{error} (seed {seed})"
    return ""


@pytest.mark.parametrize(
    "mutant", (*MUTANTS, *ARRANGED_MUTANTS, *GATE_MUTANTS, *TALK_MUTANTS), ids=lambda mutant: mutant.__name__
)
def test_every_fault_can_be_put_in(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """A day plays some of them; one whose place in the engine is gone is noticed at once."""
    mutant(monkeypatch)


@pytest.mark.parametrize("mutant", sample.MUTANTS.of(list(MUTANTS)), ids=lambda mutant: mutant.__name__)
def test_a_broken_engine_is_found_out(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """Each of these faults breaks a promise that is noticed in one of the first histories."""
    mutant(monkeypatch)
    said = found_out()
    assert re.match(MUTANTS[mutant], said), said


@pytest.mark.parametrize("mutant", sample.MUTANTS.of(list(ARRANGED_MUTANTS)), ids=lambda mutant: mutant.__name__)
def test_a_broken_line_is_found_out(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """So does each of these, where people arrange the line and agents review."""
    mutant(monkeypatch)
    said = found_out(range(400), ARRANGED)
    assert re.match(ARRANGED_MUTANTS[mutant], said), said


@pytest.mark.parametrize("mutant", sample.MUTANTS.of(list(GATE_MUTANTS)), ids=lambda mutant: mutant.__name__)
def test_a_broken_gate_is_found_out(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """So does each of these, where much wants to land at once, people think again, and the daemon dies at the gate."""
    mutant(monkeypatch)
    said = found_out(GATE_SEEDS, PRESSED)
    assert re.match(GATE_MUTANTS[mutant], said), said


@pytest.mark.parametrize("mutant", sample.MUTANTS.of(list(TALK_MUTANTS)), ids=lambda mutant: mutant.__name__)
def test_a_broken_log_is_found_out(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    """So does each of these, where people and agents talk."""
    mutant(monkeypatch)
    said = found_out(range(150), TALKED)
    assert re.match(TALK_MUTANTS[mutant], said), said
