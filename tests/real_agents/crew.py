"""Real agents at work: the real daemon and the real coding CLIs on an island, whose model follows our scripts."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e_stage import Stage, stage
from island import Island, NoIsland, island
from real_clis import do_without, program

import patience
from model_server.script import Step, say, shell, write
from model_server.server import ModelServer

CLIS = ("claude", "codex")
WITHIN = 60.0
"""Seconds after which an agent is late, on a machine that has much else to do."""
SANDBOX = shutil.which("bwrap") is not None
SETTINGS = "[limits]\nruns = 24\nreminders = 3\n[daemon]\nstop_grace_seconds = 3\n[sandbox]\nmode = 'auto'\n"
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
stream_idle_timeout_ms = 600000
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

    def another_repository(self, name: str, settings: str) -> Path:
        """A second project of the same person's, with settings of its own."""
        repo = self.house.folder / name
        self.house.git("clone", "-q", str(self.house.repo), str(repo), cwd=self.house.folder)
        (repo / ".windlass").mkdir()
        (repo / ".windlass/config.toml").write_text(settings)
        return repo

    def page(self, name: str) -> Page:
        """What is known of an agent, as a person is shown it."""
        return dict(self.house.wl("show", name, "--json").value)

    def when(self, name: str, is_so: Callable[[Page], Any], what: str) -> Page:
        """What is known of an agent, as soon as something is so."""
        deadline = patience.Deadline(WITHIN)
        while not is_so(page := dict(self.house.agent(name))):
            assert not deadline.passed(), f"in vain for {what}: {json.dumps(page, indent=1)}"
            time.sleep(0.1)
        return page

    def landed(self, name: str) -> Page:
        return self.when(name, lambda page: page["change"] and page["change"]["state"] == "landed", "landed")

    def ended(self, name: str, number: int = 1) -> Any:
        """A run of an agent, as soon as it is over."""
        done = self.when(name, lambda page: _ended(page, number), f"run {number} ended")
        return done["runs"][number - 1]

    def leave(self) -> None:
        """Stop whoever is at work: agents outlive their daemon."""
        self.house.wl("stop", "--all")
        eventually(lambda: all(each["status"] != "running" for each in self.house.ask("/agents")["items"]), "their end")

    def prompts(self, cli: str, story: str) -> list[str]:
        """What the model was told in the last request of a story."""
        return list(self.models.requests(f"{story}-{cli}")[-1].asked.prompts)


@contextmanager
def crew(clis: Sequence[str] = CLIS, **variables: str) -> Iterator[Crew]:
    """A person with a repository, both CLIs and a daemon, alone on an island with a model."""
    path = os.pathsep.join((*{str(Path(program(each)).parent) for each in clis}, os.environ["PATH"]))
    with _island() as place, ModelServer(listener=place.listener) as models:
        with stage(settings=SETTINGS, before=place.there()) as house:
            del house.environment["WINDLASS_SANDBOX"]  # as anyone has it who has set nothing
            house.environment |= QUICK | {"ANTHROPIC_BASE_URL": models.url()} | variables
            house.environment["PATH"] = f"{house.folder / 'bin'}{os.pathsep}{path}"
            house.environment["TMPDIR"] = str(house.folder / "tmp")
            for folder in ("tmp", "home/.codex"):
                (house.folder / folder).mkdir()
            (house.folder / "home/.codex/config.toml").write_text(CODEX_SETTINGS.format(url=models.url()))
            made = Crew(house, models, place)
            try:
                yield made
            finally:
                made.leave()
        assert place.tries() == 0, "something beyond loopback was called"


@contextmanager
def _island() -> Iterator[Island]:
    try:
        with island() as place:
            yield place
    except NoIsland as error:
        do_without(str(error))


def eventually(look: Callable[[], Any], what: str) -> None:
    """Wait until something is so."""
    deadline = patience.Deadline(WITHIN)
    while not look():
        assert not deadline.passed(), f"waited {WITHIN} s in vain for {what}"
        time.sleep(0.05)


def descendants(pid: int) -> dict[int, list[str]]:
    """A process and all that came from it and live, with their words."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, todo = {}, [pid]
    while todo:
        each = todo.pop()
        with suppress(OSError):
            found[each] = Path(f"/proc/{each}/cmdline").read_text().split("\0")
        todo += children.get(each, [])
    return found


def _ended(page: Page, number: int) -> bool:
    return len(page["runs"]) >= number and page["runs"][number - 1]["outcome"] is not None


# ── what models do ───────────────────────────────────────────────────────────────────────────────────────────


def signal(status: str, *, gate: str = "", **more: Any) -> Step:
    """The agent gives its signal, by the file."""
    text = shlex.quote(json.dumps({"status": status, **more}))
    return shell(f"printf '%s' {text} > \"$WINDLASS_SIGNAL\"", gate=gate)


def edits(name: str, text: str = "new") -> list[Step]:
    """It writes a file with its own tool, and commits it."""
    return [write(name, f"{text}\n"), shell(f"git add -A && git commit -q -m 'Add {name}'")]


def lands(name: str, text: str = "new") -> list[Step]:
    """All that it takes to land."""
    return [*edits(name, text), signal("done", result=f"{name} is there."), say("I am done.")]
