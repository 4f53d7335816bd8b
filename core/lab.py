"""The Lab's runs: a context, n samples in the background, each on disk before it is shown."""

from __future__ import annotations

import hashlib
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import jobs, traces
from core.columns import storable
from core.dataset import Dataset
from core.errors import OvertonError, reason_of
from core.generation import pool
from core.generation.base import Generator, Sample, Sampling
from core.generation.journal import Journal
from core.prompting import Example
from core.vectors import Encoder, VectorStore, keys_of, store_file
from core.vectors.encoders import unit
from core.workspace import Workspace


@dataclass(frozen=True)
class Spec:
    """Everything that a run depends on: equal specifications give equal samples on the same machine.

    With an empty `context` the model's own chat template around the prompt is sent, and recorded.
    """

    prompt_id: str
    prompt: str
    context: str
    model: str
    strategy: str
    seeds: tuple[int, ...]
    sampling: Sampling
    examples: tuple[Example, ...] = ()
    hint: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "sampling": self.sampling.as_dict(), "seeds": list(self.seeds)}


def own_prompt_id(prompt: str) -> str:
    """The id of a prompt that is not one of a dataset."""
    return f"lab-{hashlib.sha256(prompt.strip().encode()).hexdigest()[:10]}"


def fresh_seeds(n: int) -> tuple[int, ...]:
    """`n` seeds that nobody chose; they are recorded with the samples."""
    return tuple(secrets.randbits(32) for _ in range(n))


@dataclass
class Run:
    """One run: its samples so far by index, the texts that are still growing, and its job."""

    run_id: str
    spec: Spec
    created: str
    revision: str = ""
    samples: dict[int, Sample] = field(default_factory=dict)
    growing: dict[int, tuple[str, int]] = field(default_factory=dict)
    vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)
    job: jobs.Job | None = None
    encodes: bool = False
    encoding_failed: bool = False

    @property
    def tokens(self) -> int:
        """Tokens made so far."""
        growing = sum(count for index, (_, count) in list(self.growing.items()) if index not in self.samples)
        return growing + sum(sample.token_count for sample in list(self.samples.values()))

    def finished(self) -> list[Sample]:
        """The finished samples in the order of their index."""
        return [self.samples[index] for index in sorted(self.samples)]


def start_run(
    workspace: Workspace,
    spec: Spec,
    *,
    build: Callable[[str], Generator] = pool.generator,
    encoder: Encoder | None = None,
    owner: str = "",
) -> Run:
    """Begin a run in the background for a visitor (`owner`). Raises `OvertonError` for parameters out of range.

    With an `encoder`, each finished sample gets its vector in `run.vectors` a little later, and in the store.
    """
    spec.sampling.check()
    created = datetime.now(UTC).isoformat(timespec="seconds")
    run = Run(f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}", spec, created)
    run.encodes = encoder is not None
    journal = Journal(workspace.folder("runs") / f"{run.run_id}.jsonl")

    def work(job: jobs.Job) -> None:
        with pool.hold(spec.model):
            fill(job)

    def fill(job: jobs.Job) -> None:
        job.progress("loading the model", 0, len(spec.seeds))
        made = _unless_stopped(lambda: build(spec.model), job.cancel)
        if made is None:
            return
        run.revision = made.revision
        context = spec.context or made.chat_context(spec.prompt)
        run.spec = replace(spec, context=context)
        head = {"run": run.run_id, "created": created, "revision": made.revision}
        _keep(journal, {**head, "spec": run.spec.as_dict()})
        job.progress("reading the context", 0, len(spec.seeds))

        def on_text(index: int, text: str, tokens: int) -> None:
            run.growing[index] = (text, tokens)
            job.what = "generating"

        for sample in made.generate(context, spec.seeds, spec.sampling, cancel=job.cancel, on_text=on_text):
            _keep(journal, {"sample": sample.as_dict()})
            run.samples[sample.index] = sample
            run.growing.pop(sample.index, None)
            if encoder is not None and sample.text.strip():
                _encode_later(workspace, run, sample, encoder)
            job.progress("generating", len(run.samples), len(spec.seeds))

    run.job = jobs.start(f"{len(spec.seeds)} samples of {spec.model}", work, lane=pool.lane(spec.model), owner=owner)
    return run


def _keep(journal: Journal, row: Mapping[str, Any]) -> None:
    try:
        journal.append(row)
    except OSError as error:
        raise OvertonError(
            f"The run cannot be kept in {journal.path.parent} ({reason_of(error)}): free some space there, then run "
            "it again. What is shown above was kept."
        ) from error


def _unless_stopped(build: Callable[[], Generator], cancel: threading.Event) -> Generator | None:
    """What `build` makes, or None as soon as `cancel` is set: the model then arrives for the next run."""
    box: list[Generator | BaseException] = []

    def work() -> None:
        try:
            box.append(build())
        except BaseException as error:  # raised again where somebody waits for it
            box.append(error)

    thread = threading.Thread(target=work, daemon=True, name="building a model")
    thread.start()
    while thread.is_alive():
        if cancel.is_set():
            return None
        thread.join(0.05)
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


def _encode_later(workspace: Workspace, run: Run, sample: Sample, encoder: Encoder) -> None:
    """Encode in a lane of its own, so that the next tokens do not wait for the encoder."""

    def work(job: jobs.Job) -> None:
        text = sample.text.strip()
        try:
            vector = encoder.encode([text])
            workspace.folder("vectors")
            store = VectorStore(store_file(workspace))
            store.put(encoder.key, list(keys_of(pd.Series([text]))), vector, encoder.parts([text]))
        except Exception:
            run.encoding_failed = True
            raise
        run.vectors[sample.index] = vector[0]

    jobs.start("a vector", work, lane="encoder")


def answers(run: Run, dataset: Dataset, prompt_id: str) -> bool:
    """Whether a run is about this prompt of this dataset: ids such as "0" stand for other texts elsewhere."""
    texts = dataset.prompts.loc[dataset.prompts["prompt_id"] == prompt_id, "text"]
    return run.spec.prompt_id == prompt_id and texts.str.strip().tolist() == [run.spec.prompt.strip()]


def recall_vectors(workspace: Workspace, run: Run, encoder_key: str) -> None:
    """Give a run that was read from disk the vectors that the workspace keeps of its samples."""
    texts = {sample.index: sample.text.strip() for sample in run.finished() if sample.text.strip()}
    keys = dict(zip(texts, keys_of(pd.Series(list(texts.values()), dtype="str")).tolist(), strict=True))
    known = VectorStore(store_file(workspace)).get(encoder_key, list(keys.values()))
    run.vectors.update({index: unit(known[key][0][None])[0] for index, key in keys.items() if key in known})


def load_runs(workspace: Workspace, *, limit: int = 50) -> list[Run]:
    """The latest runs that the workspace keeps, newest first; damaged files are passed over."""
    runs: list[Run] = []
    for file in sorted((workspace.root / "runs").glob("*.jsonl"), reverse=True)[:limit]:
        rows = list(Journal(file))
        try:
            runs.append(_run_from(rows))
        except (KeyError, TypeError, IndexError, StopIteration):
            continue
    return runs


def _run_from(rows: Sequence[Mapping[str, Any]]) -> Run:
    head = next(row for row in rows if "run" in row)
    raw = dict(head["spec"])
    sampling = Sampling(**{**raw["sampling"], "stop": tuple(raw["sampling"]["stop"])})
    examples = tuple(Example(**example) for example in raw["examples"])
    spec = Spec(**{**raw, "sampling": sampling, "examples": examples, "seeds": tuple(raw["seeds"])})
    samples = [Sample.from_dict(row["sample"]) for row in rows if "sample" in row]
    by_index = {sample.index: sample for sample in samples}
    return Run(str(head["run"]), spec, str(head["created"]), str(head["revision"]), by_index)


def save_run(workspace: Workspace, run: Run, dataset: Dataset, *, system: str, name: str) -> Dataset:
    """A derived dataset with the run as one more system; the dataset that it came from does not change.

    Samples that were stopped are left out. A prompt that the dataset does not have, or has under another text, is
    added. Raises `OvertonError` where no sample is finished or a name is taken.
    """
    samples = [sample for sample in run.finished() if sample.finish_reason in ("stop", "length")]
    if not samples:
        raise OvertonError("No sample is finished: let at least one come to its end, then save.")
    if not system:
        raise OvertonError("Give the new system a name.")
    if system in dataset.roles():
        raise OvertonError(f"{dataset.name!r} already has a system named {system!r}: choose another name.")
    spec = run.spec
    prompt_id = spec.prompt_id if answers(run, dataset, spec.prompt_id) else own_prompt_id(spec.prompt)
    if prompt_id not in set(dataset.prompts["prompt_id"]):
        dataset = dataset.with_prompt(prompt_id, spec.prompt, "lab")
    shown = {"examples": sum(e.on for e in spec.examples), "hint": spec.hint, "run": run.run_id}
    parameters = {**spec.sampling.as_dict(), "revision": run.revision, **shown}
    responses = pd.DataFrame(
        {
            "prompt_id": prompt_id,
            "system": system,
            "sample": [s.index for s in samples],
            "text": [storable(s.text) for s in samples],
            "finish_reason": [s.finish_reason for s in samples],
            "token_count": [s.token_count for s in samples],
            "seed": pd.array([s.seed for s in samples], dtype="Int64"),
            "error": [s.error for s in samples],
        }
    )
    derived = dataset.with_system(
        name,
        {
            "system": system,
            "role": "base" if spec.strategy == "zero-shot" else "in-context",
            "model": spec.model,
            "strategy": spec.strategy,
            "parameters": json.dumps(parameters, ensure_ascii=False),
        },
        responses,
        pd.DataFrame([{"prompt_id": prompt_id, "system": system, "text": spec.context}]),
    )
    workspace.save(derived, tokens=_traces(workspace, dataset, derived, system, samples))
    return derived


def _traces(
    workspace: Workspace, source: Dataset, derived: Dataset, system: str, samples: Sequence[Sample]
) -> pd.DataFrame:
    """The token traces of the dataset that a run was added to, and those of the run."""
    rows = derived.responses[derived.responses["system"] == system]
    ids = dict(zip(rows["sample"], rows["response_id"], strict=True))
    own = traces.frame_of((ids[s.index], s.tokens) for s in samples)
    older = workspace.tokens(source.name) if source.name in workspace.names() else None
    return own if older is None or older.empty else pd.concat([older, own], ignore_index=True)
