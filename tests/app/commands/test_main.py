from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from click.testing import CliRunner, Result

from app import bells, database, logs, process_registry
from app.commands import main as commands
from app.commands import members as member_commands
from app.config import settings
from app.database import rows
from app.domain.billing.months import Month
from app.domain.people import tokens
from app.domain.webhooks import endpoints
from app.lib import clock, vault, versions
from app.outbound import own_address
from tests.cast import Api, accept, all_of, apply, make_endpoint, one
from tests.conftest import Keys, Servers

Run = Callable[..., Result]


@pytest.fixture
def run(empty: None, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `python -m app` with these arguments, in this process."""
    monkeypatch.setattr(logs, "configure", lambda *_, **__: None)

    def run(*arguments: str, stdin: str = "") -> Result:
        return CliRunner().invoke(commands.main, arguments, input=stdin, prog_name="python -m app")

    return run


def test_a_workspace_is_printed_with_its_token(run: Run) -> None:
    done = run("workspace", "create", "Shop")

    assert done.exit_code == 0, done.output
    printed = json.loads(done.output)
    assert printed == {"workspace": {"id": one("SELECT id FROM workspaces"), "name": "Shop"}, "token": printed["token"]}
    assert tokens.authenticate(printed["token"]).restrictions is None


def test_a_workspace_gets_another_plan_from_the_next_month_on(one_day: None, run: Run, api: Api) -> None:
    done = run("workspace", "plan", api.workspace_id, "growth")

    assert done.exit_code == 0, done.output
    since = Month.of(database.now()).next.starts_at
    assert json.loads(done.output) == {
        "workspace": api.workspace_id,
        "plan": "growth",
        "since": f"{since:%Y-%m-%d}T00:00:00.000Z",
    }
    billing = api.get("billing").json["data"]
    assert (billing["plan"]["id"], billing["next_plan"]["id"]) == ("free", "growth")


def test_a_workspace_gets_another_plan_at_once(one_day: None, run: Run, api: Api) -> None:
    done = run("workspace", "plan", api.workspace_id, "growth", "--now")

    assert json.loads(done.output)["since"] == f"{Month.of(database.now()).first}T00:00:00.000Z"
    billing = api.get("billing").json["data"]
    assert (billing["plan"]["id"], billing["next_plan"]) == ("growth", None)


def test_a_token_is_printed_with_its_identifier(run: Run, api: Api) -> None:
    done = run("token", "create", api.workspace_id, "--restrict", "contacts", "--restrict", "inbox", "--name", "Shop")

    printed = json.loads(done.output)
    assert sorted(printed) == ["id", "token"]
    caller = tokens.authenticate(printed["token"])
    assert (caller.token_id, caller.token_name, caller.restrictions) == (printed["id"], "Shop", ("contacts", "inbox"))
    assert caller.expires_at is None


@pytest.mark.parametrize(
    "arguments",
    [
        ["--restrict", "contacts", "inbox", "--expires-in", "60"],
        ["--expires-in", "60", "--restrict", "inbox", "contacts"],
    ],
)
def test_restrictions_may_follow_each_other(run: Run, api: Api, arguments: list[str]) -> None:
    printed = json.loads(run("token", "create", api.workspace_id, *arguments).output)

    assert tokens.authenticate(printed["token"]).restrictions == ("contacts", "inbox")


@pytest.mark.parametrize("arguments", [["inbox"], ["--restrict", "inbox", "everything"], ["--restrict", "everything"]])
def test_what_is_no_restriction_makes_no_token(run: Run, api: Api, arguments: list[str]) -> None:
    assert run("token", "create", api.workspace_id, *arguments).exit_code == 2

    assert one("SELECT count(*) FROM tokens") == 1


def test_a_token_may_expire(run: Run, api: Api) -> None:
    printed = json.loads(run("token", "create", api.workspace_id, "--expires-in", "60").output)

    assert api.with_token(printed["token"]).get("/api/v1/auth/me").status_code == 200
    with clock.moved_by(seconds=61):
        assert api.with_token(printed["token"]).get("/api/v1/auth/me").status_code == 401


def test_a_token_is_revoked(run: Run, api: Api) -> None:
    token_id = one("SELECT id FROM tokens")

    done = run("token", "revoke", token_id)

    assert json.loads(done.output) == {"id": token_id, "revoked": True}
    assert one("SELECT revoked_at IS NOT NULL FROM tokens") is True


def test_a_token_is_revoked_once(run: Run, api: Api) -> None:
    token_id = one("SELECT id FROM tokens")
    run("token", "revoke", token_id)
    revoked_at = one("SELECT revoked_at FROM tokens")

    assert run("token", "revoke", token_id).exit_code == 0

    assert one("SELECT revoked_at FROM tokens") == revoked_at


@pytest.mark.parametrize("seconds", ["0", "-1", "1.5", "99999999999999"])
def test_a_life_of_no_length_makes_no_token(run: Run, api: Api, seconds: str) -> None:
    assert run("token", "create", api.workspace_id, "--expires-in", seconds).exit_code == 2

    assert one("SELECT count(*) FROM tokens") == 1


@pytest.mark.parametrize("token_id", ["tok_01jd0000000000000000000000", "bhp_secret"])
def test_a_token_that_is_not_there_cannot_be_revoked(run: Run, api: Api, token_id: str) -> None:
    done = run("token", "revoke", token_id)

    assert (done.exit_code, done.output) == (1, f"bellhop: There is no token {token_id}.\n")
    assert one("SELECT revoked_at FROM tokens") is None


def test_the_tokens_of_a_workspace_are_listed_without_what_they_are(run: Run, api: Api, others: Api) -> None:
    run("token", "create", api.workspace_id, "--restrict", "inbox", "--name", "Shop", "--expires-in", "60")
    first, second = all_of("SELECT id FROM tokens WHERE workspace_id = %s ORDER BY id", api.workspace_id)
    run("token", "revoke", first)

    done = run("token", "list", api.workspace_id)

    listed = json.loads(done.output)["tokens"]
    assert [token["id"] for token in listed] == [first, second]
    assert listed[0]["revoked_at"] is not None
    assert listed[1]["revoked_at"] is None
    assert (listed[1]["name"], listed[1]["restrictions"]) == ("Shop", ["inbox"])
    assert listed[1]["expires_at"] > listed[1]["created_at"]
    assert all("digest" not in token for token in listed)
    assert api.token not in done.output


def test_an_endpoint_is_printed_with_its_secret(run: Run, api: Api) -> None:
    done = run(
        "endpoint", "create", api.workspace_id, "https://shop.example/", "--events", "contact.created, tag.added"
    )

    printed = json.loads(done.output)
    assert sorted(printed) == ["endpoint", "secret"]
    assert printed["endpoint"]["events"] == ["contact.created", "tag.added"]
    assert printed["endpoint"]["state"] == "active"
    sealed = bytes(one("SELECT secret FROM endpoints"))
    assert vault.decrypt(settings().secret_keys, sealed) == printed["secret"]
    assert api.get(f"webhooks/endpoints/{printed['endpoint']['id']}").json["data"] == printed["endpoint"]


def test_an_endpoint_is_made_with_what_it_asks_for(run: Run, api: Api) -> None:
    asked = ("--events", "*", "--max-per-second", "20", "--ordered")

    done = run("endpoint", "create", api.workspace_id, "https://shop.example/", *asked)

    made = json.loads(done.output)["endpoint"]
    assert (made["max_per_second"], made["ordered"]) == (20, True)


def test_an_endpoint_beyond_the_limit_of_a_workspace_is_one_line(
    run: Run, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints.QUOTA, "most", 1)
    make_endpoint(api.workspace_id, "https://shop.example/")

    done = run("endpoint", "create", api.workspace_id, "https://shop.example/", "--events", "*")

    assert done.exit_code == 1
    assert done.output == "bellhop: A workspace has at most 1 endpoints. Delete one first.\n"
    assert one("SELECT count(*) FROM endpoints") == 1


UNKNOWN = "ws_01kaj5bd40e6rr3f5y2kq0w9xz"


@pytest.mark.parametrize(
    "arguments",
    [
        ("workspace", "plan", UNKNOWN, "growth"),
        ("token", "create", UNKNOWN),
        ("token", "list", UNKNOWN),
        ("member", "create", UNKNOWN, "ada@example.com", "--role", "agent"),
        ("endpoint", "create", UNKNOWN, "https://shop.example/", "--events", "*"),
    ],
    ids=" ".join,
)
def test_an_unknown_workspace_is_one_line(run: Run, arguments: tuple[str, ...]) -> None:
    done = run(*arguments, stdin="correct horse\n")

    assert done.exit_code == 1
    assert done.output.splitlines() == [f"bellhop: There is no workspace {UNKNOWN}."]


@pytest.mark.parametrize("name", ["", "  ", "x" * 256, "two\nlines"])
def test_a_name_that_is_none_is_refused(run: Run, api: Api, name: str) -> None:
    for arguments in (["workspace", "create", name], ["token", "create", api.workspace_id, "--name", name]):
        assert run(*arguments).exit_code == 2

    assert (one("SELECT count(*) FROM workspaces"), one("SELECT count(*) FROM tokens")) == (1, 1)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (("workspace", "create", "\udcff"), ""),
        (("token", "list", "\udcff"), ""),
        (("member", "create", "{workspace}", "ada@example.com", "--role", "agent"), "\udcff correct horse\n"),
    ],
    ids=["name", "workspace", "password"],
)
def test_bytes_that_are_no_text_are_one_line(
    run: Run, api: Api, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], stdin: str
) -> None:
    monkeypatch.setattr(member_commands, "password", lambda: stdin)

    done = run(*(argument.format(workspace=api.workspace_id) for argument in arguments))

    assert (done.exit_code, done.output) == (1, "bellhop: the input is not UTF-8 text\n")


@pytest.fixture
def without_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("DATABASE_URL")
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [((), 2), (("--help",), 0), (("token", "create", "--help"), 0), (("token", "create"), 2), (("token", "lend"), 2)],
)
def test_help_and_slips_need_no_settings(
    run: Run, without_settings: None, arguments: tuple[str, ...], code: int
) -> None:
    done = run(*arguments)

    assert done.exit_code == code
    assert "Usage: python -m app" in done.output


@pytest.fixture
def bare_database(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DATABASE_URL", servers.new_database("bare"))
    settings.cache_clear()
    yield
    monkeypatch.undo()
    settings.cache_clear()
    database.connect()


def test_a_database_without_tables_is_one_line(run: Run, bare_database: None) -> None:
    done = run("workspace", "create", "Shop")

    assert done.exit_code == 1
    assert done.output == (
        'bellhop: the database refuses: relation "workspaces" does not exist; see python -m app check\n'
    )


@pytest.mark.parametrize(
    ("address", "events", "named"),
    [
        ("http://shop.example/", "*", "address"),
        ("https://10.0.0.1/", "*", "address"),
        ("https://shop.example/", "contact.exploded", "contact.exploded"),
        ("https://shop.example/", "", "''"),
    ],
)
def test_a_wrong_endpoint_is_one_line_that_names_what_is_wrong(
    run: Run, api: Api, address: str, events: str, named: str
) -> None:
    done = run("endpoint", "create", api.workspace_id, address, "--events", events)

    assert done.exit_code == 1
    assert len(done.output.splitlines()) == 1
    assert named in done.output
    assert all_of("SELECT id FROM jobs") == []


def test_a_short_password_is_refused(run: Run, api: Api) -> None:
    done = run("member", "create", api.workspace_id, "ada@example.com", "--role", "owner", stdin="short\n")

    assert done.exit_code == 1
    assert "password" in done.output
    assert one("SELECT count(*) FROM members") == 0


def test_a_second_member_of_an_address_is_refused(run: Run, api: Api) -> None:
    for address in ("ada@example.com", "ADA@example.com"):
        done = run("member", "create", api.workspace_id, address, "--role", "agent", stdin="correct horse\n")

    assert done.exit_code == 1
    assert len(done.output.splitlines()) == 1
    assert one("SELECT count(*) FROM members") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("workspace", "plan", UNKNOWN, "golden"),
        ("token", "create", UNKNOWN, "--restrict", "everything"),
        ("member", "create", UNKNOWN, "a@b.c", "--role", "god"),
    ],
    ids=" ".join,
)
def test_a_choice_that_is_none_is_refused(run: Run, arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


def test_every_stored_secret_gets_under_the_newest_key(run: Run, api: Api, keys: Keys) -> None:
    keys("old-key-" * 4)
    _, secret = make_endpoint(api.workspace_id, "https://old.example/")
    keys("new-key-" * 4, "old-key-" * 4)
    make_endpoint(api.workspace_id, "https://new.example/")

    done = run("secrets", "reencrypt")

    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {"reencrypted": 1, "already": 1, "unreadable": []}
    assert json.loads(run("secrets", "reencrypt").output) == {"reencrypted": 0, "already": 2, "unreadable": []}
    keys("new-key-" * 4)
    sealed = bytes(one("SELECT secret FROM endpoints WHERE address = 'https://old.example/'"))
    assert vault.decrypt(settings().secret_keys, sealed) == secret


def test_secrets_that_no_key_reads_are_named_and_end_with_one_line(run: Run, api: Api, keys: Keys) -> None:
    lost, secret = make_endpoint(api.workspace_id, "https://lost.example/")
    keys("new-key-" * 4)
    make_endpoint(api.workspace_id, "https://new.example/")

    done = run("secrets", "reencrypt")

    assert done.exit_code == 1
    printed, said = done.output.splitlines()
    assert json.loads(printed) == {"reencrypted": 0, "already": 1, "unreadable": [lost]}
    assert said.startswith("bellhop: ")
    assert "SECRET_KEY" in said
    assert secret not in done.output


def test_check_says_that_stored_secrets_are_readable(run: Run, api: Api) -> None:
    make_endpoint(api.workspace_id, "https://shop.example/")

    assert "ok     secrets: readable" in run("check").output.splitlines()


def test_check_says_what_to_do_about_a_secret_that_is_not_readable(run: Run, api: Api, keys: Keys) -> None:
    endpoint_id, _ = make_endpoint(api.workspace_id, "https://shop.example/")
    keys("new-key-" * 4)

    done = run("check")

    assert done.exit_code == 1
    [line] = [line for line in done.output.splitlines() if "secrets" in line]
    assert line.startswith(f"WRONG  secrets: that of {endpoint_id} cannot be read")
    assert "SECRET_KEY" in line


def test_check_names_the_kinds_of_jobs_that_no_worker_knows(run: Run, api: Api) -> None:
    accept(api.workspace_id, "contacts.upsert", {"external_id": "ada"})
    rows("UPDATE jobs SET kind = 'contacts.teleport'")
    apply(api.workspace_id)

    done = run("check")

    assert done.exit_code == 1
    said = "no worker knows contacts.teleport (1): run the version of `writes` that does"
    assert f"WRONG  jobs: {said}" in done.output.splitlines()


def test_check_of_a_database_without_tables_is_a_line_for_each_part_too(run: Run, bare_database: None) -> None:
    done = run("check")

    assert [line.partition(":")[0] for line in done.output.splitlines()[7:9]] == ["WRONG  migrations", "WRONG  secrets"]


def test_the_version_is_told_without_settings(run: Run, without_settings: None) -> None:
    assert run("--version").output == f"Bellhop {versions.running()}\n"


def test_check_says_a_line_for_each_part_and_fails_while_no_process_runs(run: Run) -> None:
    done = run("check")

    lines = done.output.splitlines()
    assert done.exit_code == 1
    assert [line.split(":")[0] for line in lines[:18]] == [
        "ok     settings",
        "ok     version",
        "ok     database",
        "ok     replica",
        "ok     redis",
        "ok     eviction",
        "ok     rabbitmq",
        "ok     migrations",
        "ok     secrets",
        "ok     jobs",
        "ok     files",
        "ok     sharing",
        "ok     proxy",
        "WRONG  address",
        "ok     forwarded",
        "ok     traces",
        "ok     mail",
        "ok     names",
    ]
    assert [line.split(":")[0] for line in lines[18:]] == [f"WRONG  {name}" for name in process_registry.TYPES]


def test_check_tells_in_one_line_that_rabbitmq_is_away(empty: None) -> None:
    environment = os.environ | {"BROKER_URL": "amqp://guest:guest@127.0.0.1:1//"}
    done = subprocess.run([sys.executable, "-m", "app", "check"], env=environment, capture_output=True, text=True)

    assert "\nWRONG  rabbitmq: RabbitMQ does not answer: AMQPConnectionError" in done.stdout
    assert "ok     redis" in done.stdout
    assert done.stderr == ""


def test_check_is_content_when_everything_is_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_address, "ask", lambda **_: None)
    for name in process_registry.TYPES:
        bells.flags().set(f"process:{name}:host:1", b"1")

    done = run("check")

    assert done.exit_code == 0, done.output
    assert "1 running" in done.output
