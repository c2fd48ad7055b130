"""Publications: what is removed with an automation."""

from __future__ import annotations

import pytest

from app.database import rows, transaction
from app.domain.automations import publications
from app.domain.work.units import Busy
from app.models.automations import Automation
from tests.automations import make_automation
from tests.cast import Api, elsewhere, one

HELD = "SELECT 1 FROM enrolments FOR NO KEY UPDATE"


def test_an_automation_stays_until_nothing_of_it_is_left_that_another_transaction_holds(api: Api) -> None:
    automation = Automation.get_by_id(make_automation(api.workspace_id))
    rows(
        "INSERT INTO enrolments (id, workspace_id, contact_id, automation_id, run_id, active)"
        " VALUES ('con/aut', %s, 'con', %s, 'run', 0)",
        (api.workspace_id, automation.id),
    )

    with elsewhere(lambda: rows(HELD)), pytest.raises(Busy), transaction():
        publications.remove_part(automation)
    assert one("SELECT count(*) FROM automations") == 1
    with transaction():
        while not publications.remove_part(automation):
            pass

    assert one("SELECT count(*) FROM automations") == one("SELECT count(*) FROM enrolments") == 0
