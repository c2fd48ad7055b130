"""The widget of the web chat as it is served: `python -m tests.widget` makes it of its sources."""

from __future__ import annotations

import json
from pathlib import Path

import minify

FOLDER = Path(__file__).parent.parent / "app" / "api" / "widget"
SERVED = FOLDER / "chat.min.js"


def minified() -> str:
    """A script in which `FACTS` stands for the facts about a channel."""
    style = minify.string("text/css", (FOLDER / "chat.css").read_text())
    code = "\n".join((FOLDER / name).read_text() for name in ("session.js", "chat.js"))
    whole = f'((config) => {{\n"use strict";\nconst css = {json.dumps(style)};\n{code}\n}})(FACTS);'
    made: str = minify.string("text/javascript", whole)
    return made


if __name__ == "__main__":
    SERVED.write_text(minified())
