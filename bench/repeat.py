"""Do the same seeds give the same texts? In other batches, with other threads, after other contexts, in float32.

    python -m bench.repeat [--json] [--model ID] [--samples 32] [--tokens 64]

The baseline is one batch of all samples. Floating-point sums may come out otherwise where the work is divided
otherwise; a text then parts ways where two tokens were almost equally likely. This measures how often.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from bench.generation import long_context
from core import demo, models
from core.errors import OvertonError
from core.generation.base import Sample, Sampling
from core.generation.local import LocalGenerator


class _Counter:
    """What `long_context` needs to know of a model."""

    def __init__(self, generator: LocalGenerator) -> None:
        self._generator = generator

    def tokens(self, context: str) -> int:
        """Length of the context."""
        return self._generator.count_tokens(context)


def run(generator: LocalGenerator, context: str, seeds: Sequence[int], sampling: Sampling) -> list[Sample]:
    """Samples in the order of the seeds."""
    return sorted(generator.generate(context, seeds, sampling), key=lambda sample: sample.index)


def in_batches(
    generator: LocalGenerator, context: str, seeds: Sequence[int], sampling: Sampling, size: int
) -> list[Sample]:
    """The same samples, `size` at a time."""
    groups = [seeds[k : k + size] for k in range(0, len(seeds), size)]
    return [sample for group in groups for sample in run(generator, context, group, sampling)]


def equal(one: Sequence[Sample], other: Sequence[Sample]) -> tuple[int, float]:
    """How many texts are equal, and the mean share of tokens before the first difference."""
    shares = []
    for a, b in zip(one, other, strict=True):
        assert a.tokens is not None and b.tokens is not None
        pairs = list(zip(a.tokens.ids, b.tokens.ids, strict=False))
        same = next((k for k, (x, y) in enumerate(pairs) if x != y), len(pairs))
        shares.append(same / max(1, len(a.tokens.ids), len(b.tokens.ids)))
    return sum(a.text == b.text for a, b in zip(one, other, strict=True)), sum(shares) / len(shares)


def measure(generator: LocalGenerator, samples: int, tokens: int) -> list[dict[str, Any]]:
    """One row for each way of doing the same again."""
    import torch

    context, edited = long_context(_Counter(generator))
    seeds, sampling = list(range(samples)), Sampling(max_new_tokens=tokens)
    base = run(generator, context, seeds, sampling)
    rows: list[dict[str, Any]] = []

    def note(what: str, found: Sequence[Sample]) -> None:
        same, share = equal(base, found)
        rows.append({"what": what, "samples": samples, "equal": same, "tokens_before_parting": round(share, 4)})

    note("the same again", run(generator, context, seeds, sampling))
    generator._network.contexts.clear()
    note("the context read anew", run(generator, context, seeds, sampling))
    generator._network.contexts.clear()
    run(generator, edited, [0], Sampling(max_new_tokens=1))
    note("after an edited context", run(generator, context, seeds, sampling))
    for size in (1, 2, 3, 5, 16):
        note(f"batches of {size}", in_batches(generator, context, seeds, sampling, size))
    threads = torch.get_num_threads()
    for other in sorted({1, threads + 1}):
        torch.set_num_threads(other)
        generator._network.contexts.clear()
        note(f"{other} thread{'s' * (other > 1)} for {threads}", run(generator, context, seeds, sampling))
    torch.set_num_threads(threads)
    return rows


def against_library(
    generator: LocalGenerator, folder: str, contexts: Sequence[str], sampling: Sampling, *, dtype: str
) -> dict[str, Any]:
    """Greedy texts of the generator against `generate` of transformers with the same weights in the same format.

    The log-probabilities of both are compared as long as their tokens are equal.
    """
    import torch
    from transformers import AutoModelForCausalLM

    net: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).to(getattr(torch, dtype)).eval()
    equal_texts, shares, largest = 0, [], 0.0
    for context in contexts:
        ids = torch.tensor([generator.encode(context)])
        made = net.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            max_new_tokens=sampling.max_new_tokens,
            output_scores=True,
            return_dict_in_generate=True,
        )
        theirs = made.sequences[0, ids.shape[1] :].tolist()
        (own,) = run(generator, context, [0], sampling)
        assert own.tokens is not None
        same = next((k for k, (a, b) in enumerate(zip(own.tokens.ids, theirs, strict=False)) if a != b), len(theirs))
        equal_texts += list(own.tokens.ids) == theirs
        shares.append(same / len(theirs))
        for token, scores, logprob in zip(theirs[:same], made.scores, own.tokens.logprobs, strict=False):
            expected = float(scores[0].float().log_softmax(-1)[token])
            largest = max(largest, abs(expected - logprob))
    return {
        "texts": len(contexts),
        "equal": equal_texts,
        "tokens_before_parting": sum(shares) / len(shares),
        "largest_logprob_difference": largest,
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--model", default=demo.BASE_MODEL, help="a model of the catalogue, or a folder")
    parser.add_argument("--samples", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=64)
    args = parser.parse_args(arguments)
    try:
        if args.model in models.catalogue():
            models.fetch(args.model)
        found = models.locate(args.model)
        generator = LocalGenerator(found.source, model=found.model, revision=found.revision)
        shown = {}
        for name in ("as loaded", "float32"):
            if name == "float32":
                generator._network.net.float()
                generator._network.contexts.clear()
            shown[name] = measure(generator, args.samples, args.tokens)
            for row in shown[name]:
                print(
                    f"{name:>10}, {row['what']}: {row['equal']} of {row['samples']} texts equal, "
                    f"{row['tokens_before_parting']:.1%} of the tokens before the first difference",
                    file=sys.stderr if args.json else sys.stdout,
                    flush=True,
                )
    except OvertonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps({"model": args.model, "device": generator.device, "runs": shown}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
