"""Roles: what each may do, as data that routes use and tests walk."""

from __future__ import annotations

from collections.abc import Mapping

ROLES = ("owner", "admin", "agent")

_ALL = frozenset(ROLES)
_ADMINS = frozenset({"owner", "admin"})
_OWNERS = frozenset({"owner"})

# `macros` are saved replies, too.
ACTIONS: Mapping[str, frozenset[str]] = {
    "dashboard.see": _ALL,
    "messages.see": _ALL,
    "conversations.answer": _ALL,
    "macros.see": _ALL,
    "macros.manage": _ALL,
    "views.share": _ADMINS,
    "deliveries.resend": _ALL,
    "replays.manage": _ADMINS,
    "jobs.manage": _ADMINS,
    "runs.manage": _ALL,
    "automations.see": _ALL,
    "automations.manage": _ADMINS,
    "segments.see": _ALL,
    "segments.manage": _ADMINS,
    "broadcasts.see": _ALL,
    "broadcasts.manage": _ADMINS,
    "endpoints.see": _ALL,
    "endpoints.manage": _ADMINS,
    "tokens.manage": _ADMINS,
    "channels.see": _ALL,
    "channels.manage": _ADMINS,
    "contacts.see": _ALL,
    "contacts.edit": _ALL,
    "contacts.import": _ADMINS,
    "contacts.export": _ADMINS,
    "contacts.erase": _ADMINS,
    "members.see": _ALL,
    "members.manage": _OWNERS,
    "availability.manage": _ADMINS,
    "billing.see": _ADMINS,
    "audit.see": _ADMINS,
    "notifications.see": _ALL,
}
# Actions that only show something. Support staff may do them everywhere.
SEEING = frozenset(action for action in ACTIONS if action.endswith(".see"))
# Support staff may not do these, even during a visit: they would hand out access or data.
NOT_FOR_SUPPORT = frozenset({"members.manage", "tokens.manage", "contacts.export"})


def may(role: str, action: str) -> bool:
    """Whether a member with this role may do that. Raises KeyError for an action that is not in the matrix."""
    return role in ACTIONS[action]


def support_may(action: str, visiting: bool) -> bool:
    """Whether support staff may do that in a workspace that they are `visiting` or not."""
    allowed = ACTIONS.keys() - NOT_FOR_SUPPORT if visiting else SEEING
    return action in allowed
