"""The stamp that tells the daemon's processes from the person's."""

from __future__ import annotations

import subprocess
import sys

LOWERED = """
import resource
from windlass.process.stamp import own_stamp
from windlass.process.starting.forker import LOCKS

before = own_stamp()
resource.setrlimit(LOCKS, (0, 0))  # as `prlimit` of another process of this user does it
assert own_stamp() == before, own_stamp()
"""


def test_a_limit_that_someone_lowers_later_does_not_change_who_is_the_person() -> None:
    """Else every process of a run would have a higher stamp than the daemon, and count as the person's."""
    subprocess.run((sys.executable, "-c", LOWERED), check=True)
