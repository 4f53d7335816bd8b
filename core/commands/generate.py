"""`generate`: a dataset in bulk from a specification; the same command goes on where a run was broken off."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.bulk.progress import duration
from core.commands import printable, ray_options
from core.errors import OvertonError, user_path
from core.workspace import Workspace

if TYPE_CHECKING:
    from core.bulk import BulkRun

_EVERY = 10.0  # seconds between two lines where there is no terminal


def add(commands: Any) -> None:
    """Add the command to the parser."""
    command = commands.add_parser(
        "generate",
        help="generate a dataset from a specification: prompts x systems x samples",
        description="Generate a dataset from a TOML file (see docs/generate.md). Run it again to go on after a stop.",
    )
    command.add_argument("spec", metavar="SPEC.toml")
    command.add_argument("--dry-run", action="store_true", help="only count, estimate and show the first contexts")
    ray_options.add(command)
    command.add_argument("--keep-errors", action="store_true", help="do not try samples again that failed before")
    command.add_argument("--skip-too-long", action="store_true", help="make errors of contexts that do not fit")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.set_defaults(run=_generate)


def _generate(args: argparse.Namespace, workspace: Workspace) -> int:
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # a second bar would tear up this one
    from core import bulk

    try:
        spec = bulk.load_spec(Path(user_path(args.spec)))
    except bulk.SpecError as error:
        for sentence in error.sentences[:-1]:
            print(f"error: {printable(sentence, 5000)}", file=sys.stderr)
        raise OvertonError(error.sentences[-1]) from error
    if args.dry_run:
        return _dry_run(spec, workspace, args)
    cluster, engine = ray_options.chosen(args), args.engine
    if cluster is not None:
        from core.bulk.ray_engine import RayEngine

        engine = RayEngine(cluster)
    options = {"engine": engine, "keep_errors": args.keep_errors, "skip_too_long": args.skip_too_long}
    run = bulk.start(spec, workspace, **options)
    try:
        _follow(run)
    except KeyboardInterrupt:
        return _interrupted(run, args)
    if args.json:
        print(json.dumps(run.as_dict(), ensure_ascii=False))
    if run.job.error is not None:
        raise OvertonError(run.job.error)
    if not args.json:
        print(_result(run))
    return 0


# -- while it runs ----------------------------------------------------------------------------------------------


def _follow(run: BulkRun) -> None:
    """Show progress until the run is over: a bar on a terminal, a line now and then elsewhere."""
    if sys.stderr.isatty():
        _bar(run)
    else:
        _lines(run)


def _bar(run: BulkRun) -> None:
    from tqdm import tqdm  # type: ignore[import-untyped]

    _wait(run, lambda: print(f"\r{run.job.what:<78.78}", end="", file=sys.stderr, flush=True), until_planned=True)
    print(f"\r{'':<78}\r", end="", file=sys.stderr, flush=True)
    progress = run.progress
    if progress.started is None:
        return
    size = shutil.get_terminal_size()  # 80 x 24 where a terminal says that it has no lines, which hides the bar
    options = {"unit": "sample", "ncols": size.columns, "nrows": size.lines, "smoothing": 0.1}
    with tqdm(total=progress.total, initial=progress.done, **options) as bar:

        def show() -> None:
            bar.ncols = shutil.get_terminal_size().columns
            bar.set_postfix_str(f"{progress.tokens_per_second or 0:.0f} tokens/s, {progress.errors} errors", False)
            bar.set_description_str(f"{run.job.what:.40}", False)
            bar.update(progress.done - bar.n)
            bar.refresh()

        _wait(run, show)
        show()


def _lines(run: BulkRun) -> None:
    latest = [time.monotonic() - _EVERY + 1]

    def show() -> None:
        if time.monotonic() - latest[0] >= _EVERY:
            latest[0] = time.monotonic()
            print(_line(run), file=sys.stderr, flush=True)

    _wait(run, show)
    if run.progress.started is not None:
        print(_line(run), file=sys.stderr, flush=True)


def _wait(run: BulkRun, show: Any, *, until_planned: bool = False) -> None:
    thread = run.job.thread
    assert thread is not None
    while thread.is_alive() and not (until_planned and run.progress.started is not None):
        thread.join(0.1)
        show()


def _line(run: BulkRun) -> str:
    progress = run.progress
    if progress.started is None:
        return f"{run.job.what} …"
    parts = [f"{progress.done} of {progress.total} samples"]
    parts += [f"{progress.tokens_per_second:.0f} tokens/s"] if progress.tokens_per_second else []
    parts += [f"{_rate(progress.samples_per_second)} samples/s"] if progress.samples_per_second else []
    parts += [f"{progress.errors} errors"] if progress.errors else []
    parts += [f"about {duration(progress.remaining)} left"] if progress.remaining else []
    return ", ".join(parts)


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _interrupted(run: BulkRun, args: argparse.Namespace) -> int:
    """Stop within a second; what is in the journal stays."""
    run.stop()
    assert run.job.thread is not None
    run.job.thread.join(0.5)
    done = (
        f"{run.progress.done} of {run.progress.total} samples are kept" if run.progress.total else "nothing is lost"
    )
    print(f"\nstopped: {done}; run the same command again to go on.", file=sys.stderr, flush=True)
    if args.json:
        print(json.dumps({**run.as_dict(), "state": "stopped"}, ensure_ascii=False), flush=True)
    if run.job.thread.is_alive() or "torch" in sys.modules:  # its threads would crash while Python shuts down
        os._exit(130)
    return 130


# -- what it says -----------------------------------------------------------------------------------------------


def _result(run: BulkRun) -> str:
    progress = run.progress
    parts = [f"{progress.total} responses", f"{progress.made} generated now"]
    parts += [f"{progress.reused} kept from before"] if progress.reused else []
    parts += [f"{progress.errors} errors"] if progress.errors else []
    parts += [f"{progress.left} rows of the journal belong to an earlier specification and stay there"] * bool(
        progress.left
    )
    where = (
        f"{run.dataset!r} was there already with the same content" if run.was_there else f"{run.dataset!r} is saved"
    )
    again = "" if not progress.errors else " The same command tries the errors again."
    return f"The dataset {where}: {', '.join(parts)}.{again}"


def _dry_run(spec: Any, workspace: Workspace, args: argparse.Namespace) -> int:
    from core.bulk.estimate import summary
    from core.bulk.planning import plan
    from core.bulk.reading import reader_or_guess

    options = {"keep_errors": args.keep_errors, "skip_too_long": args.skip_too_long}
    found = summary(plan(spec, workspace, reader=reader_or_guess, **options))
    if args.json:
        print(json.dumps(found, ensure_ascii=False))
        return 0
    print(
        f"{found['name']}: {found['prompts']} prompts x {len(found['systems'])} systems, {found['samples']} samples"
    )
    print(f"done: {found['done']}, missing: {found['missing']}, left from an earlier specification: {found['left']}")
    for cost in found["systems"]:
        about = "" if cost["exact"] else "about "
        print(
            f"\n{cost['system']} ({cost['model']}, {cost['strategy']}): {cost['missing']} of {cost['samples']} "
            f"samples missing, {about}{cost['context_tokens']} context tokens, at most {cost['new_tokens']} new "
            f"tokens, time: {duration(cost['seconds'])}"
        )
        if cost["equal"]:
            print("at temperature 0 all samples of a prompt are equal: one is enough")
        print(f"first context (prompt {cost['first_prompt']}):")
        for line in cost["first_context"].split("\n"):
            print(f"  | {printable(line, 100_000)}")
    print(f"\nin all: at most {found['new_tokens']} new tokens, time: {duration(found['seconds'])}")
    return 0
