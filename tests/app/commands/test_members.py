from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from app import logs
from app.commands import main as commands
from app.domain.people import accounts, links, members, sessions
from app.errors import NotFound
from tests.cast import Api, everything_stored, one
from tests.people import PASSWORD, make_account, make_member, signed_in

Run = Callable[..., Result]


@pytest.fixture
def run(empty: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app member` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(commands.main, ("member", *arguments), input=stdin, prog_name="python -m app")

    return run


def test_a_member_is_made_with_the_password_of_standard_input(run: Run, api: Api) -> None:
    done = run("create", api.workspace_id, "ada@example.com", "--role", "owner", stdin="correct horse\n")

    assert json.loads(done.output) == {
        "id": one("SELECT id FROM members"),
        "email": "ada@example.com",
        "role": "owner",
        "support": False,
    }
    assert accounts.verify("ada@example.com", "correct horse") is not None


def test_staff_are_made_with_an_option(run: Run, api: Api) -> None:
    done = run("create", api.workspace_id, "grace@example.com", "--role", "agent", "--support", stdin=f"{PASSWORD}\n")

    assert json.loads(done.output)["support"] is True
    assert one("SELECT is_support FROM accounts") is True


def test_somebody_who_has_an_account_gets_the_password(run: Run, api: Api, others: Api) -> None:
    account, _ = make_member(others.workspace_id)
    session = signed_in(account)

    done = run("create", api.workspace_id, "ada@example.com", "--role", "agent", stdin="another password\n")

    assert done.exit_code == 0, done.output
    assert accounts.verify("ada@example.com", "another password") is not None
    assert sessions.find(session) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "{workspace}", "ada@example.com", "--role", "owner"), "ada@example.com is a member of this"),
        (("create", "{workspace}", "nobody", "--role", "owner"), "email: This is not an e-mail address"),
        (("invite", "{workspace}", "ada@example.com", "--role", "agent"), "ada@example.com is a member of this"),
        (("reset", "nobody@example.com"), "There is no account nobody@example.com."),
        (("remove", "{workspace}", "mem_01kaj5bd40e6rr3f5y2kq0w9xz"), "There is no such member in this workspace."),
    ],
)
def test_what_cannot_be_done_is_one_line(run: Run, api: Api, arguments: tuple[str, ...], said: str) -> None:
    make_member(api.workspace_id)

    done = run(*(argument.format(workspace=api.workspace_id) for argument in arguments), stdin=f"{PASSWORD}\n")

    assert done.exit_code == 1
    assert done.output.startswith(f"bellhop: {said}")
    assert len(done.output.splitlines()) == 1


def test_a_password_that_is_too_short_is_one_line(run: Run, api: Api) -> None:
    done = run("create", api.workspace_id, "ada@example.com", "--role", "owner", stdin="short\n")

    assert (done.exit_code, done.output) == (1, "bellhop: password: A password has 10 to 1,000 characters.\n")
    assert one("SELECT count(*) FROM accounts") == 0


def test_an_invitation_is_a_link_that_works_once(run: Run, api: Api) -> None:
    link = run("invite", api.workspace_id, "ada@example.com", "--role", "admin").output.strip()

    assert link.startswith("https://bellhop.test/links/")
    token = link.rpartition("/")[2]
    assert token not in everything_stored()
    links.use(token, PASSWORD)
    assert [person.role for person in members.of_workspace(api.workspace_id)] == ["admin"]
    with pytest.raises(NotFound):
        links.use(token, PASSWORD)


def test_a_reset_is_a_link_that_sets_the_password(run: Run) -> None:
    make_account()

    link = run("reset", "ADA@example.com").output.strip()

    links.use(link.rpartition("/")[2], "another password")
    assert accounts.verify("ada@example.com", "another password") is not None


def test_members_are_listed(run: Run, api: Api, others: Api) -> None:
    _, member = make_member(api.workspace_id)
    make_member(others.workspace_id, "bob@example.com")

    [listed] = json.loads(run("list", api.workspace_id).output)["members"]

    assert (listed["id"], listed["email"], listed["role"]) == (member.id, "ada@example.com", "owner")
    assert (listed["support"], listed["has_password"]) == (False, True)
    assert "$argon2" not in str(listed)


def test_a_member_is_removed(run: Run, api: Api) -> None:
    make_member(api.workspace_id)
    _, member = make_member(api.workspace_id, "bob@example.com", "agent")

    done = run("remove", api.workspace_id, member.id)

    assert json.loads(done.output) == {"id": member.id, "removed": True}
    assert [person.email for person in members.of_workspace(api.workspace_id)] == ["ada@example.com"]


def test_the_last_owner_is_not_removed(run: Run, api: Api) -> None:
    _, member = make_member(api.workspace_id)

    done = run("remove", api.workspace_id, member.id)

    assert (done.exit_code, done.output) == (
        1,
        "bellhop: A workspace needs an owner. Make somebody else an owner first.\n",
    )
