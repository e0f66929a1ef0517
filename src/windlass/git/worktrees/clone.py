"""Making a clone that borrows its objects from the hub."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from windlass.git.files import config_text, write_text
from windlass.git.hub import Hubs, object_format
from windlass.git.program import GitProgram
from windlass.git.user_repository import UserGitSettings


class Clones:
    """Makes clones that borrow their objects from a hub."""

    def __init__(self, git: GitProgram, hubs: Hubs) -> None:
        self._git = git
        self._hubs = hubs
        self._configs: dict[tuple[int, str], bytes] = {}
        """The settings that git gives a new repository, by the disk and the form of its objects' names."""

    async def make(
        self,
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

        Its HEAD is a branch at the commit, or the commit itself. The clone has the user's name and line endings, and
        none of their other settings. By hand, because `git clone --shared` copies everything when the hub is shallow.
        """
        tip = await self._hubs.ref(hub, f"refs/heads/{main}")
        await self._begin(folder, object_format(tip))
        refs = {
            "packed-refs": f"{tip} refs/remotes/origin/{main}",
            "refs/remotes/origin/HEAD": f"ref: refs/remotes/origin/{main}",
            "HEAD": f"ref: refs/heads/{branch}" if branch else commit,
        }
        if branch:
            refs[f"refs/heads/{branch}"] = commit
        _fill(hub, folder / ".git", refs, excludes)
        origin = 'remote "origin"'
        lines = [(origin, "url", os.fspath(hub)), (origin, "fetch", "+refs/heads/*:refs/remotes/origin/*")]
        with (folder / ".git/config").open("a", encoding="utf-8", errors="surrogateescape") as config:
            config.write(config_text([*lines, *settings_lines(settings)]))

    async def _begin(self, folder: Path, form: str) -> None:
        """An empty repository. Git makes the first on a disk, which it tries out; the others get the same settings."""
        inner = folder / ".git"
        place = folder.parent.stat().st_dev, form
        if place not in self._configs:
            how = ("-q", "--template=", f"--object-format={form}")
            await self._git.ours(None, "init", *how, "--", str(folder), cwd=folder.parent)
            self._configs[place] = (inner / "config").read_bytes()
            return
        for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
            (inner / name).mkdir(parents=True)
        (inner / "config").write_bytes(self._configs[place])


def _fill(hub: Path, inner: Path, refs: Mapping[str, str], excludes: str) -> None:
    """Give an empty repository the hub's objects, and refs."""
    for name, text in {"objects/info/alternates": f"{hub / 'objects'}", **refs}.items():
        (inner / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(inner / name, f"{text}\n")
    if (hub / "shallow").is_file():
        shutil.copyfile(hub / "shallow", inner / "shallow")
    (inner / "info").mkdir(exist_ok=True)
    write_text(inner / "info/exclude", excludes)


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
