"""`demo`: generate the demonstration again; `fetch`: fetch models of the catalogue."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.commands import say
from core.errors import OvertonError, user_path
from core.workspace import Workspace, write_dataset

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from core.generation.base import Generator


def add(commands: Any) -> None:
    """Add the commands to the parser."""
    demo = commands.add_parser("demo", help="generate the demonstration again (about half an hour on two cores)")
    demo.add_argument("--out", metavar="DIR", help="new folder to write to (default: a dataset in the workspace)")
    demo.add_argument("--samples", type=int, default=None, help="samples per prompt and system (default: 8)")
    demo.add_argument("--prompts", type=int, default=None, help="only the first N prompts, to try it out")
    demo.set_defaults(run=_demo)
    fetch = commands.add_parser("fetch", help="fetch models of the catalogue (all of them without an id)")
    fetch.add_argument("models", nargs="*", metavar="ID")
    fetch.set_defaults(run=_fetch)


def _fetch(args: argparse.Namespace, workspace: Workspace) -> int:
    from core import models

    for model_id in args.models or list(models.catalogue()):
        entry = models.entry(model_id)
        print(f"{entry.title}: {entry.size / 1e6:.0f} MB, licence {entry.licence}, {entry.licence_url}")
        folder = models.fetch(model_id, progress=say)
        print(f"\n{model_id} lies in {folder}")
    return 0


def _demo(args: argparse.Namespace, workspace: Workspace) -> int:
    from core import demo
    from core.generation.journal import Journal

    samples = demo.SAMPLES if args.samples is None else args.samples
    if samples < 1 or (args.prompts is not None and args.prompts < 1):
        raise OvertonError("--samples and --prompts must be 1 or more.")
    name = workspace.free_name(demo.NAME)
    folder = user_path(args.out) if args.out else workspace.folder("datasets") / name
    if folder.exists():
        raise OvertonError(f"{folder} is already there: give another folder with --out.")
    table = demo.prompts() if args.prompts is None else demo.prompts().head(args.prompts)
    # One journal per plan: what an interrupted run has finished is not generated again.
    journal = Journal(workspace.folder("runs") / f"demo-{len(table)}x{samples}.journal")
    generators = _generators()
    total = len(demo.SYSTEMS) * len(table) * samples
    demo.generate(
        journal,
        generators,
        prompt_table=table,
        samples=samples,
        progress=lambda done, _: say("generating", done, total),
    )
    dataset = demo.assemble(journal, generators, prompt_table=table)
    write(dataset, folder, workspace, tokens=demo.token_traces(journal, dataset))
    journal.path.unlink()
    print(f"\n{len(dataset.responses)} responses in {folder}{_same(dataset, workspace)}")
    return 0


def _generators() -> Mapping[str, Generator]:
    from core import demo, models
    from core.generation.local import LocalGenerator

    made: dict[str, Generator] = {}
    for model_id in (demo.BASE_MODEL, demo.ALIGNED_MODEL):
        models.fetch(model_id, progress=say)
        found = models.locate(model_id)
        made[model_id] = LocalGenerator(found.source, model=found.model, revision=found.revision)
    return made


def write(dataset: Dataset, folder: Path, workspace: Workspace, *, tokens: pd.DataFrame | None = None) -> None:
    """Write a dataset with token traces, vectors, maps (the whole and every prompt) and scores beside it."""
    from core import maps, models, scores, vectors

    models.fetch(vectors.DEFAULT_ID, progress=say)
    known = vectors.vectors_for(
        dataset,
        workspace,
        vectors.SentenceTransformerEncoder(),
        progress=lambda done, total: say("encoding", done, total),
    )
    drawn = []
    places = [None, *dataset.prompts["prompt_id"]]
    for k, prompt_id in enumerate(places):
        say("drawing maps", k, len(places))
        drawn.append(maps.build(dataset, known, prompt_id=prompt_id))
    write_dataset(dataset, folder, tokens=tokens)
    try:
        vectors.write_shipped(dataset, known, folder, workspace=workspace)
        maps.write_shipped(drawn, folder)
        scores.write_shipped(scores.compute(dataset, known), folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _same(dataset: Dataset, workspace: Workspace) -> str:
    """How many texts equal those of the shipped demonstration: floating point may part ways between machines."""
    from core import demo

    try:
        shipped = workspace.load(demo.NAME)
    except OvertonError:
        return ""
    old = shipped.responses.set_index("response_id")["text"]
    new = dataset.responses.set_index("response_id")["text"]
    shared = new.index.intersection(old.index)
    equal = int((new[shared] == old[shared]).sum())
    return f"; {equal} of {len(shared)} texts are the same as in the shipped demonstration"
