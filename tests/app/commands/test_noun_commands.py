"""The commands for what hangs: listing it, showing one, and ending it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click.testing
import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from app.commands import noun_commands
from app.database import rows
from app.domain import verbs
from app.lib import clock, ids
from app.models.broadcasts import Broadcast
from app.models.endpoints import Endpoint
from tests import playing, talks
from tests.cast import Api, accept, all_of, event_kinds, make_endpoint, one
from tests.sending import make

Run = Callable[..., Result]
WAIT = {"id": "pause", "kind": "wait", "seconds": 86_400}


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(commands.main, arguments, prog_name="python -m app")

    return run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to a terminal."""
    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True)


@pytest.fixture
def endpoint(api: Api) -> Endpoint:
    return Endpoint.get_by_id(make_endpoint(api.workspace_id, "https://shop.example/hooks")[0])


@pytest.fixture
def automation_id(api: Api) -> str:
    return api.published(WAIT)


@pytest.fixture
def channel_id(api: Api, monkeypatch: pytest.MonkeyPatch) -> str:
    playing.install(monkeypatch)
    return playing.connected(api.workspace_id)


def shown(done: Result) -> Any:
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def start(api: Api, automation_id: str, number: int) -> list[str]:
    """So many runs that wait, oldest first."""
    begun = []
    for _ in range(number):
        contact_id = api.contact(external_id=ids.new("con"))["id"]
        begun.append(api.post(f"automations/{automation_id}/start", {"contact_id": contact_id}))
    return [api.done(response)["resource"]["id"] for response in begun]


def old_id(prefix: str, days: int) -> str:
    """An identifier as it was made so many days ago."""
    return ids.bound(prefix, clock.now() - timedelta(days=days))


def queue(api: Api, channel_id: str, number: int = 1, days: int = 0) -> list[str]:
    """So many messages of one conversation, made so many days ago, of which the first is due."""
    contact_id = api.contact(external_id=ids.new("con"))["id"]
    conversation_id = talks.receive(api.workspace_id, contact_id, channel_id).conversation_id
    made = [old_id("msg", days)[:-4] + ids.new("msg")[-4:] for _ in range(number)]
    for message_id in made:
        rows(
            """
            INSERT INTO messages (id, workspace_id, conversation_id, contact_id, channel_id, direction, text, author,
                status, is_behind, due_at)
            VALUES (%s, %s, %s, %s, %s, 'out', 'Hello', '{"type": "api", "id": "tok_1"}', 'queued', %s,
                CASE WHEN NOT %s THEN now() END)
            """,
            (message_id, api.workspace_id, conversation_id, contact_id, channel_id) + (message_id != made[0],) * 2,
        )
    return made


def pause_broadcast(api: Api, name: str) -> str:
    """A broadcast that waits for somebody."""
    columns = {"workspace_id": api.workspace_id, "name": name, "state": "paused", "trace_id": "", "filter": {}}
    made = Broadcast.create(id=ids.new("bct"), created_at=clock.now(), message={"text": "Hello"}, **columns)
    return str(made.id)


def test_a_list_is_a_document_with_a_row_on_each_line(run: Run, api: Api, endpoint: Endpoint) -> None:
    made = make(endpoint, 3, last_error_code="timeout")

    done = run("deliveries", "list", "--status", "failed")

    assert [each["id"] for each in shown(done)["deliveries"]] == made[::-1]
    assert (shown(done)["deliveries"][0]["workspace_id"], shown(done)["deliveries"][0]["last_error_code"]) == (
        api.workspace_id,
        "timeout",
    )
    assert len(done.stdout.splitlines()) == 4


@pytest.mark.parametrize("noun", ["jobs", "imports", "deliveries", "replays", "runs", "messages", "broadcasts"])
def test_every_list_can_be_empty_and_has_each_status(run: Run, others: Api, noun: str) -> None:
    assert shown(run(noun, "list", "--older-than", "30d")) == {noun: []}
    for status in commands.main.commands[noun].commands["list"].params[1].type.choices:
        assert shown(run(noun, "list", "--status", status, "--workspace", others.workspace_id)) == {noun: []}


def test_a_list_for_people_is_a_table(run: Run, endpoint: Endpoint, terminal: None) -> None:
    [delivery_id] = make(endpoint, 1, last_error_code="timeout")

    title, row = run("deliveries", "list").stdout.splitlines()

    assert title.split() == [
        *("ID", "WORKSPACE_ID", "ENDPOINT_ID", "KIND", "STATUS", "ATTEMPTS", "LAST_ERROR_CODE"),
        *("NEXT_ATTEMPT_AT", "CREATED_AT"),
    ]
    assert row.split()[:7] == [
        *(delivery_id, endpoint.workspace_id, endpoint.id),
        *("contact.created", "failed", "0", "timeout"),
    ]
    assert title.index("STATUS") == row.index("failed")
    assert shown(run("deliveries", "list", "--json"))["deliveries"][0]["id"] == delivery_id


def test_an_empty_list_for_people_says_so(run: Run, terminal: None) -> None:
    assert run("deliveries", "list").stdout == "There are none.\n"


def test_what_others_wrote_does_not_control_the_terminal(run: Run, api: Api, terminal: None) -> None:
    pause_broadcast(api, "Sale\x1b[2J\u202e")

    assert "Sale?[2J?" in run("broadcasts", "list").stdout


def test_a_list_ends_at_its_limit_and_says_that_there_is_more(run: Run, endpoint: Endpoint, terminal: None) -> None:
    make(endpoint, 3)

    assert len(run("deliveries", "list", "--limit", "3").stdout.splitlines()) == 4
    assert run("deliveries", "list", "--limit", "3").stderr == ""
    assert run("deliveries", "list", "--limit", "2").stderr == "There are more: give --limit above 2.\n"


def test_a_list_goes_through_the_pages_of_every_workspace(
    run: Run, api: Api, endpoint: Endpoint, others: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noun_commands, "PAGE", 2)
    other = others.workspace_id
    others = make(Endpoint.get_by_id(make_endpoint(other, "https://other.example/")[0]), 3)
    mine = make(endpoint, 5)

    assert [each["id"] for each in shown(run("deliveries", "list"))["deliveries"]] == [*others[::-1], *mine[::-1]]
    listed = shown(run("deliveries", "list", "--workspace", api.workspace_id, "--limit", "4"))["deliveries"]
    assert [each["id"] for each in listed] == mine[:0:-1]


def test_a_list_can_be_of_what_is_older(run: Run, endpoint: Endpoint) -> None:
    make(endpoint, 2)
    old = old_id("dlv", days=2)
    rows("UPDATE deliveries SET id = %s WHERE id = (SELECT min(id) FROM deliveries)", (old,))

    assert [each["id"] for each in shown(run("deliveries", "list", "--older-than", "47h"))["deliveries"]] == [old]


def test_an_unknown_workspace_status_or_age_is_refused(run: Run) -> None:
    assert (run("runs", "list", "--workspace", "ws_1").exit_code, run("runs", "list", "--status", "x").exit_code) == (
        1,
        2,
    )
    assert "'yesterday' is no age such as 90s" in run("runs", "list", "--older-than", "yesterday").output


def test_one_is_shown_as_the_api_shows_it(run: Run, api: Api, automation_id: str) -> None:
    [run_id] = start(api, automation_id, 1)

    document = shown(run("runs", "show", run_id))

    assert document == {"workspace_id": api.workspace_id, **api.get(f"runs/{run_id}").json["data"]}


def test_one_is_shown_to_people_line_by_line(run: Run, api: Api, automation_id: str, terminal: None) -> None:
    [run_id] = start(api, automation_id, 1)

    lines = run("runs", "show", run_id).stdout.splitlines()

    assert lines[:2] == [f"workspace_id     {api.workspace_id}", f"id               {run_id}"]
    assert "status           queued" in lines


def test_one_that_does_not_exist_is_refused_with_what_to_do(run: Run) -> None:
    done = run("runs", "show", "run_1")

    assert done.exit_code == 1
    assert "python -m app runs list has some" in str(done.exception) + done.output


def test_runs_are_cancelled_by_their_identifiers_and_the_audit_log_says_so(
    run: Run, api: Api, automation_id: str
) -> None:
    first, second, _ = start(api, automation_id, 3)

    assert shown(run("runs", "cancel", first, second)) == {"chosen": 2, "cancelled": 2, "refused": 0}

    assert all_of("SELECT status FROM runs ORDER BY id") == ["cancelled", "cancelled", "queued"]
    assert event_kinds(api.workspace_id)[-2:] == ["automation.cancelled"] * 2
    assert rows("SELECT actor_type, target_id, job_id IS NULL FROM audit_entries WHERE action = 'runs.cancel'") == [
        ("command", first, False),
        ("command", second, False),
    ]
    # Once more changes nothing, as in the API.
    assert shown(run("runs", "cancel", first)) == {"chosen": 1, "cancelled": 1, "refused": 0}


def test_a_dry_run_changes_nothing(run: Run, api: Api, automation_id: str) -> None:
    [run_id] = start(api, automation_id, 1)
    count = one("SELECT count(*) FROM jobs")

    assert shown(run("runs", "cancel", "--all", "--dry-run")) == {"chosen": 1, "cancelled": 0, "refused": 0}
    assert shown(run("runs", "cancel", run_id, "--dry-run")) == {"chosen": 1, "cancelled": 0, "refused": 0}

    assert one("SELECT status FROM runs") == "queued"
    assert one("SELECT count(*) FROM jobs") == count


def test_all_that_match_are_cancelled_some_at_a_time(
    run: Run, api: Api, automation_id: str, others: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noun_commands, "PART", 2)
    start(api, automation_id, 5)
    rows("UPDATE runs SET status = 'waiting' WHERE id = (SELECT max(id) FROM runs)")

    assert shown(run("runs", "cancel", "--all", "--status", "waiting"))["cancelled"] == 1
    assert shown(run("runs", "cancel", "--all", "--older-than", "1h"))["cancelled"] == 0
    assert shown(run("runs", "cancel", "--all", "--workspace", others.workspace_id))["cancelled"] == 0
    assert shown(run("runs", "cancel", "--all"))["cancelled"] == 4
    assert set(all_of("SELECT status FROM runs")) == {"cancelled"}


def test_what_cannot_be_done_is_told_and_the_rest_is_done(run: Run, api: Api, automation_id: str) -> None:
    first, second = start(api, automation_id, 2)
    rows("UPDATE runs SET status = 'completed', finished_at = now(), due_at = NULL WHERE id = %s", (first,))

    done = run("runs", "cancel", first, second, "run_1")

    assert done.exit_code == 1
    assert json.loads(done.stdout) == {"chosen": 2, "cancelled": 1, "refused": 2}
    assert done.stderr.splitlines() == [
        "bellhop: run_1: There is no such identifier; python -m app runs list has some.",
        f"bellhop: {first}: This run has completed and cannot be cancelled.",
    ]


def test_only_the_first_reasons_are_printed(
    run: Run, api: Api, automation_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noun_commands, "MOST_REASONS", 1)

    assert run("runs", "cancel", "run_1", "run_2", "run_3").stderr.splitlines()[1:] == ["bellhop: and 2 more"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs", "cancel"), "Give identifiers, or --all."),
        (("runs", "cancel", "run_1", "--all"), "Give identifiers, or --all."),
        (("runs", "cancel", "run_1", "--status", "held"), "The filters choose among --all"),
        (("runs", "cancel", "--all", "--status", "failed"), "'failed' is not one of"),
        (("deliveries", "resend"), "Give identifiers."),
        (("deliveries", "resend", "--all"), "No such option '--all'"),
    ],
)
def test_a_verb_needs_to_know_of_what(run: Run, arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)

    assert done.exit_code == 2
    assert said in done.output


def test_people_see_a_bar_and_a_sentence(run: Run, api: Api, automation_id: str, terminal: None) -> None:
    start(api, automation_id, 2)

    done = run("runs", "cancel", "--all")

    assert done.stdout.splitlines()[-1] == "2 chosen, 2 cancelled, 0 refused"
    assert "2/2" in done.stderr


def test_a_held_run_is_resumed(run: Run, api: Api, automation_id: str) -> None:
    held, other = start(api, automation_id, 2)
    rows("UPDATE runs SET status = 'held', waits_for = 'member', due_at = NULL WHERE id = %s", (held,))

    assert run("runs", "resume", held, other).exit_code == 1
    assert rows("SELECT status, is_released FROM runs WHERE id = %s", (held,)) == [("running", True)]


def test_a_delivery_is_resent(run: Run, endpoint: Endpoint) -> None:
    failed, _ = make(endpoint, 2)

    assert shown(run("deliveries", "resend", failed))["resent"] == 1
    assert all_of("SELECT status FROM deliveries ORDER BY id") == ["pending", "failed"]


def test_messages_that_wait_for_a_channel_are_cancelled_with_those_behind_them(
    run: Run, api: Api, channel_id: str
) -> None:
    rows("UPDATE channels SET state = 'disconnected'")
    old, new = queue(api, channel_id, 2, days=3), queue(api, channel_id, 2)

    done = run("messages", "cancel", "--all", "--workspace", api.workspace_id, "--older-than", "1d")

    assert shown(done) == {"chosen": 2, "cancelled": 2, "refused": 0}
    assert all_of("SELECT status FROM messages WHERE id = ANY(%s)", old) == ["failed", "failed"]
    assert all_of("SELECT status FROM messages WHERE id = ANY(%s)", new) == ["queued", "queued"]
    assert set(all_of("SELECT failure->>'code' FROM messages WHERE id = ANY(%s)", old)) == {"cancelled"}
    assert event_kinds(api.workspace_id).count("message.failed") == 2
    assert one("SELECT count(*) FROM audit_entries WHERE action = 'messages.cancel' AND actor_type = 'command'") == 2


def test_the_next_message_is_due_when_the_first_is_cancelled(run: Run, api: Api, channel_id: str) -> None:
    first, second, _ = queue(api, channel_id, 3)

    assert shown(run("messages", "cancel", first))["cancelled"] == 1

    assert rows("SELECT id, due_at <= now() FROM messages WHERE status = 'queued' AND NOT is_behind") == [
        (second, True)
    ]


def test_a_message_that_is_being_sent_is_not_cancelled(run: Run, api: Api, channel_id: str) -> None:
    [message_id] = queue(api, channel_id)
    rows(
        "UPDATE messages SET status = 'sending', leased_until = now() + interval '1 minute' WHERE id = %s",
        (message_id,),
    )

    done = run("messages", "cancel", message_id)

    assert done.exit_code == 1
    assert f"{message_id}: Only a queued message can be cancelled" in done.stderr
    assert one("SELECT status FROM messages WHERE id = %s", message_id) == "sending"


def test_messages_are_looked_for_by_their_status(
    run: Run, api: Api, channel_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.models.message_searches.MOST_IN_STATEMENT", 2)
    made = queue(api, channel_id, 5)
    rows("UPDATE messages SET status = 'unknown', due_at = NULL, is_behind = false WHERE id = %s", (made[0],))

    assert [each["id"] for each in shown(run("messages", "list", "--status", "unknown"))["messages"]] == made[:1]
    assert len(shown(run("messages", "list"))["messages"]) == 5
    assert shown(run("messages", "resend", "--all", "--status", "unknown"))["resent"] == 1


def test_a_job_that_no_worker_knows_is_given_up_and_can_be_replayed_by_one_that_does(
    run: Run, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = accept(api.workspace_id, "contacts.upsert", {"email": "ada@example.com"}, ids.new("con"))
    with monkeypatch.context() as older:
        older.setattr("app.domain.writes.VERBS", {k: v for k, v in verbs.VERBS.items() if k != "contacts.upsert"})
        api.apply()

    assert [each["id"] for each in shown(run("jobs", "list", "--status", "unknown"))["jobs"]] == [job.id]
    assert shown(run("jobs", "cancel", "--all"))["cancelled"] == 1

    assert api.get(f"jobs/{job.id}").json["data"]["problem"]["traceId"] == "trace-1"
    assert [each["id"] for each in shown(run("jobs", "list", "--status", "broken"))["jobs"]] == [job.id]
    assert run("jobs", "cancel", job.id).exit_code == 1
    with monkeypatch.context() as older:
        older.setattr("app.domain.writes.VERBS", {k: v for k, v in verbs.VERBS.items() if k != "contacts.upsert"})
        assert "This version does not know this kind of write." in run("jobs", "replay", "--all").stderr
    assert shown(run("jobs", "replay", "--all"))["replayed"] == 1
    assert one("SELECT email FROM contacts") == "ada@example.com"


def test_a_replay_that_waits_for_somebody_is_continued_or_aborted(run: Run, api: Api, endpoint: Endpoint) -> None:
    make(endpoint, 3)
    replay_id = shown(run("replay", api.workspace_id, "--status", "failed", "--canary"))["id"]

    assert [each["id"] for each in shown(run("replays", "list", "--status", "canary"))["replays"]] == [replay_id]
    assert shown(run("replays", "continue", replay_id))["continued"] == 1
    assert shown(run("replays", "pause", replay_id))["paused"] == 1
    assert shown(run("replays", "abort", "--all"))["aborted"] == 1
    assert shown(run("replays", "show", replay_id))["state"] == "aborted"
    assert run("replays", "continue", replay_id).exit_code == 1


def test_a_broadcast_that_is_paused_for_ever_is_aborted(run: Run, api: Api) -> None:
    broadcast_id = pause_broadcast(api, "Sale")

    assert shown(run("broadcasts", "abort", "--all"))["aborted"] == 1
    assert shown(run("broadcasts", "show", broadcast_id))["state"] == "aborted"


def test_imports_are_listed_by_the_status_of_their_job(run: Run, api: Api) -> None:
    lines = b'{"email": "ada@example.com"}\n{"email": "no"}\n'
    sent = api.post("contacts/import", data=lines, content_type="application/x-ndjson")
    import_id = api.job(sent)["resource"]["id"]

    assert shown(run("imports", "list", "--status", "succeeded")) == {"imports": []}
    [listed] = shown(run("imports", "list", "--status", "queued"))["imports"]
    assert (listed["id"], listed["total"], listed["failed"], listed["finished_at"]) == (import_id, 2, 1, None)
    assert shown(run("imports", "show", import_id))["status"] == "running"
