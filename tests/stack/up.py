"""`make up`: the whole service on this machine, with a demo workspace and a receiver for its webhooks."""

import argparse
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

from tests.stack import leftovers
from tests.stack.chats import Chats
from tests.stack.demo import EMAIL, SUPPORT, Demo
from tests.stack.errors import StackError
from tests.stack.kept import Kept
from tests.stack.pages import Pages
from tests.stack.ports import free_port
from tests.stack.processes import ROOT, process_types
from tests.stack.receiver import Received, Receiver
from tests.stack.reports import Report
from tests.stack.stack import Stack

DIRECTORY = ROOT / ".data"
PORTS = {"web": 8000, "realtime": 8001, "postgres": 5432, "redis": 6379}
RECEIVER_PORT, TELEGRAM_PORT, PAGES_PORT = 8443, 8444, 8445
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_SECONDS = 0.2


def main() -> int:
    """Run until a signal or the end of the file, then stop everything. 1 if something did not start."""
    parser = argparse.ArgumentParser(prog="python -m tests.stack.up")
    parser.add_argument("--while", type=Path, dest="running", help="stop when this file is gone")
    running = parser.parse_args().running
    for number in ENDING:
        signal.signal(number, _interrupt)
    try:
        with _only_one(DIRECTORY):
            if running is not None:
                threading.Thread(target=_watch, args=(running,), daemon=True).start()
            if count := leftovers.end(DIRECTORY):
                say(f"Ended {count} processes of an earlier start that was killed")
            leftovers.mark(DIRECTORY)
            _run()
    except StackError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        say("Everything is stopped.")
    return 0


def _run() -> None:
    counts = dict.fromkeys(process_types(), 1)
    # A process that fails before everything is ready is reported once, by the error that ends the start.
    ready = threading.Event()
    telegram_port = free_port(TELEGRAM_PORT)
    stack = Stack(
        DIRECTORY,
        counts,
        settings={"TELEGRAM_API_URL": f"https://127.0.0.1:{telegram_port}"},
        ports=PORTS,
        on_line=lambda name, line: say(f"{name}: {line}") if ready.is_set() and _is_error(line) else None,
        on_end=lambda name, code: say(f"{name} ended ({code}); starting it again") if ready.is_set() else None,
    )
    demo = Demo(stack)
    report, kept = Report(demo.secrets_of), Kept(DIRECTORY / "received")

    def show(received: Received) -> None:
        kept.put(received)
        say(report.line(received))

    receiver = Receiver(stack.certificates.ca_file.parent, free_port(RECEIVER_PORT), on_receive=show)
    receiver.keeps = False
    pages = Pages(Chats(DIRECTORY, receiver.certificates.ca_file.parent, telegram_port), PAGES_PORT)
    try:
        _start(stack, receiver, pages, demo)
        ready.set()
        _show_addresses(stack, receiver, pages, demo)
        threading.Event().wait()
    finally:
        _stop(stack, receiver, pages)


def _start(stack: Stack, receiver: Receiver, pages: Pages, demo: Demo) -> None:
    stack.postgres.start()
    say(f"PostgreSQL     ready on port {_port(stack.postgres.port, PORTS['postgres'])}")
    stack.redis.start()
    say(f"Redis          ready on port {_port(stack.redis.port, PORTS['redis'])}")
    stack.processes.upgrade()
    say("Migrations     done")
    receiver.start()
    say(f"Receiver       ready on port {_port(receiver.port, RECEIVER_PORT)}")
    pages.chats.start()
    pages.start()
    demo.seed(receiver.url())
    say("Workspace      Demo, with an endpoint for every event at the receiver")
    stack.processes.start()
    stack.processes.wait_ready()
    kinds = ", ".join(name.rpartition(".")[0] for name in stack.processes.names)
    say(f"Processes      {kinds}: running; web on port {_port(stack.port, PORTS['web'])}")
    demo.seed_channels(pages.origin)
    pages.script = demo.chat_script
    say("Channels       a Telegram bot, at a Bot API of its own, and a web chat; an automation answers on both")


def _stop(stack: Stack, receiver: Receiver, pages: Pages) -> None:
    say("\nStopping …")
    stack.processes.stop()
    receiver.stop()
    pages.stop()
    pages.chats.stop()
    stack.stop()
    leftovers.end(DIRECTORY)  # a signal may arrive after a process was started and before we know of it


def _show_addresses(stack: Stack, receiver: Receiver, pages: Pages, demo: Demo) -> None:
    say(f"""
Address    {stack.base_url}
Docs       {stack.base_url}/api/docs
Live       {stack.environment["REALTIME_URL"]}/live/workspace: messages as they come, for the token below
Token      {demo.token}
Sign-in    {stack.base_url}/sign-in
           {EMAIL}, password {demo.password}: an owner of the workspace, where some deliveries have failed
           {SUPPORT}, the same password: support staff, who see all workspaces
Telegram   {pages.origin}/telegram: write to the bot as a person would, and see its answers
Web chat   {pages.origin}/shop: a page of a shop with the chat, where a visitor gets the same answers
Logs       {stack.directory / "logs"}
Commands   . {stack.write_settings()}; .venv/bin/python -m app check

Make a contact, and see its webhooks arrive below:

{demo.curl()}

Webhooks received at {receiver.url("/")}… (Ctrl-C stops everything):
""")


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)


def _port(port: int, usual: int) -> str:
    return str(port) if port == usual else f"{port} ({usual} is taken)"


def _is_error(line: str) -> bool:
    """Whether a line is an error in a JSON log, or no log line at all, such as part of a traceback."""
    try:
        return json.loads(line).get("level") in ("error", "critical")
    except (ValueError, AttributeError):
        return bool(line.strip()) and "[INFO]" not in line and "[DEBUG]" not in line


def _watch(running: Path) -> None:
    while running.exists():
        time.sleep(LOOK_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # One is enough: the group's and make's own arrive together, and a second one would interrupt the stopping.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


@contextmanager
def _only_one(directory: Path) -> Iterator[None]:
    """Lock the directory: two stacks would stop each other's PostgreSQL."""
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        _hold(lock)
        yield


def _hold(lock: TextIO) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise StackError("`make up` is already running in this checkout.") from error


if __name__ == "__main__":
    sys.exit(main())
