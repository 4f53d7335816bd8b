"""The workspace: nothing overwritten, nothing outside, damaged datasets do not stand in the way."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from core import workspace as module
from core.errors import OvertonError
from core.workspace import Workspace, atomic_file, default_root, read_dataset, write_dataset


def test_what_is_saved_comes_back_exactly(workspace, small):
    workspace.save(small)
    loaded = workspace.load("small")
    for frame in ("prompts", "systems", "responses", "contexts"):
        pd.testing.assert_frame_equal(getattr(loaded, frame), getattr(small, frame))
    assert loaded.content_key() == small.content_key()


def test_same_name_is_refused_and_the_first_one_stays(workspace, small):
    workspace.save(small)
    with pytest.raises(OvertonError, match="already there"):
        workspace.save(replace(small, name="SMALL"))
    assert workspace.names() == ["small"]
    assert workspace.free_name("Small") == "Small-2"


def test_free_name_of_a_long_name_is_allowed(workspace, small):
    name = "n" * 100
    workspace.save(replace(small, name=name))
    free = workspace.free_name(name)
    workspace.save(replace(small, name=free))
    assert len(workspace.names()) == 2


@pytest.mark.parametrize("name", ["../../outside", "/etc/x", ".."])
def test_names_cannot_leave_the_workspace(workspace, small, name):
    with pytest.raises(OvertonError):
        workspace.save(replace(small, name=name))
    for act in (workspace.load, workspace.delete, workspace.path):
        with pytest.raises(OvertonError):
            act(name)
    assert not (workspace.root.parent / "outside").exists()


def test_nothing_is_left_of_a_write_that_fails(workspace, small, monkeypatch):
    def fail(*_args, **_keywords):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", fail)
    with pytest.raises(OvertonError, match="No space left"):
        workspace.save(small)
    assert list((workspace.root / "datasets").iterdir()) == []
    assert workspace.names() == []


def test_folder_that_cannot_be_made_is_one_sentence(tmp_path, small):
    (tmp_path / "file").write_text("")
    with pytest.raises(OvertonError, match="cannot be written"):
        Workspace(tmp_path / "file" / "below", shipped=tmp_path / "none").save(small)


def test_folder_taken_between_check_and_write(tmp_path, small):
    write_dataset(small, tmp_path / "d")
    with pytest.raises(OvertonError, match="already there"):
        write_dataset(small, tmp_path / "d")
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


@pytest.mark.parametrize("manifest", ["", "[]", "{}", '{"format": 99}', "[" * 100_000])
def test_damaged_manifest_is_an_error_for_that_dataset_only(workspace, small, manifest):
    workspace.save(small)
    workspace.save(replace(small, name="second"))
    (workspace.root / "datasets" / "small" / "manifest.json").write_text(manifest)
    assert workspace.names() == ["second", "small"]
    with pytest.raises(OvertonError):
        workspace.load("small")
    assert workspace.load("second").name == "second"
    assert workspace.same_content(small) == "second"


def test_damaged_table_is_one_sentence(workspace, small):
    folder = workspace.save(small)
    (folder / "responses.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(OvertonError, match="damaged"):
        workspace.load("small")


def test_damaged_shipped_dataset_hides_no_other(tmp_path, small):
    shipped = tmp_path / "shipped"
    write_dataset(replace(small, name="demo"), shipped / "demo")
    (shipped / "bad").mkdir()
    (shipped / "bad" / "manifest.json").write_text("{")
    workspace = Workspace(tmp_path / "w", shipped=shipped)
    assert workspace.names() == ["demo"]
    with pytest.raises(OvertonError, match="cannot be deleted"):
        workspace.delete("demo")


def test_delete_takes_the_dataset_and_its_roles(workspace, small):
    workspace.save(small)
    workspace.set_roles("small", {"plain": "other"})
    workspace.delete("small")
    assert workspace.names() == []
    assert list((workspace.root / "datasets").iterdir()) == []
    workspace.save(small)
    assert workspace.load("small").roles()["plain"] == "base"


def test_roles_are_kept_beside_the_dataset(workspace, small):
    folder = workspace.save(small)
    workspace.set_roles("small", {"plain": "other"})
    assert workspace.load("small").roles() == {"plain": "other", "tuned": "aligned"}
    assert read_dataset(folder).roles()["plain"] == "base"
    for roles in ({"plain": "boss"}, {"nobody": "base"}):
        with pytest.raises(OvertonError):
            workspace.set_roles("small", roles)


def test_roles_file_with_nonsense_is_passed_over(workspace, small):
    workspace.save(small)
    (workspace.root / "roles").mkdir()
    (workspace.root / "roles" / "small.json").write_text('{"plain": "boss", "gone": "base", "tuned": "revised"}')
    assert workspace.load("small").roles() == {"plain": "base", "tuned": "revised"}


def test_same_content_is_found_under_any_name(workspace, small):
    workspace.save(replace(small, name="kept"))
    assert workspace.same_content(small) == "kept"
    assert workspace.same_content(small.with_prompt("n", "new")) is None


def test_hidden_leftovers_are_no_datasets(workspace, small):
    workspace.save(small)
    write_dataset(small, workspace.root / "datasets" / ".new.abc")
    assert workspace.names() == ["small"]


def test_atomic_file_replaces_only_when_all_is_well(tmp_path):
    file = tmp_path / "f.txt"
    file.write_text("old")
    with pytest.raises(RuntimeError), atomic_file(file) as part:
        part.write_text("half")
        raise RuntimeError
    assert file.read_text() == "old"
    with atomic_file(file) as part:
        part.write_text("new")
    assert file.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["f.txt"]


def test_written_files_have_the_usual_permissions(tmp_path):
    (tmp_path / "plain").touch()
    with atomic_file(tmp_path / "made") as part:
        part.write_text("x")
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_environment_names_the_workspace(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path / "here"))
    assert default_root() == tmp_path / "here"
    monkeypatch.setenv("OVERTON_WORKSPACE", "")
    assert default_root() != Path()
    assert module.Workspace(tmp_path / "there").root == tmp_path / "there"


@pytest.mark.parametrize("act", [Workspace.names, lambda w: w.load("small"), lambda w: w.free_name("small")])
def test_locked_workspace_is_one_sentence(workspace, small, lock, act):
    workspace.save(small)
    lock(workspace.root)
    with pytest.raises(OvertonError, match="cannot be read \\(permission denied\\)"):
        act(workspace)


def test_one_locked_dataset_hides_no_other(workspace, small, lock):
    workspace.save(small)
    workspace.save(replace(small, name="other"))
    lock(workspace.root / "datasets" / "other")
    assert workspace.names() == ["other", "small"]
    assert workspace.load("small").name == "small"
    with pytest.raises(OvertonError, match="cannot be read"):
        workspace.load("other")


def test_unknown_user_in_a_path_is_one_sentence(monkeypatch):
    monkeypatch.setenv("OVERTON_WORKSPACE", "~nosuchuser/x")
    for act in (default_root, lambda: Workspace("~nosuchuser/x")):
        with pytest.raises(OvertonError, match="'~nosuchuser/x' starts with a user"):
            act()


def test_atomic_file_writes_through_links_and_spares_what_is_no_file(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with atomic_file(tmp_path / "link") as part:
        part.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"), atomic_file(tmp_path / "pipe"):
        raise AssertionError("nothing is written")
    assert (tmp_path / "pipe").is_fifo()


def test_atomic_file_takes_every_name_that_the_disk_does(tmp_path):
    with atomic_file(tmp_path / ("🙂" * 60)) as part:
        part.write_text("x")
    assert len(list(tmp_path.iterdir())) == 1
