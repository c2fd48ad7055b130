"""Endpoints on pages of those who build on them."""

from __future__ import annotations

import re
import uuid
from typing import Any

import pytest

from app.config import settings
from app.database import rows
from app.domain.webhooks import catalogue, endpoints
from app.lib import ids, vault
from tests.cast import Api, all_of, everything_stored, one
from tests.forms import forms_of
from tests.pages import Person

ENDPOINTS = "settings/developers/endpoints"
LIST = "dashboard/endpoints"
FIELDS: dict[str, Any] = {
    "address": "https://shop.example/hooks",
    "events": ["contact.created"],
    "description": "",
    "max_per_second": "",
}


def shown(text: str) -> list[str]:
    return re.findall(r"<code>(whsec_[\w-]+)</code>", text)


def stored(endpoint_id: str) -> str:
    return vault.decrypt(settings().secret_keys, bytes(one("SELECT secret FROM endpoints WHERE id = %s", endpoint_id)))


def made(owner: Person, **changes: Any) -> tuple[str, str]:
    """Creates an endpoint on the page; returns its identifier and its secret."""
    answer = owner.post(f"{ENDPOINTS}/new", FIELDS | changes)
    assert answer.status_code == 200, answer.text
    [secret] = shown(answer.text)
    return one("SELECT max(id) FROM endpoints"), secret


def stop(endpoint_id: str) -> None:
    rows(
        "UPDATE endpoints SET state = 'stopped', stopped_at = now(), stop_reason = '50 attempts failed.' WHERE id = %s",
        (endpoint_id,),
    )


def test_an_endpoint_is_made_as_by_the_api_and_its_secret_shown_once(owner: Person, api: Api) -> None:
    changes = {
        "description": "Orders",
        "max_per_second": "5",
        "ordered": "true",
        "events": ["tag.added", "sale.recorded"],
    }
    endpoint_id, secret = made(owner, **changes)

    found = api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]
    assert (found["address"], found["events"]) == ("https://shop.example/hooks", ["tag.added", "sale.recorded"])
    assert (found["description"], found["max_per_second"], found["ordered"]) == ("Orders", 5, True)
    assert stored(endpoint_id) == secret
    assert secret not in owner.get(f"{ENDPOINTS}/{endpoint_id}").text
    assert secret not in everything_stored()
    assert one("SELECT actor_type FROM audit_entries WHERE target_id = %s", endpoint_id) == "member"


def test_a_second_click_makes_no_second_endpoint_and_shows_no_secret(owner: Person) -> None:
    once = FIELDS | {"once": str(uuid.uuid4())}
    first = owner.post(f"{ENDPOINTS}/new", once)

    again = owner.post(f"{ENDPOINTS}/new", once)

    assert len(shown(first.text)) == 1
    assert (again.status_code, shown(again.text)) == (200, [])
    assert "done already" in again.text
    assert one("SELECT count(*) FROM endpoints") == 1


def test_a_form_that_is_sent_again_with_other_entries_is_shown_again(owner: Person) -> None:
    once = FIELDS | {"once": str(uuid.uuid4())}
    owner.post(f"{ENDPOINTS}/new", once)

    again = owner.post(f"{ENDPOINTS}/new", once | {"description": "Changed"})

    assert again.status_code == 409
    assert "You have sent this form before" in again.text
    assert 'value="Changed"' in again.text
    assert once["once"] not in again.text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"address": "http://shop.example"}, "The address must begin with https://."),
        ({"address": "https://10.0.0.1/hooks"}, "10.0.0.1 is not a public address."),
        ({"address": ""}, "The address must begin with https://."),
        ({"events": []}, "Choose at least one kind of event."),
        ({"events": ["contact.exploded"]}, "There is no event kind"),
        ({"max_per_second": "0"}, "Must be greater than or equal to 1"),
        ({"max_per_second": "many"}, "Not a valid integer."),
        ({"description": "x" * 501}, "Longer than maximum length 500."),
        ({"description": "a\0b"}, "cannot be stored"),
    ],
)
def test_a_bad_form_is_shown_again_with_what_was_typed(owner: Person, changes: dict[str, Any], sentence: str) -> None:
    answer = owner.post(f"{ENDPOINTS}/new", FIELDS | {"description": "Kept"} | changes)

    assert answer.status_code == 422
    assert sentence in answer.text
    assert "description" in changes or 'value="Kept"' in answer.text
    assert 'aria-invalid="true"' in answer.text or "events" in changes
    assert one("SELECT count(*) FROM jobs") == 0


def test_a_workspace_that_is_full_says_so(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints.QUOTA, "most", 0)

    answer = owner.post(f"{ENDPOINTS}/new", FIELDS)

    assert answer.status_code == 409
    assert "Delete one first" in answer.text
    assert 'value="https://shop.example/hooks"' in answer.text
    assert shown(answer.text) == []


def test_the_form_shows_a_sample_of_every_kind(owner: Person) -> None:
    text = owner.page(f"{ENDPOINTS}/new")

    for kind in catalogue.EVENT_KINDS:
        assert f'"kind": "{kind}"' in text


def test_an_endpoint_is_changed(owner: Person, api: Api) -> None:
    endpoint_id, _ = made(owner, max_per_second="5", ordered="true")
    assert 'value="5"' in owner.page(f"{ENDPOINTS}/{endpoint_id}/edit")

    answer = owner.post(f"{ENDPOINTS}/{endpoint_id}/edit", FIELDS | {"events": ["*", "tag.added"]})

    assert answer.status_code == 303
    found = api.get(f"webhooks/endpoints/{endpoint_id}").json["data"]
    assert (found["events"], found["max_per_second"], found["ordered"]) == (["*"], None, False)


def test_a_bad_change_keeps_what_was_typed(owner: Person) -> None:
    endpoint_id, _ = made(owner)

    answer = owner.post(f"{ENDPOINTS}/{endpoint_id}/edit", FIELDS | {"address": "ftp://shop.example"})

    assert answer.status_code == 422
    assert 'value="ftp://shop.example"' in answer.text


def test_a_rotation_shows_the_new_secret_once(owner: Person) -> None:
    endpoint_id, secret = made(owner)
    once = {"once": str(uuid.uuid4())}

    first = owner.post(f"{ENDPOINTS}/{endpoint_id}/rotate-secret", once)
    again = owner.post(f"{ENDPOINTS}/{endpoint_id}/rotate-secret", once)

    [rotated] = shown(first.text)
    assert rotated == stored(endpoint_id) != secret
    assert "24 hours" in first.text
    assert shown(again.text) == []
    assert "The one before it signs, too" in owner.page(f"{ENDPOINTS}/{endpoint_id}")


def test_a_sample_leads_to_its_delivery(owner: Person) -> None:
    endpoint_id, _ = made(owner)

    answer = owner.post(f"{ENDPOINTS}/{endpoint_id}/test", {"kind": "sale.recorded"})

    [delivery_id] = all_of("SELECT id FROM deliveries WHERE endpoint_id = %s AND kind = 'sale.recorded'", endpoint_id)
    assert answer.status_code == 303
    assert answer.headers["Location"].endswith(f"/dashboard/deliveries/{delivery_id}")


def test_an_unknown_kind_is_not_sent(owner: Person) -> None:
    endpoint_id, _ = made(owner)

    answer = owner.post(f"{ENDPOINTS}/{endpoint_id}/test", {"kind": "x"}, follow_redirects=True)

    assert "There is no event kind" in answer.text
    assert one("SELECT count(*) FROM deliveries") == 0


@pytest.mark.parametrize("release", [True, False])
def test_a_stopped_endpoint_says_why_and_is_enabled(owner: Person, release: bool) -> None:
    endpoint_id, _ = made(owner)
    stop(endpoint_id)
    page = owner.page(f"{ENDPOINTS}/{endpoint_id}")
    assert "50 attempts failed." in page

    enabling = [dict(form.fields) for form in forms_of(page) if form.action.endswith("/enable")]
    [fields] = [each for each in enabling if (each.get("release_held") == "true") == release]
    owner.post(f"{ENDPOINTS}/{endpoint_id}/enable", fields)

    assert one("SELECT state FROM endpoints WHERE id = %s", endpoint_id) == "active"
    assert one("SELECT count(*) FROM sweeps WHERE action = 'release'") == (1 if release else 0)


def test_a_stopped_endpoint_gets_no_sample(owner: Person) -> None:
    endpoint_id, _ = made(owner)
    stop(endpoint_id)

    answer = owner.post(f"{ENDPOINTS}/{endpoint_id}/test", {"kind": "tag.added"}, follow_redirects=True)

    assert "is stopped. Enable it first" in answer.text


def test_a_deleted_endpoint_is_gone_and_a_second_click_is_fine(owner: Person) -> None:
    endpoint_id, _ = made(owner)
    once = {"once": str(uuid.uuid4())}

    answers = [owner.post(f"{ENDPOINTS}/{endpoint_id}/delete", once) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [303, 303]
    assert owner.get(f"{ENDPOINTS}/{endpoint_id}").status_code == 404
    assert one("SELECT count(*) FROM jobs WHERE kind = 'endpoints.delete'") == 1


def test_the_list_is_searched_by_address_and_state(owner: Person, api: Api) -> None:
    api.endpoint("https://shop.example/100%_sure")
    stopped = api.endpoint("https://other.example/hooks")
    stop(stopped)

    assert "shop.example" in owner.page(f"{LIST}?q=SHOP")
    assert "other.example" not in owner.page(f"{LIST}?q=SHOP")
    assert "shop.example" in owner.page(f"{LIST}?q=100%25_")
    assert "No endpoint matches" in owner.page(f"{LIST}?q=1__%25sure")
    assert "100%" not in owner.page(f"{LIST}?state=stopped")
    assert "No endpoint matches" in owner.page(f"{LIST}?q=nowhere")
    assert "2 endpoints" in owner.page(f"{LIST}?state=broken")


def test_a_thousand_endpoints_are_listed_page_by_page(owner: Person, api: Api) -> None:
    rows(
        """
        INSERT INTO endpoints (id, workspace_id, address, events, secret)
        SELECT 'whe_' || lpad(n::text, 26, '0'), %s, 'https://shop.example/' || n, ARRAY['*'], 'x'
        FROM generate_series(1, 1000) AS n
        """,
        (api.workspace_id,),
    )

    first = owner.page(LIST)

    assert "1,000 endpoints" in first
    assert first.count("https://shop.example/") == 50
    following = re.search(r'rel="next" href="([^"]+)"', first)
    assert following
    assert 'title="https://shop.example/950"' in owner.page(following[1])


def test_an_empty_workspace_says_what_to_do(owner: Person, agent: Person) -> None:
    assert "There is no endpoint yet" in owner.page(LIST)
    assert "Ask an owner or admin" in agent.page(LIST)


def test_the_address_of_the_former_list_leads_to_the_list(owner: Person) -> None:
    assert owner.get(ENDPOINTS).headers["Location"].endswith(LIST)


def test_a_group_stands_for_its_kinds(owner: Person) -> None:
    endpoint_id, _ = made(owner, events=["contact.created"], group=["contact", "nothing-like-this"])

    subscribed = one("SELECT events FROM endpoints WHERE id = %s", endpoint_id)
    assert sorted(subscribed) == sorted(kind for kind in catalogue.EVENT_KINDS if kind.startswith("contact."))


def test_agents_look_but_change_nothing(agent: Person, api: Api) -> None:
    endpoint_id = api.endpoint()

    assert '<form method="post"' not in re.sub(
        r"<header.*</header>", "", agent.page(f"{ENDPOINTS}/{endpoint_id}"), flags=re.S
    )
    assert agent.get(f"{ENDPOINTS}/new").status_code == 403
    for action in ("edit", "rotate-secret", "test", "enable", "delete"):
        assert agent.post(f"{ENDPOINTS}/{endpoint_id}/{action}", FIELDS).status_code == 403
    assert agent.post(f"{ENDPOINTS}/new", FIELDS).status_code == 403


def test_another_workspace_and_its_endpoints_are_not_there(
    owner: Person, stranger: Person, api: Api, others: Api
) -> None:
    ours, theirs = api.endpoint(), others.endpoint("https://theirs.example")

    assert "theirs.example" not in owner.page(LIST)
    assert stranger.get(f"{ENDPOINTS}/{ours}").status_code == 404
    for endpoint_id in (theirs, ids.new("whe"), "whe_x"):
        assert owner.get(f"{ENDPOINTS}/{endpoint_id}").status_code == 404
        for action in ("edit", "rotate-secret", "test", "enable", "delete"):
            assert owner.post(f"{ENDPOINTS}/{endpoint_id}/{action}", FIELDS).status_code == 404


def test_staff_change_an_endpoint_in_a_visit_only(support: Person, api: Api) -> None:
    endpoint_id = api.endpoint()
    assert support.post(f"{ENDPOINTS}/{endpoint_id}/delete").status_code == 403

    support.visit()
    assert support.post(f"{ENDPOINTS}/{endpoint_id}/delete").status_code == 303

    [(actor, ticket)] = rows("SELECT actor_type, ticket FROM audit_entries WHERE action = 'endpoints.delete'")
    assert (actor, ticket) == ("support", "T-1")


def test_what_an_endpoint_is_called_is_escaped(owner: Person) -> None:
    endpoint_id, _ = made(owner, description="<script>alert(1)</script>", address="https://shop.example/?a=<b>&'\"")

    for path in (ENDPOINTS, f"{ENDPOINTS}/{endpoint_id}", f"{ENDPOINTS}/{endpoint_id}/edit"):
        text = owner.get(path).text
        assert "<script>alert" not in text
        assert "<b>" not in text
