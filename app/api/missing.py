"""Explains a 404 in more detail than "nothing here", using only the request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from flask import Request

from app.api.openapi.examples import PREFIXES
from app.lib import ids

_KINDS = {prefix: name.replace("_", " ") for name, prefix in PREFIXES.items() if name != "assignee"}
_OF_THE_API = re.compile(r"/(?:api|v\d+)/")
_ADDRESSES = "There is no such address. Those of the API begin with {base_url}/api/v1/; {base_url}/api/docs lists them."


def detail(request: Request, base_url: str) -> str | None:
    """Names the mistake in the request's path; None if the path alone shows none.

    Never reads the database, so that the answer does not reveal what exists.
    """
    if request.url_rule is not None:
        return _wrong_kind(request.view_args or {})
    if _OF_THE_API.match(request.path) or "Authorization" in request.headers:
        return _ADDRESSES.format(base_url=base_url)
    return None


def _wrong_kind(identifiers: Mapping[str, Any]) -> str | None:
    for name, given in identifiers.items():
        prefix = PREFIXES.get(name.removesuffix("_id")) if name.endswith("_id") else None
        if prefix is None or ids.is_id(given, prefix):
            continue
        expected = f"of {_article(_KINDS[prefix])}, which begins with {prefix}_"
        other = given.rpartition("_")[0]
        if other in _KINDS and ids.is_id(given, other):
            return f"This is the identifier of {_article(_KINDS[other])} ({other}_…), not {expected}."
        return f"This is not the identifier {expected} and has 26 letters and digits after that."
    return None


def _article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
