"""The process that asks a model, against a scripted one: what it does, tells and keeps."""

from __future__ import annotations

import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from model_stage import KEY, SCENARIO, ModelStage

from model_server.script import Fault, Step, Usage, fail, ours, say, shell, write

COMMITS = [write("notes/a.txt", "new\n"), shell("git add -A && git commit -q -m 'Add a.txt'")]
DEAR = Usage(input=1000, output=50, cached=400)


class TestWork:
    def test_it_edits_commits_and_says_so(self, each_stage: ModelStage) -> None:
        """Files, shell and our own tools are used as the model wants; all of it is told, in order."""
        stage = each_stage
        ended = stage.run([*COMMITS, ours("complete", result="There."), say("I am done.")])
        assert (ended.code, ended.errors) == (0, "")
        assert (stage.tree / "notes/a.txt").read_text() == "new\n"
        log = subprocess.run(("git", "log", "--format=%s"), cwd=stage.tree, capture_output=True, text=True, check=True)
        assert log.stdout.split("\n")[0] == "Add a.txt"
        step = ["usage", "call", "answer"]
        assert ended.kinds == ["session", *step, *step, *step, "text", "usage", "result"]
        assert ended.last == {"type": "result", "text": "I am done."}
        assert ended.of("call")[0]["what"] == "notes/a.txt"
        assert '"result": "There."' in stage.answers[2]

    def test_what_it_used_and_what_that_costs(self, each_stage: ModelStage) -> None:
        """Remembered input is part of the input, and a known model has a price."""
        [used] = each_stage.run([say("Hello.", usage=DEAR)]).of("usage")
        assert (used["input"], used["cached"], used["output"]) == (1000, 400, 50)
        assert 0.001 < used["cost"] < 0.01 if each_stage.api != "chat" else used["cost"] == 0

    def test_its_tools_do_not_get_the_key(self, each_stage: ModelStage) -> None:
        """The model is asked with the key; what it runs does not find it in its environment."""
        ended = each_stage.run([shell("env | grep -c API_KEY"), say("Done.")])
        assert each_stage.models.requests(SCENARIO)[0].asked.key == KEY
        assert ended.of("answer")[0]["text"].split() == ["0", "(exit", "code", "1)"]

    def test_who_it_is_and_what_to_do(self, stage: ModelStage) -> None:
        """The system prompt comes from a file, the prompt from standard input, however long."""
        (stage.folder / "system.md").write_text("You are a painter.")
        stage.run([say("Done.")], "--system", str(stage.folder / "system.md"), prompt="Paint. " * 50_000)
        asked = stage.models.requests(SCENARIO)[0].asked
        assert "You are a painter." in asked.system
        assert str(stage.tree) in asked.system
        assert asked.prompts == ("Paint. " * 50_000,)

    def test_a_tool_of_ours_that_refuses(self, stage: ModelStage) -> None:
        """The model reads why, and goes on."""
        ended = stage.run([ours("ask"), say("Then not.")])
        assert ended.of("answer")[0]["failed"]
        assert ended.last["text"] == "Then not."

    def test_a_server_of_ones_own(self, stage: ModelStage) -> None:
        """It is found by its address, and speaks the older protocol; it gets the key that was named, and no other."""
        stage.variables |= {"OPENAI_API_KEY": "sk-not-this", "OPENAI_BASE_URL": "http://127.0.0.1:9", "MINE": "sk-mine"}
        where = ("--base-url", f"{stage.models.url(SCENARIO)}/v1", "--protocol", "openai-chat")
        ended = stage.run([shell("echo hi"), say("Done.")], "--model", "openai/qwen3", *where, "--key", "MINE")
        assert (ended.code, ended.last["text"]) == (0, "Done.")
        [*_, last] = stage.models.requests(SCENARIO)
        assert (last.asked.model, last.asked.key) == ("qwen3", "sk-mine")
        assert ended.lines[0]["model"] == "openai/qwen3"

    def test_who_may_only_read(self, stage: ModelStage) -> None:
        """It has neither shell nor edits, and its one write goes where reports go."""
        steps = [write("a.txt", "x"), write(".windlass/output/review.md", "Fine."), ours("complete"), say("Done.")]
        ended = stage.run(steps, "--permissions", "read")
        assert [each["failed"] for each in ended.of("answer")] == [True, False, False]
        assert not (stage.tree / "a.txt").exists()
        assert not {"shell", "edit_file"} & stage.models.requests(SCENARIO)[0].asked.tools
        assert "windlass" in stage.models.requests(SCENARIO)[0].asked.tools

    def test_who_is_given_only_some_tools(self, stage: ModelStage) -> None:
        """It has these, and ours."""
        stage.run([shell("echo hi"), say("Done.")], "--tools", "read,shell")
        asked = stage.models.requests(SCENARIO)[0].asked.tools
        assert {"read_file", "list_files", "shell", "complete"} <= asked
        assert not {"search_files", "edit_file", "write_file"} & asked

    def test_many_words_are_cut_for_people_only(self, stage: ModelStage) -> None:
        """A long output reaches the model with its beginning and its end, and the lines stay short."""
        ended = stage.run([shell("seq 200000; echo the end"), say("Done.")])
        [answer] = stage.answers
        assert answer.startswith("1\n2\n")
        assert answer.rstrip().endswith("the end")
        assert "bytes left out" in answer
        assert len(answer) < 31_000
        assert len(ended.of("answer")[0]["text"]) == 4000


class TestResume:
    def test_it_goes_on_where_it_was(self, each_stage: ModelStage) -> None:
        """A second process knows all that was said; an id that nobody kept is lost."""
        steps = [shell("echo first"), say("So far."), shell("echo second"), say("Now all.")]
        first = each_stage.run(steps)
        assert first.last["text"] == "So far."
        second = each_stage.run(steps, "--resume", "one", prompt="Go on.")
        assert second.lines[0]["session"] == "one"
        assert second.last["text"] == "Now all."
        asked = each_stage.models.requests(SCENARIO)[-1].asked
        assert asked.prompts == ("Do it.", "Go on.")
        assert [result.strip() for result in asked.results] == ["first", "second"]

    def test_a_session_that_nobody_kept(self, stage: ModelStage) -> None:
        """It is said to be lost, and the model is not asked."""
        ended = stage.run([], "--resume", "other")
        assert (ended.code, ended.last["trouble"]) == (1, "lost")
        assert not stage.models.requests(SCENARIO)

    def test_what_was_asked_before_the_first_answer_is_kept(self, each_stage: ModelStage) -> None:
        """A run that was refused at once has a session all the same, with its prompt in it."""
        steps = [replace(say("Now."), fault=Fault.AUTH, times=1, in_all=True)]
        assert each_stage.run(steps).code == 1
        assert each_stage.run(steps, "--resume", "one", prompt="It is mended.").last["text"] == "Now."
        said = "\n".join(each_stage.models.requests(SCENARIO)[-1].asked.prompts)
        assert "Do it." in said
        assert "It is mended." in said

    def test_it_is_kept_where_the_agent_has_its_own(self, stage: ModelStage) -> None:
        """Without a sandbox, in the folder that stands for its home in one; nothing is left in the user's."""
        stage.variables |= {"WINDLASS_HOME": str(stage.folder / "wl"), "WINDLASS_AGENT": "brave-otter"}
        stage.run([say("Done.")])
        kept = stage.folder / "wl/homes/brave-otter/home/.local/state/windlass/sessions/one.json"
        assert kept.stat().st_mode & 0o777 == 0o600
        assert list((stage.folder / "home").iterdir()) == []
        stage.variables["HOME"] = str(kept.parents[4])
        assert stage.run([say("Done.")], "--resume", "one", "--sandboxed").code == 0


class TestTroubles:
    @pytest.mark.parametrize(
        ("fault", "trouble"),
        [
            (Fault.AUTH, "auth"),
            (Fault.BILLING, "billing"),
            (Fault.CONTEXT, "context"),
            (Fault.RATE, "throttle"),
            (Fault.OVERLOADED, "overload"),
            (Fault.SERVER, "overload"),
            (Fault.QUOTA, "quota"),
        ],
    )
    def test_a_refusal_is_told_by_what_helps(self, each_stage: ModelStage, fault: Fault, trouble: str) -> None:
        """One line that names it; a used-up allowance with its end."""
        ended = each_stage.run([shell("echo begun"), fail(fault, resets_in=7200, retry_after=0)])
        assert (ended.code, ended.errors) == (1, "")
        assert (ended.last["type"], ended.last["trouble"]) == ("error", trouble), ended.last
        assert ended.last["text"]
        asked_at = each_stage.models.requests(SCENARIO)[-1].at
        assert ended.last["until"] == (pytest.approx(asked_at + 7200, abs=30) if trouble == "quota" else None)

    @pytest.mark.parametrize("fault", [Fault.OVERLOADED, Fault.CONTEXT])
    def test_a_refusal_in_the_middle_of_an_answer(self, each_stage: ModelStage, fault: Fault) -> None:
        """It is the same trouble."""
        ended = each_stage.run([shell("echo begun"), fail(fault, midway=True)])
        assert ended.last["trouble"] == {"overloaded": "overload", "context": "context"}[fault], ended.last

    @pytest.mark.parametrize("midway", [False, True])
    def test_a_connection_that_breaks(self, each_stage: ModelStage, midway: bool) -> None:
        """The server is in trouble, and so are we, until later."""
        ended = each_stage.run([Step(drop=True, midway=midway)])
        assert ended.last["trouble"] == "overload", ended.last

    def test_a_busy_server_is_asked_again(self, stage: ModelStage) -> None:
        """Once too many is no trouble."""
        ended = stage.run([replace(say("Now."), fault=Fault.RATE, times=1, retry_after=0)])
        assert ended.last == {"type": "result", "text": "Now."}


class TestEnding:
    @pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
    def test_asked_to_end_while_its_model_is_silent(self, stage: ModelStage, sent: signal.Signals) -> None:
        """It ends soon, and what it did before is kept: the next run goes on from there."""
        hangs = replace(say("Now all."), hang=True, midway=True, times=1)
        stage.models.scenarios[SCENARIO] = [shell("echo begun"), hangs]
        process = stage.begin()
        assert stage.models.wait_for(lambda: stage.models.requests(SCENARIO)[1:])
        process.send(sent)
        ended = process.end()
        assert (ended.code, ended.kinds[-1]) == (143, "stopped")
        second = stage.run(stage.models.scenarios[SCENARIO], "--resume", "one", prompt="Go on.")
        assert second.last["text"] == "Now all."
        assert [result.strip() for result in stage.models.requests(SCENARIO)[-1].asked.results] == ["begun"]

    def test_killed_before_the_first_answer(self, stage: ModelStage) -> None:
        """What it was told is kept from the start: a later run is told only what is new."""
        stage.models.scenarios[SCENARIO] = [replace(say("Now."), hang=True, times=1)]
        process = stage.begin()
        assert stage.models.wait_for(lambda: stage.models.requests(SCENARIO))
        process.send(signal.SIGKILL)
        assert process.end().code == -9
        second = stage.run(stage.models.scenarios[SCENARIO], "--resume", "one", prompt="Go on.")
        assert second.last["text"] == "Now."
        assert "Do it." in "\n".join(stage.models.requests(SCENARIO)[-1].asked.prompts)

    def test_asked_to_end_while_a_command_runs(self, stage: ModelStage) -> None:
        """The command ends with it, with all that it started; the next run is told that it was cut short."""
        mark = stage.folder / "pids"
        stage.models.scenarios[SCENARIO] = [
            shell(f"echo $$ > {mark}; sleep 471 & echo $! >> {mark}; wait"),
            say("Now."),
        ]
        process = stage.begin()
        while not (mark.exists() and len(mark.read_text().split()) == 2):
            assert not process.ended
        process.send(signal.SIGTERM)
        assert process.end().code == 143
        assert not [part for part in mark.read_text().split() if _lives(int(part))]
        second = stage.run(stage.models.scenarios[SCENARIO], "--resume", "one", prompt="Go on.")
        assert second.last["text"] == "Now."


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
