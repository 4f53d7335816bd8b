"""The command `encode`: the vectors of a dataset, here or on a Ray cluster."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from core.commands import ray_options, say
from core.workspace import Workspace


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the argument parser."""
    command = subparsers.add_parser("encode", help="make the vectors of a dataset that are missing")
    command.add_argument("name", metavar="N", help="name of a dataset")
    ray_options.add(command)
    command.set_defaults(run=_encode)


def _encode(args: argparse.Namespace, workspace: Workspace) -> int:
    from core import vectors

    options = ray_options.chosen(args)
    dataset = workspace.load(args.name)
    before, needed = vectors.coverage(dataset, workspace)
    if before < needed:
        encoder: Any = vectors.SentenceTransformerEncoder()
        if options is not None:
            from core.vectors.ray_encoder import RayEncoder

            encoder = RayEncoder(options=options)
        try:
            vectors.vectors_for(
                dataset, workspace, encoder, progress=lambda done, total: say("encoding", done, total)
            )
        finally:
            print(file=sys.stderr)
    print(f"{needed} responses have vectors, {needed - before} of them encoded now.")
    return 0
