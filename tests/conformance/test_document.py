"""The OpenAPI document, checked with Redocly's recommended rules."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tests.conformance.tools import HERE, ROOT, environment


def test_redocly_has_nothing_to_say(document: Path) -> None:
    lint = ("redocly", "lint", str(document), "--config", str(HERE / "redocly.yaml"), "--format", "json")
    settings = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}

    done = subprocess.run(lint, cwd=ROOT, env=environment(settings), capture_output=True, text=True, timeout=120)

    said = json.loads(done.stdout)
    assert [(problem["ruleId"], problem["message"], problem["location"]) for problem in said["problems"]] == []
    assert said["totals"] == {"errors": 0, "warnings": 0, "ignored": 0}
