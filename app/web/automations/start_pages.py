"""Starts an automation by hand, for one contact or for a list of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flask import Blueprint, render_template, request
from peewee import fn
from werkzeug.wrappers import Response

from app.domain.automations import automations, listed_starts
from app.domain.contacts import contact_names
from app.domain.contacts.contacts import SHORTEST_SEARCH
from app.errors import AutomationNotPublished, Conflict, Invalid
from app.lib import ids, normalization
from app.models.automations import Automation
from app.models.contacts import Contact
from app.models.jobs import Job
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, typed
from app.web.redirects import to

blueprint = Blueprint("start_pages", __name__, url_prefix="/workspaces/<workspace>/automations/<automation_id>/start")

MOST_FOUND = 20
MOST_UNKNOWN = 100  # the most unknown lines that the page lists


@blueprint.get("")
@page("runs.manage")
def show(automation_id: str) -> str:
    """Shows the contacts found with `q`, and the form for a list.

    With `job`, also shows the result of the list that this job has started.
    """
    automation = Automation.find(workspace_id(), automation_id)
    query = lists.filters("q").get("q", "")
    found = []
    if len(query) >= SHORTEST_SEARCH:
        found = Contact.newest(workspace_id(), {"words": query.split()[:10]}, None, MOST_FOUND)
    return render_template(
        "automations/start.html",
        automation=automation,
        q=query,
        found=[(contact, contact_names.name_of(contact)) for contact in found],
        is_short=bool(query) and len(query) < SHORTEST_SEARCH,
        job=(job := _job(automation)),
        account=listed_starts.account(job) if job else {},
        most=listed_starts.MOST_CONTACTS,
    )


@blueprint.post("")
@page("runs.manage")
def start(automation_id: str) -> Response:
    """Starts the automation for the contact, and redirects to the run.

    If it is refused, redirects to the form, which shows the reason.
    """
    automation = Automation.find(workspace_id(), automation_id)
    contact_id = typed("contact_id")["contact_id"]
    body = {"contact_id": contact_id, "automation_id": automation.id}
    try:
        job = writes.submit("automations.start", body, ids.new("run"))
    except (Invalid, Conflict, AutomationNotPublished) as error:
        return _refused(automation, error)
    return to("run_pages.show", "It has started." if job.is_finished else None, run_id=job.resource_id)


@blueprint.post("/list")
@page("automations.manage")
def check_list(automation_id: str) -> Answer:
    """Shows how many contacts the lines name, and which lines name none. Starts nothing.

    Shows the form again, with 422, if there are no lines, or too many.
    """
    automation = Automation.find(workspace_id(), automation_id)
    text = request.form.get("lines", "")
    lines = list(dict.fromkeys(filter(None, (line.strip() for line in text.splitlines()))))
    wrong = ""
    if not lines:
        wrong = "Give at least one line."
    elif len(lines) > listed_starts.MOST_CONTACTS:
        wrong = f"Give at most {listed_starts.MOST_CONTACTS:,} lines; these are {len(lines):,}."
    # Skip unprintable lines: they identify no contact, and PostgreSQL rejects NUL.
    known = {} if wrong else _known([line for line in lines if line.isprintable()])
    unknown = [line for line in lines if line not in known]
    page_ = render_template(
        "automations/start_list.html",
        automation=automation,
        text=text[:100_000],
        errors={"lines": wrong} if wrong else {},
        contact_ids=list(dict.fromkeys(known.values())),
        lines=len(lines),
        unknown=unknown[:MOST_UNKNOWN],
        unknown_count=len(unknown),
        most=listed_starts.MOST_CONTACTS,
    )
    return (page_, 422) if wrong else page_


@blueprint.post("/list/begin")
@page("automations.manage")
def start_list(automation_id: str) -> Response:
    """Starts the automation for the contacts that were checked, and redirects to the result.

    If it is refused, redirects to the form, which shows the reason.
    """
    automation = Automation.find(workspace_id(), automation_id)
    given = request.form.get("contact_ids", "").split()
    contact_ids = [each for each in dict.fromkeys(given) if ids.is_id(each, "con")][: listed_starts.MOST_CONTACTS]
    if not contact_ids:
        return to("start_pages.show", "No contacts were given.", "error", automation_id=automation.id)
    try:
        first = {"automation_id": automation.id, "contact_id": contact_ids[0]}
        check = partial(automations.check_start, workspace_id(), first)
        job = writes.submit("automations.start_list", {"contact_ids": contact_ids}, automation.id, check)
    except (Invalid, Conflict, AutomationNotPublished) as error:
        return _refused(automation, error)
    return to("start_pages.show", automation_id=automation.id, job=job.id)


def _refused(automation: Automation, error: Invalid | Conflict | AutomationNotPublished) -> Response:
    said = error.faults[0].detail if isinstance(error, Invalid) else error.detail
    return to("start_pages.show", said, "error", automation_id=automation.id)


def _job(automation: Automation) -> Job | None:
    """Returns the job in the address, if it started a list for this automation; otherwise None."""
    job_id = request.args.get("job", "")
    job = Job.in_workspace(workspace_id()).where(Job.id == job_id).first() if ids.is_id(job_id, "job") else None
    is_ours = job is not None and (job.kind, job.resource_id) == ("automations.start_list", automation.id)
    return job if is_ours else None


def _known(lines: Sequence[str]) -> dict[str, str]:
    """Maps lines to contacts: a line is an identifier, an e-mail address or an external identifier.

    Leaves out lines that name no contact.
    """
    emails = {line: email for line in lines if (email := _email(line))}
    everybody = Contact.in_workspace(workspace_id()).select(Contact.id, Contact.email, Contact.external_id)
    by_own = {each.external_id: each.id for each in everybody.where(Contact.external_id.in_(list(lines)))}
    is_named = fn.LOWER(Contact.email).in_(list(emails.values()))  # the same expression as in the index
    by_email = {each.email.lower(): each.id for each in everybody.where(is_named)} if emails else {}
    given_ids = [line for line in lines if ids.is_id(line, "con")]
    by_id = {each.id: each.id for each in everybody.where(Contact.id.in_(given_ids))} if given_ids else {}
    found = {line: by_id.get(line) or by_email.get(emails.get(line, "")) or by_own.get(line) for line in lines}
    return {line: contact_id for line, contact_id in found.items() if contact_id}


def _email(line: str) -> str | None:
    try:
        return normalization.email(line).lower()
    except ValueError:
        return None
