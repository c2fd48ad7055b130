"""`ask`: sends a question, waits for the reply, checks it, and asks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from app.domain.automations.steps import send_message, times, wait_for_reply
from app.domain.automations.steps.base import (
    Done,
    Entry,
    Outcome,
    StepContext,
    StepFailed,
    StepKind,
    Wait,
    Words,
    saved,
    whole_number,
)
from app.domain.channels import buttons
from app.domain.conversations import conversations, replies
from app.domain.triggers.plain_words import Given, Names, many
from app.errors import Fault
from app.lib import normalization, typed_answers
from app.lib.json import timestamp

ATTEMPTS = 3
MOST_ATTEMPTS = 10
CHOICE = "choice"


def begin(context: StepContext) -> Outcome:
    """Sends the question, and waits for the reply.

    If the message must wait first, returns that wait. If the message is skipped or has expired, continues with
    `otherwise`.
    """
    sent = send_message.begin(context)
    if not isinstance(sent, Done):
        return sent
    if sent.code is not None:
        return _unanswered(context, sent.text, 0, code=sent.code)
    return _wait(context, sent, 1)


def resume(context: StepContext) -> Outcome:
    """Continues with a reply of the right format; otherwise asks again while attempts are left."""
    answer = context.answer
    attempts = context.run.saved[context.step.id]["attempts"]
    if answer is None:
        return _unanswered(context, "No reply came in time.", attempts, timed_out=True)
    if "taken_over_by" in answer:
        return _unanswered(context, f"The run {answer['taken_over_by']} waits for the reply instead.", attempts)
    try:
        result = {**answer, **_read(context, answer), "attempts": attempts, "timed_out": False}
    except typed_answers.Ambiguous as error:
        return _ask_again(context, attempts, error.readings)
    except ValueError:
        return _ask_again(context, attempts)
    return Done("The contact replied.", output=result, saved=saved(context, result, result["value"]))


def _ask_again(context: StepContext, attempts: int, readings: Sequence[str] = ()) -> Outcome:
    """Sends the question again, or ends the wait after the last attempt.

    `readings`: the possible meanings of an ambiguous answer, which the text then lists.
    """
    fields = context.step.fields
    text = fields.get("retry_text", fields["text"]) + (f"\n({' / '.join(readings)}?)" if readings else "")
    if attempts >= fields.get("attempts", ATTEMPTS):
        wrong = "none of the buttons" if _format(context) == CHOICE else f"no {_format(context)}"
        return _unanswered(context, f"The reply was {wrong}, {attempts} times.", attempts)
    if context.is_simulated:
        again = send_message.rehearsed(context, text)
        return _wait(context, Done("The question would be sent again.", input=again), attempts + 1)
    conversation = conversations.of_run(context.unit, context.run)
    if conversation is None:
        return _unanswered(context, "The conversation is gone.", attempts)
    if context.contact.opted_out:
        raise StepFailed("opted_out", "The contact has opted out of messages.")
    if (held := send_message.held(context, conversation)) is not None:
        return held
    # Ignores quiet hours, because the contact is writing.
    sent = send_message.send(context, conversation, text)
    return _wait(context, sent, attempts + 1)


def _wait(context: StepContext, sent: Done, attempts: int) -> Wait:
    until = times.deadline(context)
    text = f"The run has asked, and waits for a reply until {timestamp(until)}."
    asked: dict[str, Any] = {"attempts": attempts}
    if _format(context) == CHOICE:
        # A reply is compared with the labels that the contact sees, even if the templates would render differently by
        # then.
        asked["buttons"] = sent.input["buttons"]
    run_fields = {**sent.run_fields, "saved": {**context.run.saved, context.step.id: asked}}
    if not context.is_simulated:
        context.run.conversation_id = sent.run_fields["conversation_id"]
        conversation = conversations.of_run(context.unit, context.run)
        assert conversation is not None  # because the question was just sent in it
        replies.expect(context.unit, conversation, context.run)
    return Wait("reply", text, until, input=sent.input, run_fields=run_fields)


def _unanswered(
    context: StepContext, text: str, attempts: int, *, timed_out: bool = False, code: str | None = None
) -> Done:
    result = {"attempts": attempts, "timed_out": timed_out}
    return Done(text, output=result, saved=saved(context, result, None), to="otherwise", code=code)


def check(step: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Yields the faults of the message, and a fault for a choice without buttons."""
    yield from send_message.check(step, pointer)
    yield from send_message.length_faults(step, "retry_text", pointer)
    if step.get("format") == CHOICE and "buttons" not in step:
        yield Fault(f"{pointer}/buttons", "Give the buttons to choose from.")


def _format(context: StepContext) -> str:
    return str(context.step.fields.get("format", "text"))


def _read(context: StepContext, answer: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the reply's `value` and, for a choice, the `button_id`, pressed or typed.

    Raises ValueError if the reply is not of the question's format.
    """
    text = (answer["text"] or "").strip()
    if _format(context) != CHOICE:
        return {"value": READERS[_format(context)](text, context.contact.locale)}
    chosen = _chosen(context.run.saved[context.step.id]["buttons"], answer.get("button_id"), text)
    return {"value": chosen["label"], "button_id": chosen["id"]}


def _chosen(offered: Sequence[Mapping[str, str]], pressed: str | None, text: str) -> Mapping[str, str]:
    """Returns the button that was pressed, or that the text names.

    The text may be the button's label, identifier, number or emoji. Raises ValueError if there is no such button.
    """
    by_id = {each["id"]: each for each in offered}
    if pressed in by_id:
        return by_id[pressed]
    names = {str(number): each for number, each in enumerate(offered, 1)}
    names |= {buttons.folded(each["id"]): each for each in offered}
    names |= {buttons.folded(each["label"]): each for each in offered}
    said = buttons.folded(text)
    return names[said] if said in names else by_id[typed_answers.choice(offered, text)]


def _text(reply: str, _: str | None) -> str:
    if not reply:
        raise ValueError
    return reply


# Functions that read a reply, stripped of spaces, in the contact's language. They raise ValueError for another format.
READERS: Mapping[str, Callable[[str, str | None], Any]] = {
    "text": _text,
    "number": typed_answers.number,
    "email": lambda reply, _: typed_answers.email(reply),
    "phone": lambda reply, _: normalization.phone(reply),
    "date": typed_answers.date,
}

# The formats of an answer, in words.
FORMATS: Mapping[str, str] = {
    "text": "a text",
    "number": "a number",
    "email": "an e-mail address",
    "phone": "a phone number",
    "date": "a date",
    "choice": "a choice",
}


def _words(step: Given, names: Names) -> Words:
    wanted = step.get("format", "text")
    tries = "" if wanted == "text" else f", {many(step.get('attempts', ATTEMPTS), 'attempt')}"
    return send_message.words(f"Ask for {FORMATS.get(wanted, wanted)}{tries}", step, names)


def _way(step: Given, key: str) -> tuple[str, str]:
    if step.get("format", "text") == "text":
        return wait_for_reply.KIND.way(step, key)
    return "No answer that fits", f"If no reply comes{wait_for_reply.within(step)}, or none that fits"


KIND = StepKind(
    entry=Entry(
        "Ask a question",
        "message-circle-question-mark",
        "question",
        {"format": "text", "timeout_seconds": times.DAY_SECONDS},
    ),
    words=_words,
    way=_way,
    past=("Answered", "When the contact has answered"),
    description="Sends a question in the contact's most recent conversation, and waits for the reply. If that does not"
    " have the `format`, it asks again; after the last of the `attempts`, or the timeout, come the steps of"
    " `otherwise`. `steps.<id>` has `value` (of a number or date in one form, of a choice the label of the"
    " button), `button_id`, `text`, `attempts` and `timed_out`.",
    fields={
        **{name: send_message.KIND.fields[name] for name in ("text", "buttons", "attachments", "template")},
        **{name: send_message.KIND.fields[name] for name in ("expires_at", "on_quiet", "channel_id", "channel_kind")},
        "format": {
            "enum": [*READERS, CHOICE],
            "description": "What the reply has to be. A number may be such as 1.234,50 or 25 €, a date such as"
            " 21.11.2026 or 21 November 2026. What has two readings, and the contact's language does not decide, is"
            " asked again with both. A `choice` is one of the `buttons`: pressed, or typed as its label, its `id`, its"
            " number or its emoji.",
        },
        "retry_text": {"type": "string", "minLength": 1, "description": "The text to ask again with; else the first."},
        "attempts": whole_number(1, MOST_ATTEMPTS, "How often to ask at most.", default=ATTEMPTS),
        **{name: wait_for_reply.KIND.fields[name] for name in ("save_as", "timeout_seconds", "otherwise")},
    },
    required=("text",),
    templates=("text", "buttons", "attachments", "template", "expires_at", "retry_text"),
    lists=("otherwise",),
    waits=True,
    talks=True,
    results=("value", "text", "button_id", "data", "message_id", "at", "attempts", "timed_out"),
    check=check,
    begin=begin,
    resume=resume,
    example={
        "text": "How many of you will come?",
        "format": "number",
        "retry_text": "Please answer with a number, such as 4.",
        "save_as": "guests",
    },
)
