"""Faults of ours are counted and logged."""

from __future__ import annotations

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.outbound import Answer, dialling
from tests.app.outbound.world import OK, World


def counted(cause: str) -> float:
    return REGISTRY.get_sample_value("bellhop_our_faults_total", {"cause": cause}) or 0


def test_a_fault_of_ours_is_counted_by_its_cause_and_logged_once_in_a_while(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dial(*_: object) -> None:
        raise KeyError("a mistake")

    monkeypatch.setattr(dialling.Dialler, "dial", dial)
    before = counted("not_sent")

    async def story() -> list[Answer]:
        async with world.meeting(world.says(OK)) as (outbound, port):
            return [await outbound.post(f"https://127.0.0.1:{port}/", b"", {}) for _ in range(3)]

    with capture_logs() as logs:
        answers = world.runner.run(story())

    assert {(answer.error_code, answer.error) for answer in answers} == {("ours", "The request could not be sent.")}
    assert counted("not_sent") == before + 3
    [line] = [line for line in logs if line["event"] == "outbound.our_fault"]
    assert line["cause"] == "not_sent"
    assert isinstance(line["exc_info"], KeyError)


def test_a_fault_of_the_other_side_is_not_counted(world: World) -> None:
    with capture_logs() as logs:
        assert world.deliver(world.says_and_closes()).error_code == "reset"
    assert logs == []
