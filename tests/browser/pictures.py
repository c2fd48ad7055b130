"""The pictures of the pages in docs: what each shows, and the workspace in which it is taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect

from tests.browser import coupons, seeds
from tests.browser.services import Service, Workspace
from tests.browser.visitors import visiting

TARGET = Path("docs") / "pictures"
VIEWPORT = {"width": 1440, "height": 780}
LARGEST = 150_000  # bytes
# A workspace, the role of who looks at it, and what the paths of pictures name.
Made = tuple[Workspace, str, Mapping[str, str]]
TALKS = {
    "Ada Lovelace": (
        "Good morning! Do you have tulips?",
        "Yes, red and yellow ones.",
        "Red, please. How much are ten?",
    ),
    "Grace Hopper": ("Thank you, the flowers are lovely.",),
    "Mary Jackson": ("My order has not arrived.", "I am asking the driver.", "It is here now, thank you!"),
    "Annie Easley": ("Can you deliver on Sunday?",),
    "Radia Perlman": ("I would like to change my booking.", "Of course. To which day?", "To Friday, please."),
}


@dataclass(frozen=True)
class Picture:
    """A picture of a page: the whole of what fits, or the part that `shows` selects, after `prepare`."""

    name: str
    path: str
    shows: str | None = None
    prepare: Callable[[Page], None] = lambda page: None


def _open_saved_replies(page: Page) -> None:
    page.get_by_label("Your answer or note").press_sequentially("/")
    expect(page.get_by_role("listbox", name="Saved replies")).to_be_visible()


def _open_snoozes(page: Page) -> None:
    page.keyboard.press("h")
    expect(page.get_by_text("It wakes earlier if the contact writes.")).to_be_visible()


def _write_a_text(page: Page) -> None:
    panel = page.locator("#panel")
    panel.get_by_text("Preview", exact=True).click()
    panel.get_by_role("button", name="Fill it in").click()
    expect(panel.locator(".bubble")).to_contain_text("Hello Radia")


def _answer_the_trial(page: Page) -> None:
    panel = page.locator("#panel")
    panel.get_by_text("Who and what it is started with").click()
    panel.get_by_label("Contact", exact=True).select_option(label="Radia Perlman")
    panel.get_by_role("button", name="Begin anew with these").click()
    expect(panel.get_by_role("log")).to_contain_text("Hello Radia")
    panel.get_by_role("button", name="Flowers", exact=True).click()
    expect(panel).to_contain_text("The run is completed.")


# By the page of docs that has them.
PICTURES: Mapping[str, Sequence[Picture]] = {
    "inbox": (
        Picture("inbox", "inbox/{conversation}"),
        Picture("inbox-saved-replies", "inbox/{conversation}", "#talk", _open_saved_replies),
        Picture("inbox-snooze", "inbox/{conversation}", "#talk > header", _open_snoozes),
        Picture("inbox-notifications", "notifications/choices", "main"),
    ),
    "building-automations": (
        Picture("automation-picture", "automations/{automation}"),
        Picture("automation-editor", "automations/{automation}/edit/step?step=hello", "main", _write_a_text),
        Picture("automation-trial", "automations/{automation}/edit/try", "main", _answer_the_trial),
        Picture("automation-versions", "automations/{automation}/versions/compare?from=1&to=2", "main"),
        Picture("automation-results", "automations/{automation}/results", "main"),
    ),
}


def _inbox(service: Service) -> Made:
    """A flower shop with some conversations, saved replies and macros, and its latest conversation."""
    workspace = service.open("Lovelace Flowers")
    caller = workspace.caller()
    channel = seeds.make_web_chat(caller, "Flowers")
    for hours, (name, texts) in enumerate(TALKS.items(), 1):
        said = [
            ("contact" if n % 2 == 0 else "member", text, "read" if n % 2 else "received")
            for n, text in enumerate(texts)
        ]
        contact = seeds.make_contact(caller, name)
        seeds.make_conversation(service, workspace, channel, contact, hours, said, "Is planning a wedding in June.")
    for shortcut, text in (
        ("hours", "We are open from nine to six, on Sundays until noon."),
        ("prices", "Hello {{ contact.first_name }}, ten tulips are 12 euros, and a bouquet begins at 20."),
        ("thanks", "Thank you, {{ contact.first_name }}!"),
    ):
        caller.apply("POST", "saved-replies", {"shortcut": shortcut, "text": text})
    close = [{"kind": "label", "labels": ["done"]}, {"kind": "close"}]
    caller.apply("POST", "macros", {"name": "Label as done, and close", "actions": close})
    [(conversation,)] = service.query(
        "SELECT id FROM conversations WHERE workspace_id = %s ORDER BY last_message_at DESC LIMIT 1", workspace.id
    )
    return workspace, "agent", {"conversation": conversation}


def _coupons(service: Service) -> Made:
    """A flower shop with an automation that has results."""
    workspace = service.open("Lovelace Flowers")
    return workspace, "owner", {"automation": coupons.make_coupons(service, workspace)}


MAKERS: Mapping[str, Callable[[Service], Made]] = {"inbox": _inbox, "building-automations": _coupons}
assert MAKERS.keys() == PICTURES.keys()


def take(service: Service, browser: Browser, page_of_docs: str) -> Iterator[Path]:
    """Makes the pictures of that page, as a member sees them in the light scheme."""
    workspace, role, named = MAKERS[page_of_docs](service)
    TARGET.mkdir(exist_ok=True)
    options = {"viewport": VIEWPORT, "color_scheme": "light", "reduced_motion": "reduce"}
    with visiting(browser, service.base_url, **options) as visitor:
        page = visitor.sign_in(workspace.email(role)).page
        for picture in PICTURES[page_of_docs]:
            page.goto(workspace.path(picture.path.format_map(named)), wait_until="load")
            picture.prepare(page)
            path = TARGET / f"{picture.name}.png"
            (page.locator(picture.shows) if picture.shows else page).screenshot(path=path, caret="initial")
            assert path.stat().st_size <= LARGEST, f"{path} has {path.stat().st_size:,} bytes"
            yield path
