"""The command lines of the real programs: what a run may do is decided here."""

from __future__ import annotations

import json
import tomllib

import pytest

from windlass.core.errors import BadInput
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.runs.provider import Provider, StartRequest, check_tools
from windlass.providers import load

CLAUDE, CODEX = load().get("claude"), load().get("codex")
NEW = "6a1f0a52-1f1c-4a5e-9d55-0c7f2f8f5a11"


def start(
    *,
    permissions: Permissions = Permissions.EDIT,
    sandboxed: bool = False,
    tools: tuple[ToolKind, ...] | None = None,
    **more: str,
) -> StartRequest:
    return StartRequest(
        prompt_file="/run/prompt.md",
        worktree=more.get("worktree", "/trees/brave-otter"),
        number=1,
        session=more.get("session", ""),
        system=more.get("system", ""),
        new_session=NEW,
        model=more.get("model", ""),
        permissions=permissions,
        sandboxed=sandboxed,
        tools=tools,
        options={},
    )


class TestClaude:
    def test_a_new_session_gets_the_id_we_chose(self) -> None:
        """A first run begins a session with our id; the prompt comes on standard input, so no limit of arguments."""
        words = CLAUDE.argv(start())
        assert words[:7] == ("claude", "-p", "--output-format", "stream-json", "--verbose", "--session-id", NEW)
        assert CLAUDE.stdin

    def test_a_later_run_goes_on(self) -> None:
        """A session is resumed by its own id."""
        words = CLAUDE.argv(start(session="abc", model="opus"))
        assert words[5:9] == ("--resume", "abc", "--model", "opus")
        assert "--session-id" not in words

    def test_who_it_is_is_added_to_its_system_prompt(self) -> None:
        """In every run, as a session does not keep it; an agent without a file has nothing to add."""
        words = CLAUDE.argv(start(session="abc", system="You are a reviewer."))
        assert words[words.index("--append-system-prompt") + 1] == "You are a reviewer."
        assert "--append-system-prompt" not in CLAUDE.argv(start())

    def test_editing_is_allowed_by_name(self) -> None:
        """Outside a sandbox, nothing is skipped: tools are allowed one by one."""
        words = CLAUDE.argv(start())
        assert words[-4:-1] == ("--permission-mode", "acceptEdits", "--allowedTools")
        assert "--dangerously-skip-permissions" not in words

    def test_it_writes_its_session_down_before_it_ends(self) -> None:
        """Else a session that is resumed may lack the last words of the run before; seen once in eight runs."""
        assert CLAUDE.environment(start())["CLAUDE_CODE_EAGER_FLUSH"] == "1"

    def test_only_a_sandbox_says_that_it_is_one(self) -> None:
        """IS_SANDBOX lets root skip permissions, so it is set where we keep the run in a sandbox, and only there."""
        assert "IS_SANDBOX" not in CLAUDE.environment(start(permissions=Permissions.FULL))
        assert CLAUDE.environment(start(sandboxed=True))["IS_SANDBOX"] == "1"
        assert CLAUDE.argv(start(sandboxed=True))[-1] == "--dangerously-skip-permissions"

    @pytest.mark.parametrize("sandboxed", [True, False])
    def test_a_reader_stays_a_reader(self, sandboxed: bool) -> None:
        """Who may only read is asked nothing and refused the rest, in a sandbox too; its signal can be written."""
        words = CLAUDE.argv(start(permissions=Permissions.READ, sandboxed=sandboxed))
        assert words[-4:-1] == ("--permission-mode", "dontAsk", "--allowedTools")
        assert "Write(./.windlass/output/**)" in words[-1]
        assert not {"Bash", "Write", "Edit"} & set(words[-1].split(","))

    def test_it_gets_our_tools_besides_the_users_own(self) -> None:
        """By a file in the run's folder; whatever it may do, it may talk. The model is asked when they are there."""
        for permissions in Permissions:
            words = CLAUDE.argv(start(permissions=permissions))
            assert words[words.index("--mcp-config") + 1].endswith("/mcp.json")
            assert words[words.index("--mcp-config") + 2].startswith("--")
            assert "--strict-mcp-config" not in words
            allowed = "".join(words[words.index("--allowedTools") + 1 :]) if "--allowedTools" in words else ""
            assert permissions is Permissions.FULL or "mcp__windlass" in allowed.split(",")
        servers = json.loads(CLAUDE.writes["mcp.json"])["mcpServers"]
        assert servers == {"windlass": {"type": "stdio", "command": "windlass", "args": ["mcp"]}}
        waits = ("MCP_CONNECTION_NONBLOCKING", "MCP_CONNECT_TIMEOUT_MS")
        assert [CLAUDE.environment(start())[wait] for wait in waits] == ["0", "30000"]
        assert CLAUDE.tools

    def test_it_talks_to_nobody_else(self) -> None:
        """Updates, telemetry and the like are off."""
        assert CLAUDE.environment(start())["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"


class TestCodex:
    def test_the_prompt_is_read_from_standard_input(self) -> None:
        """Its last word says where the prompt is, in a new session and in a resumed one."""
        assert CODEX.argv(start())[-1] == "-"
        assert CODEX.argv(start(session="abc", model="gpt-5.5"))[-3:] == ("resume", "abc", "-")
        words = CODEX.argv(start(model="gpt-5.5"))
        assert words[words.index("-m") + 1] == "gpt-5.5"

    def test_it_may_commit_in_its_clone(self) -> None:
        """Its own sandbox leaves it the clone's .git, whatever the folder is called."""
        words = CODEX.argv(start(worktree='/trees/a "b" \\ ü 😀'))
        at = words.index("-s")
        assert words[at + 1] == "workspace-write"
        value = tomllib.loads(words[at + 3])
        assert value == {"sandbox_workspace_write": {"writable_roots": ['/trees/a "b" \\ ü 😀/.git']}}

    def test_a_reader_writes_its_signal_only(self) -> None:
        """Who may only read has one folder to write to: that of its signal."""
        words = CODEX.argv(start(permissions=Permissions.READ))
        at = words.index("allow_login_shell=false")
        values = tomllib.loads(f"{words[at + 2]}\n{words[at + 4]}")
        assert values["default_permissions"] == "windlass"
        allowed = values["permissions"]["windlass"]["filesystem"]
        assert allowed == {":root": "read", "/trees/brave-otter/.windlass/output": "write"}

    @pytest.mark.parametrize("permissions", Permissions)
    def test_it_gets_our_tools_besides_the_users_own(self, permissions: Permissions) -> None:
        """By a setting of this run only: they must be there before the model is asked, and need no approval."""
        words = CODEX.argv(start(permissions=permissions))
        [value] = [word for word in words if word.startswith("mcp_servers.")]
        server = tomllib.loads(value)["mcp_servers"]["windlass"]
        assert (server["command"], server["args"]) == ("windlass", ["mcp"])
        assert (server["required"], server["default_tools_approval_mode"]) == (True, "approve")
        assert "WINDLASS_HOME" in server["env_vars"]
        assert CODEX.tools

    def test_one_sandbox_is_enough(self) -> None:
        """Inside our sandbox, which holds it to reading too, or with full permissions, its own is off."""
        reading = start(permissions=Permissions.READ, sandboxed=True)
        for each in (start(sandboxed=True), reading, start(permissions=Permissions.FULL)):
            assert "--dangerously-bypass-approvals-and-sandbox" in CODEX.argv(each)
        assert "--dangerously-bypass-approvals-and-sandbox" not in CODEX.argv(start())


@pytest.mark.parametrize("provider", [CLAUDE, CODEX], ids=lambda each: each.name)
def test_it_is_asked_to_end_by_interrupt(provider: Provider) -> None:
    """Both leave something behind, or go on for a turn, when they are sent TERM."""
    assert provider.gently == "INT"


class TestTools:
    """What a workflow's file gives an agent, in the words of its program."""

    def test_claude_has_those_and_no_others(self) -> None:
        """Its own by name, and ours as ever; who has the web may use it."""
        words = CLAUDE.argv(start(tools=(ToolKind.READ, ToolKind.SHELL)))
        assert words[words.index("--tools") + 1] == "Read,Bash"
        words = CLAUDE.argv(start(permissions=Permissions.READ, tools=(ToolKind.SEARCH, ToolKind.WEB)))
        assert words[words.index("--tools") + 1] == "Grep,Glob,WebFetch,WebSearch"
        assert words[words.index("--allowedTools") + 1].endswith(",mcp__windlass,WebFetch,WebSearch")
        assert "--tools" not in CLAUDE.argv(start())

    def test_codex_has_the_web_or_not(self) -> None:
        """The others are its shell's, and come with its permissions."""
        usual = (ToolKind.READ, ToolKind.SEARCH, ToolKind.EDIT, ToolKind.SHELL)
        assert 'web_search="disabled"' in CODEX.argv(start(tools=usual))
        assert 'web_search="live"' in CODEX.argv(start(tools=(*usual, ToolKind.WEB)))
        assert not any("web_search" in each for each in CODEX.argv(start()))

    @pytest.mark.parametrize(
        ("name", "permissions", "tools", "words"),
        [
            ("codex", Permissions.EDIT, "edit shell read", "can't go without search"),
            ("codex", Permissions.READ, "read search shell", "can't be given shell"),
            ("model", Permissions.READ, "read web", "can't be given web"),
            ("scripted", Permissions.EDIT, "read search edit shell web", "can't be given web"),
        ],
    )
    def test_what_a_program_has_no_flags_for_is_refused(
        self, name: str, permissions: Permissions, tools: str, words: str
    ) -> None:
        """Instead of being forgotten; the rest is said, too."""
        with pytest.raises(BadInput, match=words) as refused:
            check_tools(load().get(name), [ToolKind(part) for part in tools.split()], permissions)
        assert f"With permissions: {permissions} it has read, search" in refused.value.hint

    def test_what_comes_with_the_permissions_can_always_be_said(self) -> None:
        """For every provider."""
        for each in load().all():
            check_tools(each, (ToolKind.READ, ToolKind.SEARCH), Permissions.READ)
            check_tools(each, (ToolKind.READ, ToolKind.SEARCH, ToolKind.EDIT, ToolKind.SHELL), Permissions.EDIT)
