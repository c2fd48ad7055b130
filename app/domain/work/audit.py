"""The audit log: who did what in a workspace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from marshmallow import fields, validate
from peewee import fn

from app.database import batches, rows
from app.domain.work.changes import Change
from app.lib import ids, request_ids
from app.lib.schemas import ResponseBody, about, time
from app.models.accounts import Account
from app.models.audit_entries import AuditEntry
from app.models.members import Member
from app.models.visits import Visit

_TYPES = {"tok": "token", "mem": "member", "vis": "support"}


def record(
    change: Change, target_type: str, target_id: str, detail: Mapping[str, Any], endpoint_id: str | None = None
) -> None:
    """Records a change in the audit log, in its transaction.

    Leaves `sealed_secret` out of `detail`, which must not contain other secrets. `endpoint_id`: the endpoint that the
    target belongs to, if the target is not an endpoint itself.
    """
    shown = {name: value for name, value in detail.items() if name != "sealed_secret"}
    cause, target = change.events.cause, (target_type, target_id)
    note(change.workspace_id, change.actor_id, change.kind, *target, shown, cause.trace_id, cause.job_id, endpoint_id)


def note(
    workspace_id: str | None,
    actor_id: str | None,
    action: str,
    target_type: str,
    target_id: str,
    detail: Mapping[str, Any] | None = None,
    trace_id: str | None = None,
    job_id: str | None = None,
    endpoint_id: str | None = None,
) -> None:
    """Records an action that no verb records, in the caller's transaction. `detail` has no secrets.

    `workspace_id`: None if the action is about the installation. `actor_id`: a token (`tok_…`), a member (`mem_…`) or a
    visit (`vis_…`); None for a command.
    """
    AuditEntry.insert(
        id=ids.new("aud"),
        workspace_id=workspace_id,
        action=action,
        **_actor(actor_id),
        target_type=target_type,
        target_id=target_id,
        endpoint_id=target_id if target_type == "endpoint" else endpoint_id,
        detail=detail or {},
        job_id=job_id,
        trace_id=trace_id or request_ids.kept_or_new(None),
    ).execute()


def _actor(actor_id: str | None) -> dict[str, Any]:
    """Returns the actor's columns. The inserting statement looks up the columns of a member or visit."""
    if actor_id is None:
        return {"actor_type": "command"}
    actor = {"actor_type": _TYPES[actor_id.partition("_")[0]], "actor_id": actor_id}
    if actor["actor_type"] == "member":
        return actor | {"account_id": Member.select(Member.account_id).where(Member.id == actor_id)}
    if actor["actor_type"] == "support":
        visit = Visit.select().where(Visit.id == actor_id)
        looked_up = ("account_id", "reason", "ticket")
        return actor | {name: visit.columns(getattr(Visit, name)) for name in looked_up}
    return actor


def everywhere(values: Mapping[str, Any]) -> Any:
    """Returns a query for the entries of all workspaces and of the installation.

    Only for staff and operators. `values` may have `workspace`, `actor_type` and `person`, the e-mail address of a
    member or of support staff.
    """
    found = AuditEntry.select()
    if "workspace" in values:
        found = found.where(AuditEntry.workspace_id == values["workspace"])
    if "actor_type" in values:
        found = found.where(AuditEntry.actor_type == values["actor_type"])
    if "person" in values:
        person = Account.select(Account.id).where(fn.lower(Account.email) == fn.lower(values["person"]))
        found = found.where(AuditEntry.account_id == person)
    return found


def of_contact(contact_id: str) -> Iterator[dict[str, Any]]:
    """Yields the entries about a contact and about the deliveries of its events."""
    targets = "SELECT %s UNION ALL SELECT id FROM deliveries WHERE contact_id = %s"
    for batch in batches(targets, (contact_id, contact_id)):
        yield from map(represent, AuditEntry.select().where(AuditEntry.target_id.in_(batch)).order_by(AuditEntry.id))


def names_of(workspace_id: str, actor_ids: Collection[str]) -> dict[str, str]:
    """Returns members' e-mail addresses and tokens' names by id. Leaves out deleted ones."""
    return dict(
        rows(
            """
            SELECT members.id, email FROM members JOIN accounts ON accounts.id = account_id
            WHERE members.workspace_id = %(workspace_id)s AND members.id = ANY(%(ids)s)
            UNION ALL SELECT id, name FROM tokens WHERE workspace_id = %(workspace_id)s AND id = ANY(%(ids)s)
            """,
            {"workspace_id": workspace_id, "ids": list(set(actor_ids))},
        )
    )


def names_everywhere(entries: Collection[AuditEntry]) -> dict[str, str]:
    """Returns the names of the entries' actors by id, in any workspace.

    Includes staff and former members. Show the names only to staff: customers see the ticket instead.
    """
    people = [entry.account_id for entry in entries if entry.account_id]
    emails = dict(rows("SELECT id, email FROM accounts WHERE id = ANY(%s)", (list(set(people)),)))
    tokens = [entry.actor_id for entry in entries if entry.actor_type == "token"]
    names = dict(rows("SELECT id, name FROM tokens WHERE id = ANY(%s)", (list(set(tokens)),)))
    known = {entry.actor_id: emails.get(entry.account_id) or names.get(entry.actor_id) for entry in entries}
    return {actor_id: name for actor_id, name in known.items() if actor_id and name}


class ActorSchema(ResponseBody):
    type = fields.String(validate=validate.OneOf(["token", "member", "support", "command"]))
    id = fields.String(allow_none=True, metadata=about("null for a command."))


class TargetSchema(ResponseBody):
    type = fields.String()
    id = fields.String()


class AuditEntrySchema(ResponseBody):
    id = fields.String()
    action = fields.String(metadata=about("The job's kind, or what was done on a page.", example="endpoints.enable"))
    actor = fields.Nested(ActorSchema)
    target = fields.Nested(TargetSchema)
    detail = fields.Dict(metadata=about("The request; its members depend on the action."))
    reason = fields.String(
        allow_none=True, metadata=about("Why support staff did it; null for all others.", example="They asked us to.")
    )
    ticket = fields.String(allow_none=True, metadata=about("Their ticket for it.", example="T-1042"))
    created_at = time("When the change took effect.")


def represent(entry: AuditEntry) -> dict[str, Any]:
    """Returns the entry as the API shows it."""
    return AuditEntrySchema.of(
        entry,
        actor={"type": entry.actor_type, "id": entry.actor_id},
        target={"type": entry.target_type, "id": entry.target_id},
    )
