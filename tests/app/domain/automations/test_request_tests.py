"""Tests of single requests: what is refused before anything is sent. A browser story sends one."""

from __future__ import annotations

import pytest

from app import bounds
from app.domain.automations import request_tests
from app.errors import Conflict
from app.models.automations import Automation
from tests.automations import make_automation
from tests.cast import Api

CALL = {"id": "call", "kind": "http_request", "method": "GET", "address": "https://{{ '10.0.0.1' }}/"}
MARK = {"id": "mark", "kind": "add_tag", "tag": "vip"}


@pytest.fixture
def automation(api: Api) -> Automation:
    return Automation.get_by_id(make_automation(api.workspace_id, {"steps": [CALL, MARK]}))


def test_an_address_that_runs_may_not_ask_is_refused(automation: Automation) -> None:
    tested = request_tests.send(automation, automation.definition, "call", None)

    assert tested.status is None
    assert tested.saved["error"]["code"] == "private_address"


def test_only_requests_are_sent_and_not_too_many(automation: Automation) -> None:
    for _ in range(bounds.TESTED_REQUESTS_PER_WORKSPACE.most):
        with pytest.raises(Conflict, match="sends no request"):
            request_tests.send(automation, automation.definition, "mark", None)
    with pytest.raises(Conflict, match="Too many"):
        request_tests.send(automation, automation.definition, "call", None)
