"""Codex: events on standard output, its own sessions and sandbox; the prompt comes on standard input, however long.

Facts that its flags and events rest on, all measured: its sandbox keeps commands from the clone's `.git` unless that is
named, and from every network and socket; a permission profile of ours is stronger than the user's own `sandbox_mode`;
usage is that of the whole session; SIGTERM leaves its shells behind, SIGINT does not; nothing is said when it is
interrupted. In a sandbox of ours its own can't be made, so that is switched off. Models that it knows have to search
for the tools of a server (`tool_search`); others have them in every request. A server gets few variables but by name.
"""

from __future__ import annotations

import json
import re
import shlex
from functools import partial

from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs.provider import LineReading, Provider, StartRequest, Verified
from windlass.providers.output.events import (
    Event,
    as_object,
    call,
    count,
    of_type,
    reader,
    shortened,
    table,
    texts,
    words,
)
from windlass.providers.output.prices import OPENAI, price
from windlass.providers.output.troubles import kind_of, patterns, read_plain, run_trouble

_QUIET = (
    *("-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false"),
    *("--disable", "plugins", "--disable", "apps", "--disable", "remote_plugin"),
)
"""So that it talks to its model's server, and to nobody else."""
_SHELL = ("-c", "allow_login_shell=false")
"""So that its commands have the PATH that we gave it: a login shell would begin with that of /etc/profile."""

_TOOLS = (
    "-c",
    'mcp_servers.windlass={command="windlass",args=["mcp"],env_vars=["WINDLASS_HOME","WINDLASS_RUN"],required=true,'
    'startup_timeout_sec=60,tool_timeout_sec=120,default_tools_approval_mode="approve"}',
)
"""Our tools, beside the user's own servers: they must be ready before the model is asked, and need no approval."""

_THEIRS = ("config.toml", "AGENTS.md", "prompts", "rules", "skills")
"""The user's own files that count in every session: an agent that writes them has power over the next one."""


def argv(start: StartRequest) -> tuple[str, ...]:
    model = ("-m", start.model) if start.model else ()
    resume = ("resume", start.session) if start.session else ()
    web = () if start.tools is None else ("-c", f'web_search="{"live" if ToolKind.WEB in start.tools else "disabled"}"')
    anywhere = ("--skip-git-repo-check",) if start.repositories else ()
    return ("codex", "exec", "--json", *_TOOLS, *_QUIET, *_SHELL, *anywhere, *model, *web, *permit(start), *resume, "-")


def permit(start: StartRequest) -> tuple[str, ...]:
    """The flags for its own sandbox, which may write its signal or its clone's `.git`. Inside ours it has none."""
    if start.permissions is Permissions.FULL or start.sandboxed:
        return ("--dangerously-bypass-approvals-and-sandbox",)
    if start.permissions is Permissions.READ:
        output = _toml(f"{start.worktree}/.windlass/output")
        profile = f'permissions.windlass.filesystem={{":root"="read",{output}="write"}}'
        return ("-c", 'default_permissions="windlass"', "-c", profile)
    own = [f"{repository}/.git" for repository in start.repositories or (start.worktree,)]
    roots = ",".join(map(_toml, (*start.repositories, *own)))
    return ("-s", "workspace-write", "-c", f"sandbox_workspace_write.writable_roots=[{roots}]")


def _toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


# ── its output ─────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = patterns(
    {
        TroubleKind.CONTEXT: [r"context_length_exceeded", r"context window"],
        TroubleKind.QUOTA: [r"hit your usage limit", r"usage_limit_reached"],
        TroubleKind.BILLING: [r"quota exceeded", r"insufficient_quota", r"billing"],
        TroubleKind.AUTH: [r"\b40[13]\b", r"unauthorized", r"not logged in", r"codex login", r"api key"],
        TroubleKind.THROTTLE: [r"\b429\b", r"rate limit"],
        TroubleKind.OVERLOAD: [
            *(r"at capacity", r"\b5\d\d\b", r"overloaded", r"stream disconnected"),
            *(r"timed? ?out", r"connection", r"error sending request", r"reconnecting"),
        ],
    }
)
"""The words of an error."""

_STDERR = patterns(
    {
        TroubleKind.AUTH: [r"^(error: )?(not logged in|missing environment variable)"],
        TroubleKind.LOST: [r"^error: thread/resume.*no rollout found"],
        TroubleKind.ERROR: [r"^not inside a trusted directory", r"^error loading config"],
    }
)
"""Lines that it prints when it can't begin."""

_HARMLESS = re.compile(r"^Reading (additional input|prompt) from stdin")


def _event(event: Event) -> LineReading:
    match event:
        case {"type": "thread.started"}:
            return LineReading(session=words(event.get("thread_id")))
        case {"type": "item.started", "item": dict(item)}:
            return LineReading(text=_call(item), usage=Usage(calls=1, tool_uses=1) if _call(item) else None)
        case {"type": "item.completed", "item": dict(item)}:
            return _item(item)
        case {"type": "error"}:
            why = _sentence(words(event.get("message")))
            return LineReading(text=why, trouble=_failure(why))
        case {"type": "turn.failed"}:
            return LineReading(trouble=_failure(_sentence(words(table(event.get("error")).get("message")))), ended=True)
        case {"type": "turn.completed"}:
            return LineReading(usage=_usage(table(event.get("usage"))), total=True, ended=True)
    return LineReading()


def _item(item: Event) -> LineReading:
    match item.get("type"):
        case "agent_message":
            said = words(item.get("text"))
            return LineReading(text=said, result=said)
        case "command_execution":
            code = item.get("exit_code")
            failed = f"\n(exit code {code})" if type(code) is int and code else ""
            return LineReading(text=(shortened(words(item.get("aggregated_output"))) + failed).lstrip("\n"))
        case "file_change":
            return LineReading(text="" if item.get("status") == "completed" else f"{_call(item)}: {item.get('status')}")
        case "mcp_tool_call":
            problem = words(table(item.get("error")).get("message"))
            return LineReading(text=shortened(problem or texts(table(item.get("result")).get("content"))))
        case "error":
            return LineReading(text=words(item.get("message")))  # a warning; a failure has an event of its own
    return LineReading()


def _call(item: Event) -> str:
    match item:
        case {"type": "command_execution"}:
            return call("$", _command(words(item.get("command"))))
        case {"type": "file_change", "changes": list(changes)}:
            files = (f"{words(table(change).get('kind'))} {words(table(change).get('path'))}" for change in changes)
            return call("", ", ".join(files))
        case {"type": "mcp_tool_call"}:
            return call(words(item.get("server")), words(item.get("tool")))
        case {"type": "web_search"}:
            return call("search", words(item.get("query")))
    return ""


def _command(line: str) -> str:
    """The command without the shell that runs it."""
    shell = re.fullmatch(r"/\S+ -l?c (.+)", line, re.DOTALL)
    try:
        inner = shlex.split(shell.group(1)) if shell else []
    except ValueError:  # quotes that do not match
        return line
    return inner[0] if len(inner) == 1 else line


def _sentence(message: str) -> str:
    """The sentence of an error; some errors are the server's JSON, with the sentence inside."""
    inner = table((as_object(message) or {}).get("error"))
    told = words(inner.get("message"))
    code = words(inner.get("code"))
    return f"{told} ({code})" if told and code else told or message


def _failure(why: str) -> RunTrouble:
    return run_trouble(kind_of(why, _WORDS) or TroubleKind.ERROR, why)


def _usage(used: Event) -> Usage:
    return Usage(
        input_tokens=count(used.get("input_tokens")),
        output_tokens=count(used.get("output_tokens")),
        cached_tokens=count(used.get("cached_input_tokens")),
    )


def _plain(line: str) -> LineReading:
    return LineReading() if _HARMLESS.match(line) else read_plain(line, _STDERR)


provider = Provider(
    name="codex",
    summary="Codex",
    argv=argv,
    read=reader(_event, _plain),
    telling=of_type("agent_message", "error", "item.started", "thread.started", "turn.completed", "turn.failed"),
    price=partial(price, OPENAI),
    tools=True,
    picks=(ToolKind.WEB,),
    models=True,
    resumes=True,
    gently="INT",
    program="codex",
    install="Run `npm install -g @openai/codex`.",
    enter="Run `codex login`, or set OPENAI_API_KEY.",
    permit=permit,
    reads=True,
    may={
        Permissions.READ: "read everywhere and run what only reads; no network for its commands",
        Permissions.EDIT: "write in its worktree and temporary folders only; no network for its commands",
        Permissions.FULL: "whatever it likes, with your rights",
    },
    structured=True,
    version=("codex", "--version"),
    verified=Verified("0.166.0", "2026-11-15"),
    login=("$CODEX_HOME/auth.json", ".codex/auth.json"),
    secrets=("OPENAI_API_KEY", "CODEX_API_KEY"),
    variables=("CODEX_HOME", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT"),
    folders=("$CODEX_HOME/auth.json", ".codex/auth.json"),
    protected=tuple(f"{folder}/{name}" for folder in (".codex", "$CODEX_HOME") for name in _THEIRS),
)
