"""Replays: pages that preview, start, list and control them, or discard deliveries instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from flask import Blueprint, Response, render_template, request, url_for
from werkzeug.datastructures import MultiDict
from werkzeug.wrappers import Response as AnyResponse

from app.domain.bodies.replays import DeliveriesDiscard, ReplayCreate, ReplayFilter
from app.domain.deliveries import discards, replay_choices, replays
from app.domain.jobs import parts
from app.domain.webhooks import catalogue
from app.domain.work.controlled_batches import MOST_PER_SECOND
from app.errors import Conflict, Invalid
from app.lib import ids
from app.models.base import page_before
from app.models.deliveries import Delivery
from app.models.endpoints import Endpoint
from app.models.replays import OUTCOMES, Replay, ReplayRow
from app.outbound.answers import ERROR_CODES
from app.web import filters, writes
from app.web.access import page, viewer, workspace_id
from app.web.dashboard import endpoint_choices
from app.web.forms import checked, errors_of, typed, whole
from app.web.lists import MOST_EXPORTED, file_of, numbered, page_of, wanted_format
from app.web.redirects import to

blueprint = Blueprint("replay_pages", __name__, url_prefix="/workspaces/<workspace>/dashboard/replays")

_CHOICES = {
    "kind": filters.choices("All kinds", catalogue.EVENT_KINDS),
    "error_code": filters.choices("Any cause", ERROR_CODES),
    "outcome": filters.choices("All", OUTCOMES),
}
_MOVED = {
    "pause": "The replay is paused.",
    "continue": "The replay continues.",
    "abort": "The replay is aborted. Deliveries it had not reached are unchanged.",
}
# Maps parameters, named as on the page of deliveries, to fields of the filter. An address may repeat a parameter.
_NAMES: Mapping[str, str] = {
    "endpoint_id": "endpoint_ids",
    "status": "statuses",
    "kind": "kinds",
    "error_code": "error_codes",
    "status_code": "status_codes",
    "since": "since",
    "until": "until",
}
# This value of the parameter `endpoints` excludes the named endpoints instead of selecting them.
_WITHOUT = "without"
_READERS: Mapping[str, filters.Reader] = {
    "status_code": filters.status_code,
    "since": filters.time,
    "until": filters.time,
}
_MOST_VALUES = 100  # the most values of one parameter


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parameters of an address or a form. `chosen`: the filter; None if it is empty or invalid."""

    given: Mapping[str, list[str]]
    chosen: dict[str, Any] | None
    errors: Mapping[str, str]

    @property
    def leaves_out(self) -> bool:
        """Whether the named endpoints are excluded instead of selected."""
        return self.one("endpoints") == _WITHOUT

    def time(self, name: str) -> datetime | None:
        """Returns the parameter `name` as a time; None if it is missing or invalid."""
        try:
            return filters.time(self.one(name)) if self.one(name) else None
        except ValueError:
            return None

    def one(self, name: str) -> str:
        """Returns the first value of the parameter `name`; "" if there is none."""
        return next(iter(self.given.get(name, ())), "")


@blueprint.get("")
@page("dashboard.see")
def index() -> str | Response:
    """Lists the replays, newest first, as a page or as a file."""
    found = Replay.in_workspace(workspace_id())
    if wanted_format():
        return file_of(lambda: [_flat(each) for each in page_before(found, Replay, [None], MOST_EXPORTED)], "replays")
    listed = page_of(found, Replay)
    return render_template("replays/index.html", page=listed, described=_described)


@blueprint.get("/new")
@page("replays.manage")
def new() -> str:
    """Shows the preview of a replay with the filter in the address, and the form that starts it."""
    return _new(_read(request.args), {}, {})


@blueprint.post("")
@page("replays.manage")
def create() -> AnyResponse:
    """Starts a replay, and redirects to it, or to the list if the write is delayed.

    Shows the form again if it is invalid; redirects to the form after a Conflict.
    """
    asked = _read(request.form)
    given = typed("per_second", "canary")
    body: dict[str, Any] = {"filter": asked.chosen or {}, "canary": given["canary"] == "true"}
    if given["per_second"].strip():
        body["per_second"] = whole(given["per_second"])
    try:
        checked(ReplayCreate(), body)
        if request.form.get("enable") == "true" and viewer().may("endpoints.manage"):
            body["enable_endpoint_ids"] = _stopped(asked)
        job = writes.submit("replays.create", body, ids.new("rpl"))
    except Invalid as error:
        return Response(_new(asked, given, errors_of(error)), 422)
    except Conflict as conflict:
        return to("replay_pages.new", conflict.detail, "error", **asked.given)
    if not job.is_finished:
        return to("replay_pages.index")
    return to("replay_pages.show", replay_id=str(job.resource_id))


@blueprint.post("/discard")
@page("replays.manage")
def discard() -> AnyResponse:
    """Discards the failed and held deliveries that the form showed, and redirects to the job.

    Shows the form again if it is invalid; redirects to the form after a Conflict.
    """
    asked, given = _read(request.form), typed("reason", "as_of")
    chosen = asked.chosen or {}
    if "statuses" in chosen:
        chosen = chosen | {"statuses": [each for each in chosen["statuses"] if each in replay_choices.DEFAULT_STATUSES]}
    reason, as_of = given["reason"].strip(), given["as_of"]
    try:
        checked(DeliveriesDiscard(), {"filter": chosen, "reason": reason, "as_of": as_of})
        payload = discards.payload(chosen, reason, datetime.fromisoformat(as_of))
        job = writes.submit("deliveries.discard", payload, check=partial(parts.refuse_more, workspace_id()))
    except Invalid as error:
        return Response(_new(asked, given, errors_of(error)), 422)
    except Conflict as conflict:
        return to("replay_pages.new", conflict.detail, "error", **asked.given)
    return to("job_pages.show", job_id=job.id)


@blueprint.get("/<replay_id>")
@page("dashboard.see")
def show(replay_id: str) -> str | Response:
    """Shows a replay: its progress, and its deliveries with their outcomes, as a page or as a file."""
    replay = Replay.find(workspace_id(), replay_id)
    outcome = filters.read({"outcome": filters.one_of(OUTCOMES)}).values.get("outcome")
    if wanted_format():
        return file_of(
            lambda: [replays.represent_row(row) for row in ReplayRow.newest(replay.id, outcome, None, MOST_EXPORTED)],
            "replay",
        )
    listed = numbered(partial(ReplayRow.newest, replay.id, outcome))
    canary = ReplayRow.first_sent(replay.id) if replay.state == "canary" else None
    wanted = {row.sent_as or row.delivery_id for row in (*listed.rows, *([canary] if canary else ()))}
    deliveries = {each.id: each for each in Delivery.select().where(Delivery.id.in_(list(wanted)))} if wanted else {}
    represented = replays.represent(replay)
    return render_template(
        "replays/show.html",
        replay=replay,
        fates=replays.fates(replay),
        chosen=represented["filter"],
        described=_described(replay.filter),
        addresses=Endpoint.addresses(
            workspace_id(), represented["filter"]["endpoint_ids"] or represented["filter"]["except_endpoint_ids"] or ()
        ),
        canary=deliveries.get(str(canary.sent_as)) if canary else None,
        page=listed,
        deliveries=deliveries,
        reasons=replay_choices.REASONS,
        outcome=outcome,
        choices=_CHOICES,
    )


@blueprint.post("/<replay_id>/pause", defaults={"move": "pause"})
@blueprint.post("/<replay_id>/continue", defaults={"move": "continue"})
@blueprint.post("/<replay_id>/abort", defaults={"move": "abort"})
@page("replays.manage")
def move(replay_id: str, move: str) -> AnyResponse:
    """Pauses, continues or aborts the replay, and redirects to it."""
    replay = Replay.find(workspace_id(), replay_id)
    writes.tell(_MOVED[move], f"replays.{move}", {}, replay.id)
    return to("replay_pages.show", replay_id=replay.id)


def _new(asked: _Asked, given: Mapping[str, str], errors: Mapping[str, str]) -> str:
    found, preview, refusal, untried = None, None, None, 0
    may_enable = viewer().membership is None or viewer().may("endpoints.manage")
    enabling = _stopped(asked) if asked.chosen and may_enable else []
    if asked.chosen:
        try:
            found = replay_choices.preview(workspace_id(), asked.chosen, enabling)
            preview = replays.represent_preview(workspace_id(), found)
            untried = replay_choices.untried(workspace_id(), asked.chosen)
        except Conflict as conflict:
            refusal = conflict.detail
    endpoint_ids = {each["endpoint_id"] for each in preview["sample"]} if preview else set()
    causes = ("error_code", "status_code")
    without_causes: dict[str, Any] = {name: each for name, each in asked.given.items() if name not in causes}
    return render_template(
        "replays/new.html",
        asked=asked,
        given=given,
        errors={**asked.errors, **errors},
        preview=preview,
        discardable=found.discardable if found else 0,
        as_of=found.as_of.isoformat() if found else None,
        refusal=refusal,
        enabling=enabling,
        untried=untried,
        whatever_the_cause=url_for("replay_pages.new", workspace=workspace_id(), **without_causes),
        statuses=asked.given.get("status") or replay_choices.DEFAULT_STATUSES,
        all_statuses=replay_choices.STATUSES,
        reasons=replay_choices.REASONS,
        choices=_CHOICES,
        endpoints=endpoint_choices.ticked(asked.given.get("endpoint_id", ())),
        addresses=Endpoint.addresses(workspace_id(), {*endpoint_ids, *asked.given.get("endpoint_id", ())}),
        most_per_second=MOST_PER_SECOND,
    )


def _stopped(asked: _Asked) -> list[str]:
    """Returns the stopped endpoints that the filter names. The form can enable them, too."""
    chosen = asked.chosen or {}
    return Endpoint.stopped(workspace_id(), chosen.get("endpoint_ids", ()))


def _flat(replay: Replay) -> dict[str, Any]:
    shown = replays.represent(replay)
    return shown | {"filter": {name: value for name, value in shown["filter"].items() if value is not None}}


def _read(values: MultiDict[str, str]) -> _Asked:
    given = {name: texts for name in (*_NAMES, "endpoints") if (texts := _texts(values, name))}
    names = {**_NAMES, "endpoint_id": "except_endpoint_ids"} if given.get("endpoints") == [_WITHOUT] else _NAMES
    body: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in [each for each in names if each in given]:
        try:
            found = [_READERS.get(name, str)(text) for text in given[name]]
            body[names[name]] = found[0].isoformat() if name in ("since", "until") else found
        except ValueError as error:
            errors[name] = str(error).removesuffix(" This filter is left out.").removesuffix(" The filter is left out.")
    if errors or not body:
        return _Asked(given, None, errors)
    try:
        checked(ReplayFilter(), body)
    except Invalid as error:
        fields = {of_filter: name for name, of_filter in names.items()}
        return _Asked(given, None, {fields.get(field, field): message for field, message in errors_of(error).items()})
    return _Asked(given, body, {})


def _described(chosen: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Returns the fields of the filter as (label, values), without the times."""
    labels = {
        "statuses": "State",
        "endpoint_ids": "Endpoint",
        "except_endpoint_ids": "All endpoints but",
        "kinds": "Kind",
        "error_codes": "Cause",
        "status_codes": "Status received",
    }
    return [(label, [str(value) for value in chosen[name]]) for name, label in labels.items() if chosen.get(name)]


def _texts(values: MultiDict[str, str], name: str) -> list[str]:
    found = [text.strip() for text in values.getlist(name)[:_MOST_VALUES]]
    if name == "endpoint_id":  # one field holds several, separated by spaces or commas
        found = [part for text in found for part in text.replace(",", " ").split()][:_MOST_VALUES]
    return [text for text in found if text and len(text) <= 200 and text.isprintable()]
