"""Making a tree ready, as values: keys, what may be seen, ports."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from windlass.core.runs.worktree_setup import PortRange, pick_ports, setup_key, visible
from windlass.core.settings.schema import WorktreeSettings


def test_a_set_up_is_done_again_when_it_or_a_lock_file_changes() -> None:
    """And only then."""
    key = setup_key("npm ci", {"a": "1", "b": "2"})

    assert key == setup_key("npm ci", {"b": "2", "a": "1"})
    assert len({key, setup_key("npm i", {"a": "1", "b": "2"}), setup_key("npm ci", {"a": "1", "b": "3"})}) == 3


def test_only_what_is_allowed_or_named_is_visible() -> None:
    """A credential is not, unless somebody names it."""
    environment = {"PATH": "/bin", "LC_ALL": "C", "TOKEN": "secret", "MINE": "x"}

    assert visible(environment, ["MINE", "ABSENT"]) == {"PATH": "/bin", "LC_ALL": "C", "MINE": "x"}


class TestPorts:
    def test_the_first_free_ones_are_taken(self) -> None:
        """Also those in a gap, if it is wide enough."""
        settings = WorktreeSettings(ports=10, first_port=20_000)
        taken = [PortRange(20_000, 20_009), PortRange(20_015, 20_024), PortRange(20_040, 20_049)]

        assert pick_ports(settings, []) == PortRange(20_000, 20_009)
        assert pick_ports(settings, taken) == PortRange(20_025, 20_034)

    def test_where_there_are_none_there_are_none(self) -> None:
        """Neither beyond the last port, nor when none are wanted."""
        assert pick_ports(WorktreeSettings(ports=10, first_port=65_530), []) is None
        assert pick_ports(WorktreeSettings(ports=0), []) is None

    @given(st.lists(st.tuples(st.integers(1, 40), st.integers(1024, 2000)), max_size=30))
    def test_no_two_ever_overlap(self, wishes: list[tuple[int, int]]) -> None:
        """Whatever each project asks for."""
        given_out: list[PortRange] = []
        for ports, first in wishes:
            picked = pick_ports(WorktreeSettings(ports=ports, first_port=first), given_out)
            assert picked and picked.fits(WorktreeSettings(ports=ports, first_port=first))
            assert all(picked.last < each.first or each.last < picked.first for each in given_out)
            given_out.append(picked)

    def test_a_range_reads_back(self) -> None:
        """And nothing else does."""
        assert PortRange.parse(str(PortRange(20_010, 20_019))) == PortRange(20_010, 20_019)
        assert PortRange.parse("20010") is None
