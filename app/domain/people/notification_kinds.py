"""Kinds of notifications about conversations, and which of them a member wants where."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.people import message_access, roles
from app.models.members import Member

# Where a member can be told.
WAYS = ("page", "browser", "email")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of notification. `ways`: where those get it who have not chosen."""

    name: str
    label: str
    hint: str
    ways: tuple[str, ...]


# The first message of an assigned conversation is `assigned`, and only those after it are `contact_wrote`. Everybody is
# told of a new conversation, so by default that only appears on the page.
KINDS = (
    Kind("assigned", "Assigned to me", "By somebody else, a macro, an automation or the rule of a channel.", WAYS),
    Kind("contact_wrote", "A contact writes in a conversation of mine", "One entry for each conversation.", WAYS),
    Kind("mentioned", "Somebody mentions me in a note", "", WAYS),
    Kind("woken", "A snoozed conversation of mine wakes", "Because its time has come, or somebody woke it.", WAYS),
    Kind(
        "new_conversation",
        "A new conversation that is unassigned",
        "Until somebody reads it, answers it or has it assigned.",
        ("page",),
    ),
)
NAMES = tuple(kind.name for kind in KINDS)
CHOICES = tuple(f"{kind.name}:{way}" for kind in KINDS for way in WAYS)
DEFAULTS = tuple(f"{kind.name}:{way}" for kind in KINDS for way in kind.ways)


def chosen_by(member: Member) -> frozenset[str]:
    """What the member wants, as members of CHOICES."""
    return frozenset(DEFAULTS if member.notices is None else member.notices)


def wanted_by(member: Member, way: str) -> tuple[str, ...]:
    """The kinds of KINDS that the member gets in that way. None for a role that does not see conversations."""
    if not roles.may(member.role, message_access.SEE):
        return ()
    chosen = chosen_by(member)
    return tuple(name for name in NAMES if f"{name}:{way}" in chosen)


def choose(member_id: str, chosen: Iterable[str], *, shows_texts: bool) -> None:
    """Stores what the member wants, of CHOICES. `shows_texts`: whether notifications of the browser have texts."""
    given = set(chosen)
    notices = [each for each in CHOICES if each in given]
    Member.update(notices=notices, shows_texts=shows_texts).where(Member.id == member_id).execute()


def seeing_roles() -> tuple[str, ...]:
    """The roles that may see conversations. Members with other roles are not notified of them."""
    return tuple(role for role in roles.ROLES if roles.may(role, message_access.SEE))
