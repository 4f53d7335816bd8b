"""Words that systems have in common, and how they are marked in a text that stays literal."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from components.text import escaped, visible
from core.text import STOP_WORDS, is_latin, simple_words

_RUN = re.compile(r"\w+(?:['’]\w+)*")
_BLANKS = re.compile(r"^ +| {2,}", re.MULTILINE)
_EMPTY = re.compile(r"^$", re.MULTILINE)
_HARD = "\u00a0"  # a blank that Markdown does not fold


@dataclass(frozen=True)
class Shared:
    """Words in common, the most frequent first; `needed` of `groups` must hold a word.

    A group is a system, or where there is only one system, a response.
    """

    words: tuple[str, ...]
    needed: int
    groups: int


def _content(text: str) -> set[str]:
    return {w for w in simple_words(text) if w not in STOP_WORDS and not w.isdigit()}


def shared_words(texts: Mapping[str, Sequence[str]], prompt: str = "") -> Shared:
    """Words that occur in responses of most systems (more than half, at least two).

    With one system alone: in most of its responses. Little words, numbers and the prompt's own words are left out.
    """
    per_system = [[_content(text) for text in own] for own in texts.values() if len(own)]
    responses = [words for own in per_system for words in own]
    groups = [set().union(*own) for own in per_system] if len(per_system) > 1 else responses
    needed = max(2, len(groups) // 2 + 1)
    held = Counter(word for group in groups for word in group)
    often = Counter(word for words in responses for word in words)
    asked = set(simple_words(prompt))
    found = [word for word, n in held.items() if n >= needed and word not in asked]
    return Shared(tuple(sorted(found, key=lambda w: (-often[w], w))), needed, len(groups))


def spans(text: str, words: frozenset[str]) -> list[tuple[int, int]]:
    """Where the words stand in a text: (start, end) in order, without overlap."""
    latin = is_latin(text)
    found: list[tuple[int, int]] = []
    for run in _RUN.finditer(text):
        names = simple_words(run[0], latin=latin)
        if len(names) == 1 and names[0] in words:
            found.append(run.span())
        elif len(names) > 1:
            found.extend(_inside(text, run.start(), run.end(), names, words))
    return found


def _inside(text: str, start: int, end: int, names: list[str], words: frozenset[str]) -> list[tuple[int, int]]:
    """Words within one run: parts that underscores join, or pairs of characters in scripts without blanks."""
    found: list[tuple[int, int]] = []
    low = text[start:end].lower()
    if len(low) != end - start:  # lower case is longer than the text: places would not fit
        return found
    place = 0
    for name in names:
        at = low.find(name, place)
        if at < 0:
            continue
        place = at + 1
        if name not in words:
            continue
        one = (start + at, start + at + len(name))
        if found and one[0] <= found[-1][1]:
            found[-1] = (found[-1][0], one[1])
        else:
            found.append(one)
    return found


def _laid_out(text: str) -> str:
    """Blanks and empty lines that Markdown would fold become ones that it keeps."""
    shown = visible(text).expandtabs(4).strip("\n").rstrip()
    shown = _BLANKS.sub(lambda run: _HARD * len(run[0]), shown)
    return _EMPTY.sub(_HARD, shown)


def _safe(text: str) -> str:
    return escaped(text).replace("\n", "\\\n")


def marked(text: str, words: Iterable[str]) -> str:
    """A text as Markdown that shows it literally, line breaks and all, with the given words on a tinted ground."""
    shown = _laid_out(text)
    made, place = "", 0
    for start, end in spans(shown, frozenset(words)):
        made += f"{_safe(shown[place:start])}:primary-background[{escaped(shown[start:end])}]"
        place = end
    return made + _safe(shown[place:])
