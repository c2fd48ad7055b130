"""Automations: drafts, published versions, starts, and control over all runs of an automation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from marshmallow import fields, validate
from peewee import fn

from app import sql
from app.database import rows
from app.domain.automations import bulk_changes, controls, counts, publications, warnings
from app.domain.contacts import contacts
from app.domain.triggers import run_states
from app.domain.triggers.run_states import Reentry, Start
from app.domain.work.changes import Change, Effect
from app.domain.work.quotas import Quota
from app.domain.work.units import Unit
from app.errors import AutomationNotPublished, Conflict, Fault, Invalid, NotFound
from app.lib.schemas import ResponseBody, about, time
from app.models import sets
from app.models.automations import Automation, AutomationVersion, Enrolment
from app.models.contacts import Contact
from app.models.sets import Key

STATUSES = ("draft", "published", "unpublished", "paused")
REENTRY = ("every", "after_finish", "once")
QUOTA = Quota(Automation, 1_000, "automations")
MOST_COUNTED = 100_000  # runs counted by a dry run, at most
_KEPT_OUT = {
    "after_finish": "This contact is in the automation already and may enter it again when that run has ended.",
    "once": "This contact has been in the automation and may enter it only once.",
}
# Descriptions and examples of the fields, for the API's documentation.
ABOUT_NAME = {"description": "For people; it need not be unique.", "example": "Welcome new customers"}
EXAMPLE = {
    "triggers": [{"event": "tag.added", "tag": "vip"}],
    "steps": [
        {"id": "pause", "kind": "wait", "seconds": 3600},
        {"id": "mark", "kind": "add_tag", "tag": "welcomed"},
    ],
}
ABOUT_EXITS: dict[str, Any] = {
    "description": "The events that end a contact's runs, in the form of triggers.",
    "example": [{"event": "sale.recorded"}],
}
ABOUT_GOAL: dict[str, Any] = {
    "description": "The event that shows that a run was a success, counted for runs that begin from now on.",
    "example": {"event": "sale.recorded", "within_seconds": 604800},
}
ABOUT_REENTRY = {
    "description": "Whether a contact may enter again: `every` time, `after_finish` of its run, or only `once`. null: "
    "`every` for `start`, `after_finish` for triggers.",
    "example": "after_finish",
}


def needs(workspace_id: str, payload: Mapping[str, Any], _: str | None) -> list[Key]:
    """Returns the keys that `start` needs in its unit."""
    contact_id = payload["contact_id"]
    enrolment_id = Enrolment.id_of(contact_id, payload["automation_id"])
    return [
        sets.key(Contact, workspace_id, "id", contact_id),
        sets.key(Enrolment, workspace_id, "id", enrolment_id),
    ]


def create(change: Change) -> Effect:
    """Creates a draft. Raises Conflict above the QUOTA."""
    QUOTA.keep(change.workspace_id)
    Automation.insert(id=change.target, workspace_id=change.workspace_id, **change.payload).execute()
    return Effect("made", "automation", change.target)


def update(change: Change) -> Effect:
    """Changes the draft (`definition`), and other fields with effect at once. Raises NotFound."""
    automation = Automation.find(change.workspace_id, change.target)
    _set(automation, **change.payload)
    if automation.status != "draft" and change.payload.keys() & {"exits", "goal"}:
        publications.listen(Automation.find(change.workspace_id, change.target))
    return Effect("changed", "automation", automation.id)


def publish(change: Change) -> Effect:
    """Publishes the draft as the next version, which new runs use. A paused automation stays paused.

    Raises NotFound; Invalid if the draft names an automation, channel or segment that does not exist; Conflict if
    automations would start each other in a loop.
    """
    automation = Automation.find(change.workspace_id, change.target)
    publications.publish(automation, change.actor_id)
    return Effect("changed", "automation", automation.id)


def restore(change: Change) -> Effect:
    """Makes an earlier version the draft again. Raises NotFound, also for an unknown version."""
    automation = Automation.find(change.workspace_id, change.target)
    version = find_version(automation, change.payload["version"])
    if version is None:
        raise NotFound(f"This automation has no version {change.payload['version']}.")
    _set(automation, definition=version.definition)
    return Effect("changed", "automation", automation.id)


def find_version(automation: Automation, number: int) -> AutomationVersion | None:
    """Returns the automation's version with that number; None if there is none."""
    found: AutomationVersion | None = AutomationVersion.get_or_none(automation_id=automation.id, number=number)
    return found


def unpublish(change: Change) -> Effect:
    """Refuses starts from now on. Existing runs continue, also runs that a pause holds.

    Raises NotFound, and Conflict if no version is published.
    """
    automation = Automation.find(change.workspace_id, change.target)
    # A job with progress comes from a release that unpublished in parts. Such a job does not fail.
    if automation.version is None and change.progress is None:
        raise Conflict("This automation is not published.")
    _end_publication(automation)
    return Effect("changed", "automation", automation.id)


def pause(change: Change) -> Effect:
    """Holds the automation's runs at their next step; starts are accepted. Raises NotFound, Conflict."""
    automation = Automation.find(change.workspace_id, change.target)
    if automation.status != "published":
        raise Conflict(f"Only a published automation can be paused. This one is {_state(automation)}.")
    _set(automation, status="paused")
    return Effect("changed", "automation", automation.id)


def resume(change: Change) -> Effect:
    """Ends a pause: held runs continue. Raises NotFound, Conflict."""
    automation = Automation.find(change.workspace_id, change.target)
    # A job with progress comes from an older release, as in `unpublish`.
    if automation.status != "paused" and change.progress is None:
        raise Conflict(f"Only a paused automation can be resumed. This one is {_state(automation)}.")
    if automation.status == "paused":
        _set(automation, status="published")
    return Effect("changed", "automation", automation.id)


def delete(change: Change) -> Effect | None:
    """Cancels the automation's runs, then deletes the automation, in parts. Keeps run history.

    Returns None until the last part. Raises NotFound, Busy.
    """
    automation = Automation.find(change.workspace_id, change.target)
    if change.progress is None:
        _end_publication(automation)
        change.keep()
    elif "is_idle" not in change.progress:
        if controls.cancel_all(change, automation):
            change.keep(is_idle=True)
    elif publications.remove_part(automation):
        return Effect("deleted", "automation", automation.id)
    return None


def start(change: Change) -> Effect:
    """Starts a run for a contact.

    Raises NotFound, AutomationNotPublished, and Invalid if there is no such contact. If `reentry` keeps the contact
    out, the effect is a refusal that names the other run, and the new run is recorded as cancelled.
    """
    unit, automation_id = change.unit, change.payload["automation_id"]
    version, reentry, goal = published(unit, change.workspace_id, automation_id)
    contact = contacts.find_named(change.workspace_id, change.payload["contact_id"], unit)
    begun = Start(
        change.workspace_id,
        automation_id,
        version,
        contact.id,
        change.cause.trace_id,
        change.payload.get("variables", {}),
        goal=goal,
        job_id=change.cause.job_id,
        run_id=change.target,
    )
    if (other := run_states.keeps_out(unit, begun, reentry)) is None:
        run_states.begin(unit, begun)
        return Effect("made", "run", change.target)
    run_states.refuse(unit, begun)
    return Effect("made", "run", change.target, Conflict(_KEPT_OUT[reentry], conflicting_run_id=other))


def check_start(workspace_id: str, payload: Mapping[str, Any], *_: object) -> None:
    """Refuses a start that would be impossible even after the queued writes.

    Raises NotFound and AutomationNotPublished for the automation, and Invalid if there is no such contact.
    """
    values = {"workspace_id": workspace_id, **{name: payload[name] for name in ("automation_id", "contact_id")}}
    [(is_there, is_published, has_contact, pending)] = rows(sql.prepared("check_start"), values)
    if not (is_there or "automations.create" in pending):
        raise NotFound()
    if not has_contact:
        raise Invalid(Fault("/contact_id", contacts.NO_CONTACT))
    if not (is_published or "automations.publish" in pending):
        raise AutomationNotPublished()


def cancel_runs(change: Change) -> Effect | None:
    """Cancels the selected unfinished runs; None until the last part is done. Raises NotFound, Busy."""
    automation = Automation.find(change.workspace_id, change.target)
    return Effect("changed", "automation", automation.id) if controls.cancel(change, automation) else None


def count_runs(workspace_id: str, automation_id: str, filters: Mapping[str, Any]) -> int:
    """Counts the runs that `cancel_runs` would cancel now, up to MOST_COUNTED. Raises NotFound."""
    return bulk_changes.count(controls.chosen(Automation.find(workspace_id, automation_id), filters), MOST_COUNTED)


class WarningSchema(ResponseBody):
    """Something that the automation may do, or has done, probably unintentionally."""

    pointer = fields.String(metadata=about("RFC 6901; '' for the automation.", example="/definition/steps/1/tag"))
    detail = fields.String(metadata=about("A sentence.", example="This may cause 'tag.added', which …"))
    chain = fields.List(
        fields.String(),
        metadata=about(
            "The automations that start each other, the last the first again; or none.",
            example=["aut_01m8362f00ehpa3xypmbhkxwpq", "aut_01m8362f00ehpa3xypmbhkxwpq"],
        ),
    )


class AutomationSchema(ResponseBody):
    OPTIONAL = ("warnings",)

    id = fields.String()
    name = fields.String(metadata=ABOUT_NAME)
    status = fields.String(validate=validate.OneOf(STATUSES))
    version = fields.Integer(allow_none=True, metadata=about("The published version, or null.", example=1))
    definition = fields.Dict(metadata=about("The draft: a Definition, as it was given.", example=EXAMPLE))
    reentry = fields.String(allow_none=True, validate=validate.OneOf(REENTRY), metadata=ABOUT_REENTRY)
    exits = fields.List(fields.Dict(), metadata=ABOUT_EXITS)
    goal = fields.Dict(allow_none=True, metadata=ABOUT_GOAL)
    runs = fields.Nested(counts.RunCountsSchema, metadata=about("Its runs by status."))
    warnings = fields.List(fields.Nested(WarningSchema), metadata=about("Of its draft; not in lists."))
    created_at = time("When the automation was created.")
    updated_at = time("When it last changed.")


class AutomationVersionSchema(ResponseBody):
    version = fields.Integer(metadata={"example": 1})
    number = fields.Integer(metadata=about("The same as `version`, under its former name.", example=1))
    definition = fields.Dict(metadata=about("A Definition, as it was given.", example=EXAMPLE))
    published_at = time("When it was published.")
    published_by = fields.String(
        allow_none=True,
        metadata=about(
            "The token (`tok_…`), member (`mem_…`) or visit (`vis_…`) that published it; null: it is not known.",
            example="tok_01kaj5bd40ewx6z8b0d2f4h6j9",
        ),
    )


def represent(automation: Automation) -> dict[str, Any]:
    """Returns the automation as in the API."""
    return {**represent_all([automation])[0], "warnings": warnings.of(automation)}


def represent_all(automations: Sequence[Automation]) -> list[dict[str, Any]]:
    """Returns automations as in the API. Reads their counts in one statement."""
    runs = counts.runs_by_status([automation.id for automation in automations])
    return [AutomationSchema.of(automation, runs=runs[automation.id]) for automation in automations]


def represent_version(version: AutomationVersion) -> dict[str, Any]:
    """Returns a published version as in the API."""
    return AutomationVersionSchema.of(version, version=version.number)


def published(unit: Unit, workspace_id: str, automation_id: str) -> tuple[int, Reentry, Mapping[str, Any] | None]:
    """Returns the published version of an automation, its `reentry` and its goal. Cached in the unit.

    Caching is safe: a write that changes automations never shares a unit with a start, or runs at the same time. Raises
    NotFound, AutomationNotPublished.
    """
    published = "SELECT version, reentry, goal FROM automations WHERE id = %s AND workspace_id = %s"
    found = unit.noted(("automation", automation_id), lambda: rows(published, (automation_id, workspace_id)))
    if not found:
        raise NotFound()
    [(version, reentry, goal)] = found
    if version is None:
        raise AutomationNotPublished()
    return version, reentry or "every", goal


def _set(automation: Automation, **fields: Any) -> None:
    Automation.update(**fields, updated_at=fn.now()).where(Automation.id == automation.id).execute()


def _end_publication(automation: Automation) -> None:
    if automation.version is not None:
        _set(automation, status="unpublished", version=None)
    publications.listen(Automation.find(automation.workspace_id, automation.id))


def _state(automation: Automation) -> str:
    return "a draft" if automation.status == "draft" else str(automation.status)
