"""The process that asks a model, as a provider starts it: a worktree, a home, and a scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import patience
from model_server.script import Step
from model_server.server import ModelServer

WITHIN = patience.seconds(120)

BRIDGE = """#!{python}
import json, os, sys
NOTHING = {{"type": "object", "properties": {{"result": {{"type": "string"}}}}}}
TOOLS = [{{"name": each, "description": "One of ours.", "inputSchema": NOTHING}} for each in ("complete", "ask")]
if sys.argv[1:] != ["mcp"]:
    sys.exit(print("windlass", *sys.argv[1:]))
for line in sys.stdin:
    asked = json.loads(line)
    answers = {{
        "initialize": {{"protocolVersion": "2025-11-25"}},
        "tools/list": {{"tools": TOOLS}},
        "tools/call": {{
            "content": [{{"type": "text", "text": json.dumps(asked.get("params"))}}],
            "isError": asked.get("params", {{}}).get("name") == "ask",
        }},
    }}
    if "id" in asked:
        print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}}), flush=True)
"""
"""A stand-in for `windlass`: it has two tools, of which one refuses."""

MODELS = {
    "messages": ("anthropic/claude-sonnet-4-5", "ANTHROPIC", ""),
    "responses": ("openai/gpt-5.5", "OPENAI", "/v1"),
    "chat": ("openai-chat/qwen3", "OPENAI", "/v1"),
}
"""By the protocol that is spoken: a model, what its variables begin with, and what its address ends with."""
SCENARIO = "told"
KEY = "sk-scripted-0123456789"


@dataclass(frozen=True, slots=True)
class Ended:
    """How the process ended, and what it told."""

    code: int
    lines: list[dict[str, Any]]
    errors: str

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["type"] == kind]

    @property
    def kinds(self) -> list[str]:
        """In order; without the signs of life, of which a slow machine has more."""
        return [str(line["type"]) for line in self.lines if line["type"] != "beat"]

    @property
    def last(self) -> dict[str, Any]:
        return self.lines[-1]


@dataclass(frozen=True, slots=True)
class Begun:
    """The process while it runs."""

    pid: int
    folder: Path

    @property
    def ended(self) -> bool:
        return (self.folder / "code").exists()

    def send(self, sent: signal.Signals) -> None:
        os.kill(self.pid, sent)

    def end(self) -> Ended:
        """What it told, when it has ended."""
        deadline = time.monotonic() + WITHIN
        while not self.ended:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                deadline += WITHIN
            time.sleep(0.01)
        lines = [json.loads(line) for line in (self.folder / "out").read_text().splitlines()]
        return Ended(int((self.folder / "code").read_text()), lines, (self.folder / "errors").read_text())


class Zygote:
    """What the processes are children of."""

    def __init__(self) -> None:
        words = (sys.executable, str(Path(__file__).with_name("zygote.py")))
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, order: dict[str, Any]) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def end(self) -> None:
        self.process.communicate(timeout=WITHIN)


@dataclass
class ModelStage:
    """One agent's places, and the model that it asks."""

    folder: Path
    models: ModelServer
    zygote: Zygote
    api: str = "messages"
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for each in ("bin", "home", "tree"):
            (self.folder / each).mkdir()
        bridge = self.folder / "bin/windlass"
        bridge.write_text(BRIDGE.format(python=sys.executable))
        bridge.chmod(0o755)
        for words in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "Begin")):
            subprocess.run(("git", *words), cwd=self.tree, env=self.environment, check=True)

    @property
    def tree(self) -> Path:
        return self.folder / "tree"

    @property
    def environment(self) -> dict[str, str]:
        _, vendor, path = MODELS[self.api]
        person = {f"GIT_{who}_{what}": "agent" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return {
            **{name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ},
            **person,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            f"{vendor}_API_KEY": KEY,
            f"{vendor}_BASE_URL": self.models.url(SCENARIO) + path,
            **self.variables,
        }

    def words(self, *more: str, session: str = "one") -> list[str]:
        words = ["--model", MODELS[self.api][0]]
        forget = [f"--forget={vendor}_API_KEY" for _, vendor, _ in MODELS.values()]
        which = [] if "--resume" in more else ["--session", session]
        return [*words, *which, "--folder", str(self.tree), *forget, *more]

    def begin(self, *more: str, prompt: str = "Do it.") -> Begun:
        """Start it, and let it be."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "prompt").write_text(prompt)
        order = {"words": self.words(*more), "environment": self.environment}
        return Begun(self.zygote.begin(order | {"tree": str(self.tree), "folder": str(folder)}), folder)

    def run(self, steps: Sequence[Step], *more: str, prompt: str = "Do it.") -> Ended:
        """All of one run in which the model follows these steps."""
        self.models.scenarios[SCENARIO] = list(steps)
        return self.begin(*more, prompt=prompt).end()

    @property
    def answers(self) -> list[str]:
        """What the tools answered, by the last request."""
        return list(self.models.requests(SCENARIO)[-1].asked.results)
