from __future__ import annotations

import socket
import urllib.request

import pytest
from structlog.testing import capture_logs

from app import metrics
from tests.stack.ports import free_port


def served_at(lines: list[dict[str, object]]) -> list[object]:
    return [line["port"] for line in lines if line["event"] == "metrics.served"]


def test_a_process_answers_on_a_port_of_its_own() -> None:
    port = free_port()

    metrics.serve("127.0.0.1", port, "writes")

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        told = answer.read().decode()
    assert 'bellhop_processes{type="writes"} 1.0' in told
    assert "process_cpu_seconds_total" in told


def test_processes_on_one_machine_take_one_port_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()

    with socket.create_server(("127.0.0.1", port)), capture_logs() as lines:
        metrics.serve("127.0.0.1", port, "writes")
        metrics.serve("127.0.0.1", port, "writes")

    [first, second] = served_at(lines)
    assert port < first < second < port + metrics.MOST_PORTS


def test_a_process_that_finds_no_port_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_PORTS", 1)
    with socket.create_server(("127.0.0.1", 0)) as taken, capture_logs() as lines:
        metrics.serve("127.0.0.1", taken.getsockname()[1], "writes")

    assert served_at(lines) == []
    assert [line["log_level"] for line in lines] == ["warning"]


def test_an_address_that_is_not_of_this_machine_is_said_and_no_more() -> None:
    with capture_logs() as lines:
        metrics.serve("203.0.113.1", free_port(), "writes")

    assert [(line["event"], line["log_level"]) for line in lines] == [("metrics.not_served", "warning")]


def test_port_0_is_none() -> None:
    with capture_logs() as lines:
        metrics.serve("127.0.0.1", 0, "writes")

    assert lines == []
