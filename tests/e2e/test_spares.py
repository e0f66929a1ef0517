"""In a large repository, an agent starts with a checkout that was kept ready."""

from __future__ import annotations

from pathlib import Path

from e2e_stage import Stage, adds, lines

from patience import until

MANY = {f"docs/page-{number}-of-a-large-repository.md": f"{number}\n" for number in range(1500)}
ONE = "docs/page-7-of-a-large-repository.md"


def spares(house: Stage) -> dict[int, Path]:
    """Those that are ready, by the inode of one file."""
    found = house.state.glob(f"worktrees/*/.spares/[!.]*/files/{ONE}")
    return {path.stat().st_ino: path for path in found}


def test_the_next_agent_takes_what_was_kept_ready(house: Stage) -> None:
    """After the first one started, there are checkouts for two more; a setting says that there shall be none."""
    house.commit(MANY, "Grow")
    house.land("Add a", adds("a.txt"))
    ready = until(lambda: spares(house) if len(spares(house)) == 2 else {}, "two checkouts that are ready")

    house.land("Add b", lines(f"stat -c %i '{ONE}' > b.txt", "git add -A", "git commit -q -m 'Add b'"))

    assert int((house.repo / "b.txt").read_text()) in ready
    house.wl("config", "set", "worktree.spare_mb", "0")
    house.land("Add c", adds("c.txt"))
    until(lambda: not spares(house), "the checkouts to be gone")
