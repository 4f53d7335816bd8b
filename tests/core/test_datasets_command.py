"""The commands import, list, summary, export and delete, as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core import __main__ as command_line
from core.export import export
from core.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command in an own workspace; gives the exit code, what was printed, and what was complained of."""
    monkeypatch.setattr(command_line, "COMMANDS", ("datasets",))
    monkeypatch.setattr(command_line, "Workspace", lambda root: Workspace(root, shipped=tmp_path / "none"))

    def act(*words: str) -> tuple[int, str, str]:
        code = command_line.main(["--workspace", str(tmp_path / "workspace"), *map(str, words)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return act


@pytest.fixture
def file(tmp_path) -> Path:
    """A flat file with one bad line."""
    rows = [{"prompt": f"Q{k % 2}", "model": "tiny-base", "response": f"A{k}"} for k in range(4)]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join([*map(json.dumps, rows), "broken"]) + "\n")
    return path


def names(run) -> list[str]:
    return [entry["name"] for entry in json.loads(run("list", "--json")[1])["datasets"]]


def test_import_says_what_was_saved_and_what_was_wrong(run, file):
    code, out, err = run("import", file)
    assert code == 0
    assert "Saved as mine: 2 prompts, 1 system, 4 responses (4 usable)." in out
    assert "1 problem" in err
    assert "line 5" in err


def test_import_shows_the_columns_that_were_guessed(run, file, tmp_path):
    assert "Columns, as guessed: prompt = 'prompt', system = 'model', text = 'response'" in run("import", file)[2]
    run("export", "mine", "--format", "csv", "--out", tmp_path / "own.csv")
    assert "Columns" not in run("import", tmp_path / "own.csv")[2]


def test_same_content_again_writes_nothing(run, file):
    run("import", file)
    code, out, _ = run("import", file)
    assert (code, names(run)) == (0, ["mine"])
    assert "already there under the name mine" in out


def test_other_content_of_the_same_name_gets_a_free_one(run, file):
    run("import", file)
    file.write_text('{"prompt": "other", "response": "x"}\n')
    assert "Saved as mine-2" in run("import", file)[1]
    assert names(run) == ["mine", "mine-2"]


def test_a_name_that_is_taken_or_not_allowed(run, file, tmp_path):
    assert run("import", file, "--name", "first")[0] == 0
    code, out, err = run("import", file, "--name", "first")
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert "already there" in err
    assert run("import", file, "--name", "second")[0] == 0
    for bad in ("../outside", "a/b", ""):
        assert run("import", file, "--name", bad)[0] == 1
    assert names(run) == ["first", "second"]
    assert not list(tmp_path.glob("outside*"))


def test_problems_are_counted_and_twenty_are_shown(run, tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text('{"prompt": "q", "response": "x"}\n' + "bad\n" * 50)
    err = run("import", path)[2]
    assert "50 problems" in err
    assert err.count("not JSON") == 20


def test_release_root_with_a_name(run, tmp_path):
    for name in ("A", "B"):
        folder = tmp_path / "clone" / "data" / name / "outputs" / "mistral"
        folder.mkdir(parents=True)
        (folder / "samples.jsonl").write_text(json.dumps({"prompt": name, "outputs": [{"generated_text": "x"}]}))
    assert run("import", tmp_path / "clone", "--name", "mine")[0] == 0
    assert names(run) == ["mine-A", "mine-B"]
    run("delete", "mine-A", "--yes")
    assert run("import", tmp_path / "clone", "--name", "mine")[0] == 1
    assert names(run) == ["mine-B"]  # all names are looked at before anything is written


def test_summary_as_json_and_as_a_table(run, file):
    run("import", file)
    code, out, err = run("summary", "mine", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "prompts": 2,
        "systems": {
            "tiny-base": {
                "role": "base",
                "responses": 4,
                "usable": 4,
                "errors": 0,
                "empty": 0,
                "no_answer": 0,
                "cut": 0,
                "duplicates": 0,
                "prompts": 2,
            }
        },
    }
    table = run("summary", "mine")[1].splitlines()
    assert table[1].split()[:2] == ["system", "role"]
    assert table[2].split() == ["tiny-base", "base", "4", "4", "0", "0", "0", "0", "0", "2"]


def test_list_of_nothing_and_with_a_damaged_dataset(run, file, tmp_path):
    assert "no dataset yet" in run("list")[1]
    run("import", file)
    run("import", file, "--name", "bad")
    (tmp_path / "workspace" / "datasets" / "bad" / "manifest.json").write_text("{")
    code, out, _ = run("list")
    assert code == 0
    assert "cannot be read" in out
    assert out.splitlines()[2].split() == ["mine", "2", "1", "4"]


def test_names_from_files_do_not_reach_the_terminal_raw(run, tmp_path):
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps({"prompt": "q", "response": "x", "system": "\x1b[2Jevil\nname"}))
    run("import", path)
    out = run("summary", "f")[1]
    assert "\x1b" not in out
    assert len(out.splitlines()) == 3


@pytest.mark.parametrize("format", ["parquet", "csv", "jsonl"])
def test_export_and_import_is_the_same_dataset(run, file, tmp_path, format):
    run("import", file)
    out = tmp_path / f"e.{format}"
    assert run("export", "mine", "--format", format, "--out", out)[0] == 0
    assert "already there under the name mine" in run("import", out)[1]


def test_export_does_not_overwrite(run, file, tmp_path):
    run("import", file)
    out = tmp_path / "e.csv"
    out.write_text("mine")
    code, _, err = run("export", "mine", "--format", "csv", "--out", out)
    assert (code, out.read_text()) == (1, "mine")
    assert "--force" in err
    assert run("export", "mine", "--format", "csv", "--out", out, "--force")[0] == 0
    assert out.read_text() != "mine"


def test_delete_needs_a_yes(run, file, monkeypatch):
    run("import", file)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    code, _, err = run("delete", "mine")
    assert code == 1
    assert "--yes" in err
    assert names(run) == ["mine"]
    assert run("delete", "mine", "--yes")[0] == 0
    assert names(run) == []


@pytest.mark.parametrize(
    "words",
    [
        ("import", "nowhere"),
        ("summary", "nothing", "--json"),
        ("export", "nothing", "--format", "csv", "--out", "e.csv"),
        ("delete", "nothing", "--yes"),
        ("delete", "../x", "--yes"),
    ],
)
def test_errors_are_one_sentence_and_exit_code_one(run, words):
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "words",
    [
        ("import", "~nosuchuser/x"),
        ("export", "mine", "--format", "csv", "--out", "~nosuchuser/x"),
        ("--workspace", "~nosuchuser/x", "list"),
        ("export", "mine", "--format", "csv", "--out", "x" * 300),
        ("export", "mine", "--format", "csv", "--out", "x" * 300, "--force"),
        ("export", "mine", "--format", "csv", "--out", "x\0y"),
        ("import", "two\nlines\x1b[2J.csv"),
    ],
)
def test_paths_that_cannot_be_used_are_one_sentence(run, file, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    run("import", file)
    code, out, err = run(*words)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "\x1b" not in err


def test_export_into_a_locked_folder_is_one_sentence(run, file, tmp_path, lock):
    run("import", file)
    (tmp_path / "locked").mkdir()
    lock(tmp_path / "locked")
    for force in ((), ("--force",)):
        code, _, err = run("export", "mine", "--format", "csv", "--out", tmp_path / "locked" / "e.csv", *force)
        assert (code, err.count("\n")) == (1, 1)
        assert "cannot be written: permission denied" in err


def test_export_replaces_no_pipe_and_writes_through_a_link(run, file, tmp_path):
    run("import", file)
    os.mkfifo(tmp_path / "pipe")
    code, _, err = run("export", "mine", "--format", "csv", "--out", tmp_path / "pipe", "--force")
    assert (code, (tmp_path / "pipe").is_fifo()) == (1, True)
    assert "not a regular file" in err
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    assert run("export", "mine", "--format", "csv", "--out", tmp_path / "link", "--force")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("prompt_id,")


def test_locked_workspace_and_any_other_fault_of_the_disk(run, file, tmp_path, lock, monkeypatch):
    run("import", file)
    full = OSError(28, "No space left on device", "/some/file")
    monkeypatch.setattr(Workspace, "load", lambda *_: (_ for _ in ()).throw(full))
    assert run("summary", "mine")[::2] == (
        1,
        "error: /some/file cannot be read or written: no space left on device.\n",
    )
    lock(tmp_path / "workspace")
    code, _, err = run("list")
    assert (code, err.count("\n")) == (1, 1)
    assert "cannot be read (permission denied)" in err


def test_terminal_without_unicode(tmp_path, file):
    done = subprocess.run(
        [sys.executable, "-m", "core", "--workspace", tmp_path / "w", "import", file],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [sys.executable, "-m", "core", "--workspace", tmp_path / "w", "measure", "mine", "--lens", "vendi"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "OVERTON_MODELS": str(tmp_path)},
    )
    assert (done.returncode, "[?, ?]" in done.stdout) == (0, True), done.stderr


@pytest.mark.parametrize("words", [(), ("import",), ("export", "x", "--format", "xlsx", "--out", "f"), ("what",)])
def test_wrong_usage_is_exit_code_two(run, words):
    with pytest.raises(SystemExit) as caught:
        run(*words)
    assert caught.value.code == 2


def test_shipped_datasets_are_listed_and_stay(tmp_path, small, monkeypatch, capsys):
    from core.workspace import write_dataset

    monkeypatch.setattr(command_line, "COMMANDS", ("datasets",))
    monkeypatch.setattr(command_line, "Workspace", lambda root: Workspace(root, shipped=tmp_path / "shipped"))
    write_dataset(small, tmp_path / "shipped" / "small")
    there = ["--workspace", str(tmp_path / "w")]
    assert command_line.main([*there, "list"]) == 0
    assert "came with the program" in capsys.readouterr().out
    assert command_line.main([*there, "delete", "small", "--yes"]) == 1
    file = export(small, "csv", tmp_path / "e.csv")
    assert command_line.main([*there, "import", str(file)]) == 0
    assert "already there under the name small" in capsys.readouterr().out


def test_commands_load_no_heavy_module_and_start_fast(tmp_path):
    code = (
        "import sys\nimport core.commands.datasets, core.readers, core.export\n"
        "print([m for m in ('torch', 'sklearn', 'umap', 'transformers', 'streamlit', 'nltk') if m in sys.modules])"
    )
    times = []
    for _ in range(3):
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        times.append(time.perf_counter() - start)
    assert done.stdout.strip() == "[]"
    assert min(times) < 1.5


def test_real_release(release, reference, run):
    assert run("import", release / "LIMA-OE")[0] == 0
    counts = json.loads(run("summary", "LIMA-OE", "--json")[1])
    values = reference["models"]["LIMA-OE"]["outputs"]["llama-2-icl-chat-5nn-prompt_similar"]
    found = counts["systems"]["llama-2-icl-chat-5nn-prompt_similar"]
    assert (found["errors"], found["usable"]) == (values["n_error_objects"], values["n_usable"])
