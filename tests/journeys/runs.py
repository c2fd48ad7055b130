"""Runs in stories: an automation of many kinds of steps, its starts, and the account of what each step did."""

from __future__ import annotations

import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psycopg2

from tests.journeys.audit import rows
from tests.journeys.faults import let_pass
from tests.journeys.shops import Caller, NoAnswer, Shop
from tests.stack.receiver import Receiver
from tests.stack.stack import Stack

GIVE_UP_SECONDS = 60
PAUSE_BEFORE_RETRY_SECONDS = 0.1
CALLS = "/calls"  # below it, requests of runs: each run has a path of its own
NUMBER = "{{ trigger.variables.number }}"


@dataclass(frozen=True)
class Started:
    """A run that was started with this number, unique in its workspace."""

    number: int
    run_id: str
    contact_id: str

    @property
    def is_odd(self) -> bool:
        return self.number % 2 == 1

    @property
    def path(self) -> str:
        return f"{CALLS}/{self.number}"

    @property
    def tags(self) -> list[str]:
        return [f"{what}-{self.number}" for what in ("begun", "odd" if self.is_odd else "even", "ended")]

    @property
    def echo(self) -> str:
        """The tag that the run which it starts adds."""
        return f"echo-{self.number}"

    @property
    def log(self) -> Counter[tuple[str, str]]:
        """Its log, by step and status, without what a request came to."""
        branch = ("odd", "stage") if self.is_odd else ("even",)
        done = ("begun", "pause", "which", *branch, "keep", "arms", *["rounds", "round"] * 2, "rounds", "tell", "ended")
        waits = ("pause", "call", "heard", "sub")
        done = (*done, "name", "start", "heard", "sub")
        return Counter([*((step, "succeeded") for step in done), *((step, "waiting") for step in waits)])


def publish_walk(shop: Shop, receiver: Receiver, seconds: int, name: str = "Journey") -> str:
    """Publishes an automation of nearly all kinds of steps, and what its runs start; returns its identifier."""
    echo = publish(shop, [{"id": "echo", "kind": "add_tag", "tag": f"echo-{NUMBER}"}], f"{name}: echo")
    answer = publish(shop, [{"id": "end", "kind": "stop", "result": {"number": NUMBER}}], f"{name}: answer")
    return publish(shop, _steps(receiver, seconds, echo, answer), name)


def _steps(receiver: Receiver, seconds: int, echo: str, answer: str) -> list[dict[str, Any]]:
    """Steps with effects that can be counted: tags of the run's number, a field, a request and a message.

    They start a run of each of the other automations: they wait for what the first does, and for the end of the second.
    """
    number = {"number": NUMBER}
    return [
        {"id": "begun", "kind": "add_tag", "tag": f"begun-{NUMBER}"},
        {"id": "pause", "kind": "wait", "seconds": seconds},
        {
            "id": "which",
            "kind": "branch",
            "if": {"field": "trigger.variables.is_odd", "is": "equals", "value": True},
            "then": [
                {"id": "odd", "kind": "add_tag", "tag": f"odd-{NUMBER}"},
                {"id": "stage", "kind": "set_field", "field": "stage", "value": f"stage-{NUMBER}"},
            ],
            "else": [{"id": "even", "kind": "add_tag", "tag": f"even-{NUMBER}"}],
        },
        {"id": "keep", "kind": "set_variable", "name": "number", "value": NUMBER},
        {"id": "arms", "kind": "split", "arms": [{"name": name, "percent": 50, "steps": []} for name in ("a", "b")]},
        {
            "id": "rounds",
            "kind": "repeat",
            "times": 2,
            "steps": [{"id": "round", "kind": "set_field", "field": "round", "value": "{{ steps.rounds.index }}"}],
        },
        {
            "id": "call",
            "kind": "http_request",
            "method": "POST",
            "address": f"{receiver.url(CALLS)}/{NUMBER}",
            "body": {"contact": "{{ contact.id }}"},
        },
        {"id": "tell", "kind": "send_message", "text": f"Message {NUMBER}"},
        {"id": "name", "kind": "set_variable", "name": "echo", "value": f"echo-{NUMBER}"},
        {"id": "start", "kind": "start_automation", "automation_id": echo, "variables": number},
        {
            "id": "heard",
            "kind": "wait_for_event",
            "event": "tag.added",
            "if": {"field": "trigger.event.data.tag", "is": "equals", "other": "run.variables.echo"},
        },
        {"id": "sub", "kind": "start_automation", "automation_id": answer, "variables": number, "wait": True},
        {"id": "ended", "kind": "add_tag", "tag": f"ended-{NUMBER}"},
    ]


def publish(
    shop: Shop,
    definition_steps: Sequence[Mapping[str, Any]],
    name: str = "Journey",
    triggers: Sequence[Mapping[str, Any]] = (),
    **fields: Any,
) -> str:
    """Creates and publishes an automation, without triggers one that only starts begin; returns its identifier."""
    caller, definition = shop.caller(), {"triggers": triggers, "steps": definition_steps}
    automation = caller.apply("POST", "automations", {"name": name, "definition": definition, **fields}).data["id"]
    caller.apply("POST", f"automations/{automation}/publish")
    return str(automation)


def make_visitors(stack: Stack, shop: Shop, number: int) -> list[str]:
    """Contacts of the shop that have written in its web chat."""
    caller = shop.caller()
    contacts = [caller.apply("POST", "contacts", {"external_id": f"walker-{n}"}).data["id"] for n in range(number)]
    rows(stack, _CHAT, f"chn_{shop.workspace_id[-26:]}", shop.workspace_id, contacts)
    return contacts


def make_sleepers(stack: Stack, workspace_id: str, automation: str, number: int) -> None:
    """Makes that many contacts, each with a run that waits in the step `pause` for another day, as old as can be."""
    made = {"workspace": workspace_id, "automation": automation, "number": number}
    with closing(psycopg2.connect(stack.postgres.url)) as connection, connection, connection.cursor() as cursor:
        cursor.execute(_SLEEPERS, made)


def make_due(stack: Stack, automation: str) -> None:
    """Ends the waits of all its runs, at once."""
    rows(
        stack,
        "UPDATE runs SET resume_at = now() WHERE automation_id = %s AND resume_at > now() RETURNING 1",
        automation,
    )


def statuses(stack: Stack, automation: str) -> Counter[str]:
    """The automation's runs by status."""
    return Counter(
        dict(rows(stack, "SELECT status, count(*) FROM runs WHERE automation_id = %s GROUP BY 1", automation))
    )


def start(caller: Caller, automation: str, contact_id: str, number: int) -> Started:
    """Starts a run; repeats the request with its key until it is accepted."""
    document = {"contact_id": contact_id, "variables": {"number": number, "is_odd": number % 2 == 1}}
    headers, ends = {"Idempotency-Key": str(uuid.uuid4())}, time.monotonic() + GIVE_UP_SECONDS
    while True:
        try:
            answer = caller.call("POST", f"automations/{automation}/start", document, headers)
        except NoAnswer:
            answer = None
        if answer is not None and answer.status != 503:
            assert answer.status == 202, answer
            return Started(number, answer.data["resource"]["id"], contact_id)
        assert time.monotonic() < ends, f"Not accepted in {GIVE_UP_SECONDS} seconds"
        let_pass(PAUSE_BEFORE_RETRY_SECONDS)


def calls(receiver: Receiver) -> int:
    """How many requests of runs have arrived."""
    return sum(count for path, count in list(receiver.counts.items()) if path.startswith(f"{CALLS}/"))


def unfinished_runs(stack: Stack, shop: Shop) -> int:
    """Starts that are not applied yet, and runs that have not ended."""
    query = """
        SELECT (SELECT count(*) FROM jobs
                WHERE workspace_id = %s AND kind = 'automations.start' AND status IN ('queued', 'running'))
            + (SELECT count(*) FROM runs WHERE workspace_id = %s AND finished_at IS NULL)
    """
    return int(rows(stack, query, shop.workspace_id, shop.workspace_id)[0][0])


def flaws(stack: Stack, shop: Shop, receiver: Receiver, started: Sequence[Started]) -> Iterator[str]:
    """What is wrong with the shop's runs, which have ended: each step must have taken effect once.

    A request may have arrived several times, all under one key.
    """
    by_id = {each.run_id: each for each in started}
    own = "SELECT id, status FROM runs WHERE workspace_id = %s AND parent_id IS NULL"
    ended = dict(rows(stack, own, shop.workspace_id))
    others = rows(stack, "SELECT status FROM runs WHERE workspace_id = %s AND parent_id IS NOT NULL", shop.workspace_id)
    if others != [("completed",)] * 2 * len(started):
        yield f"runs that runs have started: {Counter(others)} for {len(started)}"
    if ended != dict.fromkeys(by_id, "completed"):
        yield f"runs: {Counter(ended.values())} of {len(started)}, {len(ended.keys() ^ by_id.keys())} lost or unknown"
    if left := rows(stack, "SELECT id FROM run_requests WHERE workspace_id = %s", shop.workspace_id):
        yield f"{len(left)} requests are left"
    logs, events, messages = _logs(stack, shop), _events(stack, shop), _messages(stack, shop)
    keys: dict[str, list[str]] = defaultdict(list)
    for received in list(receiver.received):
        if received.path.startswith(f"{CALLS}/"):
            keys[received.path].append(received.headers["Idempotency-Key"])
    for run_id, each in by_id.items():
        yield from _flaws_of(each, logs[run_id], events[run_id], messages[run_id], keys[each.path])
    yield from _flaws_of_contacts(stack, shop, started)
    yield from _flaws_of_counts(stack, shop, logs)


def _flaws_of(
    started: Started, log: Sequence[tuple[int, str, str]], events: Counter[str], messages: int, keys: Sequence[str]
) -> Iterator[str]:
    numbers, entries = [number for number, _, _ in log], Counter((step, status) for _, step, status in log)
    answered = Counter({entry: entries[entry] for entry in (("call", "succeeded"), ("call", "failed"))})
    if numbers != list(range(1, len(log) + 1)):
        yield f"{started}: its log is numbered {numbers}"
    if answered.total() != 1 or entries - answered != started.log:
        yield f"{started}: its log has {entries}"
    if entries[("call", "succeeded")] and not keys:
        yield f"{started}: its request never arrived"
    if len(set(keys)) > 1:
        yield f"{started}: its request arrived under {len(set(keys))} keys"
    expected = Counter([*started.tags, "automation.started", "automation.completed"])
    if events != expected:
        yield f"{started}: its events are {events}"
    if messages != 1:
        yield f"{started}: it sent {messages} messages"


def _flaws_of_contacts(stack: Stack, shop: Shop, started: Sequence[Started]) -> Iterator[str]:
    wanted: dict[str, set[str]] = defaultdict(set)
    for each in started:
        wanted[each.contact_id] |= {*each.tags, each.echo}
    for contact_id, tags in rows(stack, "SELECT id, tags FROM contacts WHERE workspace_id = %s", shop.workspace_id):
        if sorted(tags) != sorted(wanted[contact_id]):
            yield f"{contact_id} has the tags {tags}"


def _flaws_of_counts(stack: Stack, shop: Shop, logs: Mapping[str, list[tuple[int, str, str]]]) -> Iterator[str]:
    """What is wrong with the counts of the automations, all of whose runs are completed."""
    runs = rows(stack, "SELECT automation_id, id FROM runs WHERE workspace_id = %s", shop.workspace_id)
    for automation_id in {automation_id for automation_id, _ in runs}:
        own = [run_id for automation, run_id in runs if automation == automation_id]
        passed = Counter(step for run_id in own for _, step, status in logs[run_id] if status != "waiting")
        counted = shop.caller().get(f"automations/{automation_id}/counts")
        if counted["runs"]["completed"] != len(own) or sum(counted["runs"].values()) != len(own):
            yield f"{automation_id}: its runs are counted as {counted['runs']}"
        for step, counts in counted["steps"].items():
            counts.pop("arms", None)
            wanted: dict[str, Any] = {"entered": passed[step], "left": passed[step], "waiting": 0, "failed": 0}
            if "arm_goals" in counts:  # the automations have no goal
                wanted["arm_goals"] = dict.fromkeys(counts["arm_goals"], 0)
            if counts != wanted:
                yield f"{automation_id}: {step} was passed {passed[step]} times and is counted as {counts}"


def _logs(stack: Stack, shop: Shop) -> Mapping[str, list[tuple[int, str, str]]]:
    found: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
    query = "SELECT run_id, number, step, status FROM run_steps WHERE workspace_id = %s ORDER BY number"
    for run_id, *entry in rows(stack, query, shop.workspace_id):
        found[run_id].append((entry[0], entry[1], entry[2]))
    return found


def _events(stack: Stack, shop: Shop) -> Mapping[str, Counter[str]]:
    """By run: the tags that were added, and the kinds of events in the run's own life."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    query = "SELECT run_id, kind, body FROM events WHERE workspace_id = %s AND run_id IS NOT NULL"
    for run_id, kind, body in rows(stack, query, shop.workspace_id):
        if kind == "tag.added":
            found[run_id][json.loads(bytes(body))["data"]["tag"]] += 1
        elif kind.startswith("automation."):
            found[run_id][kind] += 1
    return found


def _messages(stack: Stack, shop: Shop) -> Counter[str]:
    query = "SELECT run_id FROM messages WHERE workspace_id = %s AND direction = 'out'"
    return Counter(run_id for (run_id,) in rows(stack, query, shop.workspace_id))


_CHAT = """
    WITH chat AS (
        INSERT INTO channels (id, workspace_id, kind, name) VALUES (%s, %s, 'web_chat', 'Chat')
        RETURNING id, workspace_id
    )
    INSERT INTO conversations (id, workspace_id, contact_id, channel_id, peer)
    SELECT 'cnv_' || right(contact, 26), workspace_id, contact, id, 'vtr_' || right(contact, 26)
    FROM chat, unnest(%s::text[]) AS contact RETURNING id
"""

_SLEEPERS = """
    WITH contact AS (
        INSERT INTO contacts (id, workspace_id, first_name)
        SELECT 'con_00' || right(%(workspace)s, 14) || lpad(n::text, 10, '0'), %(workspace)s, 'Ada'
        FROM generate_series(1, %(number)s) AS n
        RETURNING id
    ), run AS (
        INSERT INTO runs (id, workspace_id, automation_id, version, contact_id, status, step, taken, logged, wait,
            waits_for, trace_id, resume_at, due_at, started_at)
        SELECT replace(id, 'con_', 'run_'), %(workspace)s, %(automation)s, 1, id, 'waiting', 'pause', 1, 1, 1,
            'time', 'sleeper', now() + interval '1 day', NULL, now() FROM contact
        RETURNING id, contact_id
    )
    INSERT INTO enrolments (id, workspace_id, contact_id, automation_id, run_id, active)
    SELECT contact_id || '/' || %(automation)s, %(workspace)s, contact_id, %(automation)s, id, 1 FROM run RETURNING 1
"""
