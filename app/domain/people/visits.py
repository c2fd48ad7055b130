"""Visits: support staff act in a workspace for an hour, and give a reason."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from app import realtime
from app.database import database, transaction
from app.domain.people import accounts
from app.domain.people.workspaces import find as find_workspace
from app.domain.work import audit
from app.errors import Fault, Invalid, NotFound
from app.lib import clock, ids
from app.models.visits import Visit

LENGTH = timedelta(hours=1)
LONGEST_REASON = 500
LONGEST_TICKET = 100


def begin(account_id: str, workspace_id: str, reason: str, ticket: str) -> Visit:
    """Begins a visit of LENGTH.

    Raises Invalid if the reason or ticket is empty or too long, and NotFound if there is no such workspace or enabled
    support account.
    """
    faults = [*_faults("reason", reason, LONGEST_REASON), *_faults("ticket", ticket, LONGEST_TICKET)]
    if faults:
        raise Invalid(*faults)
    account, workspace = accounts.get(account_id), find_workspace(workspace_id)
    if not account.is_support or account.disabled_at is not None:
        raise NotFound()
    now = clock.now()
    visit = Visit(
        id=ids.new("vis"),
        account_id=account.id,
        workspace_id=workspace.id,
        reason=reason.strip(),
        ticket=ticket.strip(),
        created_at=now,
        expires_at=now + LENGTH,
    )
    with transaction():
        Visit.insert(visit.__data__).execute()
        audit.note(workspace.id, visit.id, "visits.begin", "visit", visit.id)
    return visit


def end(visit_id: str) -> None:
    """Ends the visit at once. Safe to repeat."""
    now = clock.now()
    with transaction():
        ended = Visit.update(expires_at=now).where(Visit.id == visit_id, Visit.expires_at > now)
        for visit in ended.returning(Visit).execute():
            audit.note(visit.workspace_id, visit.id, "visits.end", "visit", visit.id, {})
            database.after_commit(partial(realtime.check_admission, "visit", visit.id))


def end_all(account_id: str) -> None:
    """Ends all visits of the account at once."""
    theirs = Visit.select(Visit.id).where(Visit.account_id == account_id, Visit.expires_at > clock.now())
    for visit in theirs:
        end(visit.id)


def _faults(name: str, text: str, longest: int) -> list[Fault]:
    if not text.strip() or len(text.strip()) > longest or "\0" in text:
        return [Fault(f"/{name}", f"Give a {name} of 1 to {longest} characters.")]
    return []
