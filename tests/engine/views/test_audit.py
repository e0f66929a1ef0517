"""Every promise, broken for real in a store, a hub or among the processes; and what the audit says of it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from audit_stage import PERSON, Past, Waits, broken, look, make_past, moved, without_refs

from windlass.core.invariants import PROMISES, Finding
from windlass.engine.views.audit import LEAST_PATIENCE, LOOK_EVERY

pytestmark = pytest.mark.xdist_group("audit")  # one worker plays the story, once

NOBODY = "0" * 40
FOUND = list(PROMISES)


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    """Made once: a test changes a copy of the store, and puts back what it changes elsewhere."""
    return make_past(tmp_path_factory.mktemp("past"))


class TestHealth:
    def test_a_sound_home_keeps_every_promise(self, past: Past, tmp_path: Path) -> None:
        """One finding for each promise, in order; each says what was looked at, and none needs a second look."""
        waits = Waits()
        found = look(past, tmp_path, waits=waits)
        assert list(found) == FOUND
        assert broken(found) == set()
        assert found["I1"].detail == found["I2"].detail == found["I3"].detail == "2 landings"
        assert found["I5"].detail.endswith("bytes of 5 runs")
        assert found["I10"].detail == "4 agents, 2 removed worktrees"
        assert waits.count == 0

    def test_nothing_is_changed_by_looking(self, past: Past, tmp_path: Path) -> None:
        """Neither the hub, nor the repository, nor the store differs afterwards by a byte or a file."""
        shutil.copy2(past.database, tmp_path / "before.db")
        before = _files(past.hub), _files(past.repo), past.git("for-each-ref", at=past.hub)
        look(past, tmp_path)
        assert (_files(past.hub), _files(past.repo), past.git("for-each-ref", at=past.hub)) == before
        assert (tmp_path / "before.db").read_bytes() == past.database.read_bytes()

    def test_a_row_that_cannot_be_read_is_a_finding_and_not_the_end(self, past: Past, tmp_path: Path) -> None:
        """What could not be looked at counts as broken, with the reason; all else is looked at."""
        found = look(past, tmp_path, "UPDATE tasks SET state = 'nonsense' WHERE id = 't1'")
        assert list(found) == FOUND
        assert "could not be looked at: The task t1 cannot be read" in found["I7"].detail
        assert found["I9"].ok

    def test_an_event_that_makes_no_sense_hides_nothing_else(self, past: Past, tmp_path: Path) -> None:
        """Those promises that the journal is needed for can't be looked at; the others are, and the store is named."""
        empty = '{"data":{},"became":[]}'
        found = look(past, tmp_path, f"UPDATE events SET payload = '{empty}' WHERE kind = 'run.output'")
        assert list(found) == FOUND
        assert broken(found) == {"I5", "I7", "I10", "I12"}
        assert "could not be looked at" in found["I10"].detail
        assert found["I12"].detail.endswith("it does not carry what its digest says.")


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class TestLandings:
    def test_a_tree_that_was_not_tested_is_named(self, past: Past, tmp_path: Path) -> None:
        """I1: the check passed on another tree than the one that landed."""
        found = look(past, tmp_path, f"UPDATE changes SET checks = json_set(checks, '$[0].tree', '{NOBODY}')")
        assert broken(found) == {"I1", "I12"}
        assert "c1: no check is known to have passed on the tree that landed" in found["I1"].detail
        assert "windlass undo" in found["I1"].hint

    def test_a_check_that_did_not_pass_is_no_proof(self, past: Past, tmp_path: Path) -> None:
        """I1: a failed result for the right tree does not count."""
        found = look(past, tmp_path, "UPDATE changes SET checks = json_set(checks, '$[0].passed', json('false'))")
        assert "I1" in broken(found)

    def test_a_commit_that_holds_another_tree_is_named(self, past: Past, tmp_path: Path) -> None:
        """I1: what git holds is asked, and not what the receipt says."""
        before = past.git("rev-parse", "main^")
        found = look(
            past, tmp_path, f"UPDATE changes SET landing = json_set(landing, '$.after', '{before}') WHERE id = 'c2'"
        )
        assert "c2: its commit" in found["I1"].detail
        assert "I3" in broken(found)

    def test_a_commit_that_is_not_there_is_named(self, past: Past, tmp_path: Path) -> None:
        """I1: a receipt for a commit that git does not have."""
        changed = f"json_set(landing, '$.after', '{NOBODY}', '$.landed_at', 9e9)"
        found = look(past, tmp_path, f"UPDATE changes SET landing = {changed} WHERE id = 'c1'")
        assert f"c1: the hub has no commit {NOBODY[:10]}" in found["I1"].detail
        assert "c1: main does not hold" in found["I2"].detail

    def test_a_landing_that_did_not_stand_on_main_is_named(self, past: Past, tmp_path: Path) -> None:
        """I2: it must have been made on where main was."""
        found = look(past, tmp_path, f"UPDATE changes SET landing = json_set(landing, '$.before', '{NOBODY}')")
        assert "c1: 0000000000, where main was, is not what" in found["I2"].detail

    def test_a_main_that_the_person_rewrote_is_a_note(self, past: Past, tmp_path: Path) -> None:
        """I2: it is said, and it is no fault of ours; without the branch's log it can't be known."""
        tip, log = past.git("rev-parse", "main"), past.repo / ".git/logs/refs/heads/main"
        kept = log.read_bytes()
        try:
            past.git("update-ref", "-m", "rewrite", "refs/heads/main", "main~1")
            rewritten = look(past, tmp_path)
            log.unlink()
            unknown = look(past, tmp_path)
        finally:
            past.git("update-ref", "refs/heads/main", tip)
            log.write_bytes(kept)
        assert broken(rewritten) == broken(unknown) == set()
        assert "c2 is no longer in main, which was rewritten by someone else" in rewritten["I2"].detail
        assert "c2: whether main held it can't be seen any more" in unknown["I2"].detail

    def test_a_landing_that_main_never_saw_is_a_fault(self, past: Past, tmp_path: Path) -> None:
        """I2: main's log goes back before the landing, and does not know the commit; a younger log proves nothing."""
        tip, log = past.git("rev-parse", "main"), past.repo / ".git/logs/refs/heads/main"
        kept = log.read_bytes()
        try:
            past.git("update-ref", "refs/heads/main", "main~1")
            log.write_bytes(b"".join(kept.splitlines(keepends=True)[:-1]))
            found = look(past, tmp_path, "UPDATE changes SET landing = json_set(landing, '$.landed_at', 9e9)")
            forgotten = look(past, tmp_path)
        finally:
            past.git("update-ref", "refs/heads/main", tip)
            log.write_bytes(kept)
        assert "I2" in broken(found)
        assert "c2: main does not hold" in found["I2"].detail
        assert forgotten["I2"].ok

    def test_a_repository_that_is_gone_is_a_note(self, past: Past, tmp_path: Path) -> None:
        """I2: a folder that the person moved away leaves all that the hub can prove."""
        with moved(past.repo):
            found = look(past, tmp_path)
        assert broken(found) == set()
        assert "c1: whether main held it can't be seen any more" in found["I2"].detail

    def test_a_landing_of_something_else_is_named(self, past: Past, tmp_path: Path) -> None:
        """I3: merging the change again must give the tree that landed."""
        found = look(past, tmp_path, "UPDATE changes SET head = (SELECT head FROM changes WHERE id = 'c1')")
        assert "c2:" in found["I3"].detail
        assert "merges another commit" in found["I3"].detail

    def test_a_merge_that_brought_more_than_the_change_is_named(self, past: Past, tmp_path: Path) -> None:
        """I3: right parents and a tested tree, and yet not what merging gives."""
        before, head, other = (past.git("rev-parse", each) for each in ("main^1", "main^2", "main~1^{tree}"))
        evil = past.git(*PERSON, "commit-tree", other, "-p", before, "-p", head, "-m", "Land", at=past.hub)
        found = look(
            past,
            tmp_path,
            f"UPDATE changes SET landing = json_set(landing, '$.after', '{evil}', '$.tree', '{other}'),"
            f" checks = json_set(checks, '$[0].tree', '{other}') WHERE id = 'c2'",
        )
        assert found["I1"].ok
        assert "c2: merging it again gives tree" in found["I3"].detail

    def test_a_merge_that_cannot_be_made_again_leaves_nothing_in_the_hub(self, past: Past, tmp_path: Path) -> None:
        """I3: a conflict is a finding, and its objects go where they are forgotten."""
        root = past.git("rev-list", "--max-parents=0", "main")
        blob = past.git("hash-object", "-w", "--", str(past.repo / ".git/HEAD"), at=past.hub)
        listing = tmp_path / "listing"
        listing.write_text(f"100644 blob {blob}\ta.txt\n")
        with listing.open() as lines:
            made = subprocess.run(
                ["git", "mktree"], cwd=past.hub, stdin=lines, capture_output=True, text=True, check=True
            )
        other = past.git(*PERSON, "commit-tree", made.stdout.strip(), "-p", root, "-m", "Other", at=past.hub)
        before = past.git("count-objects", at=past.hub)
        changed = f"UPDATE changes SET landing = json_set(landing, '$.before', '{other}') WHERE id = 'c1'"
        found = look(past, tmp_path, changed)
        assert "c1: merging it again gives no tree" in found["I3"].detail
        assert past.git("count-objects", at=past.hub) == before


class TestMessages:
    def test_a_lost_delivery_is_named(self, past: Past, tmp_path: Path) -> None:
        """I4: a message without a delivery to one whom it names."""
        found = look(past, tmp_path, f"DELETE FROM deliveries WHERE reader = '{past.answered}'")
        assert f"is lost for {past.answered}" in found["I4"].detail

    def test_a_doubled_delivery_is_named(self, past: Past, tmp_path: Path) -> None:
        """I4: the same message to the same reader, twice."""
        columns = "sent, message, reader, receipt, run"
        again = f"INSERT INTO deliveries (id, {columns}) SELECT 'again', {columns} FROM deliveries LIMIT 1"
        assert "is delivered twice" in look(past, tmp_path, again)["I4"].detail

    def test_a_delivery_to_a_stranger_is_named(self, past: Past, tmp_path: Path) -> None:
        """I4: someone whom the message does not name."""
        changed = f"UPDATE deliveries SET reader = 'stranger' WHERE reader = '{past.answered}'"
        assert "on its way to stranger, whom it does not name" in look(past, tmp_path, changed)["I4"].detail

    def test_mail_that_nobody_can_get_is_named(self, past: Past, tmp_path: Path) -> None:
        """I4: an open delivery to an agent that is not there."""
        changed = f"UPDATE deliveries SET receipt = 'pending' WHERE reader = '{past.answered}'"
        found = look(past, tmp_path, changed, f"DELETE FROM agents WHERE id = '{past.answered}'")
        assert "waits for someone who is not there" in found["I4"].detail

    def test_a_stuck_delivery_is_named(self, past: Past, tmp_path: Path) -> None:
        """I4: carried by a run that ended well, and yet not read."""
        changed = f"UPDATE deliveries SET receipt = 'delivered' WHERE reader = '{past.answered}'"
        found = look(past, tmp_path, changed)
        assert broken(found) == {"I4", "I12"}
        assert "is stuck: r5 carried it and ended" in found["I4"].detail


class TestOutput:
    @pytest.mark.parametrize(
        ("tampering", "words"),
        [
            ("DELETE FROM chunks WHERE run = 'r1' AND \"offset\" = 7", "r1: bytes 7 to 14 of its output are missing"),
            ('UPDATE chunks SET "offset" = 3 WHERE run = \'r1\' AND "offset" = 7', "r1: bytes 3 to 7 of its output"),
            ("UPDATE chunks SET content = x'00000000000000' WHERE run = 'r1' AND \"offset\" = 7", "not what its file"),
            (
                "DELETE FROM chunks WHERE run = 'r1' AND \"offset\" = 14",
                "14 bytes of its output are kept, and the jour",
            ),
            (
                "INSERT INTO chunks (run, \"offset\", length, at, content) VALUES ('r5', 0, 1, 0, x'41')",
                "but the journal tells only of 0",
            ),
        ],
    )
    def test_bytes_that_are_missing_doubled_or_changed_are_named(
        self, past: Past, tmp_path: Path, tampering: str, words: str
    ) -> None:
        """I5: what is kept is held against itself, the journal and the file."""
        found = look(past, tmp_path, tampering)
        assert broken(found) == {"I5"}
        assert words in found["I5"].detail

    def test_bytes_that_only_the_file_has_are_named(self, past: Past, tmp_path: Path) -> None:
        """I5: nothing that an ended run wrote may be missing; a live one may be ahead of us."""
        said = {run: self._said_more(past, tmp_path, run)["I5"] for run in ("r1", "r4")}
        assert said["r1"].detail == "r1: its file has more than the 21 bytes that are kept"
        assert said["r4"].ok

    def _said_more(self, past: Past, folder: Path, run: str) -> dict[str, Finding]:
        past.processes.started[run].output += b"late"
        try:
            return look(past, folder)
        finally:
            del past.processes.started[run].output[-4:]

    def test_a_file_that_is_gone_is_no_fault(self, past: Past, tmp_path: Path) -> None:
        """I5: then the journal alone says how much there was."""
        kept = past.processes.started.pop("r1")
        try:
            found = look(past, tmp_path)
        finally:
            past.processes.started["r1"] = kept
        assert broken(found) == set()


class TestOwners:
    def test_two_live_runs_of_one_agent_and_task_are_named(self, past: Past, tmp_path: Path) -> None:
        """I6: of an agent, and of a task."""
        found = look(
            past, tmp_path, "UPDATE runs SET outcome = NULL, agent = 'x', task = 't9' WHERE id IN ('r1', 'r2')"
        )
        assert "agent x has r1 and r2 alive" in found["I6"].detail
        assert "task t9 has r1 and r2 alive" in found["I6"].detail

    def test_a_task_that_began_too_early_is_named(self, past: Past, tmp_path: Path) -> None:
        """I7: t1 is done, and what it is said to need is not."""
        found = look(past, tmp_path, "UPDATE tasks SET needs = '[\"t3\", \"t2\"]' WHERE id = 't1'")
        assert found["I7"].detail == "t1 is done, although t3, which it needs, is not done"

    def test_another_daemon_is_named(self, past: Past, tmp_path: Path) -> None:
        """I8: what the daemon knows of rivals is the finding."""
        found = look(past, tmp_path, rivals=["pid 7 has the lock open, too"])
        assert broken(found) == {"I8"}
        assert found["I8"].detail == "pid 7 has the lock open, too"


class TestProcesses:
    def test_a_live_run_without_its_process_is_named_after_a_while(self, past: Past, tmp_path: Path) -> None:
        """I9: one look is not enough: it may be about to be judged."""
        waits = Waits()
        found = look(past, tmp_path, "UPDATE runs SET outcome = NULL WHERE id = 'r1'", waits=waits)
        pid = past.processes.started["r1"].identity.pid
        assert f"r1 of {past.landed} counts as running; pid {pid} is gone" in found["I9"].detail
        assert waits.count * LOOK_EVERY > LEAST_PATIENCE

    def test_a_process_of_an_ended_or_unknown_run_is_named(self, past: Past, tmp_path: Path) -> None:
        """I9: by its pid."""
        pid = past.processes.started["r1"].identity.pid
        past.processes.started["r1"].alive = True
        try:
            ended = look(past, tmp_path)
            unknown = look(past, tmp_path, "DELETE FROM runs WHERE id = 'r1'")
        finally:
            past.processes.started["r1"].alive = False
        words = f"pid {pid} was started by a run that is over"
        assert (ended["I9"].detail, words in unknown["I9"].detail) == (words, True)

    def test_what_was_only_on_its_way_is_no_fault(self, past: Past, tmp_path: Path) -> None:
        """I9: a process that goes while we look again was only leaving."""

        class Leaving(Waits):
            async def __call__(self, seconds: float) -> None:
                past.processes.started["r1"].alive = False
                await super().__call__(seconds)

        past.processes.started["r1"].alive = True
        waits = Leaving()
        assert broken(look(past, tmp_path, waits=waits)) == set()
        assert waits.count == 1


class TestWork:
    def test_a_rescue_that_is_gone_is_named(self, past: Past, tmp_path: Path) -> None:
        """I10: the ref that was said when a worktree was removed must bring it back. What landed is not lost."""
        with (
            without_refs(past, f"refs/windlass/rescue/{past.landed}"),
            without_refs(past, f"refs/windlass/snapshots/{past.landed}"),
        ):
            found = look(past, tmp_path)
        assert broken(found) == {"I10"}
        ref = f"refs/windlass/rescue/{past.landed}/1/tree"
        assert found["I10"].detail == f"{past.landed}: {ref}, under which its work was saved, is gone"

    def test_a_rescue_whose_commit_is_gone_is_named(self, past: Past, tmp_path: Path) -> None:
        """I10: a ref alone is nothing."""
        ref = past.hub / f"refs/windlass/rescue/{past.landed}/1/tree"
        kept = ref.read_text()
        try:
            ref.write_text("1" * 40 + "\n")
            found = look(past, tmp_path)
        finally:
            ref.write_text(kept)
        assert "leads to a commit that is not there" in found["I10"].detail

    def test_a_lost_worktree_is_named_unless_it_is_saved(self, past: Past, tmp_path: Path) -> None:
        """I10: with a snapshot in the hub nothing is lost; without one, it is."""
        with moved(past.home / "worktrees/project-1" / past.failed):
            saved = look(past, tmp_path)
            with without_refs(past, f"refs/windlass/snapshots/{past.failed}"):
                lost = look(past, tmp_path)
        assert broken(saved) == set()
        assert lost["I10"].detail == f"{past.failed}: its worktree is gone, and it is not saved"

    def test_a_worktree_that_was_taken_away_under_a_run_is_a_note(self, past: Past, tmp_path: Path) -> None:
        """I10: someone else did that, and the run's outcome says so."""
        lost = "UPDATE runs SET evidence = '[\"worktree lost\"]' WHERE id = 'r3'"
        with (
            moved(past.home / "worktrees/project-1" / past.failed),
            without_refs(past, f"refs/windlass/snapshots/{past.failed}"),
        ):
            found = look(past, tmp_path, lost)
        assert found["I10"].ok
        assert f"{past.failed}: its worktree was taken away while it ran" in found["I10"].detail

    def test_a_repository_that_no_run_has_worked_in_yet_has_nothing_to_lose(self, past: Past, tmp_path: Path) -> None:
        """I10: a later task brings a further repository, and ends before its first run has begun."""
        further = f"UPDATE agents SET also = '[\"project-9\"]' WHERE id = '{past.failed}'"
        unbegun = f"UPDATE runs SET task = 't0' WHERE agent = '{past.failed}'"
        assert not look(past, tmp_path, further)["I10"].ok
        assert look(past, tmp_path, further, unbegun)["I10"].ok


class TestStore:
    @pytest.mark.parametrize(
        "tampering",
        [
            "UPDATE events SET kind = 'nothing.happened' WHERE seq = 3",
            "DELETE FROM events WHERE seq = 3",
            "UPDATE tasks SET title = 'Something else' WHERE id = 't1'",
        ],
    )
    def test_a_changed_journal_or_row_is_named(self, past: Past, tmp_path: Path, tampering: str) -> None:
        """I12: history can't be rewritten unseen."""
        assert "I12" in broken(look(past, tmp_path, tampering))

    def test_a_task_that_was_done_and_is_not_any_more_is_named(self, past: Past, tmp_path: Path) -> None:
        """I7: done is final, also if the journal agrees with the row."""
        changed = (
            'UPDATE events SET payload = replace(payload, \'"state":"active"\', \'"state":"done"\')'
            " WHERE kind = 'run.starting' AND subject = 'r1'"
        )
        assert "t1 was done, and became landing" in look(past, tmp_path, changed)["I7"].detail
