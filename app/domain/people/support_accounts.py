"""Support accounts: the installation's staff, without a workspace.

Staff act in a workspace during a visit, which lasts an hour and has a reason.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from app import realtime
from app.database import database, rows, transaction
from app.domain.people import accounts, links, members, sessions
from app.domain.people.workspaces import find as find_workspace
from app.domain.work import audit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, ids
from app.models.accounts import Account
from app.models.members import Member
from app.models.visits import Visit

LENGTH = timedelta(hours=1)
LONGEST_REASON = 500
LONGEST_TICKET = 100


@dataclass(frozen=True, slots=True)
class Supporter:
    """A support account. `seen_at`: the last use of a live session. `disabled_at`: None if enabled.

    `member_of`: the workspaces of memberships from before. They give a support account no rights.
    """

    id: str
    email: str
    created_at: datetime
    disabled_at: datetime | None
    seen_at: datetime | None
    member_of: list[str]


def create(email: str, password: str) -> Account:
    """Creates a support account that can sign in with this password at once.

    An account without a workspace becomes a support account, gets the password, and its sessions end. Raises Invalid if
    the address or password is not valid, and Conflict for a support account or a member of a workspace.
    """
    hashed = accounts.hash_password(password)
    with transaction():
        account_id = accounts.find_or_make(email).id
        members.lock(None, account_id)
        account = accounts.get(account_id)
        if account.is_support:
            raise Conflict(f"{account.email} is a support account already.")
        if Member.select().where(Member.account_id == account.id).exists():
            raise Conflict(
                f"{account.email} is a member of a workspace, and support accounts belong to none. Take another"
                " address, or remove the membership first."
            )
        Account.update(is_support=True).where(Account.id == account.id).execute()
        accounts.store_password(account.id, hashed)
        _note("support.create", account)
    return account


def of_installation() -> list[Supporter]:
    """Returns all support accounts, oldest first."""
    found = rows(
        """
        SELECT id, email, created_at, disabled_at,
            (SELECT max(seen_at) FROM sessions WHERE account_id = accounts.id AND ended_at IS NULL),
            ARRAY(SELECT workspace_id FROM members WHERE account_id = accounts.id ORDER BY workspace_id)
        FROM accounts WHERE is_support ORDER BY id
        """
    )
    return [Supporter(*each) for each in found]


def reset(email: str) -> str:
    """Creates a link that sets a new password, once and within an hour; returns its address.

    Raises NotFound if there is no such support account, and Conflict if it is disabled.
    """
    with transaction():
        account = _lock(email)
        made = links.reset(account)
        _note("support.reset", account)
    return made.address


def disable(email: str) -> Account:
    """Disables the account: ends its sessions and visits and voids its password and links.

    Safe to repeat. Raises NotFound if there is no such support account.
    """
    hashed = _nobodys_password()
    with transaction():
        account = _lock(email)
        if account.disabled_at is None:
            Account.update(disabled_at=clock.now()).where(Account.id == account.id).execute()
            accounts.store_password(account.id, hashed)
            _end_visits(account.id)
            _note("support.disable", account)
    return account


def enable(email: str) -> str:
    """Enables the account; returns the address of a link that sets a new password.

    Raises NotFound if there is no such support account, and Conflict if it is not disabled.
    """
    hashed = _nobodys_password()
    with transaction():
        account = _lock(email)
        if account.disabled_at is None:
            raise Conflict(f"{account.email} is not disabled.")
        Account.update(disabled_at=None).where(Account.id == account.id).execute()
        # A request that began before the account was disabled may have set a password or begun a session since.
        accounts.store_password(account.id, hashed)
        made = links.reset(accounts.get(account.id))
        _note("support.enable", account)
    return made.address


def remove(email: str) -> Account:
    """Turns the account into an ordinary one, whose memberships count again.

    Ends the sessions and visits of the account. Raises NotFound if there is no such support account, and Conflict if it
    is disabled.
    """
    with transaction():
        account = _lock(email)
        if account.disabled_at is not None:
            raise Conflict(f"{account.email} is disabled. An ordinary account could sign in again.")
        Account.update(is_support=False).where(Account.id == account.id).execute()
        sessions.end_all(account.id)
        _end_visits(account.id)
        _note("support.remove", account)
    return account


def begin_visit(account_id: str, workspace_id: str, reason: str, ticket: str) -> Visit:
    """Begins a visit of LENGTH.

    Raises Invalid if the reason or ticket is empty or too long, and NotFound if there is no such workspace or enabled
    support account.
    """
    faults = [*_text_faults("reason", reason, LONGEST_REASON), *_text_faults("ticket", ticket, LONGEST_TICKET)]
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


def end_visit(visit_id: str) -> None:
    """Ends the visit at once. Safe to repeat."""
    now = clock.now()
    with transaction():
        ended = Visit.update(expires_at=now).where(Visit.id == visit_id, Visit.expires_at > now)
        for visit in ended.returning(Visit).execute():
            audit.note(visit.workspace_id, visit.id, "visits.end", "visit", visit.id, {})
            database.after_commit(partial(realtime.check_admission, "visit", visit.id))


def _lock(email: str) -> Account:
    found = accounts.find(email)
    if found is not None:
        members.lock(None, found.id)
        found = accounts.get(found.id)
    if found is None or not found.is_support:
        raise NotFound(f"There is no support account {email}.")
    return found


def _nobodys_password() -> str:
    return accounts.hash_password(secrets.token_urlsafe(32))


def _note(action: str, account: Account) -> None:
    audit.note(None, None, action, "account", account.id, {"email": account.email})


def _end_visits(account_id: str) -> None:
    for visit in Visit.select(Visit.id).where(Visit.account_id == account_id, Visit.expires_at > clock.now()):
        end_visit(visit.id)


def _text_faults(name: str, text: str, longest: int) -> list[Fault]:
    if not text.strip() or len(text.strip()) > longest or "\0" in text:
        return [Fault(f"/{name}", f"Give a {name} of 1 to {longest} characters.")]
    return []
