"""Stories of models that say by their name which provider runs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from stage import CHOOSY, Stage, play

from windlass.core.errors import Unavailable
from windlass.core.nouns.agent import Agent
from windlass.core.settings.models import ModelSettings
from windlass.core.settings.schema import WorkSettings
from windlass.engine.projects.tasks import Order
from windlass.providers import FoundProviders

SONNET = "anthropic/claude-sonnet-4-5"


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> Stage:
    """A repository with an agent whose file names a model and no provider, and a person with a key."""
    folder = repo / ".windlass/agents"
    folder.mkdir(parents=True)
    (folder / "painter.md").write_text(f"---\nname: painter\nrole: Painter\nmodel: {SONNET}\n---\nPaint.\n")
    (repo / ".git/info/exclude").write_text("/.windlass/\n")
    made = Stage(repo, tmp_path / "home")
    known(made).environment = {"ANTHROPIC_API_KEY": "sk"}
    return made


def known(stage: Stage) -> FoundProviders:
    found = stage.engine.ports.providers
    assert isinstance(found, FoundProviders)
    return found


async def engaged(stage: Stage, **order: Any) -> Agent:
    return (await stage.engine.tasks.add(Order(path=str(stage.repo), title="Paint it", **order)))[1]


def by_default(stage: Stage, provider: str) -> None:
    stage.settings.settings = replace(stage.settings.settings, work=WorkSettings(provider=provider))


def test_a_typed_model_and_one_of_a_file(stage: Stage) -> None:
    """Both choose the provider, also where the settings have another one."""

    async def story() -> None:
        by_default(stage, "scripted")
        typed = await engaged(stage, model="anthropic/claude-haiku-4-5")
        filed = await engaged(stage, agent="painter")
        assert (typed.provider, typed.model) == ("model", "anthropic/claude-haiku-4-5")
        assert (filed.provider, filed.model) == ("model", SONNET)

    play(story)


def test_a_provider_that_is_named_counts_more(stage: Stage) -> None:
    """So does one by default that the user has described: it may have such names of its own."""

    async def story() -> None:
        stage.add(CHOOSY)
        assert (await engaged(stage, model=SONNET, provider="choosy")).provider == "choosy"
        stage.add(replace(CHOOSY, own=True))
        by_default(stage, "choosy")
        assert (await engaged(stage, model=SONNET)).provider == "choosy"

    play(story)


def test_a_cli_that_is_preferred(stage: Stage) -> None:
    """It gets the model by the name that it knows."""

    async def story() -> None:
        stage.add(CHOOSY)
        known(stage).models = lambda: {"anthropic": ModelSettings(prefer_cli="choosy")}
        agent = await engaged(stage, agent="painter")
        assert (agent.provider, agent.model) == ("choosy", "claude-sonnet-4-5")

    play(story)


def test_without_a_key_nothing_is_made(stage: Stage) -> None:
    """No task, and no agent."""

    async def story() -> None:
        known(stage).environment = {}
        with pytest.raises(Unavailable, match="no key"):
            await engaged(stage, agent="painter")
        assert await stage.engine.ports.store.read(lambda store: store.page(Agent, after=0, limit=9)) == []

    play(story)
