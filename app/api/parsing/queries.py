"""Reads the parameters in a request's address."""

from __future__ import annotations

from typing import Any

import marshmallow
from flask import Request
from marshmallow import fields

from app.domain.bodies.pointers import refuse_bad_text
from app.errors import Fault, Invalid, pointer_to


def read_query(request: Request, schema: marshmallow.Schema) -> dict[str, Any]:
    """Returns the parameters by name. Raises Invalid if one is repeated whose field is not a list."""
    if not request.query_string:
        return {}
    given = request.args.to_dict(flat=False)
    lists = {name for name, field in schema.load_fields.items() if isinstance(field, fields.List)}
    repeated = [name for name, values in given.items() if len(values) > 1 and name not in lists]
    if repeated:
        raise Invalid(*(Fault(pointer_to(name), "Give this parameter only once.") for name in repeated))
    query = {name: values if name in lists else values[0] for name, values in given.items()}
    if b"%00" in request.query_string:
        refuse_bad_text(query)
    return query
