"""Stories of what a workflow's agents share: a channel and a document, where its file says, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from stage import play
from workflow_stage import PAIR, WorkflowStage

from windlass.core.errors import Conflict, NotAllowed


@pytest.fixture
def stage(repo: Path, tmp_path: Path) -> WorkflowStage:
    return WorkflowStage(repo, tmp_path / "home")


class TestContext:
    def test_its_files_are_where_the_workflow_says(self, stage: WorkflowStage) -> None:
        """Channel and document by names of its own, also in a project that was never set up; both ways."""
        named = "context: {dir: ./my-context/, channel: {file: discussion.md}, document: {file: workspace.md}}\n"

        async def story() -> None:
            await stage.begin(PAIR.replace("context:\n", named))
            speaker = await stage.speaker("coder@default")
            where = await stage.engine.documents.instance(speaker, "")
            await stage.engine.documents.write(speaker, speaker.project, "# Findings\n", instance=where)
            await stage.pass_time()
            assert "Fix it." in (stage.repo / "my-context/discussion.md").read_text()
            assert (stage.repo / "my-context/workspace.md").read_text() == "# Findings\n"
            (stage.repo / "my-context/workspace.md").write_text("# Findings\nAnd mine.\n")
            await stage.pass_time()
            page = await stage.engine.documents.read(speaker.project, instance=where)
            assert (page.body, page.author) == ("# Findings\nAnd mine.\n", "human")
            assert not (stage.repo / ".windlass").exists()

        play(story)

    def test_in_a_project_without_settings_git_does_not_see_them(
        self, stage: WorkflowStage, git: Callable[..., str]
    ) -> None:
        """They are in the usual place, and in nobody's way."""

        async def story() -> None:
            await stage.begin()
            await stage.pass_time()
            assert "Fix it." in (stage.repo / ".windlass/context/default/channel.md").read_text()
            assert git("status", "--porcelain", cwd=stage.repo) == "?? flow.yaml"

        play(story)

    def test_only_what_is_selected_is_shared(self, stage: WorkflowStage) -> None:
        """A channel without a document, and neither."""

        async def story() -> None:
            await stage.begin(PAIR.replace("context:\n", "context: {channel: }\n"))
            await stage.pass_time()
            assert [path.name for path in (stage.repo / ".windlass/context/default").iterdir()] == ["channel.md"]
            with pytest.raises(NotAllowed, match="shares no document") as refused:
                await stage.engine.documents.instance(await stage.speaker("coder@default"), "")
            assert refused.value.hint == f"Write `context: {{document: }}` into {stage.repo / 'flow.yaml'}."
            await stage.begin(PAIR.replace("context:\n", ""), instance="alone")
            await stage.pass_time()
            assert not (stage.repo / ".windlass/context/alone").exists()

        play(story)

    def test_two_at_once_never_share_a_file_and_nobodys_file_is_overwritten(self, stage: WorkflowStage) -> None:
        """The way out is said. After the first has ended, the second may have it."""
        fixed = PAIR.replace("context:\n", "context: {dir: talk, channel: , document: }\n")

        async def story() -> None:
            (stage.repo / "talk").mkdir()
            (stage.repo / "talk/channel.md").write_text("Mine.\n")
            with pytest.raises(Conflict, match=r"talk/channel\.md is there already"):
                await stage.begin(fixed)
            top = fixed.replace("dir: talk, channel: ", "dir: ., channel: {file: README.md}")
            with pytest.raises(Conflict, match=r"README\.md is there already"):
                await stage.begin(top)
            (stage.repo / "talk/channel.md").unlink()
            await stage.begin(fixed, what="the first")
            with pytest.raises(Conflict, match="is a file of @default, which is running") as refused:
                await stage.begin(fixed, instance="second")
            assert "${{ instance }}" in refused.value.hint
            await stage.engine.workflows.stop(str(stage.repo), "default")
            stage.clock.time += 1
            await stage.begin(fixed, instance="second", what="the second")
            await stage.pass_time()
            shown = (stage.repo / "talk/channel.md").read_text()
            assert "the second" in shown and "the first" not in shown

        play(story)
