"""Whatever agents print, however their output file is treated: every byte is kept once, and what is odd is said."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from e2e_stage import Stage, adds
from fault_stage import MEGABYTE, broken, give, most_memory, over, stage

from patience import until

pytestmark = pytest.mark.xdist_group("output-faults")  # one worker plays the story, once

LONG = 100 * MEGABYTE
ODD = {
    "half a line": ("printf 'no end'", b"no end", ""),
    "other line ends": ("printf 'one\\r\\ntwo\\r\\n'", b"one\r\ntwo\r\n", ""),
    "no text": ("printf 'one\\ntw\\377o\\n'", b"one\ntw\xffo\n", "not UTF-8"),
    "half a letter": ("printf '\\303'", b"\xc3", "not UTF-8"),
    "a split letter": ("printf '\\303'; sleep 0.3; printf '\\244\\n'", b"\xc3\xa4\n", ""),
    "zeros": ("printf 'a\\000b\\n'", b"a\0b\n", "NUL"),
}


@pytest.fixture(scope="module")
def printers() -> Iterator[tuple[Stage, dict[str, str]]]:
    """One agent for each odd way to print, all at once."""
    with stage(settings="[limits]\nreminders = 0\nretries = 0\n") as house:
        house.wl("daemon", "start")
        yield house, {each: give(house, each, f"{ODD[each][0]}; exit 3") for each in ODD}


@pytest.mark.parametrize("kind", ODD)
def test_odd_bytes_are_kept_and_said(printers: tuple[Stage, dict[str, str]], kind: str) -> None:
    """`logs --raw` has the very bytes; what is no text is named in the run's evidence, what is fine is not."""
    house, names = printers
    _, expected, flag = ODD[kind]
    [run] = over(house, names[kind])["runs"]
    assert house.raw("logs", names[kind], "--raw") == expected
    assert [flag in each for each in odd(run)] == [True] * bool(flag)


def test_every_promise_is_kept_with_odd_bytes(printers: tuple[Stage, dict[str, str]]) -> None:
    """`doctor --check` holds what is kept against the files, byte by byte."""
    house, names = printers
    for name in names.values():
        over(house, name)
    assert broken(house) == []


def odd(run: Any) -> list[str]:
    return [each for each in run["evidence"] if each.startswith("output: ")]


@pytest.mark.slow
def test_a_line_of_100_mb_costs_no_memory(printers: tuple[Stage, dict[str, str]]) -> None:
    """All of it is kept, the line is said to be too long to be read, and the daemon stays small."""
    house, _ = printers
    name = give(house, "Endless", f"head -c {LONG} /dev/zero | tr '\\0' 'x'; echo; echo short; exit 3")
    [run] = over(house, name)["runs"]
    pieces = [event for event in house.events() if event["kind"] == "run.output" and event["run"] == run["id"]]
    assert sum(piece["length"] for piece in pieces) == LONG + len("\nshort\n")
    assert "more than 1000000 bytes" in odd(run)[0]
    assert most_memory(house) < 150 * MEGABYTE
    assert broken(house) == []


def test_output_that_is_emptied_goes_on() -> None:
    """`> /dev/stderr` empties the file: what was kept stays, what comes goes on after it, also past a restart."""
    with stage() as house:
        one, two, three = house.flag("one"), house.flag("two"), house.flag("three")
        command = (
            f"echo first; {house.waits_for(one)}; echo second > /dev/stderr; {house.waits_for(two)}; "
            f"echo third, which is longer than what was there; {house.waits_for(three)}; echo fourth; {adds('b.txt')}"
        )
        name = house.work("Empty it", command)
        expected = b""
        for words, flag in (("first\n", one), ("second\n", two)):
            expected += words.encode()
            until(lambda: house.raw("logs", name, "--raw") == expected, f"{expected!r}")  # noqa: B023 - used at once
            flag.touch()
        expected += b"third, which is longer than what was there\n"
        until(lambda: house.raw("logs", name, "--raw") == expected, f"{expected!r}")
        os.kill(house.daemon, signal.SIGKILL)
        three.touch()
        house.wl("list")
        house.event("change.landed")
        assert house.raw("logs", name, "--raw") == expected + b"fourth\n"
        [said] = odd(house.agent(name)["runs"][0])
        assert "emptied or replaced" in said
        assert broken(house) == []


def test_a_file_that_is_taken_away_hangs_nobody(printers: tuple[Stage, dict[str, str]]) -> None:
    """What was kept stays; the loss is said; nothing is followed, waited for or taken for output."""
    house, _ = printers
    go, where = house.flag("go"), 'cd "$(dirname "$WINDLASS_PROMPT")"'
    swaps = ("true", "mkfifo output", "ln -s prompt.md output", "mkdir output")
    words = f"echo first; {house.waits_for(go)}; {where} && rm output && "
    names = [give(house, f"Take it away: {swap}", f"{words}{swap}; exit 3") for swap in swaps]
    for name in names:
        until(lambda: house.raw("logs", name, "--raw") == b"first\n", "the first line")  # noqa: B023 - used at once
    go.touch()
    for name in names:
        [run] = over(house, name)["runs"]
        [said] = odd(run)
        assert "emptied or replaced" in said
        assert house.raw("logs", name, "--raw") == b"first\n"
    assert broken(house) == []
