from __future__ import annotations

from typing import Any

import pytest

from app.domain.automations import recipes, warnings


def hosts(*steps: dict[str, Any]) -> list[tuple[str, str]]:
    found = warnings.of_examples({"steps": list(steps)})
    return [(each.pointer, each.detail.split()[3]) for each in found]


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://crm.example/leads", "crm.example"),
        ("https://CRM.Example", "crm.example"),
        ("https://example.com:8443/x", "example.com"),
        ("See https://www.example.org.", "www.example.org"),
        ("https://example.company/x", None),
        ("https://my-example.com/x", None),
        ("https://example.com.shop.de/x", None),
        ("https://shop.de/crm.example", None),
        ("{{ trigger.variables.address }}", None),
    ],
)
def test_example_addresses_are_known_by_their_hosts(address: str, host: str | None) -> None:
    step = {"id": "ask", "kind": "http_request", "address": address}

    assert hosts(step) == ([("/steps/0/address", host)] if host else [])


def test_every_template_of_a_step_is_looked_at_at_any_depth() -> None:
    inner = {"id": "ask", "kind": "http_request", "body": {"back": ["https://a.example/", "https://a.example/2"]}}
    branch = {"id": "is_new", "kind": "branch", "then": [], "else": [inner, {"id": "hi", "kind": "send_message"}]}

    assert hosts(branch) == [("/steps/0/else/0/body", "a.example")]


def test_the_warnings_are_bounded() -> None:
    steps = [{"id": f"s{n}", "kind": "http_request", "address": "https://crm.example"} for n in range(100)]

    assert len(hosts(*steps)) == warnings.MOST_WARNINGS


def test_templates_with_example_addresses_warn() -> None:
    warned = {each.id for each in recipes.all_recipes() if warnings.of_examples(each.body["definition"])}

    assert "ask-your-own-server" in warned
