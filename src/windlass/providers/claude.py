"""Claude Code: events on standard output, its own sessions; the prompt comes on standard input, however long.

Facts that its flags and events rest on, all measured: a result says `subtype: success` also when it failed, so
`is_error` counts; SIGTERM lets it go on for a turn, SIGINT ends it; a session is found only from the folder that it was
begun in; `--dangerously-skip-permissions` is refused to root, unless IS_SANDBOX says that nothing can be harmed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import partial

from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs.provider import LineReading, Provider, StartRequest, Verified
from windlass.providers.output.events import Event, amount, call, count, of_type, reader, shortened, table, texts, words
from windlass.providers.output.troubles import kind_of, patterns, read_plain, run_trouble

_READS = (
    "Read,Grep,Glob,Write(./.windlass/output/**),Edit(./.windlass/output/**),"
    "Bash(windlass agent:*),Bash(windlass change:*),Bash(windlass context:*),mcp__windlass"
)
_EDITS = "Bash,Edit,Write,NotebookEdit,WebFetch,WebSearch,mcp__windlass"
_OWN = {
    ToolKind.READ: "Read",
    ToolKind.SEARCH: "Grep,Glob",
    ToolKind.EDIT: "Edit,Write,NotebookEdit",
    ToolKind.SHELL: "Bash",
    ToolKind.WEB: "WebFetch,WebSearch",
}
_TOOLS = "mcp.json"
_SERVER = {"type": "stdio", "command": "windlass", "args": ["mcp"]}
"""Our tools, beside the user's own servers. The daemon sees by itself which run calls them."""

_THEIRS = (".claude.json", "settings.json", "CLAUDE.md", "agents", "commands", "output-styles", "plugins", "skills")
"""The user's own files that count in every session: an agent that writes them has power over the next one."""


def argv(start: StartRequest) -> tuple[str, ...]:
    session = ("--resume", start.session) if start.session else ("--session-id", start.new_session)
    model = ("--model", start.model) if start.model else ()
    system = ("--append-system-prompt", start.system) if start.system else ()
    more = tuple(word for repository in start.repositories for word in ("--add-dir", repository))
    tools = ("--mcp-config", f"{start.folder}/{_TOOLS}")
    fixed = ("claude", "-p", "--output-format", "stream-json", "--verbose")
    return (*fixed, *session, *model, *system, *more, *tools, *permit(start))


def permit(start: StartRequest) -> tuple[str, ...]:
    """The flags for the agent's permissions. The program refuses everything else, as nobody can be asked."""
    if start.permissions is Permissions.READ:
        web = f",{_OWN[ToolKind.WEB]}" if ToolKind.WEB in (start.tools or ()) else ""
        allowed: tuple[str, ...] = ("--permission-mode", "dontAsk", "--allowedTools", _READS + web)
    elif start.permissions is Permissions.FULL or start.sandboxed:
        allowed = ("--dangerously-skip-permissions",)
    else:
        allowed = ("--permission-mode", "acceptEdits", "--allowedTools", _EDITS)
    # This limits its built-in tools. The tools of servers, such as ours, stay.
    return allowed if start.tools is None else (*allowed, "--tools", ",".join(_OWN[tool] for tool in start.tools))


def environment(start: StartRequest) -> Mapping[str, str]:
    quiet = ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING")
    variables = dict.fromkeys((*quiet, "DISABLE_TELEMETRY"), "1")
    variables["MCP_CONNECTION_NONBLOCKING"] = "0"  # else the model is asked before its tools are there
    variables["MCP_CONNECT_TIMEOUT_MS"] = "30000"  # as long as one server may take; else five seconds, too few here
    variables["CLAUDE_CODE_EAGER_FLUSH"] = "1"  # else its last words may be missing in the session that is resumed
    return variables | ({"IS_SANDBOX": "1"} if start.sandboxed else {})


# ── its output ─────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = patterns(
    {
        TroubleKind.LOST: [r"^no conversation found with session id"],
        TroubleKind.CONTEXT: [r"prompt is too long", r"exceeds? the context"],
        TroubleKind.BILLING: [r"credit balance is too low", r"\bbilling\b"],
        TroubleKind.AUTH: [r"not logged in", r"run /login", r"invalid api key", r"oauth token", r"authentication"],
        TroubleKind.QUOTA: [r"you.ve (hit|reached) your [\w ]*limit", r"(?<!not your )\busage limit\b"],
        TroubleKind.THROTTLE: [r"\b429\b", r"rate limit", r"limiting requests"],
        TroubleKind.OVERLOAD: [
            r"\b5\d\d\b",
            r"overloaded",
            r"timed? ?out",
            r"connection|unable to connect|fetch failed",
        ],
    }
)
"""The words of a failed result."""

_NAMES = {
    "authentication_failed": TroubleKind.AUTH,
    "billing_error": TroubleKind.BILLING,
    "rate_limit": TroubleKind.THROTTLE,
    "overloaded": TroubleKind.OVERLOAD,
    "server_error": TroubleKind.OVERLOAD,
    "unknown": TroubleKind.OVERLOAD,
}
"""The reasons for a retry."""

_STDERR = patterns(
    {
        TroubleKind.AUTH: [r"^(error: )?(not logged in|invalid api key)"],
        TroubleKind.LOST: [r"^no conversation found with session id"],
        TroubleKind.ERROR: [
            r"^error: session id \S+ is already in use",
            r"^--dangerously-skip-permissions cannot be used with root",
        ],
    }
)
"""Lines that it prints when it can't begin."""


def _event(event: Event) -> LineReading:
    match event:
        case {"type": "system", "subtype": "init"}:
            return LineReading(session=words(event.get("session_id")), model=words(event.get("model")))
        case {"type": "system", "subtype": "api_retry"}:
            return _retry(event)
        case {"type": "assistant", "message": {"content": list(blocks)}}:
            uses = sum(table(block).get("type") == "tool_use" for block in blocks)
            return LineReading(text=_shown(blocks), usage=Usage(calls=uses, tool_uses=uses) if uses else None)
        case {"type": "user", "message": {"content": list(blocks)}}:
            return LineReading(text=_shown(blocks))
        case {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"} as about}:
            kind = words(about.get("rateLimitType")).replace("_", " ") or "usage"
            why = f"the {kind} limit is reached"
            return LineReading(trouble=run_trouble(TroubleKind.QUOTA, why, amount(about.get("resetsAt")) or None))
        case {"type": "result"}:
            return _result(event)
    return LineReading()


def _shown(blocks: Iterable[object]) -> str:
    return "\n".join(filter(None, (_block(table(block)) for block in blocks)))


def _block(block: Event) -> str:
    match block.get("type"):
        case "text":
            return words(block.get("text"))
        case "tool_use":
            return _call(words(block.get("name")), table(block.get("input")))
        case "tool_result":
            content = block.get("content")
            return shortened(words(content) or texts(content))
    return ""


def _call(name: str, given: Event) -> str:
    if name == "Bash":
        return call("$", words(given.get("command")))
    told = (given.get(key) for key in ("file_path", "notebook_path", "pattern", "url", "query", "description"))
    return call(name, next(filter(None, map(words, told)), ""))


def _retry(event: Event) -> LineReading:
    kind = _NAMES.get(words(event.get("error")), TroubleKind.OVERLOAD)
    status = count(event.get("error_status"))
    told = f"{words(event.get('error')) or 'error'}{f' ({status})' if status else ''}"
    tried = f"try {count(event.get('attempt'))} of {count(event.get('max_retries'))}"
    return LineReading(text=f"{told}: {tried}", trouble=run_trouble(kind, f"{told}, {tried}"))


def _result(event: Event) -> LineReading:
    """The end of its turn; it went well only if `is_error` is false."""
    said = words(event.get("result"))
    session, usage = words(event.get("session_id")), _usage(event)
    if event.get("is_error") is False:
        return LineReading(session=session, usage=usage, result=said, ended=True)
    errors = event.get("errors")
    why = said or "; ".join(map(words, errors if isinstance(errors, list) else [])) or words(event.get("subtype"))
    return LineReading(text="" if said else why, session=session, usage=usage, trouble=_failure(event, why), ended=True)


def _failure(event: Event, why: str) -> RunTrouble:
    status = count(event.get("api_error_status"))
    if event.get("terminal_reason") == "prompt_too_long":
        return run_trouble(TroubleKind.CONTEXT, why)
    if status in (401, 403):
        return run_trouble(TroubleKind.AUTH, why)
    return run_trouble(kind_of(f"{why} {status or ''}", _WORDS) or TroubleKind.ERROR, why)


def _usage(event: Event) -> Usage:
    """Its input has three parts: new, written to the cache, read from the cache. The last answer is one more call."""
    used = table(event.get("usage"))
    cached = count(used.get("cache_read_input_tokens"))
    fresh = count(used.get("input_tokens")) + count(used.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=fresh + cached,
        output_tokens=count(used.get("output_tokens")),
        cost_usd=amount(event.get("total_cost_usd")),
        cached_tokens=cached,
        calls=1 if fresh + cached else 0,
    )


provider = Provider(
    name="claude",
    aliases=("claude-code",),
    summary="Claude Code",
    argv=argv,
    environment=environment,
    read=reader(_event, partial(read_plain, known=_STDERR)),
    telling=of_type("rate_limit_event", "result", "system", "tool_use"),
    system=True,
    writes={_TOOLS: json.dumps({"mcpServers": {"windlass": _SERVER}}, indent=2) + "\n"},
    tools=True,
    picks=(*ToolKind,),
    models=True,
    resumes=True,
    gently="INT",
    program="claude",
    install="Run `npm install -g @anthropic-ai/claude-code`.",
    enter="Run `claude` once, or set ANTHROPIC_API_KEY.",
    permit=permit,
    reads=True,
    may={
        Permissions.READ: "read, and run commands that only read; anything else is refused",
        Permissions.EDIT: "edit in its worktree; its shell commands have your rights",
        Permissions.FULL: "whatever it likes, with your rights; refused to root outside a sandbox",
    },
    structured=True,
    version=("claude", "--version"),
    verified=Verified("2.1.197", "2026-11-15"),
    login=("$CLAUDE_CONFIG_DIR/.credentials.json", ".claude/.credentials.json"),
    secrets=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    variables=(
        "CLAUDE_CONFIG_DIR",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_MODEL",
        "ANTHROPIC_SMALL_FAST_MODEL",
        "API_TIMEOUT_MS",
        "CLAUDE_CODE_MAX_RETRIES",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    ),
    folders=("$CLAUDE_CONFIG_DIR/.credentials.json", ".claude/.credentials.json"),
    protected=(
        ".claude.json",
        *(f"{folder}/{name}" for folder in (".claude", "$CLAUDE_CONFIG_DIR") for name in _THEIRS),
    ),
)
