"""Values in the commands of setup, as a real shell takes them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from windlass.core.files.params import ParamKind
from windlass.core.files.template import parse
from windlass.core.workflows.workflow import Workflow
from windlass.library.workflows import load, shipped

NASTY = "a  b $(touch pwned) `touch pwned` \"q\" 'q' \\ ; touch pwned # * ${HOME} ${{ x }}\nsecond line"


def run(text: str, value: str, folder: str) -> str:
    script, variables = parse(text)[0].script()
    assert set(variables.values()) == {"x"}
    done = subprocess.run(
        ("sh", "-c", script),
        env={"PATH": "/usr/bin:/bin", **dict.fromkeys(variables, value)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "printf '[%s]' ${{ x }}",
        "printf '[%s]' \"${{ x }}\"",
        "printf '[%s]' '${{ x }}'",
        "printf \"[%s]\" '${{ x }}'",
        "printf '[%s]' \"\\\"\"'' >/dev/null; printf '[%s]' ${{ x }}",
        "printf '[%s]' it\\'s > /dev/null; printf '[%s]' \"${{ x }}\"",
        "y=${{ x }}; printf '[%s]' \"$y\"",
        "true # don't, and \"not\" (this\nprintf '[%s]' ${{ x }}",
        "echo a#'b' >/dev/null; printf '[%s]' ${{ x }}",
        "printf '%s' \"$(printf '[%s]' ${{ x }})\"",
        'y="$(printf "[%s]" "${{ x }}")"; printf \'%s\' "$y"',
        "(true); case a in a) ;; esac; printf '[%s]' ${{ x }}",
    ],
)
@pytest.mark.parametrize("value", [NASTY, "", "-n", "*"])
def test_a_value_is_one_word_in_any_quotes(tmp_path: Path, text: str, value: str) -> None:
    """Nothing of it is split, expanded or executed."""
    assert run(text, value, str(tmp_path)) == f"[{value}]"
    assert list(tmp_path.iterdir()) == []


def test_a_value_can_stand_within_a_word(tmp_path: Path) -> None:
    """As in a range of commits."""
    assert run("printf '[%s]' ${{ x }}...HEAD a'${{ x }}'b", "m n", str(tmp_path)) == "[m n...HEAD][am nb]"


def prepared(workflow: Workflow, repo: Path, **params: str) -> tuple[dict[str, str], int]:
    """Run setup as an engine would: in order, each with what came before, until one fails."""
    values = workflow.values("default") | {f"params.{name}": value for name, value in params.items()}
    for step in workflow.setup:
        script, variables = step.shell.script()
        given = {variable: values[name] for variable, name in variables.items()}
        done = subprocess.run(
            ("sh", "-c", script), cwd=repo, env=os.environ | given, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return values, done.returncode
        if step.name:
            values[step.name] = done.stdout
    return values, 0


@pytest.mark.parametrize("name", sorted(shipped()))
def test_what_we_ship_can_be_prepared(repo: Path, git: Callable[..., str], name: str) -> None:
    """In a real repository, with a branch that differs from main; and the kickoff has all that it names."""
    git("checkout", "-q", "-b", "work", cwd=repo)
    (repo / "new.py").write_text("print('new')\n")
    git("add", "new.py", cwd=repo)
    git("commit", "-q", "-m", "Print something new", cwd=repo)
    workflow = load(shipped()[name]).workflow
    assert workflow is not None
    params = {param.name: param.default or "new.py" for param in workflow.params if param.kind is not ParamKind.CHOICE}
    params |= {param.name: param.choices[0] for param in workflow.params if param.choices}

    values, code = prepared(workflow, repo, **params)

    assert code == 0
    texts = [workflow.kickoff.render(values), *(task.brief.render(values) for task in workflow.tasks)]
    assert "${{" not in "".join(texts)
    if workflow.setup:
        assert "Print something new" in "".join(texts) or "+print('new')" in "".join(texts)


def test_a_review_of_nothing_does_not_begin(repo: Path) -> None:
    """Where nothing differs, setup fails, before any agent costs anything."""
    review = load(shipped()["review"]).workflow
    assert review is not None
    assert prepared(review, repo, base="main")[1] == 1
    assert prepared(review, repo, base="no such branch; touch pwned")[1] not in (0, 1)
    assert not (repo / "pwned").exists()
