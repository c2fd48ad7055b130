"""Results: goals and conversion by version and arm, time to the goal, and where runs leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import Blueprint, render_template, request

from app.domain.automations import automations, results, version_counts
from app.domain.automations.results import Arm, Leaving, Verdict
from app.models.automations import Automation
from app.web import lists
from app.web.access import page, workspace_id
from app.web.automations import layouts, mentions, step_figures
from app.web.automations.automation_pages import version_choices, whole_number
from app.web.formats import NOTHING
from app.web.forms import Answer

blueprint = Blueprint("result_pages", __name__, url_prefix="/workspaces/<workspace>/automations")

# Columns of the file: the first are empty for steps, the second for arms and versions.
_OF_ARMS, _OF_STEPS = ("goals", "low_percent", "high_percent"), ("failed", "left_without_going_on", "timed_out")


@dataclass(frozen=True, slots=True)
class Row:
    """An arm or a version in a table. `low` and `high`: the interval of its conversion, in percent."""

    name: str
    runs: int
    goals: int
    share: str
    low: float
    high: float

    @classmethod
    def of(cls, arm: Arm) -> Row:
        """Returns the row of an arm, with the interval at 95 % confidence."""
        low, high = arm.goals.interval()
        share = f"{100 * arm.goals.share:.1f} %" if arm.goals.whole else NOTHING
        return cls(arm.name, arm.goals.whole, arm.goals.part, share, round(100 * low, 1), round(100 * high, 1))


@blueprint.get("/<automation_id>/results")
@page("automations.see")
def show(automation_id: str) -> Answer:
    """Shows a version's results in a period, and all versions side by side, as a page or as a file.

    Without a valid `version` in the address, shows the published or the latest one.
    """
    automation = Automation.find(workspace_id(), automation_id)
    number = whole_number(request.args.get("version"))
    known = number if number and number <= automation.latest_version else None
    counted = version_counts.read(automation, known, step_figures.since())
    versions = results.by_version(automation)
    arms = results.arms_of(counted)
    if lists.wanted_format():
        return lists.file_of(lambda: list(_file(counted, versions, arms)), f"{automation.id}-results")
    titles = _titles(automation, counted["version"])
    overall = Arm("", results.Proportion(counted["goals"], sum(counted["runs"].values())))
    return render_template(
        "automations/results.html",
        automation=automation,
        counted=counted,
        choices=[each for each in version_choices(automation) if each[0].isdigit()],
        periods=step_figures.periods(),
        overall=Row.of(overall),
        versions=[Row.of(each) for each in versions],
        of_versions=said(results.compare(versions), "version "),
        arms={
            titles.get(step, step): ([Row.of(each) for each in found], said(results.compare(found)))
            for step, found in arms.items()
        },
        stages=list(_stages(counted, titles)),
        address=lists.address,
    )


def said(verdict: Verdict, what: str = "") -> str:
    """Returns a sentence that says whether the difference is significant, or that runs are too few.

    `what`: a prefix of each name, such as "version ".
    """
    if verdict.kind == "too_few":
        return (
            f"Not enough runs yet to compare: each needs {results.FEWEST_RUNS}, and all together"
            f" {results.FEWEST_GOALS} goals."
        )
    low, high = _points(verdict.low), _points(verdict.high)
    better, worse = f"{what}“{verdict.better}”", f"{what}“{verdict.worse}”"
    if verdict.kind == "different":
        said = f"{better} converts better than {worse}, by {low} to {high} percentage points"
        return f"{said[0].upper()}{said[1:]}. That is hardly chance."
    return (
        f"No difference is sure. The clearest is between {better} and {worse}, and it lies between {low} and {high}"
        " percentage points, so it may be chance."
    )


def _titles(automation: Automation, number: int | None) -> dict[str, str]:
    """Returns a sentence for each step of the version, by identifier; {} without the version."""
    version = automations.find_version(automation, number) if number else None
    if version is None:
        return {}
    drawn = layouts.draw(version.definition, mentions.names_of(workspace_id(), version.definition))
    return {node.id: node.sentence for node in drawn.nodes}


def _stages(counted: Mapping[str, Any], titles: Mapping[str, str]) -> Iterator[tuple[str, Leaving, float]]:
    """Yields (title, runs that dropped out, percentage of runs that entered) for each step with runs.

    Keeps the picture's order. Steps that the picture lacks come last.
    """
    runs = sum(counted["runs"].values())
    by_step = {each.step: each for each in results.leavings(counted)}
    for step in [*(each for each in titles if each in by_step), *(each for each in by_step if each not in titles)]:
        leaving = by_step[step]
        yield titles.get(step, step), leaving, min(100 * leaving.entered / runs, 100) if runs else 0


def _file(
    counted: Mapping[str, Any], versions: Sequence[Arm], arms: Mapping[str, Sequence[Arm]]
) -> Iterator[dict[str, Any]]:
    for sort, of, found in [("version", "", versions), *(("arm", step, each) for step, each in arms.items())]:
        for row in map(Row.of, found):
            figures = dict(zip(_OF_ARMS, (row.goals, row.low, row.high), strict=True))
            yield {"of": sort, "step": of, "name": row.name, "runs": row.runs, **figures, **dict.fromkeys(_OF_STEPS)}
    for each in results.leavings(counted):
        left = dict(zip(_OF_STEPS, (each.failed, each.gone, each.late), strict=True))
        head = {"of": "step", "step": each.step, "name": "", "runs": each.entered}
        yield {**head, **dict.fromkeys(_OF_ARMS), **left}


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}")
