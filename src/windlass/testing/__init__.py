"""Stand-ins for the outside world, for users' tests and our own. Each passes the contract of the port it stands for."""

from windlass.testing.chats import FakeChats
from windlass.testing.checks import FakeChecks
from windlass.testing.git import FakeGit
from windlass.testing.library import FakeLibrary, FakeSetups
from windlass.testing.processes import FakeProcess, FakeProcesses
from windlass.testing.repository import FakeRepository, FakeWorktree
from windlass.testing.workdirs import FakeWorkdirs

__all__ = [
    "FakeChats",
    "FakeChecks",
    "FakeGit",
    "FakeLibrary",
    "FakeProcess",
    "FakeProcesses",
    "FakeRepository",
    "FakeSetups",
    "FakeWorkdirs",
    "FakeWorktree",
]
