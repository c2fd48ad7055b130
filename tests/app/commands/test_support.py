from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from app.domain.people import accounts, links, sessions, support_accounts
from tests.cast import Api, everything_stored, one
from tests.people import PASSWORD, make_account, make_member, signed_in

Run = Callable[..., Result]
GRACE = "grace@support.example"


@pytest.fixture
def run(empty: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(commands.main, arguments, input=stdin, prog_name="python -m app")

    return run


def test_a_support_account_is_made_without_a_workspace(run: Run) -> None:
    done = run("support", "create", GRACE, stdin=f"{PASSWORD}\n")

    assert json.loads(done.output) == {"id": one("SELECT id FROM accounts"), "email": GRACE, "support": True}
    assert accounts.verify(GRACE, PASSWORD) is not None
    assert one("SELECT count(*) FROM members") == 0


def test_support_accounts_are_listed_with_where_they_were_members(run: Run, api: Api) -> None:
    run("support", "create", GRACE, stdin=f"{PASSWORD}\n")
    run("member", "create", api.workspace_id, "old@support.example", "--role", "owner", "--support", stdin=PASSWORD)
    make_member(api.workspace_id)
    run("support", "disable", GRACE)

    first, second = json.loads(run("support", "list").output)["accounts"]

    assert (first["email"], first["member_of"], first["disabled_at"] is None) == (GRACE, [], False)
    assert (second["email"], second["member_of"]) == ("old@support.example", [api.workspace_id])
    assert (second["disabled_at"], second["seen_at"]) == (None, None)


def test_a_reset_is_a_link_that_sets_the_password(run: Run) -> None:
    make_account(GRACE, is_support=True)

    token = run("support", "reset", "Grace@support.example").output.strip().rpartition("/")[2]

    assert token not in everything_stored()
    links.use(token, "another password")
    assert accounts.verify(GRACE, "another password") is not None


def test_an_account_is_disabled_enabled_and_removed(run: Run) -> None:
    session = signed_in(make_account(GRACE, is_support=True))

    assert json.loads(run("support", "disable", GRACE).output)["disabled"] is True
    assert sessions.find(session) is None
    refused = run("member", "reset", GRACE)
    assert (refused.exit_code, refused.output.startswith(f"bellhop: {GRACE} is disabled.")) == (1, True)
    links.use(run("support", "enable", GRACE).output.strip().rpartition("/")[2], "another password")
    assert json.loads(run("support", "remove", GRACE).output)["support"] is False
    assert json.loads(run("support", "list").output) == {"accounts": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", GRACE), f"{GRACE} is a support account already."),
        (("create", "ada@example.com"), "ada@example.com is a member of a workspace, and support accounts belong"),
        (("create", "nobody"), "email: This is not an e-mail address"),
        (("reset", "ada@example.com"), "There is no support account ada@example.com."),
        (("disable", "nobody@example.com"), "There is no support account nobody@example.com."),
        (("enable", GRACE), f"{GRACE} is not disabled."),
    ],
)
def test_what_cannot_be_done_is_one_line(run: Run, api: Api, arguments: tuple[str, ...], said: str) -> None:
    make_member(api.workspace_id)
    make_account(GRACE, is_support=True)

    done = run("support", *arguments, stdin=f"{PASSWORD}\n")

    assert (done.exit_code, len(done.output.splitlines())) == (1, 1)
    assert done.output.startswith(f"bellhop: {said}")


def test_the_log_of_all_workspaces_is_listed_in_sentences(run: Run, api: Api, others: Api) -> None:
    grace, linus = (make_account(f"{name}@support.example", is_support=True) for name in ("grace", "linus"))
    visit = support_accounts.begin_visit(grace.id, api.workspace_id, "They asked us.", "T-1")
    support_accounts.begin_visit(linus.id, others.workspace_id, "They called.", "T-2")
    run("support", "disable", "linus@support.example")

    def listed(*options: str) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(run("audit", "list", *options).output)["entries"]
        return found

    newest, ended, second, first = listed()
    assert (newest["actor_type"], newest["workspace"]) == ("command", None)
    assert newest["did"] == f"disabled the account {linus.id}"
    assert (ended["actor"], second["actor"]) == ("linus@support.example", "linus@support.example")
    assert first | {"created_at": None} == {
        "id": one("SELECT min(id) FROM audit_entries"),
        "created_at": None,
        "workspace": api.workspace_id,
        "actor_type": "support",
        "actor": GRACE,
        "did": f"began the visit {visit.id}",
        "action": "visits.begin",
        "ticket": "T-1",
        "reason": "They asked us.",
        "detail": {},
    }
    assert listed("--person", "GRACE@support.example") == [first]
    assert listed("--workspace", others.workspace_id) == [ended, second]
    assert listed("--support", "--limit", "1", "--after", str(second["id"])) == [first]
    assert listed("--until", str(first["created_at"])) == []
    assert listed("--since", "2020-01-01", "--person", "nobody@example.com") == []
    assert run("audit", "list", "--since", "yesterday").exit_code == 2
