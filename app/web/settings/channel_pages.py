"""Channels: pages that connect, change, reauthorize and delete them. Secrets are shown once."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Blueprint, render_template
from werkzeug.wrappers import Response

from app.channels.base import Form
from app.channels.kinds import CHANNEL_KINDS
from app.config import settings
from app.domain.bodies.channels import ChannelCreate, ChannelPatch
from app.domain.channels import channels
from app.errors import Conflict, Invalid, NotFound
from app.lib import ids
from app.models.channels import Channel
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, status_of
from app.web.redirects import to
from app.web.settings import channel_forms

blueprint = Blueprint("channel_pages", __name__, url_prefix="/workspaces/<workspace>/settings/channels")

_ASKED = "The provider is being asked. This page shows what it answers."


@blueprint.get("")
@page("channels.see")
def index() -> str:
    """Lists the channels, newest first."""
    found = Channel.in_workspace(workspace_id())
    return render_template("channels/index.html", page=lists.page_of(found, Channel), form_of=channel_forms.form_of)


@blueprint.get("/new")
@page("channels.manage")
def new() -> str:
    """Shows the kinds of channels to choose from."""
    return render_template("channels/kinds.html", kinds=channel_forms.offered())


@blueprint.get("/new/<kind>")
@page("channels.manage")
def enter(kind: str) -> str:
    """Shows the form of a new channel."""
    return _form(_form_of(kind), channel_forms.given_of("", {}))


@blueprint.post("/new/<kind>")
@page("channels.manage")
def create(kind: str) -> Answer:
    """Creates the channel, and redirects to it.

    For a web chat, shows its secret instead, in this response only. If it is refused, shows the form again.
    """
    form = _form_of(kind)
    given = channel_forms.given(*form.settings, *form.credentials)
    body = {"kind": kind, "name": given["name"]}
    if secrets := channel_forms.values(form.credentials, given):
        body["credentials"] = secrets
    try:
        fields = checked(ChannelCreate(), body | {"settings": channel_forms.settings_of(form, given)})
        sealed, shown = channels.fresh_credentials(CHANNEL_KINDS[kind], fields.pop("credentials", None))
        payload = {**fields, "sealed_secret": sealed}
        job, was_there = writes.submit_once("channels.create", payload, ids.new("chn"))
    except (Invalid, Conflict) as error:
        return _form(form, given, channel_forms.errors_of(form, error)), status_of(error)
    if CHANNEL_KINDS[kind].has_provider:
        return to("channel_pages.show", _ASKED, channel_id=str(job.resource_id))
    return _secret(str(job.resource_id), None if was_there else shown["secret"])


@blueprint.get("/<channel_id>")
@page("channels.see")
def show(channel_id: str) -> str:
    """Shows a channel: its state, the remaining steps at its provider, and its forms."""
    return _show(Channel.find(workspace_id(), channel_id))


@blueprint.get("/<channel_id>/edit")
@page("channels.manage")
def edit(channel_id: str) -> str:
    """Shows the form that changes the name and the settings."""
    channel = Channel.find(workspace_id(), channel_id)
    given = channel_forms.given_of(channel.name, channel.settings)
    return _form(channel_forms.form_of(channel.kind), given, channel_id=channel.id)


@blueprint.post("/<channel_id>/edit")
@page("channels.manage")
def update(channel_id: str) -> Answer:
    """Changes the channel, and redirects to it. If refused, shows the form again."""
    channel = Channel.find(workspace_id(), channel_id)
    form = channel_forms.form_of(channel.kind)
    given = channel_forms.given(*form.settings)
    try:
        body = checked(ChannelPatch(), {"name": given["name"], "settings": channel_forms.settings_of(form, given)})
        job = writes.submit("channels.update", body, channel.id)
    except (Invalid, Conflict) as error:
        return _form(form, given, channel_forms.errors_of(form, error), channel.id), status_of(error)
    return to("channel_pages.show", "The channel was changed." if job.is_finished else None, channel_id=channel.id)


@blueprint.post("/<channel_id>/reauthorize")
@page("channels.manage")
def reauthorize(channel_id: str) -> Answer:
    """Replaces the credentials, and redirects to the channel. If refused, shows its form again.

    For a web chat, makes a new secret and shows it instead. No other response shows it.
    """
    channel = Channel.find(workspace_id(), channel_id)
    kind, form = channels.kind_of(channel), channel_forms.form_of(channel.kind)
    given = channel_forms.values(form.credentials, channel_forms.given(*form.credentials)) or None
    try:
        if faults := channels.credentials_faults(kind, given):
            raise Invalid(*faults)
        sealed, shown = channels.fresh_credentials(kind, given)
        _, was_there = writes.submit_once("channels.reauthorize", {"sealed_secret": sealed}, channel.id)
    except (Invalid, Conflict) as error:
        return _show(channel, channel_forms.errors_of(form, error)), status_of(error)
    if kind.has_provider:
        return to("channel_pages.show", _ASKED, channel_id=channel.id)
    return _secret(channel.id, None if was_there else shown["secret"])


@blueprint.post("/<channel_id>/delete")
@page("channels.manage")
def delete(channel_id: str) -> Response:
    """Deletes the channel, and redirects to the list; to the channel after a Conflict."""
    exists = partial(Channel.find, workspace_id(), channel_id)
    done = "The channel was deleted. Its conversations are closed, and messages that waited have failed."
    if not writes.tell(done, "channels.delete", {}, channel_id, exists):
        return to("channel_pages.show", channel_id=channel_id)
    return to("channel_pages.index")


def _form_of(kind: str) -> Form:
    """Returns the form of the kind. Raises NotFound if no page connects the kind."""
    found = channel_forms.offered().get(kind)
    if found is None:
        raise NotFound("There is no such kind of channel.")
    return found


def _form(
    form: Form, given: dict[str, Any], errors: dict[str, str] | None = None, channel_id: str | None = None
) -> str:
    return render_template(
        "channels/form.html",
        form_of_kind=form,
        given=given,
        errors=errors or {},
        id=channel_id,
        choices=channel_forms.ASSIGNMENTS,
        people=channel_forms.people(),
    )


def _show(channel: Channel, errors: dict[str, str] | None = None) -> str:
    return render_template(
        "channels/show.html",
        channel=channels.represent(channel),
        form_of_kind=channel_forms.form_of(channel.kind),
        script=f'<script src="{settings().base_url}/chat/{channel.id}.js" async></script>',
        assignment=channel_forms.next_assignee_of(channel),
        errors=errors or {},
    )


def _secret(channel_id: str, secret: str | None) -> str:
    return render_template("channels/secret.html", channel_id=channel_id, secret=secret)
