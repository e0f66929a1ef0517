"""The scripted model by itself: which step is chosen, what goes wrong on request, and what is remembered."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import patience
from model_server.script import Fault, Step, Usage, fail, parse_step, say, shell
from model_server.server import ModelServer

TOP = Path(__file__).parent.parent.parent
PATHS = {"messages": "/v1/messages", "responses": "/v1/responses"}
TOOLS = {"messages": [{"name": "Bash"}, {"name": "Write"}], "responses": [{"name": "exec_command"}]}


def request(api: str, prompt: str, *turns: str, stream: bool = False) -> dict[str, Any]:
    """A request in the form of an API, after so many turns of the model."""
    said = [("user", prompt)] + [pair for turn in turns for pair in (("assistant", turn), ("user", "Go on."))]
    messages = [{"role": role, "content": text} for role, text in said]
    where = "messages" if api == "messages" else "input"
    return {"model": "m", where: messages, "tools": TOOLS[api], "stream": stream}


@contextmanager
def line_to(models: ModelServer) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(models.url()).netloc, timeout=patience.seconds(10))
    try:
        yield connection
    finally:
        connection.close()


def post(models: ModelServer, path: str, body: dict[str, Any]) -> tuple[int, dict[str, str], str]:
    with line_to(models) as line:
        line.request("POST", path, json.dumps(body))
        answer = line.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


@pytest.fixture(params=PATHS)
def api(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_step_follows_from_the_request(api: str) -> None:
    """The same request gets the same step again; a later turn gets a later one; after the last one it is over."""
    with ModelServer({"talk": [say("first"), say("second")]}) as models:
        path = f"/s/talk{PATHS[api]}"
        answers = [post(models, path, request(api, "Hello.", *turns))[2] for turns in ((), (), ("first",), ("a", "b"))]
    assert ["first" in answer for answer in answers] == [True, True, False, False]
    assert "second" in answers[2]
    assert "no further step" in answers[3]


def test_the_prompt_can_name_the_scenario(api: str) -> None:
    """Agents that share one base URL still get scripts of their own, also where they are told what has landed."""
    with ModelServer({"a": [say("this is a")], "b": [say("this is b")]}) as models:
        log = "Recent commits:\n0f1e2d3 Land c7: Tell a story (scenario:c)\n"
        told = [post(models, PATHS[api], request(api, f"{log}Work on it (scenario:{name})."))[2] for name in "ab"]
        assert [each.scenario for each in models.requests()] == ["a", "b"]
    assert "this is a" in told[0]
    assert "this is b" in told[1]


def test_an_unknown_scenario_fails_the_test(api: str) -> None:
    """A script that is missing is told to the CLI, and is an error at the end."""
    with pytest.raises(AssertionError, match="no scenario 'lost'"), ModelServer() as models:
        assert post(models, f"/s/lost{PATHS[api]}", request(api, "Hello."))[0] == 400


def test_a_request_without_tools_is_no_turn(api: str) -> None:
    """A CLI that asks for a title, say, uses up nothing of the script."""
    with ModelServer() as models:
        status, _, answer = post(models, f"/s/any{PATHS[api]}", request(api, "A title, please.") | {"tools": []})
        assert (status, models.requests()) == (200, [])
    assert "Aside" in answer


def test_trouble_can_pass(api: str) -> None:
    """What goes wrong twice is answered the third time, in each conversation anew."""
    with ModelServer({"bad": [fail(Fault.SERVER, times=2, text="well again")]}) as models:
        codes = [post(models, f"/s/bad{PATHS[api]}", request(api, "Hello."))[0] for _ in range(3)]
        assert [each.answer for each in models.requests("bad")] == ["server", "server", "answer"]
    assert codes == [500, 500, 200]


def test_trouble_can_pass_for_all(api: str) -> None:
    """What is counted over all conversations goes wrong in the first one only."""
    with ModelServer({"bad": [fail(Fault.SERVER, times=1, in_all=True, text="well again")]}) as models:
        for conversation in ("one", "two"):
            post(models, f"/s/bad{PATHS[api]}", request(api, "Hello.") | {"prompt_cache_key": conversation})
        assert [each.answer for each in models.requests("bad")] == ["server", "answer"]


def test_an_answer_waits_for_its_gate(api: str) -> None:
    """Nothing is said before the gate is open."""
    with ModelServer({"later": [say("Now.", gate="go")]}) as models, ThreadPoolExecutor() as others:
        answer = others.submit(post, models, f"/s/later{PATHS[api]}", request(api, "Hello."))
        assert models.wait_for(lambda: models.requests("later"))
        assert not wait([answer], timeout=0.2).done
        models.gates.add("go")
        assert "Now." in answer.result(10)[2]


@pytest.mark.parametrize(
    ("fault", "messages", "responses"),
    [
        (Fault.AUTH, 401, 401),
        (Fault.RATE, 429, 429),
        (Fault.QUOTA, 429, 429),
        (Fault.BILLING, 400, 429),
        (Fault.OVERLOADED, 529, 503),
        (Fault.CONTEXT, 400, 400),
        (Fault.SERVER, 500, 500),
    ],
)
def test_each_api_has_its_own_status(fault: Fault, messages: int, responses: int) -> None:
    """A fault comes in the form of the API that was asked, with the time to wait if there is one."""
    with ModelServer({"bad": [fail(fault, retry_after=7)]}) as models:
        told = [post(models, f"/s/bad{PATHS[api]}", request(api, "Hello.")) for api in PATHS]
    assert [status for status, _, _ in told] == [messages, responses]
    assert {headers["retry-after"] for _, headers, _ in told} == {"7"}


def test_a_hanging_answer_notices_who_leaves(api: str) -> None:
    """Nothing is said until the other side gives up, and that is remembered."""
    with ModelServer({"slow": [Step(hang=True)]}) as models:
        with line_to(models) as line:
            line.request("POST", f"/s/slow{PATHS[api]}", json.dumps(request(api, "Hello.")))
            assert models.wait_for(lambda: models.requests("slow"))
            assert not models.requests("slow")[0].left
        assert models.wait_for(lambda: models.requests("slow")[0].left)


def test_closing_waits_for_nobody() -> None:
    """The server closes at once, although one still waits for an answer and another may still ask something."""
    with ExitStack() as later:
        with ModelServer({"slow": [Step(hang=True)]}) as models:
            waiting, idle = later.enter_context(line_to(models)), later.enter_context(line_to(models))
            idle.request("GET", "/")
            idle.getresponse().read()
            waiting.request("POST", "/s/slow/v1/messages", json.dumps(request("messages", "Hello.")))
            assert models.wait_for(lambda: models.requests("slow"))
        with pytest.raises(http.client.RemoteDisconnected):
            waiting.getresponse()


@pytest.mark.parametrize("step", [Step(drop=True, midway=True), fail(Fault.OVERLOADED, midway=True)])
def test_a_stream_can_break(api: str, step: Step) -> None:
    """An answer that has begun ends without its end: cut off, or with an error in it."""
    with ModelServer({"cut": [step]}) as models, line_to(models) as line:
        line.request("POST", f"/s/cut{PATHS[api]}", json.dumps(request(api, "Hello.", stream=True)))
        answer = line.getresponse()
        try:
            told = answer.read().decode()
        except http.client.IncompleteRead as error:
            assert step.drop
            told = error.partial.decode()
    assert ("message_start" if api == "messages" else "response.created") in told
    assert ("message_stop" if api == "messages" else "response.completed") not in told
    assert ("verloaded" in told) is (step.fault is not None)


def test_usage_is_told_in_each_form(api: str) -> None:
    """Cached tokens are a part of the input: one API tells them apart, the other within."""
    with ModelServer({"dear": [say("Here.", usage=Usage(input=50, output=7, cached=20))]}) as models:
        told = json.loads(post(models, f"/s/dear{PATHS[api]}", request(api, "Hello."))[2])["usage"]
    assert (told["input_tokens"], told["output_tokens"]) == ((30, 7) if api == "messages" else (50, 7))


def test_a_step_without_a_tool_for_it_fails_the_test() -> None:
    """A script that wants what the CLI cannot do is an error, not silence."""
    asked = request("messages", "Hello.") | {"tools": [{"name": "Read"}]}
    with pytest.raises(AssertionError, match="can do shell"), ModelServer({"run": [shell("ls")]}) as models:
        assert post(models, "/s/run/v1/messages", asked)[0] == 400


def test_counting_tokens_needs_no_script() -> None:
    """The Anthropic API's own way to count is answered."""
    with ModelServer() as models:
        told = post(models, "/v1/messages/count_tokens?beta=true", request("messages", "Hello."))[2]
    assert json.loads(told)["input_tokens"] > 0


def test_steps_are_read_strictly() -> None:
    """A script in a file says what a script in a test says, and a slip of the pen is refused."""
    assert parse_step({"shell": "ls", "text": "I look."}) == shell("ls", text="I look.")
    assert parse_step({"fault": "auth", "times": 1, "usage": {"input": 1}}) == fail(
        Fault.AUTH, times=1, usage=Usage(input=1)
    )
    with pytest.raises(ValueError, match="has no sheel"):
        parse_step({"sheel": "ls"})


def test_it_is_a_command_as_well(tmp_path: Path) -> None:
    """By hand: it prints its address, serves a script from a file, records, and ends when it is told to."""
    script, record = tmp_path / "script.json", tmp_path / "record.jsonl"
    script.write_text('{"greet": [{"text": "Good day."}]}')
    words = (sys.executable, "-m", "model_server", "--script", str(script), "--record", str(record))
    with subprocess.Popen(words, cwd=TOP / "tests", stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout
        line = http.client.HTTPConnection(
            urlsplit(server.stdout.readline().strip()).netloc, timeout=patience.seconds(10)
        )
        line.request("POST", "/s/greet/v1/messages", json.dumps(request("messages", "Hello.")))
        assert "Good day." in line.getresponse().read().decode()
        line.close()
        server.terminate()
    assert server.returncode == 0
    assert json.loads(record.read_text())["scenario"] == "greet"
