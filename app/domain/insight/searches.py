"""Searches for a pasted identifier, e-mail address, phone number, sale's reference or trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from app.database import rows
from app.lib import ids, normalization, phones

MOST_FOUND = 20
LONGEST = 255
# Contacts are indexed per workspace, so a search over all workspaces queries one after the other.
MOST_WORKSPACES = 5_000


@dataclass(frozen=True, slots=True)
class Type:
    """A type of resource with identifiers: its table and its name.

    `title` and `parent` are SQL: the title that people know, and the resource that contains it, if its page shows it.
    """

    name: str
    table: str
    title: str
    parent: str = "NULL"
    condition: str = "true"
    workspace: str = "workspace_id"


# Types by the prefix of their identifiers.
TYPES: Mapping[str, Type] = {
    "dlv": Type("delivery", "deliveries", "kind || ', ' || status"),
    "evt": Type("event", "events", "kind"),
    "job": Type("job", "jobs", "kind || ', ' || status"),
    "run": Type("run", "runs", "status"),
    "con": Type("contact", "contacts", "coalesce(nullif(concat_ws(' ', first_name, last_name), ''), email)"),
    "whe": Type("endpoint", "endpoints", "address", condition="state <> 'deleted'"),
    "aut": Type("automation", "automations", "name"),
    "swp": Type("sweep", "sweeps", "action", parent="endpoint_id"),
    "rpl": Type("replay", "replays", "state || ', ' || count || ' deliveries'"),
    "imp": Type("import", "imports", "total || ' lines'"),
    "cnv": Type("conversation", "conversations", "status", parent="contact_id"),
    "msg": Type("message", "messages", "direction", parent="contact_id"),
    "nte": Type("note", "notes", "author->>'type'", parent="contact_id"),
    "sal": Type("sale", "sales", "amount || ' ' || currency", parent="contact_id"),
    "bkg": Type("booking", "bookings", "title", parent="contact_id"),
    "inv": Type("invoice", "invoices", "'No. ' || number"),
    "tok": Type("token", "tokens", "name"),
    "mem": Type("member", "members", "(SELECT email FROM accounts WHERE accounts.id = account_id) || ', ' || role"),
    "seg": Type("segment", "segments", "name"),
    "bct": Type("broadcast", "broadcasts", "name"),
    "ref": Type("refused request", "refused_requests", "method || ' ' || path || ', ' || status"),
    "ws": Type("workspace", "workspaces", "name", workspace="id"),
}


@dataclass(frozen=True, slots=True)
class Found:
    """A resource that the text names.

    `matched`: which attribute matched: `id`, `email`, `phone`, `external_id`, `reference` or `trace`. `parent`: the
    identifier of its parent, for types that have one; otherwise None.
    """

    type: str
    matched: str
    id: str
    workspace_id: str
    workspace_name: str
    title: str | None
    parent: str | None


@dataclass(frozen=True, slots=True)
class Findings:
    """The resources found. `is_complete`: False if more match, or not all workspaces were searched."""

    text: str
    found: Sequence[Found]
    is_complete: bool = True


def find(text: str, workspace_id: str | None = None) -> Findings:
    """Finds the resources that the text identifies, in a workspace or (None) all, up to MOST_FOUND.

    Takes one statement for one of our own identifiers, otherwise up to seven. With a `workspace_id`, never finds
    resources of another workspace.
    """
    text = text.strip().strip("\"'").strip()[:LONGEST]
    if not text or "\0" in text:
        return Findings(text, [])
    prefix = text.rpartition("_")[0].lower()
    if prefix in TYPES and ids.is_id(text.lower(), prefix):
        return Findings(text, _by_id(TYPES[prefix], text.lower(), workspace_id))
    found, is_complete = _by_keys(text, workspace_id)
    return Findings(text, found[:MOST_FOUND], is_complete and len(found) <= MOST_FOUND)


def _by_id(type: Type, identifier: str, workspace_id: str | None) -> list[Found]:
    shown = rows(_shown(type, "id = %s"), (identifier, workspace_id, workspace_id))
    return [Found(type.name, "id", *row) for row in shown]


def _by_keys(text: str, workspace_id: str | None) -> tuple[list[Found], bool]:
    sought = _keys(text)
    scope = "SELECT %(ws)s AS id" if workspace_id is not None else _NEWEST_WORKSPACES
    contacts = " UNION ALL ".join(
        f"(SELECT id, '{name}' AS matched FROM contacts"
        f" WHERE workspace_id = looked_into.id AND {_COMPARED[name].format(name, f'%({name})s')} LIMIT 1)"
        for name in sought
    )
    members = _MEMBERS if "email" in sought else ""
    values = sought | {"text": text, "ws": workspace_id, "most": MOST_WORKSPACES, "limit": MOST_FOUND + 1}
    matched = rows(_MATCHES.format(scope=scope, contacts=contacts, members=members), values)
    found = []
    for prefix in ("con", "mem", "sal", "job", "ref"):
        by_id = {id: by for name, id, by in reversed(matched) if name == prefix}
        if by_id:
            shown = rows(_shown(TYPES[prefix], "id = ANY(%s)"), (list(by_id), workspace_id, workspace_id))
            found += [Found(TYPES[prefix].name, by_id[row[0]], *row) for row in shown]
    [(workspaces,)] = rows(_WORKSPACES, (MOST_WORKSPACES + 1,)) if workspace_id is None else [(1,)]
    return found, workspaces <= MOST_WORKSPACES


def _keys(text: str) -> dict[str, str | list[str]]:
    """Returns the identifiers of contacts that the text can be read as, by column.

    For a phone number, returns all ways to write it.
    """
    keys: dict[str, str | list[str]] = {"external_id": text}
    for name, read in _READ.items():
        try:
            keys[name] = read(text)
        except ValueError:
            continue
    return keys


def _shown(type: Type, condition: str) -> str:
    return f"""
        SELECT shown.id, shown.workspace_id, workspaces.name, shown.title, shown.parent FROM (
            SELECT id, {type.workspace} AS workspace_id, {type.title} AS title, {type.parent} AS parent
            FROM {type.table} WHERE {condition} AND {type.condition}) AS shown
        JOIN workspaces ON workspaces.id = shown.workspace_id
        WHERE %s::text IS NULL OR shown.workspace_id = %s
        ORDER BY shown.id DESC
    """


_READ: Mapping[str, Callable[[str], str | list[str]]] = {
    "email": normalization.email,
    "phone": lambda text: phones.ways_to_write(normalization.phone(text)),
}

# How a contact's identifiers are compared, which is how its unique indexes compare them.
_COMPARED = {"email": "lower({}) = lower({})", "phone": "{} = ANY({}::text[])", "external_id": "{} = {}"}

_NEWEST_WORKSPACES = "SELECT id FROM workspaces ORDER BY id DESC LIMIT %(most)s"
_WORKSPACES = "SELECT count(*) FROM (SELECT 1 FROM workspaces LIMIT %s) AS first"

_MEMBERS = """
    UNION ALL
    (SELECT 'mem', members.id, 'email' FROM accounts JOIN members ON members.account_id = accounts.id
    WHERE lower(accounts.email) = lower(%(email)s) AND (%(ws)s::text IS NULL OR members.workspace_id = %(ws)s)
    LIMIT %(limit)s)
"""

_MATCHES = """
    (SELECT 'con', found.id, found.matched FROM ({scope}) AS looked_into CROSS JOIN LATERAL ({contacts}) AS found
    LIMIT %(limit)s)
    UNION ALL
    (SELECT 'sal', found.id, 'reference' FROM ({scope}) AS looked_into CROSS JOIN LATERAL (
        SELECT id FROM sales WHERE workspace_id = looked_into.id AND reference = %(text)s LIMIT 1) AS found
    LIMIT %(limit)s)
    {members}
    UNION ALL
    (SELECT 'job', id, 'trace' FROM jobs
    WHERE trace_id = %(text)s AND (%(ws)s::text IS NULL OR workspace_id = %(ws)s) LIMIT %(limit)s)
    UNION ALL
    (SELECT 'ref', id, 'trace' FROM refused_requests
    WHERE trace_id = %(text)s AND (%(ws)s::text IS NULL OR workspace_id = %(ws)s) LIMIT %(limit)s)
"""
