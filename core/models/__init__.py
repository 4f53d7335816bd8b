"""The catalogue: which models can be fetched, where from, under which licence, and where they lie afterwards."""

from __future__ import annotations

import os
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs

from core.errors import OvertonError, user_path
from core.models.download import OnProgress, fetch_entry, sha256_of
from core.models.source import Entry, Package
from core.vectors.encoders import revision_of
from core.workspace import SHIPPED

__all__ = ["Entry", "Located", "OnProgress", "Package", "catalogue", "entry", "fetch", "local_folder", "locate"]

CATALOGUE = SHIPPED / "models.toml"


@cache
def catalogue(file: Path = CATALOGUE) -> dict[str, Entry]:
    """All models of the catalogue by id."""
    loaded = tomllib.loads(file.read_text(encoding="utf-8"))
    models = {}
    for raw in loaded["model"]:
        packages = tuple(Package(**package) for package in raw.pop("package"))
        models[raw["id"]] = Entry(**raw, packages=packages)
    return models


def entry(model_id: str) -> Entry:
    """One model of the catalogue. Raises `OvertonError` that lists the known ids."""
    known = catalogue()
    if model_id not in known:
        raise OvertonError(f"There is no model {model_id!r} in the catalogue; there are: {', '.join(known)}.")
    return known[model_id]


def models_root() -> Path:
    """Where fetched models lie: `OVERTON_MODELS`, or the user's cache folder."""
    named = os.environ.get("OVERTON_MODELS")
    if named:
        return user_path(named)
    return Path(platformdirs.user_cache_dir("overton-lens", appauthor=False)) / "models"


def local_folder(model_id: str) -> Path | None:
    """The folder of a fetched model of the catalogue, ready to load; None where it is not fetched yet."""
    folder = models_root() / entry(model_id).folder_name
    return folder if (folder / "config.json").is_file() else None


def fetch(model_id: str, *, progress: OnProgress | None = None, cancel: object = None) -> Path:
    """Fetch, verify and convert a model of the catalogue once; return its folder.

    `progress` is called with (what is being done, bytes done, bytes in all). `cancel` is a `threading.Event`.
    Raises `OvertonError` where the registry cannot be reached, a checksum differs or the disk is full.
    """
    return local_folder(model_id) or fetch_entry(entry(model_id), models_root(), progress=progress, cancel=cancel)


@dataclass(frozen=True)
class Located:
    """A model that can be loaded: `source` is a folder or a hub id; `revision` is "hub" until that is loaded."""

    model: str
    source: str
    revision: str


def locate(model: str) -> Located:
    """Find a model by catalogue id, folder, GGUF file or hub id.

    A GGUF file is converted the first time. Raises `OvertonError` where a model is not fetched, unknown or damaged.
    """
    if model in catalogue():
        folder = local_folder(model)
        if folder is None:
            raise OvertonError(f"{model} is not on this machine yet: fetch it first.")
        return Located(model, str(folder), entry(model).revision)
    path = user_path(model)
    if path.is_dir():
        return Located(path.name, str(path), revision_of(path))
    if path.suffix == ".gguf" and path.is_file():
        return _from_gguf(path)
    if model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return Located(model, model, "hub")
    raise OvertonError(
        f"{model!r} is neither a model of the catalogue, nor a folder, nor a hub id such as owner/name."
    )


def _from_gguf(file: Path) -> Located:
    """Convert a GGUF file once, into the models folder. Raises `OvertonError` for one that cannot be read."""
    from core.models.convert import check_gguf, gguf_to_folder

    check_gguf(file)
    revision = sha256_of(file)[:12]
    folder = models_root() / f"{file.stem}@{revision}"
    if not (folder / "config.json").is_file():
        models_root().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=models_root(), prefix=f".{file.stem}.") as work:
            gguf_to_folder(file, Path(work) / "ready")
            (Path(work) / "ready").rename(folder)
    return Located(file.stem, str(folder), revision)
