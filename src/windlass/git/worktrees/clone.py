"""Making a clone that borrows its objects from the hub."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from windlass.git.files import config_text, write_text
from windlass.git.program import GitProgram
from windlass.git.user_repository import UserGitSettings


async def make_clone(
    git: GitProgram,
    hub: Path,
    folder: Path,
    main: str,
    *,
    commit: str,
    branch: str = "",
    settings: UserGitSettings,
    excludes: str,
) -> None:
    """Make the `.git` of a shared clone by hand: no checkout yet, no template, `origin` is the hub.

    Its HEAD is a branch at the commit, or the commit itself. The clone has the user's name and line endings, and none
    of their other settings. By hand, because `git clone --shared` copies everything when the hub is shallow.
    """
    said = await git.ours(hub, "rev-parse", "--show-object-format", f"refs/heads/{main}")
    form, _, tip = said.text.partition("\n")
    how = ("-q", "--template=", f"--object-format={form}")
    await git.ours(None, "init", *how, "--", str(folder), cwd=folder.parent)
    inner = folder / ".git"
    refs = {
        "packed-refs": f"{tip} refs/remotes/origin/{main}",
        "refs/remotes/origin/HEAD": f"ref: refs/remotes/origin/{main}",
        "HEAD": f"ref: refs/heads/{branch}" if branch else commit,
    }
    if branch:
        refs[f"refs/heads/{branch}"] = commit
    for name, text in {"objects/info/alternates": f"{hub / 'objects'}", **refs}.items():
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(inner / name, f"{text}\n")
    if (hub / "shallow").is_file():
        shutil.copyfile(hub / "shallow", inner / "shallow")
    (inner / "info").mkdir(exist_ok=True)
    write_text(inner / "info/exclude", excludes)
    origin = 'remote "origin"'
    lines = [(origin, "url", os.fspath(hub)), (origin, "fetch", "+refs/heads/*:refs/remotes/origin/*")]
    with (inner / "config").open("a", encoding="utf-8", errors="surrogateescape") as config:
        config.write(config_text([*lines, *settings_lines(settings)]))


def settings_lines(settings: UserGitSettings) -> list[tuple[str, str, str]]:
    """The user's settings that an agent's git gets."""
    return [
        ("user", "name", settings.name),
        ("user", "email", settings.email),
        ("core", "autocrlf", settings.autocrlf),
        ("core", "eol", settings.eol),
        ("commit", "gpgsign", "false"),
        ("tag", "gpgsign", "false"),
        ("init", "defaultBranch", settings.default_branch),
    ]
