"""HTTP on the daemon's socket, as a program that knows only the description calls it: each slip says what to do."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from e2e_stage import WITHIN, Stage, stage


@pytest.fixture(scope="module")
def house() -> Iterator[Stage]:
    with stage(WINDLASS_SANDBOX="off") as made:
        made.wl("init", "--yes")
        made.wl("send", "One.", "--to", "human")
        made.wl("send", "Two.", "--to", "human")
        yield made


def call(house: Stage, method: str, path: str, body: Any = None, host: str = "localhost") -> tuple[int, Any]:
    """The number and the JSON of an answer. `HERE` in a path is the project's folder."""
    connection = http.client.HTTPConnection("windlass")
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(WITHIN)
        door.connect(str(house.state / "daemon.sock"))
        connection.sock = door
        target = path.replace("HERE", quote(str(house.repo), safe=""))
        content = None if body is None else json.dumps(body)
        with suppress(BrokenPipeError, ConnectionResetError):  # it may answer and hang up before it has read a body
            connection.request(method, target, content, headers={"Host": host})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())


SLIPS: list[tuple[str, str, Any, int, str]] = [
    ("GET", "/messages", None, 400, "path is missing"),
    ("GET", "/messages/wait", None, 400, "path is missing"),
    ("GET", "/documents", None, 400, "path is missing"),
    ("GET", "/documents/notes", None, 400, "path is missing"),
    ("GET", "/messages?path=HERE&limt=1", None, 400, "'limt' is not a parameter of this request. Did you mean limit?"),
    ("GET", "/messages?path=HERE&limit=0", None, 400, "limit must be a whole number of at least 1, not '0'."),
    ("GET", "/events?sinc=1", None, 400, "Did you mean since?"),
    ("GET", "/status?x=1", None, 400, "`GET /openapi.json` describes every request."),
    ("GET", "/mesages", None, 404, "`GET /openapi.json` lists what there is."),
    ("POST", "/events", {}, 404, "`GET /openapi.json` lists what there is."),
    (
        "POST",
        "/messages",
        {"body": "Hi.", "tto": ["coder"]},
        400,
        "'tto' is not a key of this request. Did you mean to?",
    ),
    ("POST", "/messages", {"body": "Hi.", "to": ["coder"]}, 400, "path is missing"),
    ("POST", "/messages", {"to": ["human"], "path": "HERE"}, 400, 'body is missing. Send JSON such as {"body": "…"}.'),
    ("POST", "/conversations", {"agent_id": "x", "path": "HERE"}, 400, "question is missing. Send JSON such as"),
    ("POST", "/inbox/read", {"limit": 0}, 400, "limit must be a whole number of at least 1."),
    ("POST", "/queue/pause", {"path": "HERE", "raeson": "x"}, 400, "Did you mean reason?"),
]


@pytest.mark.parametrize("slip", SLIPS, ids=lambda slip: f"{slip[0]} {slip[1]} {slip[4][:12]}")
def test_a_slip_is_refused_with_what_to_send(house: Stage, slip: tuple[str, str, Any, int, str]) -> None:
    """Nothing is left out silently, and nothing looks empty that was not asked for well."""
    method, path, body, number, says = slip
    if body and body.get("path") == "HERE":
        body = body | {"path": str(house.repo)}
    status, answer = call(house, method, path, body)
    assert (status, says in f"{answer['error']['message']} {answer['error']['hint']}") == (number, True), answer


def test_reading_takes_what_came_after_and_leaves_the_rest(house: Stage) -> None:
    """With a limit the oldest of them; with `look` nothing is acknowledged."""
    first, second, third = (
        call(house, "POST", "/messages", {"body": text, "to": ["human"], "path": str(house.repo)})[1]["message"]["id"]
        for text in "abc"
    )
    looked = call(house, "POST", "/inbox/read", {"since": first, "limit": 1, "look": True})[1]["items"]
    assert [each["id"] for each in looked] == [second]
    taken = call(house, "POST", "/inbox/read", {"since": first})[1]["items"]
    assert [each["id"] for each in taken] == [second, third]
    left = [each["id"] for each in call(house, "GET", "/inbox")[1]["items"]]
    assert first in left and second not in left


def test_a_wrong_host_says_the_right_one(house: Stage) -> None:
    """As some clients make one up for a socket."""
    status, answer = call(house, "GET", "/status", host="socket")
    assert (status, answer["error"]["hint"]) == (403, "Use http://localhost as its address.")


def test_every_query_says_what_its_path_is(house: Stage) -> None:
    """And a body, too."""
    described = call(house, "GET", "/openapi.json")[1]
    paths = described["paths"]
    [path] = [each for each in paths["/messages"]["get"]["parameters"] if each["name"] == "path"]
    assert "folder" in path["schema"]["description"]
    named = paths["/messages"]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
    body = described["components"]["schemas"][named.rpartition("/")[2]]
    assert "folder" in body["properties"]["path"]["description"]
    known = {each["name"] for each in paths["/conversations/listen"]["get"]["parameters"]}
    assert known == {"path", "agent_id", "timeout"}


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_the_line_of_the_manual_works(house: Stage) -> None:
    """As it is printed there."""
    text = (Path(__file__).parents[2] / "docs/messages.md").read_text()
    [line] = [each.strip().removeprefix("$ ") for each in text.splitlines() if each.strip().startswith("$ curl")]
    shown = subprocess.run(
        line.replace("~/.windlass", str(house.state)),
        shell=True,
        cwd=house.repo,
        env=house.environment,
        capture_output=True,
        timeout=WITHIN,
        check=True,
    ).stdout
    assert [load["message"] for load in json.loads(shown)["items"]][:2] == ["One.", "Two."]
