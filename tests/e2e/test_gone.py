"""A repository is taken away under its agents, comes back, and is forgotten at last."""

from __future__ import annotations

import shutil

from e2e_stage import exact, lines, stage

from patience import until

PROJECT = "id name path main state reason since agents changes hub_deleted"


def test_a_project_that_is_gone_waits_and_goes_on_when_it_is_back() -> None:
    """Every listing says so, no tick has trouble, and its change lands when it is back."""
    with stage(checks="true", settings="[limits]\nreminders = 0\nretries = 0\n") as house:
        away, elsewhere = house.folder / "away", house.folder
        go = house.flag("go")
        house.set_checks(house.waits_for(go))
        lander = house.work("Add b", lines("echo bee > b.txt", "git add -A", "git commit -qm b"))
        house.event("change.staged")
        house.repo.rename(away)
        house.event("project.gone")
        why = f"its repository {house.repo} is gone"
        [change] = until(lambda: [each for each in house.ask("/queue")["items"] if each["state"] == "queued"], "c1")
        assert why in change["reason"] and change["paused"]
        assert why in house.agent(lander)["evidence"]
        for words in (("list",), ("queue",), ("show", lander), ("project", "list"), ("inbox",)):
            assert why in house.wl(*words, cwd=elsewhere).out, words
        examined = {item["name"]: item for item in house.wl("doctor", "--json", cwd=elsewhere, code=1).value}
        assert why in examined["projects"]["detail"] and "project forget" in examined["projects"]["hint"]
        assert examined["ticks"]["detail"] == "no trouble since the daemon started"
        assert why in house.wl("doctor", "--check", cwd=elsewhere).out

        go.touch()
        away.rename(house.repo)
        house.event("change.landed")


def test_a_project_is_forgotten_and_what_was_written_there_is_saved() -> None:
    """A change of a gone project can be dropped; nothing of it is listed any more, and its path can be used again."""
    with stage(settings="[limits]\nreminders = 0\nretries = 0\n") as house:
        name, elsewhere = house.repo.name, house.folder
        failed = house.work("Fail", lines("echo half > half.txt", "windlass agent fail 'Too hard.'"))
        house.event("task.failed")
        house.wl("queue", "pause")
        dropped = house.work("Add d", lines("echo dee > d.txt", "git add -A", "git commit -qm d"))
        change = house.event("change.queued")["subject"]
        shutil.rmtree(house.repo)
        house.wl("queue", "drop", change, cwd=elsewhere)
        why = f"its repository {house.repo} is gone"

        [row] = house.wl("project", "list", "--json", cwd=elsewhere).value
        assert exact(PROJECT, row) and (row["state"], row["reason"]) == ("gone", why)
        done = house.wl("project", "forget", name, "--json", cwd=elsewhere).value
        assert exact("project changes rescued kept hub_deleted", done)
        assert {each["agent"] for each in done["rescued"]} == {failed, dropped}
        assert house.wl("project", "list", "--json", cwd=elsewhere).value == []
        assert house.wl("list", "--all", "--json", cwd=elsewhere).value == []
        assert house.wl("queue", "--all", "--json", cwd=elsewhere).value == []
        back = house.folder / "half"
        house.wl("rescue", "restore", f"{failed}/1", "--to", str(back), cwd=elsewhere)
        assert (back / "half.txt").read_text() == "half\n"
        house.wl("doctor", "--check", cwd=elsewhere)

        refused = house.wl("project", "forget", name, "--delete-hub", cwd=elsewhere, code=4)
        assert "--yes" in refused.err
        done = house.wl("project", "forget", name, "--delete-hub", "--yes", "--json", cwd=elsewhere).value
        assert done["hub_deleted"]
        assert house.wl("rescue", "list", "--all", "--json", cwd=elsewhere).value == []
        house.wl("doctor", "--check", cwd=elsewhere)
        house.begin_repository()
        assert house.wl("init", "--checks", "true", "--json").value["name"] == name
        view = house.land("Add e", lines("echo e > e.txt", "git add -A", "git commit -qm e"))
        assert view["change"]["state"] == "landed"


def test_an_agent_may_not_forget_its_project() -> None:
    """It is a person's alone."""
    with stage() as house:
        command = "windlass project forget --yes > out.txt 2>&1; git add -A; git commit -qm out"
        assert house.land("Forget", command)["change"]["state"] == "landed"
        assert "An agent may not do that" in (house.repo / "out.txt").read_text()
        assert [row["state"] for row in house.wl("project", "list", "--json").value] == ["ready"]
