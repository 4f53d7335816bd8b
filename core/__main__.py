"""The command line: `python -m core COMMAND`. Errors go to stderr in one sentence with exit code 1."""

from __future__ import annotations

import argparse
import importlib
import io
import sys
from collections.abc import Sequence

from core.commands import printable
from core.errors import OvertonError, reason_of
from core.generation import endpoints
from core.workspace import Workspace

# Each module has `add(subparsers)`, which adds one or more commands and sets `run(args, workspace) -> int`.
COMMANDS = ("datasets", "measure", "demo", "generate", "encode")


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a dash shows a question mark
    args = parser().parse_args(argv)
    try:
        workspace = Workspace(args.workspace)
        endpoints.look_in(workspace.root if args.workspace else None)
        return int(args.run(args, workspace))
    except OvertonError as error:
        return _failed(str(error))
    except BrokenPipeError:
        return 0
    except OSError as error:
        return _failed(f"{error.filename or 'A file'} cannot be read or written: {reason_of(error)}.")
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    finally:
        endpoints.look_in(None)


def _failed(what: str) -> int:
    print(f"error: {printable(what, 5000)}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
