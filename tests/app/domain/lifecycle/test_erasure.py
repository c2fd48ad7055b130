"""What is left of a contact that was deleted, in any column of any table: its identifier, and nothing else."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from app.database import rows
from app.domain import writes
from app.domain.automations import run_history
from app.domain.contacts import contacts
from app.domain.conversations import messages, notes
from app.domain.deliveries import attempts, deliveries, lanes, sweeps
from app.domain.deliveries.attempts import Dispatch, Outcome
from app.domain.lifecycle import erasures
from app.domain.macros import drafts
from app.domain.work import events
from app.lib import clock, ids
from app.mailbox import serving
from app.models.conversations import Conversation
from app.outbound import Answer, answered
from tests import cast
from tests.automations import carry_on, deltas, make_automation
from tests.cast import KEY, Api, all_of, apply_until, elsewhere, event_bodies, in_another_process, in_threads, one
from tests.talks import locked, make_channel, make_member, make_run, receive, recent

PERSON = {
    "external_id": "zq-external",
    "email": "Zq-Mail@example.com",
    "phone": "+4930775533",
    "first_name": "Zq-Given",
    "last_name": "Zq-Family",
    "tags": ["zq-tag"],
    "custom_fields": {"zq-field": "zq-value"},
}
OLD_EMAIL = "zq-old@example.com"
MARKS = {
    "zq-external",
    "zq-mail@example.com",
    "+4930775533",
    "zq-given",
    "zq-family",
    "zq-tag",
    "zq-field",
    "zq-value",
    "zq-old@example.com",
    "zq-echo",
    "zq-echo-too-late",
    "zq-elsewhere",
    "zq-reference",
    "zq-title",
    "zq-variable",
    "zq-start",
    "zq-saved",
    "zq-answer",
    "zq-failure",
    "zq-log",
    "zq-request",
    "zq-message",
    "zq-template",
    "zq-identity",
    "zq-file",
    "zq-reason",
    "zq-payload",
    "zq-note",
    "zq-draft",
}


def found_in() -> dict[str, set[str]]:
    """Each mark that is stored anywhere, with the columns that have it."""
    found: dict[str, set[str]] = {}
    for mark, column in places():
        found.setdefault(mark, set()).add(column)
    return found


def places() -> Iterator[tuple[str, str]]:
    """The marks that are stored, each with a column that has it, table by table."""
    tables = rows(
        """
        SELECT relname, json_object_agg(attname, CASE atttypid WHEN 'bytea'::regtype
            THEN 'encode(' || quote_ident(attname) || ', ''escape'')' ELSE quote_ident(attname) || '::text' END)
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
            AND attnum > 0 AND NOT attisdropped
        GROUP BY relname
        """
    )
    for table, columns in tables:
        marks = stored(table, f"concat_ws(' ', {', '.join(columns.values())})", list(MARKS))
        for column, text in columns.items() if marks else ():
            for mark in stored(table, text, marks):
                yield mark, f"{table}.{column}"


def stored(table: str, text: str, marks: list[str]) -> list[str]:
    """Those of the marks that this text of any row of the table has."""
    has_it = f"EXISTS (SELECT FROM {table} WHERE strpos(lower({text}), mark) > 0)"
    return all_of(f"SELECT mark FROM unnest(%s) AS mark WHERE {has_it}", marks)


def claim(endpoint_id: str) -> list[Dispatch]:
    rows(
        "UPDATE deliveries SET due_at = now(), next_attempt_at = NULL, leased_until = now()"
        " WHERE coalesce(due_at, next_attempt_at) IS NOT NULL"
    )
    return attempts.claim(lanes.FAST, {endpoint_id: 100})


def answer(dispatches: list[Dispatch], given: Answer) -> None:
    attempts.record([Outcome(dispatch, clock.now(), given) for dispatch in dispatches])


def store_everywhere(api: Api, endpoint_id: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A contact that has left its data wherever a contact can."""
    contact_id = api.contact(**PERSON | {"email": OLD_EMAIL})["id"]
    api.done(api.post("contacts", {name: PERSON[name] for name in ("external_id", "email")}, key=KEY))
    answer(claim(endpoint_id), answered(200, b"thanks, zq-echo", 5))
    lines = [PERSON | {"locale": "en"}, {"external_id": "other", "email": PERSON["email"]}]
    text = "\n".join(map(json.dumps, lines))
    api.done(api.post("contacts/import", data=text, content_type="application/x-ndjson"))
    answer(claim(endpoint_id), answered(302, b"", 5, target="https://shop.example/zq-elsewhere"))
    with monkeypatch.context() as broken:
        broken.setattr(contacts, "_alter", None)
        broken.setattr(contacts, "make", None)
        for path, body in (("contacts", {"email": OLD_EMAIL.upper()}), ("contacts", {"phone": PERSON["phone"]})):
            contacts_upsert = api.post(path, body | {"first_name": "Zq-Given"})
            api.apply()
            assert contacts_upsert.status_code == 202
        api.done(api.post(f"contacts/{contact_id}/tags", {"name": "zq-tag"}))
    api.sale(contact_id, reference="zq-reference")
    api.booking(contact_id, title="zq-title")
    delivery_id = one("SELECT id FROM deliveries WHERE status = 'delivered' LIMIT 1")
    api.done(api.post(f"webhooks/deliveries/{delivery_id}/resend"))
    run_and_talk(api.workspace_id, contact_id)
    leave_in_channels(api.workspace_id, contact_id)
    return str(contact_id)


def run_and_talk(workspace_id: str, contact_id: str) -> None:
    """Lets an automation run for the contact, and the contact have a conversation."""
    automation_id = make_automation(workspace_id)
    variables, waiting = {"code": "zq-variable"}, {"status": "waiting", "due_at": None}
    runs = [
        make_run(workspace_id, contact_id, automation_id=automation_id, variables=variables, **waiting),
        make_run(workspace_id, contact_id, automation_id=automation_id, saved={"a": "zq-saved"}, event={"e": "zq-tag"}),
        make_run(workspace_id, contact_id, answer={"text": "zq-answer"}, status="completed", finished_at=clock.now()),
    ]
    failure = {"code": "template", "detail": "zq-failure", "step": "a"}
    runs.append(make_run(workspace_id, contact_id, failure=failure, status="failed", finished_at=clock.now()))
    for run_id in runs:
        log(workspace_id, run_id, 3)
    rows(
        "INSERT INTO run_requests (id, workspace_id, run_id, wait, key, request) VALUES (%s, %s, %s, 1, %s, %s)",
        (ids.new("req"), workspace_id, runs[0], KEY, '{"body": "zq-request"}'),
    )
    broken = {"contact_id": contact_id, "variables": {"code": "zq-start"}}
    rows(
        "INSERT INTO jobs (id, workspace_id, kind, status, trace_id, due_at, payload, resource_id, broke)"
        """ VALUES (%s, %s, 'automations.start', 'failed', '', NULL, %s, %s, '{"message": "zq-payload"}')""",
        (ids.new("job"), workspace_id, json.dumps(broken), ids.new("run")),
    )
    message = receive(workspace_id, contact_id, make_channel(workspace_id), "zq-message")
    locked(
        workspace_id,
        contact_id,
        lambda unit, contact: notes.add(unit, recent(unit, contact), "zq-note", message.author),
    )
    begun_in = Conversation.get_by_id(message.conversation_id)
    drafts.save(begun_in, make_member(workspace_id), "reply", "zq-draft", KEY)
    rows(
        """
        UPDATE messages SET template = '{"name": "zq-template"}', failure = '{"code": "c", "detail": "zq-failure"}',
            buttons = '[{"id": "1", "label": "zq-message"}]', button_id = 'zq-message',
            provider_payload = '{"order": "zq-payload"}', data = '{"rating": "zq-message"}'
        """
    )


def leave_in_channels(workspace_id: str, contact_id: str) -> None:
    """Lets the contact be known to a provider and have sent a file; what it and others wrote has failed."""
    conversation_id, message_id, channel_id = rows("SELECT conversation_id, id, channel_id FROM messages")[0]
    facts = {"workspace": workspace_id, "contact": contact_id, "channel": channel_id, "message": message_id}
    for statement in (
        "UPDATE conversations SET peer = 'zq-identity', referral = '{\"headline\": \"zq-message\"}'",
        """UPDATE messages SET provider_id = 'zq-identity:1', attachments = '[{"name": "zq-file", "bytes": null}]'""",
        """
        INSERT INTO uploads (id, workspace_id, message_id, name, source, due_at)
        VALUES ('upl_1', %(workspace)s, %(message)s, 'zq-file.pdf', '{"ref": "zq-file"}', now())
        """,
        """
        INSERT INTO uploads (id, workspace_id, run_id, name, source, due_at, expires_at)
        SELECT 'upl_2', %(workspace)s, id, 'zq-file.pdf', '{"ref": "https://x.example/zq-file"}', now(), now()
        FROM runs WHERE contact_id = %(contact)s LIMIT 1
        """,
        """
        INSERT INTO identities (id, workspace_id, contact_id, channel_kind, external_id, address)
        SELECT kind || '_1', %(workspace)s, %(contact)s, kind, 'zq-identity', kind || ':zq-identity'
        FROM unnest('{test,web_chat}'::text[]) AS kind
        """,
        """
        INSERT INTO suggested_merges (id, workspace_id, contact_id, other_id, reason)
        VALUES ('sgm_1', %(workspace)s, 'con_0', %(contact)s, 'zq-reason')
        """,
        """
        INSERT INTO visitors (id, workspace_id, channel_id, key_hash, token_hash, peer)
        VALUES ('zq-identity', %(workspace)s, %(channel)s, '', '', 'zq-identity')
        """,
        """
        INSERT INTO arrivals (id, workspace_id, channel_id, sender_key, key, kind, payload, trace_id, problem, due_at)
        VALUES ('arv_1', %(workspace)s, %(channel)s, %(channel)s || '/zq-identity', '1', 'received',
            '{"text": "zq-payload"}', '', 'ValueError', NULL)
        """,
    ):
        rows(statement, facts)
    for payload in ({"conversation_id": conversation_id}, {"channel_id": channel_id, "to": "zq-identity"}):
        rows(
            "INSERT INTO jobs (id, workspace_id, kind, status, trace_id, due_at, payload, resource_id)"
            " VALUES (%s, %s, 'messages.create', 'failed', '', NULL, %s, 'msg_1')",
            (ids.new("job"), workspace_id, json.dumps(payload | {"text": "zq-payload"})),
        )


def log(workspace_id: str, run_id: str, entries: int) -> None:
    rows(
        """
        INSERT INTO run_steps (id, workspace_id, run_id, number, step, kind, status, at, detail)
        SELECT %s || number, %s, %s, number, 'a', 'wait', 'succeeded', now(), '{"input": "zq-log"}'
        FROM generate_series(1, %s) AS number
        """,
        (ids.new("stp"), workspace_id, run_id, entries),
    )


def test_nothing_of_a_deleted_contact_is_left_in_any_column(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id = api.endpoint()
    contact_id = store_everywhere(api, endpoint_id, monkeypatch)
    under_way = claim(endpoint_id)
    assert under_way
    before = found_in()
    assert MARKS - before.keys() == {"zq-echo-too-late"}
    assert {
        "contacts.search",
        "events.body",
        "jobs.payload",
        "jobs.broke",
        "sales.reference",
        "bookings.title",
        "attempts.response_body",
        "attempts.error",
        "runs.variables",
        "runs.event",
        "runs.saved",
        "runs.answer",
        "runs.failure",
        "run_steps.detail",
        "run_requests.request",
        "messages.text",
        "notes.text",
        "drafts.text",
        "messages.template",
        "messages.failure",
        "messages.attachments",
        "messages.buttons",
        "messages.button_id",
        "messages.provider_payload",
        "messages.data",
        "conversations.referral",
        "messages.provider_id",
        "conversations.peer",
        "identities.address",
        "uploads.source",
        "visitors.peer",
        "arrivals.sender_key",
        "arrivals.payload",
    } <= set().union(*before.values())

    deleting = api.delete(f"contacts/{contact_id}")
    api.patch(f"contacts/{contact_id}", {"last_name": "Zq-Family"})
    api.apply()
    answer(under_way, answered(500, b"zq-echo-too-late", 5))

    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}


def test_what_was_under_way_goes_out_again_without_the_data(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    [late, *_] = claim(endpoint_id)

    api.done(api.delete(f"contacts/{contact_id}"))
    answer([late], answered(204, b"", 5))

    again = {dispatch.claimed.id: dispatch for dispatch in claim(endpoint_id)}
    assert one("SELECT count(*) FROM attempts") == 0
    body: dict[str, Any] = json.loads(again[late.claimed.id].body)
    assert body["data"] == {"contact": {"id": contact_id}}


def test_held_deliveries_stay_held(api: Api) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    claim(endpoint_id)
    rows("UPDATE deliveries SET status = 'held', due_at = NULL")

    api.done(api.delete(f"contacts/{contact_id}"))

    held = "SELECT count(*) FROM deliveries WHERE status = 'held' AND due_at IS NULL"
    assert one(held) == one("SELECT count(*) FROM deliveries WHERE kind <> 'contact.deleted'") > 0


def test_a_contact_with_very_many_events_is_erased(api: Api) -> None:
    contact_id = api.contact(**PERSON)["id"]
    rows(
        """
        INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)
        SELECT 'evt_0000000000000000000000' || lpad(number::text, 4, '0'), workspace_id, kind, contact_id, '', body,
            now()
        FROM events CROSS JOIN generate_series(1, 1200) AS number WHERE kind = 'contact.created'
        """
    )

    api.done(api.delete(f"contacts/{contact_id}"))

    assert found_in() == {}


# What is erased in parts


SEVERAL_PARTS = 1_500


def leave_much(contact_id: str, endpoint_id: str) -> None:
    """Lets much have happened to a contact, all of it delivered, or still to go out, with answers that repeat it."""
    rows(
        """
        INSERT INTO events (id, workspace_id, kind, contact_id, trace_id, body, created_at)
        SELECT 'evt_0000000000000000000000' || lpad(number::text, 4, '0'), workspace_id, kind, contact_id, '', body,
            now()
        FROM events CROSS JOIN generate_series(1, %s) AS number
        WHERE kind = 'contact.created' AND contact_id = %s
        """,
        (SEVERAL_PARTS, contact_id),
    )
    rows(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, contact_id, status, due_at)
        SELECT replace(id, 'evt_', 'dlv_'), workspace_id, id, %s, kind, contact_id,
            CASE WHEN is_due THEN 'pending' ELSE 'delivered' END, CASE WHEN is_due THEN now() END
        FROM (SELECT *, id LIKE '%%[05]' AS is_due FROM events WHERE contact_id = %s AND trace_id = '') AS much
        """,
        (endpoint_id, contact_id),
    )
    rows(
        """
        INSERT INTO attempts (delivery_id, number, at, duration_ms, status, response_body)
        SELECT id, 1, now(), 1, 200, 'zq-echo' FROM deliveries WHERE contact_id = %s AND status = 'delivered'
        """,
        (contact_id,),
    )
    leave_runs(contact_id)


def leave_runs(contact_id: str, number: int = 700) -> None:
    """Lets the contact have had many runs, some of which go on, and many messages."""
    rows(
        """
        INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, trace_id, variables, status, due_at,
            finished_at)
        SELECT 'run_0000000000000000000000' || lpad(number::text, 4, '0'), workspace_id, 'aut_1', 1, id, '',
            '{"code": "zq-variable"}', CASE WHEN number %% 5 = 0 THEN 'waiting' ELSE 'completed' END, NULL,
            CASE WHEN number %% 5 > 0 THEN now() END
        FROM contacts CROSS JOIN generate_series(1, %s) AS number WHERE id = %s
        """,
        (number, contact_id),
    )
    rows(
        """
        INSERT INTO messages (id, workspace_id, conversation_id, contact_id, direction, text, status, author)
        SELECT replace(id, 'run_', 'msg_'), workspace_id, 'cnv_1', contact_id, 'in', 'zq-message', 'received', '{}'
        FROM runs WHERE contact_id = %s
        """,
        (contact_id,),
    )


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many events and deliveries each transaction erases."""
    counted: Counter[str] = Counter()

    def count(real: Callable[[list[str]], Any], found: list[str]) -> Any:
        counted[one("SELECT pg_current_xact_id()::text")] += len(found)
        return real(found)

    for module in (events, deliveries):
        monkeypatch.setattr(module, "erase", partial(count, module.erase))
    return counted


def test_much_is_erased_in_small_transactions_beside_senders_and_sweeps(api: Api, sizes: Counter[str]) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    other_id = api.contact(email="other@example.com", tags=["a", "b", "c"])["id"]
    leave_much(contact_id, endpoint_id)
    deleting = api.delete(f"contacts/{contact_id}")
    ended = threading.Event()

    def erase() -> None:
        try:
            api.apply()
        finally:
            ended.set()

    def send() -> None:
        while not ended.is_set():
            for dispatch in attempts.claim(lanes.FAST, {endpoint_id: 50}):
                answer([dispatch], answered(200, bytes(dispatch.body), 5))
            rows("UPDATE deliveries SET due_at = now(), status = 'pending' WHERE contact_id = %s", (other_id,))

    def sweep() -> None:
        for _ in range(3):
            sweeps.begin(api.workspace_id, endpoint_id, "resend", ["delivered"], "trace-1")
            cast.sweep(endpoint_id)

    before = one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    outcomes = in_threads([erase, send, sweep])

    assert outcomes == [None] * 3
    assert one("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == before
    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}
    assert sizes.total() > 2 * SEVERAL_PARTS
    assert max(sizes.values()) == erasures.PART


def test_a_deletion_has_succeeded_when_everything_is_erased(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "SLICE_SECONDS", 0)
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    leave_much(contact_id, endpoint_id)
    deleting = api.delete(f"contacts/{contact_id}")

    parts = 0
    while api.job(deleting)["status"] != "succeeded":
        assert any(places())
        writes.work(api.workspace_id)
        parts += 1

    assert parts > 2 * SEVERAL_PARTS / erasures.PART
    assert found_in() == {}
    assert api.get(f"contacts/{contact_id}").status_code == 404
    assert [body["kind"] for body in cast.event_bodies(api.workspace_id)].count("contact.deleted") == 1


ERASES = {"events": events, "deliveries": deliveries, "runs": run_history, "messages": messages}


@pytest.mark.parametrize("table", ERASES)
def test_a_worker_that_dies_of_a_part_loses_nothing(api: Api, monkeypatch: pytest.MonkeyPatch, table: str) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    leave_much(contact_id, endpoint_id)
    deleting = api.delete(f"contacts/{contact_id}")
    module = ERASES[table]
    real, left = module.erase, iter(range(2))

    def die(*arguments: Any) -> Any:
        result = real(*arguments)
        if next(left, None) is None:
            os._exit(9)
        return result

    with monkeypatch.context() as dying:
        dying.setattr(module, "erase", die)
        dying.setattr(serving, "SLICE_SECONDS", 60)
        assert in_another_process(lambda: writes.work(api.workspace_id)) == 9
    assert one("SELECT progress->>'table' FROM jobs WHERE kind = 'contacts.delete'") == table
    assert found_in() != {}
    rows("UPDATE jobs SET leased_until = now() WHERE leased_until IS NOT NULL")
    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}


@pytest.mark.parametrize("table", ERASES)
def test_an_erasure_does_not_wait_for_a_row_that_another_transaction_holds(api: Api, table: str) -> None:
    endpoint_id = api.endpoint()
    contact_id = api.contact(**PERSON)["id"]
    leave_much(contact_id, endpoint_id)
    deleting = api.delete(f"contacts/{contact_id}")
    held = one(f"SELECT id FROM {table} WHERE contact_id = %s ORDER BY id OFFSET 300 LIMIT 1", contact_id)

    with elsewhere(lambda: rows(f"SELECT FROM {table} WHERE id = %s FOR NO KEY UPDATE", (held,))):
        reached = "SELECT progress->>'after' FROM jobs WHERE progress->>'table' = %s AND progress->>'after' <> ''"
        apply_until(api.workspace_id, reached, table)
        for _ in range(10):
            writes.work(api.workspace_id)
        assert "" < one(reached, table) < held
        assert api.job(deleting)["status"] == "running"
    api.apply()

    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}


def test_a_write_that_breaks_just_before_the_deletion_keeps_nothing(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    contact_id = api.contact(**PERSON)["id"]
    with monkeypatch.context() as broken:
        broken.setattr(contacts, "represent", None)
        upsert = api.post("contacts", {"email": PERSON["email"], "first_name": "Zq-Given-Too"})
        deleting = api.delete(f"contacts/{contact_id}")
        api.apply()

    assert api.job(upsert)["status"] == "failed"
    assert api.job(deleting)["status"] == "succeeded"
    assert found_in() == {}


# Runs and conversations


def test_the_runs_of_a_deleted_contact_are_cancelled_and_stay_without_its_data(api: Api) -> None:
    contact_id = api.contact(**PERSON)["id"]
    run_and_talk(api.workspace_id, contact_id)
    [automation_id] = all_of("SELECT id FROM automations")
    rows(
        "INSERT INTO enrolments SELECT contact || '/aut', %s, contact, 'aut', 'run_1', 2 FROM unnest(%s) AS contact",
        (api.workspace_id, [contact_id, "con_other"]),
    )

    api.done(api.delete(f"contacts/{contact_id}"))

    ended = rows("SELECT status, reason, due_at FROM runs WHERE contact_id = %s ORDER BY id", (contact_id,))
    assert ended[:2] == [("cancelled", "erased", None)] * 2
    assert [status for status, *_ in ended[2:]] == ["completed", "failed"]
    assert one("SELECT failure::text FROM runs WHERE status = 'failed'") == (
        '{"code" : "template", "detail" : null, "step" : "a"}'
    )
    told = [body for body in event_bodies(api.workspace_id) if body["kind"] == "automation.cancelled"]
    assert [body["data"]["contact"] for body in told] == [{"id": contact_id}] * 2
    assert deltas()[automation_id, "cancelled"] == 2
    assert all_of("SELECT id FROM enrolments") == ["con_other/aut"]
    assert (one("SELECT count(*) FROM run_steps"), one("SELECT count(*) FROM run_requests")) == (0, 0)
    assert rows("SELECT text, author->>'type' FROM messages") == [(None, "contact")]
    assert all_of("SELECT status FROM conversations") == ["closed"]


def test_the_runs_of_other_contacts_stay_as_they_are(api: Api) -> None:
    contact_id, other_id = api.contact(**PERSON)["id"], api.contact(external_id="other")["id"]
    run_id = make_run(api.workspace_id, other_id, variables={"code": "zq-variable"})
    log(api.workspace_id, run_id, 3)

    api.done(api.delete(f"contacts/{contact_id}"))

    assert rows("SELECT status, variables->>'code' FROM runs") == [("waiting", "zq-variable")]
    assert one("SELECT count(*) FROM run_steps") == 3


def test_a_long_log_is_erased_in_parts(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    contact_id = api.contact(**PERSON)["id"]
    for entries in (450, 0, 450):
        log(api.workspace_id, make_run(api.workspace_id, contact_id), entries)
    erased: list[int] = []
    real = run_history.erase_log
    monkeypatch.setattr(run_history, "erase_log", lambda *given: erased.append(real(*given)) or erased[-1])

    api.done(api.delete(f"contacts/{contact_id}"))

    assert found_in() == {}
    assert (sum(erased), max(erased)) == (900, erasures.PART)


def test_an_event_of_a_run_whose_contact_is_gone_has_none_of_its_data(api: Api) -> None:
    contact_id = api.contact(**PERSON)["id"]
    steps = [{"id": "tag", "kind": "add_tag", "tag": "vip"}]
    automation_id = make_automation(api.workspace_id, {"steps": steps})
    run_id = make_run(api.workspace_id, contact_id, automation_id=automation_id, variables={"code": "zq-variable"})
    rows("UPDATE runs SET status = 'queued', due_at = now() WHERE id = %s", (run_id,))
    rows("DELETE FROM contacts WHERE id = %s", (contact_id,))

    carry_on(api.workspace_id)

    assert one("SELECT failure->>'code' FROM runs") == "gone"
    assert "zq-variable" not in str([body for body in event_bodies(api.workspace_id) if "run" in body["data"]])
