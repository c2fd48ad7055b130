"""Many requests at a time to a server that does everything."""

from __future__ import annotations

import asyncio
import random
import socket

from app.outbound import Answer
from tests.app.outbound.world import (
    CHUNKED,
    CLOSED,
    OK,
    World,
    no_more_than,
    own_socket,
    sockets,
)

WAYS = ["answers"] * 6 + ["is late", "is split", "chunks", "ends", "is old", "says more", "adds", "hangs up", "resets"]


def test_each_of_many_requests_gets_its_own_answer_whatever_the_server_does(world: World) -> None:
    dice = random.Random(7)
    ways: dict[bytes, str] = {}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await world.receiver.read_request(reader)
            name = world.receiver.requests[-1].partition(b"X-Service-Delivery: ")[2].partition(b"\r\n")[0]
            assert name not in ways
            way = ways[name] = dice.choice(WAYS)
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(name), name)
            match way:
                case "answers":
                    writer.write(answer)
                case "is late":
                    await asyncio.sleep(dice.random() / 100)
                    writer.write(answer)
                case "is split":
                    place = dice.randrange(len(answer))
                    writer.write(answer[:place])
                    await asyncio.sleep(dice.random() / 100)
                    writer.write(answer[place:])
                case "chunks":
                    writer.write(CHUNKED + b"%x\r\n%b\r\n0\r\nX-Late: yes\r\n\r\n" % (len(name), name))
                case "ends":
                    writer.write(answer.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
                    await reader.read()
                    return
                case "is old":
                    writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + name)
                    writer.close()
                    await writer.wait_closed()
                case "says more":
                    writer.write(answer + OK)
                case "adds":
                    writer.write(answer)
                    writer.write(OK[: dice.randrange(1, len(OK))])
                case "hangs up":
                    return
                case "resets":
                    with own_socket(writer) as connection:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    return

    async def story() -> dict[bytes, Answer]:
        answers: dict[bytes, Answer] = {}
        before = sockets()
        async with world.meeting(talk, timeout_seconds=30) as (outbound, port):
            numbers = iter(range(2000))

            async def send() -> None:
                for number in numbers:
                    name = f"dlv_{number:x}"
                    headers = {"X-Service-Delivery": name}
                    answers[name.encode()] = await outbound.post(f"https://127.0.0.1:{port}/", b"x" * 99, headers)

            await asyncio.gather(*[send() for _ in range(24)])
        assert await no_more_than(before)
        return answers

    answers = world.runner.run(story())
    assert len(answers) == 2000
    for name, answer in answers.items():
        # One that never arrived crossed with the end of its connection.
        failed = ways.get(name, "crossed") in {"hangs up", "resets", "crossed"}
        expected = (None, CLOSED, b"") if failed else (200, None, name)
        assert (answer.status, answer.error, answer.body) == expected, (name, ways.get(name))
    assert len(ways) > 1900
