"""Wordings: describes the steps of definitions, and their branches, in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.domain.automations.steps import KINDS
from app.domain.automations.steps.ask import ATTEMPTS
from app.domain.automations.steps.set_field import CUSTOM, field_of
from app.web.automations.condition_words import condition, cut, quoted, value_of
from app.web.automations.trigger_words import Given, Names, duration, event, many, named

LONGEST_TEXT = 160  # the most characters of a text that a picture shows
MOST_CHIPS = 4


@dataclass(frozen=True, slots=True)
class Words:
    """A step in words: what it does, its text, and the labels of its buttons."""

    title: str
    detail: str = ""
    chips: Sequence[str] = ()

    @property
    def sentence(self) -> str:
        """The title, the detail and the buttons in one line."""
        buttons = f" Buttons: {', '.join(self.chips)}." if self.chips else ""
        return (f"{self.title}: {self.detail}" if self.detail else self.title) + buttons


@dataclass(frozen=True, slots=True)
class Way:
    """A branch of a step, in a few words and in full.

    `key`: its name in counts; None for the path around the nested steps. `place`: the pointer of its list, relative to
    the step.
    """

    key: str | None
    label: str
    words: str
    place: str | None = None
    steps: Sequence[Given] = field(default=())


def step(given: Given, names: Names) -> Words:
    """Describes a step. If it has faults or an unknown kind, names at least the kind."""
    kind = given.get("kind")
    try:
        return STEPS[str(kind)](given, names)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        return Words(str(kind or "A step without a kind").replace("_", " ").capitalize()[:100])


def ways(given: Given) -> list[Way]:
    """Returns the branches of a step; [] if its kind has no steps inside, or the step has faults."""
    try:
        kind = KINDS[given["kind"]]
        inside = [(key, place, steps) for key, place, steps in kind.inside(given) if isinstance(steps, list)]
        found = [Way(key, *_way(given, key), place, steps_of(steps)) for key, place, steps in inside]
    except (KeyError, TypeError, AttributeError):
        return []
    if kind.lists == ("otherwise",):
        return [Way(None, *_PAST[given["kind"]]), *found]
    return found


def steps_of(given: Sequence[Any]) -> list[Given]:
    """Replaces anything that is not a step with {}, so that positions stay the same."""
    return [each if isinstance(each, dict) else {} for each in given]


def _text(given: Given, name: str = "text") -> str:
    return cut(str(given.get(name) or ""), LONGEST_TEXT)


def _buttons(given: Given) -> list[str]:
    labels = [cut(str(each.get("label", "")), 24) for each in given.get("buttons") or () if isinstance(each, dict)]
    return labels if len(labels) <= MOST_CHIPS else [*labels[: MOST_CHIPS - 1], f"+{len(labels) - MOST_CHIPS + 1}"]


def _channel(given: Given, names: Names) -> str:
    if given.get("channel_kind"):
        return f" on {CHANNELS.get(given['channel_kind'], given['channel_kind'])}"
    return f" on {named(names, given['channel_id'], 'a channel')}" if given.get("channel_id") else ""


def _message(given: Given, names: Names) -> Words:
    files = given.get("attachments") or ()
    what = "Send a message" if not files else f"Send a message with {many(len(files), 'file')}"
    return Words(what + _channel(given, names), _text(given), _buttons(given))


def _ask(given: Given, names: Names) -> Words:
    attempts = given.get("attempts", ATTEMPTS)
    wanted = given.get("format", "text")
    tries = "" if wanted == "text" else f", {many(attempts, 'attempt')}"
    return Words(f"Ask for {FORMATS.get(wanted, wanted)}{tries}{_channel(given, names)}", _text(given), _buttons(given))


def _wait(given: Given, names: Names) -> Words:
    return Words(f"Wait {_until(given)}")


def _snooze(given: Given, names: Names) -> Words:
    return Words(f"Snooze the conversation {_until(given, 'for ')}")


def _until(given: Given, before: str = "") -> str:
    return before + duration(given["seconds"]) if "seconds" in given else f"until {cut(str(given['until']), 60)}"


def _assign(given: Given, names: Names) -> Words:
    if given.get("assignee_id") is None:
        return Words("Remove the assignee")
    return Words(f"Assign to {named(names, given['assignee_id'], 'a member who is gone')}")


def _branch(given: Given, names: Names) -> Words:
    return Words("Decide", cut(f"If {condition(given['if'])}", 2 * LONGEST_TEXT))


def _request(given: Given, names: Names) -> Words:
    return Words(f"Send a {given['method']} request", cut(str(given["address"]), LONGEST_TEXT))


def _repeat(given: Given, names: Names) -> Words:
    how = []
    if "over" in given:
        over = given["over"]
        how.append(f"for each of {value_of(over)}" if isinstance(over, str) else f"for each of {len(over)} elements")
    if "times" in given:
        how.append(f"{many(given['times'], 'time')}{' at most' if how or 'while' in given else ''}")
    if "while" in given:
        how.append(f"as long as {condition(given['while'])}")
    return Words("Repeat", cut(", ".join(how), 2 * LONGEST_TEXT))


def _set_field(given: Given, names: Names) -> Words:
    name = field_of(str(given["field"])).removeprefix(CUSTOM).replace("_", " ")
    if given["value"] is None:
        return Words(f"Remove {quoted(name)}", "from the contact")
    return Words(f"Set {quoted(name)}", f"to {_shown(given['value'])}")


def _set_variable(given: Given, names: Names) -> Words:
    return Words(f"Set the variable {quoted(given['name'])}", f"to {_shown(given['value'])}")


def _shown(value: Any) -> str:
    return quoted(value, LONGEST_TEXT) if isinstance(value, str) else cut(str(value), LONGEST_TEXT)


def _split(given: Given, names: Names) -> Words:
    shares = [arm["percent"] for arm in given["arms"]]
    if len(set(shares)) == 1:
        return Words("Split at random", f"every arm {shares[0]:g} %")
    return Words("Split at random", cut(", ".join(f"{arm['name']} {arm['percent']:g} %" for arm in given["arms"]), 120))


def _start(given: Given, names: Names) -> Words:
    what = named(names, given["automation_id"], "an automation that is gone")
    return Words(f"Start {what}", "and wait until it has ended" if given.get("wait") else "")


def _stop(given: Given, names: Names) -> Words:
    result = ", ".join(map(str, given.get("result") or ()))
    return Words("Stop", cut(f"with the result {result}", LONGEST_TEXT) if result else "")


def _wait_for_event(given: Given, names: Names) -> Words:
    words = event(given)
    return Words("Wait for an event", words + (f", if {condition(given['if'])}" if "if" in given else ""))


def _wait_for_reply(given: Given, names: Names) -> Words:
    return Words(
        "Wait for a reply", f"{duration(given['timeout_seconds'])} at most" if "timeout_seconds" in given else ""
    )


def _way(given: Given, key: str) -> tuple[str, str]:
    """Returns the short and the full label of a branch."""
    match given["kind"], key:
        case "branch", "then":
            return "Yes", f"If {condition(given['if'])}"
        case "branch", "else":
            return "Otherwise", "Otherwise"
        case "repeat", _:
            return "Each round", "In each round"
        case "split", _:
            percent = next(arm.get("percent") for arm in given["arms"] if arm.get("name") == key)
            label = f"{key} · {percent:g} %" if isinstance(percent, (int, float)) else key
            return cut(label, 40), f"The arm {key}" + (f", {percent:g} %" if percent is not None else "")
        case "wait_for_event", _:
            return "Not in time", f"If it does not happen{_within(given)}"
    wrong = "" if given["kind"] == "wait_for_reply" or given.get("format", "text") == "text" else ", or none that fits"
    return ("No reply" if not wrong else "No answer that fits"), f"If no reply comes{_within(given)}{wrong}"


def _within(given: Given) -> str:
    return f" within {duration(given['timeout_seconds'])}" if "timeout_seconds" in given else ""


def _plain(title: str) -> Callable[[Given, Names], Words]:
    return lambda given, names: Words(title)


STEPS: Mapping[str, Callable[[Given, Names], Words]] = {
    "add_note": lambda given, names: Words("Add a note", _text(given)),
    "add_tag": lambda given, names: Words(f"Add the tag {quoted(given['tag'])}"),
    "ask": _ask,
    "assign_conversation": _assign,
    "branch": _branch,
    "close_conversation": _plain("Close the conversation"),
    "http_request": _request,
    "label_conversation": lambda given, names: Words(f"Add the label {quoted(given['label'])}"),
    "remove_tag": lambda given, names: Words(f"Remove the tag {quoted(given['tag'])}"),
    "repeat": _repeat,
    "send_message": _message,
    "set_field": _set_field,
    "set_variable": _set_variable,
    "snooze_conversation": _snooze,
    "split": _split,
    "start_automation": _start,
    "stop": _stop,
    "wait": _wait,
    "wait_for_event": _wait_for_event,
    "wait_for_reply": _wait_for_reply,
}
# The short and full label of the path around the steps of `otherwise`.
_PAST: Mapping[str, tuple[str, str]] = {
    "ask": ("Answered", "When the contact has answered"),
    "wait_for_event": ("Happened", "When it has happened"),
    "wait_for_reply": ("Replied", "When the contact has replied"),
}
FORMATS: Mapping[str, str] = {
    "text": "a text",
    "number": "a number",
    "email": "an e-mail address",
    "phone": "a phone number",
    "date": "a date",
    "choice": "a choice",
}
CHANNELS: Mapping[str, str] = {"web_chat": "the web chat", "telegram": "Telegram", "whatsapp": "WhatsApp"}
# The icon of each kind, by its name at lucide.dev.
ICONS: Mapping[str, str] = {
    "add_note": "sticky-note",
    "add_tag": "tag",
    "ask": "message-circle-question-mark",
    "assign_conversation": "user-check",
    "branch": "split",
    "close_conversation": "circle-check",
    "http_request": "globe",
    "label_conversation": "bookmark",
    "remove_tag": "x",
    "repeat": "repeat",
    "send_message": "message-square",
    "set_field": "user-pen",
    "set_variable": "variable",
    "snooze_conversation": "alarm-clock",
    "split": "shuffle",
    "start_automation": "workflow",
    "stop": "octagon-x",
    "wait": "clock",
    "wait_for_event": "hourglass",
    "wait_for_reply": "message-circle-reply",
}
