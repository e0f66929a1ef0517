"""Briefings in, signals out."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from windlass.core.errors import BadInput, NotAllowed, Unavailable
from windlass.core.runs.signal import LARGEST, BadSignal, Signal, read_signal, read_status
from windlass.core.runs.workdir import Briefing
from windlass.workdir import inside

INPUT = (".windlass", "input")
OUTPUT = (".windlass", "output")
SIGNAL = "signal.json"
MANIFEST = "manifest.json"
PLACE = "expected-pwd.txt"
PROMPT = "prompt.md"
STATUS = "process-status.json"
CONTEXT = "context"
WHOSE = "whose.json"
"""In a run's own folder: the names that the agent's entry in a status file may have."""

_BELOW = ("workspace", *OUTPUT)
"""Where a signal may lie too: some agents work in a `workspace` folder of their worktree."""
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class RunFolders:
    """The files of runs: `runs/<run>/` under our home is ours, `.windlass/` in a worktree is the agent's too."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def path(self, run: str) -> Path:
        """The folder of one run."""
        return self.home / "runs" / _safe(run)

    async def brief(
        self,
        run: str,
        worktree: str,
        *,
        prompt: str,
        manifest: Mapping[str, Any],
        inputs: Mapping[str, str],
        files: Mapping[str, str],
        context: Mapping[str, str] | None = None,
    ) -> Briefing:
        """Write the prompt, the provider's files and the worktree's inputs (manifest last); move an old signal away."""

        def write() -> Briefing:
            with _explained(run, worktree):
                _prepare_worktree(run, worktree, manifest, inputs, context or {})
                self._write(run, WHOSE, json.dumps([manifest["agentId"], manifest["agentName"]]))
                own = {each: self._write(run, _safe(each), text) for each, text in files.items()}
                told = self._write(run, PROMPT, prompt)
            return Briefing(prompt=told, signal=str(Path(worktree, *OUTPUT, SIGNAL)), files=own)

        return await asyncio.to_thread(write)

    def _write(self, run: str, name: str, text: str) -> str:
        """One file of a run's own folder, put in place in one step."""
        folder = self.path(run)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f".{name}.new"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(_bytes(text))
        draft.replace(folder / name)
        return str(folder / name)

    async def gather(self, folder: str, worktrees: Mapping[str, str], /) -> None:
        """Make a folder with a link to each worktree. What an agent put there itself stays, but not in their way."""

        def link() -> None:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            with inside.folder(folder) as where:
                for name, worktree in worktrees.items():
                    inside.replace_link(where, _safe(name), worktree)

        with _explained("", folder):
            await asyncio.to_thread(link)

    def has_mirrors(self, checkout: str, /) -> bool:
        """Whether there is a folder that git ignores the runtime parts of, as `windlass init` makes it."""
        try:
            with inside.folder(checkout, ".windlass") as where:
                return bool(inside.read_file(where, ".gitignore", 1))
        except (OSError, inside.Odd):
            return False

    def shows(self, checkout: str, name: str, text: str, /) -> bool:
        """Whether a file of a checkout's `.windlass` says just this."""
        content = _bytes(text)
        try:
            with inside.folder(checkout, ".windlass") as where:
                return inside.read_file(where, name, len(content) + 1) == content
        except (OSError, inside.Odd):
            return False

    async def mirror(self, checkout: str, name: str, text: str, /) -> None:
        """Put a file into a checkout's `.windlass`; a link in the way is replaced, not followed."""

        def write() -> None:
            try:
                with inside.folder(checkout, ".windlass") as where:
                    inside.replace_file(where, name, _bytes(text))
            except (OSError, inside.Odd) as error:
                raise Unavailable(f"{checkout}/.windlass/{name} cannot be written: {error}.") from error

        await asyncio.to_thread(write)

    def signal(self, run: str, worktree: str, /) -> Signal | None:
        """The signal given in this run; never follows links, never blocks."""
        # an older one was moved away when this run was briefed
        return _look(worktree, OUTPUT) or _look_below(worktree) or self._status(run, worktree)

    def signal_places(self, worktree: str, /) -> tuple[str, ...]:
        """Where signals and status files are put."""
        return (str(Path(worktree, *OUTPUT)), str(Path(worktree, ".windlass")))

    def _status(self, run: str, worktree: str) -> Signal | None:
        """What the agent has written as its own status, as some are told to; it counts where there is no signal."""
        try:
            with inside.folder(worktree, ".windlass") as where:
                content = inside.read_file(where, STATUS, LARGEST + 1)
            return read_status(content, *json.loads((self.path(run) / WHOSE).read_bytes()))
        except (OSError, inside.Odd):
            return None


@contextmanager
def _explained(run: str, worktree: str) -> Iterator[None]:
    try:
        yield
    except inside.Odd as error:
        raise NotAllowed(
            f"Run {run} can't be briefed in {worktree}: {error}, where Windlass puts its files.",
            hint="Look at it, and remove it if it is not yours.",
        ) from error
    except OSError as error:
        raise Unavailable(
            f"The files of run {run} could not be written: {error.strerror or error} ({error.filename}).",
            hint="Run `windlass doctor`.",
        ) from error


def _prepare_worktree(
    run: str, worktree: str, manifest: Mapping[str, Any], inputs: Mapping[str, str], context: Mapping[str, str]
) -> None:
    texts = {**{_safe(name): text for name, text in inputs.items()}, PLACE: f"{worktree}\n"}
    known = {f"{CONTEXT}/{'/'.join(map(_safe, name.split('/')))}": text for name, text in context.items()}
    whole = {**manifest, "files": sorted(texts), "contextFiles": sorted(known)}
    with inside.folder(worktree, *INPUT, make=True) as where:
        inside.remove_tree(where, CONTEXT)  # what was true for an earlier run
        for name, text in texts.items():
            inside.replace_file(where, name, _bytes(_named(text, manifest)))
        for name, text in known.items():
            *folders, last = name.split("/")
            with inside.folder(worktree, *INPUT, *folders, make=True) as place:
                inside.replace_file(place, last, _bytes(_named(text, manifest)), mode=0o444)
        _clear_signals(run, worktree)
        inside.replace_file(where, MANIFEST, _bytes(json.dumps(whole, indent=2, ensure_ascii=False) + "\n"))


def _clear_signals(run: str, worktree: str) -> None:
    """Only a signal given in this run counts; an older one is kept under another name."""
    with inside.folder(worktree, *OUTPUT, make=True) as where:
        inside.set_aside(where, SIGNAL, f"signal.before-{run}.json")
        with inside.folder(worktree, ".windlass") as above:
            inside.set_aside(above, STATUS, f"process-status.before-{run}.json", into=where)
    with suppress(FileNotFoundError, inside.Odd), inside.folder(worktree, *_BELOW) as where:
        inside.set_aside(where, SIGNAL, f"signal.before-{run}.json")


def _look(worktree: str, place: tuple[str, ...]) -> Signal | None:
    """What lies at one place, if anything does."""
    try:
        with inside.folder(worktree, *place) as where:
            return read_signal(inside.read_file(where, SIGNAL, LARGEST + 1))
    except FileNotFoundError:
        return None
    except inside.Odd as error:
        return BadSignal(str(error))
    except OSError as error:
        return BadSignal(f"it can't be read: {error.strerror or error}")


def _look_below(worktree: str) -> Signal | None:
    """The same in `workspace`, which may be anything of the project's own: then there is no signal."""
    try:
        with inside.folder(worktree, *_BELOW):
            pass
    except (OSError, inside.Odd):
        return None
    return _look(worktree, _BELOW)


def _named(text: str, manifest: Mapping[str, Any]) -> str:
    """Text that knows whom it is for."""
    for placeholder, key in (("{AGENT_ID}", "agentId"), ("{AGENT_NAME}", "agentName")):
        text = text.replace(placeholder, str(manifest[key]))
    return text


def _bytes(text: str) -> bytes:
    """UTF-8; half characters, which it can't say, become question marks."""
    return text.encode("utf-8", "replace")


def _safe(name: str) -> str:
    if not _SAFE.fullmatch(name) or name in (MANIFEST, PLACE, PROMPT, WHOSE, CONTEXT):
        raise BadInput(f"{name!r} can't be the name of a run's file.")
    return name
