"""The tree as a whole: nothing of one machine, links that lead somewhere, locks, fragments and lists in their form."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from source_files import TOP, expect_none

FOREIGN_PLACE = re.compile(r"(?<![\w.$}])/(?:home|root|work|opt|Users|mnt)/\w+")
HOST = re.compile(r"\bhttps?://([^\s/:\"'`)>\]]+)")
KNOWN_HOSTS = {"www.w3.org", "localhost", "127.0.0.1", "example.com", "windlass"}


class TestTree:
    def test_no_place_or_host_of_one_machine(self) -> None:
        """Nothing in the tree leads to a folder or host that only one person has."""
        expect_none(f"{path}: {found}" for path, text in tracked() for found in foreign(text))

    def test_every_link_between_texts_leads_somewhere(self) -> None:
        """A relative link in a Markdown file names a file that is there."""
        expect_none(
            f"{path}: {target}"
            for path, text in tracked()
            if path.suffix == ".md"
            for target in re.findall(r"\]\(([^)#:\s]+)(?:#[\w-]*)?\)", text)
            if not (TOP / path.parent / target).exists()
        )

    def test_changelog_fragments_have_their_form(self) -> None:
        """`changelog.d/<issue>.<added|changed|fixed|removed>.md`, so that branches never meet in one file."""
        form = re.compile(r"\d+(-\w+)?\.(added|changed|fixed|removed)\.md|README\.md")
        expect_none(path.name for path in (TOP / "changelog.d").iterdir() if not form.fullmatch(path.name))

    def test_the_locks_know_every_dependency(self) -> None:
        """What pyproject.toml asks for is locked, with a version and its hashes."""
        asked = tomllib.loads((TOP / "pyproject.toml").read_text())
        groups = asked["dependency-groups"]
        runs = [*asked["project"]["dependencies"], *groups["build"]]
        develops = [*runs, *(group for group in groups["dev"] if isinstance(group, str))]
        expect_none([*unlocked("requirements.lock", runs), *unlocked("requirements-dev.lock", develops)])

    def test_allowed_skips_have_a_reason(self) -> None:
        """A test that may be skipped is listed with the reason why."""
        lines = (TOP / "tests" / "allowed_skips.txt").read_text().splitlines()
        expect_none(line for line in lines if line.strip() and len(line.partition("#")[2].split()) < 3)


@pytest.mark.xdist_group("house")
def test_a_group_of_tests_stays_together(request: pytest.FixtureRequest) -> None:
    """What one worker builds once would be built by each of them, and nobody would see why all takes so long."""
    assert "PYTEST_XDIST_WORKER" not in os.environ or request.node.nodeid.endswith("@house")


def unlocked(lock: str, asked: list[str]) -> list[str]:
    locked = re.findall(r"^([\w.-]+)==\S+.*\\\n +--hash=", (TOP / lock).read_text(), re.MULTILINE)
    names = [re.split(r"[^\w.-]", each)[0].lower() for each in asked]
    return [f"{name} is not in {lock}; run scripts/lock" for name in names if name not in locked]


def tracked() -> list[tuple[Path, str]]:
    """The text files that git knows, or would; without git, the tree as it is."""
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.fail(f"git does not list the files: {listed.stderr}")
    paths = [Path(part) for part in listed.stdout.split("\0") if part]
    return [(path, (TOP / path).read_text(errors="replace")) for path in paths if (TOP / path).is_file()]


def foreign(text: str) -> list[str]:
    hosts = [
        host
        for host in HOST.findall(text)
        if host not in KNOWN_HOSTS and not host.endswith((".example", ".example.com"))
    ]
    return FOREIGN_PLACE.findall(text) + hosts
