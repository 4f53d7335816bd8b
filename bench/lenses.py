"""Time of all lexical lenses over a dataset, against a straightforward implementation, pair by pair.

    python -m bench.lenses [--json] [PATH]

PATH is a file or folder that can be imported (a dataset folder of the authors' release, say) or the name of a
dataset; without it the shipped demonstration is taken, or made-up texts. Both ways must give equal results.
The straightforward way is timed twice: each lens cutting its texts itself, and with every text cut only once.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from core import lenses, text
from core.dataset import Dataset
from core.errors import OvertonError
from core.lenses.abstain import PHRASES
from core.lenses.features import Features
from core.lenses.jaccard import pair_means
from core.stop_words import STOP_WORDS
from core.workspace import Workspace

GOAL = 10.0
MANY = 2170
Cut = Callable[[str], Sequence[str]]


# -- the straightforward way ---------------------------------------------------------------------------------------


def mean_jaccard(bags: Sequence[set[str]]) -> float:
    """Mean over all pairs of sets that are not both empty."""
    found = [len(a & b) / len(a | b) for a, b in combinations(bags, 2) if a or b]
    return float(np.mean(found)) if found else np.nan


def distinct(rows: Sequence[Sequence[str]], n: int) -> float:
    """Different n-grams divided by all."""
    grams = [tuple(row[i : i + n]) for row in rows for i in range(len(row) - n + 1)]
    return len(set(grams)) / len(grams) if grams else np.nan


def is_numbered(response: str) -> bool:
    """Lines begin "1. " and then "2. "."""
    expected = 1
    for line in response.strip().split("\n"):
        expected += line.startswith(f"{expected}. ")
    return expected > 2


def is_bulleted(response: str) -> bool:
    """Two lines begin "- "."""
    return sum(line.startswith("- ") for line in response.strip().split("\n")) >= 2


def abstains(response: str) -> bool:
    """One of the phrases occurs."""
    low = response.lower().replace("’", "'")
    return any(phrase in low for phrase in PHRASES)


def straightforward(simple: Cut, tokens: Cut) -> dict[str, Callable[[list[str]], float]]:
    """Each lexical lens as a function of the texts of one distribution."""

    def bags(cut: Cut, first: int | None) -> Callable[[list[str]], float]:
        return lambda texts: mean_jaccard([set(cut(t)[:first]) - STOP_WORDS for t in texts])

    def grams(n: int, first: int | None) -> Callable[[list[str]], float]:
        return lambda texts: distinct([[w.lower() for w in tokens(t)[:first]] for t in texts], n)

    def share(holds: Callable[[str], Any]) -> Callable[[list[str]], float]:
        return lambda texts: float(np.mean([holds(t) for t in texts])) if texts else np.nan

    found = {
        "words": share(lambda t: len(t.split())),
        "numbered_list": share(is_numbered),
        "bullet_list": share(is_bulleted),
        "list_share": share(lambda t: is_numbered(t) or is_bulleted(t)),
        "abstain": share(abstains),
    }
    for end, first in (("", None), ("_first50", 50)):
        found[f"pairwise_jaccard_simple{end}"] = bags(simple, first)
        found[f"pairwise_jaccard{end}"] = bags(tokens, first)
        found |= {f"distinct_{n}{end}": grams(n, first) for n in (1, 2, 3)}
    return found


def run_straightforward(dataset: Dataset, *, keep: bool) -> dict[str, dict[tuple[str, str], float]]:
    """Value by lens and (prompt, system); with `keep`, each text is cut only once a way."""
    wrap: Callable[[Cut], Cut] = lru_cache(maxsize=None) if keep else (lambda cut: cut)
    functions = straightforward(wrap(text.simple_words), wrap(text.tokens))
    rows = dataset.usable_responses.groupby(["prompt_id", "system"], sort=False)["text"]
    groups = {key: texts.tolist() for key, texts in rows}
    return {lens: {key: f(texts) for key, texts in groups.items()} for lens, f in functions.items()}


# -- datasets ------------------------------------------------------------------------------------------------------


def made_up(prompts: int = 50, systems: int = 28, samples: int = 5, length: int = 250) -> Dataset:
    """A dataset of the size of a release dataset, of made-up words."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" if i % 7 else f"W{i}," for i in range(30_000)])
    words[:40] = sorted(STOP_WORDS)[:40]
    names = [f"system {k}" for k in range(systems)]
    keys = [(str(p), s, k) for p in range(prompts) for s in names for k in range(samples)]
    responses = pd.DataFrame(keys, columns=["prompt_id", "system", "sample"])
    responses["text"] = [". ".join(" ".join(_some(words, length // 5, rng)) for _ in range(5)) for _ in keys]
    table = pd.DataFrame({"prompt_id": [str(p) for p in range(prompts)], "text": "?"})
    return Dataset.build(
        "made up", prompts=table, systems=pd.DataFrame({"system": names, "role": "other"}), responses=responses
    )


def _some(words: np.ndarray[Any, Any], n: int, rng: np.random.Generator) -> list[str]:
    return words[np.minimum(rng.zipf(1.2, n), len(words)) - 1].tolist()


def chosen(what: str | None) -> Dataset:
    """The dataset that the argument names."""
    if what is not None and Path(what).exists():
        from core.readers import read

        return read(what)[0][0]
    workspace = Workspace()
    if what is not None:
        return workspace.load(what)
    shipped = [name for name in workspace.names() if workspace.is_shipped(name)]
    return workspace.load(shipped[0]) if shipped else made_up()


# -- timing --------------------------------------------------------------------------------------------------------


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and the result."""
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


def assert_equal(scores: pd.DataFrame, plain: dict[str, dict[tuple[str, str], float]]) -> None:
    """Stop where one value differs."""
    for lens, rows in scores.groupby("lens", sort=False):
        keys = zip(rows["prompt_id"], rows["system"], strict=True)
        expected = [plain[str(lens)].get(key, np.nan) for key in keys]
        np.testing.assert_allclose(rows["value"].to_numpy(), expected, rtol=1e-9, err_msg=str(lens))


def compare(dataset: Dataset) -> dict[str, Any]:
    """Times of the lenses and of both straightforward ways."""
    ids = [lens.id for lens in lenses.LENSES.values() if not lens.needs_vectors]
    text.tokens("Loads the tokenizer.")  # once a process, for both

    def fresh() -> pd.DataFrame:
        return lenses.measure(replace(dataset, responses=dataset.responses.copy()), ids)  # nothing cut before

    runs = [timed(fresh) for _ in range(3)]
    each, plain = timed(lambda: run_straightforward(dataset, keep=False))
    once, again = timed(lambda: run_straightforward(dataset, keep=True))
    assert_equal(runs[0][1], plain)
    assert_equal(runs[0][1], again)
    seconds = median(run[0] for run in runs)
    return {
        "dataset": dataset.name,
        "responses": int(dataset.usable.sum()),
        "lenses": len(ids),
        "seconds": seconds,
        "straightforward_seconds": each,
        "straightforward_cut_once_seconds": once,
        "ratio": each / seconds,
        "ratio_cut_once": once / seconds,
    }


def many_pairs() -> dict[str, Any]:
    """One pairwise measure over many texts in one group."""
    rng = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(20_000)])
    texts = [" ".join(_some(words, 120, rng)) for _ in range(MANY)]
    group = np.zeros(MANY, dtype=np.int64)
    seconds, (value, pairs) = timed(lambda: pair_means(Features(texts).simple_bags(), group, 1))
    plain, expected = timed(lambda: mean_jaccard([set(text.simple_words(t)) - STOP_WORDS for t in texts]))
    np.testing.assert_allclose(value[0], expected, rtol=1e-9)
    return {"texts": MANY, "pairs": int(pairs[0]), "seconds": seconds, "straightforward_seconds": plain}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark; 0 where the goal is met, 1 where not."""
    parser = argparse.ArgumentParser(prog="python -m bench.lenses", description=__doc__)
    parser.add_argument("path", nargs="?", metavar="PATH", help="what to import, or the name of a dataset")
    parser.add_argument("--json", action="store_true", help="print JSON")
    args = parser.parse_args(argv)
    try:
        dataset = chosen(args.path)
    except OvertonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    result = {**compare(dataset), "goal": GOAL, "many": many_pairs()}
    if args.json:
        print(json.dumps(result, indent=1))
    else:
        many = result["many"]
        print(f"{result['lenses']} lexical lenses over {result['responses']:,} responses of {result['dataset']}:")
        print(f"  {result['seconds']:.2f} s; pair by pair {result['straightforward_seconds']:.2f} s")
        print(f"  {result['ratio']:.1f} times faster, equal results (goal: at least {GOAL:.0f})")
        print(f"  {result['ratio_cut_once']:.1f} times faster than pair by pair with every text cut only once")
        print(f"{many['texts']:,} texts, {many['pairs']:,} pairs in one measure:")
        print(f"  {many['seconds']:.2f} s; pair by pair {many['straightforward_seconds']:.2f} s")
    return 0 if result["ratio"] >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())
