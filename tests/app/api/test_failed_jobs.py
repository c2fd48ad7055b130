"""Failed jobs: replayed once as a new job, or discarded with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from app import database
from tests import failed_jobs
from tests.cast import KEY, Api, in_threads, one, working


@pytest.fixture
def failed(api: Api) -> str:
    """A job that failed by a fault of ours."""
    return failed_jobs.fail(api)


@pytest.fixture
def refused(api: Api) -> str:
    """A job that failed for a reason of its own."""
    return failed_jobs.refuse(api)


def show(api: Api, job_id: str) -> dict[str, Any]:
    return dict(api.get(f"jobs/{job_id}").json["data"])


def detail(answer: Any, status: int = 409) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.get_json(force=True)["detail"])


def test_a_replayed_job_does_what_the_failed_one_was_asked(api: Api, failed: str) -> None:
    answer = api.post(f"jobs/{failed}/replay", headers={"X-Request-Id": "of-the-replay"})

    job = answer.json["data"]
    assert (job["kind"], job["status"], job["replayed_from"]) == ("contacts.upsert", "queued", failed)
    done = api.done(answer)
    assert done["status"] == "succeeded"
    assert api.show_contact(done["resource"]["id"])["email"] == "ada@example.com"
    old = show(api, failed)
    assert (old["status"], old["replayed_as"]) == ("failed", job["id"])
    assert one("SELECT count(*) FROM jobs WHERE payload IS NOT NULL") == 0


def test_a_caller_who_waits_gets_what_the_write_returns(api: Api, failed: str) -> None:
    with working():
        answer = api.post(f"jobs/{failed}/replay", wait=10)

    assert (answer.status_code, answer.json["data"]["email"]) == (201, "ada@example.com")


def test_a_create_that_is_replayed_makes_the_resource_that_was_announced(api: Api) -> None:
    made = api.post("webhooks/endpoints", {"address": "https://shop.example/", "events": ["*"]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.domain.work.quotas.Quota.keep", None)
        failed = api.done(made)
    assert failed["status"] == "failed"

    done = api.done(api.post(f"jobs/{failed['id']}/replay"))

    assert done["resource"] == failed["resource"]
    assert api.get(f"webhooks/endpoints/{done['resource']['id']}").status_code == 200


def test_a_long_write_goes_on_where_it_failed(api: Api, failed: str) -> None:
    database.rows("""UPDATE jobs SET progress = '{"table": "events"}' WHERE id = %s""", (failed,))

    job_id = api.post(f"jobs/{failed}/replay").json["data"]["id"]

    assert one("SELECT progress->>'table' FROM jobs WHERE id = %s", job_id) == "events"


def test_a_job_is_replayed_once(api: Api, failed: str) -> None:
    job_id = api.post(f"jobs/{failed}/replay").json["data"]["id"]

    assert detail(api.post(f"jobs/{failed}/replay")) == f"This job was replayed as {job_id}."
    assert detail(api.post(f"jobs/{failed}/discard", {"reason": "x"})) == f"This job was replayed as {job_id}."
    assert one("SELECT count(*) FROM jobs") == 2


def test_of_simultaneous_replays_one_makes_a_job(api: Api, failed: str) -> None:
    answers = in_threads([lambda: api.post(f"jobs/{failed}/replay").status_code] * 8)

    assert sorted(answers) == [202, *[409] * 7]
    assert one("SELECT count(*) FROM jobs") == 2


def test_the_same_key_replays_the_same_job(api: Api, failed: str) -> None:
    first, second = (api.post(f"jobs/{failed}/replay", key=KEY) for _ in range(2))

    assert second.headers["Idempotent-Replayed"] == "true"
    assert first.json["data"]["id"] == second.json["data"]["id"]


def test_a_replay_that_is_refused_does_not_use_up_its_key(api: Api, refused: str) -> None:
    assert api.post(f"jobs/{refused}/replay", key=KEY).status_code == 409

    assert one("SELECT count(*) FROM idempotency_keys") == 0


def test_a_replay_that_fails_by_our_fault_again_can_be_replayed_itself(api: Api, failed: str) -> None:
    with failed_jobs.broken():
        again = api.done(api.post(f"jobs/{failed}/replay"))
    assert (again["status"], again["replayed_from"]) == ("failed", failed)

    assert api.done(api.post(f"jobs/{again['id']}/replay"))["status"] == "succeeded"


def test_a_job_that_failed_for_its_own_reason_is_not_replayed(api: Api, refused: str) -> None:
    assert "is not kept" in detail(api.post(f"jobs/{refused}/replay"))


def test_a_job_that_has_not_failed_is_neither_replayed_nor_discarded(api: Api) -> None:
    done = api.done(api.post("contacts", {"email": "ada@example.com"}))["id"]
    queued = api.post("contacts", {"email": "eve@example.com"}).json["data"]["id"]

    assert detail(api.post(f"jobs/{done}/replay")).startswith("This job is succeeded.")
    assert detail(api.post(f"jobs/{done}/discard", {"reason": "x"})).startswith("This job is succeeded.")
    assert detail(api.post(f"jobs/{queued}/replay")).startswith("This job is queued.")
    later = api.done(api.post(f"jobs/{queued}/discard", {"reason": "x"}))
    assert (later["status"], later["problem"]["status"]) == ("failed", 409)


def test_an_import_is_not_replayed(api: Api, failed: str) -> None:
    database.rows("UPDATE jobs SET kind = 'contacts.import' WHERE id = %s", (failed,))

    assert "lines of an import" in detail(api.post(f"jobs/{failed}/replay"))


def test_a_discarded_job_says_why_and_forgets_what_it_was_asked(api: Api, failed: str) -> None:
    job = api.done(api.post(f"jobs/{failed}/discard", {"reason": "The customer did it by hand."}))

    assert (job["kind"], job["status"]) == ("jobs.discard", "succeeded")
    assert job["resource"] == {
        "type": "job",
        "id": failed,
        "url": f"https://bellhop.test{api.path('jobs/' + failed)}",
    }
    shown = show(api, failed)
    assert (shown["status"], shown["discard_reason"]) == ("failed", "The customer did it by hand.")
    assert shown["discarded_at"] is not None
    assert one("SELECT payload FROM jobs WHERE id = %s", failed) is None
    assert detail(api.post(f"jobs/{failed}/replay")) == "This job was discarded."


def test_a_second_discard_changes_nothing(api: Api, failed: str) -> None:
    api.done(api.post(f"jobs/{failed}/discard", {"reason": "First."}))
    before = show(api, failed)

    assert api.done(api.post(f"jobs/{failed}/discard", {"reason": "Second."}))["status"] == "succeeded"

    assert show(api, failed) == before


def test_a_job_that_was_refused_can_be_discarded(api: Api, refused: str) -> None:
    with working():
        answer = api.post(f"jobs/{refused}/discard", {"reason": "Known."}, wait=10)

    assert (answer.status_code, answer.json["data"]["discard_reason"]) == (200, "Known.")


@pytest.mark.parametrize("body", [{}, {"reason": ""}, {"reason": "x" * 501}, {"reason": None}, {"reason": "x", "y": 1}])
def test_a_discard_needs_a_reason(api: Api, failed: str, body: dict[str, Any]) -> None:
    assert api.post(f"jobs/{failed}/discard", body).status_code == 422


def test_the_restriction_is_that_of_the_jobs_kind(api: Api, failed: str) -> None:
    for verb, body in (("replay", None), ("discard", {"reason": "x"})):
        assert api.restricted_to("webhooks", "billing").post(f"jobs/{failed}/{verb}", body).status_code == 403
    answer = api.restricted_to("contacts").post(f"jobs/{failed}/discard", {"reason": "x"})
    assert answer.status_code == 202
    assert api.restricted_to("contacts").get(f"jobs/{answer.json['data']['id']}").status_code == 200


def test_the_audit_log_says_who_replayed_or_discarded(api: Api, failed: str, refused: str) -> None:
    new = api.post(f"jobs/{failed}/replay").json["data"]["id"]
    api.done(api.post(f"jobs/{refused}/discard", {"reason": "Known."}))

    discarded, replayed = api.get("webhooks/audit-log").json["data"]

    assert (replayed["action"], replayed["target"]) == ("jobs.replay", {"type": "job", "id": failed})
    assert replayed["detail"] == {"kind": "contacts.upsert", "replayed_as": new}
    assert (discarded["action"], discarded["target"]) == ("jobs.discard", {"type": "job", "id": refused})
    assert discarded["detail"] == {"reason": "Known."}
    assert {each["actor"]["type"] for each in (discarded, replayed)} == {"token"}
