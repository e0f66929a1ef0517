"""Scripts as people write them: what they mean, and what they are told when they don't."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.providers.script.parse import Script, parse
from windlass.providers.script.play import VERBS
from windlass.providers.script.steps import STEPS

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/scripts").glob("*.yaml"))


def problems(text: str) -> list[str]:
    with pytest.raises(BadInput) as refused:
        parse(text, "my.yaml")
    return str(refused.value).splitlines()


def values(text: str) -> list[tuple[str, dict[str, object]]]:
    (steps,) = parse(text, "my.yaml").runs
    return [(step.verb, step.values) for step in steps]


class TestMeaning:
    def test_a_text_is_what_was_written(self) -> None:
        """YAML's guesses (no, 12:30, 1e3, dates) do not change what is said."""
        text = "- say: no\n- say: 12:30\n- say: 1e3\n- say: 2026-01-01\n- say: null\n- commit: 007\n"

        assert [next(iter(each.values())) for _, each in values(text)] == [
            "no",
            "12:30",
            "1e3",
            "2026-01-01",
            "null",
            "007",
        ]

    def test_short_and_long_forms_mean_the_same(self) -> None:
        """A bare value stands for the setting that matters most."""
        assert values("- run: make\n- sleep: 0.5") == values("- run: {command: make}\n- sleep: {seconds: 0.5}")
        assert values("- write: {a: b}") == values("- write: {path: a, text: b}")
        assert values("- ask: Why?") == values("- ask: [Why?]") == values("- ask: {questions: [Why?]}")

    def test_steps_without_a_value_are_bare_words(self) -> None:
        """`crash` and `crash:` are the same step."""
        assert values("- crash\n- hang:\n- done") == [("crash", {}), ("hang", {}), ("done", {})]

    def test_a_signal_keeps_the_types_of_json(self) -> None:
        """Numbers, truth and nothing are themselves; quoted ones are text."""
        text = "- signal: {status: done, result: [1, 2.5, true, null, '3', no]}"

        assert values(text) == [
            ("signal", {"value": {"status": "done", "result": [1, 2.5, True, None, "3", "no"]}}),
        ]

    def test_the_last_run_repeats(self) -> None:
        """A script with two runs plays the second one in the third run too."""
        script = parse("runs:\n- [say: one]\n- [say: two]\n", "my.yaml")

        assert [script.steps(number)[0].values["text"] for number in (1, 2, 3, 99)] == ["one", "two", "two", "two"]

    def test_every_step_can_be_played(self) -> None:
        """The table of steps and the player know the same words."""
        assert STEPS.keys() == VERBS.keys()

    @pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
    def test_the_examples_are_right(self, path: Path) -> None:
        """Every script that we show can be played."""
        assert parse(path.read_text(), path.name).runs

    def test_there_are_examples(self) -> None:
        """The examples are where the test above looks for them."""
        assert len(EXAMPLES) >= 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("- comit: x", "my.yaml:1:3: error: there is no step comit. Did you mean commit?"),
            (
                "- say: x\n- run: {comand: x}",
                "my.yaml:2:9: error: run.comand: there is no such key. Did you mean command?",
            ),
            ("- say:", "my.yaml:1:3: error: say.text: is empty. Write a text."),
            ("- say: [a]", "my.yaml:1:8: error: say: takes a text, or a mapping with text."),
            ("- say: {text: [a]}", "my.yaml:1:15: error: say.text: must be a text, not a list."),
            ("- sleep: long", "my.yaml:1:10: error: sleep.seconds: must be a number, not 'long'."),
            ("- sleep: -1", "my.yaml:1:10: error: sleep.seconds: must be at least 0, not -1."),
            ("- sleep: 1e999", "my.yaml:1:10: error: sleep.seconds: must be a number, not '1e999'."),
            ("- exit: 300", "my.yaml:1:9: error: exit.code: must be a whole number from 0 to 255, not 300."),
            ("- exit: ٣", "my.yaml:1:9: error: exit.code: must be a whole number, not '٣'."),
            (
                "- run: {command: x, may_fail: yes}",
                "my.yaml:1:31: error: run.may_fail: must be true or false, not yes",
            ),
            (
                "- merge: {ref: x, take: both}",
                "my.yaml:1:25: error: merge.take: must be one of ours, theirs, not 'both'.",
            ),
            (
                "- merge: --upload-pack=x",
                "my.yaml:1:10: error: merge.ref: must be a branch or commit, not '--upload-pack=x'.",
            ),
            ("- replace: {path: a, old: b}", "my.yaml:1:12: error: replace.new: is missing."),
            ("- replace: a", "my.yaml:1:12: error: replace: takes a mapping with path, old, new."),
            (
                "- delete: ../x",
                "my.yaml:1:11: error: delete.path: must be the path of a file inside the worktree, not '../x'.",
            ),
            (
                "- write: {/etc/x: a}",
                "my.yaml:1:11: error: write./etc/x: must be the path of a file inside the worktree, not '/etc/x'.",
            ),
            ("- write: a", "my.yaml:1:10: error: write: must be files with their text, as in {hello.txt: Hello}."),
            ("- emit: {delay: 1}", "my.yaml:1:9: error: emit: needs either file or lines."),
            ("- crash: now", "my.yaml:1:10: error: crash: takes no value."),
            (
                "- signal: {text: a, bom: true}",
                "my.yaml:1:21: error: signal.bom: there is no such key. The keys are value, text, encoding, kind.",
            ),
            ("- run: x\n  may_fail: true", "my.yaml:2:3: error: may_fail: stands beside run;"),
            ("- [say, x]", "my.yaml:1:3: error: a step is one word with its value"),
            ("- {}", "my.yaml:1:3: error: a step is one word with its value"),
            (
                "- write: {a: b, a: c}",
                "my.yaml:1:17: error: [0].write.a: stands here a second time; the first is in line 1.",
            ),
            ("- ? [a]\n  : b", "my.yaml:1:3: error: a step is one word with its value"),
            ("- say: &x a\n- say: *x", "my.yaml:2:8: error: aliases (*name) are not read"),
            ("- say: !!python/object/apply:os.system [x]", "my.yaml:1:8: error: [0].say: tags such as"),
            ("run:\n- [say: x]", "my.yaml:1:1: error: run: there is no such key. Did you mean runs?"),
            ("runs: 3", "my.yaml:1:7: error: runs: must be a list with a list of steps for each run."),
            ("runs:\n- say: x", "my.yaml:2:3: error: here must be a list of steps."),
            (
                "- say: x\n---\n- say: y",
                "my.yaml:2:1: error: a second document begins here; a file has only one.",
            ),
            ("- say: 'x", "my.yaml:1:8: error: a quote is opened and never closed. Close it."),
            ("- write:\n\ta: b", "my.yaml:2:1: error: a tab stands where the line is indented. Indent with spaces."),
            ("- say: a\x07b", "my.yaml:1:9: error: the character '\\x07' can't stand in YAML. Remove it."),
            ("- say: \ud800", "my.yaml:1:8: error: the character '\\ud800' can't stand in YAML. Remove it."),
            ("", "my.yaml:1:1: error: it has no steps."),
            ("[]", "my.yaml:1:1: error: it has no steps."),
            ("just words", "my.yaml:1:1: error: it has no steps."),
            ("- say: " + "x" * 1_000_000, "my.yaml:1:1: error: it has 1000007 characters; at most 1000000 are read."),
        ],
    )
    def test_a_bad_script_is_refused_with_its_place(self, text: str, said: str) -> None:
        """The first problem names the file, the line, the column and what was probably meant."""
        assert problems(text)[0].startswith(said)

    def test_all_problems_are_told_at_once(self) -> None:
        """Nobody has to mend a script one error at a time."""
        found = problems("- sya: x\n- say: fine\n- exit: many\n- delete: /x\n")

        assert [each.split(": ")[0] for each in found] == ["my.yaml:1:3", "my.yaml:3:9", "my.yaml:4:11"]

    def test_many_problems_are_counted_not_listed(self) -> None:
        """A file that is no script at all does not flood the terminal."""
        found = problems("- x: y\n" * 1000)

        assert len(found) == 21
        assert found[-1] == "… and 980 more problems."

    @pytest.mark.parametrize("text", ["[" * 400_000, "- " * 400_000, "{a: " * 200_000, "? " * 400_000])
    def test_deep_nesting_is_refused_at_once(self, text: str) -> None:
        """What would take a parser minutes, or its stack, is refused at the first levels."""
        began = time.process_time()

        assert "nested more than 12 deep" in problems(text)[0]
        assert time.process_time() - began < 5

    @given(st.text(max_size=200))
    def test_any_text_is_a_script_or_bad_input(self, text: str) -> None:
        """Nothing else comes out, whatever goes in."""
        try:
            assert isinstance(parse(text, "x"), Script)
        except BadInput as refused:
            assert str(refused).startswith("x")

    @given(
        st.recursive(
            st.sampled_from(["say", "run", "x", "1", "", "true"]),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(STEPS)), inner, max_size=3)
            ),
            max_leaves=8,
        )
    )
    def test_any_shape_is_a_script_or_bad_input(self, value: object) -> None:
        """The words of scripts in any arrangement are read or refused, never a crash."""
        try:
            parse(json.dumps(value), "x")
        except BadInput as refused:
            assert str(refused).startswith("x")
