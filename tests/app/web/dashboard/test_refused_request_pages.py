"""The page of a request that the API refused."""

from __future__ import annotations

import pytest

from app.domain.insight import refused_requests
from app.lib import ids
from tests.app.web.counting import counted_statements
from tests.cast import Api, one
from tests.logs import MOST_STATEMENTS
from tests.pages import Person


@pytest.fixture(autouse=True)
def fresh() -> None:
    """Nothing that an earlier test was refused waits to be written."""
    refused_requests._waiting.clear()


QUOTED = "quoted-by-the-customer"


def test_a_request_id_that_a_customer_quotes_leads_to_what_was_refused_and_why(
    owner: Person, support: Person, stranger: Person, api: Api
) -> None:
    api.post("contacts", {"email": "x", "<i>": 1}, headers={"X-Request-Id": QUOTED})
    refused_requests.write_out()
    path = f"/workspaces/{api.workspace_id}/dashboard/refused-requests/{one('SELECT id FROM refused_requests')}"

    for person, search in ((owner, "dashboard/search"), (support, "/dashboard/search")):
        found = person.get(f"{search}?q={QUOTED}").text
        assert path in found
        assert "Refused request" in found
    shown = owner.get(path).text
    for part in ("422", "Validation failed", "/email", QUOTED, "/contacts", "validation-failed"):
        assert part in shown
    assert "<i>" not in shown
    assert stranger.get(path).status_code == 404


def test_a_refusal_that_is_not_there_is_not_found(owner: Person) -> None:
    assert owner.get(f"dashboard/refused-requests/{ids.new('ref')}").status_code == 404
    assert owner.get("dashboard/refused-requests/x").status_code == 404


def test_the_page_asks_few_questions_and_knows_no_problem_of_a_later_version(owner: Person, api: Api) -> None:
    refused_requests.note(api.workspace_id, "tok_1", QUOTED, ("GET", "/api"), ("later", 418))
    refused_requests.write_out()
    id = one("SELECT id FROM refused_requests")

    with counted_statements() as asked:
        assert "later" in owner.page(f"dashboard/refused-requests/{id}")
    assert len(asked) <= MOST_STATEMENTS
