"""The delivery log: what a reader sees, and what they can do about it."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from html import unescape

import pytest

from app import database
from app.domain.webhooks import catalogue
from app.lib import clock
from app.outbound import answered
from tests.cast import Api, one
from tests.logs import MOST_STATEMENTS, NASTY, RTL, attempt, delivery
from tests.pages import Person

LIST = "dashboard/deliveries"


def test_an_empty_log_says_what_to_do(owner: Person) -> None:
    assert "Create an endpoint" in owner.page(LIST)


def test_the_log_shows_state_kind_address_attempts_and_cause(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(503, b"", 5))

    shown = owner.page(LIST)

    for text in (
        "contact.created",
        "https://shop.example/hooks",
        "The server answered 503 (Service Unavailable).",
        "1 delivery",
    ):
        assert text in shown
    assert f"/dashboard/deliveries/{delivery_id}" in shown


def test_filters_choose_and_stay_in_links(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(503, b"", 5))
    _, other_id = delivery(api, email="eve@example.com")

    query = f"endpoint_id={endpoint_id}&error_code=status&status_code=503&kind=contact.created&status=pending"
    shown = owner.page(f"{LIST}?{query}")

    assert delivery_id in shown
    assert other_id not in shown
    assert f"endpoint_id={endpoint_id}" in shown.partition("/dashboard/replays/new?")[2][:200]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("endpoint_id=x", "begins with whe_"),
        ("status=lost", "There is no such choice"),
        ("status_code=9", "from 100 to 599"),
        ("status_code=²²²", "from 100 to 599"),
        ("since=yesterday", "Give a time such as"),
        ("until=0001-01-01T00:00:00%2B23:00", "Give a time such as"),
        ("until=1969-01-01T00:00", "too far away"),
    ],
)
def test_a_filter_that_makes_no_sense_is_explained_and_offers_no_replay(
    api: Api, owner: Person, query: str, said: str
) -> None:
    _, delivery_id = delivery(api)

    shown = owner.page(f"{LIST}?{query}&kind=contact.created")

    assert said in shown
    assert delivery_id in shown
    assert "Replay these" not in shown


def test_an_agent_is_offered_no_replay(api: Api, agent: Person) -> None:
    delivery(api)

    assert "Replay these" not in agent.page(f"{LIST}?status=pending")


def test_times_without_a_zone_are_of_utc(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)
    now = clock.now()
    before, after = (now + timedelta(minutes=minutes) for minutes in (-5, 5))

    assert delivery_id in owner.page(f"{LIST}?since={before:%Y-%m-%dT%H:%M:%S}&until={after:%Y-%m-%dT%H:%M:%S}")
    assert delivery_id not in owner.page(f"{LIST}?since={after:%Y-%m-%dT%H:%M:%S}")


def test_a_time_may_have_a_zone_of_its_own(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)
    hour_ago = (clock.now() - timedelta(hours=1)).replace(tzinfo=None)

    assert delivery_id in owner.page(f"{LIST}?since={hour_ago.isoformat()}Z")
    assert delivery_id not in owner.page(f"{LIST}?since={hour_ago.isoformat()}-03:00")


def test_presets_are_links_and_what_is_chosen_can_be_removed(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)
    preset = re.search(r'href="([^"]+)" data-preset="today">', owner.page(f"{LIST}?kind=contact.created"))
    assert preset

    shown = owner.page(unescape(preset[1]))

    assert delivery_id in shown
    assert 'data-preset="today" aria-current="true"' in shown
    chips = {
        label: unescape(href)
        for href, label in re.findall(
            r'href="([^"]+)">\s*<span class="unseen">[^<]*</span><span class="muted">([^<]+)<', shown
        )
    }
    assert set(chips) == {"Kind", "From"}
    assert "since" in chips["Kind"]
    assert "kind=" not in chips["Kind"]
    assert "since" not in chips["From"]


def test_attempts_that_end_alike_are_folded(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    for status in (500, 503, 503, 503):
        attempt(endpoint_id, answered(status, b"", 5))

    shown = owner.page(f"{LIST}/{delivery_id}")

    assert "Attempts 2 to 3: the same 503" in shown
    assert "<strong>Attempt 1</strong>" in shown
    assert "<strong>Attempt 3</strong>" not in shown


def test_no_match_leads_to_all(api: Api, owner: Person) -> None:
    delivery(api)

    assert "see all deliveries" in owner.page(f"{LIST}?status=failed")


def test_the_log_is_a_file_too(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)

    [row] = json.loads(owner.get(f"{LIST}?format=json").text)
    header, line = owner.get(f"{LIST}?format=csv").text.splitlines()

    assert (row["id"], row["endpoint_address"]) == (delivery_id, "https://shop.example/hooks")
    assert header.startswith("id,event_id,endpoint_id")
    assert line.startswith(delivery_id)


def many(api: Api, endpoint_id: str, number: int) -> None:
    database.rows(
        """
        INSERT INTO deliveries (id, workspace_id, event_id, endpoint_id, kind, status, due_at, last_error_code)
        SELECT 'dlv_01' || lpad(n::text, 24, '0'), %s, 'evt_none', %s, 'contact.created', 'failed', NULL, 'timeout'
        FROM generate_series(1, %s) AS n
        """,
        (api.workspace_id, endpoint_id, number),
    )


def test_pages_follow_each_other_and_a_filter_begins_at_the_first(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    many(api, endpoint_id, 120)

    shown, seen = owner.page(LIST), list[str]()
    while True:
        seen += re.findall(r"/dashboard/deliveries/(dlv_\w+)", shown)
        if not (following := re.search(r'href="([^"]+)" rel="next"|rel="next" href="([^"]+)"', shown)):
            break
        shown = owner.page(following[1] or following[2])

    assert len(seen) == len(set(seen)) == 120
    assert "120 deliveries" in shown


def test_counts_stop_at_ten_thousand(api: Api, owner: Person) -> None:
    endpoint_id = api.endpoint()
    many(api, endpoint_id, 10_050)

    assert "10,000+ deliveries" in owner.page(LIST)
    assert "10,000+ deliveries" in owner.page(f"{LIST}?status=failed&error_code=timeout")
    assert "No delivery matches" in owner.page(f"{LIST}?status=failed&kind=tag.added")


def test_another_workspace_sees_nothing(api: Api, stranger: Person, others: Api) -> None:
    endpoint_id, delivery_id = delivery(api)

    assert stranger.get(f"{LIST}/{delivery_id}").status_code == 404
    theirs = f"/workspaces/{others.workspace_id}/dashboard"
    assert stranger.get(f"{theirs}/deliveries/{delivery_id}").status_code == 404
    assert stranger.get(f"{theirs}/deliveries/{delivery_id}/body").status_code == 404
    assert delivery_id not in stranger.page(f"{theirs}/deliveries?endpoint_id={endpoint_id}")
    assert stranger.post(f"{theirs}/deliveries/{delivery_id}/resend").status_code == 404


@pytest.mark.parametrize("delivery_id", ["x", "dlv_0", "%00", "dlv_01hzzzzzzzzzzzzzzzzzzzzzzz"])
def test_what_is_no_delivery_is_not_there(owner: Person, delivery_id: str) -> None:
    assert owner.get(f"{LIST}/{delivery_id}").status_code == 404


def test_a_delivery_says_what_happened_what_comes_next_and_what_to_do(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(503, b"oops", 1234))

    shown = owner.page(f"{LIST}/{delivery_id}")

    assert "The next attempt (after that 4 more) is due" in shown
    assert "Ask the receiver to look into its log" in shown
    for text in ("Attempt 1", "1.2 s", "oops", "The server answered 503 (Service Unavailable)."):
        assert text in shown


def test_a_delivery_shows_the_request_byte_for_byte_and_never_the_secret(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api, first_name=RTL)
    body = bytes(one("SELECT body FROM events"))

    shown = owner.page(f"{LIST}/{delivery_id}")

    assert "POST /hooks HTTP/1.1" in shown
    for name, value in (
        ("Host", "shop.example"),
        ("User-Agent", "Bellhop-Webhooks/1"),
        ("Content-Type", "application/json"),
        ("X-Service-Delivery", delivery_id),
        ("X-Service-Signature", "t=<unix time>,v1=<signature>"),
        ("Content-Length", str(len(body))),
    ):
        assert f"{name}</th>" in shown
        assert value in shown
    assert body.decode() in shown
    assert "whsec_…" in shown
    assert shown.count("whsec_") == shown.count("whsec_…") + shown.count("<code>whsec_</code>")
    assert owner.get(f"{LIST}/{delivery_id}/body").data == body


def test_a_body_is_a_file_that_no_browser_shows(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)

    answer = owner.get(f"{LIST}/{delivery_id}/body")

    assert answer.mimetype == "application/octet-stream"
    assert answer.headers["Content-Disposition"].startswith("attachment")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_what_contacts_and_receivers_write_is_escaped(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api, first_name=NASTY)
    attempt(endpoint_id, answered(500, NASTY.encode(), 5))
    attempt(endpoint_id, answered(302, b"", 5, target=f"https://x.example/{NASTY}"))

    for path in (LIST, f"{LIST}/{delivery_id}"):
        assert "<script>alert" not in owner.get(path).text
        assert "&lt;script&gt;alert" in owner.get(path).text


def test_a_huge_body_and_answer_are_shown_in_part(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api, custom_fields={f"field-{n}": "x" * 4000 for n in range(10)})
    attempt(endpoint_id, answered(500, b"y" * 16_000, 5))

    shown = owner.page(f"{LIST}/{delivery_id}")

    assert "only the beginning is shown" in shown
    assert "The first 2,000 characters" in shown
    assert "y" * 2001 not in shown
    assert "--data-binary @body.json" in shown


def test_a_body_that_is_gone_cannot_be_resent(api: Api, owner: Person) -> None:
    _, delivery_id = delivery(api)
    database.rows("DELETE FROM events")

    shown = owner.page(f"{LIST}/{delivery_id}")

    assert "The body is no longer kept" in shown
    assert "Resend" not in shown
    assert owner.get(f"{LIST}/{delivery_id}/body").status_code == 404


def test_a_delivery_links_to_all_it_belongs_to(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    event_id, job_id, contact_id = database.rows("SELECT id, job_id, contact_id FROM events")[0]

    shown = owner.page(f"{LIST}/{delivery_id}")

    for place in (f"events/{event_id}", f"jobs/{job_id}", f"contacts/{contact_id}", f"endpoints/{endpoint_id}"):
        assert f"/dashboard/{place}" in shown


def test_many_endpoints_are_no_select(api: Api, owner: Person) -> None:
    database.rows(
        "INSERT INTO endpoints (id, workspace_id, address, events, secret)"
        " SELECT 'whe_' || n, %s, 'https://shop.example/' || n, '{*}', 'x' FROM generate_series(1, 1000) AS n",
        (api.workspace_id,),
    )

    assert 'placeholder="whe_…"' in owner.page(LIST)


def test_pages_take_few_statements_however_many_rows(
    api: Api, owner: Person, support: Person, statements: list[str]
) -> None:
    endpoint_id, delivery_id = delivery(api)
    for status in (500, 503, 410):
        attempt(endpoint_id, answered(status, b"no", 5))
    many(api, endpoint_id, 200)
    support.visit()

    for person in (owner, support):
        for path in (LIST, f"{LIST}?status=failed&endpoint_id={endpoint_id}", f"{LIST}/{delivery_id}"):
            person.page(path)
            statements.clear()
            person.page(path)
            assert len(statements) <= MOST_STATEMENTS, statements


def test_every_kind_of_event_can_be_chosen(owner: Person) -> None:
    shown = owner.page(LIST)

    assert all(f'value="{kind}"' in shown for kind in catalogue.EVENT_KINDS)


def explanation(owner: Person, delivery_id: str) -> str:
    """What the page of a delivery says above its facts."""
    return owner.page(f"{LIST}/{delivery_id}").partition('<section id="explanation">')[2].partition("</section>")[0]


def test_what_was_discarded_is_not_to_be_sent_again(api: Api, owner: Person) -> None:
    endpoint_id, delivery_id = delivery(api)
    attempt(endpoint_id, answered(503, b"", 5))
    meaning, remedy = "failed to process it", "then resend what has failed"
    shown = explanation(owner, delivery_id)
    assert meaning in shown
    assert remedy in shown

    database.rows("UPDATE deliveries SET status = 'cancelled', due_at = NULL")

    shown = explanation(owner, delivery_id)
    assert "It was discarded." in shown
    assert meaning in shown
    assert remedy not in shown
