"""The provider of models without a coding CLI: what it starts, what it needs, and whose models they are."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from windlass.core.errors import BadInput, Unavailable, WindlassError
from windlass.core.nouns.agent import Permissions
from windlass.core.runs.provider import Login, Presence, StartRequest
from windlass.core.settings.models import ModelSettings, settings_for
from windlass.providers import FoundProviders, load, model, presence

PROVIDER = load().get("model")
SONNET = "anthropic/claude-sonnet-4-5"


def start(**more: object) -> StartRequest:
    plain = StartRequest(
        prompt_file="/run/prompt.md", folder="/run", worktree="/tree", number=1, session="", new_session="n", options={}
    )
    return replace(plain, model=SONNET, **more)  # type: ignore[arg-type]  # fields by name


def after(words: tuple[str, ...], flag: str) -> list[str]:
    return [word for before, word in itertools.pairwise(words) if before == flag]


def set_to(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


class TestCommandLine:
    def test_a_new_session_and_a_later_run(self) -> None:
        """A first run gets the id that we chose, a later one goes on."""
        assert after(PROVIDER.argv(start()), "--session") == ["n"]
        words = PROVIDER.argv(start(session="s"))
        assert after(words, "--resume") == ["s"]
        assert "--session" not in words

    def test_who_it_is_is_read_from_a_file(self) -> None:
        """However long that is, it is no argument."""
        assert after(PROVIDER.argv(start(system="You are.")), "--system") == ["/run/system.md"]
        assert "--system" not in PROVIDER.argv(start())

    def test_every_folder_is_named(self) -> None:
        """The worktree first, and where there are several, each repository."""
        assert after(PROVIDER.argv(start(repositories=("/a", "/b"))), "--folder") == ["/tree", "/a", "/b"]

    @pytest.mark.parametrize("level", Permissions)
    def test_permissions_are_told(self, level: Permissions) -> None:
        """The process itself leaves out the tools."""
        assert after(PROVIDER.argv(start(permissions=level)), "--permissions") == [level]

    def test_a_server_of_ones_own(self) -> None:
        """Its address, what is spoken there, and which variable has its key; no tool gets any key."""
        words = PROVIDER.argv(replace(start(base_url="http://127.0.0.1/v1", key="MY_KEY"), model="openai/qwen3"))
        assert after(words, "--base-url") == ["http://127.0.0.1/v1"]
        assert after(words, "--protocol") == ["openai-chat"]
        assert after(words, "--key") == ["MY_KEY"]
        assert {"MY_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"} <= set(after(words, "--forget"))


class TestReady:
    def test_with_a_key(self) -> None:
        """All is there."""
        model.ready(SONNET, ModelSettings(), set_to("ANTHROPIC_API_KEY"))

    @pytest.mark.parametrize(
        ("name", "chosen", "error", "hint"),
        [
            ("", ModelSettings(), BadInput, "Add --model"),
            ("claude-sonnet-4-5", ModelSettings(), BadInput, "Write it as vendor/name"),
            ("anthropi/x", ModelSettings(), BadInput, "Did you mean anthropic?"),
            (SONNET, ModelSettings(), Unavailable, "export ANTHROPIC_API_KEY=…"),
            ("openai/gpt-5.5", ModelSettings(key="MINE"), Unavailable, "export MINE=…"),
            ("groq/llama", ModelSettings(), Unavailable, "pip install 'pydantic-ai-slim[groq]'"),
            ("ollama/qwen3", ModelSettings(), Unavailable, "Set OLLAMA_BASE_URL, or write base_url into"),
        ],
    )
    def test_what_is_missing_is_named(
        self, name: str, chosen: ModelSettings, error: type[WindlassError], hint: str
    ) -> None:
        """With the command or the variable that mends it."""
        with pytest.raises(error) as refused:
            model.ready(name, chosen, set_to("GROQ_API_KEY"))
        assert hint in refused.value.hint

    def test_a_server_of_ones_own_needs_no_key(self) -> None:
        """Unless one was named."""
        model.ready("openai/qwen3", ModelSettings(base_url="http://127.0.0.1/v1"), set_to())
        model.ready("ollama/qwen3", ModelSettings(), set_to("OLLAMA_BASE_URL"))

    def test_without_the_extra(self) -> None:
        """The refusal names the command that installs it; people are shown that it is not there."""
        bare = replace(PROVIDER, module="no_such_library_anywhere")
        assert not asyncio.run(presence.look(lambda: [bare], {}))[0].installed
        with pytest.raises(Unavailable, match="needs an extra of ours, which is not installed") as refused:
            load().require(bare, SONNET)
        assert refused.value.hint == "Run `pip install 'windlass-agents[models]'`."

    def test_only_its_own_key(self) -> None:
        """A run gets the variables of its vendor, and of no other."""
        assert model.keys(SONNET) == ("ANTHROPIC_API_KEY",)
        assert model.keys("google/gemini-3-pro") == ("GOOGLE_API_KEY", "GEMINI_API_KEY")
        assert set(model.keys("groq/x")) <= set(PROVIDER.secrets)


class TestByModel:
    def test_a_vendor_says_whose_it_is(self) -> None:
        """Any other name is nobody's."""
        found = load()
        assert found.by_model(SONNET) == ("model", SONNET)
        for other in ("claude-sonnet-4-5", "", "sonnet", "nobody/x", "anthropic/"):
            assert found.by_model(other) == ("", other)

    def test_a_cli_may_be_preferred(self, tmp_path: Path) -> None:
        """Where it is installed, it gets the name without the vendor; where it is not, it is as if nothing were set."""
        found: FoundProviders = load(str(tmp_path))
        found.models = lambda: {"anthropic": ModelSettings(prefer_cli="claude")}
        assert found.by_model(SONNET) == ("model", SONNET)
        (tmp_path / "claude").write_text("#!/bin/sh\n")
        (tmp_path / "claude").chmod(0o755)
        assert found.by_model(SONNET) == ("claude", "claude-sonnet-4-5")
        assert found.by_model("openai/gpt-5.5") == ("model", "openai/gpt-5.5")

    def test_require_looks_at_the_model(self) -> None:
        """By what is set, and by the variables that there are; without a model, only at the provider."""
        found = load()
        found.require(PROVIDER)
        with pytest.raises(Unavailable):
            found.require(PROVIDER, SONNET)
        found.environment = {"ANTHROPIC_API_KEY": "sk"}
        found.require(PROVIDER, SONNET)

    def test_a_model_counts_more_than_its_vendor(self) -> None:
        """Key by key."""
        known = {
            "openai": ModelSettings(base_url="http://127.0.0.1/all", key="ALL"),
            "openai/qwen3": ModelSettings(base_url="http://127.0.0.1/one"),
        }
        assert settings_for("openai/qwen3", known) == ModelSettings(base_url="http://127.0.0.1/one", key="ALL")
        assert settings_for("openai/other", known) == known["openai"]
        assert settings_for("groq/x", known) == ModelSettings()


class TestPresence:
    async def looked(self, **variables: str) -> Presence:
        return (await presence.look(lambda: [PROVIDER], variables))[0]

    def test_the_library_and_the_keys_are_looked_for(self) -> None:
        """Its version is the library's; a key is a login, and without one nobody is logged in."""
        found = asyncio.run(self.looked(OPENAI_API_KEY="sk"))
        assert (found.installed, found.login, found.evidence) == (True, Login.YES, "$OPENAI_API_KEY")
        assert found.version.startswith("2.")
        assert asyncio.run(self.looked()).login is Login.NO
