"""The specification of a bulk run: prompts x systems x samples, read from TOML with every mistake named."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from core.bulk.fields import SpecError, Table
from core.bulk.prompts import Prompt, beside, prompt_id_of, prompts_of, toml_of
from core.bulk.systems import System, check_hints, sampling_of, system_of
from core.dataset import check_name
from core.errors import OvertonError, Problems, reason_of
from core.generation.base import Sampling

_TOP = ("name", "title", "about", "samples", "seed", "prompts", "dataset", "limit", "prompt", "sampling", "system")


@dataclass(frozen=True)
class Spec:
    """A checked specification. Prompts of a `dataset` are looked up when the run is planned."""

    name: str
    systems: tuple[System, ...]
    prompts: tuple[Prompt, ...] = ()
    dataset: str = ""
    limit: int | None = None
    seed: int = 0
    title: str = ""
    about: str = ""
    file: str = ""
    text: str = ""
    folder: Path | None = None


def load_spec(source: Path | str, *, folder: Path | None = None) -> Spec:
    """Read a specification: a path, or its text.

    Files that it names are looked for beside it; in a text only where `folder` is given (a text may come from a
    visitor). Raises `SpecError`, whose `sentences` name every mistake.
    """
    file = str(source) if isinstance(source, Path) else "the specification"
    if isinstance(source, Path):
        folder = source.parent if folder is None else folder
        try:
            source = source.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise SpecError([f"{file} cannot be read: {reason_of(error)}."]) from error
        except ValueError as error:
            raise SpecError([f"{file} is not UTF-8: save it in that encoding."]) from error
    problems = Problems()
    try:
        spec = _spec(Table(toml_of(source, file), file=file, place="", problems=problems), folder)
    except OvertonError as error:  # it is no TOML
        raise SpecError([str(error)]) from error
    if len(problems):
        raise SpecError(str(problem) for problem in problems)
    return replace(spec, text=source)


def _spec(top: Table, folder: Path | None) -> Spec:
    top.known(*_TOP)
    name = top.get("name", str, "")
    if not name:
        top.wrong("lacks the field 'name', which becomes the name of the dataset.")
    else:
        top.attempt(lambda: check_name(name), "")
    prompts = _prompts(top, folder)
    shared = top.table("sampling", "[sampling]")
    defaults = sampling_of(shared, Sampling())
    samples = top.count("samples", 5)
    stops = "stop" in shared.raw
    systems = tuple(system_of(table, folder, defaults, stops, samples) for table in top.tables("system"))
    if not top.raw.get("system"):
        top.wrong("there is no [[system]]: give at least one.")
    for twice in _repeated([system.name for system in systems if system.name]):
        top.wrong(f"the system {twice!r} occurs more than once.")
    for twice in _repeated([prompt.prompt_id for prompt in prompts]):
        top.wrong(f"the prompt {twice!r} occurs more than once.")
    spec = Spec(
        name=name,
        systems=systems,
        prompts=prompts,
        dataset=top.get("dataset", str, ""),
        limit=top.count("limit", 0) or None,
        seed=top.get("seed", int, 0),
        title=top.get("title", str, ""),
        about=top.get("about", str, ""),
        file=top.file,
        folder=folder,
    )
    if not spec.dataset:
        for system in systems:
            top.attempt(lambda s=system: check_hints(s, spec.prompts), None)  # type: ignore[misc]
        spec = replace(spec, prompts=prompts[: spec.limit])
    return spec


def _repeated(names: list[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


# -- prompts ----------------------------------------------------------------------------------------------------


def _prompts(top: Table, folder: Path | None) -> tuple[Prompt, ...]:
    given = [name for name in ("prompts", "dataset", "prompt") if name in top.raw]
    if len(given) != 1:
        top.wrong(
            'give the prompts in exactly one way: [[prompt]] tables, prompts = "FILE" or dataset = "NAME"'
            f" ({' and '.join(given) or 'none'} given)."
        )
        return ()
    if given == ["dataset"]:
        return ()
    if given == ["prompts"]:
        file = top.get("prompts", str, "")
        nothing: tuple[Prompt, ...] = ()
        read = top.attempt(lambda: tuple(prompts_of(beside(folder, file))), nothing)
        if not read and not len(top.problems):
            top.wrong(f"there are no prompts in {file}.")
        return read
    found = []
    for table in top.tables("prompt"):
        table.known("id", "text", "kind")
        text, kind = table.get("text", str, ""), table.get("kind", str, "")
        if not text.strip():
            table.wrong("has no text.")
        found.append(Prompt(table.get("id", str, "") or prompt_id_of(text), text, kind))
    return tuple(found)
