"""What an agent may call: about its own project, and nothing without one."""

from __future__ import annotations

import pytest

from windlass.core.agents.grants import Grant, covers

NAMING = [grant for grant in Grant if grant.names]


@pytest.mark.parametrize("grant", NAMING)
def test_only_what_belongs_to_the_agents_project_is_covered(grant: Grant) -> None:
    """What is another's is not, and neither is what belongs to no project."""
    assert covers(grant, "p1", ["p2", "p1"])
    assert not covers(grant, "p1", ["p2"])
    assert not covers(grant, "p1", [])


@pytest.mark.parametrize("grant", NAMING)
def test_an_agent_without_a_project_is_covered_by_nothing(grant: Grant) -> None:
    """Not even by what has no project either."""
    assert not covers(grant, "", ["p1"])
    assert not covers(grant, "", [""])
