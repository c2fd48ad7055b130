"""A search says what a text is, where the reader may see it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from app import database
from app.domain.insight import searches
from app.domain.insight.searches import TYPES, Found
from app.lib import ids
from app.web.dashboard.searches import path_of
from tests.automations import make_automation
from tests.cast import Api, all_of, one
from tests.figures import failed_run
from tests.people import make_member
from tests.talks import make_channel

SHOP = {"external_id": "c-1042", "email": "Ada@example.com", "phone": "+4930123456", "first_name": "Ada"}


@pytest.fixture
def places(api: Api) -> Mapping[str, str]:
    """The identifier of one thing of each kind, by its prefix."""
    endpoint_id = api.endpoint()
    contact_id = str(api.contact(**SHOP)["id"])
    sale, booking = api.sale(contact_id), api.booking(contact_id)
    automation_id = make_automation(api.workspace_id)
    made = {
        "con": contact_id,
        "whe": endpoint_id,
        "sal": sale["id"],
        "bkg": booking["id"],
        "aut": automation_id,
        "run": failed_run(api.workspace_id, automation_id, database.now()),
        "ws": api.workspace_id,
        "tok": one("SELECT id FROM tokens LIMIT 1"),
        "mem": make_member(api.workspace_id)[1].id,
        "dlv": one("SELECT id FROM deliveries LIMIT 1"),
        "evt": one("SELECT id FROM events LIMIT 1"),
        "job": one("SELECT id FROM jobs LIMIT 1"),
    }
    return made | {prefix: _made(api, prefix, contact_id, endpoint_id) for prefix in TYPES.keys() - made.keys()}


_ROWS = {
    "ref": "refused_requests (id, workspace_id, token_id, trace_id, method, path, status, problem, created_at)"
    " VALUES (%(id)s, %(ws)s, 'tok_1', 't', 'GET', '/api/v1/contacts', 404, 'not-found', now())",
    "cnv": "conversations (id, workspace_id, contact_id, channel_id) VALUES (%(id)s, %(ws)s, %(contact)s, %(channel)s)",
    "msg": "messages (id, workspace_id, conversation_id, contact_id, direction, status, author)"
    " VALUES (%(id)s, %(ws)s, 'cnv_1', %(contact)s, 'in', 'received', '{}')",
    "nte": "notes (id, workspace_id, conversation_id, contact_id, author, text)"
    """ VALUES (%(id)s, %(ws)s, 'cnv_1', %(contact)s, '{"type": "api"}', 'Called.')""",
    "seg": "segments (id, workspace_id, name, filter) VALUES (%(id)s, %(ws)s, 'Regulars', '{}')",
    "swp": "sweeps (id, workspace_id, endpoint_id, action, statuses, last_id, trace_id)"
    " VALUES (%(id)s, %(ws)s, %(endpoint)s, 'resend', '{failed}', '', '')",
    "imp": "imports (id, workspace_id, job_id, total, failed) VALUES (%(id)s, %(ws)s, 'job_1', 5, 0)",
    "bct": "broadcasts (id, workspace_id, name, state, filter, automation_id, time_zone, canary, trace_id)"
    " VALUES (%(id)s, %(ws)s, 'Sale', 'done', '{}', 'aut_1', 'workspace', false, '')",
    "rpl": "replays (id, workspace_id, count, trace_id) VALUES (%(id)s, %(ws)s, 3, '')",
    "inv": "invoices (id, workspace_id, number, plan, currency, period_start, period_end, lines, total)"
    " VALUES (%(id)s, %(ws)s, 17, 'free', 'EUR', now(), now(), '[]', 0)",
}


def _made(api: Api, prefix: str, contact_id: str, endpoint_id: str) -> str:
    values = {"id": ids.new(prefix), "ws": api.workspace_id, "contact": contact_id, "endpoint": endpoint_id}
    database.rows(f"INSERT INTO {_ROWS[prefix]}", values | {"channel": make_channel(api.workspace_id)})
    return str(values["id"])


def found(text: str, workspace_id: str | None = None) -> list[Found]:
    return list(searches.find(text, workspace_id).found)


@pytest.mark.parametrize("prefix", TYPES)
def test_every_identifier_is_found_with_its_page(places: Mapping[str, str], api: Api, prefix: str) -> None:
    [inside] = found(places[prefix], api.workspace_id)
    [anywhere] = found(places[prefix])

    assert inside == anywhere
    assert (inside.type, inside.id, inside.matched) == (TYPES[prefix].name, places[prefix], "id")
    assert inside.title
    assert inside.workspace_name == "Ours"
    path = path_of(inside)
    assert path
    assert path.startswith(f"/workspaces/{api.workspace_id}/")
    assert "{" not in path
    assert "None" not in path


@pytest.mark.parametrize("prefix", TYPES)
def test_nothing_of_another_workspace_is_found(places: Mapping[str, str], others: Api, prefix: str) -> None:
    assert found(places[prefix], others.workspace_id) == []


@pytest.mark.parametrize("prefix", TYPES)
def test_an_identifier_of_nothing_finds_nothing(api: Api, prefix: str) -> None:
    assert found(ids.new(prefix)) == found(ids.new(prefix), api.workspace_id) == []


@pytest.mark.parametrize(
    ("text", "matched"),
    [
        ("ada@example.com", "email"),
        ("ADA@EXAMPLE.com", "email"),
        ("+49 30 123456", "phone"),
        ("+4930123456", "phone"),
        ("c-1042", "external_id"),
        ("  'c-1042'\n", "external_id"),
    ],
)
def test_what_people_know_a_contact_by_is_found(api: Api, others: Api, text: str, matched: str) -> None:
    contact_id = api.contact(**SHOP)["id"]

    [inside] = found(text, api.workspace_id)

    assert (inside.type, inside.id, inside.title, inside.matched) == ("contact", contact_id, "Ada", matched)
    assert found(text) == [inside]
    assert found(text, others.workspace_id) == []


def test_a_number_is_found_in_every_way_to_write_it(api: Api) -> None:
    contact_id = api.contact(phone="+5511987654321")["id"]

    assert [each.id for each in found("+55 11 8765-4321", api.workspace_id)] == [contact_id]


def test_staff_find_an_address_in_every_workspace_that_has_it(api: Api, others: Api) -> None:
    both = {each.contact(email="ada@example.com")["id"] for each in (api, others)}

    assert {each.id for each in found("ada@example.com")} == both
    assert {each.workspace_name for each in found("ada@example.com")} == {"Ours", "Theirs"}


def test_a_member_is_found_by_their_address(api: Api, others: Api) -> None:
    _, member = make_member(api.workspace_id, "mia@shop.example", "agent")

    [inside] = found("MIA@shop.example", api.workspace_id)

    assert (inside.type, inside.id, inside.matched) == ("member", member.id, "email")
    assert inside.title == "mia@shop.example, agent"
    assert found("mia@shop.example") == [inside]
    assert found("mia@shop.example", others.workspace_id) == []


def test_a_sale_is_found_by_its_reference(api: Api, others: Api) -> None:
    sale = api.sale(api.contact(**SHOP)["id"], reference="SO-2026/17")

    [inside] = found("SO-2026/17", api.workspace_id)

    assert (inside.type, inside.id, inside.matched) == ("sale", sale["id"], "reference")
    assert found("SO-2026/17") == [inside]
    assert found("SO-2026/17", others.workspace_id) == []


def test_a_trace_leads_to_its_writes(api: Api, others: Api) -> None:
    api.post("contacts", {"external_id": "ada"}, headers={"X-Request-Id": "trace.of-ours"})
    job_id = one("SELECT id FROM jobs")

    [inside] = found("trace.of-ours", api.workspace_id)

    assert (inside.type, inside.id, inside.matched) == ("job", job_id, "trace")
    assert found("trace.of-ours") == [inside]
    assert found("trace.of-ours", others.workspace_id) == []


def test_a_trace_that_bellhop_made_is_found_too(api: Api) -> None:
    trace_id = api.post("contacts", {"external_id": "ada"}).headers["X-Request-Id"]

    [inside] = found(trace_id)

    assert inside.matched == "trace"


def test_an_identifier_may_be_pasted_with_what_is_around_it(api: Api) -> None:
    contact_id = api.contact(**SHOP)["id"]

    assert [each.id for each in found(f' "{contact_id.upper()}" ')] == [contact_id]


@pytest.mark.parametrize("text", ["", "   ", "'\"", "\0", "a\0b", "x" * 10_000, "%", "con_", "con_1", "dlv_%", "🦄"])
def test_a_text_that_is_nothing_finds_nothing(api: Api, text: str) -> None:
    assert found(text) == found(text, api.workspace_id) == []


def test_a_deleted_endpoint_is_not_found(api: Api) -> None:
    endpoint_id = api.endpoint()
    api.done(api.delete(f"webhooks/endpoints/{endpoint_id}"))

    assert found(endpoint_id, api.workspace_id) == []


def test_a_sale_whose_contact_is_deleted_has_no_page(api: Api) -> None:
    sale = api.sale(api.contact(**SHOP)["id"])
    database.rows("UPDATE sales SET contact_id = NULL")

    [inside] = found(sale["id"], api.workspace_id)

    assert path_of(inside) is None


def test_a_search_over_too_many_workspaces_says_so(api: Api, others: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    api.contact(**SHOP)
    assert searches.find("c-1042").is_complete
    monkeypatch.setattr(searches, "MOST_WORKSPACES", 1)

    assert searches.find("c-1042") == searches.Findings("c-1042", [], is_complete=False)
    assert searches.find("c-1042", api.workspace_id).is_complete


def test_more_than_can_be_shown_is_cut_off(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searches, "MOST_FOUND", 3)
    for number in range(5):
        api.post("contacts", {"external_id": str(number)}, headers={"X-Request-Id": "same"})

    findings = searches.find("same")

    assert len(findings.found) == 3
    assert not findings.is_complete


def test_a_search_takes_few_statements(places: Mapping[str, str], statements: list[str]) -> None:
    found(places["dlv"])
    assert len(statements) == 1
    statements.clear()

    found("ada@example.com")
    assert len(statements) == 4


def test_every_prefix_is_one_that_identifiers_have(places: Mapping[str, str]) -> None:
    assert all(identifier.startswith(f"{prefix}_") for prefix, identifier in places.items())
    assert all_of("SELECT id FROM workspaces") == [places["ws"]]
