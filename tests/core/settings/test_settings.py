"""Settings: declared once, layered, and refused by full name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.errors import BadInput
from windlass.core.settings.schema import Limits, Settings, build, check_key, keys, parse_value

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def settings(**tables: Any) -> Settings:
    return build(Settings, ("config.toml", tables))


def refusal(**tables: Any) -> BadInput:
    with pytest.raises(BadInput) as refused:
        settings(**tables)
    return refused.value


class TestLayers:
    def test_no_settings_work(self) -> None:
        """Everything has a default."""
        assert build(Settings) == Settings() == settings()

    def test_later_layers_are_stronger(self) -> None:
        """Key by key: what a layer does not say stays as the one below said it."""
        found = build(
            Settings,
            ("home", {"limits": {"runs": 2, "retries": 5}, "work": {"provider": "command"}}),
            ("project", {"limits": {"runs": 3}}),
        )

        assert found.limits == Limits(runs=3, retries=5)
        assert found.work.provider == "command"

    def test_layers_are_not_changed_by_reading(self) -> None:
        """The same mappings can be read again."""
        home = {"limits": {"runs": 2}}

        build(Settings, ("home", home), ("project", {"limits": {"runs": 3}}))

        assert home == {"limits": {"runs": 2}}

    def test_a_whole_number_is_a_number(self) -> None:
        """`timeout_seconds = 5` is as good as 5.0."""
        assert settings(checks={"timeout_seconds": 5}).checks.timeout_seconds == 5.0


class TestRefusals:
    @pytest.mark.parametrize(
        ("tables", "said"),
        [
            ({"limits": {"rnus": 3}}, "config.toml: there is no setting limits.rnus."),
            ({"chekcs": {}}, "config.toml: there is no setting chekcs."),
            ({"limits": 3}, "config.toml: limits is a table; write [limits] and its keys below it."),
            ({"limits": {"runs": "many"}}, "config.toml: limits.runs must be a whole number, not 'many'."),
            ({"limits": {"runs": 2.5}}, "config.toml: limits.runs must be a whole number, not 2.5."),
            ({"limits": {"runs": True}}, "config.toml: limits.runs must be a whole number, not True."),
            ({"limits": {"runs": -1}}, "config.toml: limits.runs must be at least 1."),
            ({"checks": {"timeout_seconds": -0.5}}, "config.toml: checks.timeout_seconds must be at least 0.1."),
            ({"checks": {"timeout_seconds": float("nan")}}, "config.toml: checks.timeout_seconds must be a number"),
            ({"checks": {"timeout_seconds": float("inf")}}, "config.toml: checks.timeout_seconds must be a number"),
            ({"checks": {"timeout_seconds": 10**400}}, "config.toml: checks.timeout_seconds must be a number"),
            ({"checks": {"command": ["make"]}}, "config.toml: checks.command must be a text, not ['make']."),
            ({"checks": {"environment": "PATH"}}, "config.toml: checks.environment must be a list of texts"),
            ({"checks": {"environment": [1]}}, "config.toml: checks.environment must be a list of texts"),
        ],
    )
    def test_a_bad_setting_is_refused_by_its_full_name(self, tables: dict[str, Any], said: str) -> None:
        """With the file that says so."""
        assert str(refusal(**tables)).startswith(said)

    @pytest.mark.parametrize(
        ("tables", "meant"),
        [
            ({"limits": {"rnus": 3}}, "limits.runs"),
            ({"chekcs": {"command": "x"}}, "checks"),
            ({"check": {}}, "checks"),
            ({"checks": {"comand": "x"}}, "checks.command"),
        ],
    )
    def test_the_near_miss_is_suggested(self, tables: dict[str, Any], meant: str) -> None:
        """For a key and for a table."""
        assert refusal(**tables).hint == f"Did you mean {meant}?"

    @given(st.dictionaries(st.sampled_from(["limits", "checks", "work", "x"]), VALUES))
    def test_any_tables_are_settings_or_bad_input(self, tables: dict[str, Any]) -> None:
        """Nothing else comes out."""
        try:
            assert isinstance(settings(**tables), Settings)
        except BadInput as refused:
            assert str(refused).startswith("config.toml: ")

    @given(st.sampled_from(sorted(keys())), VALUES)
    def test_any_value_is_taken_or_refused_by_name(self, key: str, value: object) -> None:
        """Each key answers for itself."""
        table, name = key.split(".")
        try:
            found = getattr(getattr(settings(**{table: {name: value}}), table), name)
        except BadInput as refused:
            assert key in str(refused)
        else:
            assert found == (tuple(value) if isinstance(value, list) else value)


class TestWords:
    @pytest.mark.parametrize(
        ("key", "text", "value"),
        [
            ("limits.runs", "3", 3),
            ("checks.timeout_seconds", "2.5", 2.5),
            ("checks.command", "make test", "make test"),
            ("checks.command", "", ""),
            ("checks.environment", "PATH, CI,", ["PATH", "CI"]),
            ("work.environment", '["X"]', ["X"]),
            ("work.environment", ' ["X", "Y"]', ["X", "Y"]),
        ],
    )
    def test_a_typed_word_becomes_the_settings_value(self, key: str, text: str, value: object) -> None:
        """As `config set` writes it, and as it can be read again."""
        assert parse_value(key, text) == value
        table, name = key.split(".")
        assert settings(**{table: {name: parse_value(key, text)}})

    @pytest.mark.parametrize(
        ("key", "text"),
        [
            ("limits.runs", "many"),
            ("limits.runs", "2.5"),
            ("limits.runs", "-1"),
            ("checks.timeout_seconds", "nan"),
            ("checks.timeout_seconds", "inf"),
            ("checks.timeout_seconds", ""),
            ("work.environment", '["X"'),
            ("work.environment", "[1]"),
            ("work.environment", "[X]"),
        ],
    )
    def test_a_word_that_does_not_fit_is_refused(self, key: str, text: str) -> None:
        """What could not be read back is not written."""
        with pytest.raises(BadInput, match=key):
            parse_value(key, text)

    def test_an_unknown_key_is_refused_with_the_near_miss(self) -> None:
        """Where nothing is near, the way to see all of them is named."""
        with pytest.raises(BadInput) as near:
            check_key("limits.run")
        with pytest.raises(BadInput) as far:
            check_key("zzz")

        assert near.value.hint == "Did you mean limits.runs?"
        assert far.value.hint == "Run `windlass config get` to see them all."
