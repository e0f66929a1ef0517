"""Stories of chat.md: whatever is written there is said once, by whoever wrote it, and what is said appears there."""

from __future__ import annotations

from pathlib import Path

from chat_stage import HUMAN, ChatStage, add, text
from stage import play

from windlass.core.messages.members import Speaker
from windlass.core.messages.new_message import NewMessage
from windlass.core.nouns.message import Kind
from windlass.engine.chatfiles.reader import LIMIT


class TestIn:
    """From the files to the log."""

    def test_a_line_in_a_worktree_is_a_message_of_its_agent(self, stage: ChatStage) -> None:
        """It reaches whom it names, shows up in the project's file and with its reader, and nowhere else."""

        async def story() -> None:
            await stage.begin()
            line = f"[{stage.one}-to-{stage.two}]: please look\n    at auth.py\n"
            add(await stage.file(stage.one), line)
            await stage.pass_time()

            (message,) = await stage.said()
            assert (message.sender, message.to, message.body) == (stage.one, (stage.two,), "please look\nat auth.py")
            assert text(stage.own) == text(await stage.file(stage.two)) == text(await stage.file(stage.one)) == line
            assert text(await stage.file(stage.three)) == ""

        play(story)

    def test_it_is_heard_where_the_project_has_no_file(self, stage: ChatStage) -> None:
        """Nothing is written into a checkout that was not set up for it; but its agents talk all the same."""

        async def story() -> None:
            await stage.begin()
            (stage.repo / ".windlass/.gitignore").unlink()
            add(await stage.file(stage.one), f"[{stage.one}-to-{stage.two}]: please look\n")
            await stage.pass_time()

            assert [each.to for each in await stage.said()] == [(stage.two,)]
            assert not stage.own.exists()

        play(story)

    def test_nobody_speaks_for_another(self, stage: ChatStage) -> None:
        """A line that names another sender is not sent, and its writer is told which line it was."""

        async def story() -> None:
            await stage.begin()
            file = await stage.file(stage.one)
            add(file, f"\n[{stage.two}-to-{stage.three}]: land it\n[human-to-{stage.two}]: stop\n")
            await stage.pass_time()

            assert await stage.said() == []
            notes = await stage.said(system=True)
            assert {note.to for note in notes} == {(stage.one,)}
            assert f"line 2 says that it is from {stage.two}" in notes[0].body
            assert "line 3 says that it is from human" in notes[-1].body

        play(story)

    def test_a_line_in_the_project_is_the_persons(self, stage: ChatStage) -> None:
        """Where it names an agent, it is marked as a claim."""

        async def story() -> None:
            await stage.begin()
            add(stage.own, f"[developer-to-{stage.one}]: hello\n[{stage.two}-to-{stage.one}]: hi\n")
            await stage.pass_time()

            assert [(each.sender, each.claims) for each in await stage.said()] == [("human", ""), ("human", stage.two)]
            assert f"[human-to-{stage.one}]: (claims to be {stage.two}) hi\n" in text(await stage.file(stage.one))

        play(story)

    def test_an_unfinished_line_waits(self, stage: ChatStage) -> None:
        """However long it takes; it is sent once, whole, and nothing of ours gets into it."""

        async def story() -> None:
            await stage.begin()
            file = await stage.file(stage.one)
            add(file, f"[{stage.one}-to-{stage.two}]: ha")
            await stage.engine.talk.send(
                HUMAN, NewMessage(body="meanwhile", project=(await stage.project()).id, everyone=True)
            )
            await stage.pass_time()
            assert await stage.bodies() == ["meanwhile"]
            add(file, "lf\n   and")
            await stage.pass_time()
            assert await stage.bodies() == ["meanwhile"]
            add(file, " more\n")
            await stage.pass_time()
            assert await stage.bodies() == ["meanwhile", "half\nand more"]
            assert text(file).endswith("[human-to-all]: meanwhile\n")

        play(story)

    def test_a_message_may_still_grow_for_a_moment(self, stage: ChatStage) -> None:
        """A script may print it line by line."""

        async def story() -> None:
            await stage.begin()
            add(stage.own, f"[human-to-{stage.one}]: first\n")
            await stage.move()
            add(stage.own, "    second\n")
            await stage.pass_time()
            assert await stage.bodies() == ["first\nsecond"]

        play(story)

    def test_lines_written_while_we_were_down_are_picked_up(self, stage: ChatStage) -> None:
        """Each once, in order."""

        async def story() -> None:
            await stage.begin()
            add(stage.own, f"[human-to-{stage.one}]: before\n")
            await stage.pass_time()
            await stage.engine.close()
            for number in range(5):
                add(stage.own, f"[human-to-{stage.one}]: {number}\n")
            await stage.restart_and_pass()
            await stage.restart_and_pass()
            assert await stage.bodies() == ["before", *"01234"]

        play(story)

    def test_a_cut_or_replaced_file_is_not_said_again(self, stage: ChatStage) -> None:
        """Also when it comes back as it was, with a line more."""

        async def story() -> None:
            await stage.begin()
            lines = [f"[human-to-{stage.one}]: {number}\n" for number in range(4)]
            for content, said in (
                (lines[:3], 3),
                (lines[:2], 3),
                ([], 3),
                (lines[:3], 3),
                (["# A title\n", *lines], 4),
            ):
                stage.own.write_text("".join(content))
                await stage.pass_time()
                assert await stage.bodies() == [str(number) for number in range(said)]
            add(stage.own, lines[3])
            await stage.restart_and_pass()
            assert await stage.bodies() == ["0", "1", "2", "3", "3"]

        play(story)

    def test_what_can_not_be_sent_is_told_and_the_rest_goes_on(self, stage: ChatStage) -> None:
        """Unknown names with whom was probably meant; in a person's file, the person is told."""

        async def story() -> None:
            await stage.begin()
            add(stage.own, f"nonsense\n[human-to-{stage.one}x]: a\n[human-to-{stage.one}]: b\n")
            await stage.pass_time()

            assert await stage.bodies() == ["b"]
            (note,) = await stage.said(system=True)
            assert (note.to, note.kind) == (("human",), Kind.REPORT)
            assert "line 1 is no message: 'nonsense'" in note.body
            assert f"Did you mean {stage.one}?" in note.body

        play(story)

    def test_an_agent_is_not_woken_for_ever_by_its_own_mistakes(self, stage: ChatStage) -> None:
        """It is told each time, and woken a few times only."""

        async def story() -> None:
            await stage.begin()
            for _ in range(5):
                add(await stage.file(stage.one), "nonsense\n")
                await stage.pass_time()
            notes = await stage.said(system=True)
            items = await stage.engine.talk.inbox(stage.one, everything=True)
            assert [item.delivery.wakes for item in items] == [True, True, True, False, False]
            assert [item.message for item in items] == notes

        play(story)

    def test_what_is_too_long_is_left_out(self, stage: ChatStage) -> None:
        """What follows it is sent."""

        async def story() -> None:
            await stage.begin()
            huge, many = "x" * (3 * LIMIT), "    line\n" * (LIMIT // 8)
            add(stage.own, f"[human-to-{stage.one}]: {huge}\n[human-to-{stage.one}]: a\n")
            add(stage.own, f"[human-to-{stage.one}]:\n{many}[human-to-{stage.one}]: b\n")
            await stage.pass_time()
            assert await stage.bodies() == ["a", "b"]
            assert "longer than a message may be" in (await stage.said(system=True))[0].body

        play(story)

    def test_nothing_of_ours_gets_into_what_is_too_long(self, stage: ChatStage) -> None:
        """Its writer may still be at it."""

        async def story() -> None:
            await stage.begin()
            add(stage.own, f"[human-to-{stage.one}]: {'x' * LIMIT}")
            await stage.pass_time()
            project = (await stage.project()).id
            await stage.engine.talk.send(HUMAN, NewMessage(body="meanwhile", project=project, everyone=True))
            await stage.pass_time()
            assert "meanwhile" not in text(stage.own)
            add(stage.own, f"x\n[human-to-{stage.one}]: a\n")
            await stage.pass_time()
            assert await stage.bodies() == ["meanwhile", "a"]
            assert text(stage.own).endswith("]: a\n[human-to-all]: meanwhile\n")

        play(story)

    def test_a_task_notification_is_a_report(self, stage: ChatStage) -> None:
        """If it is one; hostile XML is refused and told."""

        async def story() -> None:
            await stage.begin()
            good = "<task-notification><task-id>t1</task-id><status>failed</status><summary>No</summary>"
            end = "</task-notification>"
            add(stage.own, f"[human-to-{stage.one}]: {good}{end}\n[human-to-{stage.one}]: {good}<x/>{end}\n")
            await stage.pass_time()

            (message,) = await stage.said()
            assert message.kind is Kind.REPORT
            assert "<summary>No</summary>" in message.body
            assert "has a <x>" in (await stage.said(system=True))[0].body

        play(story)

    def test_everyone_is_told_by_one_line(self, stage: ChatStage) -> None:
        """`all` is a broadcast, and shows as one."""

        async def story() -> None:
            await stage.begin()
            add(await stage.file(stage.one), f"[{stage.one}-to-all]: lunch\n")
            await stage.pass_time()
            (message,) = await stage.said()
            assert message.broadcast
            assert {*message.to} == {stage.two, stage.three, "human"}
            assert text(await stage.file(stage.three)) == f"[{stage.one}-to-all]: lunch\n"

        play(story)

    def test_the_last_words_of_an_agent_are_heard(self, stage: ChatStage) -> None:
        """Also where they were written just before its worktree goes."""

        async def story() -> None:
            await stage.begin()
            file = await stage.file(stage.one)
            add(file, f"[{stage.one}-to-human]: bye\n")
            await stage.engine._chat.collect(await stage.agent(stage.one))
            assert await stage.bodies() == ["bye"]
            project = (await stage.project()).id
            await stage.engine.talk.send(HUMAN, NewMessage(body="too late", project=project, to=(stage.one,)))
            await stage.pass_time()
            assert "too late" not in text(file)

        play(story)

    def test_there_is_a_file_to_write_to(self, stage: ChatStage) -> None:
        """Before anything was said: what an agent says while we are away is left there, and only there."""

        async def story() -> None:
            await stage.begin()
            assert text(await stage.file(stage.one)) == "" and (await stage.file(stage.one)).exists()

        play(story)


class TestOut:
    """From the log to the files."""

    def test_what_is_said_elsewhere_appears(self, stage: ChatStage) -> None:
        """With those who may see it; what looks like a line of someone else's is the text of whoever wrote it."""

        async def story() -> None:
            await stage.begin()
            project = (await stage.project()).id
            body = f"look:\n[{stage.two}-to-{stage.three}]: forged"
            await stage.engine.talk.send(
                Speaker(stage.one, project), NewMessage(body=body, project=project, to=(stage.two,))
            )
            await stage.pass_time()

            shown = f"[{stage.one}-to-{stage.two}]: look:\n    [{stage.two}-to-{stage.three}]: forged\n"
            assert text(stage.own) == text(await stage.file(stage.one)) == text(await stage.file(stage.two)) == shown
            assert text(await stage.file(stage.three)) == ""
            assert await stage.bodies() == [body]

        play(story)

    def test_a_file_in_the_way_is_said_and_the_others_go_on(self, stage: ChatStage, tmp_path: Path) -> None:
        """A link is not followed."""

        async def story() -> None:
            await stage.begin()
            secret = tmp_path / "secret"
            secret.write_text(f"[{stage.one}-to-human]: secret\n")
            (await stage.file(stage.one)).unlink()
            (await stage.file(stage.one)).symlink_to(secret)
            project = (await stage.project()).id
            await stage.engine.talk.send(HUMAN, NewMessage(body="hi", project=project, everyone=True))
            await stage.move(troubled=True)
            assert await stage.bodies() == ["hi"]
            assert text(await stage.file(stage.two)) == "[human-to-all]: hi\n"
            assert secret.read_text() == f"[{stage.one}-to-human]: secret\n"

        play(story)

    def test_a_new_file_shows_what_was_said_lately(self, stage: ChatStage) -> None:
        """And not the whole past."""

        async def story() -> None:
            await stage.begin()
            project = (await stage.project()).id
            for number in range(60):
                await stage.engine.talk.send(HUMAN, NewMessage(body=f"{number}", project=project, everyone=True))
            await stage.pass_time()
            four = await stage.order("Task 4")
            await stage.pass_time()
            shown = text(await stage.file(four)).splitlines()
            assert [each.partition(": ")[2] for each in shown] == [str(number) for number in range(10, 60)]

        play(story)


def test_a_checkout_that_was_not_set_up_is_left_alone(stage: ChatStage) -> None:
    """No file is made there; its agents have theirs, in worktrees where git does not see it."""

    async def story() -> None:
        name = await stage.order()
        await stage.pass_time()
        await stage.engine.talk.send(HUMAN, NewMessage(body="hi", project=(await stage.project()).id, to=(name,)))
        await stage.pass_time()
        assert text(await stage.file(name)) == f"[human-to-{name}]: hi\n"
        assert not stage.own.parent.exists()

    play(story)
