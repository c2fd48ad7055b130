"""Adds or corrects the parts that apispec cannot derive from a schema's fields."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields

from app.api.openapi import examples
from app.lib.schemas import STORABLE_TEXT, Query, ResponseBody


def _nullable_reference(_converter: Any, _field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Fixes a reference that may be null: apispec adds members that exclude null."""
    if "anyOf" in ret:
        for name in ("type", "additionalProperties"):
            ret.pop(name, None)
    return {}


def _reference(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, Any]:
    """Adds a reference from the metadata, which apispec drops."""
    return {"$ref": field.metadata["$ref"]} if "$ref" in field.metadata else {}


def _open_enumeration(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, Any]:
    """Lists a response field's known values in words, because more may be added; keeps constants."""
    if "const" in field.metadata:
        return {"const": field.metadata["const"]}
    if "enum" not in ret or not isinstance(field.root, ResponseBody):
        return {}
    values = [value for value in ret.pop("enum") if value is not None]
    known = f"{', '.join(f'`{value}`' for value in values)}; more may be added."
    example = {} if "example" in ret else {"example": values[0]}
    return {"description": " ".join(filter(None, [ret.get("description"), known]))} | example


def _count_of_members(_converter: Any, _field: Any, ret: dict[str, Any]) -> dict[str, Any]:
    """Renames an object's length limit, which apispec calls `maxLength`, to `maxProperties`."""
    return {"maxProperties": ret.pop("maxLength")} if ret.get("type") == "object" and "maxLength" in ret else {}


def _storable_text(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, Any]:
    """Adds the pattern of text in a request: no U+0000; in a body, an identifier's pattern."""
    is_free = isinstance(field, fields.String) and not ret.keys() & {"pattern", "enum", "format"}
    if not is_free or isinstance(field.root, ResponseBody):
        return {}
    # A filter with an invalid identifier finds nothing; a body with one is refused.
    is_filter = isinstance(field.root, Query)
    if is_filter:
        return {"pattern": STORABLE_TEXT, "minLength": max(1, ret.get("minLength", 1))}
    return {"pattern": examples.pattern(field.name or "") or STORABLE_TEXT}


def _example_of_field(_converter: Any, field: fields.Field[Any], ret: dict[str, Any]) -> dict[str, Any]:
    """Adds an example by the field's name, unless it has one."""
    if "example" in ret or not isinstance(field.parent, Schema) or field.name is None:
        return {}
    example = examples.of_field(type(field.parent), field.name, "enum" in ret)
    return {} if example is None else {"example": example}


# Functions for apispec's converter, in order; each sees the result of the previous ones.
ADDED = (_reference, _nullable_reference, _count_of_members, _storable_text, _example_of_field, _open_enumeration)
