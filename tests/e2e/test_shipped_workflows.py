"""The workflows that come with Windlass, run by their names, with a stand-in for the coding CLI."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from stand_in import Company, commits, company

from windlass.library.workflows import shipped


@pytest.fixture(scope="module")
def acme() -> Iterator[Company]:
    """A repository whose checkout stands on a branch with something new."""
    with company() as made:
        made.house.commit({"src/parser.txt": "parse\n"}, "Add a parser")
        made.house.git("checkout", "-q", "-b", "topic")
        made.house.commit({"login.txt": "no lock\n"}, "Add a login")
        yield made


def document(acme: Company, instance: str) -> str:
    return acme.house.wl("context", "document", "read", "--instance", instance).out


def on_main(acme: Company) -> set[str]:
    return {*acme.house.git("ls-tree", "-r", "--name-only", "main").splitlines()}


def test_each_of_them_is_run_here() -> None:
    """One that is added is run, too."""
    assert {*shipped()} == {"fix-and-land", "plan-and-build", "review", "review-and-fix", "write-tests"}


def test_review(acme: Company) -> None:
    """The reviewer sees the branch, writes down what it finds, and nothing is changed."""
    before = on_main(acme)
    acme.play(reviewer='windlass context document append "1. $(cat login.txt)"\nwindlass context send "Land it."\n')
    ended = acme.run("review", instance="r1")
    (call,) = acme.calls()
    assert "--read" in call.argv and "Add a login" in call.prompt and "+no lock" in call.prompt
    assert "1. no lock" in document(acme, "r1")
    assert (ended["changes"], ended["failed"], on_main(acme)) == ([], [], before)


def test_review_of_nothing(acme: Company) -> None:
    """Where nothing differs, nobody is started."""
    acme.play()
    told = acme.house.wl("run", "review", "--instance", "r2", "--", "--base", "topic", code=1)
    assert "Nothing differs from topic" in told.err
    assert acme.calls() == []


def test_review_and_fix(acme: Company) -> None:
    """The reviewer calls the coder, looks again at what was fixed, and is content; then it lands."""
    acme.play(
        reviewer='if [ -e fix.txt ]; then windlass context send "Nothing is left."; exit; fi\n'
        'windlass context document append "1. no lock"\nwindlass context send "@coder please fix 1."\n',
        coder=commits("fix.txt") + 'windlass context send "@reviewer 1 is fixed."\n',
    )
    ended = acme.run("review-and-fix", instance="rf")
    assert [call.agent for call in acme.calls()] == ["reviewer@rf", "coder@rf", "reviewer@rf"]
    assert [each["state"] for each in ended["changes"]] == ["landed"]
    assert "fix.txt" in on_main(acme)


def test_fix_and_land(acme: Company) -> None:
    """What goes wrong has to be said; it is fixed, looked at, and lands."""
    acme.play(
        coder=commits("cause.txt") + 'windlass context send "@reviewer please look."\n',
        reviewer='cat cause.txt; windlass context send "It can land."\n',
    )
    assert "fault" in acme.house.wl("run", "fix-and-land", "--instance", "fl", code=2).err
    ended = acme.run("fix-and-land", "--", "--fault", "It crashes.", "--check", "make test", instance="fl")
    first, second = acme.calls()
    assert "fix it: It crashes." in first.prompt and "make test" in first.prompt and "Add a parser" in first.prompt
    assert (second.agent, "--read" in second.argv) == ("reviewer@fl", True)
    assert [each["state"] for each in ended["changes"]] == ["landed"]
    assert "cause.txt" in on_main(acme)


def test_plan_and_build(acme: Company) -> None:
    """One after the other, each with what was made before it; all of it lands."""
    acme.play(
        planner='windlass context document append "Build a raft."\n',
        builder="windlass context document read > raft.txt; git add -A; git commit -q -m Build\n",
        tester='grep -q raft raft.txt\nwindlass context document append "It floats."\n' + commits("raft-test.txt"),
    )
    ended = acme.run("plan-and-build", "--", "--goal", "A raft.", instance="pb")
    assert [call.agent for call in acme.calls()] == ["planner@pb", "builder@pb", "tester@pb"]
    assert all("A raft." in call.prompt for call in acme.calls())
    assert {each["state"] for each in ended["changes"]} == {"landed"}
    assert {"raft.txt", "raft-test.txt"} <= on_main(acme)
    assert "It floats." in document(acme, "pb")


def test_write_tests(acme: Company) -> None:
    """The sceptic breaks the code where the new tests are, in a tree of its own, and throws that away."""
    acme.play(
        tester=commits("src/parser-test.txt") + 'windlass context send "@sceptic please break it."\n',
        sceptic="test -e src/parser-test.txt\necho broken > src/parser.txt\ngit checkout -q .\n"
        'windlass context send "They notice all of it."\n',
    )
    ended = acme.run("write-tests", "--", "--path", "src", "--depth", "everything", instance="wt")
    first, second = acme.calls()
    assert "write tests for src; how far to go: everything." in first.prompt and "Add a parser" in first.prompt
    assert (second.agent, ended["failed"]) == ("sceptic@wt", [])
    assert [each["state"] for each in ended["changes"]] == ["landed"]
    assert "src/parser-test.txt" in on_main(acme)
    assert acme.house.git("show", "main:src/parser.txt") == "parse"
