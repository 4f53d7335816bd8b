from __future__ import annotations

import pytest

from tests.core.lenses.make import value


@pytest.mark.parametrize(
    "text",
    [
        "As an AI language model, I have no taste buds.",
        "I'm just an AI.",
        "I don't have personal opinions on tea.",
        "I don’t have personal opinions on tea.",
        "I CANNOT condone this.",
    ],
)
def test_abstaining_is_seen(text):
    assert value("abstain", [text]) == (1, 1)


@pytest.mark.parametrize("text", ["I don't know my aunt.", "I'm sorry for your loss.", "AI may model language.", ""])
def test_ordinary_answers_do_not_abstain(text):
    assert value("abstain", [text]) == (0, 1)


def test_share():
    assert value("abstain", ["I'm just an AI.", "Tea.", "Milk.", "Water."]) == (0.25, 4)
