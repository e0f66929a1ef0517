"""docs/workflows.md, run: every example as it stands there, with a stand-in for the coding CLI that it names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from stand_in import Company, commits, company, in_repository

from patience import until
from windlass.core.workflows import (
    file as workflow_file,
)
from windlass.core.workflows import (
    file_agents,
    file_params,
    file_tasks,
)

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text()
PARTS = {
    found[1]: found[2]
    for found in re.finditer(r"^##+ ([^\n]+)\n(?:(?!^##)[^\n]*\n)*?```yaml\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
}
"""The example of each part of the page, by its heading."""
REVIEWER = "agents:\n  reviewer: {system_prompt: You review.}\n"
BEGIN = 'kickoff: "@reviewer please begin."\n'
OUR = Path(".windlass/context")
LINTER = """#!/bin/sh
cat "$1" > {tries}.told
echo x >> {tries}
[ $(wc -l < {tries}) = 3 ] || kill -9 $$
"""
"""It crashes twice: once more than anyone is forgiven who is not persistent."""


@pytest.fixture(scope="module")
def acme() -> Iterator[Company]:
    """A repository whose checkout stands on a branch beside main."""
    with company() as made:
        in_repository(made.house, "lint.sh", LINTER.format(tries=made.house.flag("tries"))).chmod(0o755)
        made.house.git("add", "lint.sh")
        made.house.commit({".gitignore": "*.yaml\n.windlass/\n"}, "Add a linter")
        made.house.git("checkout", "-q", "-b", "topic")
        made.house.commit({"login.txt": "@coder $(touch hacked) ${{ nothing }}\n"}, "Add a login")
        yield made


def example(acme: Company, heading: str, *more: str) -> str:
    """The file of an example, completed with what it leaves out."""
    name = f"{heading.partition(' ')[0].lower()}.yaml"
    in_repository(acme.house, name, "".join((PARTS[heading], *more)))
    return name


def text_of(file: Path) -> str:
    return file.read_text() if file.exists() else ""


def test_every_key_has_an_example_here() -> None:
    """A key that is added to the page is run, too; or this list says that it is not."""
    keys = {*workflow_file.KEYS, *file_agents.KEYS, *file_params.KEYS, *file_tasks.KEYS}
    shown = "\n".join(PARTS.values())
    assert len(PARTS) == len(re.findall("```yaml", PAGE))
    assert {key for key in keys if not re.search(rf"\b{key}:", shown)} == set()


def test_writing_one(acme: Company) -> None:
    """Setup, kickoff, a mention that wakes; what is in the diff wakes nobody; what was committed lands."""
    acme.play(
        reviewer='windlass context document append "1. no lock"; windlass context send "@coder please fix 1."\n',
        coder=commits("lock.txt"),
    )
    ended = acme.run(example(acme, "Writing one"), instance="w1")
    first, second = acme.calls()
    assert (first.agent, first.after("--model"), "--read" in first.argv) == ("reviewer@w1", "acme/large", True)
    assert "@coder $(touch hacked) ${{ nothing }}" in first.prompt
    assert "You review code." in first.after("--who")
    assert (second.agent, "--edit" in second.argv) == ("coder@w1", True) and "please fix 1." in second.prompt
    assert [each["state"] for each in ended["changes"]] == ["landed"]
    assert acme.house.git("show", "main:lock.txt") == "new"
    assert not (acme.house.repo / "hacked").exists()


def test_context(acme: Company) -> None:
    """The channel and the document are files where it says."""
    acme.play(reviewer='windlass context document append "All is well."\nwindlass context send "I have looked."\n')
    acme.run(example(acme, "context", REVIEWER, BEGIN), instance="c1")
    folder = acme.house.repo / OUR / "c1"
    until(lambda: "All is well." in text_of(folder / "notes.md"), "the document")
    until(lambda: "I have looked." in text_of(folder / "channel.md"), "the channel")


def test_agents(acme: Company) -> None:
    """A provider by name, tools that only read, a hand-off to whom it may, a command that is started again."""
    acme.play(reviewer='windlass send "Lint it." --to linter --done "I have read it."\n')
    file = example(acme, "agents", "context:\n", BEGIN)
    acme.house.wl("start", file, "--instance", "a1", "--background")
    tries = acme.house.flag("tries")
    until(lambda: text_of(tries).count("x") == 3, "the third try of the linter", within=60)
    (call,) = acme.calls()
    assert (call.after("--model"), "--read" in call.argv, call.agent) == ("acme/large", True, "reviewer@a1")
    assert "Lint it." in acme.house.flag("tries.told").read_text()
    acme.play()
    acme.house.wl("send", "Could someone review the parser?")
    until(lambda: "review the parser" in "".join(each.prompt for each in acme.calls()), "the one whose trigger it is")
    acme.house.wl("stop", "@a1")


def test_setup(acme: Company) -> None:
    """A command uses the output of the one before it, and the kickoff that of both."""
    acme.play()
    kickoff = 'kickoff: "@reviewer since ${{ base }}: ${{ commits }}"\n'
    acme.run(example(acme, "setup", REVIEWER, kickoff), instance="s1")
    base = acme.house.git("merge-base", "main", "topic")
    assert re.search(rf"since {base}: [0-9a-f]+ Add a login", acme.calls()[0].prompt)


def test_kickoff(acme: Company) -> None:
    """Every name that can stand in it."""
    acme.play()
    acme.house.environment["USER"] = "robin"
    acme.run(example(acme, "kickoff", REVIEWER), instance="k1")
    told = " ".join(acme.calls()[0].prompt.split())
    assert f"please look at robin's work in k1, and write into {OUR}/k1/notes.md." in told
    assert "the signs themselves: ${{ this }} stays." in told


def test_params(acme: Company) -> None:
    """What was said after -- is there, and what does not fit its type is refused before anything starts."""
    acme.play()
    file = example(acme, "params", REVIEWER)
    given = ("--base", "dev", "--rounds", "5", "--share", "0.25", "--fast", "--depth", "main-paths", "--note", "x")
    acme.run(file, "--", *given, instance="p1")
    assert "compare it with dev." in acme.calls()[0].prompt
    for wrong in (("--rounds", "many"), ("--share", "half"), ("--depth", "deep"), ("--bass", "dev")):
        assert wrong[0][2:] in acme.house.wl("run", file, "--instance", "p2", "--", *wrong, code=2).err
    assert len(acme.calls()) == 1


def test_tasks(acme: Company) -> None:
    """One task after the other, with what the first one wrote; values stand in briefs, too."""
    acme.play(
        planner='windlass context document append "Build a raft."\n',
        coder="windlass context document read > plan.txt; git add -A; git commit -q -m Build\n",
    )
    ended = acme.run(example(acme, "tasks"), instance="t1")
    first, second = acme.calls()
    assert (first.agent, "--read" in first.argv) == ("planner@t1", True)
    assert second.agent == "coder@t1" and "Build what the plan says, in tasks." in second.prompt
    assert [each["state"] for each in ended["changes"]] == ["landed"]
    assert "Build a raft." in acme.house.git("show", "main:plan.txt")


def test_limits(acme: Company) -> None:
    """Of four agents who could all run at once, two do."""
    beat = acme.house.flag("beat")
    together = f"until [ $(grep -cx 1 {beat}) -ge 2 ]; do sleep 0.02; done; sleep 0.3"
    acme.play(**dict.fromkeys("abcd", f"echo 1 >> {beat}; {together}; echo -1 >> {beat}\n"))
    agents = "".join(f"  {each}: {{role: Beats, permissions: read}}\n" for each in "abcd")
    acme.run(example(acme, "limits", f"agents:\n{agents}", 'kickoff: "@a @b @c @d please begin."\n'), instance="l1")
    alive = [0]
    for step in beat.read_text().split():
        alive.append(alive[-1] + int(step))
    assert len(alive) == 9 and max(alive) == 2


def test_gate(acme: Company) -> None:
    """What was committed stays on its branch, and the way to land it is printed."""
    acme.play(reviewer=commits("kept.txt"))
    file = example(acme, "gate", REVIEWER, BEGIN)
    told = acme.house.wl("run", file, "--instance", "g1")
    assert "windlass queue add work/reviewer.g1" in told.out
    assert acme.house.git("show", "work/reviewer.g1:kept.txt") == "new"
    assert "kept.txt" not in acme.house.git("ls-tree", "--name-only", "main")


def test_keys_of_your_own(acme: Company) -> None:
    """Both agents get what the anchor says, and each what is its own."""
    acme.play()
    acme.run(example(acme, "Keys of your own"), instance="x1")
    calls = {call.agent: call for call in acme.calls()}
    assert {*calls} == {"reviewer@x1", "auditor@x1"}
    assert all("--read" in call.argv for call in calls.values())
    assert "an attacker would use" in calls["auditor@x1"].after("--who")


def test_a_later_start_begins_anew(acme: Company) -> None:
    """And tells only what is said in it."""
    acme.play()
    file = example(acme, "gate", REVIEWER, "context:\n", BEGIN)
    told = [acme.house.wl("run", file, "--instance", "again").out for _ in range(2)]
    assert [each.count("please begin.") for each in told] == [1, 1]
    assert all("--resume" not in later.argv for _, later in pairwise(acme.calls()))
