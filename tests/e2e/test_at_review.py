"""Reviews with the real daemon: a scripted reviewer and a scripted author, each in a process of its own."""

from __future__ import annotations

from e2e_stage import WITHIN, Stage, adds, exact, lines, stage

from patience import until

AUTHOR = """
runs:
  - - write: {login.txt: "open\\n"}
    - commit: Log in
    - done: It logs in.
  - - expect: This loses the lock.
    - expect: on login.txt:1
    - write: {login.txt: "lock, open\\n"}
    - commit: Take the lock
    - done: The lock is taken first.
"""
NEWEST = """$(windlass change show c1 --json | sed -n 's/.*"id": "\\(m[0-9]*\\)".*/\\1/p' | head -1)"""
REVIEWER = f"""
runs:
  - - run: grep -q open login.txt
    - run: windlass change comment c1 --file login.txt --line 1 "[BLOCKING] This loses the lock."
    - done: I have an objection.
  - - expect: The lock is taken first.
    - run: grep -q lock login.txt
    - run: |
        windlass change resolve c1 {NEWEST}
    - done: Now it is sound.
"""


def proposed(house: Stage, script: str = AUTHOR) -> str:
    """An author whose change waits in a paused queue."""
    house.wl("queue", "pause")
    name = house.play("Log in", script)
    house.event("change.queued", "c1")
    return name


class TestReview:
    def test_an_objection_is_answered_accepted_and_only_then_it_lands(self, house: Stage) -> None:
        """Reviewer and author speak through the daemon; the person only looks, and sees who said what."""
        author = proposed(house)
        begun = house.wl("review", "c1", "--script", house.script(REVIEWER), "--json").value
        assert exact("change task agent", begun)
        assert "reviews c1 already" in house.wl("review", "c1", "--script", house.script(REVIEWER), code=4).err
        house.wl("queue", "resume")
        house.event("change.landed", "c1")
        assert (house.repo / "login.txt").read_text() == "lock, open\n"
        assert [len(house.agent(each)["runs"]) for each in (author, begun["agent"])] == [2, 2]

        shown = house.wl("change", "show", "c1", "--json").value
        [comment, answer] = shown["comments"]
        assert exact("id from body file line blocking open reply_to head age_seconds", comment)
        assert (comment["from"], comment["file"], comment["line"]) == (begun["agent"], "login.txt", 1)
        assert (comment["blocking"], comment["open"]) == (True, False)
        assert (answer["from"], answer["reply_to"]) == (author, comment["id"])
        assert [each["opinion"] for each in shown["reviews"]] == ["changes", "approve"]
        assert shown["reviews"][1]["summary"] == "Now it is sound."
        text = house.wl("change", "show", "c1").out
        assert "windlass receipt c1" in text
        assert "Now it is sound." in text
        assert "+lock, open" in house.wl("change", "diff", "c1").out
        assert not [each for each in house.wl("doctor", "--check", "--json").value if not each["ok"]]

    def test_waiting_for_it_ends_as_it_ends(self, house: Stage) -> None:
        """Exit 0 when it approves, 1 when it wants changes; both say what it said."""
        proposed(house, "- write: {a.txt: a}\n- commit: Add a\n- done\n")
        objects = house.script("- done: '[BLOCKING] a.txt:1 It is too short.'\n")
        told = house.wl("review", "c1", "--script", objects, "--wait", "--timeout", f"{WITHIN}", code=1)
        assert "wants changes" in told.err
        assert "It is too short." in told.out
        comment = house.wl("change", "show", "c1", "--json").value["comments"][0]["id"]
        house.wl("change", "resolve", "c1", comment)
        until(lambda: not [each for each in house.ask("/agents")["items"] if each["status"] == "waiting"], "its end")
        told = house.wl("review", "c1", "--command", "true", "--wait", "--json", "--timeout", f"{WITHIN}")
        assert told.value["review"]["opinion"] == "approve"

    def test_every_change_is_reviewed_where_the_settings_want_it(self) -> None:
        """What nobody has looked at does not land; the reviewer is found by itself."""
        reviewing = "[gate]\nreview = 'agent'\n[work]\nprovider = 'command'\ncommand = 'test -e a.txt'\n"
        with stage(settings=reviewing) as house:
            house.play("Add a", "- write: {a.txt: a}\n- commit: Add a\n- done\n")
            house.event("change.landed", "c1")
            held = house.event("change.held", "c1")
            assert "review" in held["became"][0]["reason"]
            [review] = house.ask("/changes/c1")["reviews"]
            assert review["opinion"] == "approve"


class TestComment:
    def test_a_persons_comment_holds_the_change_until_they_accept_it(self, house: Stage) -> None:
        """The author is resumed with it; its answer is a question to the person."""
        author = proposed(house)
        told = house.wl(
            "change", "comment", "c1", "--file", "login.txt", "--line", "1", "--blocking", "This loses the lock."
        )
        assert "blocks c1 until it is settled" in told.out
        house.wl("queue", "resume")
        until(lambda: house.wl("questions", "--json").value, "the answer")
        shown = house.wl("change", "show", "c1")
        assert "c1 held" in shown.out
        assert "BLOCKS" in shown.out
        comment = house.wl("change", "show", "c1", "--json").value["comments"][0]["id"]
        assert "blocks c1" in house.wl("queue", "release", "c1", code=4).err
        house.wl("change", "resolve", "c1", comment)
        house.event("change.landed", "c1")
        assert len(house.agent(author)["runs"]) == 2
        assert house.wl("questions", "--json").value == []
        assert "has landed" in house.wl("change", "comment", "c1", "Too late.", code=4).err

    def test_bad_input_is_named(self, house: Stage) -> None:
        """No words, a line without a file, a comment or a change that is not there."""
        proposed(house)
        assert "is empty" in house.wl("change", "comment", "c1", " ", code=2).err
        assert "has no words" in house.wl("change", "comment", "c1", "[BLOCKING]", code=2).err
        assert "--file PATH --line N" in house.wl("change", "comment", "c1", "--line", "3", "x", code=2).err
        assert "no change c9" in house.wl("change", "comment", "c9", "x", code=3).err
        assert "no comment m99" in house.wl("change", "resolve", "c1", "m99", code=3).err
        assert "not the id of a comment" in house.wl("change", "resolve", "c1", "../x", code=2).err

    def test_agents_have_no_say_where_they_were_not_asked(self, house: Stage) -> None:
        """Another agent can't comment; the author can't settle; neither can ask for a review."""
        proposed(house)
        comment = house.wl("change", "comment", "c1", "--blocking", "Why?", "--json").value["id"]
        notes = house.flag("notes")
        verbs = (f"change resolve c1 {comment}", "change comment c1 --blocking x", "change comment c1 x", "review c1")
        tried = [f"windlass {verb} >> '{notes}' 2>&1; echo code=$? >> '{notes}'" for verb in verbs]
        other = house.work("Try it", "; ".join([*tried, lines("windlass change show c1", adds("b.txt"))]))
        house.event("change.queued", "c2")
        codes = [line for line in notes.read_text().splitlines() if line.startswith("code=")]
        assert codes == ["code=5"] * len(verbs), notes.read_text()
        assert [each["open"] for each in house.ask("/changes/c1")["comments"]] == [True]
        assert house.agent(other)["runs"][0]["outcome"] == "done"
