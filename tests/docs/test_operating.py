"""The tables for operators list everything that exists, and nothing else."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import click
import pytest
from prometheus_client import Counter
from prometheus_client.metrics import MetricWrapperBase

from app import config, metrics, process_registry
from app.commands import main as commands
from tests.docs.pages import PAGES
from tests.stack.processes import ROOT

README = (PAGES.parents[1] / "README.md").read_text()
SETTINGS = (PAGES.parent / "settings.md").read_text()
RUNNING = (PAGES.parent / "running.md").read_text()
TABLE = re.findall(r"^\| `([A-Z_]+)` \| .* \| (.*) \|$", SETTINGS, re.MULTILINE)
NEEDED = {
    "DATABASE_URL": "postgresql://bellhop@db.test/bellhop",
    "REDIS_URL": "redis://redis.test:6379/0",
    "SECRET_KEY": "k" * 32,
}


class Noting(dict[str, str]):
    """An environment that records which names are looked up."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.asked: list[str] = []

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.append(name)
        return super().get(name, default)


def test_the_table_of_settings_has_each_that_is_read() -> None:
    environment = Noting(NEEDED)

    config.read(environment)

    assert sorted(name for name, _ in TABLE) == sorted(environment.asked)


@pytest.mark.parametrize(
    ("name", "default"), [(name, default) for name, default in TABLE if default not in ("none", "`REDIS_URL`")]
)
def test_the_table_of_settings_has_the_default(name: str, default: str) -> None:
    assert config.read(NEEDED | {name: default.strip("`")}) == config.read(NEEDED)


def test_the_table_of_figures_has_each_with_its_labels() -> None:
    figures = [figure for figure in vars(metrics).values() if isinstance(figure, MetricWrapperBase)]
    table = "\n".join(line for line in SETTINGS.splitlines() if line.startswith("| `"))

    assert sorted(re.findall(r"`((?:http|bellhop)_\w+)(?:\{([a-z,]+)\})?`", table)) == sorted(
        (figure._name + "_total" * isinstance(figure, Counter), ",".join(figure._labelnames)) for figure in figures
    )


def test_the_page_on_running_names_settings_and_figures_that_there_are() -> None:
    settings = set(re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)+\b", RUNNING))
    figures = {name.removesuffix("_count") for name in re.findall(r"\b(?:bellhop|http)_\w+", RUNNING)}

    assert settings - {name for name, _ in TABLE} == set()
    assert figures - set(re.findall(r"`((?:http|bellhop)_\w+)", SETTINGS)) == set()
    assert len(settings) > 5
    assert len(figures) > 8


def test_the_page_on_running_has_the_connections_of_every_process() -> None:
    table = dict(re.findall(r"^\| `([a-z-]+)` \| (\d+)[^|]* \| [^|]*MiB", RUNNING, re.MULTILINE))
    threads = dict(re.findall(r"^([a-z-]+): .*--threads (\d+)", (ROOT / "Procfile").read_text(), re.MULTILINE))
    of_web = re.search(r"^threads = (\d+)", (ROOT / "app" / "gunicorn.py").read_text(), re.MULTILINE)

    assert table.keys() == set(process_registry.TYPES)
    # Beside its actors, a process has a thread that wakes what waits, and one for each of its dispatchers.
    for name, others in {"writes": 0, "retries": 1 + 1, "automations": 1 + 1, "messages": 1 + 3}.items():
        assert int(table[name]) == int(threads[name]) + others
    assert of_web
    assert int(table["web"]) == int(of_web[1]) + 1  # the probe of a server that may hang


def test_the_table_of_commands_has_every_command() -> None:
    written = re.findall(r"^\| `python -m app ([a-z -]+(?:\\\|[a-z -]+)*)", README, re.MULTILINE)
    listed = [" ".join(words) for each in written for words in product(*(word.split(r"\|") for word in each.split()))]

    assert sorted(listed) == sorted(names_of(commands.main))


@pytest.mark.parametrize("page", sorted(PAGES.parent.glob("*.md")), ids=lambda page: page.name)
def test_the_commands_of_a_page_are_there_with_their_options(page: Path) -> None:
    for written in re.findall(r"python -m app ([^`|]*?)(?:[`|]|$)", page.read_text(), re.MULTILINE):
        command, words = commands.main, written.split()
        while isinstance(command, click.Group) and words:
            command = command.commands[words.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, written


def names_of(command: click.Command, *words: str) -> list[str]:
    if not isinstance(command, click.Group):
        return [" ".join(words)]
    return [name for word, inner in command.commands.items() for name in names_of(inner, *words, word)]
