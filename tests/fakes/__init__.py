"""Stand-ins for the outside world, for users' tests and our own. Each passes the contract of the port it stands for."""

from fakes.chats import FakeChats
from fakes.checks import FakeChecks
from fakes.git import FakeGit
from fakes.library import FakeLibrary, FakeSetups
from fakes.processes import FakeProcess, FakeProcesses
from fakes.repository import FakeRepository, FakeWorktree
from fakes.workdirs import FakeWorkdirs

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
