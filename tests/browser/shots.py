"""`python -m tests.browser.shots`: pictures of every page on one sheet, .browser/shots/index.html.

Each page in light and dark, at 390 and 1440 pixels, in an empty, a usual and a huge workspace. With `--docs` it makes
the pictures of a page of docs instead, in docs/pictures.
"""

from __future__ import annotations

import html
import shutil
import sys
from argparse import ArgumentParser
from itertools import product
from pathlib import Path

from playwright.sync_api import Browser

from tests.browser import TOOLS, pictures, seeds
from tests.browser.chromium import chromium
from tests.browser.services import Service, Workspace, serving
from tests.browser.walks import walk

TARGET = TOOLS / "shots"
SCHEMES = ("light", "dark")
WIDTHS = (390, 1440)
MOST_HEIGHT = 2400
STYLE = (
    "body { font: 14px sans-serif; background: #888; } section { display: flex; gap: 12px; align-items: flex-start;"
    " margin-bottom: 24px; } figure { margin: 0; } img { border: 1px solid #000; } .n { width: 195px; }"
    " .w { width: 480px; } h2 { margin: 0 0 4px; }"
)
Taken = dict[str, list[Path]]


def main() -> int:
    """Takes the pictures and prints where the sheet is."""
    parser = ArgumentParser(prog="python -m tests.browser.shots")
    parser.add_argument("kind", nargs="*", choices=[[], "empty", "usual", "huge"], help="of workspace; all of them")
    parser.add_argument("--png", action="store_true", help="the sheet as pictures, too, one for each page")
    parser.add_argument("--docs", choices=pictures.PICTURES, help="make the pictures of this page of docs instead")
    arguments = parser.parse_args()
    if arguments.docs:
        with serving() as service, chromium() as browser:
            print(*pictures.take(service, browser, arguments.docs), sep="\n")
        return 0
    shutil.rmtree(TARGET, ignore_errors=True)
    taken: Taken = {}
    amiss: list[str] = []
    with serving() as service, chromium() as browser:
        makers = {"empty": lambda service: service.open("New shop"), "usual": seeds.usual, "huge": seeds.huge}
        for kind in arguments.kind or makers:
            workspace = makers[kind](service)
            for scheme, width in product(SCHEMES, WIDTHS):
                try:
                    _take(service, browser, workspace, kind, scheme, width, taken)
                except AssertionError as error:
                    amiss.append(f"{kind} {scheme} {width}: {error}")
        _sheet(browser, taken, arguments.png)
    print(TARGET / "index.html", *amiss, sep="\n")
    return 1 if amiss else 0


def _take(
    service: Service, browser: Browser, workspace: Workspace, kind: str, scheme: str, width: int, taken: Taken
) -> None:
    viewport = {"width": width, "height": 900}
    for address, page in walk(
        service, browser, workspace, viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
    ):
        name = "".join(character if character.isalnum() else "-" for character in address.name)
        path = TARGET / kind / f"{name}-{scheme}-{width}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        height = min(MOST_HEIGHT, int(page.evaluate("document.documentElement.scrollHeight")))
        page.screenshot(path=path, clip={"x": 0, "y": 0, "width": width, "height": height}, full_page=True)
        taken.setdefault(f"{address.name} ({kind})", []).append(path)


def _sheet(browser: Browser, taken: Taken, as_pictures: bool) -> None:
    sections = {
        name: f"<h2>{html.escape(name)}</h2><section>"
        + "".join(
            f"<img class={'n' if '-390' in path.name else 'w'} src='{path.relative_to(TARGET)}'>" for path in paths
        )
        + "</section>"
        for name, paths in sorted(taken.items())
    }
    head = f"<!doctype html><meta charset=utf-8><title>Pages</title><style>{STYLE}</style>"
    (TARGET / "index.html").write_text(head + "".join(sections.values()))
    if as_pictures:
        page = browser.new_page(viewport={"width": 1420, "height": 600})
        for number, section in enumerate(sections.values()):
            single = TARGET / f"sheet-{number:03}.html"
            single.write_text(head + section)
            page.goto(single.as_uri())
            page.screenshot(path=single.with_suffix(".png"), full_page=True)


if __name__ == "__main__":
    sys.exit(main())
