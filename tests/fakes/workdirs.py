"""The workdirs port in memory: what a run is told, and the signal that an agent leaves in its worktree."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from windlass.core.errors import Unavailable
from windlass.core.runs.signal import Signal, read_signal, read_status
from windlass.core.runs.workdir import Briefing


class FakeWorkdirs:
    """Files by path. `exists` says whether a folder is there, as an agent's worktree is until it is removed."""

    def __init__(self, home: str, *, exists: Callable[[str], bool]) -> None:
        self.home = home
        self.exists = exists
        self.files: dict[str, str] = {}
        """Every file that was written, by us or by an agent."""
        self.mirrored: set[str] = set()
        """Checkouts with a folder that shows what happens."""
        self.gathered: dict[str, dict[str, str]] = {}
        """Folders that lead to several worktrees, each by its name."""
        self._whose: dict[str, tuple[str, str]] = {}

    def give(self, worktree: str, signal: str) -> None:
        """Let an agent write its signal."""
        self.files[_signal(worktree)] = signal

    # ── the port ──

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
        if not self._is_there(worktree):
            raise Unavailable(f"The files of run {run} could not be written: no such folder ({worktree}).")
        place = f"{worktree}/.windlass/input"
        texts = {**inputs, "expected-pwd.txt": f"{worktree}\n"}
        known = {f"context/{name}": text for name, text in (context or {}).items()}
        self.files = {path: text for path, text in self.files.items() if not path.startswith(f"{place}/context/")}
        for name, text in (texts | known).items():
            self.files[f"{place}/{name}"] = _named(text, manifest)
        for old, kept in ((_signal(worktree), "signal"), (_status(worktree), "process-status")):
            if old in self.files:
                self.files[f"{worktree}/.windlass/output/{kept}.before-{run}.json"] = self.files.pop(old)
        whole = {**manifest, "files": sorted(texts), "contextFiles": sorted(known)}
        self.files[f"{place}/manifest.json"] = json.dumps(whole)
        self._whose[run] = (str(manifest["agentId"]), str(manifest["agentName"]))
        own = {name: f"{self.home}/runs/{run}/{name}" for name in files}
        self.files |= {own[name]: text for name, text in files.items()}
        told = f"{self.home}/runs/{run}/prompt.md"
        self.files[told] = prompt
        return Briefing(prompt=told, signal=_signal(worktree), files=own)

    async def signal(self, run: str, worktree: str, /) -> Signal | None:
        if not self._is_there(worktree):
            return None
        if (text := self.files.get(_signal(worktree))) is not None:
            return read_signal(text.encode("utf-8", "replace"))
        status = self.files.get(_status(worktree), "")
        return read_status(status.encode("utf-8", "replace"), *self._whose.get(run, ()))

    def signal_places(self, worktree: str, /) -> tuple[str, ...]:
        return tuple(path.rpartition("/")[0] for path in (_signal(worktree), _status(worktree)))

    async def gather(self, folder: str, worktrees: Mapping[str, str], /) -> None:
        self.gathered.setdefault(folder, {}).update(worktrees)

    def shows(self, checkout: str, name: str, text: str, /) -> bool:
        return self.files.get(f"{checkout}/.windlass/{name}") == text

    def has_mirrors(self, checkout: str, /) -> bool:
        return checkout in self.mirrored

    async def mirror(self, checkout: str, name: str, text: str, /) -> None:
        if checkout not in self.mirrored:
            raise Unavailable(f"{checkout}/.windlass/{name} cannot be written: no such folder.")
        self.files[f"{checkout}/.windlass/{name}"] = text

    def _is_there(self, worktree: str) -> bool:
        return worktree in self.gathered or self.exists(worktree)


def _signal(worktree: str) -> str:
    return f"{worktree}/.windlass/output/signal.json"


def _status(worktree: str) -> str:
    return f"{worktree}/.windlass/process-status.json"


def _named(text: str, manifest: Mapping[str, Any]) -> str:
    """Text that knows whom it is for."""
    named = text.replace("{AGENT_ID}", str(manifest["agentId"]))
    return named.replace("{AGENT_NAME}", str(manifest["agentName"]))
