"""Prepare a worktree: copy and link files of the user's checkout into it, and run the set-up command.

The worktree is the agent's, so no link in it is followed. The checkout is the user's own; still nothing is taken from
outside it.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from windlass.core.errors import BadInput, Unavailable
from windlass.core.runs.sandbox import Sandbox
from windlass.core.runs.worktree_setup import PreparedWorktree, Shell, ShellResult, visible
from windlass.core.settings.schema import WorktreeSettings
from windlass.system.files import exists, open_folder, read_file, remove, replace_file
from windlass.workdir.folders import INPUT

DONE = "setup.json"
"""A file in the worktree: a new worktree has none, and is set up again."""
MOST_OUTPUT = 200_000
LAST_LINES = 5
LONGEST_TAIL = 600

Place = Callable[[str, int, str], None]
"""Copies or links a path of the checkout into an open folder, under a name."""


class WorktreeSetup:
    """The `Setups` port, on the files and the shell of this machine."""

    def __init__(self, home_id: str, *, shell: Shell, environment: Mapping[str, str]) -> None:
        self._home_id = home_id
        self._shell = shell
        self._environment = environment

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
        notes = await asyncio.to_thread(_bring, checkout, worktree, settings)
        if not settings.setup.strip() or _was_done(worktree, key):
            return PreparedWorktree(notes=notes)
        with _explained(worktree), open_folder(worktree, *INPUT, make=True) as where:
            remove(where, DONE)
        seen = visible(self._environment, settings.environment) | dict(environment)
        ended = await self._shell(
            settings.setup,
            cwd=worktree,
            environment=seen | {"TERM": "dumb"},
            timeout=settings.setup_seconds,
            output_limit=MOST_OUTPUT,
            marker=f"{self._home_id}:check-setup-{agent}",
            sandbox=sandbox,
        )
        output = ended.output.decode("utf-8", "replace")
        if ended.exit_code == 0 and not ended.timed_out:
            with _explained(worktree), open_folder(worktree, *INPUT, make=True) as where:
                replace_file(where, DONE, json.dumps({"key": key}).encode())
            return PreparedWorktree(notes=notes, output=output)
        return PreparedWorktree(notes=notes, output=output, failure=_failure(ended, settings, output))


def _bring(checkout: str, worktree: str, settings: WorktreeSettings) -> tuple[str, ...]:
    """Copy and link all that the settings name. Returns a note on each path that was left out."""
    wanted = [("copy", name, _copy) for name in settings.copy] + [("link", name, _link) for name in settings.link]
    notes = (_bring_one(checkout, worktree, _parts(key, name), name, place) for key, name, place in wanted)
    return tuple(note for note in notes if note)


def _bring_one(checkout: str, worktree: str, parts: tuple[str, ...], name: str, place: Place) -> str:
    """Bring one path, unless the worktree has it already. Returns why it was left out, or nothing."""
    *folders, last = parts
    try:
        source = _source(checkout, name)
        with open_folder(worktree, *folders, make=True) as target:
            if not exists(target, last):
                with open_folder(worktree, *INPUT, make=True) as drafts:
                    draft = f".{secrets.token_hex(8)}"
                    try:
                        place(source, drafts, draft)
                        os.rename(draft, last, src_dir_fd=drafts, dst_dir_fd=target)
                    finally:
                        with suppress(OSError):  # nothing is left where all went well
                            remove(drafts, draft)
    except OSError as error:
        return f"{name} was left out: {error.strerror or error}"
    return ""


def _source(checkout: str, name: str) -> str:
    """Resolve a path of the checkout. Raises OSError if it is missing, or leads out of the repository."""
    top = Path(checkout).resolve()
    try:
        real = (top / name).resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise OSError("it is not in your checkout") from error
    if not real.is_relative_to(top):
        raise OSError("it leads out of the repository")
    if real.relative_to(top).parts[:1] == (".git",):
        raise OSError("it leads into .git")
    return str(real)


def _copy(source: str, where: int, name: str) -> None:
    target = f"/proc/self/fd/{where}/{name}"
    mode = os.lstat(source).st_mode
    if stat.S_ISDIR(mode):
        shutil.copytree(source, target, symlinks=True)
    elif stat.S_ISREG(mode):
        shutil.copy2(source, target, follow_symlinks=False)
    else:
        raise OSError("it is neither a file nor a folder")


def _link(source: str, where: int, name: str) -> None:
    os.symlink(source, name, dir_fd=where)


def _parts(key: str, name: str) -> tuple[str, ...]:
    """Split a path. Raises BadInput for one that a worktree can't be given."""
    parts = tuple(name.rstrip("/").split("/"))
    if not all(parts) or {".", ".."} & {*parts} or "\0" in name or parts[0] in (".git", ".windlass"):
        raise BadInput(
            f"worktree.{key} names {name!r}, which a worktree cannot be given.",
            hint="Name files and folders from the top of the repository, such as .env or node_modules.",
        )
    return parts


def _was_done(worktree: str, key: str) -> bool:
    try:
        with open_folder(worktree, *INPUT) as where:
            return bool(json.loads(read_file(where, DONE, 1000)) == {"key": key})
    except (OSError, ValueError, RecursionError):
        return False


@contextmanager
def _explained(worktree: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"The set-up of {worktree} can't be noted: {error}.") from error


def _failure(ended: ShellResult, settings: WorktreeSettings, output: str) -> str:
    how = f"timed out after {settings.setup_seconds:g} s" if ended.timed_out else f"exit code {ended.exit_code}"
    last = [line.strip() for line in output.splitlines() if line.strip()][-LAST_LINES:]
    said = " | ".join(last)[-LONGEST_TAIL:]
    return f"{how}: {said}" if said else f"{how}, without a word"
