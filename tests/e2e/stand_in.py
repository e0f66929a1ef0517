"""A coding CLI that stands in for every other: what an agent does is a shell script with the agent's name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e_stage import Stage, stage

SETTINGS = """
[work]
provider = "acme"
[models.acme]
prefer_cli = "acme"
[providers.acme]
command = ["acme"]
model_flag = "--model"
system_prompt_flag = "--who"
permissions = {read = ["--read"], edit = ["--edit"], full = ["--full"]}
claim = "exit"
version = ["acme", "--version"]
[sandbox]
mode = "off"
"""
PROGRAM = """#!/usr/bin/env python3
import json, os, sys
if sys.argv[1:] == ["--version"]:
    sys.exit(print("acme 1.0"))
name, folder = os.environ["WINDLASS_AGENT"], {folder!r}
call = json.dumps({{"agent": name, "argv": sys.argv[1:], "prompt": sys.stdin.read()}}) + "\\n"
log = os.open(f"{{folder}}/log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(log, call.encode())
os.close(log)
act = f"{{folder}}/{{name.partition('@')[0]}}"
if os.path.exists(act):
    os.execvp("sh", ["sh", "-e", act])
"""


@dataclass(frozen=True, slots=True)
class Call:
    """One run of the stand-in."""

    agent: str
    argv: list[str]
    prompt: str

    def after(self, flag: str) -> str:
        """What was said after a flag."""
        return self.argv[self.argv.index(flag) + 1] if flag in self.argv else ""


class Company:
    """A person's machine on which `acme` is the only coding CLI."""

    def __init__(self, house: Stage) -> None:
        self.house = house
        self.acts = house.flag("acts")
        self.acts.mkdir()
        program = house.folder / "bin" / "acme"
        program.write_text(PROGRAM.format(folder=str(self.acts)))
        program.chmod(0o755)

    def play(self, **scripts: str) -> None:
        """What these agents do from now on, and all others do nothing; what was logged is forgotten."""
        for path in self.acts.iterdir():
            path.unlink()
        for name, script in scripts.items():
            (self.acts / name).write_text(script)

    def run(self, file: str, *words: str, instance: str) -> Any:
        """`windlass run`, which must end well: what it tells as JSON in the end."""
        return self.house.wl("run", file, "--instance", instance, "--json", *words).value

    def calls(self) -> list[Call]:
        """Every run of the stand-in since the last `play`; a line that is still being written is none yet."""
        log = self.acts / "log"
        whole, _, _ = log.read_text().rpartition("\n") if log.exists() else ("", "", "")
        return [Call(**json.loads(line)) for line in whole.splitlines()]

    def said(self, instance: str) -> list[tuple[str, str]]:
        """Who said what in an instance."""
        told = self.house.wl("peek", "--channel", f"@{instance}", "--json").value
        return [(each["from"], each["message"]) for each in told]


@contextmanager
def company() -> Iterator[Company]:
    """A repository with a check that passes, and the stand-in."""
    with stage(settings=SETTINGS) as house:
        made = Company(house)
        house.wl("init", "--checks", "true")
        yield made


def commits(name: str, text: str = "new") -> str:
    """A script that commits a file."""
    return f"echo '{text}' > {name}; git add -A; git commit -q -m 'Add {name}'\n"


def in_repository(house: Stage, name: str, text: str) -> Path:
    """A file in the person's checkout."""
    path = house.repo / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
