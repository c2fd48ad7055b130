"""Members: which accounts belong to a workspace, and their roles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from marshmallow import fields, validate

from app import realtime
from app.database import database, rows, transaction
from app.domain.people import accounts
from app.domain.people.roles import ROLES
from app.domain.people.sessions import MOST_MEMBERSHIPS
from app.domain.work import audit
from app.errors import Conflict, Fault, Invalid, NotFound
from app.lib import clock, ids
from app.lib.schemas import ResponseBody, about, time
from app.models.accounts import Account, PasswordLink
from app.models.members import Member

MOST_MEMBERS = 500
_PEOPLE = """
    SELECT members.id, accounts.id, email, role, is_support, password_hash IS NOT NULL, members.created_at,
        availability, capacity
    FROM members JOIN accounts ON accounts.id = account_id"""
AVAILABILITIES = ("available", "away")
_LAST_OWNER = "A workspace needs an owner. Make somebody else an owner first."


@dataclass(frozen=True, slots=True)
class Person:
    """A member, with the account's address. `has_password`: whether the person can sign in yet.

    `capacity`: the number of open conversations at which the assignment rule stops; None for no limit.
    """

    member_id: str
    account_id: str
    email: str
    role: str
    is_support: bool
    has_password: bool
    created_at: datetime
    availability: str
    capacity: int | None


def create(workspace_id: str, email: str, password: str, role: str, is_support: bool = False) -> tuple[Member, Account]:
    """Makes somebody a member who can sign in with this password at once. For operators.

    Replaces the password of an account that exists, and ends its sessions. Raises Invalid if the address or password is
    not valid, and Conflict if the person is a member already.
    """
    hashed = accounts.hash_password(password)
    with transaction():
        account = accounts.find_or_make(email)
        if of_account(workspace_id, account.id) is not None:
            raise Conflict(f"{account.email} is a member of this workspace already.")
        member = add(workspace_id, account.id, role)
        if is_support:
            Account.update(is_support=True).where(Account.id == account.id).execute()
        if is_support or account.is_support:  # conversations must not be assigned to support staff
            Member.update(availability="away").where(Member.id == member.id).execute()
        accounts.store_password(account.id, hashed)
        audit.note(workspace_id, None, "members.create", "member", member.id, {"role": role})
    return member, accounts.get(account.id)


def check_role(role: str) -> None:
    """Raises Invalid if `role` is not in ROLES."""
    if role not in ROLES:
        raise Invalid(Fault("/role", f"A role is one of {', '.join(ROLES)}."))


def add(workspace_id: str, account_id: str, role: str) -> Member:
    """Makes the account a member, and returns the member. An existing member keeps the old role.

    Raises Invalid if the role is unknown, and Conflict if the workspace or the person has too many memberships.
    """
    check_role(role)
    with transaction():
        lock(workspace_id, account_id)
        if (member := of_account(workspace_id, account_id)) is not None:
            return member
        if Member.in_workspace(workspace_id).limit(MOST_MEMBERS).count() >= MOST_MEMBERS:
            raise Conflict(f"A workspace has at most {MOST_MEMBERS} members.")
        if Member.select().where(Member.account_id == account_id).limit(MOST_MEMBERSHIPS).count() >= MOST_MEMBERSHIPS:
            raise Conflict(f"A person can be a member of at most {MOST_MEMBERSHIPS} workspaces.")
        member = Member(
            id=ids.new("mem"),
            workspace_id=workspace_id,
            account_id=account_id,
            role=role,
            read_until=ids.bound("ntf", clock.now()),  # earlier notifications count as read
        )
        Member.insert(member.__data__).execute()
    return member


def lock(workspace_id: str | None, account_id: str) -> None:
    """Locks the workspace, then the account, so that changes to either wait and never deadlock.

    A caller that also changes links must lock the links afterwards.
    """
    rows("SELECT 1 FROM workspaces WHERE id = %s FOR NO KEY UPDATE", (workspace_id,))
    rows("SELECT 1 FROM accounts WHERE id = %s FOR NO KEY UPDATE", (account_id,))


def of_account(workspace_id: str, account_id: str) -> Member | None:
    """Returns the account's membership of the workspace; None if it has none."""
    found: Member | None = Member.in_workspace(workspace_id).where(Member.account_id == account_id).first()
    return found


def of_workspace(workspace_id: str) -> list[Person]:
    """Returns the members of a workspace, oldest first, up to MOST_MEMBERS."""
    found = rows(f"{_PEOPLE} WHERE workspace_id = %s ORDER BY members.id LIMIT %s", (workspace_id, MOST_MEMBERS))
    return [Person(*each) for each in found]


def newest(workspace_id: str, last_id: str | None, limit: int) -> list[Person]:
    """Returns up to `limit` members, newest first, that joined before `last_id`, if given."""
    found = rows(
        f"{_PEOPLE} WHERE workspace_id = %s AND members.id < %s ORDER BY members.id DESC LIMIT %s",
        (workspace_id, last_id or "mem_~", limit),
    )
    return [Person(*each) for each in found]


def find(workspace_id: str, member_id: str) -> Person:
    """Returns the member. Raises NotFound."""
    found = rows(f"{_PEOPLE} WHERE workspace_id = %s AND members.id = %s", (workspace_id, member_id))
    if not found:
        raise NotFound
    return Person(*found[0])


class MemberSchema(ResponseBody):
    id = fields.String()
    email = fields.String()
    role = fields.String(validate=validate.OneOf(list(ROLES)))
    availability = fields.String(
        validate=validate.OneOf(AVAILABILITIES), metadata=about("Whether the rule assigns conversations to them.")
    )
    capacity = fields.Integer(
        allow_none=True,
        metadata=about(
            "With so many open conversations the rule assigns no more; null: there is no limit.", example=20
        ),
    )
    created_at = time("When they became a member.")


def represent(person: Person) -> dict[str, Any]:
    """Returns the member as the API shows it."""
    return MemberSchema.of(person, id=person.member_id)


def change_role(workspace_id: str, member_id: str, role: str, actor_id: str | None) -> None:
    """Changes a member's role. Raises NotFound, Invalid, and Conflict for the last owner.

    After the commit, the member's live connections are checked again.
    """
    with transaction():
        member, is_last_owner = _lock(workspace_id, member_id)
        check_role(role)
        if is_last_owner and role != "owner":
            raise Conflict(_LAST_OWNER)
        if member.role != role:
            Member.update(role=role).where(Member.id == member.id).execute()
            detail = {"from": member.role, "to": role}
            audit.note(workspace_id, actor_id, "members.change_role", "member", member.id, detail)
            database.after_commit(partial(realtime.check_admission, "member", member.id))


def remove(workspace_id: str, member_id: str, actor_id: str | None) -> None:
    """Removes a member, who loses access at once. Raises NotFound, and Conflict for the last owner.

    Voids the person's open invitations to the workspace.
    """
    with transaction():
        member, is_last_owner = _lock(workspace_id, member_id)
        if is_last_owner:
            raise Conflict(_LAST_OWNER)
        Member.delete().where(Member.id == member.id).execute()
        # An invitation that is still open would let the person in again.
        theirs = (PasswordLink.workspace_id == workspace_id) & (PasswordLink.account_id == member.account_id)
        PasswordLink.update(used_at=clock.now()).where(theirs, PasswordLink.used_at.is_null()).execute()
        # The log names members by id. Once the member is deleted, only this entry has the e-mail address.
        email = accounts.get(member.account_id).email
        audit.note(workspace_id, actor_id, "members.remove", "member", member.id, {"email": email, "role": member.role})
        database.after_commit(partial(realtime.check_admission, "member", member.id))


def exists(workspace_id: str, member_id: str) -> bool:
    """Returns whether the workspace has a member with that id."""
    return bool(Member.select().where(Member.id == member_id, Member.workspace_id == workspace_id).exists())


def existing(workspace_id: str, member_ids: Iterable[str]) -> set[str]:
    """Returns the ids among `member_ids` that belong to members of the workspace."""
    if not (wanted := list(member_ids)):
        return set()
    return {member.id for member in Member.in_workspace(workspace_id).where(Member.id.in_(wanted))}


def _lock(workspace_id: str, member_id: str) -> tuple[Member, bool]:
    """Returns the member, locked, and whether it is the last owner. Raises NotFound.

    Locks all owners too, so that two concurrent changes cannot remove the last two.
    """
    owners = rows(
        "SELECT id FROM members WHERE workspace_id = %s AND role = 'owner' ORDER BY id FOR UPDATE", (workspace_id,)
    )
    member: Member | None = Member.in_workspace(workspace_id).where(Member.id == member_id).for_update().first()
    if member is None:
        raise NotFound("There is no such member in this workspace.")
    return member, owners == [(member.id,)]
