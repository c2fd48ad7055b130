"""Contacts: finding, viewing, changing, tagging and erasing them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template, request

from app import bounds
from app.domain.bodies.contacts import ContactPatch, ContactUpsert, TagBody
from app.domain.contacts import contacts
from app.domain.contacts.contacts import IDENTIFIERS, LONGEST_SEARCH, SHORTEST_SEARCH
from app.domain.conversations import messages
from app.domain.insight import timelines
from app.domain.lifecycle import exports
from app.domain.people import members, message_access
from app.domain.segments import scans, segments
from app.domain.triggers import dates
from app.errors import Conflict, Fault, Invalid, Overloaded, valid
from app.lib import ids, normalization
from app.models.channels import Channel
from app.models.contacts import Contact
from app.models.conversations import Conversation, Message
from app.models.segments import Segment
from app.web import lists, writes
from app.web.access import Forbidden, page, viewer, workspace_id
from app.web.contacts import contact_forms
from app.web.formats import MOST_COUNTED
from app.web.forms import Answer, checked, errors_of, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("contact_pages", __name__, url_prefix="/workspaces/<workspace>/contacts")

MOST_HAPPENED = 10
FILTERS = ("q", "email", "phone", "external_id", "tag")
MOST_MESSAGES, MOST_CONVERSATIONS = 8, 10


@blueprint.get("")
@page("contacts.see")
def index() -> Answer:
    """Lists the contacts that match the filters, newest first; as a file for viewers who may export."""
    given = lists.filters(*FILTERS, "segment_id")
    try:
        wanted = _wanted({name: text for name, text in given.items() if name in FILTERS})
        if "segment_id" in given:
            return _list(given, _page_of_segment(given["segment_id"], wanted), None, {})
    except Invalid as error:
        nothing = lists.Page([], None, None)
        return _list(given, nothing, 0, errors_of(error)), 422
    if lists.wanted_format():
        if not viewer().may("contacts.export"):
            raise Forbidden.to("contacts.export")
        newest = partial(Contact.newest, workspace_id(), wanted, None, lists.MOST_EXPORTED)
        return lists.file_of(lambda: [contacts.represent(contact) for contact in newest()], "contacts")
    shown = lists.sliced(partial(Contact.newest, workspace_id(), wanted))
    is_all = not (shown.next_address or shown.first_address)
    count = len(shown.rows) if is_all else Contact.count_matching(workspace_id(), wanted, MOST_COUNTED + 1)
    return _list(given, shown, count, {})


@blueprint.post("/new")
@page("contacts.edit")
def create() -> Answer:
    """Creates the contact, and redirects to it, or to the list if the write is delayed.

    Shows the form again if it has faults, or if a contact has one of the identifiers (409).
    """
    given = contact_forms.sent()
    try:
        fields = checked(ContactUpsert(), contact_forms.creation(given))
        job = writes.submit("contacts.upsert", fields, check=partial(_refuse_known, fields))
    except (Invalid, Conflict) as error:
        return _form(given, None, error), status_of(error)
    if not job.is_finished:
        return to("contact_pages.index")
    return to("contact_pages.show", "The contact was created.", contact_id=str(job.resource_id))


@blueprint.get("/<contact_id>")
@page("contacts.see")
def show(contact_id: str) -> str:
    """Shows a contact: its fields, tags, conversations and latest events."""
    return _show(contacts.find(workspace_id(), contact_id))


@blueprint.get("/new", endpoint="new")
@blueprint.get("/<contact_id>/edit", endpoint="edit")
@page("contacts.edit")
def edit(contact_id: str | None = None) -> str:
    """Shows the form of the contact, or of a new one."""
    if contact_id is None:
        return _form(contact_forms.blank())
    contact = contacts.find(workspace_id(), contact_id)
    return _form(contact_forms.of_contact(contact), contact)


@blueprint.post("/<contact_id>/edit")
@page("contacts.edit")
def update(contact_id: str) -> Answer:
    """Saves the differences. Shows the form again for faults, or if the contact has changed (409)."""
    contact = contacts.find(workspace_id(), contact_id)
    given = contact_forms.sent(contact)
    try:
        fields = checked(ContactPatch(), contact_forms.change(given, contact))
        job = writes.submit("contacts.update", fields, contact.id, partial(contact_forms.refuse_stale, given, contact))
    except (Invalid, Conflict) as error:
        return _form(contact_forms.again(given, contact, error), contact, error), status_of(error)
    return to("contact_pages.show", "The contact was changed." if job.is_finished else None, contact_id=contact.id)


@blueprint.post("/<contact_id>/tags", endpoint="add_tag", defaults={"kind": "contacts.add_tag"})
@blueprint.post("/<contact_id>/tags/remove", endpoint="remove_tag", defaults={"kind": "contacts.remove_tag"})
@page("contacts.edit")
def change_tags(contact_id: str, kind: str) -> Answer:
    """Adds or removes a tag, if needed, and redirects. If refused, shows the contact with the reason."""
    contact = contacts.find(workspace_id(), contact_id)
    given = typed("name")
    try:
        job = writes.submit(kind, checked(TagBody(), given), contact.id)
    except Invalid as error:
        return _show(contact, given["name"], errors_of(error)), 422
    except Conflict as error:
        return _show(contact, given["name"], {"name": error.detail}), 409
    return to("contact_pages.show", "The tags were changed." if job.is_finished else None, contact_id=contact.id)


@blueprint.get("/<contact_id>/export")
@page(message_access.EXPORT)
def export(contact_id: str) -> Response:
    """Streams everything that is stored about the contact, as a JSON file."""
    contact = contacts.find(workspace_id(), contact_id)
    headers = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Response(exports.export(contact), headers=headers, mimetype="application/json")


@blueprint.get("/<contact_id>/erase")
@page("contacts.erase")
def ask_to_erase(contact_id: str) -> str:
    """Asks the user to type the contact's identifier."""
    contact = contacts.find(workspace_id(), contact_id)
    return render_template("contacts/erase.html", contact=contact, typed="", errors={})


@blueprint.post("/<contact_id>/erase")
@page("contacts.erase")
def erase(contact_id: str) -> Answer:
    """Deletes the contact and erases its data everywhere, if one of its identifiers was typed."""
    said = typed("identifier")["identifier"]
    try:
        job = writes.submit("contacts.delete", {}, contact_id, partial(_refuse_unless_named, contact_id, said))
    except (Invalid, Conflict) as error:
        contact = contacts.find(workspace_id(), contact_id)
        errors = errors_of(error) if isinstance(error, Invalid) else {"identifier": error.detail}
        return render_template("contacts/erase.html", contact=contact, typed=said, errors=errors), 422
    return to("contact_pages.index", "The contact was deleted, and its data is erased." if job.is_finished else None)


def _wanted(given: dict[str, str]) -> dict[str, str]:
    """Returns the filters, with the phone number in E.164 form. Raises Invalid."""
    wanted = dict(given)
    if "q" in given and not SHORTEST_SEARCH <= len(given["q"]) <= LONGEST_SEARCH:
        raise Invalid(Fault("/q", f"Search for {SHORTEST_SEARCH} to {LONGEST_SEARCH} characters."))
    if "phone" in given:
        wanted["phone"] = valid("/phone", normalization.phone, given["phone"])
    return wanted


def _refuse_known(fields: dict[str, Any]) -> None:
    """Raises Conflict if a contact has one of the identifiers."""
    for name in IDENTIFIERS:
        if (value := fields.get(name)) and (found := Contact.newest(workspace_id(), {name: value}, None, 1)):
            detail = "A contact of this workspace has this already."
            raise Conflict(detail, conflicting_field=name, conflicting_contact_id=found[0].id)


def _refuse_unless_named(contact_id: str, said: str) -> None:
    contact = contacts.find(workspace_id(), contact_id)
    known = {contact.id, *(value.lower() for name in IDENTIFIERS if (value := getattr(contact, name)))}
    if said.strip().lower() not in known:
        raise Invalid(Fault("/identifier", "This is none of the identifiers of this contact."))


def _list(given: dict[str, str], shown: lists.Page, count: int | None, errors: dict[str, str]) -> str:
    found = Segment.in_workspace(workspace_id()).order_by(Segment.id.desc()).limit(segments.QUOTA.most)
    return render_template(
        "contacts/index.html",
        page=shown,
        given=given,
        count=count,
        errors=errors,
        segments=[("", "All contacts"), *((each.id, each.name) for each in found)],
        address=lists.address,
    )


def _show(contact: Contact, tag: str = "", errors: dict[str, str] | None = None) -> str:
    happened = timelines.newest(workspace_id(), contact.id, None, MOST_HAPPENED)
    return render_template(
        "contacts/show.html",
        contact=contact,
        tag=tag,
        unreadable=dates.unreadable_of_contact(contact.id),
        errors=errors or {},
        **_talks_with(contact),
        happened=happened[:MOST_HAPPENED],
        labels=timelines.labels(workspace_id(), happened),
    )


def _form(given: dict[str, Any], contact: Contact | None = None, error: Invalid | Conflict | None = None) -> str:
    return render_template(
        "contacts/form.html",
        given=given,
        contact=contact,
        errors=errors_of(error) if error else {},
        other_id=error.facts.get("conflicting_contact_id") if isinstance(error, Conflict) else None,
        kinds=contact_forms.KINDS,
    )


def _talks_with(contact: Contact) -> dict[str, Any]:
    """Returns variables about the contact's conversations; none unless there are any to be seen.

    `conversations`: the newest first. `messages`: the last ones of the newest conversation, in order. `channels` and
    `people`: names by identifier.
    """
    may_read = viewer().may(message_access.SEE)
    found = Conversation.of_contact(workspace_id(), contact.id, MOST_CONVERSATIONS) if may_read else []
    if not found:
        return {}
    said = Message.latest(found[0].id, None, None, MOST_MESSAGES)
    wrote = members.of_workspace(workspace_id()) if any(each.direction == "out" for each in said) else ()
    people = {person.member_id: person.email.partition("@")[0] for person in wrote}
    channel_ids = {conversation.channel_id for conversation in found}
    channels = {each.id: each.name for each in Channel.select().where(Channel.id.in_(list(channel_ids)))}
    shown = [messages.represent(each) for each in reversed(said)]
    return {"conversations": found, "messages": shown, "channels": channels, "people": people}


def _page_of_segment(segment_id: str, wanted: Mapping[str, str]) -> lists.Page:
    """Returns the segment's contacts that match the filters, newest first. Raises Invalid."""
    segment = segments.find(workspace_id(), segment_id)
    if segment is None:
        raise Invalid(Fault("/segment_id", "There is no such segment in this workspace."))
    after = request.args.get("after")
    after = after if after and ids.is_id(after, "con") else None
    try:
        with bounds.reading_segment(workspace_id()):
            found, next_id = scans.page(workspace_id(), segment.filter, wanted, after, lists.ROWS)
    except Overloaded as error:
        raise Invalid(Fault("/segment_id", error.detail)) from error
    next_address = lists.address(after=next_id) if next_id else None
    return lists.Page(found, next_address, lists.address() if after else None)
