"""Every workflow of the source document, run as it is printed there; actors stand in for the models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from e2e_stage import Stage, stage
from printed import DIFF, MENDED, MODEL, PULL_REQUEST, WORKFLOWS, Theatre, printed

from patience import until

ISSUE = "@coder found auth validation issue in line 2"
FIXED = "Fixed, @reviewer please verify"
VERIFIED = "Verified: the user is checked now."
FINE = "I have found nothing."
SEES_IT_BROKEN = "grep -q 'return user' login.py\n"
SEES_IT_MENDED = "grep -q 'return checked(user)' login.py\n"
MENDS = f"printf '%s' '{MENDED}' > login.py\ngit commit -qam 'Check the user'\n"
NOTES = "# Review Notes\n\n## Issues Found\n1. Auth validation missing (line 2)\n"
DECISIONS = "\n## Decisions\n- Check every user\n"


def says(words: str) -> str:
    """A line of a part: it speaks in the channel."""
    return f"windlass context send '{words}'\n"


def notes(words: str, how: str = "append") -> str:
    """It writes into the shared document."""
    return f"windlass context document {how} '{words}'\n"


def can_not(line: str) -> str:
    """It tries to, and is refused."""
    return f"if {line.rstrip()}; then exit 9; fi\n"


REVIEWER = (SEES_IT_BROKEN + notes(NOTES, "write") + says(ISSUE), SEES_IT_MENDED + says(VERIFIED))
CODER = (SEES_IT_BROKEN + MENDS + says(FIXED),)
TALK = [("reviewer", ISSUE), ("coder", FIXED), ("reviewer", VERIFIED)]


@pytest.fixture(scope="module")
def building() -> Iterator[Theatre]:
    with stage() as made:
        yield Theatre(made)


@pytest.fixture
def theatre(building: Theatre) -> Theatre:
    """With the fault on main that the pull request brings."""
    building.anew()
    return building


def on_main(house: Stage) -> str:
    return house.git("show", "main:login.py") + "\n"


class TestCodeReview:
    """The first file of the document."""

    def test_the_reviewer_finds_the_coder_fixes_and_it_lands(self, theatre: Theatre) -> None:
        """Who talks is as in the document's own channel.md; only who is spoken to is started."""
        theatre.casts("pr-123", reviewer=REVIEWER, coder=CODER)
        told = theatre.house.wl("run", printed(theatre.house, "review"), "--instance", "pr-123")
        assert theatre.order("pr-123") == ["reviewer", "coder", "reviewer"]
        (first, *talk) = theatre.said("pr-123")
        asked = "@reviewer please review these changes.\nWhen issues found, @coder to fix them.\n"
        assert first == ("human", f"PR diff:\n{DIFF}\n{asked}")
        assert talk == TALK
        assert theatre.document("pr-123") == NOTES
        assert on_main(theatre.house) == MENDED
        assert [line.split("  ")[1] for line in told.out.splitlines() if line.startswith("c1  ")] == ["landed"]

    def test_everyone_is_told_who_it_is_and_what_was_said(self, theatre: Theatre) -> None:
        """The prompts of the files, the model, the kickoff, and what the other said."""
        theatre.casts("told", reviewer=REVIEWER, coder=CODER)
        theatre.house.wl("run", printed(theatre.house, "review"), "--instance", "told")
        reviewer, coder = theatre.told("reviewer", "told"), theatre.told("coder", "told")
        assert reviewer.startswith(f"--model {MODEL}\n") and coder.startswith(f"--model {MODEL}\n")
        assert "You are the reviewer of this team" in reviewer and "You are the coder of this team" in coder
        assert DIFF in reviewer and ISSUE not in reviewer
        assert DIFF in coder and ISSUE in coder
        assert FIXED in theatre.told("reviewer", "told", 2)

    def test_where_nothing_is_found_the_coder_rests(self, theatre: Theatre) -> None:
        """It was mentioned in the kickoff and in the diff, and spoken to by nobody."""
        theatre.casts("fine", reviewer=(says(FINE),))
        value = theatre.house.wl("run", printed(theatre.house, "review"), "--instance", "fine", "--json").value
        assert theatre.order("fine") == ["reviewer"]
        assert (value["workflow"], value["failed"], value["changes"]) == ("code-review", [], [])
        assert [(each["name"], each["status"]) for each in value["agents"]] == [
            ("reviewer", "completed"),
            ("coder", "idle"),
        ]

    def test_started_it_stays_and_is_spoken_to(self, theatre: Theatre) -> None:
        """As the document's commands have it: start, list, send, stop."""
        house = theatre.house
        theatre.casts("pr-456", reviewer=REVIEWER, coder=(*CODER, says("Here.")))
        house.wl("start", printed(house, "review"), "--instance", "pr-456", "--background")
        until(lambda: on_main(house) == MENDED, "its landing")
        listed = [line.split()[:2] for line in house.wl("list").out.splitlines()]
        assert {("NAME", "SOURCE"), ("reviewer@pr-456", "review.yaml"), ("coder@pr-456", "review.yaml")} <= {
            (first, second) for first, second in listed
        }
        house.wl("send", "hello", "--to", "coder@pr-456")
        until(lambda: ("coder", "Here.") in theatre.said("pr-456"), "its answer")
        assert theatre.order("pr-456") == ["reviewer", "coder", "reviewer", "coder"]
        until(lambda: house.agent("coder@pr-456")["status"] == "completed", "its exit")
        house.wl("stop", "@pr-456")
        until(lambda: "pr-456" not in house.wl("list").out, "their end")
        assert theatre.document("pr-456") == NOTES


class TestExamples:
    def test_a_simple_review(self, theatre: Theatre) -> None:
        """One agent, told in the file itself who it is: it finds, writes it down and says so; nothing lands."""
        theatre.casts("default", reviewer=(SEES_IT_BROKEN + notes(NOTES, "write") + says("See the document."),))
        theatre.house.wl("run", printed(theatre.house, "simple-review"))
        assert theatre.order("default") == ["reviewer"]
        assert theatre.said("default") == [
            ("human", f"Please review this PR:\n\n{DIFF}\n@reviewer\n"),
            ("reviewer", "See the document."),
        ]
        assert "Use the document tool to record findings.\n" in theatre.told("reviewer", "default")
        assert theatre.document("default") == NOTES
        assert on_main(theatre.house) != MENDED

    def test_three_agents_work_together(self, theatre: Theatre) -> None:
        """The coordinator calls the reviewer, it the coder, it the reviewer, and it the coordinator, which decides."""
        theatre.casts(
            "pr-7",
            coordinator=(
                says("@reviewer please look at login.py"),
                SEES_IT_MENDED + notes(DECISIONS) + says("All done."),
            ),
            reviewer=(REVIEWER[0], SEES_IT_MENDED + says("@coordinator the fix is right")),
            coder=CODER,
        )
        told = theatre.house.wl("run", printed(theatre.house, "collaboration"), "--instance", "pr-7")
        assert theatre.order("pr-7") == ["coordinator", "reviewer", "coder", "reviewer", "coordinator"]
        (first, *talk) = theatre.said("pr-7")
        assert first[0] == "human" and PULL_REQUEST in first[1]
        assert talk == [
            ("coordinator", "@reviewer please look at login.py"),
            ("reviewer", ISSUE),
            ("coder", FIXED),
            ("reviewer", "@coordinator the fix is right"),
            ("coordinator", "All done."),
        ]
        assert theatre.document("pr-7") == NOTES + DECISIONS
        assert on_main(theatre.house) == MENDED
        assert "  landed  code-review @pr-7" in told.out

    def test_a_coordinator_may_do_without_the_others(self, theatre: Theatre) -> None:
        """Its kickoff only speaks of them."""
        theatre.casts("pr-8", coordinator=(says("Nothing to do."),))
        theatre.house.wl("run", printed(theatre.house, "collaboration"), "--instance", "pr-8")
        assert theatre.order("pr-8") == ["coordinator"]

    @pytest.mark.parametrize("name", ["interpolation", "version-2"])
    def test_the_beginnings_that_are_printed_alone(self, theatre: Theatre, name: str) -> None:
        """Setup and kickoff of other sections, with the agents of the first file."""
        theatre.casts(name, reviewer=REVIEWER, coder=CODER)
        rest = (WORKFLOWS / f"{name}.yaml").read_text()
        theatre.house.wl("run", printed(theatre.house, "review", rest=rest), "--instance", name)
        assert DIFF in theatre.said(name)[0][1]
        assert theatre.said(name)[1:] == TALK
        assert on_main(theatre.house) == MENDED

    def test_a_file_of_version_1_is_converted_and_runs(self, theatre: Theatre) -> None:
        """The document's, with the agents that its readers had; the reviewer begins, and hands on."""
        house = theatre.house
        old = printed(house, "review", context=None, rest=(WORKFLOWS / "version-1.yaml").read_text())
        assert "windlass migrate" in house.wl("run", old, "--instance", "old", code=2).err
        house.wl("migrate", old, "--write")
        theatre.casts("old", reviewer=REVIEWER, coder=CODER)
        house.wl("run", old, "--instance", "old")
        assert DIFF.strip() in theatre.said("old")[0][1]
        assert theatre.said("old")[1:] == TALK
        assert on_main(house) == MENDED


class TestContext:
    """Every form in which the document prints that key."""

    @pytest.mark.parametrize(
        ("form", "channel", "document"),
        [
            ("minimal", ".windlass/context/minimal/channel.md", ".windlass/context/minimal/notes.md"),
            ("both", ".windlass/context/both/channel.md", ".windlass/context/both/notes.md"),
            ("spelled-out", ".workflow/spelled-out/channel.md", ".workflow/spelled-out/notes.md"),
            ("custom", "my-context/discussion.md", "my-context/workspace.md"),
        ],
    )
    def test_channel_and_document_are_where_it_says(
        self, theatre: Theatre, form: str, channel: str, document: str
    ) -> None:
        """As files that people read, and find by the names that the kickoff may use."""
        theatre.casts(form, reviewer=REVIEWER, coder=CODER)
        theatre.house.wl("run", printed(theatre.house, "review", context=written(form)), "--instance", form)
        shown = until(lambda: _if(VERIFIED, theatre.file(channel)), "the channel")
        heads = [line.split()[-1] for line in shown.splitlines() if line.startswith("### ")]
        assert heads == ["[system]", "[human]", *(f"[{name}@{form}]" for name, _ in TALK)]
        assert "[system]\nWorkflow started\n" in shown
        assert all(f"]\n{words}\n" in shown for _, words in TALK)
        assert until(lambda: theatre.file(document), "the document") == NOTES
        assert on_main(theatre.house) == MENDED

    def test_what_a_person_writes_into_a_file_of_their_own_choice_is_read(self, house: Stage) -> None:
        """The document is editable; what is said next is at the end of the channel."""
        theatre, reads = Theatre(house), 'windlass context send "It says: $(windlass context document read)"\n'
        theatre.casts("edited", reviewer=(notes(NOTES, "write"), reads))
        file = printed(house, "review", context=written("custom"))
        house.wl("start", file, "--instance", "edited", "--background")
        until(lambda: theatre.file("my-context/workspace.md") == NOTES, "the document")
        (house.repo / "my-context/workspace.md").write_text("Defer it to next sprint.\n")
        until(lambda: theatre.document("edited") == "Defer it to next sprint.\n", "the edit")
        house.wl("send", "Look again.", "--to", "reviewer@edited")
        answer = "[reviewer@edited]\nIt says: Defer it to next sprint."
        until(lambda: theatre.file("my-context/discussion.md").rstrip().endswith(answer), "its answer")
        house.wl("stop", "@edited")

    def test_a_channel_alone(self, theatre: Theatre) -> None:
        """They talk, and there is no document."""
        theatre.casts("channel", reviewer=(can_not(notes(NOTES)) + says(ISSUE), says(VERIFIED)), coder=CODER)
        theatre.house.wl("run", printed(theatre.house, "review", context=written("channel")), "--instance", "channel")
        assert theatre.said("channel")[1:] == TALK
        folder = theatre.house.repo / ".windlass/context/channel"
        until(lambda: VERIFIED in theatre.file(".windlass/context/channel/channel.md"), "the channel")
        assert [path.name for path in folder.iterdir()] == ["channel.md"]

    def test_none_at_all(self, theatre: Theatre) -> None:
        """Agents can't communicate, in either way, and are not told how they would."""
        theatre.casts("none", reviewer=(can_not(says(ISSUE)) + can_not(notes(NOTES)),))
        theatre.house.wl("run", printed(theatre.house, "review", context=None), "--instance", "none")
        assert theatre.order("none") == ["reviewer"]
        assert "windlass context send" not in theatre.told("reviewer", "none")
        assert not (theatre.house.repo / ".windlass/context/none").exists()


class TestStandalone:
    def test_an_agent_with_context_looks_into_the_document(self) -> None:
        """As the document has it: two commands, and nobody is named in the second."""
        with stage() as house:
            theatre = Theatre(house, settings='[work]\nprovider = "actor"\n')
            theatre.casts("", helper=('windlass context send "It says: $(windlass context document read)"\n',))
            house.wl("context", "document", "write", "Check every user.")
            house.wl("new", "helper", "--context")
            house.wl("send", "Check the notes in the document")
            said = until(lambda: [each for each in house.wl("peek", "--json").value if each["from"] == "helper"], "it")
            assert said[0]["message"] == "It says: Check every user."
            assert "Check the notes in the document" in theatre.told("helper", "")
            assert "windlass context document" in theatre.told("helper", "")
            assert house.wl("list").out.splitlines()[1].split()[:2] == ["helper", "(standalone)"]


def written(form: str) -> str:
    return (WORKFLOWS / "context" / f"{form}.yaml").read_text()


def _if(words: str, text: str) -> str:
    """A text, if these words stand in it."""
    return text if words in text else ""
