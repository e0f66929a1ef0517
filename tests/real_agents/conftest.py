"""An island with a scripted model on it, for each test its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from island import Island, NoIsland, island
from real_clis import do_without

from model_server.server import ModelServer


@pytest.fixture
def loud_place() -> Iterator[Island]:
    """A network with nothing but loopback."""
    try:
        with island() as made:
            yield made
    except NoIsland as error:
        do_without(str(error))


@pytest.fixture
def place(loud_place: Island) -> Iterator[Island]:
    """The same, and nobody may even try to reach anything else."""
    yield loud_place
    assert loud_place.tries() == 0, "something beyond loopback was called"


@pytest.fixture
def models(place: Island) -> Iterator[ModelServer]:
    """A scripted model on the island; the test writes its script."""
    with ModelServer(listener=place.listener) as server:
        yield server
