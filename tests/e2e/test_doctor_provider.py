"""`windlass doctor` looks at the provider that is used without a word."""

from __future__ import annotations

from e2e_stage import stage


def test_the_usual_provider_is_looked_at() -> None:
    """It is there, or the doctor says how to get it; where none is set there is nothing to look at."""
    with stage(settings="") as house:
        house.wl("init", "--checks", "true")
        assert "provider" not in [each["name"] for each in house.wl("doctor", "--json").value]
        house.wl("config", "set", "work.provider", "model")
        [found] = [each for each in house.wl("doctor", "--json").value if each["name"] == "provider"]
        assert (found["ok"], found["detail"]) == (True, "model, by work.provider")
        house.wl("config", "set", "work.provider", "claude")
        [found] = [each for each in house.wl("doctor", "--json", code=1).value if each["name"] == "provider"]
        assert "which is not installed" in found["detail"]
        assert found["hint"].startswith("Run `npm install")
