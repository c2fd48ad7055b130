"""A day of an agent by keyboard alone, and two agents of whom one's machine dies: counted at the provider."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Error, Page, Route, expect

from tests.browser.bots import TalkingBot
from tests.browser.chromium import launching
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace
from tests.browser.test_inbox import Inbox
from tests.browser.visitors import Visitor
from tests.journeys.waiting import wait_until
from tests.providers.telegram_people import Person

PEOPLE = [Person(7_100_000 + number, f"Person{number}", None) for number in range(30)]
# What the agent does besides answering, by the number of the conversation.
TASKS: dict[str, Callable[[int], bool]] = {
    "note": lambda number: number % 3 == 0,
    "label": lambda number: number % 5 == 0,
    "assign": lambda number: number % 6 == 1,
    "take": lambda number: number % 6 == 2,
    "macro": lambda number: number % 10 == 9,
    "snooze": lambda number: number % 5 == 2,
    "close": lambda number: number % 2 == 0 and number % 5 != 2,
}


class Desk:
    """An agent who touches no mouse."""

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.page = inbox.page
        self.press = inbox.page.keyboard.press
        self.type = inbox.page.keyboard.type
        self.told = inbox.page.locator("#told")

    def begin(self, key: str) -> None:
        """Goes to the box, for an answer or a note."""
        self.press(key)
        expect(self.inbox.box).to_be_focused()

    def send(self) -> None:
        self.press("Enter")
        self.inbox.expect_sent()
        self.press("Escape")

    def answer(self, number: int) -> None:
        self.begin("r")
        if number % 4 == 1:
            self.type("/than")
            expect(self.page.locator("#replies").get_by_role("option")).to_be_visible()
            self.press("Tab")
            expect(self.inbox.box).to_have_value(answer_of(number))
        else:
            self.type(answer_of(number))
        self.send()

    def note(self) -> None:
        self.begin("n")
        self.type("Called.")
        self.send()
        expect(self.page.locator("#thread .note")).to_have_count(1)

    def label(self) -> None:
        self.press("l")
        expect(self.page.locator("#f-label")).to_be_focused()
        self.type("refund")
        self.press("Enter")
        expect(self.told).to_have_text("The labels are changed.")

    def assign(self) -> None:
        self.press("a")
        expect(self.page.locator("#f-assignee")).to_be_focused()
        self.type("admin")
        self.press("Tab")
        self.press("Enter")
        expect(self.told).to_have_text("The conversation is assigned.")

    def take(self) -> None:
        self.press("Control+k")
        expect(self.page.get_by_role("combobox", name="What do you want to do?")).to_be_focused()
        self.type("assign to me")
        self.press("Enter")
        expect(self.told).to_have_text("The conversation is assigned.")

    def macro(self) -> None:
        self.press("m")
        expect(self.page.get_by_role("button", name="Wrap up")).to_be_focused()
        self.press("Enter")
        expect(self.told).to_have_text("Wrap up is applied.")

    def snooze(self) -> None:
        self.press("h")
        expect(self.page.locator("#f-until")).to_be_focused()
        self.type("in 2 hours")
        self.press("Enter")
        expect(self.told).to_contain_text("The conversation is snoozed.")

    def close(self) -> None:
        self.press("e")
        expect(self.told).to_have_text("The conversation is closed.")


def answer_of(number: int) -> str:
    return f"Thank you, Person{number}." if number % 4 == 1 else f"Answer {number}"


def numbers(task: str) -> set[int]:
    return {number for number in range(len(PEOPLE)) if TASKS[task](number)}


def dealt_with(number: int) -> bool:
    """Whether the conversation is closed or snoozed, and not left open."""
    return TASKS["close"](number) or TASKS["snooze"](number)


def test_a_day_of_an_agent_by_keyboard_alone(
    service: Service, visit: Visit, workspace: Workspace, bot: TalkingBot
) -> None:
    caller = workspace.caller()
    caller.apply("POST", "saved-replies", {"shortcut": "thanks", "text": "Thank you, {{ contact.first_name }}."})
    caller.apply("POST", "macros", {"name": "Wrap up", "actions": [{"kind": "label", "labels": ["done"]}]})
    for number, person in enumerate(PEOPLE):
        bot.hear(person, f"Question {number}")
    inbox = Inbox(visit(workspace.email("agent")).page, workspace).open("?view=waiting")
    expect(inbox.rows).to_have_count(len(PEOPLE))
    desk = Desk(inbox)

    for number in range(len(PEOPLE)):
        if number == 0 or not dealt_with(number - 1):
            desk.press("j")  # otherwise the next row has the focus already
        if number == 0:
            desk.press("j")
            desk.press("k")
        desk.press("Enter")
        expect(inbox.thread.first).to_have_text(f"Question {number}")
        desk.answer(number)
        for task, is_due in TASKS.items():
            if is_due(number):
                getattr(desk, task)()

    expect(inbox.page.locator("#rows > li:not(.left)")).to_have_count(0)
    wait_until(lambda: len(bot.said()) == len(PEOPLE), 120, "everybody has an answer")
    assert bot.said() == {person.id: [answer_of(number)] for number, person in enumerate(PEOPLE)}
    assert stored(service, workspace) == {number: expected(number) for number in range(len(PEOPLE))}
    away = numbers("close") | numbers("snooze")
    inbox.open("?view=waiting")
    assert {view: inbox.count(view) for view in ("waiting", "all", "snoozed", "mine", "unassigned")} == {
        "waiting": "0",
        "all": str(len(PEOPLE) - len(away)),
        "snoozed": str(len(numbers("snooze"))),
        "mine": str(len(numbers("take") - away)),
        "unassigned": str(len(set(range(len(PEOPLE))) - numbers("take") - numbers("assign") - away)),
    }


def expected(number: int) -> tuple[object, ...]:
    """Status, assignee, labels, whether it is snoozed, and the numbers of messages and notes."""
    is_due = {task: check(number) for task, check in TASKS.items()}
    assignee = "admin" if is_due["assign"] else "agent" if is_due["take"] else None
    labels = [label for label, task in (("done", "macro"), ("refund", "label")) if is_due[task]]
    return "closed" if is_due["close"] else "open", assignee, labels, is_due["snooze"], 2, int(is_due["note"])


def stored(service: Service, workspace: Workspace) -> dict[int, tuple[object, ...]]:
    """The same of every conversation, by its number."""
    found = service.query(
        """
        SELECT (SELECT split_part(text, ' ', 2)::int FROM messages
                WHERE conversation_id = talk.id AND direction = 'in'),
            status, split_part(email, '@', 1), labels, snoozed_until IS NOT NULL,
            (SELECT count(*) FROM messages WHERE conversation_id = talk.id),
            (SELECT count(*) FROM notes WHERE conversation_id = talk.id)
        FROM conversations AS talk LEFT JOIN members ON members.id = assignee_id
            LEFT JOIN accounts ON accounts.id = account_id
        WHERE talk.workspace_id = %s
        """,
        workspace.id,
    )
    return {number: tuple(facts) for number, *facts in found}


class Machine:
    """A computer with a browser that keeps its profile, and can lose its power."""

    def __init__(self, browser: Browser, profile: Path, service: Service) -> None:
        self._browser = browser
        self._service = service
        self._context: BrowserContext | None = None
        self.profile = profile

    def start(self, email: str) -> Page:
        """Starts the browser, whoever used it before, and signs in."""
        self._context = self._browser.browser_type.launch_persistent_context(
            self.profile, base_url=self._service.base_url, **launching()
        )
        self._context.clear_cookies()
        return Visitor(self._context, self._service.base_url).sign_in(email).page

    def has_stored(self, text: str) -> bool:
        """Whether what a page stores in the browser has reached the disk."""
        files = (self.profile / "Default" / "Local Storage" / "leveldb").glob("*.log")
        return any(each in file.read_bytes() for file in files for each in (text.encode(), text.encode("utf-16-le")))

    def kill(self) -> None:
        """Without a farewell."""
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"--user-data-dir={self.profile}" in (process / "cmdline").read_text():
                    os.kill(int(process.name), signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        if self._context is not None:
            with suppress(Error):
                self._context.close()
        self._context = None


@pytest.fixture
def machine(browser: Browser, service: Service, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(browser, tmp_path / "profile", service)
    yield machine
    machine.stop()


def test_two_agents_answer_at_once_while_one_machine_dies_and_the_others_network_goes_away(
    service: Service, visit: Visit, workspace: Workspace, bot: TalkingBot, machine: Machine
) -> None:
    [person, *_] = PEOPLE
    bot.hear(person, "Where is my money?")
    other = Inbox(visit(workspace.email("admin")).page, workspace).open().choose("Where is my money?")
    page = machine.start(workspace.email("agent"))
    dying = Inbox(page, workspace).open().choose("Where is my money?")

    def take(route: Route) -> None:
        """The server gets it, and the machine never hears of that."""
        route.fetch()

    page.route("**/write?*", take)
    for text in ("Mine 1", "Mine 2"):
        dying.answer(text)
    expect(other.thread).to_have_text(["Where is my money?", "Mine 1"], timeout=60_000)
    expect(dying.page.locator("#thread [data-pending]")).to_have_count(2)
    wait_until(lambda: machine.has_stored("Mine 2"), 60, "the browser has stored what is not sent")
    machine.kill()

    other.answer("Theirs 0")
    other.expect_sent()
    other.page.context.set_offline(True)
    for number in range(1, 5):
        other.answer(f"Theirs {number}")
    expect(other.page.locator("#thread [data-pending]")).to_have_count(4)
    other.page.wait_for_timeout(5_000)  # the minute
    assert len(texts(service, bot)) == 3
    other.page.context.set_offline(False)
    other.expect_sent()

    again = Inbox(machine.start(workspace.email("agent")), workspace).open()
    expect(again.rows).to_contain_text(["Draft"], timeout=60_000)
    again.rows.get_by_role("link").click()
    expect(again.box).to_have_value("Mine 2")
    again.box.press("Enter")
    again.expect_sent()

    theirs = [f"Theirs {number}" for number in range(5)]
    said = ["Mine 1", *theirs, "Mine 2"]
    for each in (again, other):
        expect(each.thread).to_have_text(["Where is my money?", *said], timeout=60_000)
    wait_until(lambda: len(bot.said().get(person.id, ())) >= len(said), 120, "the bot has sent all of them")
    wait_until(
        lambda: texts(service, bot, "AND status IN ('received', 'sent')") == ["Where is my money?", *said],
        60,
        "all are sent",
    )
    assert bot.said() == {person.id: said}


def texts(service: Service, bot: TalkingBot, which: str = "") -> list[str]:
    """What is stored, in the order in which it was accepted."""
    query = f"SELECT text FROM messages WHERE channel_id = %s {which} ORDER BY created_at, id"
    return [text for (text,) in service.query(query, bot.id)]
