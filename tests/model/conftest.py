"""A stage for each test, with a model that follows its script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from model_stage import MODELS, ModelStage, Zygote

from model_server.server import ModelServer


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """What has the library already."""
    made = Zygote()
    yield made
    made.end()


@pytest.fixture
def stage(tmp_path: Path, zygote: Zygote) -> Iterator[ModelStage]:
    """One protocol; what is the same for all is told once."""
    with ModelServer() as models:
        yield ModelStage(tmp_path, models, zygote)


@pytest.fixture(params=MODELS)
def each_stage(tmp_path: Path, zygote: Zygote, request: pytest.FixtureRequest) -> Iterator[ModelStage]:
    """Every protocol."""
    with ModelServer() as models:
        yield ModelStage(tmp_path, models, zygote, request.param)
