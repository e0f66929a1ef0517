"""`windlass mcp`: lines in, lines out; and a daemon that is killed in between is not noticed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from e2e_stage import WITHIN
from mcp_stage import ERAS, NEWER, OLDER, Place, Way, Worker, call
from test_mcp_news import INBOX, Ears, soon

from windlass.cli.mcp_bridge.protocol import LOOKING, REPEATABLE
from windlass.mcp.tools import TOOLS

pytestmark = [
    pytest.mark.xdist_group("mcp"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": NEWER,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


@pytest.fixture(scope="module")
def worker(here: Place) -> Worker:
    return here.worker()


class Lines:
    """A bridge, spoken to by hand."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def write(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def ask(self, key: Any, method: str, **params: Any) -> None:
        """A request of the newer era."""
        given = {"_meta": ENVELOPE, **params}
        self.write(json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": given}).encode())

    def call(self, key: Any, tool: str, **given: Any) -> None:
        self.ask(key, "tools/call", name=tool, arguments=given)

    def cancel(self, key: Any) -> None:
        given = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}}
        self.write(json.dumps(given).encode())

    def read(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())


@contextmanager
def bridge(here: Place, **more: str) -> Iterator[Lines]:
    house = here.house
    process = subprocess.Popen(
        (*house.program, "mcp"),
        cwd=house.repo,
        env=house.environment | more,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process:
        try:
            yield Lines(process)
        finally:
            process.kill()


def killed(here: Place) -> None:
    """The daemon dies; agents live on, and the next command starts another."""
    os.kill(here.house.daemon, 9)


class TestLines:
    @pytest.mark.parametrize(
        ("line", "code"),
        [
            (b"not json", -32700),
            (b"\xff\xfe", -32700),
            (b"[" * 100_000, -32700),
            (b"[]", -32600),
            (b"5", -32600),
            (b'{"jsonrpc":"2.0","id":"long","method":"ping","params":{"x":"' + b"y" * 5_000_000 + b'"}}', -32600),
        ],
    )
    def test_what_is_no_message_is_answered_by_an_error(self, here: Place, line: bytes, code: int) -> None:
        """And the next line counts."""
        with bridge(here) as lines:
            lines.write(b"")
            lines.write(line)
            assert lines.read()["error"]["code"] == code
            lines.ask("next", "tools/list")
            assert lines.read()["id"] == "next"

    @pytest.mark.parametrize(
        "message",
        [
            {"jsonrpc": "2.0", "id": 7, "method": "tools/list"},
            {"jsonrpc": "2.0", "id": 7, "method": 5},
            {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"_meta": ENVELOPE, "name": {"a": 1}}},
            {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": [1]},
            {"jsonrpc": "1.0", "id": 7, "method": "no\r\nX-Evil: 1", "params": {"_meta": ENVELOPE}},
            {"id": 7, "method": "x", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "é\n"}}},
        ],
    )
    def test_a_request_that_cannot_be_served_has_an_answer(self, here: Place, message: dict[str, Any]) -> None:
        """With its own id, so that nobody waits for it."""
        with bridge(here) as lines:
            lines.write(json.dumps(message).encode())
            answer = lines.read()
            assert answer["id"] == 7
            assert answer["error"]["message"]

    def test_before_anything_was_begun_it_says_how_to_begin(self, here: Place) -> None:
        """Whoever tries it by hand reads what is missing, in words that do not need the protocol."""
        with bridge(here) as lines:
            lines.write(b'{"jsonrpc":"2.0","id":7,"method":"tools/list"}')
            said = lines.read()["error"]["message"]
            assert "session" not in said.lower() and "`initialize` comes first" in said

    def test_it_ends_with_its_input_and_answers_before(self, here: Place) -> None:
        """The last request is still answered."""
        with bridge(here) as lines:
            lines.ask(1, "tools/list")
            assert lines.process.stdin
            lines.process.stdin.close()
            assert lines.read()["id"] == 1
            assert lines.process.wait(WITHIN) == 0

    def test_it_imports_nothing_heavy(self, here: Place) -> None:
        """Agents wait for it at every start."""
        with bridge(here, PYTHONPROFILEIMPORTTIME="1") as lines:
            lines.ask(1, "tools/list")
            lines.read()
            assert lines.process.stdin
            assert lines.process.stderr
            lines.process.stdin.close()
            rows = lines.process.stderr.read().decode().splitlines()
        names = {row.rpartition("|")[2].strip() for row in rows}
        assert "windlass.cli.connection.http" in names
        assert not names & {"mcp", "pydantic", "asyncio", "msgspec", "starlette", "http.client", "subprocess", "urllib"}

    def test_a_cancelled_request_is_hung_up_and_not_asked_again(self, here: Place) -> None:
        """Closing the stream is how the newer era cancels."""
        with bridge(here) as lines:
            lines.call("slow", "channel_wait", timeout=40)
            lines.ask("quick", "tools/list")
            assert lines.read()["id"] == "quick"
            lines.cancel("slow")
            here.house.wl("list")
            lines.ask("last", "tools/list")
            assert lines.read()["id"] == "last"

    def test_it_repeats_only_what_the_tools_say_may_be_repeated(self) -> None:
        """The two lists are one."""
        assert {tool.name for tool in TOOLS if tool.looks or tool.repeatable} == REPEATABLE
        assert {tool.name for tool in TOOLS if tool.looks} == LOOKING


class TestOrder:
    """A client that does not wait for each answer has still said one thing after the other."""

    def test_what_is_sent_line_by_line_stays_in_order(self, here: Place) -> None:
        """However fast the lines come."""
        words = [f"word {number:03}" for number in range(60)]
        with bridge(here) as lines:
            for number, each in enumerate(words):
                lines.call(number, "channel_send", message=each)
            assert [lines.read()["id"] for _ in words] == [*range(60)]
        assert said(here, "word") == words

    def test_also_where_the_daemon_dies_in_between(self, here: Place) -> None:
        """A request under way is repeated before the requests after it."""
        words = [f"line {number:03}" for number in range(40)]
        with bridge(here) as lines:
            for number, each in enumerate(words):
                lines.call(number, "channel_send", message=each)
            assert lines.read()["id"] == 0
            killed(here)
            assert [lines.read()["id"] for _ in words[1:]] == [*range(1, 40)]
        assert said(here, "line") == words

    def test_all_is_said_that_came_before_the_end_of_the_input(self, here: Place) -> None:
        """Lines that wait for their turn are not forgotten."""
        words = [f"last {number:03}" for number in range(40)]
        with bridge(here) as lines:
            for number, each in enumerate(words):
                lines.call(number, "channel_send", message=each)
            assert lines.process.stdin
            lines.process.stdin.close()
            assert lines.process.wait(WITHIN) == 0
        assert said(here, "last") == words

    def test_waiting_holds_nobody_up(self, here: Place) -> None:
        """Who waits for an answer can still say something."""
        with bridge(here) as lines:
            lines.call("wait", "channel_wait", timeout=40)
            lines.call("send", "channel_send", message="meanwhile")
            assert lines.read()["id"] == "send"

    def test_what_is_cancelled_before_its_turn_is_not_said(self, here: Place) -> None:
        """And nobody answers it."""
        with bridge(here) as lines:
            os.kill(here.house.daemon, signal.SIGSTOP)
            for words in ("turn one", "turn two", "turn three"):
                lines.call(words, "channel_send", message=words)
            lines.cancel("turn two")
            lines.write(b"not json")
            assert "error" in lines.read(), "the lines before it are heard"
            os.kill(here.house.daemon, signal.SIGCONT)
            assert [lines.read()["id"] for _ in range(2)] == ["turn one", "turn three"]
        assert said(here, "turn") == ["turn one", "turn three"]


def said(here: Place, begin: str) -> list[str]:
    """The messages that begin with this, in order."""
    found = here.house.wl("peek", "--limit", "500", "--json").value
    return [each["message"] for each in found if each["message"].startswith(begin)]


class TestRestarts:
    @pytest.mark.parametrize("era", ERAS.values())
    def test_a_person_goes_on_with_the_next_daemon(self, here: Place, era: str) -> None:
        """It is started by the next call; nothing is said twice."""

        async def story() -> None:
            async with here.person(Way("stdio", era)) as person:
                for number in range(3):
                    await call(person, "channel_send", message=f"{era} {number}")
                    killed(here)
                entries = (await call(person, "channel_peek", limit=3))["entries"]
                assert [entry["message"] for entry in entries] == [f"{era} {number}" for number in range(3)]

        asyncio.run(story())

    @pytest.mark.parametrize("era", ERAS.values())
    def test_an_agent_waits_for_the_next_daemon(self, here: Place, worker: Worker, era: str) -> None:
        """From inside a run none is started; what it asked meanwhile is answered when there is one."""

        async def story() -> None:
            async with worker.client(Way("stdio", era)) as agent:
                await call(agent, "channel_peek")
                killed(here)
                asking = asyncio.create_task(call(agent, "channel_send", message=f"Through {era}"))
                await asyncio.to_thread(here.house.wl, "list")
                sent = await asking
                entries = (await call(agent, "channel_peek", limit=2))["entries"]
                assert [entry["id"] for entry in entries if entry["message"] == f"Through {era}"] == [sent["id"]]

        asyncio.run(story())

    def test_a_wait_that_was_cut_off_goes_on(self, here: Place, worker: Worker) -> None:
        """The client hears what came after the restart."""

        async def story() -> None:
            async with worker.client(Way("stdio", OLDER)) as agent:
                last = (await call(agent, "channel_send", message="Before"))["id"]
                waiting = asyncio.create_task(call(agent, "channel_wait", since=last, timeout=40))
                await call(agent, "channel_peek")
                killed(here)
                await asyncio.to_thread(here.house.wl, "list")
                async with here.person() as person:
                    await call(person, "channel_send", message="After")
                assert [each["message"] for each in (await waiting)["entries"]] == ["After"]

        asyncio.run(story())

    def test_subscriptions_of_the_older_era_are_begun_anew(self, here: Place, worker: Worker) -> None:
        """And the client is told to look, as something may have come meanwhile."""

        async def story() -> None:
            ears = Ears()
            async with worker.client(Way("stdio", OLDER), message_handler=ears) as agent:
                await agent.subscribe_resource(INBOX)
                killed(here)
                await asyncio.to_thread(here.house.wl, "list")
                assert await soon(ears.updates) == INBOX
                async with here.person() as person:
                    await call(person, "channel_send", message=f"@{worker.name} again")
                assert await soon(ears.updates) == INBOX

        asyncio.run(story())

    def test_so_is_listening_in_the_newer_era(self, here: Place, worker: Worker) -> None:
        """The stream that broke goes on."""

        async def story() -> None:
            way = Way("stdio", NEWER)
            async with worker.client(way) as agent, agent.listen(resource_subscriptions=[INBOX]) as news:
                killed(here)
                await asyncio.to_thread(here.house.wl, "list")
                events = aiter(news)
                await asyncio.wait_for(anext(events), WITHIN)
                async with here.person() as person:
                    await call(person, "channel_send", message=f"@{worker.name} again")
                    await asyncio.wait_for(anext(events), WITHIN)

        asyncio.run(story())
