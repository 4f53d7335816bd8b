"""A model's output is hostile text: here it is made safe for the places where it may stand."""

from __future__ import annotations

import html
import re
import textwrap

EXCERPT = 160
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&^=@])")
# What Streamlit's Markdown turns into links, icons, emoji or arrows even where every character is escaped: it looks
# for these in the finished text. An invisible word joiner in their middle leaves them as they are.
_LIVELY = re.compile(
    r":(?=//|[\w+\-/]+:)|www(?=\.)|@(?=[-\w])|(?<!\S)(?:<(?=[-=])|-(?=[->])|[>~](?==))", re.IGNORECASE
)
_JOINER = "\u2060"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Control characters and marks that turn the writing direction become visible substitutes."""
    return _CONTROL.sub("\ufffd", text)


def literal(text: str, limit: int = 200) -> str:
    """Text for a Markdown place (a label, a caption): every special character escaped, on one line."""
    line = " ".join(visible(text).split())
    if len(line) > limit:
        line = line[: limit - 1] + "…"
    return escaped(line)


def escaped(text: str) -> str:
    """Text in which Markdown and Streamlit find nothing to render; what it does with blanks is left to it."""
    still = _LIVELY.sub(lambda found: found[0] + _JOINER, text)
    return _SPECIAL.sub(r"\\\1", still)


def excerpt(text: str, limit: int = EXCERPT) -> str:
    """The beginning of a text on one line, at most `limit` characters."""
    line = " ".join(visible(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def hover(text: str, *, width: int = 46, limit: int = EXCERPT) -> str:
    """An excerpt for a plotly hover box: at most `limit` characters, wrapped, with nothing that plotly renders."""
    lines = textwrap.wrap(excerpt(text, limit), width, break_long_words=True) or ["(empty)"]
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def plain(text: str, limit: int = 60) -> str:
    """A short name for a plotly title, legend or axis, which would otherwise render tags."""
    return html.escape(excerpt(text, limit), quote=False)
