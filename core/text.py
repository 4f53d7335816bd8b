"""Words and tokens: how a text is cut, once for all lenses.

Three ways of cutting, each local to a piece between blanks, so that every distinct piece of a corpus is cut once:

    words         pieces between blanks
    simple words  lower case, letters and digits, an apostrophe may join; pairs of characters where a script has
                  no blanks
    tokens        the rules of NLTK's word tokenizer after a sentence split of our own (no download); case is kept
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from core.stop_words import STOP_WORDS

__all__ = [
    "STOP_WORDS",
    "is_latin",
    "is_punctuation",
    "simple_words",
    "tokenize",
    "tokenize_pieces",
    "tokens",
    "words",
]

_SIMPLE_ASCII = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")
_LATIN = "a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff"
_SIMPLE_LATIN = re.compile(rf"[{_LATIN}0-9]+(?:'[{_LATIN}]+)?")
_LATIN_LETTER = re.compile(f"[{_LATIN}]")
# Thai, Lao, Burmese, Khmer, kana, Han: scripts that put no blanks between words.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")

# A piece that ends in one full stop, perhaps with closing quotes or brackets behind it.
_FULL_STOP = re.compile("(.*[^.])\\.([\\])}>\"'»”’]*)", re.DOTALL)
_OPENING = "([{<\"'“‘«*_"
_TITLES = "mr mrs ms dr prof st jr sr gen gov sen rep lt col capt sgt rev hon ph.d"
_MONTHS = "jan feb mar apr jun jul aug sep sept oct nov dec"
_SHORTENED = "vs e.g i.e cf ca viz al approx fig est dept ave blvd pp ed eds inc ltd co corp vol"
_ABBREVIATIONS = frozenset(f"{_TITLES} {_MONTHS} {_SHORTENED}".split())
_INITIALS = re.compile(r"[A-Za-z](\.[A-Za-z])*")
_MARK = "\ue000"  # stands between pieces while many are cut in one go; private use, so no rule touches it
_BATCH = 4000  # pieces cut in one go: few calls, and none of them long
_LONGEST = 1000  # characters; a longer piece is no word, and a rule that runs over it might not come back
_PLAIN = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Pieces between blanks."""
    return text.split()


@cache
def _simple_unicode() -> re.Pattern[str]:
    # `\w` leaves out combining marks, without which Hindi or Tamil words fall to pieces.
    marks = "".join(c for c in map(chr, range(0x300, 0x1E900)) if unicodedata.category(c)[0] == "M")
    letter = rf"(?:[^\W_{_UNSPACED}]|[{marks}])"
    return re.compile(rf"([{_UNSPACED}]+)|{letter}+(?:'[a-z]+)?")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


def _pairs(run: str) -> list[str]:
    run = "".join(c for c in run if c.isalnum() or unicodedata.category(c)[0] == "M")
    return [run[i : i + 2] for i in range(len(run) - 1)] if len(run) > 1 else [run] * len(run)


def is_latin(text: str) -> bool:
    """Whether no other script has more letters in the text than the Latin one; so is a text without letters."""
    if text.isascii():
        return True
    low = text.lower()
    latin = len(_LATIN_LETTER.findall(low))
    return 2 * latin >= sum(map(str.isalpha, low))


def simple_words(text: str, *, latin: bool | None = None) -> list[str]:
    """Lower-case words without punctuation; overlapping pairs of characters in scripts without blanks.

    In a text in Latin script, letters of other scripts are no words: they are rare there, and mostly debris.
    `latin` is given where `text` is a piece of a text whose script is known.
    """
    low = text.lower()
    if low.isascii():
        return _SIMPLE_ASCII.findall(low)
    low = unicodedata.normalize("NFC", low.replace("’", "'"))
    if is_latin(low) if latin is None else latin:
        return _SIMPLE_LATIN.findall(low)
    found: list[str] = []
    for match in _simple_unicode().finditer(low):
        found.extend(_pairs(match[0]) if match[1] else (match[0],))
    return found


def is_punctuation(token: str) -> bool:
    """Whether a token is made of ASCII punctuation alone."""
    return _PUNCTUATION.issuperset(token)


@cache
def _nltk() -> Any:
    from nltk.tokenize.destructive import NLTKWordTokenizer

    return NLTKWordTokenizer()


def stop_kind(piece: str) -> int:
    """What a piece between blanks ends with.

    0: no single full stop. 1: a full stop that ends a sentence. 2: a number's, which ends one unless a small
    letter follows. 3: that of an abbreviation or initial, which is split off at the end of a text alone.
    """
    match = _FULL_STOP.fullmatch(piece)
    if match is None:
        return 0
    core = match[1].lstrip(_OPENING)
    if core.isdecimal():
        return 2
    return 3 if core.lower() in _ABBREVIATIONS or _INITIALS.fullmatch(core) else 1


def ends_sentence(kind: int, following: str | None) -> bool:
    """Whether the full stop of a piece of this `stop_kind` is split off before the piece that follows."""
    return kind > 0 and (following is None or kind == 1 or (kind == 2 and not following[0].islower()))


def tokenize_pieces(
    pieces: Sequence[str], closing: Sequence[bool], latin: Sequence[bool] | None = None
) -> list[list[str]]:
    """The tokens of each piece.

    `closing` says whether its full stop ends a sentence, `latin` whether it comes from a text in Latin script;
    elsewhere runs of a script without blanks are cut further.
    """
    found: list[list[str]] = []
    for start in range(0, len(pieces), _BATCH):
        batch = zip(pieces[start : start + _BATCH], closing[start : start + _BATCH], strict=True)
        text = "".join(f" {_MARK} {_spread(piece, close)}" for piece, close in batch)
        for token in _nltk().tokenize(text):
            if token == _MARK:
                found.append([])
            elif token.isascii() or (latin is not None and latin[len(found) - 1]) or not _unspaced().search(token):
                found[-1].append(token)
            else:
                found[-1].extend(simple_words(token, latin=False))
    return found


def _spread(piece: str, close: bool) -> str:
    piece = piece.replace(_MARK, "")
    if len(piece) > _LONGEST:
        return " ".join(_PLAIN.findall(piece))
    match = _FULL_STOP.fullmatch(piece) if close else None
    return f"{match[1]} . {match[2]}" if match else piece


def tokenize(text: str) -> list[str]:
    """All tokens of one text, punctuation among them."""
    pieces = text.split()
    following = [*pieces[1:], None][: len(pieces)]
    closing = [ends_sentence(stop_kind(piece), after) for piece, after in zip(pieces, following, strict=True)]
    latin = [is_latin(text)] * len(pieces)
    return [token for group in tokenize_pieces(pieces, closing, latin) for token in group]


def tokens(text: str) -> list[str]:
    """The tokens of one text without those that are punctuation alone; case is kept."""
    return [token for token in tokenize(text) if not is_punctuation(token)]
