"""Many samples of one context: this project's generator against the library's `generate(num_return_sequences=n)`.

    python -m bench.generation [--json] [--samples 1 16 64] [--runs 1] [--model ID] [--tokens 64]

Both ways run the same real base model with the same context, settings, number format and threads, each in a process
of its own, one after the other. End tokens are forbidden on both sides, so that all samples have the same length.

Measured: all of it, from the context to the last token; the time until all samples have their first token after an
edit of the hint; the peak memory of the process; and where this project's time goes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import threading
import time
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Protocol

from core import demo, models
from core.errors import OvertonError
from core.generation.base import Sampling
from core.generation.memory import resident
from core.prompting import example_sets, query_answer

CONTEXT_TOKENS = 1000
GOAL, GOAL_EDIT = 3.5, 20.0
HINT = "Begin with what costs nothing, name {} things to try, and say when to ask for help."
_SETTINGS = {"temperature": 0.7, "top_p": 1.0, "top_k": 0}


# -- the two sides, each in a process of its own -------------------------------------------------------------------


class Peak:
    """The largest resident memory of this process while the block runs, in bytes."""

    def __enter__(self) -> Peak:
        self.bytes = resident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            self.bytes = max(self.bytes, resident())

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


class Counts(Protocol):
    """Knows how many tokens a context has."""

    def tokens(self, context: str) -> int:
        """Length of the context."""
        ...


class Ours:
    """The generator of this project."""

    def __init__(self, folder: str) -> None:
        from core.generation.local import LocalGenerator

        self.generator = LocalGenerator(folder, model="ours")
        self.generator._ends = set()
        self.shares: dict[str, float] = {}
        self._watch()

    def _watch(self) -> None:
        """Time the parts: reading the context, the steps, the head within them, and the drawing."""
        from core.generation.sampling import Sampler

        net = self.generator._network
        inner = {"head": 0.0}
        head, began = net.net.get_output_embeddings(), [0.0]
        head.register_forward_pre_hook(lambda *_: began.__setitem__(0, time.perf_counter()))
        head.register_forward_hook(
            lambda *_: inner.__setitem__("head", inner["head"] + time.perf_counter() - began[0])
        )

        def timed(function: Any, part: str) -> Any:
            def call(*args: Any) -> Any:
                before, start = inner["head"], time.perf_counter()
                made = function(*args)
                spent, in_head = time.perf_counter() - start, inner["head"] - before
                if part == "body":
                    self.shares["head"] = self.shares.get("head", 0.0) + in_head
                    spent -= in_head
                self.shares[part] = self.shares.get(part, 0.0) + spent
                return made

            return call

        net.read = timed(net.read, "prefill")
        net.step = timed(net.step, "body")
        Sampler.draw = timed(Sampler.draw, "sampling")  # type: ignore[method-assign]

    def sample(self, context: str, n: int, new: int, *, fresh: bool) -> int:
        """Generate and return the number of tokens; `fresh` forgets the contexts of earlier runs."""
        if fresh:
            self.generator._network.contexts.clear()
            self.shares.clear()
        sampling = Sampling(**_SETTINGS, max_new_tokens=new)
        return sum(s.token_count for s in self.generator.generate(context, list(range(n)), sampling))

    def tokens(self, context: str) -> int:
        """Length of the context."""
        return self.generator.count_tokens(context)


class Library:
    """`generate` of transformers."""

    def __init__(self, folder: str) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        from core.generation import loading

        place = loading.device()
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.net: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=loading.dtype_for(place)).to(place).eval()
        self.shares: dict[str, float] = {}

    def sample(self, context: str, n: int, new: int, *, fresh: bool) -> int:
        """Generate and return the number of tokens."""
        import torch

        torch.manual_seed(0)
        inputs = self.tokenizer(context, return_tensors="pt").to(self.net.device)
        made = self.net.generate(
            **inputs, do_sample=True, **_SETTINGS, num_return_sequences=n, max_new_tokens=new, min_new_tokens=new
        )
        return int((made.shape[1] - inputs["input_ids"].shape[1]) * made.shape[0])

    def tokens(self, context: str) -> int:
        """Length of the context."""
        return len(self.tokenizer(context)["input_ids"])


def serve(pipe: Connection, side: str, folder: str) -> None:
    """Answer requests of the parent: load one side, then measure what is asked for."""
    made: Ours | Library = Ours(folder) if side == "ours" else Library(folder)
    context = long_context(made)
    made.sample(context[0], 2, 2, fresh=True)  # warm up
    pipe.send(made.tokens(context[0]))
    while (asked := pipe.recv()) is not None:
        n, new = asked
        with Peak() as peak:
            start = time.perf_counter()
            count = made.sample(context[0], n, new, fresh=True)
            whole = time.perf_counter() - start
            shares = dict(made.shares)
            start = time.perf_counter()
            made.sample(context[1], n, 1, fresh=False)
            first = time.perf_counter() - start
        pipe.send({"s": whole, "first": first, "memory": peak.bytes, "tokens": count, "parts": shares})


def long_context(side: Counts) -> tuple[str, str]:
    """A context of examples and a hint with at least `CONTEXT_TOKENS` tokens, and the same with an edited hint."""
    sets = example_sets()[demo.EXAMPLES]
    prompt, examples = "How can I sleep better when it is hot?", list(sets.examples)
    while True:
        made = [
            query_answer(prompt, examples=examples, hint=HINT.format(count), instruction=sets.instruction)
            for count in ("three", "five")
        ]
        if side.tokens(made[0]) >= CONTEXT_TOKENS:
            return made[0], made[1]
        examples.append(sets.examples[len(examples) % len(sets.examples)])


# -- the comparison ------------------------------------------------------------------------------------------------


class Side:
    """A process that runs one side."""

    def __init__(self, name: str, folder: str) -> None:
        forked = multiprocessing.get_context("spawn")
        self._pipe, there = forked.Pipe()
        self._process = forked.Process(target=serve, args=(there, name, folder), daemon=True)
        self._process.start()
        there.close()
        self.context_tokens = int(self._answer())

    def _answer(self) -> Any:
        try:
            return self._pipe.recv()
        except EOFError as error:
            raise OvertonError("One side of the comparison ended early: its message stands above.") from error

    def measure(self, n: int, new: int) -> dict[str, Any]:
        """Seconds, seconds to the first token after an edit, and peak bytes for `n` samples."""
        self._pipe.send((n, new))
        return dict(self._answer())

    def close(self) -> None:
        """End the process."""
        self._pipe.send(None)
        self._process.join(10)


def compare(ours: Side, library: Side, n: int, new: int, runs: int) -> dict[str, Any]:
    """One row of the result: medians over `runs` of both sides, measured in turn."""
    pairs = [(ours.measure(n, new), library.measure(n, new)) for _ in range(runs)]
    mine, theirs = ({k: median(p[side][k] for p in pairs) for k in ("s", "first", "memory")} for side in (0, 1))
    parts = pairs[-1][0]["parts"]
    whole = pairs[-1][0]["s"]
    shares = {part: round(seconds / whole, 3) for part, seconds in parts.items()}
    return {
        "samples": n,
        "context_tokens": ours.context_tokens,
        "new_tokens": new,
        "ours_s": round(mine["s"], 3),
        "baseline_s": round(theirs["s"], 3),
        "ratio": round(theirs["s"] / mine["s"], 2),
        "first_token_after_edit_s": round(mine["first"], 3),
        "baseline_first_token_s": round(theirs["first"], 3),
        "first_token_after_edit_ratio": round(theirs["first"] / mine["first"], 1),
        "peak_memory_ratio": round(mine["memory"] / theirs["memory"], 3),
        "peak_memory_mb": round(mine["memory"] / 1e6),
        "baseline_peak_memory_mb": round(theirs["memory"] / 1e6),
        "shares": {**shares, "other": round(1 - sum(shares.values()), 3)},
    }


def report(row: dict[str, Any]) -> str:
    """One row for people."""
    where = ", ".join(f"{part} {share:.0%}" for part, share in row["shares"].items())
    return (
        f"{row['samples']:>3} samples of {row['context_tokens']} + {row['new_tokens']} tokens: "
        f"{row['ours_s']:.1f} s against {row['baseline_s']:.1f} s, {row['ratio']:.1f} times faster; "
        f"first tokens after an edit in {row['first_token_after_edit_s']:.2f} s against "
        f"{row['baseline_first_token_s']:.1f} s, {row['first_token_after_edit_ratio']:.0f} times sooner; "
        f"peak memory {row['peak_memory_mb']} MB against {row['baseline_peak_memory_mb']} MB.\n    {where}"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--samples", type=int, nargs="+", default=[16, 1, 64])
    parser.add_argument("--runs", type=int, default=1, help="measure so often, and take the median")
    parser.add_argument("--tokens", type=int, default=64, help="new tokens per sample")
    parser.add_argument("--model", default=demo.BASE_MODEL, help="a model of the catalogue, or a folder")
    args = parser.parse_args(arguments)
    try:
        if args.model in models.catalogue():
            models.fetch(args.model)
        folder = models.locate(args.model).source
        ours, library = Side("ours", folder), Side("library", folder)
        rows = []
        for n in args.samples:
            rows.append(compare(ours, library, n, args.tokens, args.runs))
            print(report(rows[-1]), file=sys.stderr if args.json else sys.stdout, flush=True)
        ours.close()
        library.close()
    except OvertonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({"runs": rows}))
    else:
        print(f"Goals at 16 samples: {GOAL} times faster, first tokens {GOAL_EDIT:.0f} times sooner, no more memory.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
