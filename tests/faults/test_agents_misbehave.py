"""Agents that die, leave things behind or say nonsense: each ends with its reason, and nothing hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from e2e_stage import Stage, adds
from fault_stage import MEGABYTE, broken, give, most_memory, over, stage
from process_table import inhabitants, lives

from patience import until

pytestmark = pytest.mark.xdist_group("misbehave")  # one worker plays the story, once

QUICK = "[daemon]\nstop_grace_seconds = 0.3\n"
HASTY = f"[limits]\nreminders = 0\nretries = 0\nruns = 8\n{QUICK}"
DONE = '{"status": "done"}'

BAD_SIGNALS = {
    "empty": (': > "$WINDLASS_SIGNAL"', "it is empty", ""),
    "half": ("""printf '{"status": "do' > "$WINDLASS_SIGNAL\"""", "it is not JSON", '{"status": "do'),
    "sixteen": (f"""printf '%s' '{DONE}' | iconv -t UTF-16 > "$WINDLASS_SIGNAL\"""", "it is not UTF-8", "s"),
    "array": ("""echo '["done"]' > "$WINDLASS_SIGNAL\"""", "it is not a JSON object", '["done"]'),
    "unknown": ("""echo '{"status": "finished"}' > "$WINDLASS_SIGNAL\"""", "none of done", "finished"),
    "doubled": ("""echo '{"status": "error", "status": "done"}' > "$WINDLASS_SIGNAL\"""", "twice", "error"),
    "deep": ("""head -c 900000 /dev/zero | tr '\\0' '[' > "$WINDLASS_SIGNAL\"""", "nested too deeply", "[[["),
    "large": ("""printf xxx > "$WINDLASS_SIGNAL"; truncate -s 500M "$WINDLASS_SIGNAL\"""", "more than 1000000", "xxx"),
    "link": (f"""echo '{DONE}' > spare && ln -s "$PWD/spare" "$WINDLASS_SIGNAL\"""", "a symbolic link", ""),
    "pipe": ('mkfifo "$WINDLASS_SIGNAL"', "it is a pipe", ""),
    "folder": ('mkdir "$WINDLASS_SIGNAL"', "it is a folder", ""),
}


@pytest.fixture(scope="module")
def hasty() -> Iterator[Stage]:
    """Agents get one try."""
    with stage(settings=HASTY) as house:
        house.wl("daemon", "start")
        yield house


@pytest.fixture(scope="module")
def signallers(hasty: Stage) -> dict[str, str]:
    """One agent for each bad signal, all at once; each has committed something that must not land."""
    return {each: give(hasty, each, f"{adds(f'{each}.txt')}; {BAD_SIGNALS[each][0]}") for each in BAD_SIGNALS}


class TestSignals:
    @pytest.mark.parametrize("kind", BAD_SIGNALS)
    def test_a_bad_one_is_named_with_its_beginning(self, hasty: Stage, signallers: dict[str, str], kind: str) -> None:
        """The run has crashed with "bad signal", the problem and how the file began; nothing lands."""
        _, problem, excerpt = BAD_SIGNALS[kind]
        shown = over(hasty, signallers[kind])
        [run] = shown["runs"]
        assert (shown["status"], run["outcome"], shown["change"]) == ("error", "crashed", None)
        assert run["reason"].startswith("bad signal: ")
        assert problem in run["reason"]
        [told] = [each for each in run["evidence"] if each.startswith("signal: unreadable")]
        assert excerpt in told
        assert len(told) < 1000

    def test_bad_ones_cost_no_memory(self, hasty: Stage, signallers: dict[str, str]) -> None:
        """A signal of 500 MB is never read whole."""
        over(hasty, signallers["large"])
        assert most_memory(hasty) < 150 * MEGABYTE

    def test_a_byte_order_mark_does_no_harm(self, hasty: Stage) -> None:
        """What some editors put before UTF-8 is not held against the agent."""
        name = give(hasty, "mark", f"""printf '\\357\\273\\277%s' '{DONE}' > "$WINDLASS_SIGNAL\"""")
        assert over(hasty, name)["runs"][0]["outcome"] == "done"

    def test_one_written_after_the_end_counts_for_nothing(self) -> None:
        """The run has been judged by then: whatever else happens, and if all is looked at anew, its task stays."""
        with stage(settings=HASTY) as house:
            name = house.play("Be silent", "- write: {late.txt: late}\n- commit: Late\n")
            before = over(house, name)
            assert before["runs"][0]["reason"] == "it ended without a signal"
            (Path(before["worktree"]) / ".windlass/output/signal.json").write_text(DONE)
            os.kill(house.daemon, signal.SIGKILL)
            house.wl("list")
            over(house, give(house, "Move everything once more", "true"))
            after = house.agent(name)
            assert (after["status"], after["runs"], after["change"]) == ("error", before["runs"], None)
            assert house.ask("/status")["troubles"] == []

    def test_one_of_an_earlier_run_counts_for_nothing(self) -> None:
        """The second run says nothing: the word of the first, which still lay there, is not taken for its own."""
        with stage(settings=QUICK) as house:
            name = house.play("Forget", "runs:\n- [{write: {a.txt: a}}, done]\n- [{commit: a}]\n")
            first, second = over(house, name)["runs"]
            assert "said done, but left a.txt uncommitted" in first["reason"]
            assert second["reason"].startswith("it ended without a signal")


class TestDeaths:
    def test_one_that_the_system_kills_is_tried_again_only_so_often(self) -> None:
        """Killed for want of memory, say, twice: one retry, then an error; `show --json` has each reason."""
        with stage(settings=QUICK) as house:
            name = house.work("Grow", "echo $$ > me.pid; exec sleep 600")
            me = Path(house.agent(name)["worktree"]) / "me.pid"
            for number in (1, 2):
                until(partial(_is_at_work, house, name, number, me), f"run {number}")
                os.kill(int(me.read_text()), signal.SIGKILL)  # the program alone, as the kernel would
                me.unlink()
            shown = over(house, name)
            assert house.wl("show", name, "--json").value["runs"] == shown["runs"]
            assert [(each["outcome"], each["exit_code"], each["reason"]) for each in shown["runs"]] == [
                ("crashed", 137, "exit code 137, without a signal"),
                ("crashed", 137, "exit code 137, without a signal (after 2 runs)"),
            ]
            assert (shown["status"], [each["cause"] for each in shown["runs"]]) == ("error", ["task", "reminder"])


def _is_at_work(house: Stage, name: str, number: int, me: Path) -> bool:
    return len(house.agent(name)["runs"]) == number and me.exists() and bool(me.read_text())


class TestChildren:
    def test_one_that_holds_the_output_and_goes_on_printing_blocks_nothing(self) -> None:
        """The agent has left: its change lands, its child is ended, and what that printed meanwhile is kept."""
        with stage(settings=QUICK) as house:
            babble = "while :; do echo babble; done"
            name = house.work("Leave a child", f"{adds('b.txt')}; echo mine; setsid sh -c '{babble}' & exit 0")
            house.event("change.landed")
            assert not [inhabitant for inhabitant in inhabitants(house.folder).values() if "babble" in inhabitant]
            assert b"mine\n" in house.raw("logs", name, "--raw")
            assert broken(house) == []

    def test_one_that_never_stops_printing_can_be_stopped(self) -> None:
        """There is always more to read; the word to stop is heard all the same."""
        with stage(settings=QUICK) as house:
            name = house.work("Babble", "echo $$ > me.pid; while :; do echo babble; done")
            me = Path(house.agent(name)["worktree"]) / "me.pid"
            until(lambda: me.exists() and me.read_text(), "it")
            pid = int(me.read_text())
            house.event("run.output")
            house.wl("stop", name)
            assert over(house, name)["runs"][0]["outcome"] == "stopped"
            assert not lives(pid)
            assert broken(house) == []
