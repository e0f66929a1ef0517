"""docs/workflows.md is held against the program: every example is good, and every key is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from windlass.core.files.params import ParamKind
from windlass.core.nouns.agent import Permissions, ToolKind
from windlass.core.workflows import (
    file,
    file_agents,
    file_params,
    file_tasks,
)
from windlass.core.workflows.workflow import WorktreeChoice
from windlass.library.workflows import load

PAGE = (Path(__file__).parents[2] / "docs" / "workflows.md").read_text()
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
REST = {
    "agents": "agents:\n  reviewer: {system_prompt: You review.}\n",
    "kickoff": 'kickoff: "@reviewer please begin."\n',
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: each.split(":")[0].splitlines()[-1])
def test_every_example_is_good(tmp_path: Path, example: str) -> None:
    """Those that show a part are completed with the least there can be."""
    missing = [text for key, text in REST.items() if not re.search(rf"^(?:{key}|tasks):", example, re.MULTILINE)]
    path = tmp_path / "example.yaml"
    path.write_text(example + "".join(missing))

    assert [str(problem) for problem in load(path, shown="example.yaml").problems] == []


def test_every_key_and_word_is_on_the_page() -> None:
    """What can be written in a file can be read about; nothing is forgotten when a key is added."""
    code = "\n".join(re.findall(r"```yaml\n.*?```|`[^`\n]+`|^### \w+", PAGE, re.DOTALL | re.MULTILINE))
    keys = {*file.KEYS, *file_agents.KEYS, *file_params.KEYS, *file_tasks.KEYS}
    words = {*ToolKind, *WorktreeChoice, *Permissions, *ParamKind, "shell", "as", "timeout", "runs", "hops", "wakes"}

    assert len(EXAMPLES) >= 10
    assert [each for each in sorted(keys | words) if not re.search(rf"\b{each}\b", code)] == []
