"""Unreadable dates: values of custom fields that a trigger cannot read as a date."""

from __future__ import annotations

from typing import NamedTuple

from app.database import rows
from app.domain.triggers import dates, timed_triggers
from app.domain.triggers.timed_triggers import Trigger

MOST_COUNTED = 1_000
# The most results for one contact, or for one automation.
MOST_TOLD = 20


class Unreadable(NamedTuple):
    """A trigger, the number of contacts whose date it cannot read, and one of these contacts.

    `number` stops at MOST_COUNTED.
    """

    trigger: Trigger
    number: int
    contact_id: str

    @property
    def key(self) -> str:
        """The key of the trigger."""
        return timed_triggers.key_of(self.trigger)

    @property
    def detail(self) -> str:
        """The problem as a sentence for members."""
        amount = "More than 999" if self.number == MOST_COUNTED else f"{self.number:,}"
        whose = f"{amount} contact has" if self.number == 1 else f"{amount} contacts have"
        field = dates.field_of(self.trigger)
        return f"{whose} a '{field}' that is no date, so nothing starts for them, such as {self.contact_id}."


def of_automation(automation_id: str) -> list[Unreadable]:
    """Returns the published triggers that cannot read some contacts' dates, up to MOST_TOLD."""
    found = rows(_OF_AUTOMATION, {"id": automation_id, "many": MOST_COUNTED, "most": MOST_TOLD})
    return [Unreadable(timed_triggers.trigger_of(key), number, contact_id) for key, number, contact_id in found]


def of_contact(contact_id: str) -> dict[str, list[str]]:
    """Returns the names of automations that cannot read a date of the contact, by custom field.

    Up to MOST_TOLD.
    """
    waiting: dict[str, list[str]] = {}
    for key, name in rows(_OF_CONTACT, (contact_id, MOST_TOLD)):
        waiting.setdefault(dates.field_of(timed_triggers.trigger_of(key)), []).append(name)
    return waiting


_OF_AUTOMATION = """
    SELECT key, count(*), min(contact_id) FROM (
        SELECT key, contact_id FROM timed_triggers CROSS JOIN LATERAL (
            SELECT contact_id FROM waiting_starts
            WHERE automation_id = timed_triggers.automation_id AND key = timed_triggers.key AND is_unreadable
            LIMIT %(many)s) AS unreadable
        WHERE automation_id = %(id)s AND NOT is_ended) AS found
    GROUP BY key ORDER BY key LIMIT %(most)s
"""
_OF_CONTACT = """
    SELECT key, automations.name FROM waiting_starts JOIN automations ON automations.id = automation_id
    WHERE contact_id = %s AND is_unreadable ORDER BY automations.name, key LIMIT %s
"""
