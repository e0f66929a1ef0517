"""The files of a run: its briefing, which we write, and its signal, which the agent writes."""

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
from windlass.system.files import NotPlain, exists, open_folder, read_file, remove, replace_file, write_whole

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

_WORKSPACE = ("workspace", *OUTPUT)
"""A second place for a signal: some agents work in a `workspace` folder of their worktree."""
_NAMES_TRIED = 100
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class RunFolders:
    """The files of runs: `runs/<run>/` under our home is ours, `.windlass/` in a worktree is the agent's too."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def path(self, run: str) -> Path:
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
        def write() -> Briefing:
            with _explained(run, worktree):
                _prepare_worktree(run, worktree, manifest, inputs, context or {})
                self._write(run, WHOSE, json.dumps([manifest["agentId"], manifest["agentName"]]))
                own = {name: self._write(run, _safe(name), text) for name, text in files.items()}
                told = self._write(run, PROMPT, prompt)
            return Briefing(prompt=told, signal=str(Path(worktree, *OUTPUT, SIGNAL)), files=own)

        return await asyncio.to_thread(write)

    def _write(self, run: str, name: str, text: str) -> str:
        folder = self.path(run)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(folder / name, _bytes(text))
        return str(folder / name)

    async def gather(self, folder: str, worktrees: Mapping[str, str], /) -> None:
        """Make a folder with a link to each worktree. An agent's own file of such a name is renamed."""

        def link() -> None:
            Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            with open_folder(folder) as where:
                for name, worktree in worktrees.items():
                    with suppress(OSError):
                        if os.readlink(_safe(name), dir_fd=where) == worktree:
                            continue
                    _set_aside(where, name, f"{name}.before")
                    os.symlink(worktree, name, dir_fd=where)

        with _explained("", folder):
            await asyncio.to_thread(link)

    def has_mirrors(self, checkout: str, /) -> bool:
        """Whether a checkout has the `.windlass` that `windlass init` makes, of which git ignores the runtime parts."""
        try:
            with open_folder(checkout, ".windlass") as where:
                return bool(read_file(where, ".gitignore", 1))
        except OSError:
            return False

    def shows(self, checkout: str, name: str, text: str, /) -> bool:
        content = _bytes(text)
        try:
            with open_folder(checkout, ".windlass") as where:
                return read_file(where, name, len(content) + 1) == content
        except OSError:
            return False

    async def mirror(self, checkout: str, name: str, text: str, /) -> None:
        """Put a file into a checkout's `.windlass`; a link in the way is replaced, not followed."""

        def write() -> None:
            try:
                with open_folder(checkout, ".windlass") as where:
                    replace_file(where, name, _bytes(text))
            except OSError as error:
                raise Unavailable(f"{checkout}/.windlass/{name} cannot be written: {error}.") from error

        await asyncio.to_thread(write)

    async def signal(self, run: str, worktree: str, /) -> Signal | None:
        """Read the signal given in this run; `brief` has moved an older one away. Follows no link, never blocks."""
        return _look(worktree, OUTPUT) or _look_in_workspace(worktree) or self._status(run, worktree)

    def signal_places(self, worktree: str, /) -> tuple[str, ...]:
        return (str(Path(worktree, *OUTPUT)), str(Path(worktree, ".windlass")))

    def _status(self, run: str, worktree: str) -> Signal | None:
        """Read the status that some agents are told to write; it counts where there is no signal."""
        try:
            with open_folder(worktree, ".windlass") as where:
                content = read_file(where, STATUS, LARGEST + 1)
            return read_status(content, *json.loads(read_file(None, self.path(run) / WHOSE, LARGEST)))
        except OSError:
            return None


@contextmanager
def _explained(run: str, worktree: str) -> Iterator[None]:
    try:
        yield
    except NotPlain as error:
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
    with open_folder(worktree, *INPUT, make=True) as where:
        remove(where, CONTEXT)  # an earlier run's
        for name, text in texts.items():
            replace_file(where, name, _bytes(_named(text, manifest)))
        for name, text in known.items():
            *folders, last = name.split("/")
            with open_folder(worktree, *INPUT, *folders, make=True) as place:
                replace_file(place, last, _bytes(_named(text, manifest)), mode=0o444)
        _clear_signals(run, worktree)
        replace_file(where, MANIFEST, _bytes(json.dumps(whole, indent=2, ensure_ascii=False) + "\n"))


def _clear_signals(run: str, worktree: str) -> None:
    """Only a signal given in this run counts; an older one is kept under another name."""
    with open_folder(worktree, *OUTPUT, make=True) as where:
        _set_aside(where, SIGNAL, f"signal.before-{run}.json")
        with open_folder(worktree, ".windlass") as above:
            _set_aside(above, STATUS, f"process-status.before-{run}.json", into=where)
    with suppress(FileNotFoundError, NotPlain), open_folder(worktree, *_WORKSPACE) as where:
        _set_aside(where, SIGNAL, f"signal.before-{run}.json")


def _set_aside(where: int, name: str, aside: str, *, into: int | None = None) -> None:
    """Rename a file of any kind, if it exists, to a name that is free, in the same folder or another."""
    target = where if into is None else into
    for number in range(1, _NAMES_TRIED + 1):
        free = aside if number == 1 else f"{aside}.{number}"
        if not exists(target, free):
            with suppress(FileNotFoundError):
                os.rename(name, free, src_dir_fd=where, dst_dir_fd=target)
            return
    raise NotAllowed(f"There are already {_NAMES_TRIED} files called {aside}.", hint=f"Remove some {aside} files.")


def _look(worktree: str, place: tuple[str, ...]) -> Signal | None:
    """Read the signal in a folder, if it has one."""
    try:
        with open_folder(worktree, *place) as where:
            return read_signal(read_file(where, SIGNAL, LARGEST + 1))
    except FileNotFoundError:
        return None
    except NotPlain as error:
        return BadSignal(str(error))
    except OSError as error:
        return BadSignal(f"it can't be read: {error.strerror or error}")


def _look_in_workspace(worktree: str) -> Signal | None:
    """Read a signal in `workspace`; a project may have something else of that name, which is not a bad signal."""
    try:
        with open_folder(worktree, *_WORKSPACE):
            pass
    except OSError:
        return None
    return _look(worktree, _WORKSPACE)


def _named(text: str, manifest: Mapping[str, Any]) -> str:
    """Fill in the agent's id and name."""
    for placeholder, key in (("{AGENT_ID}", "agentId"), ("{AGENT_NAME}", "agentName")):
        text = text.replace(placeholder, str(manifest[key]))
    return text


def _bytes(text: str) -> bytes:
    """Encode a text; half characters, which UTF-8 can't encode, become question marks."""
    return text.encode("utf-8", "replace")


def _safe(name: str) -> str:
    if not _SAFE.fullmatch(name) or name in (MANIFEST, PLACE, PROMPT, WHOSE, CONTEXT):
        raise BadInput(f"{name!r} can't be the name of a run's file.")
    return name
