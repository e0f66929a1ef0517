"""Real agents at work: the real daemon and the real coding CLIs on an island, whose model follows our scripts."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e_stage import Stage, stage
from island import Island, NoIsland, island
from real_clis import do_without, program

from models.script import Step, say, shell, write
from models.server import ModelServer

CLIS = ("claude", "codex")
WITHIN = 90.0
"""Seconds after which an agent is late, on a machine that has much else to do."""
SETTINGS = "[limits]\nruns = {runs}\n[daemon]\nstop_grace_seconds = 3\n{more}"
QUICK = {"CLAUDE_CODE_MAX_RETRIES": "0", "OPENAI_API_KEY": "sk-scripted"}
"""No patience with a model that refuses; Codex has its own in its settings."""
CODEX_SETTINGS = """
model = "gpt-5.5"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
stream_idle_timeout_ms = 120000
"""

Page = dict[str, Any]
"""What `windlass show --json` says about an agent."""


@dataclass
class Crew:
    """Agents by the name of their story; each story is told by each CLI."""

    house: Stage
    models: ModelServer
    place: Island
    names: dict[str, str] = field(default_factory=dict)

    def give(self, cli: str, story: str, steps: Sequence[Step], *options: str, repo: Path | None = None) -> str:
        """Give an agent work in which its model follows these steps."""
        scenario = f"{story}-{cli}"
        self.models.scenarios[scenario] = list(steps)
        words = ("work", f"Tell a story (scenario:{scenario})", "--provider", cli, "--json", *options)
        self.names[scenario] = str(self.house.wl(*words, cwd=repo).value["agent"])
        return self.names[scenario]

    def page(self, name: str) -> Page:
        """What is known of an agent, as a person is shown it."""
        return dict(self.house.wl("show", name, "--json").value)

    def when(self, name: str, is_so: Callable[[Page], Any], what: str) -> Page:
        """What is known of an agent, as soon as something is so."""
        deadline = time.monotonic() + WITHIN
        while not is_so(page := dict(self.house.agent(name))):
            assert time.monotonic() < deadline, f"in vain for {what}: {json.dumps(page, indent=1)}"
            time.sleep(0.1)
        return page

    def landed(self, name: str) -> Page:
        return self.when(name, lambda page: page["change"] and page["change"]["state"] == "landed", "landed")

    def ended(self, name: str, number: int = 1) -> Any:
        """A run of an agent, as soon as it is over."""
        done = self.when(name, lambda page: _ended(page, number), f"run {number} ended")
        return done["runs"][number - 1]

    def prompts(self, cli: str, story: str) -> list[str]:
        """What the model was told in the last request of a story."""
        return list(self.models.requests(f"{story}-{cli}")[-1].asked.prompts)


@contextmanager
def crew(*, runs: int = 6, settings: str = "", **variables: str) -> Iterator[Crew]:
    """A person with a repository, both CLIs and a daemon, alone on an island with a model."""
    path = os.pathsep.join((*{str(Path(program(each)).parent) for each in CLIS}, os.environ["PATH"]))
    with _island() as place, ModelServer(listener=place.listener) as models:
        written = SETTINGS.format(runs=runs, more=settings)
        with stage(settings=written, before=place.there()) as house:
            house.environment |= QUICK | {"ANTHROPIC_BASE_URL": models.url()} | variables
            house.environment["PATH"] = f"{house.folder / 'bin'}{os.pathsep}{path}"
            house.environment["TMPDIR"] = str(house.folder / "tmp")
            for each in ("tmp", "home/.codex"):
                (house.folder / each).mkdir()
            (house.folder / "home/.codex/config.toml").write_text(CODEX_SETTINGS.format(url=models.url()))
            yield Crew(house, models, place)
        assert place.tries() == 0, "something beyond loopback was called"


@contextmanager
def _island() -> Iterator[Island]:
    try:
        with island() as place:
            yield place
    except NoIsland as error:
        do_without(str(error))


def _ended(page: Page, number: int) -> bool:
    return len(page["runs"]) >= number and page["runs"][number - 1]["outcome"] is not None


# ── what models do ───────────────────────────────────────────────────────────────────────────────────────────


def signal(status: str, **more: Any) -> Step:
    """The agent gives its signal, by the file."""
    return shell(f"printf '%s' {shlex.quote(json.dumps({'status': status, **more}))} > \"$WINDLASS_SIGNAL\"")


def edits(name: str, text: str = "new") -> list[Step]:
    """It writes a file with its own tool, and commits it."""
    return [write(name, f"{text}\n"), shell(f"git add -A && git commit -q -m 'Add {name}'")]


def lands(name: str, text: str = "new") -> list[Step]:
    """All that it takes to land."""
    return [*edits(name, text), signal("done", result=f"{name} is there."), say("I am done.")]
