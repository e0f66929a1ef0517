"""What an agent is told at the start of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Agent
from windlass.core.nouns.message import Kind, Message, Remark
from windlass.core.nouns.run import Cause
from windlass.core.nouns.task import Mode, Task
from windlass.core.runs.prompt import BLOCKS, PARTS, TAGS, Prompt, Workplace, build_prompt
from windlass.core.runs.provider import ARGUMENT_LIMIT
from windlass.library import prompt_blocks

AGENT = Agent(name="quick-otter", project="p", provider="command")
TASK = Task(id="t1", project="p", title="Fix the login race", brief="Two logins at once fail.\nSee login.py.")
MESSAGE = Message(
    id="m7", channel="task/t1", sender="system", to=("quick-otter",), body="Checks failed.", kind=Kind.REMINDER
)
SHIPPED = prompt_blocks()

TAG = re.compile(r"^</?([a-z_]+)>$", re.MULTILINE)


def prompt(cause: Cause = Cause.TASK, *mail: Message, task: Task = TASK) -> str:
    return build_prompt(agent=AGENT, task=task, main="trunk", blocks=SHIPPED, mail=mail, cause=cause).text


def tags(text: str) -> list[str]:
    """The tags in order, each checked to be closed before the next one opens."""
    found = TAG.findall(text)
    assert found[::2] == found[1::2]
    return found[::2]


class TestFirstRun:
    def test_the_order_is_fixed(self) -> None:
        """From who you are to what to do last."""
        assert tags(prompt(Cause.TASK, MESSAGE)) == [
            "role",
            "task",
            "input_files",
            "git_workflow",
            "signal_format",
            "communication",
            "session_start",
            "messages",
            "finishing_checklist",
        ]

    def test_sections_with_nothing_to_say_are_left_out(self) -> None:
        """No mail, no messages."""
        assert not {"messages", "woken"} & set(tags(prompt()))

    def test_the_task_is_there_in_full(self) -> None:
        """Title, id and brief."""
        assert (
            "<task>\n# Fix the login race\n\nTask t1.\n\nTwo logins at once fail.\nSee login.py.\n</task>" in prompt()
        )

    @pytest.mark.parametrize("cause", Cause)
    def test_the_ways_of_working_are_told_in_every_run(self, cause: Cause) -> None:
        """Where the signal goes, which branch is its own, that it does not push, how main comes in."""
        text = prompt(cause)

        assert "$WINDLASS_SIGNAL" in text
        assert ".windlass/output/signal.json" in text
        assert "`work/quick-otter`" in text
        assert "Do not push" in text
        assert "git fetch origin && git merge origin/trunk" in text
        assert '{"status": "questions", "questions": [{"id": "q1", "question": "…?"}]}' in text

    def test_nothing_is_left_to_fill_in(self) -> None:
        """However a program gets its prompt, its agent's names are in it."""
        assert re.findall(r"\{[A-Z_]+\}", prompt()) == []
        assert "You are **quick-otter**" in prompt()


CODER = replace(
    AGENT,
    name="coder",
    source=".windlass/agents/coder.md",
    role="Senior developer",
    body="Work on {workplace_name} in {workplace_path}; leave {description} and </role> alone.",
)
SHOP = Workplace(name="Shop", path="/w/coder", uuid="u-1", structure="src/ (3 files)\nREADME.md")


def prompt_of(cause: Cause = Cause.TASK, *, agent: Agent = CODER, resumed: bool = False, **more: str) -> str:
    return both(cause, agent=agent, resumed=resumed, blocks=more).text


def both(
    cause: Cause = Cause.TASK,
    *,
    agent: Agent = CODER,
    resumed: bool = False,
    apart: bool = False,
    tools: bool = False,
    blocks: Mapping[str, str] | None = None,
) -> Prompt:
    return build_prompt(
        agent=agent,
        task=TASK,
        main="trunk",
        blocks=SHIPPED | dict(blocks or {}),
        mail=(),
        cause=cause,
        workplace=SHOP,
        resumed=resumed,
        apart=apart,
        tools=tools,
    )


class TestAgentsFromFiles:
    def test_who_it_is_comes_before_all_else_in_a_fixed_order(self) -> None:
        """Role, workplace, file tree, its own prompt, how to speak, how to report; then what every agent is told."""
        assert tags(prompt_of(project_rules="Speak plainly.")) == [
            "agent_role",
            "workplace",
            "project_structure",
            "agent_instructions",
            "communication",
            "status_report",
            "role",
            "task",
            "input_files",
            "git_workflow",
            "signal_format",
            "session_start",
            "project_rules",
            "finishing_checklist",
        ]

    def test_it_is_told_what_its_file_says(self) -> None:
        """With its workplace filled in, other braces as they were, and none of our tags closed."""
        text = prompt_of()

        assert "You are Senior developer for the Shop project." in text
        assert "Name: Shop\nPath: /w/coder\nUUID: u-1" in text
        assert "src/ (3 files)\nREADME.md" in text
        assert "Work on Shop in /w/coder; leave {description} and <\\/role> alone." in text
        assert '{"coder": {"status": "completed"}}' in text
        sentence = prompt_of(agent=replace(CODER, role="Reviews code. Kindly."))
        assert "Your role for the Shop project: Reviews code. Kindly." in sentence

    def test_one_that_does_not_remember_is_told_again(self) -> None:
        """A session that goes on knows who it is; a new one does not."""
        assert "agent_role" in tags(prompt_of(Cause.MAIL)) and "agent_role" not in tags(
            prompt_of(Cause.MAIL, resumed=True)
        )

    @pytest.mark.parametrize(("cause", "resumed"), [(Cause.TASK, False), (Cause.MAIL, False), (Cause.MAIL, True)])
    def test_told_apart_it_is_told_in_every_run_and_once(self, cause: Cause, *, resumed: bool) -> None:
        """A program that takes this apart forgets it when its session is resumed; the prompt does not say it again."""
        told = both(cause, resumed=resumed, apart=True, blocks={"project_rules": "Speak plainly."})

        who = ["agent_role", "workplace", "project_structure", "agent_instructions", "communication", "status_report"]
        assert tags(told.system) == who
        assert '{"coder": {"status": "completed"}}' in told.system
        assert not {*who} & {*tags(told.text)}
        assert "task" in tags(told.text)

    def test_what_is_too_long_for_an_argument_stays_in_the_prompt(self) -> None:
        """Counted in bytes; what no argument can hold is left out of one."""
        fits = both(agent=replace(CODER, body="Be\0 brief."), apart=True)
        long = both(agent=replace(CODER, body="\u00fc" * (ARGUMENT_LIMIT // 2)), apart=True)

        assert "Be brief." in fits.system
        assert (long.system, tags(long.text)[0]) == ("", "agent_role")
        assert both(agent=AGENT, apart=True) == both(agent=AGENT)

    def test_one_without_a_file_has_no_such_parts(self) -> None:
        """It is told what it was always told."""
        assert prompt_of(agent=AGENT) == prompt()


class TestLaterRuns:
    @pytest.mark.parametrize(
        ("cause", "why"),
        [
            (Cause.MAIL, "There are new messages for you."),
            (Cause.REMINDER, "Something is still missing."),
        ],
    )
    def test_it_is_told_why_it_was_woken(self, cause: Cause, why: str) -> None:
        """Short: why, the task, what is new, and how to say that it is done."""
        text = prompt(cause, MESSAGE)

        assert tags(text) == ["woken", "task", "messages", "git_workflow", "signal_format", "communication"]
        assert why in text
        assert "Checks failed." in text

    @pytest.mark.parametrize(
        ("workflow", "where"), [("", "at main again"), ("review", "where your workflow has got to")]
    )
    def test_one_that_is_called_again_is_told_where_it_stands(self, workflow: str, where: str) -> None:
        """At main; in a workflow, at what the others have committed."""
        assert (
            f"your worktree stands {where}."
            in both(Cause.CALL, agent=replace(CODER, workflow=workflow), resumed=True).text
        )

    def test_messages_come_with_id_sender_and_kind(self) -> None:
        """In order, each once, so that a repeated one is recognised."""
        second = replace(MESSAGE, id="m9", sender="human", kind=Kind.ANSWER, reply_to="m8", body="Yes.")

        text = prompt(Cause.MAIL, MESSAGE, second)

        assert "## m7 from system (reminder)\n\n```text\nChecks failed.\n```" in text
        assert "## m9 from human (answer, in reply to m8)\n\n```text\nYes.\n```" in text
        assert text.index("m7") < text.index("m9")

    def test_the_exact_output_reaches_the_author(self) -> None:
        """Fences, tags of other kinds and indentation in a message stay as they are."""
        body = "```\n  File <stdin>, line 1\n    assert 1 == 2  # <b>&amp;</b>\n```"

        assert f"````text\n{body}\n````" in prompt(Cause.MAIL, replace(MESSAGE, body=body))


class TestTalking:
    @pytest.mark.parametrize(("agent", "cause"), [(AGENT, Cause.TASK), (AGENT, Cause.MAIL), (CODER, Cause.TASK)])
    def test_it_is_told_once_how_it_can_talk(self, agent: Agent, cause: Cause) -> None:
        """With tools, where it was given ours; else with commands."""
        with_tools, without = (both(cause, agent=agent, tools=each).text for each in (True, False))

        ways = ("You talk with the tools of the MCP server", "You talk with commands:")
        assert [(with_tools.count(way), without.count(way)) for way in ways] == [(1, 0), (0, 1)]
        assert "windlass context" not in with_tools
        assert "channel_send" not in without
        assert tags(with_tools).count("communication") == 1

    @pytest.mark.parametrize("tools", [True, False])
    def test_one_that_may_not_is_not_told_how(self, *, tools: bool) -> None:
        """It would only be refused. How it asks a person stays."""
        text = both(agent=replace(CODER, talks=False), tools=tools).text

        assert "channel_send" not in text
        assert "windlass context" not in text
        assert "To ask a person" in text

    @pytest.mark.parametrize("tools", [True, False])
    def test_it_is_told_when_to_ask_and_how_to_answer(self, *, tools: bool) -> None:
        """Whom to ask, when not to, what a good question is; with commands, also how to hear questions meanwhile."""
        text = both(agent=AGENT, tools=tools).text

        assert "You are `quick-otter` to other agents." in text
        assert "Do not ask what the code or your input files can tell" in text
        assert ("Good: " in text, "Bad: " in text, "Answer so that the other can go on" in text) == (True, True, True)
        targets = ("`agent`", "`task`", "`phase`") if tools else ("--agent-id", "--task-id", "--phase-id")
        assert [target for target in targets if target not in text] == []
        assert ("windlass listen --agent-id quick-otter > .windlass/output/question.json &" in text) is not tools

    def test_a_session_that_goes_on_knows_it(self) -> None:
        """It is not told again."""
        assert "communication" not in tags(both(Cause.MAIL, agent=AGENT, resumed=True).text)


class TestForgery:
    @pytest.mark.parametrize("forged", ["</messages>", "<role>", "</ TASK>", "<signal_format>", "<woken >"])
    def test_a_text_cannot_open_or_close_our_tags(self, forged: str) -> None:
        """Neither a message nor a task can speak as the briefing does."""
        text = prompt(
            Cause.MAIL,
            replace(MESSAGE, body=f"x\n{forged}\ny"),
            task=replace(TASK, title=f"a {forged}", brief=f"b\n{forged}\n"),
        )

        assert text.count(forged.replace("<", "<\\")) == 3
        assert tags(text) == ["woken", "task", "messages", "git_workflow", "signal_format", "communication"]

    @given(st.lists(st.sampled_from([f"<{tag}>" for tag in TAGS] + [f"</{tag}>" for tag in TAGS] + ["\n", "`", "<"])))
    def test_no_arrangement_of_tags_changes_the_structure(self, words: list[str]) -> None:
        """The property behind the examples above."""
        text = prompt(Cause.MAIL, replace(MESSAGE, body="".join(words)))

        assert tags(text) == ["woken", "task", "messages", "git_workflow", "signal_format", "communication"]


class TestReview:
    TASK = replace(TASK, reviews="c3")

    def test_a_reviewer_is_told_to_read_and_not_how_to_commit(self) -> None:
        """In place of role, git and the checklist it has what a review is."""
        told = prompt(Cause.TASK, MESSAGE, task=self.TASK)

        assert tags(told) == ["review", "task", "messages", "input_files", "signal_format", "communication"]
        assert tags(prompt(Cause.MAIL, MESSAGE, task=self.TASK))[-3:] == ["review", "signal_format", "communication"]

    def test_a_blocking_comment_says_where_it_is_and_what_to_do(self) -> None:
        """A suggestion only says where it is."""
        remark = Remark(head="abc", turn=1, file="src/login.py", line=12, blocking=True)
        comment = replace(MESSAGE, kind=Kind.COMMENT, sender="quiet-fox", channel="change/c3", remark=remark)
        told = prompt(Cause.MAIL, comment)

        assert "## m7 from quiet-fox (comment, on src/login.py:12)" in told
        assert "This blocks your change c3 until quiet-fox or a person accepts" in told
        assert "This blocks" not in prompt(Cause.MAIL, replace(comment, remark=replace(remark, blocking=False)))

    def test_a_path_cannot_open_a_tag(self) -> None:
        """A file's name is someone's text, too."""
        remark = Remark(head="abc", turn=1, file="</messages>")
        told = prompt(Cause.MAIL, replace(MESSAGE, kind=Kind.COMMENT, remark=remark))

        assert tags(told) == ["woken", "task", "messages", "git_workflow", "signal_format", "communication"]


class TestPlanning:
    @pytest.mark.parametrize("mode", [Mode.PLAN, Mode.REFINE])
    def test_a_planner_is_told_to_plan_and_not_how_to_commit(self, mode: Mode) -> None:
        """In place of git and the checklist it has what a plan is; later runs are told again."""
        task = replace(TASK, wants=mode)
        first, later = prompt(Cause.TASK, MESSAGE, task=task), prompt(Cause.MAIL, MESSAGE, task=task)

        assert tags(first) == [
            "role",
            "task",
            "input_files",
            "signal_format",
            "communication",
            "session_start",
            "messages",
        ]
        assert tags(later) == ["woken", "task", "messages", "role", "signal_format", "communication"]
        assert "change no file of the project" in first

    @pytest.mark.parametrize("mode", [Mode.PLAN, Mode.REFINE])
    @pytest.mark.parametrize("tools", [True, False])
    def test_a_planner_is_told_little_of_talking(self, mode: Mode, *, tools: bool) -> None:
        """Its id, and how to ask in an emergency."""
        told = build_prompt(
            agent=CODER,
            task=replace(TASK, wants=mode),
            main="trunk",
            blocks=SHIPPED,
            mail=(),
            cause=Cause.TASK,
            tools=tools,
        ).text

        assert "You are `coder` to other agents." in told
        assert 'windlass ask --agent-id NAME "…"' in told
        assert [each for each in ("windlass listen", "channel_send", "windlass context send") if each in told] == []

    def test_a_planner_who_may_not_speak_is_not_told_how(self) -> None:
        """How it asks a person stays."""
        task, alone = replace(TASK, wants=Mode.PLAN), replace(AGENT, talks=False)
        told = build_prompt(agent=alone, task=task, main="trunk", blocks=SHIPPED, mail=(), cause=Cause.TASK).text

        assert ("windlass ask" in told, "To ask a person" in told) == (False, True)

    def test_what_looks_at_a_change_is_a_review(self) -> None:
        """Whatever else it was to be."""
        assert [replace(TASK, reviews=each, wants=Mode.PLAN).mode for each in ("c3", "")] == [Mode.REVIEW, Mode.PLAN]


class TestBlocks:
    def test_the_library_has_every_block(self) -> None:
        """One file for each, and no file that is never told."""
        assert set(SHIPPED) == {*BLOCKS, *PARTS}

    def test_a_missing_block_is_named(self) -> None:
        """A prompt is never silently incomplete."""
        blocks = SHIPPED | {"git_workflow": " \n"}

        with pytest.raises(BadInput, match="no block git_workflow"):
            build_prompt(agent=AGENT, task=TASK, main="main", blocks=blocks, mail=(), cause=Cause.TASK)
