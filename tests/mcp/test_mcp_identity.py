"""Who may call `/mcp`: on the port whoever has a token, and only as its owner; for as long as the run lives."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from e2e_stage import WITHIN, Stage, stage
from mcp_stage import NEWER, OLDER, Place, Way, Worker, call, over_http, place, variable

from forked import FORK
from patience import until

pytestmark = pytest.mark.xdist_group("mcp")

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}
BOTH = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def here() -> Iterator[Place]:
    with place() as made:
        yield made


@pytest.fixture(scope="module")
def worker(here: Place) -> Worker:
    return here.worker()


def post(here: Place, token: str = "", message: Any = HELLO, **headers: str) -> httpx2.Response:
    """One request, by hand."""
    given = {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.post(here.url, json=message, headers=BOTH | given | headers, timeout=WITHIN)


def words(answer: httpx2.Response) -> str:
    return str(answer.json()["error"]["message"])


class TestTokens:
    def test_without_one_nobody_is_let_in(self, here: Place, worker: Worker) -> None:
        """Nor with another one, nor with one that is almost right, nor with a run's id alone."""
        run, _, seal = worker.token.partition(".")
        for token in ("", "x", here.token[:-1], f"{run}.", f"{run}.{seal[:-1]}", f"r999.{seal}", f".{seal}", run):
            answer = post(here, token)
            assert answer.status_code == 403, token
            assert "token" in words(answer)
        assert post(here, worker.token).status_code == 200
        assert post(here, here.token).status_code == 200

    def test_bytes_that_are_no_text_are_no_token(self, here: Place) -> None:
        """Refused like any other."""
        answer = httpx2.post(here.url, json=HELLO, headers=[(b"Authorization", b"Bearer \xff\xfe.\xe9")])
        assert answer.status_code == 403

    def test_files_are_the_persons_alone(self, here: Place) -> None:
        """Token and port, mode 0600."""
        for name in ("token", "port"):
            assert stat.S_IMODE((here.house.state / name).stat().st_mode) == 0o600

    def test_a_run_whose_life_is_over_is_refused(self, here: Place) -> None:
        """Its token was good a moment ago."""
        other = here.worker("End soon")
        token = other.token
        assert post(here, token).status_code == 200
        here.house.wl("stop", other.name)
        until(lambda: here.house.agent(other.name)["runs"][0]["outcome"], "its end")
        answer = post(here, token)
        assert (answer.status_code, "run is over" in words(answer)) == (403, True)

    def test_each_run_has_its_own(self, here: Place, worker: Worker) -> None:
        """And speaks as its own agent."""
        other = here.worker("Be another")

        async def story() -> None:
            for each in (worker, other):
                async with each.client(Way()) as agent:
                    await call(agent, "channel_send", message=f"I am {each.name}")
            async with here.person() as person:
                last = (await call(person, "channel_peek", limit=2))["entries"]
            assert [(each["from"], each["message"]) for each in last] == [
                (name, f"I am {name}") for name in (worker.name, other.name)
            ]

        asyncio.run(story())
        assert worker.token != other.token

    def test_none_is_ever_written_down(self, here: Place, worker: Worker) -> None:
        """Not in what an agent says or prints, nor in events, logs or files; only the person's own file has theirs."""
        house, printed = here.house, here.house.flag("printed")
        teller = house.work("Tell all", f"echo $WINDLASS_TOKEN; cat {house.state}/token; touch {printed}; sleep 60")
        until(printed.exists, "its words")
        secrets = [here.token, worker.token, variable(house.pid(teller), "WINDLASS_TOKEN")]

        async def story() -> None:
            async with worker.client(Way()) as agent:
                await call(agent, "channel_send", message=f"Mine is {worker.token}, yours is {here.token}")
                await call(agent, "document_write", name="secret", text=worker.token)
                said = json.dumps(await call(agent, "channel_peek", limit=5))
                assert "Mine is ****" in said

        asyncio.run(story())
        until(lambda: "****" in house.wl("logs", teller).out, "what it printed, blotted")
        house.wl("stop", teller)
        told = [house.wl("logs", teller).out, json.dumps(house.events())]
        kept = [path for path in house.state.rglob("*") if path.is_file() and path != house.state / "token"]
        for secret in secrets:
            assert not [each for each in told if secret in each]
            assert not [each for each in kept if secret.encode() in each.read_bytes()]


class TestSessions:
    def test_one_is_of_no_use_to_another(self, here: Place, worker: Worker) -> None:
        """Whoever knows its id and has a token of their own is told that there is none."""
        begun = post(here, here.token)
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert post(here, here.token, ping, **session).status_code == 200
        assert post(here, worker.token, ping, **session).status_code == 404


class TestBrowsers:
    @pytest.mark.parametrize("headers", [{"Origin": "http://localhost"}, {"Host": "evil.example.com"}])
    def test_pages_are_refused(self, here: Place, headers: dict[str, str]) -> None:
        """With a token, too."""
        assert post(here, here.token, **headers).status_code == 403

    def test_nothing_else_is_served_there(self, here: Place) -> None:
        """The port is for the tools; the rest of the API is on the socket."""
        base = here.url.removesuffix("/mcp")
        for path in ("/status", "/events", "/shutdown", "/mcp/", "/mcp/x", "/"):
            assert httpx2.post(base + path, headers={"Authorization": f"Bearer {here.token}"}).status_code == 404


class TestPort:
    def test_it_is_on_loopback_only_and_can_be_chosen_or_switched_off(self) -> None:
        """`daemon.port`: a number, or -1 for none."""
        with socket.create_server(("127.0.0.1", 0)) as any_socket:
            free = any_socket.getsockname()[1]
        with stage(settings=f"[daemon]\nport = {free}\n") as house:
            house.wl("list")
            assert (house.state / "port").read_text() == f"{free}\n"
            assert _listens(house.daemon) == {f"0100007F:{free:04X}"}
        with stage(settings="[daemon]\nport = -1\n") as house:
            house.wl("list")
            assert not (house.state / "port").exists()
            assert _listens(house.daemon) == set()

    def test_one_that_is_taken_is_said_and_keeps_nobody_from_working(self) -> None:
        """`doctor` names it; the socket serves all the same."""
        taken = socket.create_server(("127.0.0.1", 0))
        with taken, stage(settings=f"[daemon]\nport = {taken.getsockname()[1]}\n") as house:
            assert house.wl("list").code == 0
            assert "can't be listened on" in house.wl("doctor", code=None).out
            assert not (house.state / "port").exists()

    def test_it_and_all_tokens_outlive_a_daemon_that_is_killed(self, worker: Worker, here: Place) -> None:
        """The next one listens where the last one did, and knows everyone again."""
        before, house = here.url, here.house
        os.kill(house.daemon, 9)
        house.wl("list")
        assert here.url == before

        async def story() -> None:
            for era in (OLDER, NEWER):
                async with over_http(house, worker.token, era) as agent:
                    await call(agent, "channel_send", message="Still me")

        asyncio.run(story())

    def test_a_daemon_that_leaves_takes_it_away(self) -> None:
        """Nobody is led to what may be someone else's port by now; the token stays."""
        with stage() as house:
            house.wl("list")
            token = (house.state / "token").read_text()
            house.wl("daemon", "stop")
            assert not (house.state / "port").exists()
            house.wl("list")
            assert (house.state / "token").read_text() == token


class TestTheTokenFile:
    @pytest.mark.parametrize("broken", ["", "short\n", "x" * 43 + "\nmore\n", "\0" * 50])
    def test_one_that_is_no_token_is_made_anew(self, broken: str) -> None:
        """An empty secret would let anyone in."""
        with stage() as house:
            file = house.state / "token"
            file.write_text(broken)
            file.chmod(0o644)
            house.wl("list")
            assert len(file.read_text().strip()) == 43
            assert file.read_text() != broken
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


class TestImports:
    def test_a_daemon_imports_the_sdk_when_someone_calls(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Not before: it takes a second and 50 MB. A part of it that is no Python is mapped into memory."""
        monkeypatch.setenv(FORK, "no")  # who is forked has all of it from the beginning
        with place() as made:
            assert not _has_sdk(made.house)

            async def story() -> None:
                async with made.person() as person:
                    await person.list_tools()

            asyncio.run(story())
            assert _has_sdk(made.house)


def _has_sdk(house: Stage) -> bool:
    return "pydantic_core" in Path(f"/proc/{house.daemon}/maps").read_text()


def _listens(pid: int) -> set[str]:
    """The TCP addresses that a process listens on, as the kernel writes them."""
    own = {str(path.readlink()) for path in Path(f"/proc/{pid}/fd").iterdir() if path.is_symlink()}
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in own}
