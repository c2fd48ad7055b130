"""Roles and the actions that each may do, as data for routes and tests."""

from __future__ import annotations

from collections.abc import Mapping

ROLES = ("owner", "admin", "agent")

_ALL = frozenset(ROLES)
_ADMINS = frozenset({"owner", "admin"})
_OWNERS = frozenset({"owner"})

# The actions, and the roles that may do them. `macros` includes saved replies.
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
# Actions that change nothing. Support staff may do them in every workspace.
SEEING = frozenset(action for action in ACTIONS if action.endswith(".see"))
# Actions that hand out access or data. Support staff may not do them, even during a visit.
NOT_FOR_SUPPORT = frozenset({"members.manage", "tokens.manage", "contacts.export"})


def may(role: str, action: str) -> bool:
    """Returns whether members with this role may do the action. Raises KeyError if it is unknown."""
    return role in ACTIONS[action]


def support_may(action: str, visiting: bool) -> bool:
    """Returns whether support staff may do the action. `visiting`: during a visit to the workspace."""
    return action in (ACTIONS.keys() - NOT_FOR_SUPPORT if visiting else SEEING)
