"""Servers of our own that are called without TLS."""

from __future__ import annotations

import pytest

from tests.app.outbound.world import AMPLE, OK, Names, World


@pytest.mark.parametrize("host", ["127.0.0.1", "bot-api"])
def test_a_server_in_an_allowed_network_is_called_without_tls(world: World, host: str) -> None:
    names = Names(**{"bot-api": [["127.0.0.1"]]})
    address = f"http://{host}:{{port}}/bot1/getMe"
    answer = world.deliver(world.says(OK), plain=True, plain_hosts=[host], address=address, resolver=names, times=2)

    assert (answer.status, answer.body) == (200, b"ok")
    assert world.receiver.requests[0].startswith(b"POST /bot1/getMe HTTP/1.1\r\n")
    assert (len(world.receiver.requests), world.receiver.accepted) == (2, 1)


@pytest.mark.parametrize("leads_to", ["149.154.167.220", "10.0.0.5"])
def test_a_name_that_leads_elsewhere_is_not_dialled(world: World, leads_to: str) -> None:
    names = Names(**{"bot-api": [[leads_to]]})
    address = "http://bot-api:{port}/bot1/getMe"
    answer = world.deliver(world.says(OK), plain=True, plain_hosts=["bot-api"], address=address, resolver=names)

    assert (answer.error_code, answer.error, answer.may_have_arrived) == (
        "private_address",
        f"The address resolves to {leads_to}, which is not in WEBHOOK_ALLOWED_NETWORKS: use https:// for it.",
        False,
    )
    assert world.receiver.accepted == 0


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:{port}1/", "http://127.0.0.1:{port}@127.0.0.1/", "http://[::1]/"]
)
def test_nothing_else_is_called_without_tls(world: World, address: str) -> None:
    answer = world.deliver(world.says(OK), plain=True, plain_hosts=["127.0.0.1"], address=address)

    assert answer.error == "The address must begin with https://."
    assert world.receiver.accepted == 0


def test_a_webhook_gets_no_connection_without_tls(world: World) -> None:
    async def story() -> tuple[str | None, int]:
        async with world.meeting(world.says(OK), plain=True, plain_hosts=["127.0.0.1"], timeout_seconds=AMPLE) as (
            outbound,
            port,
        ):
            await outbound.post(f"http://127.0.0.1:{port}/", b"{}", {})
            answer = await outbound.post(f"https://127.0.0.1:{port}/", b"{}", {})
            return answer.error_code, len(world.receiver.requests)

    # The receiver waits for the end of what it takes for a request.
    assert world.runner.run(story()) == ("timeout", 1)
