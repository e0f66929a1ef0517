"""Set-ups of worktrees: when one must run again, which variables it sees, and which ports an agent gets."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from windlass.core.runs.sandbox import Sandbox
from windlass.core.settings.schema import WorktreeSettings

LOCK_FILES = re.compile(
    r"package-lock\.json|yarn\.lock|pnpm-lock\.yaml|uv\.lock|poetry\.lock|requirements.*\.txt|pyproject\.toml"
    r"|Cargo\.lock|go\.sum|Gemfile\.lock|composer\.lock"
)
ALLOWED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR")
"""The variables of the daemon's that checks and set-ups see, besides LC_* and those named in the settings."""
LAST_PORT = 65_535


def setup_key(command: str, locks: Mapping[str, str]) -> str:
    """The same set-up on the same lock files has the same key."""
    return hashlib.sha256(json.dumps([command, sorted(locks.items())]).encode()).hexdigest()


def visible(environment: Mapping[str, str], more: Iterable[str]) -> dict[str, str]:
    """An allow-list: what is not named here, such as a credential, is not there."""
    names = {*ALLOWED, *more, *(name for name in environment if name.startswith("LC_"))}
    return {name: environment[name] for name in sorted(names) if name in environment}


@dataclass(frozen=True, slots=True)
class PortRange:
    """Some ports in a row."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> PortRange | None:
        """Read the form that `str` writes; nothing for any other."""
        found = re.fullmatch(r"(\d{1,5})-(\d{1,5})", text.strip())
        return cls(int(found[1]), int(found[2])) if found else None

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"

    def fits(self, settings: WorktreeSettings) -> bool:
        return self.first >= settings.first_port and self.last - self.first + 1 == settings.ports


def pick_ports(settings: WorktreeSettings, taken: Iterable[PortRange]) -> PortRange | None:
    """The first ports that nobody has, or nothing where there are none."""
    first = settings.first_port
    for other in sorted(taken, key=lambda ports: ports.first):
        if other.first > first + settings.ports - 1:
            break
        first = max(first, other.last + 1)
    wanted = PortRange(first, first + settings.ports - 1)
    return wanted if settings.ports and wanted.last <= LAST_PORT else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedWorktree:
    """The result of a set-up."""

    notes: tuple[str, ...] = ()
    """Notes for people, such as a file that could not be copied."""
    output: str = ""
    failure: str = ""


class Setups(Protocol):
    """Makes worktrees ready."""

    async def prepare(
        self,
        worktree: str,
        checkout: str,
        agent: str,
        settings: WorktreeSettings,
        /,
        *,
        key: str,
        environment: Mapping[str, str],
        sandbox: Sandbox | None,
    ) -> PreparedWorktree:
        """Copy, link, and run the set-up command, unless it was run for this key. Raises BadInput for a bad name.

        The command may run what an agent wrote, so it runs in the same kind of sandbox.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """How a shell command ended and what it said."""

    exit_code: int | None
    """None if it was ended by us; 128 and the signal's number if by a signal."""
    output: bytes
    """Standard output and errors in one, at most about as long as was asked for."""
    truncated: bool
    seconds: float
    timed_out: bool


class Shell(Protocol):
    """Runs one shell command to its end, in a sandbox if there is to be one, and ends all that it started."""

    async def __call__(
        self,
        command: str,
        *,
        cwd: str,
        environment: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - it is the command's limit, and part of the answer
        output_limit: int,
        marker: str,
        sandbox: Sandbox | None = None,
    ) -> ShellResult: ...
