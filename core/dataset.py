"""The one table: prompts x systems x responses, its schema, validation and the counts that go beside it.

Four frames with fixed columns. `contexts` holds the exact text that was sent, where it is known.

    prompts    prompt_id, text, kind
    systems    system, role, model, strategy, parameters        (parameters: a JSON object as text)
    responses  response_id, prompt_id, system, sample, text, finish_reason, token_count, seed, error
    contexts   prompt_id, system, text                           (may have no rows)

A response with an `error` is no response: it is counted and never read as text. A response whose
`finish_reason` is `no_answer` kept its raw text but holds no answer. Both are not *usable*. An empty text
is usable, and counted as empty.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from core.columns import checked_frame
from core.errors import OvertonError

ROLES = ("base", "aligned", "in-context", "revised", "other")

PROMPT_COLUMNS = ("prompt_id", "text", "kind")
SYSTEM_COLUMNS = ("system", "role", "model", "strategy", "parameters")
RESPONSE_COLUMNS = (
    "response_id",
    "prompt_id",
    "system",
    "sample",
    "text",
    "finish_reason",
    "token_count",
    "seed",
    "error",
)
CONTEXT_COLUMNS = ("prompt_id", "system", "text")

# How a response ended. `length` is what `cut` counts.
FINISH_REASONS = ("stop", "length", "cancelled", "no_answer", "error")

_NAME = re.compile(r"[^\W_][\w .()+@-]{0,99}")
_DEVICE = re.compile(r"con|prn|aux|nul|com\d|lpt\d", re.IGNORECASE)  # no file may be called so on Windows


def check_name(name: str) -> str:
    """Return a dataset name that is safe as a folder name, or raise `OvertonError`.

    Letters, digits, space and ``_ . ( ) + @ -``, starting with a letter or digit, at most 100 characters
    (and 200 bytes, as file systems count bytes).
    """
    unsafe = not _NAME.fullmatch(name) or ".." in name or name != name.strip() or name.endswith(".")
    if unsafe or _DEVICE.fullmatch(name.split(".")[0]) or len(name.encode("utf-8", "replace")) > 200:
        raise OvertonError(
            f"The name {name!r} cannot be used: take letters, digits, spaces, '-', '_' or '.', starting with a "
            "letter or digit, at most 100 characters."
        )
    return name


def _distinct(names: pd.Series, taken: set[str]) -> pd.Series:
    found = []
    for name in names:
        free, k = name, 2
        while free in taken:
            free, k = f"{name}#{k}", k + 1
        taken.add(free)
        found.append(free)
    return pd.Series(found, index=names.index, dtype="str")


@dataclass(frozen=True)
class Dataset:
    """Prompts, systems and responses under one name. Immutable: changes give a new dataset."""

    name: str
    prompts: pd.DataFrame
    systems: pd.DataFrame
    responses: pd.DataFrame
    contexts: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(CONTEXT_COLUMNS)))
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def build(
        cls,
        name: str,
        *,
        prompts: pd.DataFrame,
        systems: pd.DataFrame,
        responses: pd.DataFrame,
        contexts: pd.DataFrame | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Dataset:
        """Check four frames, fill in absent optional columns, and return a dataset.

        Raises `OvertonError` for a missing column, an unknown role, a repeated id, or a response that
        names a prompt or system that is not there.
        """
        dataset = cls(
            name=check_name(name),
            prompts=checked_frame(prompts, PROMPT_COLUMNS, "prompts", ("prompt_id", "text")),
            systems=checked_frame(systems, SYSTEM_COLUMNS, "systems", ("system", "role")),
            responses=checked_frame(responses, RESPONSE_COLUMNS, "responses", ("prompt_id", "system", "sample")),
            contexts=checked_frame(
                contexts if contexts is not None else pd.DataFrame(columns=list(CONTEXT_COLUMNS)),
                CONTEXT_COLUMNS,
                "contexts",
                CONTEXT_COLUMNS,
            ),
            meta=dict(meta or {}),
        )
        dataset._complete()
        dataset._validate()
        return dataset

    def _complete(self) -> None:
        responses = self.responses
        ids = responses["response_id"]
        missing = ids.isna()
        if missing.any():
            names = responses["system"] + "/" + responses["prompt_id"] + "/" + responses["sample"].astype("str")
            made = names[missing]
            if made.duplicated().any() or made.isin(ids[~missing]).any():  # "a/b" + "c" and "a" + "b/c" meet here
                made = _distinct(made, set(ids[~missing]))
            responses["response_id"] = made if missing.all() else ids.where(~missing, made)
        if responses["text"].isna().any():  # a copy of all texts, made only where it is needed
            responses["text"] = responses["text"].fillna("")
        self.prompts["text"] = self.prompts["text"].fillna("")

    def _validate(self) -> None:
        for frame, column, what in (
            (self.prompts, "prompt_id", "prompt id"),
            (self.systems, "system", "system"),
            (self.responses, "response_id", "response id"),
        ):
            if frame[column].isna().any():
                raise OvertonError(f"A {what} is missing.")
            repeated = frame[column][frame[column].duplicated()]
            if len(repeated):
                raise OvertonError(f"The {what} {repeated.iloc[0]!r} occurs more than once.")
        twice = self.responses.duplicated(["prompt_id", "system", "sample"])
        if twice.any():
            row = self.responses[twice].iloc[0]
            raise OvertonError(
                f"Sample {row['sample']} of {row['system']!r} for the prompt {row['prompt_id']!r} occurs more than "
                "once."
            )
        unknown_roles = sorted(set(self.systems["role"].dropna()) - set(ROLES))
        if unknown_roles or self.systems["role"].isna().any():
            raise OvertonError(f"Unknown role {', '.join(unknown_roles) or '(none)'}: use one of {', '.join(ROLES)}.")
        for column, known in (("prompt_id", self.prompts["prompt_id"]), ("system", self.systems["system"])):
            strange = sorted(set(self.responses[column].dropna()) - set(known))
            if strange or self.responses[column].isna().any():
                raise OvertonError(f"A response names the unknown {column} {strange[0] if strange else '(none)'!r}.")

    # -- reading -------------------------------------------------------------------------------------------

    @property
    def usable(self) -> pd.Series:
        """Boolean per response row: no error, and an answer was found."""
        return self.responses["error"].isna() & (self.responses["finish_reason"] != "no_answer").fillna(True)

    @property
    def usable_responses(self) -> pd.DataFrame:
        """The rows of `responses` that may be read as text; the original row index is kept."""
        return self.responses[self.usable]

    def roles(self) -> dict[str, str]:
        """Role by system, in the order of the systems table."""
        return dict(zip(self.systems["system"], self.systems["role"], strict=True))

    def prompt_text(self, prompt_id: str) -> str:
        """The text of one prompt. Raises `OvertonError` for an unknown id."""
        hit = self.prompts.loc[self.prompts["prompt_id"] == prompt_id, "text"]
        if hit.empty:
            raise OvertonError(f"There is no prompt {prompt_id!r} in {self.name!r}.")
        return str(hit.iloc[0])

    def systems_with_role(self, *roles: str) -> list[str]:
        """Names of the systems that have one of the roles."""
        return list(self.systems.loc[self.systems["role"].isin(roles), "system"])

    def content_key(self) -> str:
        """Hex digest of prompts, systems (but for their roles) and responses, whatever the order of the rows."""
        digest = hashlib.sha256()
        for frame in (self.prompts, self.systems.drop(columns=["role"]), self.responses):
            parts = [  # in parts, as hashing makes Python objects of all texts
                pd.util.hash_pandas_object(frame.iloc[k : k + 20_000].astype("str"), index=False).to_numpy()
                for k in range(0, len(frame), 20_000)
            ]
            hashed = np.sort(np.concatenate(parts)) if parts else np.array([], dtype="uint64")
            digest.update(len(hashed).to_bytes(8, "big") + hashed.tobytes())
        return digest.hexdigest()[:24]

    # -- new datasets --------------------------------------------------------------------------------------

    def with_roles(self, roles: Mapping[str, str]) -> Dataset:
        """A dataset in which the named systems have other roles.

        Raises `OvertonError` for an unknown role or system.
        """
        strange = sorted(set(roles) - set(self.systems["system"]))
        if strange:
            raise OvertonError(f"There is no system {strange[0]!r} in {self.name!r}.")
        systems = self.systems.copy()
        systems["role"] = [roles.get(s, r) for s, r in zip(systems["system"], systems["role"], strict=True)]
        changed = replace(self, systems=systems)
        changed._validate()
        return changed

    def with_system(
        self, name: str, system: Mapping[str, Any], responses: pd.DataFrame, contexts: pd.DataFrame | None = None
    ) -> Dataset:
        """A derived dataset under a new name that also holds one more system.

        `system` has the keys of the systems table, `responses` and `contexts` the columns of theirs.
        Prompts that are new must be added with `with_prompt` first.
        """
        parts = [self.contexts] + ([contexts] if contexts is not None and len(contexts) else [])
        return Dataset.build(
            name,
            prompts=self.prompts,
            systems=pd.concat([self.systems, pd.DataFrame([dict(system)])], ignore_index=True),
            responses=pd.concat([self.responses, responses], ignore_index=True),
            contexts=pd.concat([p for p in parts if len(p)] or parts, ignore_index=True),
            meta={**self.meta, "derived_from": self.name},
        )

    def with_prompt(self, prompt_id: str, text: str, kind: str | None = None) -> Dataset:
        """A dataset with one more prompt (no responses yet)."""
        row = pd.DataFrame([{"prompt_id": prompt_id, "text": text, "kind": kind}])
        prompts = pd.concat([self.prompts, row], ignore_index=True)
        return Dataset.build(
            self.name,
            prompts=prompts,
            systems=self.systems,
            responses=self.responses,
            contexts=self.contexts,
            meta=self.meta,
        )


def summary(dataset: Dataset) -> dict[str, Any]:
    """Counts per system, for the Data page and the command line.

    Returns ``{"prompts": n, "systems": {name: {"role", "responses", "usable", "errors", "empty", "no_answer",
    "cut", "duplicates", "prompts"}}}``: `empty`, `cut` and `duplicates` count usable responses; a duplicate is
    an extra copy of a text (to the last blank) within one prompt; `prompts` counts those with at least one usable
    response.
    """
    rows = dataset.responses
    usable = dataset.usable
    stripped = rows["text"].str.strip()
    flags = pd.DataFrame(
        {
            "system": rows["system"],
            "responses": 1,
            "usable": usable.astype(int),
            "errors": rows["error"].notna().astype(int),
            "empty": (usable & (stripped == "")).astype(int),
            "no_answer": (rows["error"].isna() & ~usable).astype(int),
            "cut": (usable & (rows["finish_reason"] == "length").fillna(False)).astype(int),
        }
    )
    good = rows[usable]
    flags["duplicates"] = 0
    flags.loc[good.index, "duplicates"] = good.duplicated(["system", "prompt_id", "text"]).astype(int)
    totals = flags.groupby("system", sort=False).sum()
    totals["prompts"] = good.groupby("system")["prompt_id"].nunique()
    counts = totals.reindex(list(dataset.roles())).fillna(0).astype(int).to_dict(orient="index")
    systems = {name: {"role": role, **counts[name]} for name, role in dataset.roles().items()}
    return {"prompts": len(dataset.prompts), "systems": systems}


def text_keys(texts: pd.Series) -> np.ndarray[Any, Any]:
    """Stable hex key per text (SHA-256, 32 digits), by which vectors are stored and equal texts are folded."""
    return np.array([hashlib.sha256(str(t).encode("utf-8", "surrogatepass")).hexdigest()[:32] for t in texts])


def parameters_of(dataset: Dataset, system: str) -> dict[str, Any]:
    """The sampling parameters of a system as a dictionary; empty where none are recorded."""
    hit = dataset.systems.loc[dataset.systems["system"] == system, "parameters"]
    if hit.empty or pd.isna(hit.iloc[0]):
        return {}
    try:
        loaded = json.loads(str(hit.iloc[0]))
    except (ValueError, RecursionError):
        return {}
    return loaded if isinstance(loaded, dict) else {}
