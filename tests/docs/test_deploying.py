"""The files in docs/deploying start what the Procfile has, and leave each process the time that it needs to end."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from app import process_registry
from tests.docs.pages import PAGES
from tests.stack.processes import ROOT, SMALL, process_types

FOLDER = PAGES.parent / "deploying"
START = FOLDER / "start"
COMPOSE = (FOLDER / "compose.yaml").read_text()
UNIT = (FOLDER / "systemd" / "bellhop@.service").read_text()
TARGET = (FOLDER / "systemd" / "bellhop.target").read_text()
DEPLOYMENTS = (FOLDER / "kubernetes" / "processes.yaml").read_text()
SCALING = (FOLDER / "kubernetes" / "autoscaling.yaml").read_text()
TYPES = sorted(process_registry.TYPES)
UPGRADE = "python, -m, app, db, upgrade"


def seconds_to_end() -> int:
    """How long the slowest process may take to end by itself."""
    workers = re.findall(r"--worker-shutdown-timeout (\d+)000", (ROOT / "Procfile").read_text())
    assert len(workers) == len(TYPES) - 3  # all but web, realtime and scheduler
    of_web = re.findall(r"^graceful_timeout = (\d+)", (ROOT / "app" / "gunicorn.py").read_text(), re.MULTILINE)
    assert len(of_web) == 1
    return max(map(int, workers + of_web))


def graces(text: str, name: str) -> list[int]:
    return [int(seconds) for seconds in re.findall(rf"{name}[:=] ?(\d+)", text)]


@pytest.mark.parametrize("kind", [*TYPES, "worker"])
def test_start_runs_the_command_of_the_procfile(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("programs")
    for program in ("gunicorn", "python", "dramatiq"):
        (folder / program).write_text('#!/bin/sh\nprintf "%s\\n" "${0##*/}" "$@"\n')
        (folder / program).chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}

    def said(*command: str) -> str:
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    assert said(str(START), kind) == said("sh", "-c", (process_types(SMALL) | process_types())[kind]) != ""
    assert said(str(START), f"{kind}:2") == said(str(START), kind)
    assert said(str(START), "python", "-m", "app") == "python\n-m\napp\n"


def test_compose_has_every_process_and_the_upgrade() -> None:
    assert sorted(re.findall(r"^  ([a-z-]+): \{<<: \*process, command: \[\1\]\}$", COMPOSE, re.MULTILINE)) == TYPES
    assert f"command: [{UPGRADE}]" in COMPOSE


def test_the_target_has_every_process_and_the_upgrade() -> None:
    assert sorted(re.findall(r"bellhop@([a-z-]+)\.service", TARGET)) == TYPES
    assert "bellhop-upgrade.service" in TARGET
    assert f"ExecStart=/opt/bellhop/{START.relative_to(ROOT)} %i\n" in UNIT
    assert "-m app db upgrade\n" in (FOLDER / "systemd" / "bellhop-upgrade.service").read_text()


def test_kubernetes_has_every_process_with_probes_and_the_upgrade() -> None:
    parts = DEPLOYMENTS.split("kind: Deployment\n")[1:]
    named = {re.search(r"name: ([a-z-]+), labels", part)[1]: part for part in parts}  # type: ignore[index]

    assert sorted(named) == TYPES
    for name, part in named.items():
        assert f"args: [{name}]" in part
        assert part.count(f"{{app: bellhop, process: {name}}}") >= 2
        assert "*pod" in part or "&pod" in part
        assert "*worker" in part or {"startupProbe", "livenessProbe"} <= set(re.findall(r"\w+Probe", part))


def test_the_upgrade_in_kubernetes_runs_like_the_processes() -> None:
    upgrade = (FOLDER / "kubernetes" / "upgrade.yaml").read_text()

    assert f"args: [{UPGRADE}]" in upgrade
    for shared in ("image: .*(registry.*)", "runAsUser: (.*?)[,}\n]", "(readOnlyRootFilesystem: true)"):
        assert set(re.findall(shared, upgrade)) == set(re.findall(shared, DEPLOYMENTS)) != set()


def test_no_service_of_kubernetes_sets_a_setting() -> None:
    # By default it adds NAME_PORT and more to the environment for each Service.
    for pods in (DEPLOYMENTS, (FOLDER / "kubernetes" / "upgrade.yaml").read_text()):
        assert pods.count("enableServiceLinks: false") == 1


def test_a_process_may_end_before_it_is_killed() -> None:
    needed = seconds_to_end()
    [pause] = map(int, set(re.findall(r'sleep, "(\d+)"', DEPLOYMENTS)))
    [of_pods] = graces(DEPLOYMENTS, "terminationGracePeriodSeconds")
    [of_units] = graces(UNIT, "TimeoutStopSec")
    of_containers = graces(COMPOSE, "stop_grace_period")

    assert of_pods >= needed + pause
    assert of_units >= needed
    assert len(of_containers) == 2  # the processes and the proxy
    assert min(of_containers) >= needed


def test_workers_are_scaled_by_mail_that_there_is() -> None:
    source = "\n".join(path.read_text() for path in (ROOT / "app" / "domain").rglob("*.py"))
    mails = set(re.findall(r'\bMail\(\s*table="(\w+)"', source))
    scaled = re.findall(r"kind: Deployment, name: ([a-z-]+)\}", SCALING)

    assert set(re.findall(r"matchLabels: \{mail: (\w+)\}", SCALING)) <= mails
    assert SCALING.count("metric: {name: bellhop_overdue_seconds") == SCALING.count("mail:")
    assert set(scaled) <= set(TYPES)


def test_the_units_and_the_image_keep_files_from_other_users() -> None:
    assert "UMask=0027\n" in UNIT
    assert "StateDirectoryMode=0750\n" in UNIT
    assert "install --directory --mode 0750" in (FOLDER / "Dockerfile").read_text()


def test_the_image_has_a_version_of_its_own_without_being_told_one(tmp_path: Path) -> None:
    """The line of the Dockerfile that writes it, on a copy of some code and on another."""
    [line] = re.findall(r"^RUN (echo .+ > VERSION)$", (FOLDER / "Dockerfile").read_text(), re.MULTILINE)
    found = []
    for text in ("old", "new"):
        for name in ("app", "workers", "scheduler"):
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "a.py").write_text(text)
        subprocess.run(["sh", "-c", line], cwd=tmp_path, env={"PATH": os.environ["PATH"]}, check=True)
        found.append((tmp_path / "VERSION").read_text())
    subprocess.run(["sh", "-c", line], cwd=tmp_path, env={"PATH": os.environ["PATH"], "VERSION": "abc"}, check=True)

    assert [len(each) for each in found] == [9, 9]
    assert found[0] != found[1]
    assert (tmp_path / "VERSION").read_text() == "abc\n"
