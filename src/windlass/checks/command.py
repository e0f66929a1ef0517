"""Any shell command as a check."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Protocol

from windlass.core.errors import BadInput, Unavailable
from windlass.core.nouns.change import Candidate, CheckResult
from windlass.core.nouns.project import Project
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import LOCK_FILES, Shell, ShellResult, setup_key, visible
from windlass.core.settings.schema import CheckSettings
from windlass.system.copied_folders import copy_all, copy_part
from windlass.system.files import write_whole

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")


class Trees(Protocol):
    """Puts exactly one commit's tree at a path."""

    async def place(self, project: Project, commit: str, path: Path) -> None:
        """Make a new folder that holds this commit, and nothing else."""
        ...

    async def clear(self, path: Path) -> None:
        """Remove the folder."""
        ...

    async def leftovers(self, project: Project, path: Path) -> tuple[str, ...]:
        """Files in the folder that are not part of the commit."""
        ...

    async def named(self, project: Project, commit: str, name: re.Pattern[str]) -> dict[str, str]:
        """The commit's files whose name matches, each with its content's id."""
        ...

    def reach(self, project: Project) -> tuple[str, ...]:
        """Folders outside the tree that git must read there."""
        ...

    async def settings(self, project: Project) -> str:
        """The settings that git has in a home of the checks' own: the user's name, and no secret."""
        ...


@dataclass(frozen=True, slots=True)
class Bench:
    """A tree that one check at a time runs in. Several of a project stand side by side, each set up for itself."""

    project: Project
    number: int
    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / ("tree" if self.number == 1 else f"tree-{self.number}")

    @property
    def prepared(self) -> Path:
        """The file that says for which key its set-up was done."""
        return self.folder / ("setup.json" if self.number == 1 else f"setup-{self.number}.json")

    @property
    def home(self) -> Path:
        """The folder with what stands for the user's home in a sandbox."""
        return self.folder / ("home" if self.number == 1 else f"home-{self.number}")

    @property
    def made(self) -> Path:
        """The folder with copies of what the set-up made, in the tree and in its home. No foreign code runs there."""
        return self.folder / ("made" if self.number == 1 else f"made-{self.number}")

    @property
    def half_made(self) -> Path:
        """The same, until all is copied: what is left of it was broken off, and nobody reads it."""
        return self.made.with_name(f"half-{self.made.name}")

    @property
    def marker(self) -> str:
        return f"check-{self.project.id}" + (f"-{self.number}" if self.number > 1 else "")


class CommandChecks:
    """Runs a project's checks, each in a new tree, with copies of what the set-up made."""

    def __init__(self, home: Path, home_id: str, *, trees: Trees, shell: Shell, environment: Mapping[str, str]) -> None:
        self._home = home
        self._home_id = home_id
        self._trees = trees
        self._shell = shell
        self._environment = environment
        self._busy: dict[str, set[int]] = {}

    async def run(
        self,
        project: Project,
        candidate: Candidate,
        settings: CheckSettings,
        started_at: float,
        /,
        *,
        sandbox: Sandbox | None,
    ) -> tuple[CheckResult, str]:
        if not settings.command.strip():
            raise BadInput(
                f"{project.name} has no check command.", hint="Set one: `windlass config set checks.command COMMAND`."
            )
        with self._bench(project) as bench:
            around = await self._around(bench, sandbox)
            ended = await self._prepare(bench, candidate, settings, around)
            prefix = "set-up failed: "
            if ended is None:
                closed = replace(around, network=around.network and settings.network) if around else None
                prefix, ended = "", await self._execute(bench, settings.command, settings, closed)
            if ended.exit_code != 0:  # what failed may have spoilt what the set-up left: the next one has it made anew
                bench.prepared.unlink(missing_ok=True)
        return _verdict(candidate, settings, started_at, ended, prefix), _text(ended, settings)

    @contextmanager
    def _bench(self, project: Project) -> Iterator[Bench]:
        """The first that is free: the one that is most likely set up."""
        if not _ID.fullmatch(project.id):
            raise BadInput(
                f"{project.id[:80]!r} is not a project's id.", hint="Run `windlass init` to write a new one."
            )
        busy = self._busy.setdefault(project.id, set())
        number = next(number for number in count(1) if number not in busy)
        busy.add(number)
        try:
            yield Bench(project, number, self._home / "checks" / project.id)
        finally:
            busy.discard(number)

    async def _around(self, bench: Bench, sandbox: Sandbox | None) -> Sandbox | None:
        """The sandbox with this bench in it: its tree can be written, and the home is its own."""
        if sandbox is None:
            return None
        return replace(
            sandbox,
            own=str(bench.home),
            readable=(*sandbox.readable, *self._trees.reach(bench.project)),
            writable=(*sandbox.writable, str(bench.tree)),
            files=((".gitconfig", await self._trees.settings(bench.project)),),
        )

    async def _prepare(
        self, bench: Bench, candidate: Candidate, settings: CheckSettings, sandbox: Sandbox | None
    ) -> ShellResult | None:
        """Put the candidate's tree in place, set up. Returns how the set-up ended, if it failed."""
        if not settings.setup.strip():
            await self._place(bench, candidate)
            return None
        locks = await self._trees.named(bench.project, candidate.commit, LOCK_FILES)
        key = setup_key(settings.setup, locks)
        if _read_prepared(bench.prepared) != key:
            ended = await self._set_up(bench, candidate, settings, sandbox)
            if ended.exit_code != 0 or ended.timed_out:
                return ended
            _write_prepared(bench.prepared, key)
        await self._place(bench, candidate, "tree", "home")
        return None

    async def _set_up(
        self, bench: Bench, candidate: Candidate, settings: CheckSettings, sandbox: Sandbox | None
    ) -> ShellResult:
        """Run the set-up, which finds the caches of the last one in its home, and keep a copy of what it made."""
        bench.prepared.unlink(missing_ok=True)
        await self._place(bench, candidate, "home")
        ended = await self._execute(bench, settings.setup, settings, sandbox)
        if ended.exit_code == 0 and not ended.timed_out:
            names = await self._trees.leftovers(bench.project, bench.tree)
            await self._trees.clear(bench.half_made)
            await asyncio.to_thread(_keep, bench, names)
            await self._trees.clear(bench.made)
            bench.half_made.rename(bench.made)
        return ended

    async def _place(self, bench: Bench, candidate: Candidate, *parts: str) -> None:
        """A new tree and a new home, with copies of these parts of what the last set-up made."""
        await self._trees.place(bench.project, candidate.commit, bench.tree)
        await self._trees.clear(bench.home)
        await asyncio.to_thread(_give, bench, parts)

    async def _execute(
        self, bench: Bench, command: str, settings: CheckSettings, sandbox: Sandbox | None
    ) -> ShellResult:
        return await self._shell(
            command,
            cwd=str(bench.tree),
            environment=visible(self._environment, settings.environment) | {"TERM": "dumb", "CI": "true"},
            timeout=settings.timeout_seconds,
            output_limit=settings.output_bytes,
            marker=f"{self._home_id}:{bench.marker}",
            sandbox=sandbox,
        )


def _read_prepared(file: Path) -> str | None:
    """For which key a set-up was done; None if it was never done, or not to its end."""
    try:
        return str(json.loads(file.read_text("utf-8"))["key"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write_prepared(file: Path, key: str) -> None:
    write_whole(file, json.dumps({"key": key}).encode())


def _keep(bench: Bench, names: Iterable[str]) -> None:
    """Copy what a set-up made."""
    with _copying(bench):
        for folder in (bench.half_made / "tree", bench.half_made / "home"):
            folder.mkdir(parents=True, mode=0o700)
        for name in names:
            copy_part(bench.tree, bench.half_made / "tree", name)
        copy_all(bench.home, bench.half_made / "home")


def _give(bench: Bench, parts: Iterable[str]) -> None:
    """Copy parts of what a set-up made into the bench."""
    with _copying(bench):
        bench.home.mkdir(mode=0o700)
        for part in parts:
            copy_all(bench.made / part, bench.tree if part == "tree" else bench.home)


@contextmanager
def _copying(bench: Bench) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = f"{error.strerror or error} ({error.filename})" if error.filename else error.strerror or error
        raise Unavailable(
            f"What the set-up of {bench.project.name} made could not be copied: {reason}.",
            hint=f"Make room on the disk of {bench.folder}, or look at what `checks.setup` leaves there.",
        ) from error


def _verdict(
    candidate: Candidate, settings: CheckSettings, started_at: float, ended: ShellResult, prefix: str
) -> CheckResult:
    passed = not prefix and ended.exit_code == 0 and not ended.timed_out
    return CheckResult(
        command=settings.command,
        tree=candidate.tree,
        passed=passed,
        exit_code=ended.exit_code,
        seconds=ended.seconds,
        started_at=started_at,
        reason="" if passed else prefix + _reason(ended, settings.timeout_seconds),
    )


def _text(ended: ShellResult, settings: CheckSettings) -> str:
    cut = f"\n(The output was longer; {settings.output_bytes} bytes of it are kept.)\n" if ended.truncated else ""
    text = ended.output.decode("utf-8", "replace")
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}") + cut  # no prompt can hold a NUL


def _reason(ended: ShellResult, limit: float) -> str:
    if ended.timed_out:
        return f"timed out after {limit:g} s"
    if ended.exit_code is None:
        return "ended without an exit code"
    return _SHELL_SAYS.get(ended.exit_code, "exit code {}").format(ended.exit_code)


_SHELL_SAYS = {
    126: "the command could not be run (exit code {})",
    127: "the command was not found (exit code {})",
}
"""The meaning of a shell's own exit codes."""
