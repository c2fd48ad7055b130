"""Describes entries of the audit log in words."""

from __future__ import annotations

_PAST = {
    "abort": "aborted",
    "begin": "began",
    "cancel": "cancelled",
    "continue": "continued",
    "create": "created",
    "delete": "deleted",
    "disable": "disabled",
    "discard": "discarded",
    "enable": "enabled",
    "end": "ended",
    "erase": "erased",
    "import": "ran",
    "merge": "merged",
    "pause": "paused",
    "publish": "published",
    "reauthorize": "reconnected",
    "remove": "removed",
    "replay": "replayed",
    "resend": "resent",
    "restore": "restored an earlier version of",
    "resume": "resumed",
    "revoke": "revoked",
    "start": "started",
    "unpublish": "unpublished",
    "update": "changed",
    "upsert": "created or changed",
}
# Phrases for actions whose name and target do not make a sentence.
_PHRASES = {
    "automations.cancel_runs": "cancelled runs of the automation",
    "automations.move_runs": "moved runs of the automation",
    "automations.start_list": "started the automation for a list",
    "contacts.add_tag": "added a tag to the contact",
    "contacts.remove_tag": "removed a tag from the contact",
    "deliveries.create": "sent an event to another endpoint as the delivery",
    "deliveries.discard": "discarded deliveries of the workspace",
    "endpoints.resend": "resent deliveries of the endpoint",
    "endpoints.rotate_secret": "changed the secret of the endpoint",
    "endpoints.test": "sent a test to the endpoint",
    "jobs.discard_many": "discarded many failed jobs of the workspace",
    "jobs.replay_many": "replayed many failed jobs of the workspace",
    "macros.apply": "applied a macro to the conversation",
    "members.change_role": "changed the role of the member",
    "members.give_back": "gave back conversations of the member",
    "members.invite": "made the invitation",
    "members.join": "joined the workspace as the member",
    "members.renew_invitation": "renewed the invitation",
    "members.withdraw_invitation": "withdrew the invitation",
    "selections.apply": "changed many conversations of the workspace",
    "support.create": "made the support account",
    "support.remove": "made an ordinary account of the support account",
    "support.reset": "made a link that sets the password of the account",
}


def did(action: str, target_type: str) -> str:
    """Returns what the actor did, up to the target's name, such as "resent the delivery"."""
    if action in _PHRASES:
        return _PHRASES[action]
    target = target_type.replace("_", " ")
    past = _PAST.get(action.rpartition(".")[2])
    return f"{past} the {target}" if past else f"did {action} to the {target}"
