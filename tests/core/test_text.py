"""Words, simple words and tokens."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import text
from core.lenses.features import Features


def test_the_stop_words_are_those_of_the_release(reference):
    assert set(reference["about"]["stopwords_english"]) == text.STOP_WORDS


def test_words_are_pieces_between_blanks():
    assert text.words(" one\ttwo,\n\nthree ") == ["one", "two,", "three"]
    assert text.words(" \n ") == []


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("Don't SHOUT, it's 10.5!", ["don't", "shout", "it's", "10", "5"]),
        ("don’t", ["don't"]),
        ("snake_case and 'quoted'", ["snake", "case", "and", "quoted"]),
        ("Café Übermut", ["café", "übermut"]),
        ("cafe\u0301", ["café"]),
        ("Привет, мир!", ["привет", "мир"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("한국어 단어", ["한국어", "단어"]),
        ("お茶を。飲む", ["お茶", "茶を", "飲む"]),
        ("茶", ["茶"]),
        ("สวัสดี ครับ", ["สว", "วั", "ัส", "สด", "ดี", "คร", "รั", "ับ"]),
        ("お茶をtea飲む", ["お茶", "茶を", "tea", "飲む"]),
        ("The word for tea is 茶.", ["the", "word", "for", "tea", "is"]),
        ("?! …", []),
    ],
)
def test_simple_words(given, expected):
    assert text.simple_words(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("The tea isn't hot.", ["The", "tea", "is", "n't", "hot"]),
        ("It's Ann's.", ["It", "'s", "Ann", "'s"]),
        ("Hot tea. Cold milk", ["Hot", "tea", "Cold", "milk"]),
        ('He said "no." Then left.', ["He", "said", "no", "Then", "left"]),
        ("Mr. Hill came at 3.5 p.m. sharp", ["Mr.", "Hill", "came", "at", "3.5", "p.m.", "sharp"]),
        ("1. Boil\n2. pour", ["1", "Boil", "2.", "pour"]),
        ("I cannot, so (no)!", ["I", "can", "not", "so", "no"]),
        ("Visit the U.S.", ["Visit", "the", "U.S"]),
        ("お茶を飲む", ["お茶", "茶を", "を飲", "飲む"]),
        ("", []),
    ],
)
def test_tokens(given, expected):
    assert text.tokens(given) == expected


def test_tokens_are_those_of_nltk_within_a_sentence():
    from nltk.tokenize import NLTKWordTokenizer

    sentence = (
        "\"Well,\" she said -- it's 50% off (or $3.20), can't you see? It's O'Neil's 'best' deal; don't wait..."
    )
    assert text.tokenize(sentence) == NLTKWordTokenizer().tokenize(sentence)


def test_pieces_of_absurd_length_are_cut_in_time():
    start = time.perf_counter()
    for hostile in ("'" * 300_000, "a." * 200_000, '"(' * 200_000, "\ue000 \ue000x"):
        text.tokens(hostile)
        text.simple_words(hostile)
    assert text.tokens("\ue000 \ue000x y") == ["x", "y"]
    assert time.perf_counter() - start < 10


@given(st.lists(st.text(alphabet="aB1 .\n\t'\"(),!é’茶ж"), max_size=6))
def test_many_texts_at_once_are_cut_as_each_alone(texts):
    features = Features(texts)
    for ragged, names, cut in (
        (features.simple, features._simple[1], text.simple_words),
        (features.tokens, features._tokens[1], text.tokens),
    ):
        rows = [[names[i] for i in ragged.ids[a:b]] for a, b in zip(ragged.offsets, ragged.offsets[1:], strict=False)]
        assert rows == [cut(t) for t in texts]
    assert features.pieces.lengths.tolist() == [len(t.split()) for t in texts]
