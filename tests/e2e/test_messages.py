"""People and agents talk: by the commands that they type, with a real daemon and real runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_stage import WITHIN, Stage, stage

from patience import until

PLAYER = """
[providers.player]
summary = "plays what stands in a file of its agent's name"
command = ["sh", "{player}"]
prompt = "stdin"
resume = ["--session", "{{session}}"]
session = "^session: (\\\\S+)"
"""
AGENT = "---\nname: {name}\nrole: Plays {name}\nprovider: player\n---\nYou are {name}.\n"
DONE = "windlass agent complete 'Said what I had to say.'"


MISTAKES: list[tuple[tuple[str, ...], int, str]] = [
    (("send", "Hello.", "--to", "system"), 5, "Nobody can write to the system"),
    (("send", "Hello.", "--to", "@pr-7"), 3, "Nobody is in @pr-7"),
    (("ack", "m99"), 3, "was never sent m99"),
    (("ack", "x"), 2, "'x' is not the id of a message"),
    (("send", "Hello.", "--to", "coder", "--from", "codr"), 3, "Did you mean coder?"),
    (("ask", "Why?", "--agent-id", "coder", "--from", "nobody"), 3, "There is no agent nobody here"),
    (("peek", "--channel", "mian"), 2, "Did you mean main?"),
    (("peek", "--channel", "@pr-7"), 3, "There is no channel @pr-7 here"),
    (("peek", "--since", "x1"), 2, "not the id of a message"),
    (("ask", "--task-id", "t99", "Why?"), 3, "Nobody is at t99"),
    (("answer", "--conversation-id", "m99", "Yes."), 3, "There is no conversation m99"),
    (("context", "document", "read"), 3, "There is no document notes"),
    (("context", "document", "write", "x", "--name", "a/b"), 2, "no name for a document"),
    (("send", "Hello.", "--to", "coder", "--all"), 2, "either for some or for all"),
    (("send", "Hello."), 2, "--all is everyone, --channel main posts it"),
    (("answer", "hiden-hare", "x"), 3, "There is no agent hiden-hare."),
    (("context", "document", "write", "x", "--revision", "3"), 4, "There is no document notes yet"),
    (("agent", "complete"), 5, "`windlass list` shows who is at work"),
    (("context", "document", "write", "x", "--name", "a b"), 2, "no name for a document"),
]


@pytest.fixture
def house() -> Iterator[Stage]:
    """A person whose repository defines three agents; what each does is in a file that a test writes."""
    with stage(WINDLASS_SANDBOX="off") as made:
        player = made.flag("player.sh")
        player.write_text(
            f'echo "session: $WINDLASS_AGENT"\ncat "$WINDLASS_PROMPT" >> "{made.folder}/$WINDLASS_AGENT.told"\n'
            f'exec sh -e "{made.folder}/$WINDLASS_AGENT.sh"\n'
        )
        with (made.state / "config.toml").open("a") as config:
            config.write(PLAYER.format(player=player))
        made.commit(
            {f".windlass/agents/{name}.md": AGENT.format(name=name) for name in ("coder", "tester", "reviewer")}
        )
        for name in ("coder", "tester", "reviewer"):
            plays(made, name, DONE)
        yield made


def plays(house: Stage, name: str, *commands: str) -> None:
    """What an agent does in each of its runs."""
    house.flag(f"{name}.sh").write_text("\n".join(commands) + "\n")


def told(house: Stage, name: str) -> str:
    """All that an agent's prompts said so far."""
    file = house.flag(f"{name}.told")
    return file.read_text() if file.exists() else ""


def inbox(house: Stage, *words: str) -> list[Any]:
    return list(house.wl("inbox", *words, "--json").value)


def settled(house: Stage, name: str) -> bool:
    """Whether an agent has read all that it was told, in runs that have ended."""
    return all(each["receipt"] in ("read", "acked") for each in inbox(house, name))


class TestAPerson:
    def test_starts_an_agent_that_is_only_defined_with_a_message(self, house: Stage) -> None:
        """It is said what will happen; then it works with the message in its prompt, and the message is settled."""
        sent = house.wl("send", "Please look at the login race.", "--to", "coder", "--json").value

        assert (sent["from"], sent["to"], sent["direct"]) == ("human", ["coder"], True)
        assert [each["outlook"] for each in sent["readers"]] == ["is started with it now"]
        until(lambda: "Please look at the login race." in told(house, "coder"), "its prompt")
        until(lambda: settled(house, "coder"), "it to be settled")
        [letter] = inbox(house, "coder", "--all")
        assert (letter["id"], letter["receipt"]) == (sent["id"], "read")
        assert [each["id"] for each in house.wl("peek", "--to", "coder", "--json").value] == [sent["id"]]

    def test_is_told_when_there_is_nobody_of_that_name(self, house: Stage) -> None:
        """With the near miss; nothing is said to anyone."""
        refused = house.wl("send", "Hello.", "--to", "codr", code=3)
        assert "There is no agent codr here." in refused.err
        assert "Did you mean coder?" in refused.err
        assert "Did you mean coder?" in house.wl("peek", "--to", "codr", code=3).err
        assert "Did you mean coder?" in house.wl("inbox", "codr", code=3).err
        assert house.wl("peek", "--json").value == []
        assert inbox(house, "coder") == [], "nobody has written to it, and it is there"
        slip = house.wl("send", "Look at it, @codr.")
        assert "There is no @codr here. Did you mean coder?" in slip.err
        assert "nobody is addressed" in slip.out

    def test_speaks_for_an_agent_only_as_a_claim(self, house: Stage) -> None:
        """What a person types under another name is the person's, and says so."""
        sent = house.wl("send", "Go on.", "--to", "tester", "--from", "coder", "--json").value
        assert (sent["from"], sent["claims"]) == ("human", "coder")

    def test_reads_what_agents_say_to_them_once(self, house: Stage) -> None:
        """Peeking leaves it; reading acknowledges it."""
        plays(house, "coder", "windlass send 'Which port?' --to human", DONE)
        house.wl("send", "Begin.", "--to", "coder")
        until(lambda: [each for each in inbox(house) if each["message"] == "Which port?"], "the question")
        house.wl("peek")
        assert "Which port?" in house.wl("read").out
        assert "Which port?" not in house.wl("read").out
        assert [each["receipt"] for each in inbox(house, "--all") if each["message"] == "Which port?"] == ["acked"]

    def test_says_the_same_under_one_key_once(self, house: Stage) -> None:
        """A program that is not sure whether it was heard says it again."""
        first = house.wl("send", "Once.", "--to", "coder", "--key", "k1", "--json").value
        again = house.wl("send", "Once.", "--to", "coder", "--key", "k1", "--json").value
        assert first["id"] == again["id"]
        asked = [
            house.wl("ask", "--agent-id", "coder", "--no-wait", "--key", "k2", "Why?", "--json").value for _ in range(2)
        ]
        assert asked[0]["conversationId"] == asked[1]["conversationId"]

    def test_gets_a_sentence_for_what_can_not_be(self, house: Stage) -> None:
        """And an exit code that says of which kind it is."""
        house.wl("send", "So that the repository is a project.", "--to", "human")
        ended = [(words, says, house.wl(*words, code=code).err) for words, code, says in MISTAKES]
        assert [(words, err) for words, says, err in ended if says not in err] == []
        assert "more than 1000000 bytes" in house.wl("send", "-", "--to", "coder", stdin="x" * 1_000_001, code=2).err
        huge = house.wl("send", "-", "--to", "coder", stdin="x" * 5_000_000, code=2).err
        assert "at most 1000000" in huge and "put the text into a file" in huge

    def test_is_told_that_an_instance_is_new(self, house: Stage) -> None:
        """A slip is seen at once; the sign may be written wherever an instance is named."""
        assert "@pr-7 is a new instance." in house.wl("send", "Hello.", "--to", "coder@pr-7").err
        assert house.wl("send", "Hello again.", "--to", "coder@pr-7").err == ""
        for words in (("logs", "coder@pr7"), ("show", "coder"), ("stop", "coder"), ("answer", "coder", "x")):
            assert "Did you mean coder@pr-7?" in house.wl(*words, code=3).err
        slip = house.wl("ask", "--no-wait", "Why?", "--agent-id", "coder@pr-77")
        assert "@pr-77 is a new instance. Did you mean @pr-7?" in slip.err
        house.wl("context", "document", "append", "A note.", "--instance", "@pr-7")
        assert "A note." in house.wl("context", "document", "read", "--instance", "pr-7").out

    def test_stops_all_of_an_instance_that_no_workflow_began(self, house: Stage) -> None:
        """By the name under which they are written to; a slip is told, and stops nobody."""
        plays(house, "coder@pr-7", house.waits_for(house.flag("go")))
        house.wl("send", "Begin.", "--to", "coder@pr-7")
        until(lambda: "Begin." in told(house, "coder@pr-7"), "its run")
        assert "Did you mean @pr-7?" in house.wl("stop", "@pr7", code=3).err
        assert house.wl("stop", "@pr-7").out.startswith("Stopped coder@pr-7.")

    def test_elsewhere_means_the_project_of_whom_they_name(self, house: Stage) -> None:
        """Outside every repository an agent can be written to by its name; what is said where is not known."""
        name = house.work("Wait", house.waits_for(house.flag("go")))
        sent = house.wl("send", "Hello.", "--to", name, "--json", cwd=Path("/")).value
        assert sent["to"] == [name]
        assert "waits: busy" in sent["readers"][0]["outlook"]
        assert "belongs to no project" in house.wl("peek", cwd=Path("/"), code=3).err
        house.wl("stop", name)


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
        until(house.flag("waited.late").exists, "the second wait")
        assert house.flag("waited.late").read_text() == "7\n"


class TestWithoutADaemon:
    def test_what_an_agent_says_meanwhile_is_delivered_when_there_is_one(self, house: Stage) -> None:
        """It is left in the chat of its worktree, word by word, and reaches its reader once."""
        house.wl("init", "--yes")
        go, left = house.flag("go"), house.flag("left")
        words = "Look at it.\n\n    def f(): ...\n[x-to-y]: no"
        plays(house, "coder", house.waits_for(go), f"windlass send '{words}' --to reviewer > '{left}'", "sleep 60")
        house.wl("send", "Begin.", "--to", "coder")
        until(lambda: "Begin." in told(house, "coder"), "its run")
        until(lambda: list(house.state.glob("worktrees/*/coder/.windlass/chat.md")), "its chat")
        os.kill(house.daemon, signal.SIGKILL)
        go.touch()
        until(lambda: left.exists() and left.read_text(), "what it says")
        assert "Left in chat.md" in left.read_text()
        house.wl("list")
        until(lambda: "Look at it." in told(house, "reviewer"), "the reviewer")
        said = [each for each in house.wl("peek", "--json").value if each["from"] == "coder"]
        assert [(each["to"], each["message"]) for each in said] == [(["reviewer"], words)]
        house.wl("stop", "--all")

    def test_what_a_person_says_starts_it_and_is_delivered(self, house: Stage) -> None:
        """Nothing needs to be started first."""
        house.wl("daemon", "stop", code=None)
        house.wl("send", "Are you there?", "--to", "coder")
        until(lambda: "Are you there?" in told(house, "coder"), "its prompt")

    def test_what_is_on_its_way_when_it_is_killed_is_delivered_by_the_next(self, house: Stage) -> None:
        """A message that was accepted reaches its reader once."""
        go = house.flag("go")
        plays(house, "coder", house.waits_for(go), DONE)
        house.wl("send", "First.", "--to", "coder")
        until(lambda: "First." in told(house, "coder"), "its first run")
        house.wl("send", "Second.", "--to", "coder")
        os.kill(house.daemon, signal.SIGKILL)
        go.touch()
        house.wl("list")
        until(lambda: "Second." in told(house, "coder"), "its second run")
        until(lambda: settled(house, "coder"), "all to be settled")
        assert len(house.agent("coder")["runs"]) == 2


def lines(watching: subprocess.Popen[bytes]) -> Generator[Any]:
    """What it prints, line by line; after too long a time it is ended."""
    assert watching.stdout is not None
    late = threading.Timer(WITHIN, watching.kill)
    late.start()
    try:
        yield from map(json.loads, watching.stdout)
    finally:
        late.cancel()


def test_watching_shows_messages_status_and_files(house: Stage) -> None:
    """The feed of a program that leads agents: what was said, who does what, and to which files."""
    go = house.flag("go")
    plays(
        house, "coder", "echo x > new.txt; rm README.md", house.waits_for(go), "git reset -q --hard; rm new.txt", DONE
    )
    kinds = ("message.sent", "status.*", "files.*")
    watching = house.begin("watch", "--since", "0", *(word for kind in kinds for word in ("--kind", kind)))
    seen: list[Any] = []
    feed = lines(watching)
    house.wl("send", "Begin.", "--to", "coder")
    while not {"message.sent", "files.changed"} <= {each["kind"] for each in seen}:
        seen.append(next(feed))
    go.touch()
    while (seen[-1]["kind"], seen[-1].get("status")) != ("status.changed", "completed"):
        seen.append(next(feed))
    feed.close()
    said = [each["message"]["message"] for each in seen if each["kind"] == "message.sent"]
    files = next(each for each in seen if each["kind"] == "files.changed")
    assert said[0] == "Begin."
    assert {key: files[key] for key in ("subject", "added", "edited", "removed")} == {
        "subject": "coder",
        "added": ["new.txt"],
        "edited": [],
        "removed": ["README.md"],
    }
    assert "running" in [each["status"] for each in seen if each["kind"] == "status.changed"]


def fits(value: Any, schema: Any, parts: dict[str, Any]) -> None:
    """An answer has the keys that are described, and no others; lists of objects have something in them to show it."""
    schema = resolved(schema, parts)
    if "properties" in schema and value is not None:
        assert set(schema["required"]) <= set(value) <= set(schema["properties"])
        for key, each in value.items():
            fits(each, schema["properties"][key], parts)
    elif "properties" in resolved(schema.get("items", {}), parts):
        assert value
        for each in value:
            fits(each, schema["items"], parts)


def resolved(schema: Any, parts: dict[str, Any]) -> Any:
    """The schema that a reference names; of one that may be null, what it is otherwise."""
    [schema, *_] = schema.get("anyOf", [schema])
    return parts[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


class TestTheApi:
    def test_describes_itself(self, house: Stage) -> None:
        """Every route with a summary; the shapes of the talk's are those that come."""
        house.wl("send", "Hello.", "--to", "coder")
        described = house.ask("/openapi.json")
        assert described["openapi"].startswith("3.")
        operations = [each for path in described["paths"].values() for each in path.values()]
        assert [
            operation["operationId"] for operation in operations if not operation["summary"].endswith((".", "?"))
        ] == []
        assert len({operation["operationId"] for operation in operations}) == len(operations)
        asked = house.wl("ask", "--agent-id", "tester", "--no-wait", "Why?", "--json").value["conversationId"]
        house.wl("context", "document", "write", "A page.")
        for path, real in (
            ("/messages", "/messages?"),
            ("/inbox", "/inbox?name=coder&all=1&"),
            ("/conversations/{id}", f"/conversations/{asked}"),
            ("/conversations/listen", "/conversations/listen?agent_id=tester&"),
            ("/documents", "/documents?"),
            ("/documents/{name}", "/documents/notes?"),
            ("/documents/{name}/history", "/documents/notes/history?"),
        ):
            schema = described["paths"][path]["get"]["responses"]["2XX"]["content"]["application/json"]["schema"]
            answer = house.ask(f"{real}path={house.repo}" if real.endswith(("?", "&")) else real)
            assert "properties" in resolved(schema, described["components"]["schemas"])
            fits(answer, schema, described["components"]["schemas"])
        assert "id" in [each["name"] for each in described["paths"]["/messages/{id}/ack"]["post"]["parameters"]]

    def test_the_stream_of_events_goes_on_from_any_number(self, house: Stage) -> None:
        """What comes after it, each once and in order."""
        house.wl("send", "Hello.", "--to", "coder")
        until(lambda: settled(house, "coder"), "it to be settled")
        every = [event["seq"] for event in house.events()]
        assert every == list(range(1, len(every) + 1))
        middle = every[len(every) // 2]
        first = house.event("message.sent")
        assert house.event(house.events()[middle]["kind"], since=middle)["seq"] > middle
        assert first["seq"] == house.event("message.sent", since=first["seq"] - 1)["seq"]
