"""Comments on a change: what blocks, what settles it, who may, and what a reviewer's last words hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core import policy
from windlass.core.errors import BadInput, NotAllowed
from windlass.core.gate import reviews
from windlass.core.gate.reviews import Comment, compose, read_report
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.change import Change
from windlass.core.nouns.message import Delivery, Kind, MailItem, Message, Opinion, Remark
from windlass.core.nouns.run import Cause, Outcome, Run
from windlass.core.settings.schema import Limits

CHANGE = Change(id="c3", project="p", branch="work/otter", head="new", title="Fix it", agent="otter", turn=5)
REMARK = Remark(head="new", turn=5, file="a.py", line=7, blocking=True)
BLOCKS = Message(
    id="m1", channel="change/c3", sender="fox", to=("otter",), body="No.", kind=Kind.COMMENT, remark=REMARK
)
SUGGESTS = replace(BLOCKS, id="m2", remark=replace(REMARK, blocking=False))
SETTLES = replace(BLOCKS, id="m3", kind=Kind.ANSWER, reply_to="m1", remark=None)
SUMS_UP = replace(BLOCKS, id="m4", kind=Kind.REPORT, remark=Remark(head="new", turn=5, opinion=Opinion.APPROVE))


class TestOpen:
    def test_a_blocking_comment_is_open_until_it_is_settled(self) -> None:
        """A suggestion never is; an answer to something else settles nothing."""
        assert reviews.open_blocking([BLOCKS, SUGGESTS]) == [BLOCKS]
        assert reviews.open_blocking([BLOCKS, SETTLES]) == []
        assert reviews.open_blocking([BLOCKS, replace(SETTLES, reply_to="m2")]) == [BLOCKS]

    @pytest.mark.parametrize("kind", [each for each in Kind if each is not Kind.ANSWER])
    def test_only_a_settling_settles(self, kind: Kind) -> None:
        """Whatever else is said in reply, by whom it may be."""
        assert reviews.open_blocking([BLOCKS, replace(SETTLES, kind=kind)]) == [BLOCKS]

    def test_what_keeps_a_change_from_landing_is_said(self) -> None:
        """First what blocks, then who is still looking, then that nobody has looked."""
        assert reviews.objection(CHANGE, [BLOCKS, replace(BLOCKS, id="m9")], wanted=True) == (
            "m1 by fox blocks it: No. (and 1 more)"
        )
        assert reviews.objection(CHANGE, [], wanted=True, reviewers=["fox"]) == "fox reviews it"
        assert reviews.objection(CHANGE, [], wanted=True) == "it waits for its review"
        assert reviews.objection(CHANGE, [SUGGESTS], wanted=False) == ""

    def test_a_review_counts_for_the_commit_that_was_looked_at(self) -> None:
        """A later commit has to be looked at, too."""
        assert reviews.objection(CHANGE, [SUMS_UP], wanted=True) == ""
        assert reviews.objection(replace(CHANGE, head="newer"), [SUMS_UP], wanted=True) == "it waits for its review"

    def test_a_reviewer_approves_if_it_leaves_nothing_open(self) -> None:
        """What others have said is theirs."""
        assert reviews.opinion("fox", [BLOCKS]) is Opinion.CHANGES
        assert reviews.opinion("fox", [BLOCKS, SETTLES, SUGGESTS]) is Opinion.APPROVE
        assert reviews.opinion("owl", [BLOCKS]) is Opinion.APPROVE

    def test_an_answer_is_passed_on_once_for_each_time_the_change_is_brought(self) -> None:
        """Not before its author has brought it again, and not twice."""
        again, passed = replace(CHANGE, turn=9), replace(SUGGESTS, reply_to="m1", sender="otter")
        passed = replace(passed, remark=Remark(head="newer", turn=9))

        assert not reviews.brought_again(CHANGE, BLOCKS, [BLOCKS])
        assert reviews.brought_again(again, BLOCKS, [BLOCKS])
        assert not reviews.brought_again(again, BLOCKS, [BLOCKS, passed])
        assert reviews.rounds(BLOCKS, [BLOCKS, passed], "otter") == 1
        assert reviews.rounds(BLOCKS, [BLOCKS, replace(passed, sender="fox")], "otter") == 0


class TestWho:
    @pytest.mark.parametrize(
        ("who", "reviewing", "blocking", "allowed"),
        [
            ("human", False, True, True),
            ("fox", True, True, True),
            ("fox", False, False, False),
            ("otter", False, False, True),
            ("otter", False, True, False),
            ("otter", True, True, False),
        ],
    )
    def test_may_comment(self, who: str, reviewing: bool, blocking: bool, allowed: bool) -> None:
        """People and reviewers may; an author may answer, and never block, even if it was asked to review."""
        if allowed:
            reviews.check_comment(who, CHANGE, reviews=reviewing, blocking=blocking)
        else:
            with pytest.raises(NotAllowed, match=who):
                reviews.check_comment(who, CHANGE, reviews=reviewing, blocking=blocking)

    @pytest.mark.parametrize(("who", "allowed"), [("human", True), ("fox", True), ("owl", False), ("otter", False)])
    def test_may_settle(self, who: str, allowed: bool) -> None:
        """Who made it, or a person."""
        if allowed:
            reviews.check_settling(who, CHANGE, BLOCKS)
        else:
            with pytest.raises(NotAllowed):
                reviews.check_settling(who, CHANGE, BLOCKS)

    def test_an_author_never_settles_its_own(self) -> None:
        """Not even a comment that it made itself."""
        with pytest.raises(NotAllowed, match="wrote c3"):
            reviews.check_settling("otter", CHANGE, replace(BLOCKS, sender="otter"))


class TestCompose:
    @pytest.mark.parametrize("text", ["[BLOCKING] No.", "[blocking]: No.", "  [BLOCKING]\nNo."])
    def test_the_mark_at_the_head_blocks(self, text: str) -> None:
        """It is no part of the words."""
        assert compose(text) == Comment(body="No.", blocking=True)

    def test_elsewhere_the_mark_is_a_word(self) -> None:
        """Someone may speak about it."""
        assert not compose("This is not [BLOCKING].").blocking

    @pytest.mark.parametrize(
        "given",
        [
            {"body": " "},
            {"body": "[BLOCKING] "},
            {"body": "x" * 30_000},
            {"body": "x", "line": 3},
            {"body": "x", "file": "a", "line": -1},
            {"body": "x", "file": "a", "line": 10**12},
            {"body": "x", "file": "a\nb"},
            {"body": "x", "file": "a\0"},
        ],
    )
    def test_what_is_no_comment_is_refused(self, given: dict[str, object]) -> None:
        """With a sentence that says what is missing, and a hint."""
        with pytest.raises(BadInput) as refused:
            compose(**given)  # type: ignore[arg-type] # built by the table above
        assert refused.value.hint


class TestReport:
    def test_marked_paragraphs_are_comments(self) -> None:
        """With or without a place, in a list or not, over several lines; the rest is the summary."""
        report = read_report(
            "I looked.\n\n[BLOCKING] src/login.py:12 This loses\nthe lock.\n- [SUGGESTION] `b.py:3`: Rename it.\n"
            "* [Blocking]: There is no test.\n\nAll in all fine.\n[RESOLVED] m12, it is there.\n"
        )

        assert report.comments == (
            Comment(body="This loses\nthe lock.", file="src/login.py", line=12, blocking=True),
            Comment(body="Rename it.", file="b.py", line=3),
            Comment(body="There is no test.", blocking=True),
        )
        assert report.settled == ("m12",)

    @pytest.mark.parametrize(
        "text", ["", "Fine.", "I found nothing [BLOCKING].", "[RESOLVED]", "[RESOLVED] it", "[NOTE] x"]
    )
    def test_without_a_mark_there_is_none(self, text: str) -> None:
        """Words alone are the summary."""
        assert read_report(text) == reviews.Report()

    @given(
        st.text()
        | st.lists(st.sampled_from(["[BLOCKING]", "[RESOLVED] m1", " ", "\n", "a.py:1", "x", ":"])).map("".join)
    )
    def test_any_text_can_be_read(self, text: str) -> None:
        """Whatever an agent wrote, each comment has words and a place that can be."""
        for comment in read_report(text).comments:
            assert comment.body.strip()
            assert compose(comment.body, file=comment.file, line=comment.line)


def test_what_is_only_good_to_know_wakes_nobody() -> None:
    """A suggestion waits; what blocks, a reply, or anything else beside it wakes."""
    agent = Agent(name="otter", project="p", provider="command")
    run = Run(id="r1", agent="otter", task="t1", number=1, provider="command", cause=Cause.TASK, outcome=Outcome.DONE)

    def wakes(*mail: Message) -> bool:
        items = [MailItem(each, Delivery(message=each.id, reader="otter")) for each in mail]
        found = policy.decide_wake(agent, [run], items, Limits(), past=[run], idle=False, resumes=False, now=0.0)
        return isinstance(found, policy.Wake)

    assert not wakes(SUGGESTS)
    assert not wakes(SUGGESTS, replace(SUGGESTS, id="m5"))
    assert wakes(BLOCKS)
    assert wakes(SUGGESTS, BLOCKS)
    assert wakes(replace(SUGGESTS, reply_to="m1"))


@pytest.mark.parametrize("said", ["[BLOCKING] Why?", "[blocking] [BLOCKING]: Why?", "[BLOCKING][BLOCKING]\nWhy?"])
def test_a_mark_that_is_said_twice_is_said_once(said: str) -> None:
    """What is left are the words; a comment of nothing but marks has none."""
    assert compose(said) == Comment(body="Why?", blocking=True)
    with pytest.raises(BadInput, match="no words"):
        compose("[BLOCKING][BLOCKING][BLOCKING]")
