"""The look of a web chat: its greeting, colour, picture and opening hours, in one form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flask import Blueprint, render_template

from app.channels.web_chat import DAYS, WebChat
from app.domain.bodies.channels import ChannelPatch
from app.errors import Conflict, Fault, Invalid, NotFound
from app.models.channels import Channel
from app.models.workspaces import Workspace
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, status_of, typed
from app.web.redirects import to

blueprint = Blueprint("chat_look_pages", __name__, url_prefix="/workspaces/<workspace>/settings/channels")

# The default in `app/api/widget/chat.css`. A colour input cannot be empty.
DEFAULT_COLOR = "#1f4fd8"
_MOST_SPANS = 4
_SPAN = re.compile(r"(\d{1,2})(?::(\d\d))?\s*[-\u2013]\s*(\d{1,2})(?::(\d\d))?")
_WRONG_HOURS = "Give times of day such as 09:00-12:30, 13:30-18:00, at most four spans."


@blueprint.get("/<channel_id>/look")
@page("channels.manage")
def edit(channel_id: str) -> str:
    """Shows the form of the look as it is."""
    channel = _chat(channel_id)
    week = channel.settings.get("opening_hours") or {}
    hours = {day: ", ".join(f"{span['from']}-{span['to']}" for span in week.get(day, ())) for day in DAYS}
    return _form(channel, {name: channel.settings.get(name) or "" for name in ("greeting", "color", "picture")} | hours)


@blueprint.post("/<channel_id>/look")
@page("channels.manage")
def update(channel_id: str) -> Answer:
    """Changes the look, and redirects to the channel. If it is refused, shows the form again."""
    channel = _chat(channel_id)
    given = {name: text.strip() for name, text in typed("greeting", "color", "picture", *DAYS).items()}
    try:
        body = {"settings": _settings(given)}
        job = writes.submit("channels.update", checked(ChannelPatch(), body), channel.id)
    except (Invalid, Conflict) as error:
        return _form(channel, given, _errors(error)), status_of(error)
    done = "Saved. The pages of your visitors show it within five minutes." if job.is_finished else None
    return to("channel_pages.show", done, channel_id=channel.id)


def _chat(channel_id: str) -> Channel:
    """Returns the web chat. Raises NotFound, also for channels of other kinds."""
    channel = Channel.find(workspace_id(), channel_id)
    if channel.kind != WebChat.name:
        raise NotFound("Only a web chat has a look.")
    return channel


def _settings(given: Mapping[str, str]) -> dict[str, Any]:
    """Returns the settings as in the API. Raises Invalid for hours that cannot be read."""
    settings: dict[str, Any] = {name: given[name] or None for name in ("greeting", "picture")}
    color = given["color"].lower()
    settings["color"] = None if color in ("", DEFAULT_COLOR) else color
    wrong = [day for day in DAYS if _spans(given[day]) is None]
    if wrong:
        raise Invalid(*(Fault(f"/settings/{day}", _WRONG_HOURS) for day in wrong))
    week = {day: spans for day in DAYS if (spans := _spans(given[day]))}
    settings["opening_hours"] = week or None
    return settings


def _spans(text: str) -> list[dict[str, str]] | None:
    """Reads the opening hours of a day, such as `9-12:30, 13:30-18:00`; None if they are invalid."""
    spans = []
    for part in filter(None, map(str.strip, text.split(","))):
        if not (found := _SPAN.fullmatch(part)):
            return None
        first_hour, first_minute, last_hour, last_minute = (int(each or 0) for each in found.groups())
        # The API writes midnight at the end of a day as 00:00.
        last_hour %= 24 if last_minute == 0 and last_hour == 24 else 100
        if max(first_hour, last_hour) > 23 or max(first_minute, last_minute) > 59:
            return None
        spans.append({"from": f"{first_hour:02}:{first_minute:02}", "to": f"{last_hour:02}:{last_minute:02}"})
    return spans if len(spans) <= _MOST_SPANS else None


def _errors(error: Invalid | Conflict) -> dict[str, str]:
    if isinstance(error, Conflict):
        return {"": error.detail}
    return {fault.pointer.removeprefix("/settings/").partition("/")[0]: fault.detail for fault in error.faults}


def _form(channel: Channel, given: Mapping[str, str], errors: Mapping[str, str] | None = None) -> str:
    workspace = Workspace.get_by_id(workspace_id())
    return render_template(
        "channels/look.html",
        channel=channel,
        given=given,
        days=DAYS,
        timezone=workspace.timezone,
        default_color=DEFAULT_COLOR,
        errors=errors or {},
    )
