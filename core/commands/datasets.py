"""Commands over datasets: import, list, summary, export, delete."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

from core.commands import printable
from core.errors import OvertonError, Problems
from core.workspace import Workspace, read_manifest

if TYPE_CHECKING:
    from core.dataset import Dataset

SHOWN = 20  # problems that are printed in full
COUNTS = ("responses", "usable", "errors", "empty", "no_answer", "cut", "duplicates", "prompts")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to the argument parser."""
    command = subparsers.add_parser("import", help="read a file or folder into the workspace")
    command.add_argument("path", metavar="PATH", help="a clone of the release, a folder, or a file")
    command.add_argument("--name", metavar="N", help="name of the dataset (default: after the file or folder)")
    command.set_defaults(run=_import)
    command = subparsers.add_parser("list", help="list the datasets")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_list)
    command = subparsers.add_parser("summary", help="count the responses of each system")
    command.add_argument("name", metavar="N", help="name of a dataset")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.set_defaults(run=_summary)
    command = subparsers.add_parser("export", help="write a dataset to one flat file")
    command.add_argument("name", metavar="N", help="name of a dataset")
    command.add_argument("--format", required=True, choices=("parquet", "csv", "jsonl"), help="kind of file")
    command.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    command.add_argument("--force", action="store_true", help="replace the file if it is there")
    command.set_defaults(run=_export)
    command = subparsers.add_parser("delete", help="delete a dataset")
    command.add_argument("name", metavar="N", help="name of a dataset")
    command.add_argument("--yes", action="store_true", help="do it without asking")
    command.set_defaults(run=_delete)


def _import(args: argparse.Namespace, workspace: Workspace) -> int:
    from core.readers import read

    found = read(args.path, name=args.name)
    if args.name is not None:
        for dataset, _ in found:  # all names before anything is written
            if workspace.free_name(dataset.name) != dataset.name:
                raise OvertonError(f"A dataset named {dataset.name!r} is already there: choose another name.")
    for dataset, problems in found:
        _save(dataset, workspace, named=args.name is not None)
        _columns(dataset)
        _tell(problems)
    return 0


def _save(dataset: Dataset, workspace: Workspace, *, named: bool) -> None:
    from dataclasses import replace

    from core.dataset import summary

    same = None if named else workspace.same_content(dataset)
    if same is not None:
        print(f"{dataset.name} is already there under the name {same}; nothing was written.")
        return
    dataset = replace(dataset, name=workspace.free_name(dataset.name))
    counts = summary(dataset)
    workspace.save(dataset)
    total, usable = (sum(system[key] for system in counts["systems"].values()) for key in ("responses", "usable"))
    parts = _count(counts["prompts"], "prompt"), _count(len(counts["systems"]), "system"), _count(total, "response")
    print(f"Saved as {dataset.name}: {', '.join(parts)} ({usable:,} usable).")


def _columns(dataset: Dataset) -> None:
    """Which columns of a flat file were taken for what, as that was guessed."""
    mapping = dataset.meta.get("mapping")
    if isinstance(mapping, dict) and mapping:
        taken = ", ".join(f"{field} = {column!r}" for field, column in mapping.items())
        print(printable(f"Columns, as guessed: {taken}."), file=sys.stderr)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _tell(problems: Problems) -> None:
    if not len(problems):
        return
    shown = problems.items[:SHOWN]
    print(
        f"{_count(len(problems), 'problem')}{':' if len(shown) == len(problems) else ', the first are:'}",
        file=sys.stderr,
    )
    for problem in shown:
        print(f"  {printable(str(problem))}", file=sys.stderr)


def _list(args: argparse.Namespace, workspace: Workspace) -> int:
    entries = [_entry(name, workspace) for name in workspace.names()]
    if args.json:
        print(json.dumps({"workspace": str(workspace.root), "datasets": entries}, indent=1))
    elif entries:
        header = ("name", "prompts", "systems", "responses", "")
        _table([header, *((e["name"], *_sizes(e), _note(e)) for e in entries)])
    else:
        print("There is no dataset yet: python -m core import PATH reads one.")
    return 0


def _entry(name: str, workspace: Workspace) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": name, "shipped": workspace.is_shipped(name)}
    try:
        manifest = read_manifest(workspace.path(name))
    except OvertonError as error:
        return {**entry, "error": str(error)}
    rows = manifest.get("rows")
    rows = rows if isinstance(rows, dict) else {}
    sizes = {key: rows.get(key) for key in ("prompts", "systems", "responses")}
    return {**entry, **sizes, "created": manifest.get("created")}


def _sizes(entry: dict[str, Any]) -> list[str]:
    return [str(entry.get(key) if entry.get(key) is not None else "–") for key in ("prompts", "systems", "responses")]


def _note(entry: dict[str, Any]) -> str:
    return "cannot be read" if "error" in entry else "came with the program" if entry["shipped"] else ""


def _summary(args: argparse.Namespace, workspace: Workspace) -> int:
    from core.dataset import summary

    counts = summary(workspace.load(args.name))
    if args.json:
        print(json.dumps(counts, indent=1))
        return 0
    print(f"{args.name}: {_count(counts['prompts'], 'prompt')}")
    rows = [(name, c["role"], *(str(c[key]) for key in COUNTS)) for name, c in counts["systems"].items()]
    _table([("system", "role", *(key.replace("_", " ") for key in COUNTS)), *rows])
    return 0


def _table(rows: list[tuple[str, ...]]) -> None:
    """Columns of equal width; the first to the left, numbers to the right."""
    cells = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        line = (
            cell.rjust(width) if _numeric(cells, k) else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print("  ".join(line).rstrip())


def _numeric(cells: list[list[str]], column: int) -> bool:
    below = [row[column] for row in cells[1:]]
    return bool(below) and all(cell.isdigit() or cell == "–" for cell in below)


def _export(args: argparse.Namespace, workspace: Workspace) -> int:
    from core.export import export, target

    out = target(args.out, overwrite=args.force, how="add --force to replace it")
    dataset = workspace.load(args.name)
    print(printable(f"Wrote {export(dataset, args.format, out, overwrite=args.force)}", 5000))
    return 0


def _delete(args: argparse.Namespace, workspace: Workspace) -> int:
    workspace.path(args.name)
    if not args.yes:
        if not sys.stdin.isatty():
            raise OvertonError(f"{args.name!r} was not deleted: add --yes to say that it may be.")
        if input(f"Delete {args.name!r}? It cannot be brought back. [y/N] ").strip().casefold() not in ("y", "yes"):
            print("Nothing was deleted.")
            return 0
    workspace.delete(args.name)
    print(f"Deleted {args.name}.")
    return 0
