"""Schemas: whether a value is as the OpenAPI document says."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def faults(value: Any, schema: dict[str, Any], schemas: dict[str, Any], at: str = "") -> list[str]:
    """Where a value is not as its schema says; members that the schema lacks count, too."""
    if "$ref" in schema:
        return faults(value, schemas[schema["$ref"].rpartition("/")[2]], schemas, at)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return min((faults(value, branch, schemas, at) for branch in schema[several]), key=len)
    found = [fault for branch in schema.get("allOf", ()) for fault in faults(value, branch, schemas, at)]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not isinstance(value, tuple(TYPES[name] for name in types)):
        return [f"{at} is no {types}"]
    found += [f"{at} is not {schema['const']}"] if value != schema.get("const", value) else []
    if schema.get("format") == "date-time" and isinstance(value, str) and not TIME.fullmatch(value):
        found.append(f"{at} is no time")
    if isinstance(value, list):
        return found + [fault for each in value for fault in faults(each, schema.get("items", {}), schemas, f"{at}[]")]
    if not isinstance(value, dict) or ("properties" not in schema and "additionalProperties" not in schema):
        return found
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    found += [f"{at}.{name} is missing" for name in schema.get("required", []) if name not in value]
    for name, inner in value.items():
        if name not in properties and others is None:
            found.append(f"{at}.{name} is not described")
        else:
            found += faults(inner, properties.get(name, others), schemas, f"{at}.{name}")
    return found
