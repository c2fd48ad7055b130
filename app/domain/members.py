"""Members: who may sign in, and as what."""

from __future__ import annotations

from argon2 import PasswordHasher
from peewee import IntegrityError

from app.errors import Conflict, Fault, Invalid
from app.lib import formats, ids
from app.models.members import Member

ROLES = ("owner", "admin", "agent")
SHORTEST_PASSWORD = 10


def create(workspace_id: str, email: str, password: str, role: str, is_support: bool = False) -> Member:
    """Creates a member. Raises Invalid for a bad address or a short password, Conflict if the address is taken."""
    if len(password) < SHORTEST_PASSWORD:
        raise Invalid(Fault("/password", f"A password has at least {SHORTEST_PASSWORD} characters."))
    try:
        address = formats.email(email)
    except ValueError as error:
        raise Invalid(Fault("/email", str(error))) from error
    member = Member(
        id=ids.new("mem"),
        workspace_id=workspace_id,
        email=address,
        password_hash=PasswordHasher().hash(password),
        role=role,
        is_support=is_support,
    )
    try:
        Member.insert(member.__data__).execute()
    except IntegrityError as error:
        raise Conflict(f"{address} is a member of this workspace already.") from error
    return member


def exists(workspace_id: str, member_id: str) -> bool:
    """Whether the workspace has that member."""
    return bool(Member.select().where(Member.id == member_id, Member.workspace_id == workspace_id).exists())
