"""What pages ask for: their forms as a browser would send them, and the names that views look for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest
from flask import Flask
from werkzeug.datastructures import ImmutableMultiDict

Fields = list[tuple[str, str]]


@dataclass
class Form:
    """A form of a page. A name may be in `fields` several times."""

    method: str
    action: str
    fields: Fields = field(default_factory=list)


def forms_of(page: str) -> list[Form]:
    """The forms of the page, filled in as it fills them in."""
    parser = _Parser()
    parser.feed(page)
    return parser.forms


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._fields: Fields = []
        self._name: str | None = None  # of the select or text area that is open
        self._said = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("method", "get").lower(), given.get("action", "")))
            self._fields = self.forms[-1].fields
        elif tag in ("select", "textarea"):
            self._name, self._said = given.get("name"), ""
        elif tag == "option" and ("selected" in given or not self._said):
            self._said = given.get("value", "")
        elif (
            tag == "input"
            and "name" in given
            and (given.get("type") not in ("checkbox", "radio") or "checked" in given)
        ):
            self._fields.append((given["name"], given.get("value", "on")))

    def handle_data(self, data: str) -> None:
        if self._name is not None and self.lasttag == "textarea":
            self._said += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._fields = []  # of no form
        elif tag in ("select", "textarea") and self._name is not None:
            self._fields.append((self._name, self._said.removeprefix("\n")))
            self._name = None


@contextmanager
def names_looked_for(pages: Flask, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, None]]:
    """The names of fields and parameters that views look for meanwhile, whatever the request has."""
    names: dict[str, None] = {}

    class Noting(ImmutableMultiDict[str, str]):
        def __getitem__(self, key: str) -> Any:
            names[key] = None
            return super().__getitem__(key)

        def getlist(self, key: str, *args: Any, **options: Any) -> Any:
            names[key] = None
            return super().getlist(key, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(pages.request_class, "parameter_storage_class", Noting)
        yield names
