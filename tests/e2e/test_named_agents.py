"""Agents in files, from the command line: seen, checked, given work, made ready."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from e2e_stage import Stage, adds, lines, stage

import patience

CODER = "---\nname: coder\nrole: Senior developer\n---\nWork on {workplace_name}, {description}.\n"


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person whose repository defines an agent."""
    with stage() as made:
        made.commit({".windlass/agents/coder.md": CODER})
        yield made


def test_the_agents_of_a_repository_are_shown_with_what_is_wrong(house: Stage) -> None:
    """By file and line; only `--check` makes an error of it; from a folder below, too."""
    (house.repo / ".windlass/agents/bad.md").write_text("---\nname: Bad One\n---\n")
    (house.repo / ".windlass/agents/coder.md").write_text(CODER.replace("---\nWork", "persistant: true\n---\nWork"))
    (house.repo / "below").mkdir()

    shown = house.wl("agents", cwd=house.repo / "below").out
    checked = house.wl("agents", "--check", code=1)
    found = house.wl("agents", "--json").value

    assert "coder  Senior developer" in shown
    assert ".windlass/agents/bad.md:2:1: error: role: is missing." in shown
    assert ".windlass/agents/coder.md:4:1: warning: persistant: there is no such key" in shown
    assert "Did you mean persistent?" in checked.out
    assert [each["name"] for each in found["agents"]] == ["coder"]
    assert {(each["file"], each["line"], each["gravity"]) for each in found["problems"]} == {
        (".windlass/agents/bad.md", 2, "error"),
        (".windlass/agents/coder.md", 4, "warning"),
    }
    (house.repo / ".windlass/agents/bad.md").unlink()
    house.wl("agents", "--check")
    (house.repo / ".windlass/agents/coder.md").unlink()
    assert "No agent is defined here" in house.wl("agents").out


def test_one_agent_lands_two_tasks_one_after_the_other(house: Stage) -> None:
    """The second waits, says for what, begins at main, and waiting for each ends with its own landing."""
    go = house.flag("go")
    command = lines(
        house.waits_for(go),
        'n="$WINDLASS_RUN_NUMBER"',
        'cp "$WINDLASS_PROMPT" "prompt$n.md"',
        "git add -A",
        'git commit -q -m "Add $n"',
    )
    how = ("--agent", "coder", "--command", command, "--sandbox", "off")  # the flag is outside
    first = house.wl("work", "First", *how, "--json").value
    second = house.begin("work", "Second", *how, "--wait")
    house.event("task.added", "t2")
    assert house.ask("/tasks/t2")["agent"]["evidence"] == "waits until coder is done with t1"
    go.touch()

    out, err = second.communicate(timeout=patience.seconds(50))

    assert second.returncode == 0, err
    assert first["agent"] == "coder" and first["branch"] == "work/coder"
    assert b"landed" in out
    assert "You are Senior developer for the repo project." in (house.repo / "prompt1.md").read_text()
    assert "Work on repo, {description}." in (house.repo / "prompt2.md").read_text()
    assert [each["state"] for each in house.queue()] == ["landed", "landed"]
    shown = house.wl("show", "coder").out
    assert "Senior developer" in shown and "completed" in shown
    assert house.agent("coder")["worktree"].endswith("/coder")


def test_an_agent_nobody_defined_is_refused(house: Stage) -> None:
    """With the near miss, the list, and nothing created."""
    refused = house.wl("work", "It", "--agent", "codr", "--command", "true", code=3)

    assert "No agent codr is defined here" in refused.err
    assert "Did you mean coder? The agents here are: coder." in refused.err
    assert house.ask("/agents?all=1")["items"] == []


def test_a_worktree_is_made_ready_and_a_failure_is_shown(house: Stage) -> None:
    """Copies and links are there and never land; a set-up that fails says why before the agent starts."""
    settings = '[worktree]\ncopy = [".env", "absent"]\nlink = ["deps"]\nsetup = "{}"\n'
    (house.repo / ".git/info/exclude").write_text("/.env\n/deps\n")
    (house.repo / ".env").write_text("KEY=value\n")
    (house.repo / "deps").mkdir()
    (house.repo / "deps/lib").write_text("lib\n")
    config = house.repo / ".windlass/config.toml"
    config.write_text(settings.format("cat deps/lib .env"))

    landed = house.land("Use it", lines("grep -q KEY .env", "grep -q lib deps/lib", adds("a.txt")))
    config.write_text(settings.format("echo no such package; exit 3"))
    failed = house.wl("work", "Again", "--command", adds("b.txt"), "--wait", code=1)

    assert landed["landed"]
    assert house.git("show", "--name-only", "--format=", "HEAD^2").split() == ["a.txt"]
    assert "set-up of its worktree failed: exit code 3: no such package" in failed.err
    name = house.ask("/agents")["items"][0]["name"]
    shown = house.wl("show", name).out
    assert "note: absent was left out: it is not in your checkout" in shown
    assert "no such package" in shown
    assert json.loads(house.wl("show", name, "--json").out)["setup"].endswith("no such package\n")
