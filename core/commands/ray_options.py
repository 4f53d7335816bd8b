"""The options of commands that can work on a Ray cluster."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from core.errors import OvertonError

ENGINES = ("local", "ray")


def add(command: argparse.ArgumentParser) -> None:
    """Add `--engine` and what describes the cluster."""
    command.add_argument("--engine", default="local", help="local (default) or ray")
    group = command.add_argument_group("with --engine ray (see docs/ray.md)")
    group.add_argument(
        "--ray-address", metavar="A", help="auto or HOST:PORT (default: RAY_ADDRESS, or a local cluster)"
    )
    group.add_argument("--ray-workers", metavar="N", type=int, help="workers (default: one a card, else one a node)")
    group.add_argument("--ray-cpus", metavar="N", type=int, help="CPUs of each worker (default: its share)")
    group.add_argument("--ray-backend", metavar="B", help="auto (default), transformers or vllm")


def chosen(args: argparse.Namespace) -> Any:
    """The `RayOptions` of the command line, over those of the environment; None for the local engine.

    Raises `OvertonError` for an unknown engine, or options that nothing would use.
    """
    given = {
        name: value
        for name in ("address", "workers", "cpus", "backend")
        if (value := getattr(args, f"ray_{name}")) is not None
    }
    if args.engine not in ENGINES:
        raise OvertonError(f"There is no engine {args.engine!r}: take one of {', '.join(ENGINES)}.")
    if args.engine == "local":
        if given:
            raise OvertonError(f"--ray-{next(iter(given))} needs --engine ray.")
        return None
    from core.distributed import RayOptions

    return replace(RayOptions.from_environment(), **given).check()
