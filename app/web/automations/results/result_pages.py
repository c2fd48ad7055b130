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
from app.web.automations.automation_pages import version_choices
from app.web.formats import NOTHING
from app.web.forms import Answer

blueprint = Blueprint("result_pages", __name__, url_prefix="/workspaces/<workspace>/automations")


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
        share = _percent(arm.goals.share) if arm.goals.whole else NOTHING
        return cls(arm.name, arm.goals.whole, arm.goals.part, share, round(100 * low, 1), round(100 * high, 1))


@dataclass(frozen=True, slots=True)
class Stage:
    """A step in the table of where runs leave. `share`: the percentage of all runs that entered it."""

    title: str
    leaving: Leaving
    share: float


@blueprint.get("/<automation_id>/results")
@page("automations.see")
def show(automation_id: str) -> Answer:
    """Shows the results of a version in a period, and all versions side by side; also as a file."""
    automation = Automation.find(workspace_id(), automation_id)
    number = _chosen(automation)
    counted = version_counts.read(automation, number, step_figures.since())
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

    `what`: put before each name, such as "version ".
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


def _chosen(automation: Automation) -> int | None:
    """Returns the version in the address; None for the published or latest one."""
    asked = request.args.get("version", "")
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 10 else 0
    return number if 1 <= number <= automation.latest_version else None


def _titles(automation: Automation, number: int | None) -> dict[str, str]:
    """Returns a sentence for each step of the version, by identifier; {} without the version."""
    version = automations.find_version(automation, number) if number else None
    if version is None:
        return {}
    drawn = layouts.draw(version.definition, mentions.names_of(workspace_id(), version.definition))
    return {node.id: node.sentence for node in drawn.nodes}


def _stages(counted: Mapping[str, Any], titles: Mapping[str, str]) -> Iterator[Stage]:
    """Yields each step that runs entered, with how many dropped out there, in the picture's order.

    Steps that the picture lacks come last.
    """
    runs = sum(counted["runs"].values())
    by_step = {each.step: each for each in results.leavings(counted)}
    for step in [*(each for each in titles if each in by_step), *(each for each in by_step if each not in titles)]:
        leaving = by_step[step]
        yield Stage(titles.get(step, step), leaving, min(100 * leaving.entered / runs, 100) if runs else 0)


def _file(
    counted: Mapping[str, Any], versions: Sequence[Arm], arms: Mapping[str, Sequence[Arm]]
) -> Iterator[dict[str, Any]]:
    """Yields the rows of all tables on the page, for a file."""
    for sort, of, found in [("version", "", versions), *(("arm", step, each) for step, each in arms.items())]:
        for row in map(Row.of, found):
            yield _line(sort, of, row.name, row.runs, row.goals, row.low, row.high)
    for each in results.leavings(counted):
        yield _line("step", each.step, "", each.entered, None, None, None, each.failed, each.gone, each.late)


def _line(sort: str, step: str, name: str, *figures: Any) -> dict[str, Any]:
    names = ("runs", "goals", "low_percent", "high_percent", "failed", "left_without_going_on", "timed_out")
    values = [*figures, *[None] * (len(names) - len(figures))]
    return {"of": sort, "step": step, "name": name, **dict(zip(names, values, strict=True))}


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _points(share: float) -> str:
    return f"{100 * share:.1f}".replace("-", "\N{MINUS SIGN}")
