"""Random automations, compared with an interpreter after all that callers, contacts, clocks and dying workers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import hypothesis
import pytest
from flask.testing import FlaskClient
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from app import database, mailbox
from app.channels.base import Outcome as Way
from app.channels.base import Verdict
from app.config import settings
from app.database import rows
from app.domain.automations import controls, counts, executions, http_requests, interpreter, version_counts
from app.domain.automations.steps import STEP_KINDS, start_automation
from app.domain.channels import fetches
from app.domain.channels.fetches import Fetched
from app.domain.conversations import sending_checks
from app.domain.triggers import run_states
from app.domain.work.request_attempts import Dispatch, Outcome
from app.lib import ids, json
from app.mailbox import Claimed
from app.models.automations import Automation
from app.models.runs import STATUSES
from app.outbound import Reason, answered, failed
from tests import cast
from tests.app.domain.automations.run_definitions import DRAWN, MEMBER, TAGS, definition, some_exits, some_goal
from tests.app.domain.automations.run_interpreter import PLAIN, UNFINISHED, World
from tests.automations import carry_on
from tests.cast import all_of, one
from tests.talks import close, make_channel, make_member, receive, write

# Few, so that random runs meet them.
LIMITS = {"most_at_once": 3, "most_identical": 3, "most_depth": 3}
# What happens, and how often.
HAPPENINGS = {
    **{"publish": 1, "publish_again": 1, "control": 2, "write": 8, "reply": 4, "intervene": 1, "jump": 3},
    **{"respond": 2, "fetch": 8, "fold": 1, "work": 8, "die": 2, "vanish": 3, "come_back": 3},
}
# No run waits for its files any longer.
LATE = r"""
    UPDATE runs SET saved = regexp_replace(saved::text, '("until": ?")[^"]+', '\12026-01-01T00:00:00Z', 'g')::json
    WHERE workspace_id = %s
"""
WRITES = ("start", "start", "start", "tag", "untag", "cancel", "resume", "replay")
SEEDS = st.integers(0, 2**64)


class Killed(BaseException):
    """What a worker dies of."""


class Reaper:
    """Kills a worker: from some statement on, nothing that it says reaches the database."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._left: int | None = None
        real = database.Database._execute

        def execute(self_: Any, sql: Any, parameters: Any) -> Any:
            if self._left is not None:
                if self._left == 0:
                    raise Killed
                self._left -= 1
            return real(self_, sql, parameters)

        patch.setattr(database.Database, "_execute", execute)

    @contextmanager
    def after(self, statements: int | None) -> Iterator[None]:
        """Within the block, kills after so many statements; never if None."""
        before, self._left = self._left, statements
        try:
            yield
        finally:
            self._left = before

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within the block, statements are neither counted nor stopped."""
        with self.after(None):
            yield


class Runs(RuleBasedStateMachine):
    """The product on one side, the interpreter's world on the other."""

    def __init__(self, client: FlaskClient, reaper: Reaper) -> None:
        super().__init__()
        self.api, self.reaper = cast.found(client, "Ours"), reaper
        self.workspace_id = self.api.workspace_id
        self.member_id = make_member(self.workspace_id)
        self.channels = [make_channel(self.workspace_id) for _ in range(2)]
        self.world = World(self.channels, self.member_id, **LIMITS)
        self.random = Random()
        self.stale: list[Sequence[Claimed]] = []
        for number, reached in enumerate([{"phone": "+4930123456"}, {}]):
            contact_id = self.api.contact(external_id=f"c-{number}", **reached)["id"]
            self.world.add_contact(contact_id, **reached)
            self.world.contacts[contact_id]["events"].append({"kind": "contact.created", "tag": None, "run": None})
            self.world.contacts[contact_id]["events"][0] |= {"depth": 0, "number": -1, "transaction": -1}

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        self.random = Random(seed)
        for _ in range(3):
            self.publish()

    # Chosen by the seed: hypothesis makes most examples of parts of others, and then not much happens in them.
    @rule()
    def happen(self) -> None:
        [name] = self.random.choices(list(HAPPENINGS), list(HAPPENINGS.values()))
        hypothesis.note(f"{name}")
        getattr(self, name)()

    # Automations

    def publish(self) -> None:
        if len(self.world.automations) == 4:
            return
        drawn = self._drawn(list(self.world.automations))
        exits, reentry = some_exits(self.random), self.random.choice([None, "every", "every", "after_finish", "once"])
        goal = some_goal(self.random)
        body = {"name": "Welcome", "definition": drawn, "reentry": reentry, "exits": exits, "goal": goal}
        hypothesis.note(f"publish {body}")
        job = self.api.done(self.api.post("automations", body))
        automation = {"id": job["resource"]["id"], "status": "draft", "version": None, "definitions": {}}
        self.world.automations[automation["id"]] = automation | {**{"reentry": reentry, "exits": exits, "goal": goal}}
        self._publish(self.world.automations[automation["id"]], drawn)

    def _drawn(self, startable: Sequence[str]) -> dict[str, Any]:
        drawn = json.dumps(definition(self.random, startable)).decode()
        found: dict[str, Any] = json.loads(drawn.replace(MEMBER, self.member_id))
        return found

    def publish_again(self) -> None:
        automation = self._automation()
        earlier = [each for each in self.world.automations if each < automation["id"]]
        drawn = self._drawn(earlier)
        hypothesis.note(f"publish again {automation['id']} {drawn}")
        self._write("automations.update", {"definition": drawn}, automation["id"])
        self._publish(automation, drawn)

    def control(self) -> None:
        automation, verb = self._automation(), self.random.choice(["pause", "resume", "resume", "unpublish"])
        was = automation["status"]
        self._write(f"automations.{verb}", {}, automation["id"])
        if (verb, was) == ("pause", "published"):
            automation["status"] = "paused"
        elif (verb, was) == ("resume", "paused"):
            automation["status"] = "published"
            self.world.release(automation)
        elif verb == "unpublish" and was != "unpublished":
            automation.update(status="unpublished", version=None)
            self.world.release(automation)
        controls.release_held()

    # Writes, messages, time

    def write(self) -> None:
        """Several writes that one transaction applies."""
        for _ in range(self.random.randint(1, 4)):
            kind, word = self.random.choice(WRITES), self.random.choice(TAGS)
            hypothesis.note(f"{kind} {word}")
            getattr(self, f"_accept_{kind}")(self._contact(), word)
        self.world.commit()
        self._settle()

    def reply(self) -> None:
        contact, channel, text = self._contact(), self.random.choice(self.channels), self.random.choice((*TAGS, "7"))
        button_id = self.random.choice((None, None, "x", "y", "z"))
        receive(self.workspace_id, contact["id"], channel, text, button_id)
        self.world.receive(contact, channel, text, button_id)
        self._end()

    def intervene(self) -> None:
        """A member writes in the conversation, or closes it."""
        contact, text = self._contact(), self.random.choice(TAGS)
        if not contact["conversations"]:
            return
        if self.random.random() < 0.5:
            close(self.workspace_id, contact["id"])
            self.world.close(self.world.most_recent(contact))
        else:
            write(self.workspace_id, contact["id"], self.member_id, text)
            self.world.write_as_member(contact, text)
        self._end()

    def jump(self) -> None:
        hours = self.random.randint(1, 3)
        sooner = "UPDATE runs SET resume_at = resume_at - %s * interval '1 hour' WHERE workspace_id = %s"
        rows(sooner, (hours, self.workspace_id))
        rows(LATE, (self.workspace_id,))
        while mailbox.wake_and_ring(run_states.WAITING):
            pass
        for run in self.world.runs:
            for file in run["files"].values():
                file["is_late"] = True
            if run["hours"] is not None:
                run["hours"] -= hours
                if run["hours"] <= 0:
                    self.world.wake(run)

    def respond(self) -> None:
        """Servers answer; maybe first to workers whose leases have ended."""
        late = self._requests() if self.random.random() < 0.5 else []
        dispatches = self._requests()
        waiting = {run["id"]: run for run in self.world.runs if (run["waits_for"], run["answer"]) == ("response", None)}
        assert {each.claimed.carried.run_id for each in dispatches} == waiting.keys()
        assert http_requests.record([Outcome(each, answered(200)) for each in late]) == []
        for dispatch in dispatches:
            self._answer(dispatch, waiting[dispatch.claimed.carried.run_id])

    def fetch(self) -> None:
        """Files come, or do not; maybe workers whose leases have ended say first that theirs never will."""
        late = self._files() if self.random.random() < 0.5 else []
        claimed = self._files()
        asking = {run["id"]: run for run in self.world.runs if run["status"] in UNFINISHED and _is_asking(run)}
        assert {each.carried.run_id for each in claimed} == asking.keys()
        fetches.record([Fetched(each, verdict=fetches.TOO_LARGE) for each in late])
        for each in late:
            self.world.look(asking[each.carried.run_id])
        for each in claimed:
            outcome = self.random.choice(["here", "here", "here", "gone", "coming"])
            verdict = {"gone": fetches.TOO_LARGE, "coming": Verdict(Way.LATER, code="timeout")}.get(outcome)
            fetches.record([Fetched(each, None if verdict else b"%PDF-1.7", verdict)])
            self.world.fetch(asking[each.carried.run_id], outcome)
        while mailbox.wake_and_ring(run_states.WAITING):
            pass

    def fold(self) -> None:
        counts.fold()

    # Workers

    def work(self) -> None:
        self._work(partial(carry_on, self.workspace_id))

    def die(self) -> None:
        if self._deaths() < 2:
            with suppress(Killed), self.reaper.after(self.random.randint(0, 40)):
                self._work(partial(carry_on, self.workspace_id))
            self._end_leases()

    def vanish(self) -> None:
        """A worker claims runs and is not seen again until its lease has ended."""
        self.stale.append(mailbox.claim(run_states.MAIL, {self.workspace_id: self.random.randint(1, 3)}, 5))
        self._end_leases()

    def come_back(self) -> None:
        batch = self.stale.pop() if self.stale else []
        present = dict(rows("SELECT id, claim FROM runs WHERE workspace_id = %s", (self.workspace_id,)))
        carried = self._work(lambda: executions._work_on(batch) if batch else None)
        assert set(carried) <= {each.id for each in batch if present[each.id] == each.claim}

    # What must be so after each

    @invariant()
    def contacts_are_equal(self) -> None:
        for contact in self.world.contacts.values():
            found = "SELECT tags, first_name, email, phone, opted_out, custom_fields FROM contacts WHERE id = %s"
            [(tags, *plain, opted_out, custom)] = rows(found, (contact["id"],))
            fields = {**dict(zip(PLAIN, (*plain, opted_out or None), strict=True)), **custom}
            assert tags == sorted(contact["tags"])
            assert {name: value for name, value in fields.items() if value is not None} == contact["fields"]
            told = "SELECT kind, convert_from(body, 'UTF8')::json->'data'->>'tag', run_id, depth FROM events"
            assert rows(f"{told} WHERE contact_id = %s ORDER BY id", (contact["id"],)) == [
                (each["kind"], each["tag"], each["run"] and each["run"]["id"], each["depth"])
                for each in contact["events"]
            ]
            said = "SELECT direction, text, buttons, button_id, run_id, json_array_length(attachments) FROM messages"
            assert rows(f"{said} WHERE contact_id = %s ORDER BY id", (contact["id"],)) == [
                (
                    *(each["direction"], each["text"], each["buttons"], each["button_id"]),
                    *(each["run"] and each["run"]["id"], int(each["file"] is not None)),
                )
                for each in contact["messages"]
            ]
            talks = (
                "SELECT status, held_at IS NOT NULL, channel_id, labels, snoozed_until IS NOT NULL, assignee_id"
                " FROM conversations WHERE contact_id = %s ORDER BY id"
            )
            assert rows(talks, (contact["id"],)) == [
                (
                    *(each["status"], each["held"], each["channel"], sorted(each["labels"])),
                    *(each["snoozed"] is not None, each["assignee"]),
                )
                for each in contact["conversations"]
            ]
            noted = "SELECT channel_id, text FROM notes JOIN conversations ON conversations.id = conversation_id"
            assert sorted(rows(f"{noted} WHERE notes.contact_id = %s", (contact["id"],))) == sorted(
                (each["channel"], text) for each in contact["conversations"] for text in each["notes"]
            )

    @invariant()
    def runs_are_equal(self) -> None:
        found = rows(
            """
            SELECT id, contact_id, automation_id, version, status, reason, failure->>'code', waits_for,
                due_at IS NOT NULL, resume_at IS NOT NULL, depth, is_released, goal_reached_at IS NOT NULL
            FROM runs WHERE workspace_id = %s ORDER BY id
            """,
            (self.workspace_id,),
        )
        assert found == [
            (
                *(run["id"], run["contact"]["id"], run["automation"]["id"], run["version"], run["status"]),
                *(run["reason"], run["failure"], run["waits_for"], run["due"], run["hours"] is not None),
                *(run["depth"], run["released"], run["has_reached"]),
            )
            for run in self.world.runs
        ]
        log = "SELECT run_id, number, step, kind, status FROM run_steps WHERE workspace_id = %s ORDER BY run_id, number"
        assert rows(log, (self.workspace_id,)) == [(run["id"], *each) for run in self.world.runs for each in run["log"]]

    @invariant()
    def counts_are_exact(self) -> None:
        expected = self.world.counts + Counter((run["automation"]["id"], run["status"]) for run in self.world.runs)
        counted = counts.of(list(self.world.automations))
        assert expected == {
            (automation_id, key): amount
            for automation_id, each in counted.items()
            for key, amount in each.items()
            if amount and not key.startswith("goal_after:")
        }
        enrolled = rows(
            "SELECT contact_id, automation_id, run_id, active FROM enrolments WHERE workspace_id = %s",
            [self.workspace_id],
        )
        entered = [run for run in self.world.runs if run["entered"]]
        latest = {(run["contact"]["id"], run["automation"]["id"]): run["id"] for run in entered}
        active = Counter(
            (run["contact"]["id"], run["automation"]["id"]) for run in entered if run["status"] in UNFINISHED
        )
        assert sorted(enrolled) == sorted((*key, run_id, active[key]) for key, run_id in latest.items())

    @invariant()
    def counts_of_versions_are_exact(self) -> None:
        waiting = [run for run in self.world.runs if run["waits_for"] is not None]
        passed = self.world.passed + Counter((*_version_of(run), run["todo"][0]["id"], "waiting") for run in waiting)
        runs = Counter((*_version_of(run), run["status"]) for run in self.world.runs)
        goals = Counter(_version_of(run) for run in self.world.runs if run["has_reached"])
        for automation_id, automation in self.world.automations.items():
            for version in automation["definitions"]:
                read = version_counts.read(Automation.find(self.workspace_id, automation_id), version)
                assert read["runs"] == {status: runs[automation_id, version, status] for status in STATUSES}
                assert read["goals"] == goals[automation_id, version]
                for step_id, counted in read["steps"].items():
                    arms, arm_goals = counted.pop("arms", None), counted.pop("arm_goals", None)
                    assert counted == {key: passed[automation_id, version, step_id, key] for key in counted}
                    assert arms is None or sum(arms.values()) <= counted["left"]
                    assert arm_goals is None or sum(arm_goals.values()) <= read["goals"]

    @invariant()
    def no_run_is_stuck_and_one_waits_for_a_reply(self) -> None:
        stuck = """
            SELECT id FROM runs WHERE workspace_id = %s AND finished_at IS NULL AND due_at IS NULL AND resume_at IS NULL
                AND NOT EXISTS (SELECT FROM run_requests WHERE run_id = runs.id AND wait = runs.wait)
                AND NOT (status = 'held' AND reason = 'pause' AND EXISTS (
                    SELECT FROM automations WHERE id = automation_id AND automations.status = 'paused'))
                AND NOT (waits_for = 'member' AND EXISTS (
                    SELECT FROM conversations WHERE id = conversation_id AND held_at IS NOT NULL))
                AND NOT (waits_for = 'run' AND EXISTS (
                    SELECT FROM runs other WHERE other.parent_id = runs.id AND other.finished_at IS NULL))
        """
        assert rows(stuck, (self.workspace_id,)) == []
        several = """
            SELECT conversation_id FROM runs
            WHERE workspace_id = %s AND waits_for = 'reply' AND answer IS NULL AND resume_at IS NOT NULL
            GROUP BY conversation_id HAVING count(*) > 1
        """
        assert rows(several, (self.workspace_id,)) == []

    def _publish(self, automation: Any, drawn: Any) -> None:
        self._write("automations.publish", {}, automation["id"])
        number = len(automation["definitions"]) + 1
        status = "paused" if automation["status"] == "paused" else "published"
        automation["definitions"][number] = drawn
        automation.update(status=status, version=number)

    def _accept_start(self, contact: Any, word: str) -> None:
        automation, run_id, variables = self._automation(), ids.new("run"), {"word": word}
        payload = {"automation_id": automation["id"], "contact_id": contact["id"], "variables": variables}
        cast.accept(self.workspace_id, "automations.start", payload, run_id)
        self.world.start(automation, contact, run_id, variables)

    def _accept_tag(self, contact: Any, tag: str) -> None:
        cast.accept(self.workspace_id, "contacts.add_tag", {"name": tag}, contact["id"])
        self.world.tag(contact, tag, is_added=True)

    def _accept_untag(self, contact: Any, tag: str) -> None:
        cast.accept(self.workspace_id, "contacts.remove_tag", {"name": tag}, contact["id"])
        self.world.tag(contact, tag, is_added=False)

    def _accept_cancel(self, *_: Any) -> None:
        if run := self._run():
            cast.accept(self.workspace_id, "runs.cancel", {"contact_id": run["contact"]["id"]}, run["id"])
            if run["status"] in UNFINISHED:
                self.world.finish(run, "cancelled", "request")

    def _accept_resume(self, *_: Any) -> None:
        if run := self._run():
            cast.accept(self.workspace_id, "runs.resume", {"contact_id": run["contact"]["id"]}, run["id"])
            self.world.resume(run)

    def _accept_replay(self, *_: Any) -> None:
        if run := self._run():
            contact, automation, run_id = run["contact"], run["automation"], ids.new("run")
            payload = {"run_id": run["id"], "contact_id": contact["id"], "automation_id": automation["id"]}
            cast.accept(self.workspace_id, "runs.replay", payload, run_id)
            if run["status"] not in UNFINISHED and automation["version"] is not None:
                alike = {name: run[name] for name in ("version", "variables", "event")}
                self.world.begin(contact, automation, id=run_id, **alike)

    def _automation(self) -> Any:
        return self.random.choice(list(self.world.automations.values()))

    def _contact(self) -> Any:
        return self.random.choice(list(self.world.contacts.values()))

    def _run(self) -> Any:
        """One of the runs that a caller can know of: those that have a name."""
        named = [run for run in self.world.runs if run["id"]]
        return self.random.choice(named) if named else None

    def _requests(self) -> Sequence[Dispatch]:
        due = "UPDATE run_requests SET due_at = now(), next_attempt_at = NULL, leased_until = NULL"
        rows(f"{due} WHERE workspace_id = %s", (self.workspace_id,))
        return http_requests.claim({self.workspace_id: 1_000}).dispatches

    def _files(self) -> Sequence[Claimed]:
        """Claims the files that unfinished runs wait for, and has the others given up."""
        due = "UPDATE uploads SET due_at = now(), next_attempt_at = NULL, leased_until = NULL"
        rows(f"{due} WHERE workspace_id = %s AND coalesce(due_at, next_attempt_at) IS NOT NULL", (self.workspace_id,))
        found = fetches.claim(dict.fromkeys(self.channels, 1_000))
        fetches.record(found.settled)
        return [each.claimed for each in found.dispatches]

    def _answer(self, dispatch: Dispatch, run: Any) -> None:
        answer = self.random.choice(["whole", "whole", "refused", "late"])
        if answer == "late":
            assert http_requests.record([Outcome(dispatch, failed(Reason.LATE, "30 seconds", 30_000))]) == []
            run["tries"] += 1
            if run["tries"] == 3:
                self.world.wake(run, answer={"body": "", "error": {"code": "timeout"}})
        elif answer == "refused":
            assert http_requests.record([Outcome(dispatch, answered(400, b"No"))]) == []
            self.world.wake(run, answer={"body": "No", "error": {"code": "status"}})
        else:
            assert http_requests.record([Outcome(dispatch, answered(200, b'{"tag": "b"}'))]) == []
            self.world.wake(run, answer={"body": {"tag": "b"}, "error": None})

    def _write(self, kind: str, payload: Mapping[str, Any], resource_id: str) -> None:
        cast.accept(self.workspace_id, kind, dict(payload), resource_id)
        self._settle()

    def _end(self) -> None:
        self.world.commit()
        self._settle()

    def _settle(self) -> None:
        """Does what is left to the fan-out, and learns the names of new runs and which conversation is used last."""
        cast.apply(self.workspace_id)
        known = {run["id"] for run in self.world.runs}
        new = rows(
            "SELECT id, contact_id, automation_id FROM runs WHERE workspace_id = %s ORDER BY id", (self.workspace_id,)
        )
        unnamed = [run for run in self.world.runs if run["id"] is None]
        found = [each for each in new if each[0] not in known]
        assert [each[1:] for each in found] == [(run["contact"]["id"], run["automation"]["id"]) for run in unnamed]
        for run, (run_id, *_) in zip(unnamed, found, strict=True):
            run["id"] = run_id
        for contact in self.world.contacts.values():
            self._settle_recency(contact)

    def _settle_recency(self, contact: Any) -> None:
        """Of conversations that one transaction has used, the database's time decides."""
        latest = """
            SELECT channel_id FROM conversations WHERE contact_id = %s
            ORDER BY coalesce(last_message_at, created_at) DESC, id DESC LIMIT 1
        """
        if channel := all_of(latest, contact["id"]):
            [found] = [each for each in contact["conversations"] if each["channel"] == channel[0]]
            assert found["at"] == max(each["at"] for each in contact["conversations"])
            for each in contact["conversations"]:
                each["at"] -= 0.1 * (each is not found and each["at"] == found["at"])

    def _work(self, work: Callable[[], object]) -> list[str]:
        """Works; the interpreter does the same as each transaction that was committed. Returns the runs carried on."""
        carried: list[str] = []
        everything: list[str] = []
        real_carry_out, real_carry_on = executions._carry_out, executions._carry_on

        def carry_on(claimed: Claimed, *further: Any, **options: Any) -> Any:
            if (interpreter := real_carry_on(claimed, *further, **options)) is not None:
                carried.append(claimed.id)
            return interpreter

        def carry_out(batch: Sequence[Claimed]) -> list[Claimed]:
            carried.clear()
            busy = real_carry_out(batch)
            with self.reaper.away():
                self._follow(carried)
                everything.extend(carried)
            return busy

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(executions, "_carry_on", carry_on)
            patch.setattr(executions, "_carry_out", carry_out)
            work()
        return everything

    def _follow(self, carried: Sequence[str]) -> None:
        named = {run["id"]: run for run in self.world.runs}
        for run_id in carried:
            self.world.carry_on(named[run_id])
        self._end()

    def _end_leases(self) -> None:
        ended = "UPDATE runs SET leased_until = now() - interval '1 second' WHERE leased_until > now()"
        rows(f"{ended} AND workspace_id = %s", (self.workspace_id,))

    def _deaths(self) -> int:
        return int(one("SELECT coalesce(max(deaths), 0) FROM runs WHERE workspace_id = %s", self.workspace_id))


def _version_of(run: Any) -> tuple[str, int]:
    return run["automation"]["id"], run["version"]


def _is_asking(run: Any) -> bool:
    return any(file["state"] == "coming" for file in run["files"].values())


@pytest.fixture
def directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A directory for files."""
    monkeypatch.setenv("MEDIA_DIR", str(tmp_path))
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.usefixtures("directory")
def test_runs_do_what_the_interpreter_says(empty: None, client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MOST_AT_ONCE", LIMITS["most_at_once"])
    monkeypatch.setattr(sending_checks, "MOST_IDENTICAL", LIMITS["most_identical"])
    monkeypatch.setattr(run_states, "MOST_DEPTH", LIMITS["most_depth"])
    monkeypatch.setattr(start_automation, "MOST_DEPTH", LIMITS["most_depth"])
    run_state_machine_as_test(
        partial(Runs, client, Reaper(monkeypatch)),
        # Each example takes as long as many of a function.
        settings=hypothesis.settings(max_examples=hypothesis.settings().max_examples // 8, stateful_step_count=25),
    )


def test_every_kind_of_step_is_drawn() -> None:
    assert set(DRAWN) == STEP_KINDS.keys()
