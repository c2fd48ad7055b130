"""Changes of several conversations at once, and their progress."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from flask import Blueprint, flash, jsonify, make_response, redirect, render_template

from app.domain.inbox import selections
from app.domain.people import message_access
from app.errors import Conflict, Fault, Invalid
from app.lib import ids
from app.models.jobs import Job
from app.models.selections import Selection
from app.web import writes
from app.web.access import page, workspace_id
from app.web.forms import Answer, is_script, sentence_of, status_of, typed, typed_all
from app.web.inbox import views
from app.web.inbox.form_answers import FIELDS, action_of

blueprint = Blueprint("selection_pages", __name__, url_prefix="/workspaces/<workspace>/inbox/selections")

# The words for each change, while it is in progress and afterwards.
_SAID: Mapping[str, tuple[str, str]] = {
    "assign": ("Assigning", "Assigned"),
    "label": ("Adding the label to", "Added the label to"),
    "unlabel": ("Removing the label from", "Removed the label from"),
    "snooze": ("Snoozing", "Snoozed"),
    "close": ("Closing", "Closed"),
    "open": ("Opening", "Opened"),
}


@blueprint.post("")
@page("conversations.answer")
def create() -> Answer:
    """Applies the change of the pressed button to the ticked conversations, or to the whole view.

    Redirects to the list, which shows a refusal, or to the progress if the change has not ended. Scripts get JSON.
    """
    back = views.asked_for().address("inbox_pages.index")
    try:
        selection = _begin(typed(*FIELDS, "all"))
    except (Invalid, Conflict) as error:
        if is_script():
            return make_response(jsonify(said=sentence_of(error)), status_of(error))
        flash(sentence_of(error), "error")
        return redirect(back, 303)
    progress = views.asked_for().address("selection_pages.show", selection_id=selection.id)
    is_done = selection.finished_at is not None
    if is_script():
        return jsonify(said=summary(selection), address=None if is_done else progress)
    if is_done:
        flash(summary(selection), "good")
    return redirect(back if is_done else progress, 303)


@blueprint.get("/<selection_id>")
@page(message_access.SEE)
def show(selection_id: str) -> str:
    """Shows the progress of the change, or its result."""
    selection = Selection.find(workspace_id(), selection_id)
    job = Job.get_or_none(Job.id == selection.job_id)
    return render_template(
        "inbox/selection.html",
        selection=selection,
        summary=summary(selection),
        has_stopped=selection.finished_at is None and (job is None or job.is_finished),
        back=views.asked_for().address("inbox_pages.index"),
        stop=views.asked_for().address("selection_pages.stop", selection_id=selection.id),
    )


@blueprint.post("/<selection_id>/stop")
@page("conversations.answer")
def stop(selection_id: str) -> Answer:
    """Stops the change after the finished part, and redirects to its progress. Safe to repeat."""
    selection = Selection.find(workspace_id(), selection_id)
    selections.stop(selection)
    return redirect(views.asked_for().address("selection_pages.show", selection_id=selection.id), 303)


def summary(selection: Selection) -> str:
    """Describes what the change is doing, or has done."""
    doing, done = _SAID.get(selection.action.get("do"), ("Changing", "Changed"))
    if selection.finished_at is None:
        return f"{doing} {_counted(selection.total) if selection.total is not None else 'all of the view'}."
    sentences = [f"{done} {_counted(selection.changed)}."]
    if selection.unchanged:
        sentences.append(f"{selection.unchanged:,} needed no change.")
    if selection.passed_over:
        sentences.append(f"{selection.passed_over:,} had changed meanwhile and {_stay(selection.passed_over)}.")
    if selection.refused:
        sentences.append(f"{selection.refused:,} could not be changed.")
    if selection.total is None:
        sentences.append("It was stopped before it began.")
    elif left := selection.total - selection.done:
        sentences.append(f"It was stopped; {left:,} {_stay(left)}.")
    return " ".join(sentences)


def _begin(given: Mapping[str, str]) -> Selection:
    """Accepts the change once, and waits if conversations were ticked. Raises Invalid, Conflict."""
    action, choice = action_of(given, selections.ACTIONS), views.asked_for().choice
    ticked = None if given["all"] else _ticked()
    if ticked is None and not choice.is_listed_whole:
        raise Invalid(Fault("/all", "Of this list, only conversations that are ticked can be changed."))
    selections.check(workspace_id(), action)
    store = partial(selections.store, workspace_id(), ids.new("sel"), choice=choice, action=action, ticked=ticked)
    job = writes.begin("selections.apply", workspace_id(), lambda job_id: store(job_id=job_id))
    if ticked is not None:
        writes.wait(job)
    return selections.of_job(job.id)


def _ticked() -> list[str]:
    """Returns the ticked conversations. Raises Invalid if there are none, too many or invalid ones."""
    found = list(dict.fromkeys(typed_all("conversation_id")))
    if not found or not all(ids.is_id(each, "cnv") for each in found):
        raise Invalid(Fault("/conversation_id", "Tick a conversation first."))
    if len(found) > selections.MOST_TICKED:
        raise Invalid(Fault("/conversation_id", f"Tick at most {selections.MOST_TICKED} conversations."))
    return found


def _counted(number: int) -> str:
    return f"{number:,} {'conversation' if number == 1 else 'conversations'}"


def _stay(number: int) -> str:
    return "stays as it is" if number == 1 else "stay as they are"
