"""What an ended run means, how mail reaches an agent, and what a status is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from windlass.core import policy
from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.change import Change, ChangeState, Hold
from windlass.core.nouns.message import Delivery, Kind, MailItem, Message
from windlass.core.nouns.run import Cause, Outcome, Run, RunTrouble, TroubleKind
from windlass.core.nouns.task import Task, TaskState
from windlass.core.policy import EndedRun, Then, Wait, Wake
from windlass.core.runs import retry_rules
from windlass.core.runs.provider import DoneSign
from windlass.core.runs.signal import BadSignal, Question, SaidDone, SaidError, SaidQuestions
from windlass.core.runs.workdir import WorktreeState
from windlass.core.settings.schema import Limits

LIMITS = Limits(retries=1, reminders=1)
CLEAN = WorktreeState(head="abc", branch="work/otter", commits=2)
AGENT = Agent(name="otter", project="p", provider="scripted")
RUN = Run(id="r1", agent="otter", task="t1", number=1, provider="scripted", session="s1")
TASK = Task(id="t1", project="p", title="Fix it", agent="otter")
NOW = 1_000.0
REMINDER = Message(id="m1", channel="main", sender="system", to=("otter",), body="Go on.", kind=Kind.REMINDER)
CHANGE = Change(id="c1", project="p", branch="work/otter", head="abc", title="Fix it", agent="otter", task="t1")


def an_ending(**given: Any) -> EndedRun:
    known: dict[str, Any] = {"exit_code": 0, "signal": SaidDone("Fixed."), "tree": CLEAN, "branch": "work/otter"}
    return EndedRun(**(known | given))


class TestJudge:
    def test_done_with_commits_and_a_clean_tree_lands(self) -> None:
        """The word and the tree agree: the change is queued."""
        verdict = policy.judge(an_ending(), LIMITS)

        assert (verdict.outcome, verdict.then, verdict.result) == (Outcome.DONE, Then.LAND, "Fixed.")
        assert verdict.evidence == ("exit code 0", "signal: done", "2 commits on work/otter", "clean tree")

    def test_done_without_commits_has_nothing_to_land(self) -> None:
        """A finished task that changed nothing is finished, and says so."""
        verdict = policy.judge(an_ending(tree=replace(CLEAN, commits=0)), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.DONE, Then.FINISH)
        assert "nothing to land" in verdict.reason

    @pytest.mark.parametrize("left", [{"changed": ("a.py",)}, {"untracked": ("new.py",)}])
    def test_done_with_files_left_over_is_reminded_of_them(self, left: dict[str, Any]) -> None:
        """Done is not believed while files are not committed; the agent is told which."""
        verdict = policy.judge(an_ending(tree=replace(CLEAN, **left)), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.FAILED, Then.REMIND)
        assert next(iter(left.values()))[0] in verdict.note

    def test_changed_files_left_after_the_reminder_fail_the_task(self) -> None:
        """Someone who was reminded and still left tracked changes is not done."""
        verdict = policy.judge(an_ending(tree=replace(CLEAN, changed=("a.py",)), tries=1), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.FAILED, Then.FAIL)

    def test_untracked_files_left_after_the_reminder_are_accepted_and_named(self) -> None:
        """A stray file that the agent does not want committed does not hold up its commits."""
        verdict = policy.judge(an_ending(tree=replace(CLEAN, untracked=("scratch.txt",)), tries=1), LIMITS)

        assert verdict.then is Then.LAND
        assert "untracked: scratch.txt" in verdict.evidence

    def test_done_on_another_branch_is_not_done(self) -> None:
        """Commits that are not on the agent's own branch would be lost."""
        verdict = policy.judge(an_ending(tree=replace(CLEAN, branch="elsewhere")), LIMITS)

        assert verdict.then is Then.REMIND
        assert "work/otter" in verdict.note

    @pytest.mark.parametrize("given", [{}, {"joins": True}, {"signal": None, "claim": DoneSign.EXIT}])
    def test_a_refused_commit_keeps_all_of_the_task_from_landing(self, given: dict[str, Any]) -> None:
        """The agent learns why, also if it was reminded of something else before; then the task fails with it."""
        tree = replace(CLEAN, refused="work/otter is at commit abc, which can't be taken in: badName")
        first, second, last = (policy.judge(an_ending(tree=tree, tries=n, **given), LIMITS) for n in range(3))

        assert {first.then, second.then} == {Then.REMIND}
        assert "badName" in first.note and "badName" in second.note
        assert (last.outcome, last.then) == (Outcome.FAILED, Then.FAIL) and "badName" in last.reason

    def test_a_commit_that_one_of_several_repositories_refuses_is_named_with_it(self) -> None:
        """Nothing lands anywhere, and the reason says where the trouble is."""
        trees = {"api": CLEAN, "web": replace(CLEAN, refused="work/otter is gone from the worktree")}
        verdict = policy.judge(an_ending(tree=policy.joined(trees, "work/otter")), LIMITS)

        assert verdict.then is Then.REMIND and "in web, work/otter is gone" in verdict.note

    def test_what_no_snapshot_holds_is_reminded_of(self) -> None:
        """A file that is neither committed nor saved is left over, with the reason; a tracked one keeps all back."""
        hole = "a.bin: larger than 50 MB"
        new = replace(CLEAN, unsaved=(hole,), holes=(hole,))
        assert hole in policy.judge(an_ending(tree=new), LIMITS).note
        assert policy.judge(an_ending(tree=new, tries=1), LIMITS).then is Then.LAND
        tracked = replace(new, changed=("a.bin",))
        assert policy.judge(an_ending(tree=tracked, tries=1), LIMITS).then is Then.FAIL

    def test_questions_wait_for_an_answer(self) -> None:
        """Questions end the run and keep their text."""
        asked = SaidQuestions((Question("q1", "Which port?"),))
        verdict = policy.judge(an_ending(signal=asked), LIMITS)

        assert (verdict.outcome, verdict.then, verdict.questions) == (Outcome.ASKED, Then.ASK, asked.questions)

    def test_an_error_signal_fails_even_with_exit_code_0(self) -> None:
        """What the agent says about its own failure counts more than its exit code."""
        verdict = policy.judge(an_ending(signal=SaidError("no network")), LIMITS)

        assert (verdict.outcome, verdict.then, verdict.reason) == (Outcome.FAILED, Then.FAIL, "no network")

    @pytest.mark.parametrize(
        ("given", "tries", "then"),
        [
            ({"signal": None}, 0, Then.REMIND),
            ({"signal": None}, 1, Then.FAIL),
            ({"signal": None, "exit_code": 137}, 0, Then.REMIND),
            ({"signal": None, "exit_code": 137}, 1, Then.FAIL),
            ({"signal": None, "exit_code": None}, 0, Then.REMIND),
            ({"signal": BadSignal("it is empty")}, 0, Then.REMIND),
            ({"signal": BadSignal("it is empty")}, 1, Then.FAIL),
        ],
    )
    def test_silence_a_crash_and_a_bad_signal_are_tried_again_a_limited_number_of_times(
        self, given: dict[str, Any], tries: int, then: Then
    ) -> None:
        """An agent gets another run after each of them, but not for ever."""
        verdict = policy.judge(an_ending(tries=tries, **given), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.CRASHED, then)
        assert verdict.reason

    def test_a_plain_command_that_exits_0_and_committed_is_done(self) -> None:
        """For a command, exit code 0 is the word; the tree is still the evidence."""
        assert policy.judge(an_ending(signal=None, claim=DoneSign.EXIT), LIMITS).then is Then.LAND
        dirty = replace(CLEAN, changed=("a.py",))
        assert policy.judge(an_ending(signal=None, claim=DoneSign.EXIT, tree=dirty), LIMITS).then is Then.REMIND
        nothing = replace(CLEAN, commits=0)
        assert (
            policy.judge(an_ending(signal=None, claim=DoneSign.EXIT, tree=nothing), LIMITS).outcome is Outcome.CRASHED
        )

    def test_what_we_stopped_is_stopped_whatever_it_says(self) -> None:
        """Some programs report success when they are ended by a signal; we remember that we sent it."""
        verdict = policy.judge(an_ending(stopping="stopped by hand"), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.STOPPED, Then.REST)

    def test_a_lost_worktree_fails_the_run(self) -> None:
        """Without its worktree nothing the agent says can be checked."""
        verdict = policy.judge(an_ending(tree=None), LIMITS)

        assert (verdict.outcome, verdict.then) == (Outcome.FAILED, Then.FAIL)
        assert "worktree lost" in verdict.evidence
        assert "branch is kept" not in verdict.reason
        assert "is kept: work/otter at abc" in policy.judge(an_ending(tree=None, kept=("abc",)), LIMITS).reason


def wake(agent: Agent, runs: Sequence[Run], mail: Sequence[Message], *, resumes: bool, now: float) -> Wake | Wait:
    items = [MailItem(each, Delivery(message=each.id, reader=agent.id)) for each in mail]
    return policy.decide_wake(agent, runs, items, LIMITS, past=runs, idle=False, resumes=resumes, now=now)


class TestWake:
    def test_an_agent_that_can_resume_goes_on_in_its_session(self) -> None:
        """The next run gets the session of the last one, if the provider can use it."""
        ended = replace(RUN, outcome=Outcome.DONE)

        assert wake(AGENT, [ended], [], resumes=True, now=NOW) == Wake("s1")
        assert wake(AGENT, [ended], [], resumes=False, now=NOW) == Wake("")

    def test_a_conversation_that_became_too_long_is_left_for_a_new_one(self) -> None:
        """Resuming it would meet the same limit at once."""
        ended = replace(RUN, outcome=Outcome.CRASHED, trouble=RunTrouble(TroubleKind.CONTEXT), ended_at=NOW)

        assert wake(AGENT, [ended], [], resumes=True, now=NOW) == Wake("")

    def test_an_account_without_quota_rests_until_its_reset(self) -> None:
        """Then the mail that waits wakes the agent by itself."""
        ended = replace(
            RUN, outcome=Outcome.EXHAUSTED, trouble=RunTrouble(TroubleKind.QUOTA, until=NOW + 600), ended_at=NOW
        )

        assert wake(AGENT, [ended], [REMINDER], resumes=True, now=NOW + 599) == Wait(
            "rests after the usage limit is reached", NOW + 600
        )
        assert wake(AGENT, [ended], [REMINDER], resumes=True, now=NOW + 600) == Wake("s1")

    def test_each_crash_makes_the_rest_longer(self) -> None:
        """The first retry is at once; what fails again and again costs less and less."""
        crash = replace(RUN, outcome=Outcome.CRASHED, ended_at=NOW)
        rests = [wake(AGENT, [crash] * count, [REMINDER], resumes=True, now=NOW) for count in (1, 2, 3)]

        assert rests[0] == Wake("s1")
        assert [rest.until for rest in rests[1:] if isinstance(rest, Wait)] == [NOW + 5, NOW + 10]

    @pytest.mark.parametrize("kind", [TroubleKind.AUTH, TroubleKind.BILLING])
    def test_what_a_person_must_mend_waits_for_the_person(self, kind: TroubleKind) -> None:
        """Mail alone does not start a run that would fail alike; a person's word does."""
        ended = replace(RUN, outcome=Outcome.FAILED, trouble=RunTrouble(kind), ended_at=NOW)
        answer = replace(REMINDER, sender="human", sent_at=NOW + 1)

        assert isinstance(wake(AGENT, [ended], [REMINDER], resumes=True, now=NOW + 9e9), Wait)
        assert wake(AGENT, [ended], [REMINDER, answer], resumes=True, now=NOW + 1) == Wake("s1")

    def test_a_person_who_speaks_is_never_made_to_wait(self) -> None:
        """Rests are for retries, not for people."""
        crash = replace(RUN, outcome=Outcome.CRASHED, ended_at=NOW)
        said = replace(REMINDER, sender="human", sent_at=NOW)

        assert wake(AGENT, [crash] * 5, [said], resumes=True, now=NOW) == Wake("s1")

    def test_a_clock_that_was_set_back_makes_nobody_wait_longer(self) -> None:
        """An end that lies in the future is no reason to rest."""
        crash = replace(RUN, outcome=Outcome.CRASHED, ended_at=NOW + 86_400)

        assert wake(AGENT, [crash] * 5, [REMINDER], resumes=True, now=NOW) == Wake("s1")

    @pytest.mark.parametrize(
        ("agent", "latest"),
        [
            (AGENT, RUN),
            (AGENT, replace(RUN, outcome=Outcome.STOPPED)),
            (replace(AGENT, attended=True), replace(RUN, outcome=Outcome.DONE)),
            (replace(AGENT, retired_at=1.0), replace(RUN, outcome=Outcome.DONE)),
        ],
    )
    def test_who_is_busy_stopped_attended_or_retired_is_not_woken(self, agent: Agent, latest: Run | None) -> None:
        """Mail waits, with a reason."""
        answer = wake(agent, [latest] if latest else [], [], resumes=True, now=NOW)

        assert isinstance(answer, Wait)
        assert answer.reason

    def test_only_reminders_make_a_run_a_reminder(self) -> None:
        """A run for reminders alone has that cause; any other message makes it mail."""
        reminder = Message(id="m1", channel="main", sender="system", to=("otter",), body="Go on.", kind=Kind.REMINDER)

        assert policy.cause_of([reminder], TASK) is Cause.REMINDER
        assert policy.cause_of([reminder, replace(reminder, kind=Kind.SAY)], TASK) is Cause.MAIL


class TestTrouble:
    @pytest.mark.parametrize(
        ("kind", "outcome", "then"),
        [
            (TroubleKind.THROTTLE, Outcome.FAILED, Then.REMIND),
            (TroubleKind.OVERLOAD, Outcome.FAILED, Then.REMIND),
            (TroubleKind.QUOTA, Outcome.EXHAUSTED, Then.REMIND),
            (TroubleKind.AUTH, Outcome.FAILED, Then.ASK),
            (TroubleKind.BILLING, Outcome.FAILED, Then.ASK),
            (TroubleKind.CONTEXT, Outcome.CRASHED, Then.REMIND),
            (TroubleKind.ERROR, Outcome.CRASHED, Then.REMIND),
            (TroubleKind.STALL, Outcome.CRASHED, Then.REMIND),
            (TroubleKind.RUNAWAY, Outcome.FAILED, Then.FAIL),
        ],
    )
    def test_each_trouble_has_its_own_next_step(self, kind: TroubleKind, outcome: Outcome, then: Then) -> None:
        """Waiting, asking a person, a new conversation, giving up: it depends on what went wrong."""
        verdict = policy.judge(an_ending(signal=None, exit_code=1, trouble=RunTrouble(kind, "its words")), LIMITS)

        assert (verdict.outcome, verdict.then) == (outcome, then)
        assert "its words" in verdict.reason
        assert any("its words" in each for each in verdict.evidence)

    def test_exit_code_0_does_not_hide_a_trouble(self) -> None:
        """Some programs exit with 0 although the model refused them."""
        verdict = policy.judge(
            an_ending(signal=None, claim=DoneSign.EXIT, trouble=RunTrouble(TroubleKind.AUTH, "401")), LIMITS
        )

        assert verdict.then is Then.ASK

    def test_a_signal_counts_more_than_a_trouble_on_the_way(self) -> None:
        """Who said done and has committed is done, whatever its program said at the end."""
        assert policy.judge(an_ending(trouble=RunTrouble(TroubleKind.OVERLOAD)), LIMITS).then is Then.LAND

    def test_a_busy_server_is_tried_more_often_than_a_crash(self) -> None:
        """Each has its own count, so that neither uses up the other's tries."""
        busy = RunTrouble(TroubleKind.THROTTLE)

        assert policy.judge(an_ending(signal=None, trouble=busy, waits=9, tries=5), LIMITS).then is Then.REMIND
        assert policy.judge(an_ending(signal=None, trouble=busy, waits=10), LIMITS).then is Then.FAIL
        assert policy.judge(an_ending(signal=None, exit_code=1, waits=9), LIMITS).then is Then.REMIND


class TestPersistent:
    def test_it_gets_more_tries_than_others(self) -> None:
        """It is there to stay; but not for ever, and never for what a person must mend."""
        crash = an_ending(signal=None, exit_code=1, patience=5)

        assert policy.judge(replace(crash, tries=5), LIMITS).then is Then.REMIND
        assert policy.judge(replace(crash, tries=6), LIMITS).then is Then.FAIL
        assert policy.judge(replace(crash, trouble=RunTrouble(TroubleKind.AUTH)), LIMITS).then is Then.ASK

    def test_it_is_idle_when_its_task_is_done(self) -> None:
        """Completed would say that nothing more comes of it."""
        ended, task = replace(RUN, outcome=Outcome.DONE), replace(TASK, state=TaskState.DONE)

        assert policy.status_of(ended, task, None, persistent=True) is Status.IDLE
        assert policy.status_of(ended, task, None) is Status.COMPLETED


class TestHalt:
    def test_silence_length_and_calls_have_limits_and_0_is_none(self) -> None:
        """What says nothing stalled; what goes on and on ran away."""
        well = retry_rules.RunActivity(age=60, silent=60, calls=10)
        limits = Limits(silent_minutes=10, run_minutes=60, calls=100)

        assert retry_rules.decide_halt(well, limits) is None
        for activity, kind in (
            (replace(well, silent=601), TroubleKind.STALL),
            (replace(well, age=3601), TroubleKind.RUNAWAY),
            (replace(well, calls=101), TroubleKind.RUNAWAY),
        ):
            trouble = retry_rules.decide_halt(activity, limits)
            assert trouble is not None and trouble.kind is kind
            assert retry_rules.decide_halt(activity, Limits(silent_minutes=0, run_minutes=0, calls=0)) is None


class TestTries:
    def test_only_bad_runs_at_the_end_count(self) -> None:
        """A run that ended well starts the count anew."""
        bad, good = replace(RUN, outcome=Outcome.CRASHED), replace(RUN, outcome=Outcome.DONE)

        assert retry_rules.tries_before([]) == 0
        assert retry_rules.tries_before([bad, bad, good]) == 0
        assert retry_rules.tries_before([good, bad, replace(bad, outcome=Outcome.FAILED)]) == 2

    def test_busy_servers_are_counted_apart_and_a_person_starts_anew(self) -> None:
        """A throttle is no try; what came before a person was asked is another story."""
        bad = replace(RUN, outcome=Outcome.CRASHED)
        busy = replace(RUN, outcome=Outcome.FAILED, trouble=RunTrouble(TroubleKind.OVERLOAD))
        asked = replace(RUN, outcome=Outcome.FAILED, trouble=RunTrouble(TroubleKind.AUTH))

        assert (retry_rules.tries_before([bad, busy, busy]), retry_rules.waits_before([bad, busy, busy])) == (1, 2)
        assert retry_rules.tries_before([bad, bad, asked, bad]) == 1


@pytest.mark.parametrize(
    ("latest", "task", "change", "expected"),
    [
        (None, TASK, None, Status.IDLE),
        (None, replace(TASK, state=TaskState.CANCELLED), None, Status.STOPPED),
        (RUN, TASK, None, Status.RUNNING),
        (replace(RUN, outcome=Outcome.DONE), replace(TASK, state=TaskState.LANDING), CHANGE, Status.IDLE),
        (
            replace(RUN, outcome=Outcome.DONE),
            replace(TASK, state=TaskState.LANDING),
            replace(CHANGE, state=ChangeState.HELD, hold=Hold.CHECKS),
            Status.WAITING,
        ),
        (replace(RUN, outcome=Outcome.DONE), replace(TASK, state=TaskState.DONE), None, Status.COMPLETED),
        (replace(RUN, outcome=Outcome.ASKED), replace(TASK, state=TaskState.WAITING), None, Status.WAITING),
        (replace(RUN, outcome=Outcome.CRASHED), replace(TASK, state=TaskState.ACTIVE), None, Status.IDLE),
        (replace(RUN, outcome=Outcome.CRASHED), replace(TASK, state=TaskState.FAILED), None, Status.ERROR),
        (replace(RUN, outcome=Outcome.STOPPED), replace(TASK, state=TaskState.CANCELLED), None, Status.STOPPED),
    ],
)
def test_status_is_derived_from_run_task_and_change(
    latest: Run | None, task: Task, change: Change | None, expected: Status
) -> None:
    """A person sees what the rows say, and nothing else is stored."""
    assert policy.status_of(latest, task, change) is expected


@pytest.mark.parametrize(
    ("live", "expected"),
    [({}, True), ({"p": 1}, True), ({"p": 2}, False), ({"q": 2}, True), ({"q": 3}, False), ({"p": 1, "q": 2}, False)],
)
def test_a_run_starts_only_within_the_homes_and_the_projects_limit(live: dict[str, int], expected: bool) -> None:
    """The home counts all runs, a project its own; the tighter of the two decides."""
    assert policy.may_start("p", live, home=Limits(runs=3), own=Limits(runs=2)) is expected
