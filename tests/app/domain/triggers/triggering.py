"""Events of contacts for the tests of what follows from them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from app.database import transaction
from app.domain import writes
from app.domain.contacts import contacts
from app.domain.triggers import batches
from app.domain.triggers.run_states import Start
from app.domain.work.changes import Change
from app.domain.work.events import Cause
from app.domain.work.units import Unit
from app.models import sets
from app.models.contacts import Contact
from tests.cast import accept, all_of, apply, one, until

VIP = {"event": "tag.added", "tag": "vip"}
BYE = {"event": "tag.added", "tag": "bye"}


def make_contact(workspace_id: str, **fields: Any) -> str:
    known = set(all_of("SELECT id FROM contacts"))
    accept(workspace_id, "contacts.upsert", {"external_id": f"c-{len(known)}"} | fields)
    apply(workspace_id)
    return str(*(set(all_of("SELECT id FROM contacts")) - known))


def tag(workspace_id: str, contact_id: str, *names: str) -> None:
    """Adds the tags; what is left to the fan-out is not done."""
    for name in names:
        accept(workspace_id, "contacts.add_tag", {"name": name}, contact_id)
    writes.work(workspace_id)


def do(workspace_id: str, contact_id: str, *tasks: Callable[[Unit], Any]) -> list[Any]:
    """Does the tasks in a unit that has locked the contact, as soon as it can."""
    needs = [sets.key(Contact, workspace_id, "id", contact_id)]

    def attempt() -> list[Any]:
        with transaction():
            return batches.run(tasks, needs)

    return until(attempt)


def adding(workspace_id: str, contact_id: str, name: str) -> Callable[[Unit], Any]:
    change = partial(Change, workspace_id, {"name": name}, contact_id, "run", None, Cause(None, "trace-1"))
    return lambda unit: contacts.add_tag(change(unit))


def start_of(workspace_id: str, contact_id: str, automation_id: str) -> Start:
    return Start(workspace_id, automation_id, 1, contact_id, "trace-1")


def unfollowed() -> int:
    """How many events still wait for what follows from them."""
    return int(one("SELECT count(*) FROM events WHERE due_at IS NOT NULL"))
