"""Which file is meant by a name or a path."""

from __future__ import annotations

from pathlib import Path

import pytest

from windlass.core.errors import NotFound
from windlass.library.agent_files import RepositoryLibrary
from windlass.library.workflows import find, own, shipped


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with workflows of its own, below a folder that is none of its business."""
    top = tmp_path / "repo"
    (top / ".git").mkdir(parents=True)
    (top / ".git/HEAD").write_text("ref: refs/heads/main\n")
    for folder in (top, top / "part", tmp_path):
        (folder / ".windlass" / "workflows").mkdir(parents=True)
    return top


def put(folder: Path, name: str) -> Path:
    path = folder / ".windlass" / "workflows" / name
    path.write_text("x")
    return path


class TestFind:
    def test_the_own_one_comes_before_the_shipped_one(self, repo: Path) -> None:
        """Of the same name; without one, the shipped one is meant."""
        assert find("review", repo) == shipped()["review"]
        mine = put(repo, "review.yaml")
        assert find("review", repo) == mine

    def test_from_a_folder_below(self, repo: Path) -> None:
        """The nearest wins, and nothing above the repository counts."""
        top, near = put(repo, "a.yaml"), put(repo / "part", "b.yml")
        put(repo.parent, "above.yaml")

        assert find("a", repo / "part") == top
        assert find("b", repo / "part") == near
        assert sorted(own(repo / "part")) == ["a", "b"]
        nearer = put(repo / "part", "a.yaml")
        assert find("a", repo / "part") == nearer

    def test_a_path_is_a_path(self, repo: Path) -> None:
        """What has an ending or a slash is never looked for elsewhere, even if a workflow is called so."""
        (repo / "flow.yaml").write_text("x")
        (repo / "odd").write_text("x")
        assert find("flow.yaml", repo) == repo / "flow.yaml"
        assert find("./odd", repo) == repo / "odd"
        assert find(str(repo / "flow.yaml"), Path("/")) == repo / "flow.yaml"
        with pytest.raises(NotFound):
            find("review.yaml", repo)

    @pytest.mark.parametrize(
        ("given", "hint"),
        [
            ("reveiw", "Did you mean review?"),
            ("zzz", "There are fix-and-land, mine, "),
            ("mine.yaml", "Leave out the ending: mine."),
            ("flow.yml", "Did you mean flow.yaml?"),
            ("./nowhere", "A bare name such as review is found by itself."),
        ],
    )
    def test_what_is_not_there_is_told_with_what_is(self, repo: Path, given: str, hint: str) -> None:
        """A near miss, or all names."""
        put(repo, "mine.yaml")
        (repo / "flow.yaml").write_text("x")
        with pytest.raises(NotFound) as caught:
            find(given, repo)
        assert caught.value.hint.startswith(hint)


def test_no_agent_changes_workflows_unseen() -> None:
    """What setup runs is decided by people: a change to the folder is held until one has allowed it."""
    assert ".windlass/workflows/" in RepositoryLibrary({}).guarded
