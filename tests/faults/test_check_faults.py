"""Checks that misbehave: the queue moves on, the daemon lives, and no author is blamed for what is not their fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from e2e_stage import adds
from fault_stage import MEGABYTE, broken, give, most_memory, over, stage
from process_table import inhabitants, lives

from patience import until

ONCE = "[limits]\nreturns = 0\n"
GIGABYTE = "echo begin; head -c 1G /dev/zero; echo; echo end; exit 1"


def test_one_that_flakes_is_run_again_and_nobody_hears_of_it() -> None:
    """The change lands on the second test of the same tree; its author is not called back for what chance did."""
    with stage(checks="true") as house:
        seen = house.flag("seen")
        house.wl("config", "set", "checks.command", f"[ ! -e a.txt ] || [ -e {seen} ] || {{ touch {seen}; exit 1; }}")
        first = give(house, "Flake", adds("a.txt"))
        until(lambda: [each["state"] for each in house.queue()] == ["landed"], "it to land")
        change = house.agent(first)["change"]
        assert change["returns"] == 0
        assert [each["passed"] for each in change["checks"]] == [False, True]
        assert len({each["tree"] for each in change["checks"]}) == 1
        assert broken(house) == []


def test_one_that_flakes_more_often_than_it_may_delays_only_its_own_change() -> None:
    """With no retries it goes back once, is tested again and lands; what was behind it has not waited for that."""
    with stage(checks="true", settings="[gate]\nretries = 0\n") as house:
        seen = house.flag("seen")
        house.wl("config", "set", "checks.command", f"[ ! -e a.txt ] || [ -e {seen} ] || {{ touch {seen}; exit 1; }}")
        first = give(house, "Flake", _once(adds("a.txt"), "true"))
        house.event("change.rejected")
        second = give(house, "Behind it", adds("b.txt"))
        until(lambda: [each["state"] for each in house.queue()] == ["landed", "landed"], "both to land")
        assert [house.agent(each)["change"]["returns"] for each in (first, second)] == [1, 0]
        assert broken(house) == []


@pytest.mark.slow
def test_one_that_prints_a_gigabyte_costs_neither_memory_nor_disk() -> None:
    """The beginning and the end are kept, the rest is counted; NUL bytes, which no argument can hold, are shown."""
    with stage(checks=f"[ ! -e b.txt ] || {{ {GIGABYTE}; }}", settings=ONCE) as house:
        house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
        [change] = house.queue()
        output = house.ask(f"/changes/{change['id']}")["output"]
        assert output.startswith("begin\n")
        assert "\nend\n" in output
        assert "bytes left out" in output
        assert len(output) < 1.1e6
        assert "\0" not in output
        assert most_memory(house) < 150 * MEGABYTE
        kept = [
            path for path in house.state.rglob("*") if path.is_file() and not path.name.startswith("windlass.db.copy")
        ]
        assert sum(path.stat().st_size for path in kept) < 20 * MEGABYTE  # the hour of the copy may be now


def test_one_that_kills_its_parent_kills_no_daemon() -> None:
    """`kill -9 $PPID` hits a shell of ours: the change is refused, what it started is gone, the next one lands."""
    with stage(checks="[ ! -e a.txt ] || { kill -9 $PPID; exec sleep 4711; }", settings=ONCE) as house:
        house.wl("daemon", "start")
        daemon = house.daemon
        shown = over(house, give(house, "Kill", adds("a.txt")))
        assert (shown["change"]["state"], shown["change"]["reason"]) == ("held", "exit code 137; it went back 0 times")
        assert not [inhabitant for inhabitant in inhabitants(house.folder).values() if "sleep 4711" in inhabitant]
        house.land("Add b", adds("b.txt"))
        assert lives(daemon)
        assert house.daemon == daemon


class TestMissing:
    def test_a_command_that_is_not_there_is_the_persons_to_mend(self) -> None:
        """The author is not woken; the person is told what is missing, and a working command is all it takes."""
        with stage(checks="no-such-checker --all") as house:
            told = house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
            assert "not found (exit code 127): no-such-checker" in told.err
            [change] = house.queue()
            assert (change["state"], change["hold"], change["returns"]) == ("held", "checks", 0)
            assert [each["cause"] for each in house.agent(change["agent"])["runs"]] == ["task"]
            house.wl("config", "set", "checks.command", "true")
            house.event("change.landed")

    def test_a_command_that_may_not_be_run_is_so_too(self) -> None:
        """The file is there and is no program: exit code 126."""
        with stage(checks="./README.md") as house:
            house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
            [change] = house.queue()
            assert (change["hold"], change["reason"]) == (
                "checks",
                "the command could not be run (exit code 126): ./README.md",
            )

    def test_one_that_the_change_itself_took_away_is_its_authors(self) -> None:
        """Who removes the script that the checks are waits for a person; let through, it is told, and puts it back."""
        with stage(checks="./check.sh", begun=False) as house:
            house.repo.mkdir()
            house.git("init", "-q", "-b", "main")
            house.repo.joinpath("check.sh").write_text("#!/bin/sh\n")
            house.repo.joinpath("check.sh").chmod(0o755)
            house.commit({"check.sh": "#!/bin/sh\n"}, "Begin")
            name = house.work("Tidy up", _once("git rm -q check.sh; git commit -qm Tidy", "git revert --no-edit HEAD"))
            house.event("change.held")
            assert house.agent(name)["change"]["reason"] == "it changes check.sh"
            house.wl("queue", "release", "c1")
            house.event("change.rejected")
            until(lambda: house.agent(name)["status"] in ("completed", "waiting"), "it to land or to close")
            assert len(house.agent(name)["runs"]) == 2

    def test_it_is_tried_again_when_the_daemon_starts(self) -> None:
        """What was missing may have been installed meanwhile, without a word to us."""
        with stage(checks="helper-of-ours") as house:
            house.wl("work", "Add b", "--command", adds("b.txt"), "--wait", code=1)
            helper = Path(house.environment["PATH"].partition(":")[0]) / "helper-of-ours"
            helper.write_text("#!/bin/sh\n")
            helper.chmod(0o755)
            house.wl("daemon", "stop")
            house.wl("list")
            house.event("change.landed")


def _once(first: str, later: str) -> str:
    return f'if [ "$WINDLASS_RUN_NUMBER" = 1 ]; then {first}; else {later}; fi'
