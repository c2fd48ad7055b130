"""Two workspaces with some of everything, and the people who may ask for pages and send forms there."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, replace
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.datastructures import MultiDict
from werkzeug.test import TestResponse

from app.domain.people import links, members, roles
from tests import pages
from tests.cast import Api, found, one
from tests.copies import Copy
from tests.forms import Fields, forms_of
from tests.pages import Person
from tests.surface import everything, furnish

# Of these, a request changes when it was last seen, and nothing else.
SEEN = {"sessions"}
POLICY = {
    *(
        "default-src 'none'",
        "style-src 'self'",
        "script-src 'self'",
        "img-src 'self' data:",
        "media-src 'self'",
        "connect-src 'self'",
    ),
    *("form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"),
}
# What is in a path and is no identifier.
OTHERS = {"kind": "web_chat", "token": "of-nothing", "version": "0", "name": "style.css"}
_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """A method of a page; `action` is None where it is about no workspace."""

    method: str
    rule: str
    is_public: bool
    is_for_staff: bool
    action: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.rule}"

    @property
    def writes(self) -> bool:
        return self.method != "GET"

    @property
    def parameters(self) -> list[str]:
        """The names in the path, without the workspace."""
        return [name for name in _PARAMETER.findall(self.rule) if name != "workspace"]

    @property
    def nouns(self) -> list[str]:
        """The nouns whose identifiers are in the path."""
        return [name.removesuffix("_id") for name in self.parameters if name.endswith("_id")]

    def path(self, workspace_id: str, known: dict[str, str]) -> str:
        """The path with identifiers from `known` by noun. Raises KeyError for one that is not known."""
        values = OTHERS | {"workspace": workspace_id} | {f"{noun}_id": value for noun, value in known.items()}
        return _PARAMETER.sub(lambda found: values[found[1]], self.rule)


def routes_of(app: Flask) -> list[Route]:
    """All routes, deletions last, so that what others need is still there."""
    made = app.extensions["pages"]
    found = [
        Route(method, rule.rule, access.get("public", False), access.get("staff", False), access.get("action"))
        for rule in made.url_map.iter_rules()
        for access in [made.view_functions[rule.endpoint].access]
        for method in sorted(rule.methods - {"HEAD", "OPTIONS"})
    ]
    return sorted(found, key=lambda route: (route.writes, "delete" in route.rule or "erase" in route.rule, str(route)))


@dataclass(frozen=True)
class Scene:
    """Two workspaces, each with some of everything; the people of ours, those of theirs, and support staff.

    `stranger` owns theirs; `both` does, too, and is an agent of ours. `forms`: what pages show, by the rule to which it
    is sent.
    """

    app: Flask
    routes: list[Route]
    own: dict[str, str]
    foreign: dict[str, str]
    people: dict[str, Person]
    signed_out: FlaskClient
    theirs: Api
    copy: Copy
    forms: dict[str, Fields]

    @property
    def writes(self) -> list[Route]:
        """Those with a token in their form."""
        return [route for route in self.routes if route.writes and not route.rule.startswith("/unsubscribe/")]

    def ask(self, who: str, route: Route, known: dict[str, str] | None = None, **options: Any) -> TestResponse:
        """A request by somebody, about our workspace unless said.

        A write sends `fields`, by default none, with the token of the person's forms.
        """
        person = self.people[who]
        path = route.path(options.pop("workspace_id", person.workspace_id), self.own if known is None else known)
        fields = options.pop("fields", ())
        if route.writes and "data" not in options:
            ours = [("csrf_token", person.csrf_token()), ("once", str(uuid.uuid4()))]
            options["data"] = MultiDict([*ours, *(each for each in fields if each[0] not in dict(ours))])
        options.setdefault("headers", {"Accept": "text/html"})
        return sound(person.client.open(path, method=route.method, **options), route)

    def put_back(self) -> Scene:
        """The same rows as in the beginning, and everybody signed in with another browser."""
        self.copy.put_back()
        people = {who: pages.anew(self.app, person) for who, person in self.people.items()}
        return replace(self, people=people, signed_out=self.app.extensions["pages"].test_client())


def furnished(app: Flask, client: FlaskClient) -> Scene:
    """The scene in an empty database."""
    ours, theirs = found(client, "Ours"), found(client, "Theirs")
    routes = routes_of(app)
    people = {role: pages.member(app, ours.workspace_id, role) for role in roles.ROLES}
    pages.member(app, theirs.workspace_id, "agent", "agent@theirs.example")
    for who, email in (("stranger", "stranger@theirs.example"), ("both", "both@ours.example")):
        owner = pages.member(app, theirs.workspace_id, "owner", email)
        people[who] = replace(owner, workspace_id=ours.workspace_id)
    members.add(ours.workspace_id, people["both"].account_id, "agent")
    nouns = {noun for route in routes for noun in route.nouns}
    own, foreign = _known(ours, "ours.example", "owner", nouns), _known(theirs, "theirs.example", "stranger", nouns)
    people["support"] = pages.supporter(app, ours.workspace_id)
    made = Scene(app, routes, own, foreign, people, app.extensions["pages"].test_client(), theirs, Copy(), {})
    return replace(made, forms=_shown_forms(made))


def _known(api: Api, host: str, owner: str, nouns: set[str]) -> dict[str, str]:
    """The identifiers of what the workspace has, by noun."""
    api.restricted_to("contacts")  # a second token
    of_owner = "SELECT max(sessions.id) FROM sessions JOIN accounts ON accounts.id = account_id WHERE email LIKE %s"
    return furnish(api, f"ada@{host}", nouns) | {
        "link": links.invite(api.workspace_id, f"new@{host}", "agent").link_id,
        "session": one(of_owner, f"{owner}@%"),
    }


def _shown_forms(scene: Scene) -> dict[str, Fields]:
    """The fields of the forms that an owner of ours and support are shown, by rule."""
    urls = scene.app.extensions["pages"].url_map.bind("localhost")
    found: dict[str, Fields] = {}
    for who in ("owner", "support"):
        for route in [route for route in scene.routes if not route.writes]:
            path = route.path(scene.people[who].workspace_id, scene.own)
            for form in [form for form in forms_of(scene.ask(who, route).text) if form.method == "post"]:
                rule, _ = urls.match((form.action or path).partition("?")[0], "POST", return_rule=True)
                found.setdefault(rule.rule, form.fields)
    return found


def sound(answer: TestResponse, about: object) -> TestResponse:
    """Asserts what holds for every answer: no 5xx, and nothing from elsewhere, inline or in a frame."""
    assert answer.status_code < 500, f"{about}: {answer.status_code}"
    policy = {part.strip() for part in answer.headers["Content-Security-Policy"].split(";")}
    assert policy == POLICY, about
    assert answer.headers["X-Frame-Options"] == "DENY", about
    assert answer.headers["X-Content-Type-Options"] == "nosniff", about
    assert answer.headers["Referrer-Policy"] == "same-origin", about
    assert answer.headers["Cache-Control"] == "no-store" or "/static/" in str(about), about
    assert len(answer.headers.getlist("X-Request-Id")) == 1, about
    assert "Traceback" not in answer.text, about
    return answer


def stored() -> dict[str, str]:
    """A digest of each table, but for what a request always changes."""
    return {table: digest for table, digest in everything().items() if table not in SEEN}


def plain(answer: TestResponse) -> str:
    """The page without identifiers, its address, and what is new in every answer."""
    new = (
        r'csrf_token" value="[^"]+|once" value="[^"]+|<code>[^<]+</code>|href="[^"]+|value="/[^"]*|[a-z]+_[0-9a-z]{26}'
    )
    return re.sub(new, "", answer.text)
