"""`send_message`: queues a message in the run's conversation; opens a conversation if necessary."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from app.channels.kinds import CHANNEL_KINDS as CHANNELS
from app.domain.automations.steps import fetched_files, templated_values, times
from app.domain.automations.steps.base import Done, Entry, Outcome, StepContext, StepFailed, StepKind, Wait, Words
from app.domain.channels import buttons
from app.domain.channels.buttons import MOST_LABEL
from app.domain.conversations import conversations, messages, recipients, sending_checks
from app.domain.triggers.plain_words import Given, Names, cut, many, named, text_of
from app.errors import Fault, Invalid
from app.lib import graphemes, ids, templates
from app.lib.json import timestamp
from app.lib.templates import TooLong
from app.models.conversations import Conversation

# Matches the tags of a template. The length of their output is known only in a run.
_TAG = re.compile(r"\{\{.*?\}\}", re.DOTALL)
_MOST_CHIPS = 4  # the most buttons that a picture shows
_BUTTONS: Mapping[str, Any] = {
    "type": "array",
    "minItems": 1,
    "maxItems": buttons.MOST,
    "items": {
        "type": "object",
        "required": ["id", "label"],
        "additionalProperties": False,
        "properties": {
            "id": {"type": "string", "pattern": buttons.ID, "x-form": buttons.ID_FORM},
            "label": {"type": "string", "minLength": 1},
        },
    },
    "description": f"Answers to pick from, each with an `id` and a `label` of {MOST_LABEL} characters; a longer one"
    " that a template makes is cut, and numbered if another would be the same.",
}
_GAP = re.compile(r"[\x00-\x1f\x7f-\x9f\s]+")


def begin(context: StepContext) -> Outcome:
    """Queues the message. If it has expired, continues without it.

    Waits first while a member's message holds the run, during quiet hours, and for the step's files. Raises StepFailed
    if the contact has opted out or no channel reaches the contact.
    """
    if context.contact.opted_out:
        raise StepFailed("opted_out", "The contact has opted out of messages.")
    has_end = "expires_at" in context.step.fields
    expires_at = templated_values.read(context, "expires_at", times.read) if has_end else None
    if expires_at is not None and expires_at <= context.now:
        given = {"expires_at": timestamp(expires_at)}
        return Done("The message expired before it could be sent.", given, code="expired")
    if context.is_simulated:
        return Done("The message would be sent.", input=rehearsed(context, context.step.fields["text"]))
    chosen = {"channel_id": context.step.fields.get("channel_id"), "kind": context.step.fields.get("channel_kind")}
    conversation = _latest(context, chosen)
    if conversation is not None and (waits := held(context, conversation)) is not None:
        return waits
    if (ends := _quiet_until(context)) is not None:
        return _kept_quiet(context, min(ends, expires_at or ends))
    conversation = conversation or recipients.open_first(context.change({}), context.contact, **chosen)
    if conversation is None:
        raise StepFailed("no_channel", "The contact has not written yet, and no connected channel can reach it first.")
    if (waits := fetched_files.awaited(context, conversation)) is not None:
        return waits
    return send(context, conversation, context.step.fields["text"], expires_at, has_files=True)


def send(
    context: StepContext,
    conversation: Conversation,
    template: str,
    expires_at: datetime | None = None,
    *,
    has_files: bool = False,
) -> Done:
    """Queues the rendered text, with the step's buttons and optionally its files. Raises StepFailed."""
    text, buttons, run = _text(context, template), _buttons(context), context.run
    most = sending_checks.MOST_IDENTICAL
    message_id = ids.new("msg")
    if sending_checks.count_recent(context.unit, run.contact_id, text) >= most:
        raise StepFailed("limit", f"The contact was sent this text {most} times within five minutes.")
    try:
        message = messages.queue(
            context.change({}),
            context.contact,
            conversation,
            text,
            author={"type": "automation", "id": run.automation_id},
            template=_template(context),
            run_id=run.id,
            message_id=message_id,
            attachments=fetched_files.attached(context, message_id) if has_files else (),
            buttons=buttons,
            expires_at=expires_at,
        )
    except Invalid as error:
        # The text passed the general limits, but the channel's limits are lower.
        raise StepFailed("template", error.faults[0].detail) from error
    return Done(
        "The message was queued.",
        input=_given(text, buttons),
        output={"message_id": message.id, "conversation_id": conversation.id},
        saved={context.step.id: {}} if message.attachments else {},
        run_fields={"conversation_id": conversation.id, "prompted": message.id},
    )


def rehearsed(context: StepContext, template: str) -> dict[str, Any]:
    """Returns the message for the log of a simulation. Raises StepFailed."""
    files = [{"address": address} for address in fetched_files.rendered(context)]
    given = _given(_text(context, template), _buttons(context))
    return given | ({"attachments": files} if files else {})


def held(context: StepContext, conversation: Conversation) -> Wait | None:
    """Returns the wait that holds the run because a member has written in the conversation.

    None if no member has, or if the run was resumed in spite of it.
    """
    if conversation.held_at is None or context.run.is_released:
        return None
    text = "A member has written in the conversation. The run goes on when it is closed or the run is resumed."
    return Wait("member", text, run_fields={"conversation_id": conversation.id})


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of the message's buttons, files, expiry, quiet hours and channel."""
    yield from length_faults(step, "text", pointer, has_files="attachments" in step)
    yield from _button_faults(step.get("buttons", ()), f"{pointer}/buttons")
    yield from fetched_files.faults(step.get("attachments", ()), f"{pointer}/attachments")
    for name in ("buttons", "attachments"):
        if name in step and "template" in step:
            yield Fault(f"{pointer}/{name}", f"A template has its own {name}. Leave these or the template out.")
    if "channel_id" in step and "channel_kind" in step:
        yield Fault(f"{pointer}/channel_kind", "The step has 'channel_id'. Leave one of the two out.")
    yield from templated_values.check("expires_at", times.read, step, pointer)
    if "quiet_hours" in step and step.get("on_quiet", "send") != "send":
        yield Fault(
            f"{pointer}/on_quiet",
            "The step has 'quiet_hours', which sends the message at once. Leave one of the two out.",
        )


def length_faults(step: Mapping[str, Any], name: str, pointer: str, *, has_files: bool = False) -> Iterator[Fault]:
    """Yields a fault if the text without its tags is already longer than the channel allows."""
    text, kind = step.get(name, ""), CHANNELS.get(step.get("channel_kind", ""))
    if "{%" in text:
        return
    most = messages.MOST_CHARACTERS
    if kind is not None:
        most = min(most, kind.most_caption if has_files else kind.most_characters)
    if (length := len(_TAG.sub("", text))) > most:
        yield Fault(f"{pointer}/{name}", f"A message has at most {most:,} characters here; this one has {length:,}.")


def _button_faults(given: Sequence[Mapping[str, str]], pointer: str) -> Iterator[Fault]:
    """Yields faults of repeated buttons, and of labels without templates that are empty or too long."""
    for index, button in enumerate(given):
        label = button["label"]
        if "{" not in label and not 0 < len(_in_a_line(label)) <= MOST_LABEL:
            yield Fault(f"{pointer}/{index}/label", f"Give a label of 1 to {MOST_LABEL} characters.")
    for fault in buttons.repeated(given):
        yield Fault(pointer + fault.pointer, fault.detail)


def _buttons(context: StepContext) -> list[dict[str, str]]:
    """Returns the step's buttons with one-line labels, cut to MOST_LABEL. Raises StepFailed."""
    given = context.step.fields.get("buttons", ())
    made = [{"id": each["id"], "label": _in_a_line(context.render(each["label"]))} for each in given]
    for each in made:
        if not each["label"]:
            raise StepFailed("template", f"The label of the button '{each['id']}' is empty.")
    for fault in buttons.repeated(made):
        label = _cut(made[int(fault.pointer.split("/")[1])]["label"])
        raise StepFailed("template", f"Two buttons have the label '{label}'.")
    labels = _all_cut([each["label"] for each in made])
    return [each | {"label": label} for each, label in zip(made, labels, strict=True)]


def _given(text: str, buttons: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    return {"text": text} | ({"buttons": buttons} if buttons else {})


def _quiet_until(context: StepContext) -> datetime | None:
    fields = context.step.fields
    if "quiet_hours" in fields or fields.get("on_quiet") == "send":
        return None
    return sending_checks.quiet_until(context.unit, context.contact)


def _kept_quiet(context: StepContext, until: datetime) -> Outcome:
    """Returns the outcome during quiet hours. `until`: when they end, or the message expires."""
    if context.step.fields.get("on_quiet") == "skip":
        return Done("The message was left out because of quiet hours.", code="quiet_hours")
    return Wait("quiet_hours", f"The message waits until {timestamp(until)} because of quiet hours.", until=until)


def _latest(context: StepContext, chosen: Mapping[str, str | None]) -> Conversation | None:
    """Returns the conversation to send the message in; None if there is none yet."""
    if any(chosen.values()):
        return recipients.latest(context.unit, context.contact, **chosen)
    return conversations.of_run(context.unit, context.run)


def _text(context: StepContext, template: str) -> str:
    text = context.render(template)
    try:
        messages.check(text)
    except Invalid as error:
        raise StepFailed("template", error.faults[0].detail) from error
    return text


def _template(context: StepContext) -> Any:
    try:
        return templates.fill(context.step.fields.get("template"), context.render, messages.MOST_TEMPLATE_BYTES)
    except TooLong as error:
        raise StepFailed("template", messages.TEMPLATE_TOO_LONG) from error


def _in_a_line(text: str) -> str:
    return _GAP.sub(" ", text).strip()


def _all_cut(labels: Sequence[str]) -> list[str]:
    """Cuts long labels to MOST_LABEL. Numbers a label that would otherwise equal another."""
    taken = {buttons.folded(label) for label in labels if len(label) <= MOST_LABEL}
    made = []
    for label in labels:
        cut, number = _cut(label), 1
        while len(label) > MOST_LABEL and buttons.folded(cut) in taken:
            number += 1
            cut = _cut(label, f" {number}")
        taken.add(buttons.folded(cut))
        made.append(cut)
    return made


def _cut(label: str, mark: str = "") -> str:
    return label if len(label) <= MOST_LABEL else f"{graphemes.cut(label, MOST_LABEL - 1 - len(mark)).rstrip()}…{mark}"


def words(what: str, step: Given, names: Names) -> Words:
    """Describes a step that sends a message. `what`: the action, such as "Ask for a number"."""
    where = ""
    if kind := step.get("channel_kind"):
        where = f" on {CHANNELS[kind].in_words if kind in CHANNELS else kind}"
    elif step.get("channel_id"):
        where = f" on {named(names, step['channel_id'], 'a channel')}"
    chips = [cut(str(each.get("label", "")), 24) for each in step.get("buttons") or () if isinstance(each, dict)]
    if len(chips) > _MOST_CHIPS:
        chips = [*chips[: _MOST_CHIPS - 1], f"+{len(chips) - _MOST_CHIPS + 1}"]
    return Words(what + where, text_of(step), chips)


def _words(step: Given, names: Names) -> Words:
    files = step.get("attachments") or ()
    return words("Send a message" + (f" with {many(len(files), 'file')}" if files else ""), step, names)


KIND = StepKind(
    entry=Entry("Send a message", "message-square", "message"),
    words=_words,
    description="Sends a message in the contact's most recent conversation.",
    fields={
        "text": {"type": "string", "minLength": 1, "description": "The text of the message."},
        "buttons": _BUTTONS,
        "attachments": fetched_files.FIELD,
        "template": {
            "type": "object",
            "description": "The template that channels such as WhatsApp require outside their window.",
        },
        "expires_at": times.FIELD
        | {"description": "A time (RFC 3339), or a template that gives one. From then on the message is not sent."},
        "channel_id": {
            "type": "string",
            "pattern": "^chn_[0-9a-z]{26}$",
            "x-form": "the identifier of a channel, which begins with chn_",
            "description": "The channel to send it on, instead of that of the contact's most recent conversation.",
        },
        "channel_kind": {
            "enum": list(CHANNELS),
            "description": "The same for all channels of a kind; later steps stay in the conversation.",
        },
        "on_quiet": {
            "enum": ["wait", "skip", "send"],
            "description": "During the workspace's quiet hours, the message waits for their end (the default), is left "
            "out, or is sent.",
        },
        "quiet_hours": {"enum": ["ignore"], "description": "The same as `on_quiet`: `send`."},
    },
    required=("text",),
    templates=("text", "buttons", "attachments", "template", "expires_at"),
    check=check,
    talks=True,
    begin=begin,
    example={"text": "Hello {{ contact.first_name }}!"},
)
