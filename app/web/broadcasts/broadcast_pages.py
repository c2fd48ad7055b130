"""Broadcasts: pages that list, compose, schedule, follow, pause, continue and abort them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template, request
from werkzeug.wrappers import Response as AnyResponse

from app.database import now, replica
from app.domain.automations import automations
from app.domain.broadcasts import broadcast_counts, broadcasts
from app.domain.channels import media
from app.domain.contacts import contact_names
from app.domain.segments import segments
from app.domain.work import audit
from app.errors import Conflict, Invalid
from app.lib import ids
from app.models.automations import Automation
from app.models.broadcasts import OUTCOMES, STATES, Broadcast, BroadcastRow
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Message
from app.models.segments import Segment
from app.web import filters, uploads, writes
from app.web.access import Forbidden, page, viewer, workspace_id
from app.web.broadcasts import broadcast_forms, broadcast_previews
from app.web.broadcasts.broadcast_forms import EVERYBODY, Given
from app.web.broadcasts.broadcast_previews import Preview
from app.web.forms import Answer, status_of
from app.web.lists import address, numbered, sliced, streamed, wanted_format
from app.web.redirects import to
from app.web.settings import channel_forms

blueprint = Blueprint("broadcast_pages", __name__, url_prefix="/workspaces/<workspace>/broadcasts")

# How many rows of a file are read at once, and the columns of their contacts.
BATCH = 500
_NAMES = ("first_name", "last_name", "email", "phone")
# Shorter waits are not shown.
_SOON = timedelta(minutes=1)
_CHANGED = "Something has changed since the preview. Look at the new one below, then press the button again."
_CHOICES = {
    "state": filters.choices("All states", STATES),
    "outcome": [*filters.choices("All", OUTCOMES), ("replied", "replied")],
}
_MOVED = {
    "pause": "The broadcast is paused.",
    "continue": "The broadcast continues.",
    "abort": "The broadcast is aborted. Contacts that it had not reached get nothing.",
}


@blueprint.get("")
@page("broadcasts.see")
def index() -> str:
    """Lists the broadcasts, newest first."""
    state = filters.read({"state": filters.one_of(STATES)}).values.get("state")
    listed = sliced(partial(Broadcast.newest, workspace_id(), state))
    shown = broadcasts.represent_all(listed.rows)
    return render_template("broadcasts/index.html", page=listed, shown=shown, state=state, choices=_CHOICES)


@blueprint.get("/<broadcast_id>")
@page("broadcasts.see")
def show(broadcast_id: str) -> str | Response:
    """Shows a broadcast: its progress, its results and its contacts; or sends the contacts as a file.

    Raises Forbidden for a file if the viewer may not export contacts.
    """
    broadcast = Broadcast.find(workspace_id(), broadcast_id)
    asked = filters.read({"outcome": filters.one_of((*OUTCOMES, "replied"))}).values.get("outcome")
    outcome, replied = (None, True) if asked == "replied" else (asked, None)
    if wanted_format():
        if not viewer().may("contacts.export"):
            raise Forbidden.to("contacts.export")
        return streamed(_in_files(broadcast.id, outcome, replied), "broadcast")
    listed = numbered(partial(BroadcastRow.newest, broadcast.id, outcome, replied))
    return render_template(
        "broadcasts/show.html",
        broadcast=broadcast,
        shown=broadcasts.represent(broadcast),
        segment=Segment.get_or_none(Segment.id == broadcast.segment_id),
        automation=Automation.get_or_none(Automation.id == broadcast.automation_id),
        channel=Channel.get_or_none(Channel.id == broadcast.channel_id),
        creator=audit.names_of(workspace_id(), [broadcast.created_by or ""]).get(broadcast.created_by or ""),
        pace=_pace(broadcast),
        waits_until=_waits_until(broadcast),
        opted_out=broadcast_counts.opted_out_since(broadcast.id),
        goals=broadcast_counts.goals_reached(broadcast.id) if broadcast.automation_id else 0,
        page=listed,
        names=contact_names.names_of(workspace_id(), {row.contact_id for row in listed.rows}),
        messages=_messages_of(listed.rows),
        reasons=broadcast_forms.REASONS,
        outcome=asked,
        choices=_CHOICES,
        address=address,
    )


@blueprint.get("/new", endpoint="new")
@blueprint.get("/<broadcast_id>/edit", endpoint="edit")
@page("broadcasts.manage")
def edit(broadcast_id: str | None = None) -> str | AnyResponse:
    """Shows the form of a new or a scheduled broadcast; for any other, redirects to the broadcast."""
    if broadcast_id is None:
        return _form(None, Given())
    broadcast = Broadcast.find(workspace_id(), broadcast_id)
    if broadcast.state != "scheduled":
        return to("broadcast_pages.show", broadcast_id=broadcast.id)
    return _form(broadcast, broadcast_forms.given_of(broadcast))


@blueprint.post("/new", endpoint="create")
@blueprint.post("/<broadcast_id>/edit", endpoint="update")
@page("broadcasts.manage", most_bytes=uploads.MOST_FORM_BYTES)
def save(broadcast_id: str | None = None) -> Answer:
    """Sends or schedules a broadcast, or changes a scheduled one, and redirects to it.

    Without `do=send`, only shows a preview. Redirects to the list if the write is delayed. Shows the form again if it
    is refused, or if it was changed since its preview (409).
    """
    broadcast = Broadcast.find(workspace_id(), broadcast_id) if broadcast_id else None
    given = broadcast_forms.given()
    try:
        broadcast_forms.keep_files(given)
        body = broadcast_forms.body_of(given, broadcast)
        if request.form.get("do") != "send":
            return _form(broadcast, given, preview=broadcast_previews.of(body, given.sample))
        if request.form.get("previewed") != given.digest:
            return _form(broadcast, given, {"": _CHANGED}, broadcast_previews.of(body, given.sample)), 409
        if broadcast is None:
            job = writes.submit("broadcasts.create", body, ids.new("bct"))
        else:
            # Empty fields of the form reset the broadcast's values.
            emptied = dict.fromkeys(("channel_id", "per_second", "send_at"))
            job = writes.submit("broadcasts.update", {**emptied, "time_zone": "workspace", **body}, broadcast.id)
    except (Invalid, Conflict) as error:
        return _form(broadcast, given, broadcast_forms.errors_of(error)), status_of(error)
    if not job.is_finished:
        return to("broadcast_pages.index")
    return to("broadcast_pages.show", broadcast_id=str(job.resource_id))


@blueprint.post("/<broadcast_id>/pause", defaults={"move": "pause"})
@blueprint.post("/<broadcast_id>/continue", defaults={"move": "continue"})
@blueprint.post("/<broadcast_id>/abort", defaults={"move": "abort"})
@page("broadcasts.manage")
def move(broadcast_id: str, move: str) -> AnyResponse:
    """Pauses, continues or aborts the broadcast, and redirects to it."""
    broadcast = Broadcast.find(workspace_id(), broadcast_id)
    writes.tell(_MOVED[move], f"broadcasts.{move}", {}, broadcast.id)
    return to("broadcast_pages.show", broadcast_id=broadcast.id)


def _form(
    broadcast: Broadcast | None, given: Given, errors: dict[str, str] | None = None, preview: Preview | None = None
) -> str:
    found = list(Segment.in_workspace(workspace_id()).order_by(Segment.id.desc()).limit(segments.QUOTA.most))
    published = Automation.in_workspace(workspace_id()).where(Automation.version.is_null(False))
    published = published.order_by(Automation.id.desc()).limit(automations.QUOTA.most)
    channels = Channel.in_workspace(workspace_id()).order_by(Channel.id.desc())
    everybody = "The contacts of its own filter" if broadcast and broadcast.segment_id is None else "All contacts"
    return render_template(
        "broadcasts/form.html",
        broadcast=broadcast,
        given=given.fields,
        digest=given.digest,
        files=uploads.named(given.kept),
        errors=errors or {},
        preview=preview,
        has_segments=bool(found),
        audiences=[("", "Choose …"), *((each.id, each.name) for each in found), (EVERYBODY, everybody)],
        automations=[("", "None"), *((each.id, each.name) for each in published)],
        channels=[("", "That of each contact's latest conversation"), *((each.id, each.name) for each in channels)],
        zone=broadcast_forms.zone().key,
        reasons=broadcast_forms.REASONS,
        fillings=broadcast_forms.NAMES,
        answers=broadcast_forms.answers_of(given),
        form_of=channel_forms.form_of,
        names=contact_names,
        most_files=media.MOST_FILES,
    )


def _pace(broadcast: Broadcast) -> tuple[float, float] | None:
    """Returns contacts per second, and the estimated milliseconds left; None if neither is known."""
    if broadcast.state != "running" or not broadcast.handled or broadcast.reached is not None:
        return None
    seconds = max((now() - broadcast.started_at).total_seconds(), 1)
    rate = broadcast.handled / seconds
    return rate, 1000 * (broadcast.count - broadcast.handled) / rate


def _waits_until(broadcast: Broadcast) -> datetime | None:
    """Returns when a broadcast that waits for quiet hours or local times continues; None if soon."""
    if broadcast.state not in ("canary", "running") or broadcast.wakes_at is None:
        return None
    return broadcast.wakes_at if broadcast.wakes_at - now() > _SOON else None


def _messages_of(rows: Sequence[BroadcastRow]) -> dict[str, Message]:
    wanted = [row.message_id for row in rows if row.message_id is not None]
    found = Message.select(Message.id, Message.status, Message.failure, Message.conversation_id)
    return {each.id: each for each in found.where(Message.id.in_(wanted))} if wanted else {}


def _in_files(broadcast_id: str, outcome: str | None, replied: bool | None) -> Iterator[list[dict[str, Any]]]:
    """Yields the rows that match, in batches for a file, newest first, with contacts and outcomes."""
    last, part = _newest(broadcast_id, outcome, replied, None)
    while part:
        yield part
        last, part = _newest(broadcast_id, outcome, replied, last)


@replica.may_read
def _newest(
    broadcast_id: str, outcome: str | None, replied: bool | None, before: str | None
) -> tuple[str | None, list[dict[str, Any]]]:
    """Returns the number of the last row (None if there are none), and the rows as a file has them."""
    rows = BroadcastRow.newest(broadcast_id, outcome, replied, before, BATCH)
    messages = _messages_of(rows)
    people = {each.id: each for each in Contact.select().where(Contact.id.in_([row.contact_id for row in rows]))}
    found = []
    for row in rows:
        contact, message = people.get(row.contact_id), messages.get(row.message_id or "")
        named = {name: getattr(contact, name, None) for name in _NAMES}
        failure = message.failure if message else None
        told = {"status": message and message.status, "failure": failure and failure.get("code")}
        found.append({**broadcasts.represent_row(row), **named, **told})
    return str(rows[-1].number) if rows else None, found
