"""Who could collide, how bad it is, and in which order it is told."""

from __future__ import annotations

import pytest

from windlass.core.radar.collisions import (
    Collision,
    QuickLook,
    Severity,
    Track,
    decide_pairs,
    hold_reason,
    judge,
    judge_main,
    weight,
)


def a_track(agent: str, *edited: str, added: str = "", removed: str = "", paths: str = "", at: float = 0.0) -> Track:
    look = QuickLook(
        head=f"head-{agent}",
        commit=f"commit-{agent}",
        tree=f"tree-{agent}",
        base="base",
        edited=frozenset(edited),
        added=frozenset(added.split()),
        removed=frozenset(removed.split()),
    )
    return Track(agent=agent, look=look, paths=tuple(paths.split()), at=at)


def found(one: Track, other: Track, *clash: str) -> Collision:
    collision = judge(one, other, clash)
    assert collision is not None
    return collision


class TestPairs:
    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (a_track("a", "x/y.py"), a_track("b", "x/y.py")),
            (a_track("a", "x"), a_track("b", added="x/y.py")),
            (a_track("a", added="old/new.py"), a_track("b", removed="old/gone.py", added="fresh/gone.py")),
            (a_track("a", added="old/deep/new.py"), a_track("b", removed="old/gone.py", added="fresh/gone.py")),
            (a_track("a", paths="src/**"), a_track("b", paths="src/auth")),
            (a_track("a", paths="src/**"), a_track("b", "src/auth/login.py")),
        ],
        ids=["a file of both", "a file and a folder", "a moved folder", "below it", "declared", "declared and changed"],
    )
    def test_what_two_share_makes_them_a_pair(self, one: Track, other: Track) -> None:
        """In whichever order they come."""
        assert decide_pairs([one, other]) == [(one, other)]
        assert decide_pairs([other, one]) == [(other, one)]

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (a_track("a", "x/y.py"), a_track("b", "x/z.py")),
            (a_track("a", added="x/new.py"), a_track("b", added="x/other.py")),
            (a_track("a", removed="x/old.py"), a_track("b", added="y/new.py")),
            (a_track("a", "x.py"), a_track("b", "x.pyc")),
            (a_track("a", paths="src/auth"), a_track("b", "src/authority.py", paths="src/web")),
            (a_track("a"), a_track("b")),
        ],
    )
    def test_what_has_nothing_to_do_with_each_other_is_not_merged(self, one: Track, other: Track) -> None:
        """Being in one folder is not enough."""
        assert decide_pairs([one, other]) == []

    def test_every_two_are_looked_at_once(self) -> None:
        """Of four at one file there are six pairs."""
        pairs = decide_pairs([a_track(name, "x") for name in "abcd"])
        assert ["".join(each.agent for each in pair) for pair in pairs] == ["ab", "ac", "ad", "bc", "bd", "cd"]


class TestJudging:
    def test_what_git_cannot_merge_is_a_conflict_in_those_files(self) -> None:
        """Whatever else they share."""
        collision = found(a_track("a", "x", "y", at=5.0), a_track("b", "x", "y", at=3.0), "y")
        assert (collision.severity, collision.agents, collision.files) == (Severity.CONFLICT, ("a", "b"), ("y",))
        assert collision.at == 3.0, "as old as the older look"
        assert "a and b conflict in y" in collision.sentence

    def test_the_same_file_that_merges_is_an_overlap(self) -> None:
        """It is named, and nobody has to act."""
        collision = found(a_track("a", "x", "y"), a_track("b", "y", "x", "z"))
        assert (collision.severity, collision.files) == (Severity.OVERLAP, ("x", "y"))
        assert "for now that merges" in collision.sentence

    def test_what_is_only_declared_is_the_least(self) -> None:
        """It names the paths and no file."""
        collision = found(a_track("a", paths="src/auth docs"), a_track("b", paths="src/**"))
        assert (collision.severity, collision.files) == (Severity.DECLARED, ())
        assert collision.paths == ("src/auth", "src/**")

    def test_a_pair_that_came_to_nothing_is_no_collision(self) -> None:
        """A folder that was emptied and one that was filled may have nothing to do with each other."""
        assert judge(a_track("a", removed="x/a"), a_track("b", added="x/b"), ()) is None

    def test_with_main_only_a_conflict_counts(self) -> None:
        """The gate merges the rest by itself."""
        collision = judge_main(a_track("a", "x"), "trunk", ("x",))
        assert collision is not None and collision.with_main
        assert "a conflicts with trunk in x" in collision.sentence
        assert judge_main(a_track("a", "x"), "trunk", ()) is None

    def test_the_worst_comes_first_and_the_largest_of_those(self) -> None:
        """Order does not depend on who was asked first."""
        worst = found(a_track("c", "x", "y"), a_track("d", "x", "y"), "x", "y")
        bad = found(a_track("a", "x"), a_track("b", "x"), "x")
        less = found(a_track("a", "x", "y"), a_track("e", "x", "y"))
        least = found(a_track("a", paths="x"), a_track("f", paths="x"))
        assert sorted([least, less, bad, worst], key=weight) == [worst, bad, less, least]

    def test_many_files_are_counted_and_not_listed(self) -> None:
        """A sentence stays one."""
        names = [f"f{number}" for number in range(20)]
        assert "and 15 more" in found(a_track("a", *names), a_track("b", *names), *names).sentence


class TestHolding:
    def test_a_task_is_held_by_a_file_that_someone_changes(self) -> None:
        """The reason names both."""
        reason = hold_reason(("src/**",), "otter", (), frozenset({"docs/a.md", "src/b.py"}))
        assert reason == "held by the radar: otter is at src/b.py"

    def test_and_by_what_someone_is_to_change(self) -> None:
        """Before there is a file of it."""
        assert hold_reason(("src/**",), "otter", ("src/auth",), frozenset()).endswith("otter is at src/auth")

    def test_work_that_was_not_looked_at_yet_is_waited_for(self) -> None:
        """What nobody knows may be anything."""
        assert "waits for the radar to look at the work of otter" in hold_reason(("src",), "otter", (), None)

    def test_other_work_holds_nothing(self) -> None:
        """It may begin."""
        assert hold_reason(("src/**",), "otter", ("docs",), frozenset({"docs/a.md"})) == ""
