"""What was meant for one alone, looked for by another agent in every view that there is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage

from patience import until

SECRET = "tr0ub4dor"
VIEWS = {
    "questions": "windlass questions --json",
    "peek": "windlass peek --json --limit 100",
    "show": "windlass show {name} --json",
    "logs": "windlass logs {name} --raw",
    "list": "windlass list --all --json",
    "events": "timeout 2 windlass watch --since 0",
    "inbox": "windlass inbox --json",
}


@pytest.fixture
def house() -> Iterator[Stage]:
    with stage(settings="[limits]\nruns = 8\nreminders = 0\nretries = 0\n", WINDLASS_SANDBOX="off") as made:
        made.wl("init")
        yield made
        made.wl("stop", "--all", code=None)


def seen_by_another(house: Stage, name: str) -> dict[str, str]:
    """What another agent gets to see of one, by view."""
    out = house.flag("seen")
    looks = "; ".join(f"{how.format(name=name)} > {out}.{view} 2>&1" for view, how in VIEWS.items())
    house.work("Look", f"{looks}; touch {out}; sleep 60")
    until(out.exists, "its look")
    return {view: (out.parent / f"{out.name}.{view}").read_text() for view in VIEWS}


def test_a_question_for_the_person_alone(house: Stage) -> None:
    """Nobody else sees it; the person does."""
    kept = house.flag("secret")
    kept.write_text(SECRET)
    name = house.work("Ask", f'windlass ask --agent-id human --no-wait "Is it $(cat {kept})?"; sleep 60')
    until(lambda: SECRET in house.wl("peek", "--json").out, "the question in the log")
    assert SECRET in house.wl("show", name, "--json").out
    assert [view for view, text in seen_by_another(house, name).items() if SECRET in text] == []


def test_a_message_for_one_agent_alone(house: Stage) -> None:
    """Nobody else sees it, also not where its reader has printed it."""
    done = house.flag("done")
    name = house.work("Read", f"until windlass read | tee {done} | grep 'It is'; do sleep 0.1; done; sleep 60")
    house.wl("send", f"It is {SECRET}.", "--to", name)
    until(lambda: done.exists() and SECRET in done.read_text(), "its reading")
    until(lambda: SECRET in house.wl("logs", name).out, "what it printed")
    seen = seen_by_another(house, name)
    assert [view for view, text in seen.items() if SECRET in text] == []
    assert f"What {name} prints is for people." in seen["logs"]
