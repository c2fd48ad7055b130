from __future__ import annotations

import shlex

import pytest

from app import process_registry
from tests.stack.processes import SMALL, process_types
from workers.middleware.registration import process_name

OTHERS = ("web", "realtime", "scheduler")


@pytest.mark.parametrize("process_type", [each for each in process_registry.TYPES if each not in OTHERS])
def test_the_lines_of_a_worker_name_its_process_type(process_type: str) -> None:
    assert process_name(shlex.split(process_types()[process_type])) == process_type


def test_a_worker_of_several_types_is_named_after_them_or_is_the_worker() -> None:
    assert process_name(["dramatiq", "workers.broker", "workers.writes", "workers.retries"]) == "writes+retries"
    assert process_name(shlex.split(process_types(SMALL)["worker"])) == "worker"
