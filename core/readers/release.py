"""The generations released with arXiv 2406.17692: a clone of that repository, its `data` folder, or one data set.

    <data set>/instances/data.jsonl               one prompt a line; its number, from 0, is its id
    <data set>/outputs/<run>/samples.jsonl        line i answers prompt i, sampled several times
    <data set>/outputs-temp0/<run>/samples.jsonl  the same at temperature 0, once
    <data set>/outputs*/<run>/args.json           sampling parameters; may be absent

Each run is a system named by its folder (with `-temp0` behind it for the second kind). The long text that was sent
stands in each row; it is looked at, not kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.dataset import Dataset
from core.errors import OvertonError, Problems
from core.readers.builder import Builder, name_from
from core.readers.files import locked
from core.readers.roles import guess_role, guess_strategy
from core.readers.rows import rows
from core.readers.shapes import conversation_text, samples_of, trimmed, user_turn

KIND = "release"
_OUTPUTS = ("outputs", "outputs-temp0")
_JUDGED = ("eval-quality", "eval-stance")


def _folders(path: Path, problems: Problems | None = None) -> list[Path]:
    """The folders in a folder, none where it is not there; what is locked goes to `problems`."""
    problems = Problems() if problems is None else problems
    found, at = [], path
    try:
        for at in sorted(p for p in path.iterdir() if not p.name.startswith(".")):
            if at.is_dir():
                found.append(at)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        problems.add(at, None, locked(error))
    return found


def _is(test: Callable[[], bool]) -> bool:
    """What `exists` and the like say, False where the place is locked."""
    try:
        return test()
    except OSError:
        return False


def _is_locked(folder: Path) -> bool:
    found = Problems()
    _folders(folder, found)
    return len(found) > 0


def _is_dataset(path: Path) -> bool:
    runs = [run for outputs in _OUTPUTS for run in _folders(path / outputs)]
    if any(_is((run / "samples.jsonl").exists) for run in runs):
        return True
    return (bool(runs) or any(_is_locked(path / outputs) for outputs in _OUTPUTS)) and _is(
        (path / "instances" / "data.jsonl").is_file
    )


def parts(path: Path) -> list[Path]:
    """The data-set folders in a path: itself, its children, or those of its `data` folder.

    Locked folders that stand beside them are among them, so that reading tells of them.
    """
    if _is_dataset(path):
        return [path]
    for folder in (path, path / "data"):
        children = _folders(folder)
        if any(map(_is_dataset, children)):
            return [child for child in children if _is_dataset(child) or _is_locked(child)]
    return []


def matches(path: Path) -> bool:
    """Whether a path is laid out as the release is."""
    return path.is_dir() and bool(parts(path))


def read(
    path: Path, *, name: str | None = None, mapping: Mapping[str, str] | object | None = None
) -> tuple[Dataset, Problems]:
    """Read one data-set folder; `mapping` has no meaning here."""
    problems = Problems()
    builder = Builder(problems)
    _prompts(path, builder)
    known = len(builder.prompts)
    for outputs in _OUTPUTS:
        for run in _folders(path / outputs, problems):
            try:
                there = (run / "samples.jsonl").exists()
            except OSError as error:
                problems.add(run, None, locked(error))
                continue
            if there:
                _run(run, builder, temp0=outputs == "outputs-temp0", known=known)
            else:
                problems.add(run, None, "there is no samples.jsonl in this folder; the run is left out.")
    _absent(path, problems)
    return builder.dataset(name or name_from(path), meta={"source": "release"}), problems


def _prompts(path: Path, builder: Builder) -> None:
    file = path / "instances" / "data.jsonl"
    try:
        there = file.is_file()
    except OSError as error:
        builder.problems.add(file, None, locked(error))
        return
    if not there:
        builder.problems.add(file, None, "the file is not there; prompts are taken from the runs.")
        return
    try:
        for line, row in rows(file, builder.problems):
            for between in range(len(builder.prompts), line - 1):  # lines that could not be read
                builder.prompt(str(between), None)
            text = conversation_text(row.get("messages")) if isinstance(row, Mapping) else None
            if text is None:
                builder.problems.add(file, line, "the row holds no message; the prompt is taken from the runs.")
            builder.prompt(str(line - 1), text, file=file, line=line)
    except OvertonError as error:
        builder.problems.add(file, None, str(error))


def _absent(path: Path, problems: Problems) -> None:
    """Runs whose judgements are there but whose responses are not."""
    for judged in _JUDGED:
        for run in sorted({p.name for part in ("instances", "outputs") for p in _folders(path / judged / part)}):
            if not (_is((path / "outputs" / run).is_dir) or _is_locked(path / "outputs")):
                problems.add(path / "outputs" / run, None, f"the run was judged ({judged}) but is not here.")


# -- one run ----------------------------------------------------------------------------------------------------


def _run(run: Path, builder: Builder, *, temp0: bool, known: int) -> None:
    file = run / "samples.jsonl"
    system = _system(run, builder, temp0=temp0)
    own_hint = guess_strategy(run.name).name == "own hint"
    last, beyond = 0, 0
    try:
        for last, row in rows(file, builder.problems):
            samples = samples_of(row)
            if not samples:
                builder.problems.add(file, last, "the row holds no responses.")
                continue
            sent = row.get("prompt") if isinstance(row, Mapping) else None
            sent = sent if isinstance(sent, str) else None
            prompt_id = str(last - 1)
            beyond += known > 0 and last > known
            if builder.lacks(prompt_id):
                builder.prompt(prompt_id, user_turn(sent) if sent else None, file=file, line=last)
            for sample in samples:
                if sample is None:
                    builder.problems.add(file, last, "one of the responses has an unknown shape; it is left out.")
                    continue
                got = trimmed(sample, sent, own_hint=own_hint)
                builder.add(prompt_id, system, **vars(got), file=file, line=last)
    except OvertonError as error:
        builder.problems.add(file, None, str(error))
    if beyond:
        builder.problems.add(file, None, f"{beyond} rows more than there are prompts.")
    elif last < known:
        builder.problems.add(file, None, f"the file ends after {last} of {known} prompts.")


def _system(run: Path, builder: Builder, *, temp0: bool) -> str:
    arguments = _arguments(run / "args.json", builder.problems)
    strategy = guess_strategy(run.name)
    parameters, model = _parameters(arguments)
    if temp0:
        parameters["temperature"] = 0
    if strategy.k is not None:
        parameters["k"] = _k(arguments) or strategy.k
    if strategy.teacher is not None:
        parameters["teacher"] = strategy.teacher
    name = run.name + ("-temp0" if temp0 else "")
    while name in builder.systems:
        name += "-2"
    return builder.system(name, role=guess_role(run.name), model=model, strategy=strategy.name, parameters=parameters)


def _arguments(file: Path, problems: Problems) -> Mapping[str, Any]:
    if not _is(file.is_file):
        return {}
    try:
        loaded = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        problems.add(file, None, "the parameters cannot be read; they are left out.")
        return {}
    return loaded if isinstance(loaded, Mapping) else {}


def _section(arguments: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((arguments[n] for n in names if isinstance(arguments.get(n), Mapping)), {})


def _k(arguments: Mapping[str, Any]) -> int | None:
    picked = _section(arguments, "side_info_args", "embedding_args")
    k = picked.get("k", picked.get("top_k"))
    return k if isinstance(k, int) else None


def _parameters(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Sampling parameters under one set of names, and the model's id."""
    given = _section(arguments, "params", "openai_params")
    names = ("temperature", "repetition_penalty", "top_p", "top_k", "stop", "seed")
    parameters: dict[str, Any] = {n: given[n] for n in names if given.get(n) not in (None, [])}
    limit = given.get("max_new_tokens", given.get("max_tokens"))
    if limit is not None:
        parameters["max_new_tokens"] = limit
    if given.get("do_sample") is False:
        parameters["temperature"] = 0
    model = _section(arguments, "server").get("model_id") or given.get("model")
    return parameters, model if isinstance(model, str) else None
