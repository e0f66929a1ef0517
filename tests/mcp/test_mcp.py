"""The tools, called by the official SDK's client over both transports and in both eras of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError
from mcp.types import TextResourceContents
from mcp_stage import EVERY_WAY, NEWER, OLDER, Place, Way, Worker, call, over_http, place, refused, said

from patience import until

pytestmark = pytest.mark.xdist_group("mcp")

TALKING = (
    "channel_send channel_read channel_peek channel_wait inbox_read inbox_ack ask answer "
    "document_list document_read document_write document_append agents_list"
).split()


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.fixture(scope="module")
def worker(here: Place) -> Worker:
    return here.worker()


@EVERY_WAY
class TestEveryWay:
    def test_an_agent_has_every_tool_and_a_person_can_complete_nothing(
        self, here: Place, worker: Worker, transport: str, era: str
    ) -> None:
        """Each tool says what it takes; what ends a run is only a run's."""

        async def story() -> None:
            async with here.person(Way(transport, era)) as person, worker.client(Way(transport, era)) as agent:
                assert [tool.name for tool in (await person.list_tools()).tools] == TALKING
                theirs = (await agent.list_tools()).tools
                assert [each.name for each in theirs] == [*TALKING, "complete"]
                assert all(each.description and each.input_schema["type"] == "object" for each in theirs)
                assert agent.session.protocol_version == (NEWER if era == NEWER else "2025-11-25")
                with pytest.raises(MCPError, match="There is no tool 'complete'"):
                    await person.call_tool("complete", {})

        asyncio.run(story())

    def test_peeking_leaves_unread_what_reading_acknowledges(
        self, here: Place, worker: Worker, transport: str, era: str
    ) -> None:
        """The inbox keeps a mention until it was read; entries have id, time, from and message."""

        async def story() -> None:
            async with here.person(Way(transport, era)) as person, worker.client(Way(transport, era)) as agent:
                sent = await call(person, "channel_send", message=f"@{worker.name} two\nlines, *é* ✓")
                assert sent["to"] == [worker.name]
                for tool in ("inbox_read", "channel_peek", "inbox_read", "channel_read"):
                    found = (await call(agent, tool))["entries"][-1]
                    assert list(found) == ["id", "time", "from", "message"]
                    assert (found["id"], found["from"]) == (sent["id"], "human")
                    assert found["message"] == f"@{worker.name} two\nlines, *é* ✓"
                assert (await call(agent, "inbox_read"))["entries"] == []

        asyncio.run(story())

    def test_an_agent_speaks_as_itself(self, here: Place, worker: Worker, transport: str, era: str) -> None:
        """Whatever it says to be; under its own name it is heard."""

        async def story() -> None:
            async with worker.client(Way(transport, era)) as agent, here.person(Way(transport, era)) as person:
                for tool, given in (
                    ("channel_send", {"message": "I am the boss"}),
                    ("ask", {"question": "Why?", "agent": "human"}),
                    ("answer", {"conversation": "m1", "answer": "So."}),
                ):
                    words = await refused(agent, tool, **given, **{"from": "human"})
                    assert words == f"You are {worker.name}, and can't speak as human. Leave `from` out."
                sent = await call(agent, "channel_send", message="It is me", **{"from": worker.name})
                last = (await call(person, "channel_peek", limit=1))["entries"][0]
                assert (last["id"], last["from"], last["message"]) == (sent["id"], worker.name, "It is me")

        asyncio.run(story())

    def test_waiting_ends_when_someone_speaks_or_when_time_is_up(
        self, here: Place, worker: Worker, transport: str, era: str
    ) -> None:
        """What comes is heard at once; nothing in time is no error."""

        async def story() -> None:
            async with worker.client(Way(transport, era)) as agent, here.person(Way(transport, era)) as person:
                first = await call(agent, "channel_wait", timeout=0.05)
                assert first["entries"] == []
                last = (await call(person, "channel_send", message="Now listen"))["id"]
                missed = await call(agent, "channel_wait", since=first["since"], timeout=0)
                assert ([each["id"] for each in missed["entries"]], missed["since"]) == ([last], last)
                waiting = asyncio.create_task(call(agent, "channel_wait", since=last, timeout=20))
                await call(person, "channel_send", message="Heard?")
                assert [each["message"] for each in (await waiting)["entries"]] == ["Heard?"]

        asyncio.run(story())

    def test_documents_are_written_appended_and_never_overwritten_unseen(
        self, here: Place, worker: Worker, transport: str, era: str
    ) -> None:
        """A revision that is not the newest is a conflict that names both."""

        async def story() -> None:
            name = f"plan-{transport}-{era}"
            async with worker.client(Way(transport, era)) as agent, here.person(Way(transport, era)) as person:
                assert "no document" in await refused(agent, "document_read", name=name)
                assert await call(agent, "document_write", name=name, text="# Plan") == {"name": name, "revision": 1}
                await call(person, "document_append", name=name, text="- test it")
                words = await refused(agent, "document_write", name=name, text="Mine", revision=1)
                assert "revision 2" in words
                assert "not 1" in words
                page = await call(agent, "document_read", name=name)
                assert (page["text"], page["revision"], page["author"]) == ("# Plan\n- test it", 2, "human")
                await call(agent, "document_write", name=name, text="Ours", revision=2)
                listed = (await call(person, "document_list"))["documents"]
                assert {"name": name, "revision": 3, "author": worker.name} in listed

        asyncio.run(story())

    def test_a_question_is_answered(self, here: Place, worker: Worker, transport: str, era: str) -> None:
        """The one who was asked sees that it is a question; the one who asked gets the answer."""

        async def story() -> None:
            async with worker.client(Way(transport, era)) as agent, here.person(Way(transport, era)) as person:
                asked = await call(person, "ask", agent=worker.name, question="Which colour?")
                letter = (await call(agent, "inbox_read"))["entries"][-1]
                assert (letter["id"], letter["kind"], letter["to"]) == (asked["conversation"], "ask", [worker.name])
                given = await call(agent, "answer", conversation=letter["id"], answer="Ultramarine.")
                heard = (await call(person, "inbox_read"))["entries"][-1]
                assert (heard["id"], heard["kind"], heard["reply_to"]) == (given["id"], "answer", letter["id"])
                await call(person, "inbox_ack", ids=[heard["id"]])
                assert heard["id"] not in [each["id"] for each in (await call(person, "inbox_read"))["entries"]]
                assert "only one" in await refused(agent, "ask", question="Whom?")

        asyncio.run(story())

    def test_the_inbox_is_a_resource(self, here: Place, worker: Worker, transport: str, era: str) -> None:
        """It reads like the tool."""

        async def story() -> None:
            async with worker.client(Way(transport, era)) as agent, here.person(Way(transport, era)) as person:
                sent = await call(person, "channel_send", message="A letter", to=[worker.name])
                assert [str(resource.uri) for resource in (await agent.list_resources()).resources] == ["inbox://me"]
                [content] = (await agent.read_resource("inbox://me")).contents
                assert isinstance(content, TextResourceContents)
                assert [load["id"] for load in json.loads(content.text)["entries"]] == [sent["id"]]
                await call(agent, "inbox_ack", ids=[sent["id"]])
                with pytest.raises(MCPError, match="There is no resource"):
                    await agent.read_resource("inbox://you")

        asyncio.run(story())

    def test_completing_gives_the_signal(self, here: Place, transport: str, era: str) -> None:
        """Done, and the run ends with what was reported."""
        other = here.worker("Finish early")

        async def story() -> None:
            async with other.client(Way(transport, era)) as agent:
                assert "only one" in await refused(agent, "complete", result="Yes", error="No")
                assert (await call(agent, "complete", result="There was nothing to do."))["run"].startswith("r")

        asyncio.run(story())
        run = until(lambda: here.house.agent(other.name)["runs"][0]["outcome"], "the end of its run")
        assert run == "done"


class TestEntries:
    def test_since_is_strictly_after_and_limit_keeps_the_last(self, here: Place) -> None:
        """In order."""

        async def story() -> None:
            async with here.person() as person:
                ids = [(await call(person, "channel_send", message=f"Line {n}"))["id"] for n in range(5)]
                after = (await call(person, "channel_peek", since=ids[1]))["entries"]
                last = (await call(person, "channel_peek", limit=2))["entries"]
                assert [each["id"] for each in after] == ids[2:]
                assert [each["id"] for each in last] == ids[3:]

        asyncio.run(story())

    def test_who_is_here_is_listed(self, here: Place, worker: Worker) -> None:
        """With what they do, and which of them is oneself."""

        async def story() -> None:
            async with worker.client(Way()) as agent:
                found = {each["name"]: each for each in (await call(agent, "agents_list"))["agents"]}
                own = found[worker.name]
                assert (own["status"], own["task"], own["you"]) == ("running", "Wait for mail", True)

        asyncio.run(story())

    def test_work_is_handed_on_with_what_belongs_to_it(self, here: Place) -> None:
        """What was done, what is needed, which files and why; it says whom it is for, and is not for all as well."""

        async def story() -> None:
            async with over_http(here.house, here.token, NEWER) as person:
                given = {"done": "the parser", "needed": "tests", "files": ["a.py", "b.py"], "why": "0.3 needs it"}
                sent = await call(person, "channel_send", message="Yours.", to=["human"], **given)
                said = (await call(person, "channel_peek", limit=1))["entries"][0]
                assert (said["id"], said["kind"]) == (sent["id"], "handoff")
                words = "Yours.\nDone: the parser\nNeeded: tests\nFiles: a.py, b.py\nWhy: 0.3 needs it"
                assert said["message"] == words
                for wrong, why in (
                    ({"done": "x"}, "says whom it is for"),
                    ({"to": ["human"], "all": True}, "either for"),
                ):
                    assert why in await refused(person, "channel_send", message="x", **wrong)

        asyncio.run(story())

    def test_words_for_nobody_get_a_hint_whom_they_may_mean(self, here: Place, worker: Worker) -> None:
        """As on the command line."""

        async def story() -> None:
            async with over_http(here.house, here.token, NEWER) as person:
                sent = await call(person, "channel_send", message=f"@{worker.name[:-1]} look")
                assert (sent["to"], f"Did you mean {worker.name}?" in sent["hint"]) == ([], True)

        asyncio.run(story())

    def test_a_call_that_comes_again_under_the_same_name_is_the_same_message(self, here: Place) -> None:
        """A bridge repeats it when nobody knows whether the first arrived."""

        async def story() -> None:
            async with over_http(here.house, here.token, NEWER, {"Windlass-Request": "once"}) as person:
                sent = [await call(person, "channel_send", message="Only once") for _ in range(3)]
                said = (await call(person, "channel_peek", limit=5))["entries"]
                assert len({each["id"] for each in sent}) == 1
                assert [each["message"] for each in said].count("Only once") == 1

        asyncio.run(story())

    def test_a_question_that_comes_again_is_the_same_one(self, here: Place, worker: Worker) -> None:
        """And a person who says to be an agent is marked so."""

        async def story() -> None:
            async with over_http(here.house, here.token, NEWER, {"Windlass-Request": "ask-once"}) as person:
                given = {"question": "Only once?", "agent": worker.name, "from": worker.name}
                asked = [await call(person, "ask", **given) for _ in range(3)]
                assert len({each["conversation"] for each in asked}) == 1
            async with here.person() as person:
                said = (await call(person, "channel_peek", limit=1))["entries"]
                assert (said[0]["message"], said[0]["claims"]) == ("Only once?", worker.name)

        asyncio.run(story())


class TestBadInput:
    @pytest.mark.parametrize("era", [OLDER, NEWER])
    @pytest.mark.parametrize(
        ("tool", "given", "words"),
        [
            ("channel_send", {}, "message is missing: What you say, Markdown."),
            ("channel_send", {"message": ["a", "list"]}, "message must be a text."),
            ("channel_send", {"message": None}, "message is missing: What you say, Markdown."),
            ("channel_send", {"message": "  \n"}, "The message has no words."),
            ("channel_send", {"message": "x", "to": "human"}, "to must be a list of texts, not 'human'."),
            ("channel_send", {"message": "x", "to": ["nobody-at-all"]}, "There is no agent nobody-at-all here."),
            (
                "channel_send",
                {"message": "x", "too": ["a"]},
                "'too' is not an argument of channel_send. Did you mean to?",
            ),
            ("channel_send", {"message": "x" * 1_100_000}, "The message has more than 1000000 bytes."),
            ("channel_send", {"message": "x", "from": "nobody"}, "There is no agent nobody here."),
            ("channel_peek", {"channel": "mian"}, "'mian' is no channel. Did you mean main?"),
            ("channel_peek", {"limit": -1}, "limit must be a whole number from 0 to 1000000000."),
            ("channel_peek", {"limit": 1.5}, "limit must be a whole number from 0 to 1000000000."),
            ("channel_peek", {"limit": True}, "limit must be a whole number from 0 to 1000000000."),
            ("channel_peek", {"since": "yesterday"}, "'yesterday' is not the id of a message."),
            ("channel_wait", {"timeout": 1e300}, "timeout must be a number of seconds from 0 to 1000000000."),
            ("document_read", {"name": "../../token"}, "'../../token' is no name for a document."),
            ("inbox_ack", {"ids": ["m999999"]}, "human was never sent m999999."),
        ],
    )
    def test_it_is_refused_with_a_sentence(
        self, here: Place, era: str, tool: str, given: dict[str, Any], words: str
    ) -> None:
        """What is wrong, and no stack trace."""

        async def story() -> None:
            async with here.person(Way("http", era)) as person:
                result = await person.call_tool(tool, given)
                assert result.is_error
                assert said(result).startswith(words)
                assert "Traceback" not in said(result)

        asyncio.run(story())

    @pytest.mark.parametrize("era", [OLDER, NEWER])
    def test_a_tool_that_is_not_there_is_no_tool(self, here: Place, era: str) -> None:
        """With the near miss; a name of any length does no harm."""

        async def story() -> None:
            async with here.person(Way("http", era)) as person:
                with pytest.raises(MCPError, match="Did you mean channel_send"):
                    await person.call_tool("chanel_send", {"message": "x"})
                with pytest.raises(MCPError, match="There is no tool"):
                    await person.call_tool("x" * 10_000, {})
                assert (await call(person, "channel_peek", limit=1))["entries"] is not None

        asyncio.run(story())
