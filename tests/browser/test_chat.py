"""The widget of a web chat on the pages of a shop, which has another origin."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import APIResponse, FilePayload, Route, expect

from tests.browser.conftest import NewBrowser
from tests.browser.services import Workspace
from tests.browser.shop import Chat, Shop, Widget, opened
from tests.browser.test_accessibility import AXE, GRAVE
from tests.chatting import signed
from tests.journeys.waiting import wait_until

PICTURE: FilePayload = {
    "name": "tulip.png",
    "mimeType": "image/png",
    "buffer": bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    ),
}
ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
HOSTILE = "<img src=x onerror=ran()><script>ran()</script> \u202egnp.exe \u200b javascript:ran()"


def test_a_stranger_asks_and_sees_the_answer_come(widget: Widget, chat: Chat) -> None:
    widget.open().say("Do you have tulips?")
    widget.expect("Do you have tulips?")
    widget.expect_sent()
    assert chat.texts() == ["Do you have tulips?"]

    chat.answer("Yes, red and yellow ones.")

    widget.expect("Do you have tulips?", "Yes, red and yellow ones.")
    assert chat.count("visitors") == chat.count("conversations") == 1
    read = "SELECT 1 FROM messages WHERE channel_id = %s AND status = 'read'"
    wait_until(lambda: chat.service.query(read, chat.id), 60, "the answer was read")


def test_nothing_is_stored_before_the_first_message(widget: Widget, chat: Chat) -> None:
    widget.open().box.fill("I have not sent this")
    widget.page.keyboard.press("Escape")

    assert widget.stored() == "{}"
    assert chat.count("visitors") == chat.count("arrivals") == 0
    assert widget.page.context.cookies() == []


def test_everything_can_be_done_with_the_keyboard(widget: Widget, chat: Chat) -> None:
    keyboard = widget.page.keyboard
    widget.launcher.wait_for()
    keyboard.press("Tab")
    keyboard.press("Tab")
    expect(widget.launcher).to_be_focused()
    keyboard.press("Enter")
    expect(widget.box).to_be_focused()
    keyboard.type("Hello")
    keyboard.press("Shift+Enter")
    keyboard.type("there")
    keyboard.press("Enter")
    widget.expect("Hello\nthere")
    widget.expect_sent()
    keyboard.press("Escape")

    expect(widget.panel).to_be_hidden()
    expect(widget.launcher).to_be_focused()
    assert chat.texts() == ["Hello\nthere"]


def test_an_earlier_answer_that_comes_late_hides_nothing(widget: Widget, chat: Chat) -> None:
    first: list[Route] = []
    held: list[APIResponse] = []

    def hold_first(route: Route) -> None:
        if first:
            route.continue_()
        else:
            first.append(route)  # before the fetch, during which the page may send the next request
            held.append(route.fetch())

    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    chat.texts()
    widget.page.route("**/messages", hold_first)
    widget.page.evaluate("dispatchEvent(new Event('online'))")
    wait_until(lambda: held or widget.page.wait_for_timeout(100), 30, "the page has asked")
    chat.answer("We have two.")
    widget.page.wait_for_timeout(2000)  # for the stream to tell of it
    first[0].fulfill(response=held[0])

    widget.expect("Do you have tulips?", "We have two.")


def test_a_button_is_pressed_and_all_are_gone(widget: Widget, chat: Chat) -> None:
    widget.open().say("Do you have tulips?")
    widget.expect_sent()
    chat.answer("Which colour?", red="Red", blue="Blue")
    chat.answer("We have two.")
    widget.expect("Do you have tulips?", "Which colour?", "We have two.")
    expect(widget.answers.get_by_role("button")).to_have_text(["Red", "Blue"])

    widget.answers.get_by_role("button", name="Blue").click()

    expect(widget.answers).to_be_hidden()
    widget.expect("Do you have tulips?", "Which colour?", "We have two.", "Blue")
    widget.expect_sent()
    assert chat.texts() == ["Do you have tulips?", "Blue"]
    pressed = "SELECT button_id FROM messages WHERE channel_id = %s AND text = 'Blue'"
    assert chat.service.query(pressed, chat.id) == [("blue",)]


def test_a_button_is_pressed_with_the_keyboard(widget: Widget, chat: Chat) -> None:
    keyboard = widget.page.keyboard
    widget.open().say("Hello")
    widget.expect_sent()
    chat.answer("Tulips?", yes="Yes, please", no="No")
    expect(widget.answers).to_be_visible()

    widget.box.focus()
    keyboard.press("Shift+Tab")
    keyboard.press("Shift+Tab")
    expect(widget.answers.get_by_role("button", name="No")).to_be_focused()
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")

    widget.expect("Hello", "Tulips?", "Yes, please")
    expect(widget.box).to_be_focused()
    widget.expect_sent()
    assert chat.texts() == ["Hello", "Yes, please"]


def test_buttons_are_gone_after_an_answer_in_words_and_stay_over_a_reload(widget: Widget, chat: Chat) -> None:
    widget.open().say("Hello")
    widget.expect_sent()
    chat.answer("Tulips?", yes=HOSTILE[:20], no="No")
    expect(widget.answers).to_be_visible()
    widget.page.reload()
    widget.open()
    expect(widget.answers.get_by_role("button")).to_have_text([HOSTILE[:20], "No"])

    widget.say("Roses, please")
    widget.expect_sent()

    expect(widget.answers).to_be_hidden()
    chat.answer("Alright")
    widget.expect("Hello", "Tulips?", "Roses, please", "Alright")
    expect(widget.answers).to_be_hidden()


def test_the_button_counts_what_was_not_read(widget: Widget, chat: Chat) -> None:
    widget.open().say("Hello")
    widget.expect_sent()
    widget.page.keyboard.press("Escape")

    chat.answer("Good morning")

    expect(widget.launcher).to_have_accessible_name("Open the chat, 1 unread")
    widget.open()
    widget.expect("Hello", "Good morning")


def test_two_tabs_are_one_visitor(widget: Widget, chat: Chat, shop: Shop) -> None:
    widget.open().say("From the first")
    widget.expect_sent()
    second = Widget(widget.page.context, shop.origin).open()
    second.expect("From the first")

    second.say("From the second")
    second.expect_sent()
    widget.page.bring_to_front()

    widget.expect("From the first", "From the second")
    assert chat.texts() == ["From the first", "From the second"]
    assert chat.count("visitors") == 1


def test_what_is_written_offline_is_sent_once_and_in_order_when_the_network_is_back(widget: Widget, chat: Chat) -> None:
    widget.open().say("0")
    widget.expect_sent()
    widget.page.context.set_offline(True)
    for number in range(1, 4):
        widget.say(str(number))
    expect(widget.log.locator(".waiting")).to_have_count(3)
    expect(widget.status).to_contain_text("No connection")

    widget.page.context.set_offline(False)

    widget.expect_sent()
    widget.expect("0", "1", "2", "3")
    assert chat.texts() == ["0", "1", "2", "3"]


def test_what_waits_to_be_sent_survives_the_page(widget: Widget, chat: Chat, shop: Shop) -> None:
    context = widget.page.context
    context.route("**/messages", lambda route: route.abort())
    widget.open().say("Are you there?")
    expect(widget.log.locator(".waiting")).to_have_count(1)
    widget.page.close()
    context.unroute("**/messages")

    again = Widget(context, shop.origin).open()

    again.expect("Are you there?")
    again.expect_sent()
    assert chat.texts() == ["Are you there?"]


def test_a_lost_answer_to_the_first_message_makes_no_second_visitor(widget: Widget, chat: Chat) -> None:
    lost = []

    def lose(route: object) -> None:
        if not lost and route.request.method == "POST":  # type: ignore[attr-defined]
            lost.append(route.fetch())  # type: ignore[attr-defined]
            route.abort()  # type: ignore[attr-defined]
        else:
            route.continue_()  # type: ignore[attr-defined]

    widget.page.route("**/messages", lose)
    widget.open().say("Once")
    widget.expect_sent()

    assert lost
    assert chat.texts() == ["Once"]
    assert chat.count("visitors") == 1


def test_answers_come_without_the_stream_too(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    context = fresh()
    context.route("**/live/chat", lambda route: route.abort())
    widget = Widget(context, shop.origin).open()
    widget.say("Hello")
    widget.expect_sent()

    chat.answer("Good morning")

    widget.expect("Hello", "Good morning")


def test_a_user_whom_the_shop_has_signed_is_the_contact(
    fresh: NewBrowser, chat: Chat, shop: Shop, workspace: Workspace
) -> None:
    contact = workspace.caller().apply("POST", "contacts", {"external_id": "7"}).data["id"]
    sign_in(shop, "7")
    widget = Widget(fresh(), shop.origin).open()
    widget.say("Where is my order?")
    widget.expect_sent()
    chat.texts()

    elsewhere = Widget(fresh(), shop.origin).open()

    elsewhere.expect("Where is my order?")
    held = chat.service.query("SELECT contact_id FROM conversations WHERE channel_id = %s", chat.id)
    assert held == [(contact,)]


def test_another_user_in_the_same_browser_sees_nothing_of_the_first(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    context = fresh()
    sign_in(shop, "7")
    first = Widget(context, shop.origin).open()
    first.say("A secret")
    first.expect_sent()
    chat.texts()
    first.page.close()

    sign_in(shop, "8")
    second = Widget(context, shop.origin).open()
    second.say("Hello")
    second.expect_sent()

    second.expect("Hello")
    assert chat.count("visitors") == 2
    users = "SELECT count(DISTINCT contact_id) FROM conversations WHERE channel_id = %s"
    chat.texts()
    assert chat.service.query(users, chat.id) == [(2,)]


def test_a_forged_identity_is_not_believed(fresh: NewBrowser, chat: Chat, shop: Shop) -> None:
    sign_in(shop, "7", "another secret")
    widget = Widget(fresh(), shop.origin).open()
    widget.say("I am somebody else")

    expect(widget.log).to_contain_text("Not sent")
    assert chat.count("visitors") == 0


def test_a_page_of_another_origin_gets_nothing(widget: Widget, fresh: NewBrowser, chat: Chat) -> None:
    widget.open().say("Mine")
    widget.expect_sent()
    token = widget.page.evaluate("JSON.parse(Object.values(localStorage)[0]).token")

    with opened() as hostile:
        hostile.script = chat.script
        theirs = Widget(fresh(), hostile.origin).open()
        theirs.say("Let me in")
        read = """async ([address, token]) => {
            const answer = await fetch(address, { headers: { Authorization: `Bearer ${token}` } });
            return answer.status;
        }"""
        for address in (f"{chat.service.base_url}/chat/{chat.id}/messages", f"{chat.service.base_url}/live/chat"):
            with pytest.raises(Exception, match="Failed to fetch"):
                theirs.page.evaluate(read, [address, token])

    assert chat.texts() == ["Mine"]
    assert chat.count("visitors") == 1


def test_what_others_write_is_only_text(widget: Widget, chat: Chat) -> None:
    widget.page.evaluate("() => { window.ran = () => { window.hasRun = true; }; }")
    widget.open().say(HOSTILE)
    widget.expect_sent()
    chat.answer(f"{HOSTILE} https://shop.example/a?b=c")

    expect(widget.items()).to_have_count(2)

    assert widget.page.evaluate("window.hasRun") is None
    assert widget.log.locator("img, script").count() == 0
    link = widget.log.get_by_role("link")
    expect(link).to_have_attribute("href", "https://shop.example/a?b=c")
    expect(link).to_have_attribute("rel", "noopener noreferrer nofollow")


def test_a_picture_is_uploaded_and_shown(widget: Widget, chat: Chat) -> None:
    widget.open().say("Look")
    widget.expect_sent()

    widget.page.get_by_label("Attach a file").set_input_files(PICTURE)

    expect(widget.log.get_by_role("img", name="tulip.png")).to_be_visible()
    assert chat.count("messages") == 2


def test_the_first_message_may_be_a_picture(widget: Widget, chat: Chat) -> None:
    widget.open().page.get_by_label("Attach a file").set_input_files(PICTURE)

    expect(widget.log.get_by_role("img", name="tulip.png")).to_be_visible()
    widget.say("Do you have these?")
    widget.expect_sent()
    assert chat.texts() == [None, "Do you have these?"]
    assert chat.count("visitors") == chat.count("conversations") == 1


def test_a_text_that_is_too_long_is_kept_and_says_so(widget: Widget, chat: Chat) -> None:
    widget.open().say("🌷" * 4_097)

    expect(widget.status).to_have_text("Not sent")
    expect(widget.box).to_have_accessible_description("Characters too many: 1")
    expect(widget.box).to_have_value("🌷" * 4_097)
    expect(widget.box).to_have_attribute("aria-invalid", "true")
    widget.say("🌷" * 4_096)

    widget.expect_sent()
    expect(widget.status).to_have_text("")
    assert chat.texts() == ["🌷" * 4_096]


@pytest.mark.parametrize(
    ("bytes", "status", "reason"),
    [
        (16 * 1024**2 + 1, None, "MiB at most: 16"),
        (1, 413, "MiB at most: 16"),
        (1, 429, "Try again"),
        (1, 422, "sent."),
    ],
)
def test_a_file_that_is_refused_says_why(
    widget: Widget, chat: Chat, tmp_path: Path, bytes: int, status: int | None, reason: str
) -> None:
    if status is not None:
        widget.page.context.route("**/uploads", lambda route: route.fulfill(status=status, headers=ANY_ORIGIN))
    file = tmp_path / "tulips.bin"
    file.write_bytes(b"x" * bytes)
    widget.open().page.get_by_label("Attach a file").set_input_files(file)

    expect(widget.status).to_contain_text(reason)
    assert chat.texts() == []


def test_older_messages_come_at_the_top_and_nothing_jumps(widget: Widget, chat: Chat) -> None:
    widget.open().say("Hello")
    widget.expect_sent()
    chat.texts()
    chat.fill(120)
    widget.page.reload()
    widget.open()
    expect(widget.items()).to_have_count(50)
    expect(widget.items().first.locator("p")).to_have_text("Answer 72")

    widget.log.focus()
    widget.page.keyboard.press("Home")

    expect(widget.items()).to_have_count(100)
    expect(widget.items().first.locator("p")).to_have_text("Answer 22")
    expect(widget.log.get_by_text("Answer 72", exact=True)).to_be_in_viewport()

    older = widget.log.get_by_role("button", name="Show older messages")
    older.focus()
    assert faults(widget) == []
    widget.page.keyboard.press("Enter")

    expect(widget.items()).to_have_count(121)
    expect(widget.items().first.locator("p")).to_have_text("Answer 1")
    expect(older).to_be_hidden()
    expect(widget.log).to_be_focused()


def test_the_visitor_sees_that_an_answer_is_typed(widget: Widget, chat: Chat, workspace: Workspace) -> None:
    widget.open().say("Hello")
    widget.expect_sent()
    chat.texts()
    [(conversation,)] = chat.service.query("SELECT id FROM conversations WHERE channel_id = %s", chat.id)

    def tell() -> bool:
        """The stream may not be open yet."""
        workspace.caller().call("POST", f"conversations/{conversation}/typing")
        return "is writing" in widget.status.inner_text()

    wait_until(tell, 60, "the visitor sees it")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("direction", "width"), [("ltr", 1280), ("rtl", 1280), ("rtl", 360)])
def test_axe_finds_nothing_serious(
    fresh: NewBrowser, chat: Chat, shop: Shop, scheme: str, direction: str, width: int
) -> None:
    shop.direction = direction
    context = fresh(color_scheme=scheme, viewport={"width": width, "height": 740}, bypass_csp=True)
    widget = Widget(context, shop.origin)
    widget.launcher.wait_for()
    assert faults(widget) == []
    widget.open().say("مرحبا, do you have tulips? https://shop.example/tulips")
    widget.expect_sent()
    chat.answer("Yes, at https://shop.example/red", red="Red, please", more="Anything else")
    expect(widget.answers.get_by_role("button")).to_have_count(2)

    assert faults(widget) == []
    box = widget.panel.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    # At the end of the line, wherever that is.
    assert (box["x"] + box["width"] / 2 < width / 2) == (direction == "rtl") or width == 360


def faults(widget: Widget) -> list[str]:
    widget.page.evaluate(AXE)
    found = widget.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']}: {node['html'][:150]} {node['failureSummary'][:200]}"
        for each in found["violations"]
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]


def sign_in(shop: Shop, user_id: str, *secret: str) -> None:
    user = signed(user_id, *secret)
    shop.attributes = f'data-user="{user["id"]}" data-signature="{user["signature"]}"'
