"""The code, expressions and settings that integrators paste into n8n and Zapier, against the running service."""

from __future__ import annotations

import base64
import json
import subprocess
from typing import Any

import pytest

from tests.conformance.callers import call, make_contacts
from tests.conformance.conftest import Site
from tests.conformance.tools import HERE, PATH, environment
from tests.docs.pages import PAGES, blocks
from tests.docs.verifiers import Program, each_language
from tests.stack.receiver import Received, Receiver

SECRET_TO_PASTE = "whsec_PASTE_IT_HERE"
EMAILS = [f"{number}@example.com" for number in range(101)]


@pytest.fixture
def webhook(site: Site, receiver: Receiver) -> tuple[Received, str]:
    """A webhook of the service as it was received, and the secret of its endpoint."""
    endpoint = {"address": receiver.url("/platform"), "events": ["contact.created"]}
    secret = call(site, "POST", "webhooks/endpoints", endpoint)["secret"]
    call(site, "POST", "contacts", {"email": "zo\u00eb@example.com", "first_name": "Zo\u00eb"})
    assert receiver.wait_for(lambda receiver: len(receiver.received) == 1)
    return receiver.received[0], secret


def node(*command: str, given: Any) -> Any:
    done = subprocess.run(
        ["node", *command],
        env=environment({}),
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def workflow(name: str) -> Any:
    return json.loads((PAGES / name).read_text())


def verified_by_n8n(received: Received, secret: str) -> Any:
    (verify,) = [each for each in workflow("n8n-receive.json")["nodes"] if each["name"] == "Verify"]
    code = verify["parameters"]["jsCode"].replace(SECRET_TO_PASTE, secret)
    headers = {name.lower(): value for name, value in received.headers.items()}
    body = base64.b64encode(received.body).decode()
    ((item),) = node(str(HERE / "n8n.mjs"), "verify", given={"code": code, "headers": headers, "body": body})
    return item["json"]


def test_the_code_node_accepts_a_webhook_of_the_service(webhook: tuple[Received, str]) -> None:
    received, secret = webhook

    said = verified_by_n8n(received, secret)

    assert (said["genuine"], said["delivery_id"]) == (True, received.delivery_id)
    assert said["event"] == json.loads(received.body)


def test_the_code_node_refuses_another_secret(webhook: tuple[Received, str]) -> None:
    received, secret = webhook

    said = verified_by_n8n(received, secret[:-1])

    assert (said["genuine"], said["event"]) == (False, None)


def test_the_code_node_refuses_an_altered_body(webhook: tuple[Received, str]) -> None:
    received, secret = webhook
    altered = Received(received.path, received.headers, received.body + b" ", received.at)

    assert verified_by_n8n(altered, secret)["genuine"] is False


def test_the_workflow_pages_through_all_contacts_and_upserts_each(site: Site) -> None:
    make_contacts(site, EMAILS)
    settings = {"bellhop": site.base_url, "tag": "seen-by-n8n"}

    done = node(
        *(str(HERE / "n8n.mjs"), "page"),
        given={"workflow": workflow("n8n-contacts.json"), "settings": settings, "token": site.token},
    )

    assert done["pages"] == 2
    assert {answer["statusCode"] for answer in done["upserted"]} == {200}
    upserted = [answer["body"]["data"] for answer in done["upserted"]]
    assert [contact["email"] for contact in upserted] == EMAILS[::-1]
    assert all(contact["tags"] == ["seen-by-n8n"] for contact in upserted)


def run_in_zapier(code: str, **given: str) -> Any:
    program = (
        "const inputData = JSON.parse(require('node:fs').readFileSync(0)); let output;"
        f"(async () => {{ {code}\nconsole.log(JSON.stringify(output)); }})();"
    )
    return node("-e", program, given=given)


def test_zapiers_code_step_accepts_a_webhook_of_the_service_and_no_other(webhook: tuple[Received, str]) -> None:
    received, secret = webhook
    code, _ = blocks("zapier.md", "js")
    given = {"signature": received.signature, "body": received.body.decode()}

    (right,), (wrong,) = run_in_zapier(code, secret=secret, **given), run_in_zapier(code, secret="whsec_x", **given)

    assert (right["genuine"], wrong["genuine"]) == (True, False)
    assert right["event"]["kind"] == "contact.created"


def test_zapiers_code_step_reads_all_contacts(site: Site) -> None:
    make_contacts(site, EMAILS)
    _, code = blocks("zapier.md", "js")

    found = run_in_zapier(code, bellhop=site.base_url, token=site.token)

    assert [contact["email"] for contact in found] == EMAILS[::-1]


@pytest.mark.parametrize("language", each_language())
def test_every_verifier_accepts_a_webhook_of_the_service(
    language: str, webhook: tuple[Received, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    received, secret = webhook
    program = Program(language, tmp_path_factory.mktemp(language), PATH)

    assert program.says(received.signature, received.body, secret)
    assert not program.says(received.signature, received.body, secret + "x")
