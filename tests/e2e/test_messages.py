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
from e2e_stage import WITHIN, Stage
from talking_stage import DONE, inbox, plays, settled, talking_stage, told

from patience import until

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
    with talking_stage() as made:
        yield made


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
