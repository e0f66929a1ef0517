"""What the planner of the gate decides, case by case."""

from __future__ import annotations

import pytest

from windlass.core.gate.planner import plan
from windlass.core.gate.stacks import (
    Clash,
    Plan,
    QueuedChange,
    Rates,
    Rules,
    Stack,
    Trial,
    TrialVerdict,
    flakes,
    forget,
    in_order,
    may_be_chance,
    measure,
    rebase,
    tries,
)

CALM = Rates(bad=0.01, flaky=0.02)
USUAL = Rates(bad=0.05, flaky=0.02)
ROUGH = Rates(bad=0.5, flaky=0.02)


def a_line(letters: str, **fields: object) -> list[QueuedChange]:
    return [QueuedChange(change=each, turn=turn, **fields) for turn, each in enumerate(letters)]  # type: ignore[arg-type]  # a test says which


def passed(letters: str) -> Trial:
    return Trial(stack=tuple(letters), verdict=TrialVerdict.PASSED)


def failed(letters: str) -> Trial:
    return Trial(stack=tuple(letters), verdict=TrialVerdict.FAILED)


def under_way(letters: str) -> Trial:
    return Trial(stack=tuple(letters))


def planned(
    entries: list[QueuedChange], *trials: Trial, rates: Rates = USUAL, clashes: tuple[Clash, ...] = (), **rules: object
) -> Plan:
    return plan(entries, trials, clashes, rates, Rules(**rules))  # type: ignore[arg-type]  # a test says which


def words(stacks: tuple[Stack, ...]) -> list[str]:
    return ["".join(stack) for stack in stacks]


class TestLanding:
    def test_the_deepest_that_passed_lands(self) -> None:
        """Main moves as far as a test allows."""
        assert planned(a_line("abc"), passed("a"), passed("abc")).land == ("a", "b", "c")

    def test_a_deeper_pass_makes_a_shallower_failure_harmless(self) -> None:
        """What lands is the tree that passed, whatever chance did to a part of it."""
        found = planned(a_line("ab"), failed("a"), passed("ab"))

        assert (found.land, found.reject) == (("a", "b"), ())

    def test_strictly_each_step_must_have_passed(self) -> None:
        """With every commit of main tested, a gap below is tested first."""
        strict = planned(a_line("abc"), passed("a"), passed("abc"), strict=True)
        closed = planned(a_line("abc"), passed("a"), passed("ab"), passed("abc"), strict=True)

        assert (strict.land, closed.land) == (("a",), ("a", "b", "c"))

    def test_nothing_lands_on_what_passed_on_an_earlier_main(self) -> None:
        """The tree would be another one."""
        assert planned(a_line("ab"), Trial(stack=("a",), verdict=TrialVerdict.PASSED, old=True)).land == ()

    def test_nothing_lands_with_a_change_that_has_left_the_line(self) -> None:
        """A change that was taken out of the queue does not come in with others."""
        found = planned(a_line("a"), passed("xa"))

        assert (found.land, words(found.start)) == ((), ["a"])

    def test_who_has_passed_once_is_not_overtaken_again(self) -> None:
        """The first in line, tested once more after main had moved, is waited for."""
        first, *others = a_line("abc", proven=True)

        assert planned([first, *others], under_way("a"), passed("bc")).land == ()
        assert planned([first, *others], passed("a"), passed("bc")).land == ("a",)

    def test_tests_of_what_lands_anyway_are_stopped(self) -> None:
        """Nobody needs their verdict."""
        found = planned(a_line("abc"), under_way("a"), passed("ab"), under_way("c"), runners=4)

        assert (found.land, found.stop) == (("a", "b"), (("a",),))


class TestRejecting:
    def test_a_change_goes_back_when_its_retries_are_used_up(self) -> None:
        """One failure alone may be chance, two are enough by default."""
        assert planned(a_line("ab"), failed("a")).reject == ()
        assert planned(a_line("ab"), failed("a"), failed("a")).reject == ("a",)
        assert planned(a_line("ab"), failed("a"), retries=0).reject == ("a",)

    def test_the_more_checks_flake_the_more_tries_it_has(self) -> None:
        """Where three of ten fail by chance, two failures tell nothing."""
        often = Rates(bad=0.05, flaky=0.25, runs=100, flaked=30)

        assert planned(a_line("ab"), *[failed("a")] * 9, rates=often).reject == ()
        assert planned(a_line("ab"), *[failed("a")] * 12, rates=often).reject == ("a",)

    def test_failing_with_others_is_no_reason(self) -> None:
        """However often a stack failed, each of its changes may be good."""
        assert planned(a_line("ab"), failed("ab"), failed("ab"), failed("ab")).reject == ()

    def test_what_is_left_of_a_mixed_trial_is_no_failure_alone(self) -> None:
        """The tree that failed was never main with one change on it."""
        trials = rebase((failed("pa"), failed("pa"), failed("pa")), ("q", "p"))

        assert [trial.stack for trial in trials] == [("a",)] * 3
        assert planned(a_line("a"), *trials).reject == ()

    def test_tests_with_a_rejected_change_are_stopped_and_the_others_go_on(self) -> None:
        """Its neighbours do not wait for a verdict that says nothing about them."""
        found = planned(a_line("ab"), failed("a"), failed("a"), under_way("ab"))

        assert (found.reject, found.stop, words(found.start)) == (("a",), (("a", "b"),), ["b"])


class TestStarting:
    def test_fewer_bad_changes_make_larger_stacks(self) -> None:
        """A stack is as deep as makes it an even bet."""
        line = a_line("abcdefghijklmnopqrstuvwxyz")
        depths = [len(planned(line, rates=rates).start[0]) for rates in (CALM, USUAL, ROUGH)]

        assert depths == [26, 10, 1]

    def test_changes_that_passed_before_are_stacked_boldly(self) -> None:
        """Even where half of all changes are bad."""
        assert words(planned(a_line("abcdefgh", proven=True), rates=ROUGH).start) == ["abcdefgh"]

    def test_a_failed_stack_is_halved(self) -> None:
        """A little less than the first half is tested; if it passes, the failure speaks for the rest."""
        line = a_line("abcdefgh")

        assert words(planned(line, failed("abcdefgh")).start) == ["abc"]
        assert words(planned(line[3:], *rebase((failed("abcdefgh"),), tuple("abc"))).start) == ["de"]

    def test_who_failed_alone_is_tried_alone(self) -> None:
        """Others do not suffer for it."""
        assert words(planned(a_line("abc"), failed("a")).start) == ["a"]

    def test_what_failed_on_this_main_is_believed_more_than_what_passed_before(self) -> None:
        """Changes that passed on an earlier main can be red on this one, because of what landed since."""
        before = Trial(stack=tuple("abcd"), verdict=TrialVerdict.PASSED, old=True)
        found = planned(a_line("abcdefgh"), before, *[failed("abc")] * 3, runners=4)

        assert not any(set("abc") <= set(each) for each in found.start)

    def test_what_failed_together_is_not_tested_under_others_again(self) -> None:
        """Else the same stack would be tested for ever."""
        line, halves = a_line("abcdxyz", proven=True), [failed("abcd")] * 3
        first = planned(line, *halves).start[0]
        again = planned(line, *halves, Trial(stack=first, verdict=TrialVerdict.FAILED)).start[0]

        assert words((first, again)) == ["xyzab", "ab"]

    def test_spare_runners_test_apart(self) -> None:
        """Each tells about changes of its own."""
        found = planned(a_line("abcdefgh"), rates=ROUGH, runners=3)

        assert words(found.start) == ["a", "b", "c"]

    def test_never_more_than_there_are_free_runners(self) -> None:
        """Those under way count."""
        line = a_line("abcdefgh")

        assert len(planned(line, under_way("a"), under_way("b"), rates=ROUGH, runners=3).start) == 1
        assert planned(line, under_way("a"), rates=ROUGH, runners=1).start == ()

    def test_others_are_put_on_top_of_what_will_surely_land(self) -> None:
        """When it has landed, their test counts on the new main."""
        line = [*a_line("ab", proven=True), QueuedChange(change="c", turn=9)]

        assert words(planned(line, under_way("ab"), runners=2).start) == ["abc"]

    def test_a_change_that_clashes_is_left_out(self) -> None:
        """And tried again when what it clashes with has landed or gone."""
        clash = Clash(under=("a",), change="b")

        assert words(planned(a_line("abc"), clashes=(clash,)).start) == ["ac"]
        assert words(planned(a_line("bc"), clashes=(clash,)).start) == ["bc"]

    def test_what_is_needed_is_below(self) -> None:
        """A change is never tested without what it needs, unless that has landed."""
        one, two = QueuedChange(change="a", turn=1, needs=frozenset("b")), QueuedChange(change="b", turn=2)

        assert words(planned([one, two]).start) == ["ba"]
        assert words(planned([one, two], rates=ROUGH, runners=2).start) == ["b"]
        assert words(planned([one]).start) == ["a"]

    def test_strictly_each_change_is_tested_on_all_before_it(self) -> None:
        """One more at a time."""
        assert words(planned(a_line("abcd"), runners=3, strict=True).start) == ["a", "ab", "abc"]

    def test_the_first_is_tested_however_bad_changes_are(self) -> None:
        """A line that moves slowly still moves."""
        awful = Rates(bad=0.97, flaky=0.02)

        assert words(planned(a_line("ab"), rates=awful, strict=True).start) == ["a"]
        assert words(planned(a_line("ab"), rates=awful).start) == ["a"]

    def test_changes_that_share_parts_are_tested_together(self) -> None:
        """If so ruled: what breaks one part does not hold up another."""
        line = [
            QueuedChange(change=each, turn=turn, parts=frozenset((part,)))
            for turn, (each, part) in enumerate(zip("abcd", ("docs", "web", "docs", "web"), strict=True))
        ]
        rough = Rates(bad=0.3, flaky=0.02)

        assert words(planned(line, rates=rough, runners=2, partition=True).start) == ["ac", "bd"]
        assert words(planned(line, rates=rough, runners=2).start) == ["ab", "cd"]

    def test_no_stack_is_larger_than_allowed(self) -> None:
        """However sure it is."""
        assert words(planned(a_line("abcdef", proven=True), largest=4).start) == ["abcd"]

    def test_the_same_again_gives_the_same(self) -> None:
        """The order in which entries are listed says nothing."""
        line = a_line("abcdefgh")
        trials = (failed("abcd"), passed("ef"))

        assert planned(line, *trials, runners=4) == planned(line[::-1], *trials, runners=4)


class TestLine:
    def test_rank_goes_before_turn_and_needs_before_both(self) -> None:
        """Who is put first brings along what it needs."""
        line = [
            QueuedChange(change="a", turn=1),
            QueuedChange(change="b", turn=2),
            QueuedChange(change="c", turn=3, rank=1, needs=frozenset("b")),
        ]

        assert [each.change for each in in_order(line)] == ["b", "c", "a"]

    def test_a_circle_of_needs_is_broken(self) -> None:
        """Nothing waits for itself."""
        line = [
            QueuedChange(change="a", turn=1, needs=frozenset("b")),
            QueuedChange(change="b", turn=2, needs=frozenset("a")),
        ]

        assert [each.change for each in in_order(line)] == ["b", "a"]
        assert words(planned(line).start) == ["ba"]

    def test_a_long_chain_of_needs_is_no_trouble(self) -> None:
        """As many as there are changes."""
        line = [QueuedChange(change=f"c{each}", turn=-each, needs=frozenset((f"c{each - 1}",))) for each in range(3000)]

        assert [each.turn for each in in_order(line)[:2]] == [0, -1]


class TestMainMoved:
    def test_what_begins_with_the_landed_stack_is_the_same_tree(self) -> None:
        """Its verdict still counts."""
        assert rebase((failed("abc"), under_way("abd")), ("a", "b")) == (failed("c"), under_way("d"))

    def test_what_does_not_is_old(self) -> None:
        """It says something about its changes, but nothing lands on it."""
        (found,) = rebase((passed("cd"),), ("a", "b"))

        assert found == Trial(stack=("c", "d"), verdict=TrialVerdict.PASSED, old=True)

    def test_an_old_trial_never_becomes_new(self) -> None:
        """Not even when it begins with what lands next."""
        (old,) = rebase((passed("cd"),), ("a",))
        (found,) = rebase((old,), ("c",))

        assert (found.stack, found.old, found.mixed) == (("d",), True, True)

    def test_what_has_landed_whole_is_forgotten(self) -> None:
        """And what held a change that left the line."""
        assert rebase((passed("ab"), failed("b")), ("a", "b")) == ()
        assert forget((failed("ab"), passed("c")), ("a",)) == (passed("c"),)


class TestRates:
    def test_tries_follow_what_was_seen(self) -> None:
        """Steady checks get none more; a change's own failures do not make them look steady."""
        assert [tries(1, measure(landed=9, rejected=0, runs=100, flaked=each), 0) for each in (0, 4, 11, 31, 53)] == [
            2,
            2,
            4,
            10,
            16,
        ]
        rates = measure(landed=0, rejected=0, runs=12, flaked=2)
        assert tries(1, rates, 8) > tries(1, rates, 0)
        assert tries(0, measure(landed=0, rejected=0, runs=0, flaked=0), 0) == 1

    def test_a_few_failures_may_be_chance_until_checks_are_known(self) -> None:
        """In a new project two are; after many steady checks they are not; ten are not even where checks flake."""
        new, steady, flaky = (
            Rates(bad=0.1, flaky=0.1, runs=runs, flaked=each) for runs, each in ((2, 0), (40, 0), (99, 30))
        )
        assert [may_be_chance(rates, 2) for rates in (new, steady, flaky)] == [True, False, True]
        assert not may_be_chance(flaky, 10)

    def test_they_follow_what_happened(self) -> None:
        """From an ordinary project's to one's own."""
        start = measure(landed=0, rejected=0, runs=0, flaked=0)
        good = measure(landed=500, rejected=0, runs=500, flaked=0)
        bad = measure(landed=50, rejected=50, runs=100, flaked=10)

        assert good.bad < 0.001 < start.bad < 0.1 < bad.bad
        assert good.flaky < start.flaky < bad.flaky
        assert bad.bad == pytest.approx(0.5, abs=0.05)

    def test_a_failure_of_what_landed_was_chance(self) -> None:
        """Only if it was the beginning of the landed stack, on the same main."""
        trials = (failed("a"), failed("b"), passed("ab"), Trial(stack=("a",), verdict=TrialVerdict.FAILED, old=True))

        assert flakes(trials, ("a", "b")) == 1
