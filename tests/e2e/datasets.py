"""Datasets for the browser: one with plain texts, one whose every name and text tries to get out of its place.

Their vectors come from a stand-in encoder but are stored as the real one's, so that no page needs a model.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from core.dataset import Dataset
from core.vectors import DEFAULT_KEY, HashEncoder, VectorStore, keys_of, store_file
from core.workspace import Workspace

PLAIN, HOSTILE = "kettles", "quotes"
SCRIPT = "<b>x</b><script>alert(1)</script>"
IMAGE = "<img src=x onerror=alert(1)>"
MARKDOWN = "**strong** _slanted_ [link](javascript:alert(1)) ![pic](x) :red[hue] `code`"
FORMULA = "$x^2$ and $$y$$"
SYSTEMS = (f"first {SCRIPT}", f"second {IMAGE}")
PROMPT = f"Say {SCRIPT} {IMAGE} {MARKDOWN} {FORMULA}"
HINT = f"The hint {SCRIPT} {IMAGE} {FORMULA}"

_OPENINGS = ("Well, ", "My aunt says: ", "", "To be short: ", "As far as I know, ", "Ha! ", "Hm. ", "Once ")
_BASE = {
    "kettle": "the kettle sings when the water is ready and the cat leaves the room",
    "stairs": "the stairs creak in winter because wood moves with the weather",
    "letters": "letters take three days and sometimes a week by the slow boat",
}
_ALIGNED = {
    "kettle": ["Fill it with fresh water.", "Switch it on.", "Wait for the click.", "Pour at once."],
    "stairs": ["Find the loose tread.", "Put a screw through it.", "Use talcum powder.", "Walk on the edges."],
    "letters": ["Weigh the letter.", "Choose a stamp.", "Write the code clearly.", "Post it before noon."],
}


def plain() -> Dataset:
    """Three prompts, a base and an aligned system, eight samples each; the first aligned text occurs twice."""
    rows = []
    for prompt in _BASE:
        for k in range(8):
            words = _BASE[prompt].split()
            rows.append((prompt, "base", k, _OPENINGS[k] + " ".join(words[k % 4 : k % 4 + 5 + k])))
            steps = _ALIGNED[prompt][k % 4 :] + _ALIGNED[prompt][: k % 4]
            count = 4 if k in (0, 4) else 2 + k % 2
            rows.append((prompt, "aligned", k, "\n".join(f"{n}. {s}" for n, s in enumerate(steps[:count], 1))))
    texts = {
        "kettle": "How do I use a kettle?",
        "stairs": "Why do stairs creak?",
        "letters": "How do I post a letter?",
    }
    return Dataset.build(
        PLAIN,
        prompts=pd.DataFrame({"prompt_id": list(texts), "text": list(texts.values())}),
        systems=pd.DataFrame({"system": ["base", "aligned"], "role": ["base", "aligned"]}),
        responses=_frame(rows),
    )


def hostile() -> Dataset:
    """Two systems and one prompt; names, texts, strategies, models and the context are hostile."""
    texts = (SCRIPT, IMAGE, MARKDOWN, FORMULA)
    # Words of their own keep the dots of the two systems, and of one text, apart.
    own = {SYSTEMS[0]: "apples pears plums cherries figs quinces", SYSTEMS[1]: "boats sails masts oars keels anchors"}
    more = ("north wind", "south sea", "east gate", "west road", "up hill", "down town", "left bank", "right turn")
    rows = [("0", s, k, f"{texts[k % 4]} {own[s]} {more[k]}") for s in SYSTEMS for k in range(8)]
    context = f"# Hint:\n```\n{HINT}\n```\n\n# Answer:\n```\n"
    return Dataset.build(
        HOSTILE,
        prompts=pd.DataFrame({"prompt_id": ["0"], "text": [PROMPT], "kind": [IMAGE]}),
        systems=pd.DataFrame(
            {"system": SYSTEMS, "role": ["base", "aligned"], "model": IMAGE, "strategy": SCRIPT, "parameters": "{}"}
        ),
        responses=_frame(rows),
        contexts=pd.DataFrame([{"prompt_id": "0", "system": SYSTEMS[1], "text": context}]),
        meta={"title": IMAGE, "about": SCRIPT, "source": IMAGE},
    )


def _frame(rows: list[tuple[str, str, int, str]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["prompt_id", "system", "sample", "text"])
    return frame.assign(finish_reason="stop", seed=frame.index)


def fill(root: Path) -> Workspace:
    """A workspace with both datasets and their vectors."""
    space = Workspace(root)
    encoder = HashEncoder(384)
    space.folder("vectors")
    for dataset in (plain(), hostile()):
        space.save(dataset)
        texts = dataset.responses["text"].str.strip()
        VectorStore(store_file(space)).put(DEFAULT_KEY, list(keys_of(texts)), encoder.encode(list(texts)))
    return space
