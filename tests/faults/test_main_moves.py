"""The person works on main while the queue does: what was tested is tested again, and nothing of theirs is lost."""

from __future__ import annotations

import pytest
from e2e_stage import Stage, adds, stage

TIMES = 3


def during_checks(house: Stage, act: str, times: int) -> None:
    """Let something happen to main in the middle of each of the first check runs."""
    turns = house.flag("turns")
    turns.mkdir()
    turn = f'n=$(ls {turns} | wc -l); touch {turns}/$n; if [ "$n" -lt {times} ]; then {act}; fi'
    (house.state / "config.toml").write_text(f"[checks]\ncommand = '''{turn}'''\n")


def kinds(house: Stage) -> list[str]:
    return [event["kind"] for event in house.events() if event["kind"].startswith("change.")]


@pytest.mark.parametrize("where", ["checkout", "clone"])
def test_a_main_that_moves_under_every_check_is_tested_again_each_time(where: str) -> None:
    """Three commits come in while candidates are tested, by hand or by a push; all of them stay."""
    with stage() as house:
        clone = house.folder / "clone"
        commit = "echo $n > person-$n.txt && git add . && git commit -qm 'Person '$n"
        act = f"(cd {house.repo} && {commit})"
        if where == "clone":
            house.git("clone", "-q", str(house.repo), str(clone))
            house.git("checkout", "-q", "-b", "side")
            act = f"(cd {clone} && {commit} && git push -q origin main)"
        during_checks(house, act, TIMES)

        house.land("Add b", adds("b.txt"))

        assert house.git("log", "--first-parent", "--format=%s", "main").splitlines() == [
            "Land c1: Add b",
            *(f"Person {number}" for number in reversed(range(TIMES))),
            "Begin",
        ]
        assert kinds(house).count("change.staged") == TIMES + 1
        assert house.git("status", "--porcelain") == ""
        house.wl("doctor", "--check")


REWRITES = {
    "amended": "commit -q --amend -m Better",
    "dropped": "reset -q --hard HEAD~1",
    "rebased": "rebase -q --onto HEAD~2 HEAD~1",
}


MENDS = """
runs:
- [{write: {b.txt: b}}, {commit: Mine}, done]
- [{expect: "%(gone)s"}, {run: "git fetch -q origin && git rebase -q --onto origin/main %(gone)s"}, done]
"""


@pytest.mark.parametrize("how", REWRITES)
def test_what_the_person_takes_out_of_main_does_not_come_back_with_an_agents_work(how: str) -> None:
    """The agent began on a commit that is gone from main since: it is told so, puts its own work onto main, and lands.

    Neither a file nor a commit of what was taken back is in main then.
    """
    with stage() as house:
        house.commit({"kept.txt": "1\n"}, "Second")
        gone = house.commit({"oops.txt": "secret\n"}, "Oops")
        during_checks(house, f"git -C {house.repo} {REWRITES[how]}", 1)

        view = house.land_script("Add b", MENDS % {"gone": gone})

        assert view["change"]["returns"] == 1
        history = house.git("log", "--format=%H %s", "main")
        assert gone not in history
        assert "Mine" in history
        assert (house.repo / "b.txt").exists()
        assert (house.repo / "oops.txt").exists() == (how != "dropped")
        assert (house.repo / "kept.txt").exists() == (how != "rebased")
        house.wl("doctor", "--check")
