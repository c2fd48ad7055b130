"""Kinds of notifications about conversations, and each member's choice of where to get them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.people import message_access, roles
from app.models.members import Member

# Where a member can be notified.
WAYS = ("page", "browser", "email")


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of notification. `ways`: where members get it by default."""

    name: str
    label: str
    hint: str
    ways: tuple[str, ...]


# The first message of an assigned conversation notifies as `assigned`, later ones as `contact_wrote`. A new
# conversation notifies everybody, so by default only on the page.
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
    """Returns the member's choice, as elements of CHOICES."""
    return frozenset(DEFAULTS if member.notices is None else member.notices)


def wanted_by(member: Member, way: str) -> tuple[str, ...]:
    """Returns the kinds that the member gets by `way`; none if the role cannot see conversations."""
    if not roles.may(member.role, message_access.SEE):
        return ()
    chosen = chosen_by(member)
    return tuple(name for name in NAMES if f"{name}:{way}" in chosen)


def choose(member_id: str, chosen: Iterable[str], *, shows_texts: bool) -> None:
    """Stores the member's choice, a subset of CHOICES.

    `shows_texts`: whether browser notifications show texts.
    """
    given = set(chosen)
    notices = [each for each in CHOICES if each in given]
    Member.update(notices=notices, shows_texts=shows_texts).where(Member.id == member_id).execute()


def seeing_roles() -> tuple[str, ...]:
    """Returns the roles that may see conversations: only their members are notified of them."""
    return tuple(role for role in roles.ROLES if roles.may(role, message_access.SEE))
