"""The keys of the inbox, pressed as fast as people press them: what is typed goes where it was meant to go."""

from __future__ import annotations

import io
import re
import wave
from pathlib import Path

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.browser import seeds
from tests.browser.conftest import Visit
from tests.browser.services import Service, Workspace
from tests.browser.test_inbox import PICTURE
from tests.journeys.waiting import wait_until


def _sound() -> bytes:
    """A quarter of a second of silence."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(1)
        writer.setframerate(8_000)
        writer.writeframes(b"\x80" * 2_000)
    return file.getvalue()


SOUND = _sound()


# The duration of a sound that loads, in seconds. Of one element: the message is drawn anew once it is sent.
LOADED = """sound => new Promise((resolve, reject) => {
    sound.addEventListener("loadedmetadata", () => resolve(sound.duration));
    sound.addEventListener("error", () => reject(sound.error.message));
    sound.preload = "metadata";
    sound.load();
})"""

# What happens to a row when something in its conversation changes.
REDRAW = "() => document.querySelectorAll('#rows > li').forEach((row) => row.replaceWith(row.cloneNode(true)))"


# Reads the open conversation anew, as after a change by somebody else.
RELOAD = "import(document.querySelector('[href$=\"panes.js\"]').href).then((panes) => panes.reload())"


class Desk:
    """The inbox of an agent with three conversations: Mary's first, then Grace's, then Ada's."""

    def __init__(self, page: Page, service: Service, workspace: Workspace) -> None:
        self.page, self.service, self.workspace = page, service, workspace
        self.keyboard = page.keyboard
        self.box = page.get_by_label("Your answer or note")
        self.talk = page.locator("#talk")
        self.told = page.locator("#told")
        self.menu = page.locator("#talk details.menu[open]")

    def row(self, name: str) -> Locator:
        return self.page.locator("#rows > li").filter(has_text=name)

    def open(self, name: str) -> None:
        self.row(name).get_by_role("link").click()
        self.expect_open(name)

    def expect_open(self, name: str) -> None:
        expect(self.page.get_by_role("heading", name=name, level=2).first).to_be_visible()

    def expect_focus(self, name: str) -> None:
        expect(self.row(name).get_by_role("link")).to_be_focused()

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keyboard.press(key)

    def count(self, what: str) -> int:
        """How many conversations of the workspace that is true of."""
        sql = f"SELECT count(*) FROM conversations WHERE workspace_id = %s AND {what}"
        return int(self.service.query(sql, self.workspace.id)[0][0])

    def status_of(self, name: str) -> tuple[str, bool]:
        """The status of the conversation with that contact, and whether it is snoozed."""
        sql = (
            "SELECT status, snoozed_until IS NOT NULL FROM conversations JOIN contacts ON contacts.id = contact_id"
            " WHERE conversations.workspace_id = %s AND first_name = %s"
        )
        [(status, is_snoozed)] = self.service.query(sql, self.workspace.id, name.split()[0])
        return status, is_snoozed

    def written(self) -> set[str]:
        """All messages and notes of the workspace."""
        found = [
            text
            for table in ("messages", "notes")
            for (text,) in self.service.query(f"SELECT text FROM {table} WHERE workspace_id = %s", self.workspace.id)
        ]
        return set(found)


@pytest.fixture
def desk(service: Service, workspace: Workspace, visit: Visit) -> Desk:
    caller = workspace.caller()
    channel = seeds.make_web_chat(caller, "Flowers")
    for hours_ago, name in ((1, "Mary Jackson"), (2, "Grace Hopper"), (3, "Ada Lovelace")):
        seeds.make_conversation(service, workspace, channel, seeds.make_contact(caller, name), hours_ago)
    page = visit(workspace.email("agent")).page
    page.goto(workspace.path("inbox"))
    return Desk(page, service, workspace)


@pytest.mark.parametrize("words", ["friday 14:30", "tomorrow 9", "wednesday 9", "in 2 hours"])
def test_a_snooze_in_words_writes_to_nobody(desk: Desk, words: str) -> None:
    desk.open("Mary Jackson")
    before = desk.written()

    desk.press("h")
    desk.keyboard.type(words)
    desk.press("Enter")

    expect(desk.told).to_have_text("The conversation is snoozed. It wakes earlier if the contact writes.")
    desk.expect_focus("Grace Hopper")
    assert desk.status_of("Mary Jackson") == ("open", True)
    expect(desk.box).to_have_value("")
    assert desk.written() == before


def test_words_that_mean_no_time_stay_in_their_menu(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("h")
    desk.keyboard.type("when it rains")
    desk.press("Enter")

    expect(desk.told).to_have_class(re.compile("error"))
    expect(desk.page.locator("#f-until")).to_be_focused()
    expect(desk.page.locator("#f-until")).to_have_value("when it rains")


def test_while_a_menu_is_open_no_other_key_acts_and_escape_gives_the_focus_back(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.expect_focus("Mary Jackson")
    for key, field in (("h", "#f-until"), ("l", "#f-label"), ("a", "#f-assignee")):
        desk.press(key)
        expect(desk.page.locator(field)).to_be_focused()
        desk.page.evaluate(REDRAW)
        desk.press("Tab")  # to a button of the menu
        expect(desk.menu.locator("button:focus")).to_have_count(1)
        desk.press("e", "n", "j", "r")
        expect(desk.menu.locator("button:focus")).to_have_count(1)
        desk.press("Escape")
        expect(desk.menu).to_have_count(0)
        desk.expect_focus("Mary Jackson")

    desk.page.locator("header summary").first.click()
    desk.press("e", "j", "r")
    desk.press("Escape")
    desk.press("r")
    expect(desk.box).to_be_focused()
    assert desk.count("status = 'closed'") == 0


def test_a_menu_stays_as_it_is_when_the_conversation_is_read_anew(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("h")
    desk.keyboard.type("fri")
    desk.page.evaluate(RELOAD)
    desk.keyboard.type("day 14:30")
    desk.press("Enter")

    expect(desk.told).to_have_text(re.compile("is snoozed"))
    assert desk.status_of("Mary Jackson") == ("open", True)


def test_what_is_typed_while_the_conversation_is_read_anew_is_kept_with_its_caret(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("r")
    desk.keyboard.type("Tulps")
    desk.press("ArrowLeft", "ArrowLeft")
    desk.page.evaluate(f"void {RELOAD}")
    desk.keyboard.type("i")
    desk.page.evaluate(RELOAD)
    desk.keyboard.type("!")

    expect(desk.box).to_have_value("Tuli!ps")


def test_keys_are_about_the_row_with_the_focus(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("j", "e")
    expect(desk.page.locator("#selection-said")).to_have_text("Closed 1 conversation.")
    desk.expect_focus("Ada Lovelace")
    assert desk.status_of("Grace Hopper")[0] == "closed"

    desk.press("h")
    desk.keyboard.type("tomorrow 9")
    desk.press("Enter")
    expect(desk.page.locator("#selection-said")).to_have_text("Snoozed 1 conversation.")
    desk.expect_focus("Mary Jackson")
    assert desk.status_of("Ada Lovelace") == ("open", True)
    assert desk.status_of("Mary Jackson") == ("open", False)

    desk.press("e")
    expect(desk.told).to_have_text("The conversation is closed.")
    assert desk.count("status = 'closed'") == 2


def test_keys_in_quick_succession_are_about_one_row_after_the_other(desk: Desk) -> None:
    desk.press("j", "e", "e", "e")

    wait_until(lambda: desk.count("status = 'closed'") == 3, 30, "all are closed")
    expect(desk.page.locator("#rows > li")).to_have_count(0)


def test_an_answer_is_written_to_the_row_with_the_focus(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("j", "r")
    desk.keyboard.type("hello, ")

    desk.expect_open("Grace Hopper")
    expect(desk.box).to_be_focused()
    desk.keyboard.type("Grace")
    expect(desk.box).to_have_value("hello, Grace")
    assert desk.count("status = 'closed'") == 0


def test_keys_are_about_the_ticked_conversations_first(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("j", "x", "j", "x", "k", "k")
    expect(desk.page.get_by_text("2 chosen")).to_be_visible()

    desk.press("l")
    desk.keyboard.type("urgent")
    desk.press("Enter")
    expect(desk.page.locator("#selection-said")).to_have_text("Added the label to 2 conversations.")
    assert desk.count("labels @> ARRAY['urgent']") == 2

    desk.press("x", "j", "x", "e")
    expect(desk.page.locator("#selection-said")).to_have_text("Closed 2 conversations.")
    desk.expect_focus("Ada Lovelace")
    assert desk.status_of("Ada Lovelace")[0] == "open"


def test_escape_from_the_menu_of_a_row_leaves_nothing_chosen(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("j", "h", "Escape")

    desk.expect_focus("Grace Hopper")
    expect(desk.page.locator("#rows input:checked")).to_have_count(0)


@pytest.mark.parametrize("way", ["return", "reload"])
def test_a_kept_draft_goes_on_at_its_end(desk: Desk, way: str) -> None:
    desk.open("Mary Jackson")
    desk.press("r")
    desk.keyboard.type("Part one")
    desk.press("Escape")
    desk.open("Grace Hopper")
    if way == "reload":
        desk.page.reload()
    desk.open("Mary Jackson")

    desk.press("r")
    desk.keyboard.type(", part two")
    expect(desk.box).to_have_value("Part one, part two")


def test_members_are_chosen_from_a_list_and_unknown_names_are_said(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.press("n")
    desk.keyboard.type("@ad")
    expect(desk.page.get_by_role("option", name="@admin")).to_be_visible()
    desk.press("Enter")
    expect(desk.box).to_have_value("@admin ")
    desk.keyboard.type("and @b")
    desk.press("Enter")

    expect(desk.told).to_have_text("Nobody here is called @b. That name notified nobody.")
    admin = desk.service.member_id(desk.workspace, "admin")
    found = desk.service.query("SELECT mentions FROM notes WHERE text = '@admin and @b'")
    assert found == [([admin],)]


def test_chosen_files_are_shown_can_be_removed_and_have_their_limits(desk: Desk, tmp_path: Path) -> None:
    desk.open("Mary Jackson")
    files, chosen, refused = (desk.page.locator(each) for each in ("#f-files", "#chosen li", "#refused"))
    files.set_input_files(FilePayload(name="tulip.png", mimeType="image/png", buffer=PICTURE))
    files.set_input_files(FilePayload(name="bill.pdf", mimeType="application/pdf", buffer=b"%PDF-1.7"))
    expect(chosen).to_have_text([re.compile(r"tulip\.png \d+ B"), re.compile(r"bill\.pdf 8 B")])
    expect(chosen.locator("img")).to_have_count(1)

    film = tmp_path / "film.mp4"
    film.write_bytes(bytes(16 * 1024**2))
    files.set_input_files(film)
    expect(refused).to_have_text("film.mp4 is too large: the files of a message have at most 16 MiB together.")
    files.set_input_files(FilePayload(name="empty.txt", mimeType="text/plain", buffer=b""))
    expect(refused).to_have_text("empty.txt is empty.")
    expect(chosen).to_have_count(2)

    desk.page.get_by_role("button", name="Remove tulip.png").click()
    expect(chosen).to_have_text([re.compile(r"bill\.pdf")])
    assert files.evaluate("field => [...field.files].map((each) => each.name)") == ["bill.pdf"]


def test_addresses_are_links_and_sounds_play(desk: Desk) -> None:
    desk.open("Mary Jackson")
    desk.page.locator("#f-files").set_input_files(FilePayload(name="hum.wav", mimeType="audio/wav", buffer=SOUND))
    desk.press("r")
    desk.keyboard.type("See https://shop.example/tulips?x=1.")
    desk.press("Enter")
    link = desk.page.locator("#thread").get_by_role("link", name="https://shop.example/tulips?x=1", exact=True)
    sound = desk.page.locator("#thread audio[aria-label='hum.wav']")

    for _ in range(2):
        expect(link).to_have_attribute("href", "https://shop.example/tulips?x=1")
        expect(sound).to_be_visible()
        # As long as the file: the page's policy lets it be fetched.
        assert sound.evaluate(LOADED) == 0.25
        desk.page.reload()
