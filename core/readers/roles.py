"""What the name of a system tells: its role, and for the authors' runs the strategy, the teacher and k.

A guess, shown to the user and editable; a name that tells nothing gives the role `other`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.dataset import ROLES

_IN_CONTEXT = {"icl", "urial", "fewshot", "shots", "incontext"}
_ALIGNED = {
    "chat",
    "instruct",
    "it",
    "zephyr",
    "sft",
    "gpt",
    "chatgpt",
    "claude",
    "gemini",
    "turbo",
    "rlhf",
    "dpo",
    "ppo",
    "tulu",
    "vicuna",
    "alpaca",
    "assistant",
    "aligned",
    "instruction",
    "tuned",
}
_BASE = {"base", "pt", "pretrained", "zeroshot"}
_BASE_FAMILIES = {
    "llama",
    "mistral",
    "mixtral",
    "gemma",
    "smollm",
    "pythia",
    "opt",
    "qwen",
    "olmo",
    "falcon",
    "bloom",
    "neo",
    "neox",
    "gpt2",
}
_GPT_BASE = re.compile(r"gpt[-_ ]?(2|j|neo)")


def guess_role(name: str) -> str:
    """The role that a system's name suggests: one of `core.dataset.ROLES`."""
    low = name.casefold()
    if low in ROLES:
        return low
    words = set(re.findall(r"[^\W_]+", low.replace("in-context", "incontext").replace("few-shot", "fewshot")))
    words |= {re.sub(r"\d+[bm]?$", "", word) for word in words}
    if words & _IN_CONTEXT or ("examples" in words and words - {"examples"}):
        return "in-context"
    if re.search(r"summary-\w", low) or words & {"revised", "rewrite", "rewritten", "revision"}:
        return "revised"
    if _GPT_BASE.search(low):
        return "aligned" if words & (_ALIGNED - {"gpt"}) else "base"
    if words & _ALIGNED:
        return "aligned"
    return "base" if words & (_BASE | _BASE_FAMILIES) else "other"


@dataclass(frozen=True)
class Strategy:
    """A context strategy as a run's name tells it; `teacher` is a run of the same release."""

    name: str
    teacher: str | None = None
    k: int | None = None


_TEACHERS = {"chat": "llama-2-chat", "gpt-3.5": "gpt-3.5-turbo", "instruct": "mistral-instruct"}
_PICKS = {"prompt_similar": "nearest k by prompt", "response_similar": "nearest k by response"}


def guess_strategy(run: str) -> Strategy:
    """The strategy of one of the authors' runs, by the parts of its name."""
    asked = re.search(r"summary-(?!cot$)(\w.*)$", run)
    if asked and "-icl" not in run:
        return Strategy("hint", teacher=asked.group(1))
    found = re.search(r"-icl(?:-(chat|gpt-3\.5|instruct))?(?:-(.*))?$", run)
    if not found:
        return Strategy("zero-shot")
    teacher, rest = _TEACHERS.get(found.group(1) or ""), found.group(2) or ""
    if rest == "summary-cot":
        return Strategy("own hint", teacher)
    if rest == "summary":
        return Strategy("hint", teacher)
    if rest == "rand":
        return Strategy("random k", teacher, 3)
    near = re.fullmatch(r"(k|\d+)nn-(\w+)", rest)
    if near and near.group(2) in _PICKS:
        return Strategy(_PICKS[near.group(2)], teacher, 3 if near.group(1) == "k" else int(near.group(1)))
    return Strategy("teacher examples" if teacher else "fixed examples", teacher)
