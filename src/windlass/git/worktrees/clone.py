"""Making a clone that borrows its objects from the hub."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from windlass.git.files import config_text, write_text
from windlass.git.program import GitProgram
from windlass.git.user_repository import Habits


async def make_clone(git: GitProgram, hub: Path, folder: Path, main: str, *, head: str) -> None:
    """Make the `.git` of a shared clone by hand: no checkout yet, no template, `origin` is the hub.

    `head` is what HEAD says. By hand, because `git clone --shared` copies everything when the hub is shallow.
    """
    said = await git.ours(hub, "rev-parse", "--show-object-format", f"refs/heads/{main}")
    form, _, tip = said.text.partition("\n")
    how = ("-q", "--template=", f"--object-format={form}")
    await git.ours(None, "init", *how, "--", str(folder), cwd=folder.parent)
    inner = folder / ".git"
    for each in ("info", "objects/info"):
        (inner / each).mkdir(parents=True, exist_ok=True)
    write_text(inner / "objects/info/alternates", f"{hub / 'objects'}\n")
    if (hub / "shallow").is_file():
        shutil.copyfile(hub / "shallow", inner / "shallow")
    origin = inner / "refs/remotes/origin"
    origin.mkdir(parents=True)
    write_text(inner / "packed-refs", f"{tip} refs/remotes/origin/{main}\n")
    write_text(origin / "HEAD", f"ref: refs/remotes/origin/{main}\n")
    write_text(inner / "HEAD", f"{head}\n")
    with (inner / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        config.write(config_text(_origin(hub)))


def put_branch(folder: Path, branch: str, commit: str) -> None:
    """Give a new clone a branch."""
    file = folder / ".git" / "refs" / "heads" / branch
    file.parent.mkdir(parents=True, exist_ok=True)
    write_text(file, f"{commit}\n")


def put_habits(folder: Path, habits: Habits, excludes: str) -> None:
    """Give a new clone the user's name and line endings, and nothing else of theirs; and what git shall not see."""
    with (folder / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write(config_text(habit_lines(habits)))
    write_text(folder / ".git" / "info" / "exclude", excludes)


def habit_lines(habits: Habits) -> list[tuple[str, str, str]]:
    """The user's settings that an agent's git shall have."""
    return [
        ("user", "name", habits.name),
        ("user", "email", habits.email),
        ("core", "autocrlf", habits.autocrlf),
        ("core", "eol", habits.eol),
        ("commit", "gpgsign", "false"),
        ("tag", "gpgsign", "false"),
        ("init", "defaultBranch", habits.default_branch),
    ]


def _origin(hub: Path) -> list[tuple[str, str, str]]:
    section = 'remote "origin"'
    return [
        (section, "url", os.fspath(hub)),
        (section, "fetch", "+refs/heads/*:refs/remotes/origin/*"),
    ]
