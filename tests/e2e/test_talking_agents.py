"""Agents talk by the commands inside their runs, with a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from e2e_stage import WITHIN, Stage
from talking_stage import AGENT, DONE, plays, settled, talking_stage, told

from patience import until


@pytest.fixture
def house() -> Iterator[Stage]:
    with talking_stage() as made:
        yield made


class TestAgents:
    def test_talk_by_the_commands_inside_their_runs(self, house: Stage) -> None:
        """One is started by the other's message, answers, and the first goes on with the answer."""
        plays(
            house,
            "coder",
            'if [ "$WINDLASS_RUN_NUMBER" = 1 ]; then windlass send "@tester does it hold?"; fi',
            DONE,
        )
        plays(house, "tester", "windlass context send 'It holds.' --to coder", DONE)

        house.wl("send", "Begin.", "--to", "coder")

        until(lambda: "It holds." in told(house, "coder"), "the answer")
        said = [(each["from"], each["message"]) for each in house.wl("peek", "--json").value if each["kind"] == "say"]
        assert said == [("human", "Begin."), ("coder", "@tester does it hold?"), ("tester", "It holds.")]

    def test_can_not_speak_as_another(self, house: Stage) -> None:
        """By no option of any command; its own name is taken."""
        tries = (
            "windlass send 'Hi.' --to human --from tester",
            "windlass send 'Hi.' --to human --as human",
            "windlass agent send-message human 'Hi.' --from tester",
            "windlass context send 'Hi.' --from tester",
            "windlass ask --from tester --agent-id reviewer 'Hi?'",
            "windlass listen --agent-id tester",
            "windlass inbox tester",
            "windlass send 'It is me.' --to human --from coder",
        )
        notes = house.flag("tried")
        plays(
            house,
            "coder",
            *(f'code=0; {each} >> "{notes}.out" 2>&1 || code=$?; echo $code >> "{notes}"' for each in tries),
            DONE,
        )
        house.wl("send", "Begin.", "--to", "coder")
        until(lambda: notes.exists() and len(notes.read_text().split()) == len(tries), "all tries")
        assert notes.read_text().split() == ["5"] * 7 + ["0"], house.flag("tried.out").read_text()
        said = [each for each in house.wl("peek", "--json").value if each["from"] != "human"]
        assert [each["message"] for each in said if each["kind"] != "report"] == ["It is me."]

    def test_are_themselves_under_their_bare_name(self, house: Stage) -> None:
        """In an instance, too: nobody else there has it. One of the same name elsewhere is somebody else."""
        notes = house.flag("tried")
        tries = (
            "windlass listen --agent-id coder --timeout 0.2s",
            "windlass send 'It is me.' --to human --from coder",
            "windlass send 'It is me.' --to human --from coder@pr-8",
        )
        plays(house, "coder@pr-7", *(f'code=0; {each} || code=$?; echo $code >> "{notes}"' for each in tries), DONE)
        house.wl("send", "Begin.", "--to", "coder@pr-7")
        until(lambda: notes.exists() and len(notes.read_text().split()) == len(tries), "all tries")
        assert notes.read_text().split() == ["7", "0", "5"]

    def test_see_no_direct_message_of_others(self, house: Stage) -> None:
        """In no view: not by peeking, not in the inbox, not in the stream of events."""
        out = house.flag("seen")
        house.wl("send", "Something for you.\n\nIt is a secret.", "--to", "tester")
        until(lambda: settled(house, "tester"), "it to be settled")
        plays(
            house,
            "coder",
            f'windlass peek > "{out}"; windlass inbox >> "{out}"; windlass context read >> "{out}"',
            f'windlass watch --since 0 | head -20 >> "{out}"; touch "{out}.all"',
            DONE,
        )
        house.wl("send", "Look around.", "--to", "coder")
        until(house.flag("seen.all").exists, "all that it sees")
        assert "Look around." in out.read_text()
        assert "message.sent" in out.read_text()
        assert "secret" not in out.read_text()

    def test_ask_one_another_and_wait_for_the_answer(self, house: Stage) -> None:
        """The one asked listens and answers; the answer is printed, and settled by that."""
        heard = house.flag("heard")
        plays(
            house,
            "tester",
            f'windlass listen --agent-id tester --timeout {WITHIN}s > "{heard}.json"',
            f"""id=$(sed 's/.*"conversationId":"\\(m[0-9]*\\)".*/\\1/' "{heard}.json")""",
            f'windlass answer --conversation-id "$id" "8080." > "{heard}.settled"',
            DONE,
        )
        plays(
            house,
            "coder",
            f'windlass ask --from coder --agent-id tester "Which port?" --timeout {WITHIN}s > "{heard}"',
            DONE,
        )

        house.wl("send", "Begin.", "--to", "coder")

        until(lambda: heard.exists() and heard.read_text() == "8080.\n", "the answer")
        until(lambda: house.flag("heard.settled").read_text().endswith("\n"), "what the one who answered was told")
        asked = json.loads(house.flag("heard.json").read_text())
        assert (asked["fromAgentId"], asked["question"]) == ("coder", "Which port?")
        answered = json.loads(house.flag("heard.settled").read_text())
        assert answered == {"conversationId": asked["conversationId"], "status": "answered"}
        until(lambda: settled(house, "coder"), "the answer to be settled")
        assert "8080." not in told(house, "coder"), "it has the answer, and is not woken for it"

    def test_hand_work_on_only_to_whom_their_file_allows(self, house: Stage) -> None:
        """With what was done, which files and why; a forbidden one is refused, and says what would allow it."""
        allowed = AGENT.replace("role:", "handoff_to: [tester]\nrole:").format(name="coder")
        house.commit({".windlass/agents/coder.md": allowed})
        out = house.flag("refused")
        plays(
            house,
            "coder",
            f'windlass send "Review it." --to reviewer --done "It parses." > "{out}" 2>&1 || echo "exit $?" >> "{out}"',
            'windlass send "Test it." --to tester --done "It parses." --file a.py --file b.py --why "0.3 needs it"',
            DONE,
        )
        house.wl("send", "Begin.", "--to", "coder")
        until(lambda: "Test it." in told(house, "tester"), "the hand-off")
        assert "coder may not hand work to reviewer: its file allows tester." in out.read_text()
        assert "exit 5" in out.read_text()
        for part in ("Done: It parses.", "Files: a.py, b.py", "Why: 0.3 needs it"):
            assert part in told(house, "tester")
        assert told(house, "reviewer") == ""
        unnamed = house.wl("send", "@tester test it.", "--done", "It parses.", code=2)
        assert unnamed.err == "windlass: A hand-off says whom it is for.\nName the reader with --to.\n"

    def test_share_documents(self, house: Stage) -> None:
        """What one writes, another reads; a stale revision is refused with both named."""
        plays(house, "coder", "windlass context document write 'Begin with the parser.'", DONE)
        plays(house, "tester", "windlass context document append 'It is tested.'", DONE)
        house.wl("send", "Begin.", "--to", "coder")
        until(lambda: settled(house, "coder"), "the coder")
        house.wl("send", "Begin.", "--to", "tester")
        until(lambda: settled(house, "tester"), "the tester")

        document = house.wl("context", "document", "read", "--json").value
        assert document["body"] == "Begin with the parser.\nIt is tested."
        refused = house.wl("context", "document", "write", "Mine.", "--revision", "1", code=4)
        assert "revision 2 by now, not 1" in refused.err and "tester" in refused.err
        house.wl("context", "document", "write", "Ours.", "--revision", "2")
        history = house.wl("context", "document", "history", "--json").value
        assert [(each["revision"], each["author"]) for each in history] == [(1, "coder"), (2, "tester"), (3, "human")]
        assert house.raw("context", "document", "read", "--revision", "1") == b"Begin with the parser."

    def test_wait_for_what_is_said_next(self, house: Stage) -> None:
        """A blocking wait ends with the message, and another one with exit code 7."""
        out = house.flag("waited")
        plays(
            house,
            "coder",
            f'touch "{out}.begun"; windlass context wait --timeout {WITHIN}s --json > "{out}"',
            house.waits_for(house.flag("silence")),
            f'windlass context wait --timeout 0.3s || echo $? > "{out}.late"',
            DONE,
        )
        house.wl("send", "Begin.", "--to", "coder")
        until(house.flag("waited.begun").exists, "it to wait")
        until(lambda: house.wl("send", "Something for all.") and out.exists() and out.read_text(), "what it heard")
        assert {load["message"] for load in json.loads(out.read_text())} == {"Something for all."}
        house.flag("silence").touch()
        late = house.flag("waited.late")
        assert until(lambda: late.exists() and late.read_text(), "the second wait") == "7\n"
