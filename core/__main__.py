"""The command line: `python -m core COMMAND`. Errors go to stderr in one sentence with exit code 1."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from core.errors import OvertonError
from core.workspace import Workspace

# Each module has `add(subparsers)`, which adds one or more commands and sets `run(args, workspace) -> int`.
COMMANDS = ("datasets", "measure", "demo")


def parser() -> argparse.ArgumentParser:
    """The argument parser with all commands."""
    top = argparse.ArgumentParser(prog="python -m core", description="Overton Lens without a browser.")
    top.add_argument("--workspace", metavar="DIR", help="folder of datasets (default: OVERTON_WORKSPACE)")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in COMMANDS:
        importlib.import_module(f"core.commands.{name}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0, 1 for an error, 2 for wrong usage."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args, Workspace(args.workspace)))
    except OvertonError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
