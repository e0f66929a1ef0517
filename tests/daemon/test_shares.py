"""Connections are shared out: a run has its share, runs leave a reserve for people, and the silent make room."""

from __future__ import annotations

import subprocess
import sys

import pytest

from windlass.core.errors import Unavailable
from windlass.daemon.serving.shares import PERSON, UNKNOWN, Shares


def fill(shares: Shares, holder: str) -> int:
    """Take as many as a holder gets; returns how many that were."""
    taken = 0
    try:
        while taken < 10_000:
            shares.take(holder, lambda: None)
            taken += 1
    except Unavailable:
        pass
    return taken


def test_a_run_gets_its_share_and_people_the_rest() -> None:
    """Whatever the runs hold."""
    shares = Shares(4000)
    assert fill(shares, "r1") == shares.of_a_run == 64
    runs = sum(fill(shares, f"r{number}") for number in range(2, 200))
    assert 64 + runs == shares.most - shares.reserve
    assert fill(shares, PERSON) == shares.reserve


def test_few_descriptors_are_shared_out_too() -> None:
    """A run never gets more than a quarter."""
    shares = Shares(128)
    assert (fill(shares, "r1"), shares.reserve) == (32, 32)


def test_what_is_given_back_can_be_taken_again() -> None:
    """By the same run."""
    shares = Shares(128)
    taken = fill(shares, "r1")
    shares.leave("r1", lambda: None)
    shares.take("r1", lambda: None)
    with pytest.raises(Unavailable, match=f"This run has {taken} connections already"):
        shares.take("r1", lambda: None)


def test_of_the_unknown_the_oldest_is_closed() -> None:
    """So that whoever says at once who it is gets in, however many wait in silence."""
    shares = Shares(128)
    closed: list[int] = []

    def silent(number: int) -> None:
        def drop() -> None:
            closed.append(number)
            shares.leave(UNKNOWN, drop)

        shares.take(UNKNOWN, drop)

    for number in range(40):
        silent(number)
    assert closed == list(range(40 - shares.of_a_run))


LIMITS = """
import resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (100, 300))
from windlass.daemon.serving.shares import raise_file_limit
before = raise_file_limit()
print(before, resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def test_the_daemon_opens_as_many_files_as_it_may() -> None:
    """The limit before is known, for the programs that it starts."""
    told = subprocess.run((sys.executable, "-c", LIMITS), capture_output=True, text=True, check=True).stdout
    assert told == "100 (300, 300)\n"
