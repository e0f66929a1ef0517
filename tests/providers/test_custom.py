"""Providers that people describe in their settings."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from windlass.core.errors import BadInput, NotFound
from windlass.core.nouns.agent import Permissions
from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs.provider import ARGUMENT_LIMIT, DoneSign, LineReading, Provider, StartRequest
from windlass.core.settings.schema import Settings, build
from windlass.daemon.settings import SettingsFiles, project_file
from windlass.providers import FoundProviders, load


def described(text: str) -> FoundProviders:
    """The providers of a person with this settings file."""
    settings = build(Settings, ("config.toml", tomllib.loads(text)))
    found = load()
    found.accept(settings)
    found.described = lambda: settings.providers
    return found


def mine(text: str) -> Provider:
    return described(f"[providers.mine]\n{text}").get("mine")


def refusal(text: str, name: str = "mine") -> BadInput:
    with pytest.raises(BadInput) as refused:
        described(f"[providers.{name}]\n{text}")
    return refused.value


def start(**more: Any) -> StartRequest:
    given: dict[str, Any] = {"prompt": "Do it.", "prompt_file": "/run/prompt.md", "number": 1}
    return StartRequest(**(given | {"session": "", "options": {}} | more))


class TestCommandLine:
    @pytest.mark.parametrize(
        ("how", "words"),
        [
            ('prompt = "stdin"', ()),
            ('prompt = "stdin"\nprompt_flag = "-"', ("-",)),
            ('prompt = "argument"', ("Do it.",)),
            ('prompt = "flag"\nprompt_flag = "--message"', ("--message", "Do it.")),
            ('prompt = "file"', ("/run/prompt.md",)),
            ('prompt = "file"\nprompt_flag = "--file"', ("--file", "/run/prompt.md")),
        ],
    )
    def test_each_way_to_give_a_prompt(self, how: str, words: tuple[str, ...]) -> None:
        """The prompt comes last, in the way that the program takes it; only then is standard input filled."""
        provider = mine(f'command = ["my-agent", "run"]\nnon_interactive = ["--yes"]\n{how}')
        assert provider.argv(start()) == ("my-agent", "run", "--yes", *words)
        assert provider.stdin == ("stdin" in how)

    @pytest.mark.parametrize("how", ['prompt = "argument"', 'prompt = "flag"\nprompt_flag = "-m"'])
    def test_a_prompt_that_is_too_long_is_left_in_its_file(self, how: str) -> None:
        """No system takes an argument beyond its limit, counted in bytes; so the agent is told where to read on."""
        provider = mine(f'command = ["my-agent"]\n{how}')
        long = "ü" * (ARGUMENT_LIMIT // 2 + 1)
        assert "/run/prompt.md" in provider.argv(start(prompt=long))[-1]
        assert provider.argv(start(prompt="ü" * (ARGUMENT_LIMIT // 2)))[-1] == "ü" * (ARGUMENT_LIMIT // 2)

    def test_a_session_is_resumed(self) -> None:
        """The words that resume stand right after the command, with the session in them; without one there are none."""
        text = 'command = ["my-agent"]\nresume = ["--session={session}"]\nsession = "id=(\\\\w+)"\nmodel_flag = "-m"'
        provider = mine(text)
        assert provider.resumes
        assert provider.argv(start(session="s1", model="big")) == ("my-agent", "--session=s1", "-m", "big")
        assert provider.argv(start()) == ("my-agent",)

    def test_who_the_agent_is_has_a_flag_of_its_own(self) -> None:
        """As it is: braces in it are the agent's own. Without a flag, it is not asked for."""
        provider = mine('command = ["my-agent"]\nprompt = "argument"\nsystem_prompt_flag = "--system"')
        assert provider.system
        assert provider.argv(start(system="A {worktree}.")) == ("my-agent", "--system", "A {worktree}.", "Do it.")
        assert provider.argv(start()) == ("my-agent", "Do it.")
        assert not mine('command = ["my-agent"]').system

    def test_a_model_that_cannot_be_asked_for_is_refused(self) -> None:
        """Nobody believes that a model was used which the program was never told of."""
        with pytest.raises(BadInput, match="model_flag"):
            mine('command = ["my-agent"]').argv(start(model="big"))

    def test_permissions_have_flags(self) -> None:
        """Each permission has its flags, with the worktree in them; other braces stay."""
        provider = mine('command = ["a"]\npermissions = {read = ["--ro", "{worktree}", "{x}"], full = ["--all"]}')
        reading = start(permissions=Permissions.READ, worktree="/tree")
        assert provider.argv(reading) == ("a", "--ro", "/tree", "{x}")
        assert provider.argv(start(permissions=Permissions.EDIT)) == ("a",)
        assert provider.argv(start(permissions=Permissions.FULL)) == ("a", "--all")

    def test_only_flags_for_it_hold_it_to_reading(self) -> None:
        """Without them, `read` would mean nothing outside a sandbox; so it is not started there."""
        without, given = mine('command = ["a"]'), mine('command = ["a"]\npermissions = {read = ["--ro"]}')
        assert (without.reads, given.reads) == (False, True)
        assert "not possible outside a sandbox" in without.may[Permissions.READ]
        assert without.argv(start(permissions=Permissions.READ, sandboxed=True)) == ("a",)

    def test_the_home_is_filled_in(self, own_home: Path) -> None:
        """`~/` at the start of the program or of a variable is the person's home."""
        provider = mine('command = ["~/bin/a"]\nenvironment = {A_HOME = "~/.a", B = "x~/y"}')
        assert provider.program == f"{Path.home()}/bin/a"
        assert provider.environment(start()) == {"A_HOME": f"{Path.home()}/.a", "B": "x~/y"}
        assert str(own_home)


class TestOutput:
    def test_plain_text(self) -> None:
        """Lines are shown as they are; patterns find the session and troubles."""
        errors = 'errors = {throttle = ["^429"], auth = ["no key", "log in"]}'
        read = mine(f'command = ["a"]\nsession = "session: (\\\\S+)"\n{errors}').read
        assert read("hello") == LineReading(text="hello")
        assert read("session: s-1 begun").session == "s-1"
        assert read("429 slow down") == LineReading(
            text="429 slow down", trouble=RunTrouble(TroubleKind.THROTTLE, "429 slow down")
        )
        assert read("please LOG IN").trouble == RunTrouble(TroubleKind.AUTH, "please LOG IN")

    @pytest.mark.parametrize(
        ("stands", "uses"), [("bash", 1), (3, 3), (["a", "b"], 2), ({"name": "a"}, 1), ("", 0), (0, 0), (-2, 0)]
    )
    def test_tool_uses(self, stands: object, uses: int) -> None:
        """A number or a list tells how many; anything else that stands there is one."""
        provider = mine('command = ["a"]\noutput = "json"\ntool_uses = "part.tool"')
        usage = provider.read(json.dumps({"part": {"tool": stands}})).usage
        assert (usage.tool_uses if usage else 0) == uses

    def test_events(self) -> None:
        """Fields are found by their path, also in lists; what is no event is shown."""
        provider = mine(
            'command = ["a"]\noutput = "json"\nsession = "data.id"\ntext = ["message", "parts.0.text"]\n'
            'result = "final"\nmodel = "m"\ninput_tokens = "use.in"\noutput_tokens = "use.out"\ncost_usd = "use.usd"\n'
            'errors = {quota = ["limit reached"]}'
        )
        event = {"data": {"id": "s1"}, "message": "Hi", "parts": [{"text": "there"}], "final": "ok", "m": "big"}
        event["use"] = {"in": 10, "out": 5, "usd": 0.25}
        assert provider.read(json.dumps(event)) == LineReading(
            text="Hi\nthere",
            session="s1",
            model="big",
            usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.25),
            result="ok",
        )
        assert provider.read("plain").text == "plain"
        assert provider.read('{"other": 1}') == LineReading()
        assert provider.read('{"error": "limit reached"}').trouble is not None
        assert provider.structured

    def test_events_without_a_text(self) -> None:
        """If no field is for people, they see the whole line."""
        provider = mine('command = ["a"]\noutput = "json"')
        assert provider.read('{"a": 1}').text == '{"a": 1}'
        assert not provider.structured


class TestVariants:
    def test_another_account(self) -> None:
        """A variant of a built-in provider differs in what is said of it, and in nothing else."""
        text = 'like = "codex"\nenvironment = {CODEX_HOME = "/accounts/work"}\nsecrets = ["WORK_KEY"]'
        found = described(f"[providers.codex-work]\n{text}")
        base, variant = found.get("codex"), found.get("codex-work")
        assert variant.argv(start(worktree="/t")) == base.argv(start(worktree="/t"))
        assert variant.environment(start())["CODEX_HOME"] == "/accounts/work"
        assert "WORK_KEY" in variant.secrets
        assert (variant.read, variant.verified, variant.own) == (base.read, base.verified, True)

    def test_another_program(self) -> None:
        """Its program may be elsewhere, with flags of its own; then nobody has tried it."""
        found = described(
            '[providers.wrapped]\nlike = "claude"\ncommand = ["wrap", "claude"]\nnon_interactive = ["-x"]'
        )
        words = found.get("wrapped").argv(start(new_session="n"))
        assert words[:4] == ("wrap", "claude", "-x", "-p")
        assert found.get("wrapped").verified is None

    def test_only_some_things_can_be_changed(self) -> None:
        """How a built-in provider is driven is not for settings to say."""
        assert "providers.mine.prompt can't be changed" in str(refusal('like = "codex"\nprompt = "argument"'))
        assert "Did you mean codex?" in refusal('like = "codx"').hint


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("summary = 'x'", "providers.mine.command is missing"),
            ("command = ['']", "providers.mine.command is missing"),
            ("command = ['a']\nprompt = 'args'", "providers.mine.prompt: 'args' is not one of argument, flag"),
            ("command = ['a']\nprompt = 'flag'", "prompt_flag is missing"),
            ("command = ['a']\noutput = 'xml'", "providers.mine.output: 'xml'"),
            ("command = ['a']\nclaim = 'hope'", "providers.mine.claim: 'hope'"),
            ("command = ['a']\ngently = 'KILL'", "providers.mine.gently: 'KILL'"),
            ("command = ['a']\npermissions = {write = []}", "providers.mine.permissions: 'write'"),
            ("command = ['a']\nerrors = {stall = ['x']}", "providers.mine.errors: 'stall'"),
            ("command = ['a']\nerrors = {auth = ['(']}", "providers.mine.errors.auth: '(' is no pattern"),
            ("command = ['a']\nsession = '('", "providers.mine.session: '(' is no pattern"),
            ("command = ['a']\nresume = ['-c']\nsession = 'x'", "no {session} in it"),
            ("command = ['a']\nresume = ['{session}']", "session is missing"),
            ("command = ['a']\ntext = ['x']", "providers.mine.text is a field of events"),
            ("command = 'a'", "providers.mine.command must be a list of texts"),
            ("command = ['a']\nerrors = {auth = 'x'}", "providers.mine.errors.auth must be a list of texts"),
            ("command = ['a']\nenvironment = 'x'", "providers.mine.environment must be a table"),
            ("command = ['a']\nenvironment = {A = 1}", "providers.mine.environment.A must be a text"),
            ("command = ['a']\npromt = 'x'", "there is no setting providers.mine.promt"),
        ],
    )
    def test_what_makes_no_sense_is_refused_by_its_full_name(self, text: str, words: str) -> None:
        """A slip in the file is found before anything is started."""
        assert words in str(refusal(text))

    def test_a_near_miss_is_named(self) -> None:
        """A misspelled key leads to the right one, under the name of that very provider."""
        assert refusal("command = ['a']\npromt = 'x'").hint == "Did you mean providers.mine.prompt?"
        assert refusal("command = ['a']\nprompt = 'argumnt'").hint == "Did you mean argument?"

    @pytest.mark.parametrize("name", ["codex", "claude-code", "command"])
    def test_our_names_are_taken(self, name: str) -> None:
        """Nobody can put another program behind a name that people know."""
        assert "built-in" in str(refusal("command = ['a']", name))

    def test_a_name_is_a_plain_word(self) -> None:
        """A name must be one that a command line takes."""
        assert "small letters" in str(refusal("command = ['a']", '"My Agent"'))

    def test_a_table_is_needed(self) -> None:
        """`providers` and each of them is a table."""
        for text in ("providers = 3", "[providers]\nmine = 3"):
            with pytest.raises(BadInput, match="is a table"):
                described(text)


class TestFiles:
    def test_a_project_cannot_bring_programs(self, tmp_path: Path) -> None:
        """A repository that one has cloned does not decide what runs on one's machine; the refusal says where to."""
        project = project_file(str(tmp_path / "repo"))
        project.parent.mkdir(parents=True)
        project.write_text("[providers.mine]\ncommand = ['a']\n")
        with pytest.raises(BadInput, match=r"\[providers\] names programs") as refused:
            SettingsFiles(tmp_path, {}).check(str(tmp_path / "repo"))
        assert str(tmp_path / "config.toml") in str(refused.value)

    def test_the_file_is_read_anew(self, tmp_path: Path) -> None:
        """A provider is there as soon as it is described, and gone when it is not; a broken file changes nothing."""
        found = load()
        settings = SettingsFiles(tmp_path, {}, accept=found.accept)
        found.described = lambda: settings.at("").providers
        file = tmp_path / "config.toml"
        file.write_text("[providers.mine]\ncommand = ['a']\nclaim = 'exit'\n")
        assert found.get("mine").claim is DoneSign.EXIT
        assert "mine" in [each.name for each in found.all()]

        file.write_text("[providers.mine]\ncommand = []\n")
        assert found.get("mine").claim is DoneSign.EXIT
        with pytest.raises(BadInput, match=r"config\.toml: providers\.mine\.command is missing"):
            settings.check("")

        file.write_text("[providers.others]\ncommand = ['b']\n")
        with pytest.raises(NotFound):
            found.get("mine")

    def test_no_command_sets_them(self, tmp_path: Path) -> None:
        """`windlass config set` says where they are written."""
        with pytest.raises(BadInput, match="can't be set by a command") as refused:
            SettingsFiles(tmp_path, {}).set(tmp_path / "config.toml", "providers.mine.command", "a")
        assert "windlass config path" in refused.value.hint
