"""The guide to automations, and its recipes: read from the pages, installed, and carried out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from app.database import rows
from app.lib import json
from app.models.contacts import Contact
from app.models.runs import Run
from tests.automations import carry_on
from tests.cast import Api, all_of

PAGE = Path(__file__).parents[2] / "docs" / "automations.md"
FURTHER = PAGE.with_name("recipes.md")


def recipes(page: Path = PAGE) -> dict[str, dict[str, Any]]:
    """The bodies of a page's recipes by their headings."""
    found = re.findall(r"^##+ (\d+\. .+?)\n(.*?)(?=^##|\Z)", page.read_text(), re.DOTALL | re.MULTILINE)
    return {name: _body(text) for name, text in found}


def publish(shop: Api, body: dict[str, Any]) -> str:
    created = shop.post("automations", body)
    assert created.status_code == 202, created.json
    automation_id = str(created.json["data"]["resource"]["id"])
    published = shop.post(f"automations/{automation_id}/publish")
    shop.apply()
    assert shop.job(published)["status"] == "succeeded", shop.job(published)
    return automation_id


def go_on(shop: Api, *, pass_time: bool = False, answer: Any = None) -> None:
    """Carries out what is due; before that, ends the runs' waits."""
    if pass_time or answer is not None:
        rows(
            "UPDATE runs SET due_at = now(), resume_at = NULL, answer = %s WHERE waits_for IS NOT NULL",
            (json.dumps(answer).decode() if answer else None,),
        )
    carry_on(shop.workspace_id)


def sent() -> list[str]:
    """What was sent to contacts."""
    return all_of("SELECT text FROM messages WHERE direction = 'out' ORDER BY id")


def tags_of(contact: dict[str, Any]) -> list[str]:
    return list(Contact.get_by_id(contact["id"]).tags)


def statuses() -> list[tuple[str, str | None]]:
    return [(run.status, run.reason) for run in Run.select().order_by(Run.id)]


def _body(text: str) -> dict[str, Any]:
    [block] = re.findall(r"^```json\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return dict(json.loads(block))
