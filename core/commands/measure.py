"""The command `measure`: lenses over a dataset, summed up by system."""

from __future__ import annotations

import argparse
import json
import math
import sys
from typing import TYPE_CHECKING, Any

from core.commands import printable, say
from core.workspace import Workspace

if TYPE_CHECKING:
    import pandas as pd

    from core.dataset import Dataset
    from core.vectors.encoders import Floats


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the argument parser."""
    command = subparsers.add_parser("measure", help="measure the distributions of a dataset")
    command.add_argument("name", metavar="N", help="name of a dataset")
    command.add_argument("--lens", metavar="ID", action="extend", nargs="+", help="only these lenses (default: all)")
    command.add_argument(
        "--vectors", action="store_true", help="make the vectors that are missing, which takes a while"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_measure)


def _measure(args: argparse.Namespace, workspace: Workspace) -> int:
    from core import lenses

    chosen = lenses.select(args.lens)
    dataset = workspace.load(args.name)
    needing = [lens.id for lens in chosen if lens.needs_vectors]
    asked = bool(args.vectors or args.lens)
    vectors = _vectors(dataset, workspace, needing, make=asked) if needing else None
    summary = lenses.summarise(lenses.measure(dataset, [lens.id for lens in chosen], vectors))
    if args.json:
        wide = (sys.stdout.encoding or "").casefold().replace("-", "") == "utf8"
        print(json.dumps(as_json(summary), indent=1, ensure_ascii=not wide))
    else:
        print(as_table(summary))
    return 0


def _vectors(dataset: Dataset, workspace: Workspace, needing: list[str], *, make: bool) -> Floats | None:
    """The stored vectors. What is missing is encoded with `make`; else one sentence on stderr says how to get it."""
    from core import models, vectors

    found = vectors.stored(dataset, workspace)
    if found is not None:
        return found
    lenses = " and ".join(needing)
    if models.local_folder(vectors.DEFAULT_ID) is None:
        then = "" if make else ", and add --vectors"
        how = f"run `python -m core fetch {vectors.DEFAULT_ID}` once{then}"
    elif make:
        encoder = vectors.SentenceTransformerEncoder()
        try:
            return vectors.vectors_for(
                dataset, workspace, encoder, progress=lambda done, total: say("encoding", done, total)
            )
        finally:
            print(file=sys.stderr)
    else:
        how = "add --vectors to make them"
    print(f"Not measured, as vectors of the responses are missing: {lenses}; {how}.", file=sys.stderr)
    return None


def as_json(summary: pd.DataFrame) -> dict[str, Any]:
    """``{"systems": {name: {lens_id: {"value", "low", "high", "n"}}}}``, None where undefined."""
    systems: dict[str, dict[str, Any]] = {}
    for row in summary.to_dict(orient="records"):
        numbers = {key: _number(row[key]) for key in ("value", "low", "high")}
        systems.setdefault(row["system"], {})[row["lens"]] = {**numbers, "n": int(row["n"])}
    return {"systems": systems}


def _number(value: float) -> float | None:
    return round(float(value), 6) if math.isfinite(value) else None


def as_table(summary: pd.DataFrame) -> str:
    """One block a lens, one line a system: value, 95 % interval, number of prompts; a dash where undefined."""
    from core.lenses import LENSES

    width = max((len(printable(system)) for system in summary["system"]), default=0)
    lines: list[str] = []
    for lens_id, rows in summary.groupby("lens", sort=False):
        lens = LENSES[str(lens_id)]
        about = f"{lens.name}, {lens.unit}" + ("" if lens.reading == "neutral" else f", {lens.reading}")
        lines += ["", f"{lens.id}  ({about})"]
        for system, value, low, high, n in rows[["system", "value", "low", "high", "n"]].itertuples(index=False):
            digits = 1 if lens.unit == "words" else 3
            shown = [f"{x:.{digits}f}" if math.isfinite(x) else "–" for x in (value, low, high)]
            note = "" if math.isfinite(value) else _why(lens.needs_vectors)
            lines.append(
                f"  {printable(system):<{width}}  {shown[0]:>7}  [{shown[1]}, {shown[2]}]  n = {n} prompts{note}"
            )
    return "\n".join(lines[1:])


def _why(needs_vectors: bool) -> str:
    return "  (no vectors are stored, or too few responses)" if needs_vectors else "  (too few responses)"
