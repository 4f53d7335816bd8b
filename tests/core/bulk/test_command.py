"""`generate` as a user runs it: dry run, bar and lines, Ctrl-C, and kill -9 at any moment."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from core.__main__ import main
from core.bulk.journal import journal_of, sample_rows
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC

ROOT = Path(__file__).resolve().parents[3]
SPECS = [file for file in sorted((ROOT / "docs" / "specs").glob("*.toml")) if file.name != "hints.toml"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    file = tmp_path / "trial.toml"
    file.write_text(SPEC, encoding="utf-8")
    return file


def command(workspace: Workspace, *options: str, delay: float = 0.0) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    env = {**os.environ, "OVERTON_FAKE_GENERATOR": "1", "OVERTON_FAKE_DELAY": str(delay), "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "core", "--workspace", str(workspace.root), "generate", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(program, cwd=ROOT, env=env, stdout=pipe, stderr=pipe, text=True)


def count(workspace: Workspace) -> int:
    return sum(1 for _ in sample_rows(journal_of(workspace, "trial")))


def wait_for_rows(workspace: Workspace, process: subprocess.Popen[str], least: int) -> None:
    end = time.monotonic() + 30
    while count(workspace) < least and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


def test_killed_at_random_moments_it_goes_on_with_exactly_what_is_missing(tmp_path: Path, spec: Path) -> None:
    undisturbed, killed = Workspace(tmp_path / "a"), Workspace(tmp_path / "b")
    spec.write_text(SPEC.replace("samples = 3", "samples = 20", 1), encoding="utf-8")
    assert command(undisturbed, str(spec)).wait(60) == 0
    chance = random.Random(20260)
    for _ in range(10):
        process = command(killed, str(spec), delay=0.008)
        wait_for_rows(killed, process, count(killed) + 1)
        time.sleep(chance.uniform(0, 0.5))
        process.kill()
        process.communicate(timeout=20)
    before = count(killed)
    last = command(killed, str(spec), "--json")
    out, err = last.communicate(timeout=60)
    assert last.returncode == 0, err
    found = json.loads(out)
    assert 10 <= before < 84 and (found["reused"], found["made"]) == (before, 84 - before)
    places = [(r["system"], r["prompt_id"], r["sample"]) for r in sample_rows(journal_of(killed, "trial"))]
    assert len(places) == len(set(places)) == 84, "nothing lost, nothing twice"
    assert killed.load("trial").content_key() == undisturbed.load("trial").content_key()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT to send on Windows")
def test_ctrl_c_ends_within_a_second_and_says_how_to_go_on(workspace: Workspace, spec: Path) -> None:
    process = command(workspace, str(spec), delay=0.05)
    wait_for_rows(workspace, process, 1)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - began < 2  # a second, and the end of the interpreter on a slow machine
    assert process.returncode == 130 and out == ""
    assert re.search(r"stopped: \d+ of 16 samples are kept; run the same command again to go on", err)
    assert "Traceback" not in err


def test_a_second_command_is_refused_while_the_first_is_running(workspace: Workspace, spec: Path) -> None:
    first = command(workspace, str(spec), delay=0.05)
    wait_for_rows(workspace, first, 1)
    second = command(workspace, str(spec))
    _, err = second.communicate(timeout=30)
    assert second.returncode == 1 and f"going on already (process {first.pid})" in err
    first.kill()
    first.communicate(timeout=20)


def test_a_dry_run_counts_and_shows_the_first_contexts(
    workspace: Workspace, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--workspace", str(workspace.root), "generate", str(spec), "--dry-run"]
    assert main(call) == 0
    shown = capsys.readouterr().out
    assert "trial: 2 prompts x 3 systems, 16 samples" in shown and "done: 0, missing: 16" in shown
    assert "  | How do I make tea?" in shown and "<user>How do I make tea?</user>" in shown
    assert "6 of 6 samples missing" in shown and "at most 768 new tokens, time: unknown" in shown
    assert not (workspace.root / "runs").exists(), "a dry run writes nothing"
    assert main(call[:-1]) == 0
    assert main([*call, "--json"]) == 0
    assert json.loads(capsys.readouterr().out.strip().split("\n")[-1])["missing"] == 0


def test_temperature_zero_is_pointed_out(
    workspace: Workspace, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC.replace("temperature = 0.5", "temperature = 0"), encoding="utf-8")
    assert main(["--workspace", str(workspace.root), "generate", str(spec), "--dry-run"]) == 0
    assert capsys.readouterr().out.count("all samples of a prompt are equal") == 1


def test_every_mistake_is_a_line(workspace: Workspace, spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(SPEC.replace("seed = 7", "sed = 7").replace('"zero-shot"', '"zero"'), encoding="utf-8")
    assert main(["--workspace", str(workspace.root), "generate", str(spec)]) == 1
    lines = capsys.readouterr().err.strip().split("\n")
    assert len(lines) == 2 and all(line.startswith(f"error: {spec}") for line in lines)


def test_the_end_says_what_was_made_and_kept(
    workspace: Workspace, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--workspace", str(workspace.root), "generate", str(spec)]
    assert main(call) == 0
    first = capsys.readouterr()
    assert "'trial' is saved: 16 responses, 16 generated now." in first.out
    assert "16 of 16 samples" in first.err and "\r" not in first.err, "lines, where there is no terminal"
    assert main(call) == 0
    assert "was there already with the same content" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals on Windows")
def test_on_a_terminal_there_is_a_bar_with_rate_and_remaining_time(workspace: Workspace, spec: Path) -> None:
    import pty

    ours, theirs = pty.openpty()
    env = {
        **os.environ,
        "OVERTON_FAKE_GENERATOR": "1",
        "OVERTON_FAKE_DELAY": "0.005",
        "TERM": "xterm",
        "COLUMNS": "140",
    }
    program = [sys.executable, "-m", "core", "--workspace", str(workspace.root), "generate", str(spec)]
    process = subprocess.Popen(program, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert process.wait(20) == 0
    bar = shown.decode("utf-8", "replace")
    assert "16/16" in bar and "tokens/s" in bar and re.search(r"\d+:\d\d<\d+:\d\d, +[\d.]+(sample/s|s/sample)", bar)


@pytest.mark.parametrize("file", SPECS, ids=lambda p: p.name)
def test_the_examples_of_the_documentation_can_be_tried(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_MODELS", str(tmp_path / "no-models"))
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path))
    assert main(["--workspace", str(tmp_path), "generate", str(file), "--dry-run", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["missing"] == found["samples"] > 0
    assert all(system["first_context"] for system in found["systems"])
