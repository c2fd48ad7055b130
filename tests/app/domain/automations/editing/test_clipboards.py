"""What was copied or cut in the editor, and for how long it can be pasted."""

from __future__ import annotations

from app.database import rows
from app.domain.automations.editing import clipboards
from app.domain.retention import delete_old
from app.models.automations import Automation
from scheduler.timetable import Timetable
from tests.automations import make_automation
from tests.cast import Api

ADA, BEN = "mem_ada", "mem_ben"
HELLO = {"id": "hello", "kind": "send_message", "text": "Hello"}


def copy(api: Api, actor_id: str, days_ago: int) -> None:
    """Copies a step, as if it was that long ago."""
    automation = Automation.get_by_id(make_automation(api.workspace_id, {"triggers": [], "steps": [HELLO]}))
    clipboards.put(automation, actor_id, HELLO, is_cut=False)
    rows(
        "UPDATE step_clipboards SET updated_at = now() - %s * interval '1 day' WHERE actor_id = %s",
        (days_ago, actor_id),
    )


def test_what_was_copied_more_than_30_days_ago_is_forgotten(api: Api) -> None:
    copy(api, ADA, days_ago=31)
    copy(api, BEN, days_ago=29)

    assert delete_old("old_step_clipboards") == 1

    assert clipboards.of(api.workspace_id, ADA) is None
    kept = clipboards.of(api.workspace_id, BEN)
    assert kept is not None
    assert kept.step == HELLO
    assert delete_old("old_step_clipboards") == 0


def test_copying_again_counts_anew(api: Api) -> None:
    copy(api, ADA, days_ago=31)
    automation = Automation.get_by_id(make_automation(api.workspace_id, {"triggers": [], "steps": [HELLO]}))

    clipboards.put(automation, ADA, HELLO, is_cut=True)

    assert delete_old("old_step_clipboards") == 0


def test_the_scheduler_forgets_them(api: Api) -> None:
    copy(api, ADA, days_ago=31)

    Timetable().run_due()

    assert clipboards.of(api.workspace_id, ADA) is None
