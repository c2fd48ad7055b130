"""Macros: listing, creating row by row, changing and deleting them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flask import Blueprint, render_template, request
from werkzeug.wrappers import Response

from app.domain.bodies.macros import MacroCreate
from app.domain.macros import macros, saved_replies
from app.domain.macros.macro_actions import ACTION_KINDS, ME
from app.errors import Conflict, Invalid
from app.lib import ids
from app.models.automations import Automation
from app.models.macros import Macro
from app.models.saved_replies import SavedReply
from app.web import lists, writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, checked, status_of, typed
from app.web.inbox import inbox_pages
from app.web.macros import macro_forms
from app.web.macros.macro_forms import NOBODY, Row
from app.web.redirects import to

blueprint = Blueprint("macro_pages", __name__, url_prefix="/workspaces/<workspace>/macros")

# If there are more automations, only the newest can be chosen.
MOST_AUTOMATIONS = 500


@blueprint.get("")
@page("macros.see")
def index() -> str:
    """Lists the macros, newest first; with `q`, only macros whose name contains it."""
    given = lists.filters("q")
    found = lists.sliced(partial(Macro.newest, workspace_id(), given.get("q")))
    return render_template("macros/index.html", page=found, given=given, summary_of=macro_forms.summary_of)


@blueprint.get("/new", endpoint="new")
@blueprint.get("/<macro_id>", endpoint="edit")
@page("macros.manage")
def edit(macro_id: str | None = None) -> str:
    """Shows the form of the macro, or of a new one."""
    if macro_id is None:
        return _form(None, "", [])
    macro = Macro.find(workspace_id(), macro_id)
    return _form(macro, macro.name, [macro_forms.row_of(action) for action in macro.actions])


@blueprint.post("/new", endpoint="create")
@blueprint.post("/<macro_id>", endpoint="update")
@page("macros.manage")
def save(macro_id: str | None = None) -> Answer:
    """Saves or creates the macro and redirects to the list, or shows changed rows or a refusal."""
    macro = Macro.find(workspace_id(), macro_id) if macro_id else None
    given, rows = typed("name", "do", "add_kind"), macro_forms.typed_rows()
    changed = macro_forms.pressed(rows, given["do"], given["add_kind"])
    if changed is not None:
        return _form(macro, given["name"], changed)
    try:
        body = checked(MacroCreate(), {"name": given["name"], "actions": macro_forms.actions_of(rows)})
        kind = "macros.update" if macro else "macros.create"
        job = writes.submit(kind, body, macro.id if macro else ids.new("mac"))
    except (Invalid, Conflict) as error:
        errors, rows = macro_forms.errors_of(error, rows)
        return _form(macro, given["name"], rows, errors), status_of(error)
    return to("macro_pages.index", f"“{body['name']}” is saved." if job.is_finished else None)


@blueprint.post("/<macro_id>/delete")
@page("macros.manage")
def delete(macro_id: str) -> Response:
    """Deletes the macro, and redirects to the list. A Conflict is shown there."""
    macro = Macro.find(workspace_id(), macro_id)
    writes.tell(f"The macro “{macro.name}” was deleted.", "macros.delete", {}, macro.id)
    return to("macro_pages.index")


def _form(macro: Macro | None, name: str, rows: Sequence[Row], errors: dict[str, str] | None = None) -> str:
    return render_template(
        "macros/form.html",
        macro=macro,
        name=name,
        rows=rows,
        errors=errors or {},
        kinds={kind: macro_forms.LABELS[kind] for kind in ACTION_KINDS},
        choices=_choices(),
        units=list(macro_forms.UNITS),
        most=macros.MOST_ACTIONS,
        chosen_kind=request.form.get("add_kind", "reply"),
    )


def _choices() -> dict[str, list[tuple[str, str]]]:
    found = SavedReply.select(SavedReply.id, SavedReply.shortcut).where(SavedReply.workspace_id == workspace_id())
    replies = found.order_by(SavedReply.folded).limit(saved_replies.QUOTA.most)
    published = Automation.select(Automation.id, Automation.name).where(
        Automation.workspace_id == workspace_id(), Automation.version.is_null(False)
    )
    started = published.order_by(Automation.id.desc()).limit(MOST_AUTOMATIONS)
    return {
        "reply": [(reply.id, f"/{reply.shortcut}") for reply in replies],
        "assign": [(ME, "Who applies the macro"), (NOBODY, "Nobody"), *inbox_pages.people().items()],
        "start_automation": [(automation.id, automation.name) for automation in started],
    }
