"""The shapes in which servers answer (OpenAI's and Text Generation Inference's), and what is trimmed from a text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

FENCE = "```"
_ANSWER = "# Answer:\n```\n"
_REASONS = {
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "max_length", "max_new_tokens"), "length"),
}
_USER_TURN = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"# Query:\n```\n(.*?)\n?```",
        r"\[INST\](.*?)\[/INST\]",
        r"<\|user\|>\n(.*?)(?:</s>|<\|end\|>)",
        r"<\|im_start\|>user\n(.*?)<\|im_end\|>",
        r"<start_of_turn>user\n(.*?)<end_of_turn>",
        r"<\|start_header_id\|>user<\|end_header_id\|>\n\n(.*?)<\|eot_id\|>",
    )
)


@dataclass(frozen=True)
class Sample:
    """One response as it stands in a file."""

    text: str = ""
    finish_reason: str | None = None
    token_count: int | None = None
    seed: int | None = None
    error: str | None = None


def reason(value: Any) -> str | None:
    """A finish reason in the words of `core.dataset.FINISH_REASONS` where it is one of them, else as it is."""
    return _REASONS.get(value.casefold(), value) if isinstance(value, str) and value else None


def message_text(content: Any) -> str | None:
    """The text of a chat message, whose content is a text or a list of parts; None where it holds no text."""
    if isinstance(content, list):
        parts = [p["text"] for p in content if isinstance(p, Mapping) and isinstance(p.get("text"), str)]
        return "".join(parts) if parts else None
    return content if isinstance(content, str) else None


def conversation_text(messages: Any) -> str | None:
    """What the user asked: the one user turn, or all turns but for the system's, each with its role in front."""
    if not isinstance(messages, list):
        return None
    turns = [
        (str(m.get("role")), text)
        for m in messages
        if isinstance(m, Mapping) and (text := message_text(m.get("content"))) is not None
    ]
    turns = [turn for turn in turns if turn[0] not in ("system", "developer")]
    if len(turns) == 1:
        return turns[0][1]
    return "\n\n".join(f"{role}: {text}" for role, text in turns) or None


def user_turn(prompt: str) -> str:
    """The last thing that the user says in the text sent to a model, without the template around it."""
    for pattern in _USER_TURN:
        turns = pattern.findall(prompt)
        if turns:
            return str(re.sub(r"<<SYS>>.*?<</SYS>>", "", turns[-1], flags=re.DOTALL)).strip()
    return prompt


def error_text(value: Any) -> str:
    """An error as text, never empty (an empty one would pass for none)."""
    if isinstance(value, Mapping):
        value = value.get("message") or value
    return str(value) if value not in (None, "") else "unknown error"


def sample_of(output: Any) -> Sample | None:
    """One entry of `choices` or `outputs`; None where its shape is unknown."""
    if isinstance(output, str):
        return Sample(output)
    if not isinstance(output, Mapping):
        return None
    details = output.get("details")
    details = details if isinstance(details, Mapping) else {}
    message = output.get("message")
    text = next((output[k] for k in ("generated_text", "text") if isinstance(output.get(k), str)), None)
    if text is None and isinstance(message, Mapping):
        text = message_text(message.get("content"))
        if text is None:
            return Sample(error="the message has no text")
    if text is None:
        return Sample(error=error_text(output["error"])) if "error" in output else None
    return Sample(
        text,
        reason(output.get("finish_reason") or details.get("finish_reason")),
        _whole(details.get("generated_tokens")),
        _whole(details.get("seed")),
    )


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def samples_of(row: Any) -> list[Sample | None] | None:
    """The responses in one row of a file, None for each of unknown shape; None where the row holds none at all."""
    inner = row.get("response") if isinstance(row, Mapping) else None
    if isinstance(inner, Mapping):  # a batch file: the answer stands one or two levels deeper
        body = inner.get("body", inner)
        return _direct(body) or [Sample(error=error_text(row.get("error")))]
    return _direct(row)


def _direct(row: Any) -> list[Sample | None] | None:
    if isinstance(row, list):
        return [sample_of(output) for output in row] if row else None
    if not isinstance(row, Mapping):
        return None
    failed = row.get("ok") is False or row.get("error") not in (None, "", False)
    for key in ("outputs", "choices"):
        if isinstance(row.get(key), list) and (row[key] or not failed):
            return _counted([sample_of(output) for output in row[key]], row)
    if isinstance(row.get("generated_text"), str):
        return [sample_of(row)]
    if failed:
        return [Sample(error=error_text(row.get("error")))]
    return None


def _counted(samples: list[Sample | None], row: Mapping[str, Any]) -> list[Sample | None]:
    """With the token count of the whole answer, where there is one response to which it belongs."""
    usage = row.get("usage")
    if len(samples) == 1 and samples[0] is not None and isinstance(usage, Mapping) and not samples[0].error:
        return [replace(samples[0], token_count=_whole(usage.get("completion_tokens")))]
    return samples


# -- trimming -----------------------------------------------------------------------------------------------------


def fence_open(prompt: str) -> bool:
    """Whether the text sent to the model ends inside a fence that the model has to close."""
    return prompt.count(FENCE) % 2 == 1 or re.search(r":\n```\s*\Z", prompt) is not None


def trimmed(sample: Sample, prompt: str | None, *, own_hint: bool = False) -> Sample:
    """The response without the stop fence that the server kept.

    `prompt` is the text that was sent. Where it leaves a fence open, exactly one fence at the end is dropped
    (`stop`); without one, the response was cut by the token limit (`length`). With
    `own_hint`, the model writes a summary first, and the answer is what stands in the fence under `# Answer:`;
    without that marker there is none (`no_answer`), and the raw text is kept.
    """
    if sample.error is not None or sample.finish_reason == "no_answer":
        return sample
    if own_hint or (prompt is not None and prompt.endswith("# Summary:\n```\n")):
        _, marker, rest = sample.text.partition(_ANSWER)
        if not marker:
            return replace(sample, finish_reason="no_answer")
        answer, closed, _ = rest.partition(FENCE)
        return replace(sample, text=answer, finish_reason="stop" if closed else "length")
    ends = sample.text.rstrip().endswith(FENCE)
    odd = ends and sample.text.count(FENCE) % 2 == 1  # closes a fence that must have stood in the prompt
    if not (odd if prompt is None else fence_open(prompt)):
        return sample
    if not ends:
        return replace(sample, finish_reason=sample.finish_reason or "length")
    return replace(sample, text=sample.text.rstrip()[: -len(FENCE)], finish_reason="stop")
