"""Samples of other products' exports, written for these tests, and what parts they have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from app.config import settings

Document = dict[str, Any]


@pytest.fixture(autouse=True)
def _settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Addresses are compared with the networks that the settings allow."""
    given = {
        "DATABASE_URL": "postgresql://nobody@127.0.0.1/none",
        "REDIS_URL": "redis://127.0.0.1",
        "SECRET_KEY": "samples-" * 8,
        "BASE_URL": "https://bellhop.example",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings.cache_clear()
    yield
    settings.cache_clear()


def block(key: str, kind: str, to: str | None = None, **fields: Any) -> Document:
    return {"id": key, "type": kind, **({"outgoingEdgeId": to} if to else {}), **fields}


def said(key: str, text: str, to: str | None = None) -> Document:
    return block(key, "text", to, content={"richText": [{"type": "p", "children": [{"text": text}]}]})


def item(key: str, content: Any, to: str | None = None) -> Document:
    return {"id": key, "content": content, **({"outgoingEdgeId": to} if to else {})}


def is_(variable: str, operator: str, value: str) -> Document:
    return {"comparisons": [{"id": "x", "variableId": variable, "comparisonOperator": operator, "value": value}]}


def typebot(groups: Mapping[str, Sequence[Document]], edges: Mapping[str, str], **more: Any) -> Document:
    """A typebot. `edges`: the group, or group/block, that each leads to; `go` is that of the start."""
    return {
        "version": "6",
        "name": "A bot",
        "events": [{"id": "begin", "type": "start", "outgoingEdgeId": "go"}],
        "groups": [{"id": key, "title": key.title(), "blocks": list(blocks)} for key, blocks in groups.items()],
        "edges": [
            {"id": key, "from": {}, "to": dict(zip(("groupId", "blockId"), to.split("/"), strict=False))}
            for key, to in edges.items()
        ],
        "variables": [{"id": f"v{name}", "name": name} for name in ("Name", "Score", "Topic")],
        **more,
    }


MENU = typebot(
    {
        "hello": [
            said("b1", "Hi {{Name}}!"),
            said("b2", "What is it about?"),
            block(
                "b3",
                "choice input",
                items=[
                    item("i1", "Prices", "to_prices"),
                    item("i2", "Öffnungszeiten, bitte", "to_hours"),
                    item("i3", "A person", "to_person"),
                ],
                options={"variableId": "vTopic"},
            ),
        ],
        "prices": [
            said("b4", "From 10 €."),
            block("b5", "image", content={"url": "https://pics.example/p.png"}),
            block("b6", "Jump", options={"groupId": "hello"}),
        ],
        "hours": [said("b7", "9 to 18.", "back")],
        "person": [
            said("b8", "Your address?"),
            block("b9", "email input", options={"variableId": "vName"}),
            block("b10", "Email", options={"recipients": ["a@b.example"]}),
            block("b11", "Code", options={"content": "alert(1)"}),
            said("b12", "Thanks {{Topic}}, {{= 1 + 1 =}} bye."),
        ],
        "lonely": [said("b13", "Nobody gets here.")],
    },
    {
        "go": "hello",
        "to_prices": "prices",
        "to_hours": "hours",
        "to_person": "person",
        "back": "hello/b2",
        "broken": "nowhere",
    },
)
QUIZ = typebot(
    {
        "start": [
            block("c1", "Set variable", options={"variableId": "vScore", "expressionToEvaluate": "0"}),
            said("c2", "Pick as many as you like"),
            block(
                "c3",
                "choice input",
                items=[item(f"k{n}", f"Answer {n}") for n in range(12)],
                options={"isMultipleChoice": True},
            ),
        ],
        "score": [
            block("c4", "Set variable", options={"variableId": "vScore", "expressionToEvaluate": "{{Score}} + 5"}),
            block(
                "c5",
                "Condition",
                "low",
                items=[
                    item("k20", is_("vScore", "Greater than", "3"), "high"),
                    item("k21", is_("vScore", "Ends with", "0"), "low"),
                    item("k22", is_("vNone", "Equal to", "1"), "high"),
                ],
            ),
        ],
        "high": [
            block(
                "c6",
                "AB test",
                items=[
                    {"id": "k30", "path": "a", "outgoingEdgeId": "arm_a"},
                    {"id": "k31", "path": "b", "outgoingEdgeId": "arm_b"},
                ],
                options={"aPercent": 30},
            )
        ],
        "arm_a": [
            said("c7", "A"),
            block("c8", "Wait", options={"secondsToWaitFor": "2"}),
            block("c9", "Redirect", options={"url": "https://shop.example"}),
        ],
        "arm_b": [
            block(
                "c10",
                "Webhook",
                options={
                    "webhook": {
                        "url": "https://api.example/{{Name}}",
                        "method": "POST",
                        "body": '{"a": "{{Score}}"}',
                        "queryParams": [{"key": "q", "value": "1"}],
                    },
                    "responseVariableMapping": [
                        {"variableId": "vName", "bodyPath": "data.items[0].name"},
                        {"variableId": "vName", "bodyPath": "data.map(x => x)"},
                    ],
                },
            ),
            said("c11", "{% B %}"),
        ],
        "low": [
            block("c12", "Typebot link", options={"typebotId": "other"}),
            block(
                "c13",
                "Set variable",
                options={"variableId": "vName", "isCode": True, "expressionToEvaluate": "return 1"},
            ),
            block("c14", "openai", options={}),
            block("c15", "rating input", options={"length": 5}),
        ],
    },
    {"go": "start", "high": "high", "low": "low", "arm_a": "arm_a", "arm_b": "arm_b", "c3_on": "score"},
    version="5",
)
QUIZ["groups"][0]["blocks"][2]["outgoingEdgeId"] = "c3_on"
QUIZ["events"].append({"id": "other", "type": "command"})


def node(
    key: str,
    *actions: Document,
    to: str | None = None,
    router: Document | None = None,
    exits: Sequence[str | None] = (),
) -> Document:
    ends = list(exits) or [to]
    made = {
        "uuid": key,
        "actions": [{"uuid": f"{key}a{number}", **each} for number, each in enumerate(actions)],
        "exits": [{"uuid": f"{key}x{number}", "destination_uuid": end} for number, end in enumerate(ends)],
    }
    return {**made, "router": router} if router else made


def router(key: str, operand: str, *cases: tuple[str, str, list[str]], **more: Any) -> Document:
    """A router whose cases lead to its exits in turn; the last exit is for all else."""
    categories = [
        {"uuid": f"{key}c{number}", "name": name, "exit_uuid": f"{key}x{number}"}
        for number, name in enumerate([*(name for name, _, _ in cases), "Other"])
    ]
    return {
        "type": "switch",
        "operand": operand,
        "cases": [
            {"uuid": f"{key}k{number}", "type": kind, "arguments": arguments, "category_uuid": f"{key}c{number}"}
            for number, (_, kind, arguments) in enumerate(cases)
        ],
        "categories": categories,
        "default_category_uuid": categories[-1]["uuid"],
        **more,
    }


FLOWS: Document = {
    "version": "13",
    "flows": [
        {
            "uuid": "f1",
            "name": "Registration",
            "spec_version": "13.1.0",
            "localization": {"fra": {}},
            "nodes": [
                node(
                    "n1",
                    {
                        "type": "send_msg",
                        "text": "Hi @contact.name, red or blue? @(word(1))",
                        "quick_replies": ["Red", "Blue as the sky over the sea"],
                        "attachments": ["image:https://pics.example/a.png"],
                    },
                    to="n2",
                ),
                node(
                    "n2",
                    router=router(
                        "n2",
                        "@input.text",
                        ("Red", "has_any_word", ["red rouge"]),
                        ("Blue", "has_only_phrase", ["Blue as the sky over the sea"]),
                        ("Odd", "has_district", ["x"]),
                        result_name="Favorite Color",
                        wait={"type": "msg", "timeout": {"seconds": 600, "category_uuid": "n2c3"}},
                    ),
                    exits=["n3", "n4", "n5", "n6"],
                ),
                node(
                    "n3",
                    {"type": "add_contact_groups", "groups": [{"uuid": "g", "name": "Reds"}]},
                    {
                        "type": "set_contact_field",
                        "field": {"key": "colour", "name": "Colour"},
                        "value": "@results.favorite_color",
                    },
                    to="n5",
                ),
                node(
                    "n4",
                    {
                        "type": "call_webhook",
                        "method": "POST",
                        "url": "https://api.example/x",
                        "headers": {"A": "b"},
                        "body": '{"c": "@results.favorite_color.category"}',
                        "result_name": "Call",
                    },
                    to="n7",
                ),
                node(
                    "n5",
                    {"type": "send_email", "addresses": ["bob@b.example"], "subject": "x", "body": "y"},
                    {"type": "set_contact_language", "language": "eng"},
                    {"type": "enter_flow", "flow": {"uuid": "f2", "name": "Other"}, "terminal": True},
                ),
                node("n6", {"type": "send_msg", "text": "I did not get that."}, to="n2"),
                node(
                    "n7",
                    router=router("n7", "@results.call.category", ("Success", "has_only_text", ["Success"])),
                    exits=["n5", "n8"],
                ),
                node(
                    "n8",
                    router={
                        "type": "random",
                        "categories": [
                            {"uuid": "r1", "name": "One", "exit_uuid": "n8x0"},
                            {"uuid": "r2", "name": "Two", "exit_uuid": "n8x1"},
                        ],
                    },
                    exits=["n5", None],
                ),
                node("n9", {"type": "say_msg", "text": "Never"}),
            ],
        },
        {"uuid": "f2", "name": "Other", "spec_version": "14.0.0", "nodes": []},
    ],
    "triggers": [
        {"trigger_type": "K", "keyword": "join", "flow": {"uuid": "f1", "name": "Registration"}, "groups": []},
        {"trigger_type": "S", "flow": {"uuid": "f1", "name": "Registration"}},
    ],
    "campaigns": [{"uuid": "c1", "name": "Later", "events": [{"uuid": "e1", "flow": {"uuid": "f1"}}]}],
}


def parts_of_typebot(document: Document) -> Iterator[str]:
    yield from (each["id"] for each in document["events"])
    yield from (each["id"] for each in document["edges"])
    for group in document["groups"]:
        for each in group["blocks"]:
            yield each["id"]
            yield from (inner["id"] for inner in each.get("items", ()))


def parts_of_flow(flow: Document) -> Iterator[str]:
    for each in flow["nodes"]:
        yield each["uuid"]
        yield from (action["uuid"] for action in each["actions"])
        yield from (link["uuid"] for link in each["exits"])
        yield from (case["uuid"] for case in each.get("router", {}).get("cases", ()))


def entangled(nodes: int) -> Document:
    """Flows of RapidPro, of which each node leads to the next and the one behind that."""
    flow = [
        node(
            f"n{number}",
            router=router(f"n{number}", "@contact.name", ("Yes", "has_any_word", ["yes"])),
            exits=[f"n{number + 1}", f"n{number + 2}"],
        )
        for number in range(nodes)
    ]
    return {"flows": [{"uuid": "f", "name": "Entangled", "spec_version": "13.1.0", "nodes": flow}]}
