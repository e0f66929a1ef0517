"""Providers: which are here, and what their agents can do and may do."""

from __future__ import annotations

from typing import Any

from windlass.core.nouns.agent import Permissions
from windlass.core.runs.provider import Presence, Provider, StartRequest
from windlass.core.runs.sandbox import UNENFORCED, decide_sandbox
from windlass.web.request import Answer, Call

WORKTREE = "WORKTREE"
"""The word for a run's folder in the flags that are shown."""


async def every(call: Call) -> Answer:
    """Which coding CLIs are here, and what their agents may do."""
    found = await call.context.presences()
    keeper = await call.engine.ports.processes.sandbox_keeper()
    mode = call.engine.ports.settings.at("").sandbox.mode
    kept = "" if keeper.problem else decide_sandbox(mode, keeper)
    return call.listing([{**shape(presence), "sandbox": kept or UNENFORCED} for presence in found])


def shape(presence: Presence) -> dict[str, Any]:
    """All about one provider."""
    provider = presence.provider
    verified = provider.verified
    return {
        "name": provider.name,
        "aliases": list(provider.aliases),
        "summary": provider.summary,
        "own": provider.own,
        "program": provider.program,
        "installed": presence.installed,
        "path": presence.path,
        "version": presence.version,
        "verified": {"version": verified.version, "on": verified.on} if verified else None,
        "verified_here": presence.known,
        "login": str(presence.login),
        "login_evidence": presence.evidence,
        "install": provider.install,
        "log_in": provider.enter,
        "models": provider.models,
        "resumes": provider.resumes,
        "structured": provider.structured,
        "done_by": str(provider.claim),
        "stopped_by": f"SIG{provider.gently}",
        "permissions": {str(permission): _permission(provider, permission) for permission in Permissions},
    }


def _permission(provider: Provider, level: Permissions) -> dict[str, Any]:
    return {
        "may": provider.may[level],
        "flags": _flags(provider, level, sandboxed=False),
        "flags_in_sandbox": _flags(provider, level, sandboxed=True),
    }


def _flags(provider: Provider, level: Permissions, *, sandboxed: bool) -> list[str] | None:
    """The real flags; None where the provider refuses such a run."""
    start = StartRequest(
        prompt_file="", worktree=WORKTREE, number=1, session="", permissions=level, sandboxed=sandboxed, options={}
    )
    held = level is not Permissions.READ or provider.reads or sandboxed
    return list(provider.permit(start)) if held else None
