"""The readers, held against what the real programs have printed."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import PROVIDERS, RECORDED, learned, lines_of, readings, recordings

from windlass.core.nouns.run import RunTrouble, TroubleKind, Usage
from windlass.core.runs.provider import LineReading, Provider

CLAUDE, CODEX, MODEL = (PROVIDERS.get(each) for each in ("claude", "codex", "model"))
READERS = pytest.mark.parametrize("provider", [CLAUDE, CODEX, MODEL], ids=lambda each: each.name)
EVERY = [(provider, path) for provider in (CLAUDE, CODEX, MODEL) for path in recordings(provider.name)]
EACH = pytest.mark.parametrize(("provider", "path"), EVERY, ids=lambda each: getattr(each, "name", None))

DONE = "Done: wrote out.txt. Tool said: mock-made"

TROUBLES = {
    "claude/auth-401-full.jsonl": TroubleKind.AUTH,
    "claude/auth-401-maxretries0.jsonl": TroubleKind.AUTH,
    "claude/auth-401-oauth.jsonl": TroubleKind.AUTH,
    "claude/bypass-root-nosandbox.stderr": TroubleKind.ERROR,
    "claude/context.jsonl": TroubleKind.CONTEXT,
    "claude/credit-400.jsonl": TroubleKind.BILLING,
    "claude/hang-timeout.jsonl": TroubleKind.OVERLOAD,
    "claude/max-turns.jsonl": TroubleKind.ERROR,
    "claude/overloaded-529.jsonl": TroubleKind.OVERLOAD,
    "claude/rate-429-maxretries1.jsonl": TroubleKind.THROTTLE,
    "claude/rate-429-oauth.jsonl": TroubleKind.THROTTLE,
    "claude/resume-bad.jsonl": TroubleKind.LOST,
    "claude/resume-bad.stderr": TroubleKind.LOST,
    "claude/resume-otherdir.jsonl": TroubleKind.LOST,
    "claude/resume-otherdir.stderr": TroubleKind.LOST,
    "claude/session-id-dup.stderr": TroubleKind.ERROR,
    "claude/signal-SIGINT-hang.jsonl": TroubleKind.ERROR,
    "claude/signal-SIGINT-tool.jsonl": TroubleKind.ERROR,
    "claude/stream-input-interrupt.jsonl": TroubleKind.ERROR,
    "claude/usage-limit-apikey.jsonl": TroubleKind.THROTTLE,
    "claude/usage-limit-oauth.jsonl": TroubleKind.QUOTA,
    "codex/auth-401-noretry.jsonl": TroubleKind.AUTH,
    "codex/auth-401.jsonl": TroubleKind.AUTH,
    "codex/context.jsonl": TroubleKind.CONTEXT,
    "codex/credit-429.jsonl": TroubleKind.BILLING,
    "codex/hang-mid-idle.jsonl": TroubleKind.OVERLOAD,
    "codex/nogit.txt": TroubleKind.ERROR,
    "codex/overloaded-503.jsonl": TroubleKind.OVERLOAD,
    "codex/rate-429.jsonl": TroubleKind.THROTTLE,
    "codex/resume-bad.txt": TroubleKind.LOST,
    "codex/usage-limit.jsonl": TroubleKind.QUOTA,
    "model/auth-401-openai.jsonl": TroubleKind.AUTH,
    "model/auth-401.jsonl": TroubleKind.AUTH,
    "model/context-openai.jsonl": TroubleKind.CONTEXT,
    "model/context.jsonl": TroubleKind.CONTEXT,
    "model/credit-400.jsonl": TroubleKind.BILLING,
    "model/credit-429-openai.jsonl": TroubleKind.BILLING,
    "model/dropped.jsonl": TroubleKind.OVERLOAD,
    "model/overloaded-503-openai.jsonl": TroubleKind.OVERLOAD,
    "model/overloaded-529.jsonl": TroubleKind.OVERLOAD,
    "model/rate-429.jsonl": TroubleKind.THROTTLE,
    "model/resume-bad.txt": TroubleKind.LOST,
    "model/usage-limit-openai.jsonl": TroubleKind.QUOTA,
    "model/usage-limit.jsonl": TroubleKind.QUOTA,
}
"""Every recording that ends in trouble; all others end well, or in the middle."""


def of(path: str) -> Path:
    return RECORDED / path


class TestRecorded:
    @EACH
    def test_every_recording_ends_as_it_did(self, provider: Provider, path: Path) -> None:
        """Each recorded output is read as the trouble it ended in, or as none."""
        assert learned(provider, path).kind == TROUBLES.get(f"{provider.name}/{path.name}")

    @EACH
    def test_every_session_is_known(self, provider: Provider, path: Path) -> None:
        """Each recorded stream of events tells its session."""
        known = learned(provider, path)
        assert bool(known.session) == (path.suffix == ".jsonl")

    def test_claude_tells_all_of_a_plain_run(self) -> None:
        """Session, model, tokens, cost, calls and result are read; people see words, calls and answers."""
        known = learned(CLAUDE, of("claude/basic.jsonl"))
        assert known.session == "ef17409f-ff3d-41b9-8392-b6bded7c3cde"
        assert known.model == "claude-opus-4-8[1m]"
        assert known.usage == Usage(input_tokens=200, output_tokens=40, cost_usd=0.002, calls=2, tool_uses=1)
        assert known.result == DONE
        assert known.text == (
            "I will create the file.",
            "$ echo mock-made > out.txt && cat out.txt",
            "mock-made",
            DONE,
        )

    def test_codex_tells_all_of_a_plain_run(self) -> None:
        """Session, tokens, calls and result are read; its shell is left out of what people see."""
        known = learned(CODEX, of("codex/basic.jsonl"))
        assert known.session == "01a1e073-1342-7f12-9e11-072b25082497"
        assert known.usage == Usage(input_tokens=200, output_tokens=40, calls=1, tool_uses=1)
        assert known.result.startswith("Done: wrote out.txt.")
        assert known.text[1:4] == (
            "I will create the file.",
            "$ echo mock-made > out.txt && cat out.txt",
            "mock-made",
        )

    @pytest.mark.parametrize("name", ["basic", "basic-openai"])
    def test_a_model_tells_all_of_a_plain_run(self, name: str) -> None:
        """Session, model, tokens, cost, calls and result are read; people see words, calls and answers."""
        known = learned(MODEL, of(f"model/{name}.jsonl"))
        assert known.session == "one"
        assert known.model in ("anthropic/claude-sonnet-4-5", "openai/gpt-5.5")
        used = known.usage
        assert (used.input_tokens, used.output_tokens, used.calls, used.tool_uses) == (200, 40, 2, 1)
        assert 0.001 < used.cost_usd < 0.003
        assert known.result == DONE
        assert known.text == (
            "I will create the file.",
            "$ echo mock-made > out.txt && cat out.txt",
            "mock-made",
            DONE,
        )

    @pytest.mark.parametrize(
        ("path", "uses"),
        [
            ("claude/mcp-allowed.jsonl", 2),
            ("claude/resume.jsonl", 0),
            ("codex/mcp.jsonl", 2),
            ("codex/apply-patch-file-change.jsonl", 1),
            ("codex/resume.jsonl", 0),
            ("model/think.jsonl", 2),
        ],
    )
    def test_tool_uses_are_counted(self, path: str, uses: int) -> None:
        """Commands, edits and the tools of servers, each once; what a session did before is not told again."""
        assert learned(PROVIDERS.get(path.partition("/")[0]), of(path)).usage.tool_uses == uses

    def test_a_model_tells_when_a_limit_ends(self) -> None:
        """The time is the vendor's own."""
        trouble = learned(MODEL, of("model/usage-limit.jsonl")).trouble
        assert trouble is not None
        assert trouble.until == 1794827241.0

    def test_claude_tells_when_a_limit_ends(self) -> None:
        """A usage limit carries the time at which it is over."""
        found = [CLAUDE.read(each).trouble for each in lines_of(of("claude/usage-limit-oauth.jsonl"))]
        assert RunTrouble(TroubleKind.QUOTA, "the five hour limit is reached", 1794774218.0) in found

    def test_codex_tells_the_hour_at_which_a_limit_ends(self) -> None:
        """Codex names no day and no zone, so its words are kept and no time is made up."""
        trouble = learned(CODEX, of("codex/usage-limit.jsonl")).trouble
        assert trouble is not None
        assert trouble.until is None
        assert trouble.words.endswith("try again at 8:24 PM.")

    @pytest.mark.parametrize("path", ["claude/rate1-recovers.jsonl", "codex/streamerr.jsonl"])
    def test_an_overcome_trouble_is_over(self, path: str) -> None:
        """A trouble that was met on the way is gone when the turn ends well."""
        provider = PROVIDERS.get(path.partition("/")[0])
        assert any(provider.read(each).trouble for each in lines_of(of(path)))
        assert learned(provider, of(path)).trouble is None

    def test_success_with_an_error_is_none(self) -> None:
        """`subtype: success` is not believed: `is_error` counts, and what was said then is no result."""
        last = lines_of(of("claude/overloaded-529.jsonl"))[-1]
        assert '"subtype":"success"' in last
        assert learned(CLAUDE, of("claude/overloaded-529.jsonl")).result == ""

    def test_codex_counts_its_whole_session(self) -> None:
        """Its usage is a session's total, and is said to be one."""
        total = [CODEX.read(each) for each in lines_of(of("codex/resume.jsonl"))][-1]
        assert total.total
        assert total.usage == Usage(input_tokens=300, output_tokens=60)

    def test_remembered_input_is_input(self) -> None:
        """Claude counts its input in three parts; we count all of it, and what of it was remembered."""
        used = {
            "input_tokens": 3,
            "cache_creation_input_tokens": 40,
            "cache_read_input_tokens": 500,
            "output_tokens": 6,
        }
        line = json.dumps({"type": "result", "is_error": False, "usage": used, "total_cost_usd": 0.5})
        assert CLAUDE.read(line).usage == Usage(
            input_tokens=543, output_tokens=6, cost_usd=0.5, cached_tokens=500, calls=1
        )

    @pytest.mark.parametrize("number", [-5, 2**70, True, 1.5, "7", None, [1]])
    def test_numbers_that_cannot_be_are_none(self, number: object) -> None:
        """What can't be a number of tokens, or a price, counts nothing."""
        used = {"input_tokens": number, "output_tokens": number}
        line = json.dumps({"type": "result", "is_error": False, "usage": used, "total_cost_usd": float("nan")})
        assert CLAUDE.read(line).usage == Usage()
        assert CODEX.read(json.dumps({"type": "turn.completed", "usage": used})).usage == Usage()


class TestPieces:
    @READERS
    @given(data=st.data())
    @settings(max_examples=40, deadline=None)
    def test_any_split_reads_the_same(self, provider: Provider, data: st.DataObject) -> None:
        """However the bytes of an output are cut, the readings are the same."""
        content = data.draw(st.sampled_from(recordings(provider.name))).read_bytes()
        cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=12)))
        pieces = [content[start:end] for start, end in zip([0, *cuts], [*cuts, len(content)], strict=True)]
        assert readings(provider, pieces) == readings(provider, [content])

    @READERS
    def test_single_bytes_read_the_same(self, provider: Provider) -> None:
        """An output that comes byte by byte is read as one that comes at once."""
        content = of(f"{provider.name}/think.jsonl").read_bytes()
        assert readings(provider, [bytes([each]) for each in content]) == readings(provider, [content])

    @READERS
    def test_a_huge_line_takes_little_memory(self, provider: Provider) -> None:
        """A line of 100 MB is read in bounded memory, and what follows it is read as ever."""
        end = of(f"{provider.name}/basic.jsonl").read_bytes()
        piece = b"x" * 1_000_000
        tracemalloc.start()
        try:
            found = readings(provider, [b'{"type":"', *([piece] * 100), b"\n", end])
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 20_000_000
        assert found[-1].ended


TYPES = (
    *("assistant", "user", "system", "result", "rate_limit_event", "text", "tool_use", "tool_result", "novelty"),
    *("thread.started", "item.started", "item.completed", "turn.failed", "turn.completed", "agent_message", "error"),
    *("command_execution", "call", "usage", "session", "answer"),
)
PARTS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={"text": st.text(max_size=9), "command": st.just("ls"), "is_error": st.booleans()},
)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES)},
    optional={
        "subtype": st.sampled_from(["init", "api_retry", "success"]),
        "message": st.one_of(st.text(max_size=9), st.fixed_dictionaries({"content": st.lists(PARTS, max_size=2)})),
        "item": PARTS,
        "result": st.text(max_size=9),
        "session_id": st.just("s1"),
        "thread_id": st.just("t1"),
        "rate_limit_info": st.just({"status": "rejected"}),
    },
)


class TestTelling:
    @EACH
    def test_nothing_that_tells_is_passed_over(self, provider: Provider, path: Path) -> None:
        """Of what the programs have printed, the lines that are not read tell nothing about the run."""
        lines = lines_of(path)
        assert provider.readings("".join(f"{line}\n" for line in lines)) == told(provider, lines)

    @READERS
    @given(
        events=st.lists(EVENTS, max_size=4), spaced=st.booleans(), written=st.sampled_from(["", "\\u0074", "\\u0054"])
    )
    def test_nor_in_any_event_however_it_is_written(
        self, provider: Provider, events: list[dict[str, object]], spaced: bool, written: str
    ) -> None:
        """The same for events of any type and form, also where letters are escaped."""
        lines = [json.dumps(event, separators=(" , ", "\t: ") if spaced else (",", ":")) for event in events]
        lines = [line.replace("t", written) if written else line for line in lines]
        assert provider.readings("".join(f"{line}\n" for line in lines)) == told(provider, lines)

    @READERS
    def test_not_quite_json_is_read_as_ever(self, provider: Provider) -> None:
        """NaN, numbers beyond all bounds and half characters do not hide the rest of an event."""
        for odd in ("NaN", "1e999", '"\\ud83d"', "-Infinity", "9" * 30):
            assert provider.read(f'{{"type": "system", "novelty": {odd}}}') == LineReading()


def told(provider: Provider, lines: list[str]) -> list[LineReading]:
    """What is found by reading every line."""
    return [reading for reading in map(provider.read, lines) if reading.tells]


class TestStrange:
    @READERS
    @pytest.mark.parametrize(
        "line", ["", "  ", "plain words", "{", '{"type":', "[1]", '"x"', "42", '{"a": 1}', "{]" * 9]
    )
    def test_what_is_no_event_is_shown(self, provider: Provider, line: str) -> None:
        """A line that is no event, whole or not, is shown as it is."""
        assert provider.read(line) == LineReading(text=line)

    @READERS
    def test_unknown_events_say_nothing(self, provider: Provider) -> None:
        """Events of a later version are passed over."""
        for event in ({"type": "novelty", "text": "x"}, {"type": "system", "subtype": "novelty"}, {"type": "item.new"}):
            assert provider.read(json.dumps(event)) == LineReading()

    @READERS
    def test_brackets_without_end(self, provider: Provider) -> None:
        """A line of nothing but brackets is shown, not a crash."""
        line = '{"a":' * 100_000
        assert provider.read(line) == LineReading(text=line)

    @READERS
    def test_bytes_that_are_no_text(self, provider: Provider) -> None:
        """Bytes that are no UTF-8 are shown as such, and the lines around them are read."""
        end = of(f"{provider.name}/basic.jsonl").read_bytes()
        found = readings(provider, [b"\xff\xfe\x00 broken \xc3\n", end])
        assert "broken" in found[0].text
        assert found[-1].ended

    def test_half_characters_can_be_stored(self) -> None:
        """Half of a surrogate pair, which JSON allows, becomes a question mark: UTF-8 can't say it."""
        line = '{"type":"assistant","message":{"content":[{"type":"text","text":"a\\ud800b"}]}}'
        assert CLAUDE.read(line).text == "a?b"

    @READERS
    @given(data=st.data())
    @settings(max_examples=60, deadline=None)
    def test_events_of_any_shape(self, provider: Provider, data: st.DataObject) -> None:
        """A known event with anything in its fields is read without an error, and all of it can be stored."""
        names = NAMES[provider.name]
        types = ["system", "assistant", "user", "result", "rate_limit_event", "error", "item.started", "item.completed"]
        values = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(names),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(names), inner, max_size=6),
            max_leaves=12,
        )
        event = data.draw(st.dictionaries(st.sampled_from(names), values, max_size=6))
        event["type"] = data.draw(st.sampled_from([*types, *TURNS]))
        reading = provider.read(json.dumps(event))
        for text in (reading.text, reading.session, reading.model, reading.result):
            text.encode()
        used = reading.usage or Usage()
        counts = (used.input_tokens, used.output_tokens, used.cached_tokens, used.calls, used.tool_uses)
        assert min(*counts, used.cost_usd) >= 0


def keys(path: Path) -> set[str]:
    """Every key of every object in a recording."""
    found: set[str] = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            found.update(value)
            for each in value.values():
                look(each)
        elif isinstance(value, list):
            for each in value:
                look(each)

    for line in lines_of(path):
        if line.startswith("{"):
            look(json.loads(line))
    return found


NAMES = {
    each.name: sorted({key for path in recordings(each.name) for key in keys(path)}) for each in (CLAUDE, CODEX, MODEL)
}
TURNS = ["turn.failed", "turn.completed", "thread.started", "session", "text", "call", "answer", "usage"]


class TestShown:
    def test_long_answers_are_shortened(self) -> None:
        """People see the first lines of a long answer, and how many there are more."""
        answer = "\n".join(f"line {number}" for number in range(100))
        event = {"type": "user", "message": {"content": [{"type": "tool_result", "content": answer}]}}
        shown = CLAUDE.read(json.dumps(event)).text.splitlines()
        assert shown[0] == "line 0"
        assert shown[-1] == "… 80 more lines"

    def test_a_call_is_one_short_line(self) -> None:
        """A tool call with a long script in it is one line."""
        block = {"type": "tool_use", "name": "Bash", "input": {"command": "cat <<E\n" + "x\n" * 500}}
        event = {"type": "assistant", "message": {"content": [block]}}
        reading = CLAUDE.read(json.dumps(event))
        assert len(reading.text.splitlines()) == 1
        assert len(reading.text) < 250
        assert reading.usage == Usage(calls=1, tool_uses=1)

    def test_an_answer_in_blocks(self) -> None:
        """A tool's answer may be a list of blocks; its texts are shown."""
        content = [{"type": "text", "text": "one"}, {"type": "image"}, {"type": "text", "text": "two"}]
        event = {"type": "user", "message": {"content": [{"type": "tool_result", "content": content}]}}
        assert CLAUDE.read(json.dumps(event)).text == "one\ntwo"
