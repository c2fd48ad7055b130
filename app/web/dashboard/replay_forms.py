"""Forms of replays: converts the filter between address, form and API body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from werkzeug.datastructures import MultiDict

from app.domain.bodies.replays import ReplayFilter
from app.domain.deliveries import replay_choices
from app.errors import Invalid
from app.web import filters
from app.web.forms import checked, errors_of

# Maps names in addresses (as in the list of deliveries) to names in the filter. An address may repeat a name.
NAMES: Mapping[str, str] = {
    "endpoint_id": "endpoint_ids",
    "status": "statuses",
    "kind": "kinds",
    "error_code": "error_codes",
    "status_code": "status_codes",
    "since": "since",
    "until": "until",
}
# The value of the field `endpoints` with which the named endpoints are excluded instead of selected.
WITHOUT = "without"
_SINGLE = ("since", "until")
_SEPARATED = ("endpoint_id",)  # fields that hold several values, separated by spaces or commas
_READERS: Mapping[str, filters.Reader] = {
    "status_code": filters.status_code,
    "since": filters.time,
    "until": filters.time,
}
MOST_VALUES = 100  # the most values of one name in an address


@dataclass(frozen=True, slots=True)
class Asked:
    """The fields of an address or a form. `chosen`: the filter; None if it is empty or invalid."""

    given: Mapping[str, list[str]]
    chosen: dict[str, Any] | None
    errors: Mapping[str, str]

    @property
    def leaves_out(self) -> bool:
        """Whether the given endpoints are excluded."""
        return self.one("endpoints") == WITHOUT

    def time(self, name: str) -> datetime | None:
        """Returns the time of that name; None if it is missing or invalid."""
        try:
            return filters.time(self.one(name)) if self.one(name) else None
        except ValueError:
            return None

    def one(self, name: str) -> str:
        """Returns the first value of that name; "" if there is none."""
        return next(iter(self.given.get(name, ())), "")


def read(values: MultiDict[str, str]) -> Asked:
    """Reads the filter from an address or form. Ignores empty fields."""
    given = {name: texts for name in (*NAMES, "endpoints") if (texts := _texts(values, name))}
    names = {**NAMES, "endpoint_id": "except_endpoint_ids"} if given.get("endpoints") == [WITHOUT] else NAMES
    body: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name in names:
        if name not in given:
            continue
        try:
            found = [_READERS.get(name, str)(text) for text in given[name]]
        except ValueError as error:
            errors[name] = str(error).removesuffix(" This filter is left out.").removesuffix(" The filter is left out.")
            continue
        body[names[name]] = found[0].isoformat() if name in _SINGLE else found
    if errors or not body:
        return Asked(given, None, errors)
    try:
        checked(ReplayFilter(), body)
    except Invalid as error:
        fields = {of_filter: name for name, of_filter in names.items()}
        return Asked(given, None, {fields.get(field, field): said for field, said in errors_of(error).items()})
    return Asked(given, body, {})


def described(chosen: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """Returns the filter as labels and values, without the times."""
    labels = {
        "statuses": "State",
        "endpoint_ids": "Endpoint",
        "except_endpoint_ids": "All endpoints but",
        "kinds": "Kind",
        "error_codes": "Cause",
        "status_codes": "Status received",
    }
    return [(label, [str(value) for value in chosen[name]]) for name, label in labels.items() if chosen.get(name)]


def reason(code: str) -> str:
    """Returns in words why a delivery is left out or skipped; an unknown code is returned as it is."""
    return replay_choices.REASONS.get(code, code)


def _texts(values: MultiDict[str, str], name: str) -> list[str]:
    found = [text.strip() for text in values.getlist(name)[:MOST_VALUES]]
    if name in _SEPARATED:
        found = [part for text in found for part in text.replace(",", " ").split()][:MOST_VALUES]
    return [text for text in found if text and len(text) <= 200 and text.isprintable()]
