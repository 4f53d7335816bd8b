"""The text in the editor of the Generate page: where it came from, and the specification that it amounts to."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import streamlit as st

from components.data_open import paths_allowed
from core import bulk, models
from core.errors import OvertonError, reason_of
from core.generation import endpoints
from core.workspace import SHIPPED

TEXT, SOURCE = "generate_text", "generate_source"
EXAMPLES = SHIPPED.parent / "docs" / "specs"
LARGEST = 1_000_000  # bytes of a specification that an editor can still show
_MEMO = "generate_memo"
_HUB = re.compile(r"[\w.-]{1,96}/[\w.-]{1,96}", re.ASCII)


@dataclass(frozen=True)
class Source:
    """What was put into the editor: its name, its text, and where files that it names are looked for."""

    label: str
    text: str
    folder: Path | None = None


def example_files() -> list[Path]:
    """The specifications that come with the program."""
    found = sorted(EXAMPLES.glob("*.toml"), key=lambda path: (path.stem != "three-ways", path.stem))
    return [path for path in found if "[[system]]" in path.read_text(encoding="utf-8")]


def about(path: Path) -> str:
    """What an example says of itself: its first line of comment."""
    return path.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("#").strip()


def put(source: Source) -> None:
    """Put a text into the editor; what stood there is gone."""
    st.session_state[SOURCE] = source
    st.session_state[TEXT] = source.text


def from_file(path: Path) -> Source:
    """The specification of a file on this machine. Raises `OvertonError` where it cannot be shown."""
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if path.is_file() and size <= LARGEST else b""
    except (OSError, ValueError) as error:
        raise OvertonError(f"{path} cannot be read: {reason_of(error)}.") from error
    if not path.is_file():
        raise OvertonError(f"{path} is no file: name the TOML file itself.")
    return Source(str(path), _decoded(path.name, raw, size), path.resolve().parent)


def from_example(path: Path) -> Source:
    """One of the specifications that come with the program."""
    return replace(from_file(path), label=f"the example {path.stem!r}")


def from_upload(file: Any) -> Source:
    """The specification of an uploaded file. Raises `OvertonError` where it cannot be shown."""
    raw = bytes(file.getbuffer()[: LARGEST + 1])
    return Source(file.name, _decoded(file.name, raw, len(file.getbuffer())))


def _decoded(name: str, raw: bytes, size: int) -> str:
    if size > LARGEST:
        raise OvertonError(
            f"{name} has {size / 1e6:.0f} MB, and a specification at most {LARGEST / 1e6:.0f}: put the prompts into "
            "a file beside it, or into a dataset."
        )
    try:
        return raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise OvertonError(f"{name} is not UTF-8: save it in that encoding.") from error


def settle() -> None:
    """A new visitor finds the first example in the editor."""
    if TEXT not in st.session_state:
        found = example_files()
        put(from_example(found[0]) if found else Source("", ""))


def source() -> Source:
    """What was put into the editor last."""
    kept: Source = st.session_state.get(SOURCE) or Source("", "")
    return kept


def text() -> str:
    """The text as it stands in the editor."""
    return str(st.session_state.get(TEXT) or "")


def edited() -> bool:
    """Whether the text differs from what was put there."""
    return text() != source().text


def folder() -> Path | None:
    """Where files that the text names are looked for; None where it may name none.

    An edited text could name any file of this machine, so that it may name files only where visitors may name paths.
    """
    return source().folder if not edited() or paths_allowed() else None


def load(*, again: bool = False) -> bulk.Spec:
    """The specification in the editor, read once (or `again`: its files may have changed).

    Raises `bulk.SpecError`, also for what a visitor may not write here.
    """
    key = (text(), folder(), edited(), paths_allowed())
    memo = st.session_state.get(_MEMO)
    if again or memo is None or memo[0] != key:
        memo = st.session_state[_MEMO] = (key, _read())
    if isinstance(memo[1], bulk.SpecError):
        raise memo[1]
    spec: bulk.Spec = memo[1]
    return spec


def _read() -> bulk.Spec | bulk.SpecError:
    if not text().strip():
        return bulk.SpecError(["There is no specification yet: choose an example, open a file, or write one."])
    endpoints.use_secrets(st.secrets)
    try:
        spec = bulk.load_spec(text(), folder=folder())
    except bulk.SpecError as error:
        return error
    wrong = refused(spec) if edited() or folder() is None else []
    return bulk.SpecError(wrong) if wrong else spec


def refused(spec: bulk.Spec) -> list[str]:
    """What a specification that a visitor wrote may not name here, one sentence each."""
    wrong = []
    for system in spec.systems:
        if system.server is not None:
            try:
                endpoints.from_table("typed", system.server, typed=True)
            except OvertonError as error:
                wrong.append(f"[[system]] {system.name!r}: {error}")
        elif not paths_allowed() and not _named(system.model):
            wrong.append(
                f"[[system]] {system.name!r}: {system.model!r} is no model of the catalogue, no hub id and no "
                "configured server, and paths on the server are switched off here."
            )
    return wrong


def _named(model: str) -> bool:
    """Whether a model id is a name, and no path: `owner/name` may also be a folder beside the program."""
    known = model in models.catalogue() or endpoints.is_server(model) or model in ("fake", "fake chat")
    return known or (_HUB.fullmatch(model) is not None and not model.startswith(".") and not Path(model).exists())


def sentences(error: bulk.SpecError) -> list[str]:
    """The mistakes of the text in the editor, without the words that name it each time."""
    plain = [sentence.removeprefix("the specification: ") for sentence in error.sentences]
    return [sentence[:1].upper() + sentence[1:] for sentence in plain]
