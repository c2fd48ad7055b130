"""Imports of automations: shows what a file would become, and creates the draft.

Also sends an automation's draft as such a file.
"""

from __future__ import annotations

import re

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app import bounds
from app.domain.automations.imports import automation_files, importable_files
from app.domain.automations.imports.importable_files import File
from app.domain.automations.imports.sources import MOST_BYTES, Unreadable
from app.errors import Conflict, Invalid
from app.lib import json
from app.models.automations import Automation
from app.web import uploads
from app.web.access import page, workspace_id
from app.web.automations import mentions
from app.web.automations.automation_pages import name_of
from app.web.automations.starting import adoptions
from app.web.forms import Answer, errors_of, status_of, typed

blueprint = Blueprint("automation_imports", __name__, url_prefix="/workspaces/<workspace>/automations")

MOST_LISTED = 1_000  # how many parts of the file without an equivalent in Bellhop the preview lists


@blueprint.get("/import")
@page("automations.manage")
def new() -> str:
    """Shows the form for a file or its text."""
    return _form("")


@blueprint.post("/import")
# A larger limit than the file's, so that a file that is too large gets an error at its field.
@page("automations.manage", most_bytes=4 * MOST_BYTES)
def create() -> Answer:
    """Shows what the file would become; with `create`, creates the draft and redirects to it.

    Shows the form again, with 422, if the file cannot be read.
    """
    given = typed("text", "flow", "shown", "name", "create")
    raw = next((each.stream.read(MOST_BYTES + 1) for each in uploads.given("file")), given["text"])
    number = _number(given["flow"])
    # The typed name and choices are for the flow that the page showed. Ignore them if another flow was selected.
    is_same = given["shown"] in ("", str(number))
    try:
        with bounds.alone(workspace_id()):
            file = importable_files.recognize(raw)
            imported = file.read(number)
            adoption = adoptions.adopt(imported, file.names, is_chosen=is_same and "use" in request.form)
    except Unreadable as error:
        return _form(given["text"], {"file": error.detail}), 422
    name = given["name"] if is_same and given["name"] else adoptions.named_like(imported.name)
    errors, status = dict[str, str](), 200
    if given["create"]:
        try:
            return adoptions.create(adoption, name_of(name))
        except (Invalid, Conflict) as error:
            errors, status = errors_of(error), status_of(error)
    return _preview(file, number, adoption, name, errors), status


@blueprint.get("/<automation_id>/file")
@page("automations.see")
def show_file(automation_id: str) -> Response:
    """Sends the draft as a file that another workspace can import."""
    automation = Automation.find(workspace_id(), automation_id)
    names = mentions.names_of(workspace_id(), automation.definition, automation.exits)
    response = Response(json.dumps(automation_files.file_of(automation, names)), mimetype="application/json")
    response.headers["Content-Disposition"] = f'attachment; filename="{automation.id}.json"'
    return response


def _number(typed_flow: str) -> int:
    return int(typed_flow) if re.fullmatch("[0-9]{1,5}", typed_flow) else 0


def _form(text: str, errors: dict[str, str] | None = None) -> str:
    return render_template("automations/starting/import.html", text=text[:MOST_BYTES], errors=errors or {})


def _preview(file: File, number: int, adoption: adoptions.Adoption, name: str, errors: dict[str, str]) -> str:
    return render_template(
        "automations/starting/preview.html",
        adoption=adoption,
        kind=importable_files.KINDS[file.kind],
        name=name,
        errors=errors,
        flows=[(str(at), each) for at, each in enumerate(file.flows)],
        flow=str(number),
        text=json.dumps(file.document).decode(),
        lost=adoption.imported.lost[:MOST_LISTED],
    )
