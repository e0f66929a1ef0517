"""A change and saved work of very many files: answers are short, count all of them, and lead to the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from e2e_stage import Stage, lines, stage

pytestmark = pytest.mark.xdist_group("pages")  # one worker plays the story, once

FILES = 250


@pytest.fixture(scope="module")
def story() -> Iterator[Stage]:
    """An agent landed very many files, and left as many behind."""
    with stage(settings="[limits]\nreminders = 0\n") as house:
        landed = f"for n in $(seq {FILES}); do echo $n > file$n; done"
        left = f"for n in $(seq {FILES}); do echo $n > left$n; done"
        view = house.land("Add many", lines(landed, "git add -A", "git commit -qm many", left))
        house.event("agent.retired", view["agent"]["name"])
        yield house


def pages(house: Stage, *words: str) -> list[Any]:
    """Every page of an answer, as a program asks for them."""
    found = [house.wl(*words, "--json").value]
    while (since := sum(len(page["files"]) for page in found)) < found[0]["file_count"]:
        found.append(house.wl(*words, "--json", "--since", str(since)).value)
    return found


def test_a_receipt_comes_in_pages(story: Stage) -> None:
    """All of them together are what git says; a person reads how many more there are, and the command."""
    found = pages(story, "receipt", "c1")
    assert [len(page["files"]) for page in found] == [100, 100, 50]
    files = [file for page in found for file in page["files"]]
    assert files == story.git("diff", "--name-only", "main^1", "main").split()
    assert [(page["file_count"], page["commit_count"]) for page in found] == [(FILES, 1)] * 3
    shown = story.wl("receipt", "c1").out
    assert f"and {FILES - 100} more" in shown
    assert "windlass receipt c1 --since 100" in shown
    assert len(story.wl("receipt", "c1", "--json", "--limit", "1").value["files"]) == 1


def test_a_change_counts_what_it_landed(story: Stage) -> None:
    """The lists are on its receipt."""
    landing = story.ask("/changes/c1")["landing"]
    assert (landing["commits"], landing["files"]) == (1, FILES)


def test_saved_work_names_a_few_files_in_a_list_and_all_in_pages(story: Stage) -> None:
    """The difference comes with the first page, once, and exact only where it is asked for."""
    newest, *_ = story.wl("rescue", "list", "--json").value
    assert (newest["file_count"], len(newest["files"])) == (FILES, 10)
    found = pages(story, "rescue", "show", newest["id"])
    assert sorted(file for page in found for file in page["files"]) == sorted(f"left{n}" for n in range(1, FILES + 1))
    assert [bool(page["diff"]) for page in found] == [True, False, False]
    assert [page["raw"] for page in found] == ["", "", ""]
    exact = story.ask(f"/rescue/show?ref={newest['id']}&exact=1")
    assert (exact["diff"], bool(exact["raw"])) == ("", True)


def test_a_list_of_saved_work_goes_on_where_it_ended(story: Stage) -> None:
    """From the newest to the oldest, each once."""
    every = story.wl("rescue", "list", "--json").value
    assert len(every) == 2
    since, found = 0, []
    while since is not None:
        page = story.ask(f"/rescue?limit=1&since={since}")
        found += page["items"]
        since = page["since"]
    assert found == every
    told = story.wl("rescue", "list", "--limit", "1")
    assert f"1 older one not looked at yet: windlass rescue list --since {every[0]['number']}" in told.out
