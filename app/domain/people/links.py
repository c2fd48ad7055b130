"""Links, each of which works once: to set a password, or to join a workspace."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from app.config import settings
from app.database import rows, transaction
from app.domain.people import accounts, members
from app.domain.people.members import check_role
from app.domain.work import audit
from app.errors import Conflict, NotFound
from app.lib import clock, ids, token_format
from app.models.accounts import Account, PasswordLink

INVITATION_LIFE = timedelta(days=7)
RESET_LIFE = timedelta(hours=1)
# The most invitations that a workspace makes in a day, in all and to one address: each may be an e-mail to a stranger.
MOST_INVITATIONS = 200
MOST_TO_ONE = 5
# The most open reset links of an account.
MOST_RESETS = 5
_OF_STAFF = "This is a support account, and these belong to no workspace. Ask for an invitation to another address."
_GONE = "This link has been used, has expired or was withdrawn. Ask for a new one."


@dataclass(frozen=True, slots=True)
class Open:
    """A link that can still be used. `sets_password`: whether using it requires a new password."""

    link_id: str
    account_id: str
    email: str
    purpose: Literal["invitation", "reset"]
    workspace_id: str | None
    workspace_name: str | None
    role: str | None
    sets_password: bool


@dataclass(frozen=True, slots=True)
class Invitation:
    """An open invitation, as members of its workspace see it."""

    link_id: str
    email: str
    role: str
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Made:
    """A new link. `address` contains its token and cannot be shown again."""

    link_id: str
    account: Account
    address: str
    workspace_id: str | None


def invite(workspace_id: str, email: str, role: str, actor_id: str | None = None) -> Made:
    """Creates an invitation to the workspace, which replaces an open one of the same person.

    Raises Invalid if the address or role is not valid, and Conflict if the person is a member, or after too many
    invitations within a day.
    """
    check_role(role)
    with transaction():
        # The lock serializes the invitations of a workspace, so that the limits hold.
        rows("SELECT 1 FROM workspaces WHERE id = %s FOR NO KEY UPDATE", (workspace_id,))
        account = accounts.find_or_make(email)
        if members.of_account(workspace_id, account.id) is not None:
            raise Conflict(f"{account.email} is a member of this workspace already.")
        _check_bounds(workspace_id, account)
        theirs = (PasswordLink.workspace_id == workspace_id) & (PasswordLink.account_id == account.id)
        PasswordLink.update(used_at=clock.now()).where(theirs, _is_open()).execute()
        made = _make(account, "invitation", INVITATION_LIFE, workspace_id, role)
        audit.note(workspace_id, actor_id, "members.invite", "invitation", made.link_id, {"role": role})
    return made


def reset(account: Account) -> Made:
    """Creates a link that sets a new password. Voids the oldest open ones beyond MOST_RESETS.

    Raises Conflict for a disabled account.
    """
    if account.disabled_at is not None:
        raise Conflict(f"{account.email} is disabled. First enable it: python -m app support enable.")
    made = _make(account, "reset", RESET_LIFE)
    is_reset = (PasswordLink.account_id == account.id) & (PasswordLink.purpose == "reset")
    newest = PasswordLink.select(PasswordLink.id).where(is_reset).order_by(PasswordLink.id.desc()).limit(MOST_RESETS)
    PasswordLink.update(used_at=clock.now()).where(is_reset, _is_open(), PasswordLink.id.not_in(newest)).execute()
    return made


def resets_within(account: Account, span: timedelta) -> int:
    """Returns how many reset links the account was given within `span`, counted up to MOST_RESETS."""
    is_reset = (PasswordLink.account_id == account.id) & (PasswordLink.purpose == "reset")
    made = PasswordLink.select(PasswordLink.id).where(is_reset, PasswordLink.id > ids.bound("lnk", clock.now() - span))
    return int(made.limit(MOST_RESETS).count())


def find(token: str) -> Open:
    """Returns the link. Raises NotFound if it cannot be used any more, or its account is disabled."""
    found = rows(
        """
        SELECT links.id, accounts.id, accounts.email, purpose, workspaces.id, workspaces.name, role,
            purpose = 'reset' OR (password_hash IS NULL AND NOT is_support)
        FROM password_links AS links JOIN accounts ON accounts.id = account_id
        LEFT JOIN workspaces ON workspaces.id = workspace_id
        WHERE token_hash = %s AND used_at IS NULL AND expires_at > %s AND disabled_at IS NULL
        """,
        (token_format.digest(token), clock.now()),
    )
    if not found:
        raise NotFound(_GONE)
    return Open(*found[0])


def use(token: str, password: str) -> Open:
    """Uses up the link, and returns it. `password` is ignored unless the link sets one.

    An invitation never changes an existing password, because somebody else may have read the e-mail. Raises NotFound if
    the link cannot be used any more, Invalid if the password is too short or too long, and Conflict if the account is a
    support account or cannot join the workspace.
    """
    link = find(token)
    hashed = accounts.hash_password(password) if link.sets_password else ""
    with transaction():
        members.lock(link.workspace_id, link.account_id)
        link = find(token)  # again, under the lock: another link may have set a password since
        if not PasswordLink.update(used_at=clock.now()).where(PasswordLink.id == link.link_id, _is_open()).execute():
            raise NotFound(_GONE)
        if link.workspace_id is not None and accounts.get(link.account_id).is_support:
            raise Conflict(_OF_STAFF)
        if link.sets_password:
            accounts.store_password(link.account_id, hashed)
        if link.workspace_id is not None and link.role is not None:
            member = members.add(link.workspace_id, link.account_id, link.role)
            audit.note(link.workspace_id, member.id, "members.join", "member", member.id, {"role": member.role})
    return link


def invitations(workspace_id: str) -> list[Invitation]:
    """Returns the open invitations of a workspace, newest first, up to MOST_INVITATIONS."""
    found = rows(
        """
        SELECT links.id, email, role, links.created_at, expires_at
        FROM password_links AS links JOIN accounts ON accounts.id = account_id
        WHERE workspace_id = %s AND used_at IS NULL AND expires_at > %s ORDER BY links.id DESC LIMIT %s
        """,
        (workspace_id, clock.now(), MOST_INVITATIONS),
    )
    return [Invitation(*each) for each in found]


def renew(invitation_id: str) -> Made | None:
    """Gives an invitation a new address and expiry, and returns it; None if it is not open any more."""
    token, now = secrets.token_urlsafe(32), clock.now()
    is_it = (PasswordLink.id == invitation_id) & (PasswordLink.purpose == "invitation") & _is_open()
    renewed = PasswordLink.update(token_hash=token_format.digest(token), expires_at=now + INVITATION_LIFE).where(is_it)
    for link in renewed.returning(PasswordLink).execute():
        return Made(link.id, accounts.get(link.account_id), _address(token), link.workspace_id)
    return None


def replace(workspace_id: str, link_id: str, actor_id: str | None) -> Made:
    """Renews an invitation like `renew`, on behalf of `actor_id`, and audits it.

    Raises NotFound if the workspace has no such open invitation.
    """
    is_theirs = (PasswordLink.id == link_id) & (PasswordLink.workspace_id == workspace_id)
    with transaction():
        made = renew(link_id) if PasswordLink.select().where(is_theirs).exists() else None
        if made is None:
            raise NotFound(_GONE)
        audit.note(workspace_id, actor_id, "members.renew_invitation", "invitation", link_id)
    return made


def withdraw(workspace_id: str, link_id: str, actor_id: str | None) -> None:
    """Voids an invitation. Safe to repeat. Raises NotFound if the workspace has no link with that id."""
    is_it = (PasswordLink.id == link_id) & (PasswordLink.workspace_id == workspace_id)
    if not PasswordLink.select().where(is_it).exists():
        raise NotFound("There is no such invitation in this workspace.")
    with transaction():
        if PasswordLink.update(used_at=clock.now()).where(is_it, _is_open()).execute():
            audit.note(workspace_id, actor_id, "members.withdraw_invitation", "invitation", link_id)


def _check_bounds(workspace_id: str, account: Account) -> None:
    of_today = PasswordLink.id > ids.bound("lnk", clock.now() - timedelta(days=1))
    made = PasswordLink.select(PasswordLink.id).where(PasswordLink.workspace_id == workspace_id, of_today)
    theirs = made.where(PasswordLink.account_id == account.id)
    if theirs.limit(MOST_TO_ONE).count() >= MOST_TO_ONE:
        raise Conflict(f"{account.email} was invited {MOST_TO_ONE} times within a day. Try again tomorrow.")
    if made.limit(MOST_INVITATIONS).count() >= MOST_INVITATIONS:
        raise Conflict(f"A workspace makes at most {MOST_INVITATIONS} invitations in a day. Try again tomorrow.")


def _is_open() -> bool:
    return PasswordLink.used_at.is_null() & (PasswordLink.expires_at > clock.now())  # type: ignore[no-any-return]


def _make(
    account: Account, purpose: str, life: timedelta, workspace_id: str | None = None, role: str | None = None
) -> Made:
    token, link_id, now = secrets.token_urlsafe(32), ids.new("lnk"), clock.now()
    PasswordLink.insert(
        id=link_id,
        token_hash=token_format.digest(token),
        account_id=account.id,
        purpose=purpose,
        workspace_id=workspace_id,
        role=role,
        created_at=now,
        expires_at=now + life,
    ).execute()
    return Made(link_id, account, _address(token), workspace_id)


def _address(token: str) -> str:
    return f"{settings().base_url}/links/{token}"
