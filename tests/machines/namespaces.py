"""Machines that are network namespaces, and a network between them that can drop what two of them send each other."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stack.errors import StackError

NETWORK = "10.26.0.0/16"
# The address of this process, which plays everything outside: clients and receivers.
OUTSIDE = "10.26.0.1"
NEEDS = "network namespaces are made here, which takes root (CAP_SYS_ADMIN and CAP_NET_ADMIN): run make test-machines"

_FLAGS = {"net": 0x40000000, "uts": 0x04000000}
_libc = ctypes.CDLL(None, use_errno=True)


class Machine:
    """A network namespace with a host name and an address, behind a router that is this process's namespace.

    It lives until this process ends.
    """

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address = name, f"10.26.{number}.2"
        router = f"10.26.{number}.1"
        with _back_afterwards():
            _enter("unshare", sum(_FLAGS.values()))
            socket.sethostname(name)
            self._namespaces = _current()
        where = f"/proc/{os.getpid()}/fd/{self._namespaces['net']}"
        _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", where)
        _ip("address", "add", f"{router}/24", "dev", name)
        _ip("link", "set", name, "up")
        with self.inside():
            _ip("link", "set", "lo", "up")
            _ip("address", "add", f"{self.address}/24", "dev", "eth0")
            _ip("link", "set", "eth0", "up")
            _ip("route", "add", "default", "via", router)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In the block, what this thread starts is on the machine: processes, threads and connections."""
        with _back_afterwards():
            _set(self._namespaces)
            yield


def make_router() -> None:
    """Makes this process's namespace, which must be a new one, the router. Raises StackError if it is not or cannot."""
    if os.geteuid() != 0 or [name for _, name in socket.if_nameindex()] != ["lo"]:
        raise StackError(NEEDS)
    _ip("link", "set", "lo", "up")
    _ip("address", "add", f"{OUTSIDE}/32", "dev", "lo")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


@contextmanager
def cut(one: Machine, *others: Machine) -> Iterator[None]:
    """In the block, what the machine and the others send each other vanishes without an error."""
    ways = [(one, other) for other in others] + [(other, one) for other in others]
    rules = [("from", sender.address, "to", receiver.address) for sender, receiver in ways]
    for rule in rules:
        _ip("rule", "add", "preference", "10", *rule, "blackhole")
    try:
        yield
    finally:
        for rule in rules:
            _ip("rule", "delete", "preference", "10", *rule, "blackhole")


@contextmanager
def _back_afterwards() -> Iterator[None]:
    before = _current()
    try:
        yield
    finally:
        _set(before)
        for descriptor in before.values():
            os.close(descriptor)


def _current() -> dict[str, int]:
    """Descriptors of this thread's namespaces, by kind."""
    return {kind: os.open(f"/proc/thread-self/ns/{kind}", os.O_RDONLY) for kind in _FLAGS}


def _set(namespaces: dict[str, int]) -> None:
    for kind, descriptor in namespaces.items():
        _enter("setns", descriptor, _FLAGS[kind])


def _enter(call: str, *arguments: int) -> None:
    if getattr(_libc, call)(*arguments) != 0:
        raise StackError(f"{call}: {os.strerror(ctypes.get_errno())}; {NEEDS}")


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise StackError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
