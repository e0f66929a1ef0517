"""`process-status.json`: exactly the keys that programs know."""

from __future__ import annotations

import json
from dataclasses import replace

from windlass.core.nouns.agent import Agent, Status
from windlass.core.nouns.run import Outcome, Run
from windlass.core.nouns.task import Task
from windlass.core.render import ServerEntry, process_status, status_entry

SERVER = ServerEntry(Status.RUNNING, 4711, 0.0, 60.0)
AGENT = Agent(name="coder", project="p", provider="command")
RUN = Run(id="r1", agent="coder", task="t1", number=1, provider="command", started_at=1.0)
TASK = Task(id="t1", project="p", title="Implement auth module")


def test_the_server_stands_beside_the_agents() -> None:
    """Times are written as they are told to be."""
    shown = json.loads(process_status(SERVER, [status_entry(AGENT, Status.RUNNING, RUN, TASK, utc=str)], utc=str))

    assert shown["server"] == {
        "status": "running",
        "pid": 4711,
        "startedAt": "0.0",
        "lastEvent": "60.0",
        "error": None,
    }
    assert shown["coder"] == {
        "status": "running",
        "sessionKey": "r1",
        "startedAt": "1.0",
        "task": "Implement auth module",
        "error": None,
    }


def test_an_agent_that_failed_says_why_and_when() -> None:
    """The error is the reason of its last run."""
    ended = replace(RUN, outcome=Outcome.FAILED, reason="no network", ended_at=9.0)
    shown = json.loads(process_status(SERVER, [status_entry(AGENT, Status.ERROR, ended, TASK, utc=str)], utc=str))

    assert (shown["coder"]["error"], shown["coder"]["completedAt"]) == ("no network", "9.0")


def test_an_agent_that_never_ran_has_no_session() -> None:
    """Idle, with nothing made up."""
    shown = json.loads(process_status(SERVER, [status_entry(AGENT, Status.IDLE, None, TASK, utc=str)], utc=str))

    assert shown["coder"] == {
        "status": "idle",
        "sessionKey": None,
        "startedAt": None,
        "task": "Implement auth module",
        "error": None,
    }
