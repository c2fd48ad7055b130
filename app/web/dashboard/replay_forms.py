"""Forms of replays: the filter as addresses and forms write it, and as a replay takes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from werkzeug.datastructures import MultiDict

from app.domain.bodies.replays import ReplayFilter
from app.domain.deliveries import replay_choices
from app.errors import Invalid
from app.web import filters
from app.web.forms import checked, errors_of

# Names in addresses, which are those of the list of deliveries, and in a filter. A name may be there several times.
NAMES: Mapping[str, str] = {
    "endpoint_id": "endpoint_ids",
    "status": "statuses",
    "kind": "kinds",
    "error_code": "error_codes",
    "status_code": "status_codes",
    "since": "since",
    "until": "until",
}
_READERS: Mapping[str, Callable[[str], Any]] = {
    "status_code": filters.status_code,
    "since": filters.time,
    "until": filters.time,
}
_SINGLE = ("since", "until")
MOST_VALUES = 100  # of a name in an address


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields of an address or a form, as text; the filter, None if it is empty or wrong; and the errors."""

    given: Mapping[str, list[str]]
    chosen: dict[str, Any] | None
    errors: Mapping[str, str]

    def one(self, name: str) -> str:
        """The only value of that name, or the first."""
        return next(iter(self.given.get(name, ())), "")


def read(values: MultiDict[str, str]) -> Asked:
    """The request in the address or form. An empty field stands for none."""
    given = {name: texts for name in NAMES if (texts := _texts(values, name))}
    body: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, texts in given.items():
        try:
            found = [_READERS.get(name, str)(text) for text in texts]
        except ValueError as error:
            errors[name] = str(error).removesuffix(" This filter is left out.").removesuffix(" The filter is left out.")
            continue
        body[NAMES[name]] = found[0].isoformat() if name in _SINGLE else found
    if errors or not body:
        return Asked(given, None, errors)
    try:
        checked(ReplayFilter(), body)
    except Invalid as error:
        names = {of_filter: name for name, of_filter in NAMES.items()}
        return Asked(given, None, {names.get(field, field): said for field, said in errors_of(error).items()})
    return Asked(given, body, {})


def described(chosen: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """A replay's filter as labels and values; only what it has. Times are left out."""
    labels = {
        "statuses": "State",
        "endpoint_ids": "Endpoint",
        "kinds": "Kind",
        "error_codes": "Cause",
        "status_codes": "Status received",
    }
    return [(label, [str(value) for value in chosen[name]]) for name, label in labels.items() if chosen.get(name)]


def reason(code: str) -> str:
    """Why a delivery is left out or skipped, as a sentence."""
    return replay_choices.REASONS.get(code, code)


def _texts(values: MultiDict[str, str], name: str) -> list[str]:
    found = [text.strip() for text in values.getlist(name)[:MOST_VALUES]]
    return [text for text in found if text and len(text) <= 200 and text.isprintable()]
