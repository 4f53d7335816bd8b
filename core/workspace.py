"""The workspace folder: where datasets, vectors, maps, models and lab runs live on disk.

    <workspace>/datasets/<name>/   manifest.json, one Parquet file a frame of `core.dataset`, and token traces
    <workspace>/roles/<name>.json  roles that the user changed after a dataset was written
    <workspace>/vectors/  maps/  models/  runs/

Datasets are never overwritten; every file is written beside its place and renamed into it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import tempfile
import unicodedata
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import platformdirs

from core import traces
from core.dataset import ROLES, Dataset, check_name
from core.errors import OvertonError, reason_of, user_path

FORMAT = 1
SHIPPED = Path(__file__).resolve().parent.parent / "data"
FRAMES = ("prompts", "systems", "responses", "contexts")


def default_root() -> Path:
    """The workspace folder: `OVERTON_WORKSPACE`, or `overton-lens` in the user's data folder."""
    named = os.environ.get("OVERTON_WORKSPACE")
    return user_path(named) if named else Path(platformdirs.user_data_dir("overton-lens", appauthor=False))


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it is renamed to `path` when the block ends without an error.

    Where `path` is a link, the file that it leads to is replaced. Raises `OSError` where something is there that is
    no regular file, such as a device.
    """
    path = Path(os.path.realpath(path))
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.parent / f".{path.name[:40]}.{uuid.uuid4().hex}.part"  # unlike mkstemp: the user's usual permissions
    part.touch(exist_ok=False)
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a small text file atomically."""
    with atomic_file(path) as part:
        part.write_text(text, encoding="utf-8")


def write_dataset(dataset: Dataset, folder: Path, *, tokens: pd.DataFrame | None = None) -> None:
    """Write a dataset as a new folder, all or nothing, with its token traces if there are any.

    Raises `OvertonError` where the folder already exists or cannot be written.
    """
    try:
        _write_dataset(dataset, folder, tokens)
    except OSError as error:
        reason = error.strerror or "unknown reason"
        raise OvertonError(f"The dataset {dataset.name!r} cannot be written to {folder.parent}: {reason}.") from error


def _write_dataset(dataset: Dataset, folder: Path, tokens: pd.DataFrame | None) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".new."))
    try:
        for frame in FRAMES:
            getattr(dataset, frame).to_parquet(part / f"{frame}.parquet", index=False, compression="zstd")
        if tokens is not None:
            traces.write(tokens, part)
        manifest = {
            "format": FORMAT,
            "name": dataset.name,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "content_key": dataset.content_key(),
            "rows": {frame: len(getattr(dataset, frame)) for frame in FRAMES},
            "meta": dict(dataset.meta),
        }
        (part / "manifest.json").write_text(json.dumps(manifest, indent=1, default=str), encoding="utf-8")
        part.chmod(0o755)
        if folder.exists():
            raise OvertonError(f"A dataset named {dataset.name!r} is already there: choose another name.")
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset folder. Raises `OvertonError` where it is absent, broken or too new."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise OvertonError(f"{folder} is not a dataset of Overton Lens: its manifest.json cannot be read.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise OvertonError(
            f"{folder} was written by another version of Overton Lens: import the original data again."
        )
    return manifest


def read_dataset(folder: Path) -> Dataset:
    """Read a dataset folder. Raises `OvertonError` with one sentence where that cannot be done."""
    manifest = read_manifest(folder)
    try:
        frames = {frame: pd.read_parquet(folder / f"{frame}.parquet") for frame in FRAMES}
    except Exception as error:  # pyarrow raises many types for a damaged file
        raise OvertonError(
            f"The dataset in {folder} is damaged: delete it and import the original data again."
        ) from error
    meta = manifest.get("meta")
    return Dataset.build(str(manifest.get("name")), **frames, meta=meta if isinstance(meta, dict) else {})


def _folders(folder: Path) -> list[Path]:
    """What is in a folder of datasets and not hidden, sorted; nothing where the folder is not there."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise OvertonError(
            f"{folder} cannot be read ({reason_of(error)}): allow it, or set OVERTON_WORKSPACE to another folder."
        ) from error


def _has_manifest(folder: Path) -> bool:
    try:
        return (folder / "manifest.json").exists()
    except OSError:
        return True  # it is locked, so it may be a dataset: reading it says what is wrong


def _folded(name: str) -> str:
    """What two names have in common that some file system would put into the same folder."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


class Workspace:
    """A folder on disk that holds what the user imported, computed and generated, beside the shipped datasets."""

    def __init__(self, root: Path | str | None = None, *, shipped: Path = SHIPPED) -> None:
        self.root = user_path(root) if root is not None else default_root()
        self.shipped = shipped

    def folder(self, *parts: str) -> Path:
        """A folder inside the workspace, made if it is not there. Raises `OvertonError` where that fails."""
        path = self.root.joinpath(*parts)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OvertonError(
                f"The workspace {self.root} cannot be written: set OVERTON_WORKSPACE to a folder that can."
            ) from error
        return path

    def _shipped(self) -> dict[str, Path]:
        found = {}
        for folder in filter(_has_manifest, _folders(self.shipped)):
            with suppress(OvertonError):  # a damaged copy must not hide the others
                found[str(read_manifest(folder).get("name"))] = folder
        return found

    def _own(self) -> dict[str, Path]:
        return {folder.name: folder for folder in filter(_has_manifest, _folders(self.root / "datasets"))}

    def names(self) -> list[str]:
        """Names of all datasets, the shipped ones first."""
        return [*self._shipped(), *self._own()]

    def is_shipped(self, name: str) -> bool:
        """Whether a dataset came with the program (it cannot be deleted)."""
        return name in self._shipped()

    def path(self, name: str) -> Path:
        """The folder of a dataset. Raises `OvertonError` for an unknown name."""
        found = {**self._own(), **self._shipped()}.get(name)
        if found is None:
            known = ", ".join(self.names()) or "none"
            raise OvertonError(f"There is no dataset named {name!r}; there are: {known}.")
        return found

    def load(self, name: str) -> Dataset:
        """Read a dataset, with the roles that the user has changed since it was written."""
        dataset = read_dataset(self.path(name))
        known = dataset.roles()
        return dataset.with_roles({s: r for s, r in self._roles(name).items() if s in known and r in ROLES})

    def free_name(self, name: str) -> str:
        """`name`, or `name-2`, `name-3` … where that is taken (whatever the case of its letters)."""
        check_name(name)
        folders = _folders(self.root / "datasets")  # also one without a manifest holds its name
        taken = {_folded(n) for n in [*self.names(), *(f.name for f in folders)]}
        candidate, k = name, 2
        while _folded(candidate) in taken:
            suffix = f"-{k}"
            base = name if len(name) < 90 and len(name.encode()) < 190 else name[:40].rstrip(" .")
            candidate, k = base + suffix, k + 1
        return candidate

    def tokens(self, name: str) -> pd.DataFrame:
        """The token traces of a dataset (see `core.traces`), without rows where it has none."""
        return traces.read(self.path(name))

    def save(self, dataset: Dataset, *, tokens: pd.DataFrame | None = None) -> Path:
        """Write a new dataset, with its token traces if there are any.

        Raises `OvertonError` where the name is taken: nothing is ever overwritten.
        """
        if self.free_name(dataset.name) != dataset.name:
            raise OvertonError(f"A dataset named {dataset.name!r} is already there: choose another name.")
        folder = self.folder("datasets") / dataset.name
        write_dataset(dataset, folder, tokens=tokens)
        return folder

    def delete(self, name: str) -> None:
        """Delete an own dataset. Raises `OvertonError` for a shipped or unknown one."""
        if self.is_shipped(name):
            raise OvertonError(f"{name!r} came with Overton Lens and cannot be deleted.")
        folder = self.path(name)
        try:
            gone = folder.rename(folder.parent / f".deleted.{uuid.uuid4().hex}")  # at once, whatever happens next
            shutil.rmtree(gone, ignore_errors=True)
            self._roles_file(name).unlink(missing_ok=True)
        except OSError as error:
            raise OvertonError(f"{name!r} cannot be deleted: {error.strerror or 'unknown reason'}.") from error

    def same_content(self, dataset: Dataset) -> str | None:
        """The name of a dataset that holds exactly the same content, or None."""
        key = dataset.content_key()
        for name in self.names():
            try:
                if read_manifest(self.path(name)).get("content_key") == key:
                    return name
            except OvertonError:
                continue  # a damaged dataset is the same as nothing
        return None

    # -- roles that were changed later -------------------------------------------------------------------------

    def _roles_file(self, name: str) -> Path:
        return self.root / "roles" / f"{check_name(name)}.json"

    def _roles(self, name: str) -> dict[str, str]:
        try:
            loaded = json.loads(self._roles_file(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(k): str(v) for k, v in loaded.items()} if isinstance(loaded, dict) else {}

    def roles_changed(self, name: str) -> bool:
        """Whether the user has given systems of a dataset other roles than it was written with."""
        return bool(self._roles(name))

    def set_roles(self, name: str, roles: Mapping[str, str]) -> None:
        """Keep other roles for systems of a dataset; the dataset itself does not change.

        Raises `OvertonError` for an unknown role or system.
        """
        read_dataset(self.path(name)).with_roles(roles)
        self.folder("roles")
        write_text(self._roles_file(name), json.dumps({**self._roles(name), **roles}, indent=1))
