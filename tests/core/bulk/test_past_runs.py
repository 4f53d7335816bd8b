"""What a workspace knows of earlier bulk runs, without reading their texts."""

from __future__ import annotations

import json
from pathlib import Path

from core import bulk
from core.bulk.journal import journal_of, sample_row, spec_row
from core.generation.base import Sample, TokenTrace
from core.workspace import Workspace


def test_samples_are_counted_and_the_latest_specification_is_found(workspace: Workspace, tmp_path: Path) -> None:
    journal = journal_of(workspace, "a run")
    trace = TokenTrace((1, 2), (-0.1, -0.2), (0.3, 0.4))
    sample = Sample(0, 'says "sample" and {"key"', "stop", 2, 7, None, trace)
    journal.append(spec_row("first", None))
    for k in range(3):
        journal.append(sample_row(f"k{k}", "s", "p", k, sample, 0.1))
    journal.append(spec_row("second \u2028 text", tmp_path))
    journal.append({"cell": "c", "system": "s"})
    with journal.path.open("ab") as file:
        file.write(b'{"key": "half')
    (past,) = bulk.past_runs(workspace)
    assert (past.name, past.text, past.folder, past.samples) == ("a run", "second \u2028 text", tmp_path, 3)
    journal.append(sample_row("k4", "s", "p", 4, sample, 0.1))
    with journal.path.open("ab") as file:
        file.write(b'{"spec": "half a spec')
    (past,) = bulk.past_runs(workspace)
    assert (past.text, past.samples) == ("second \u2028 text", 4)


def test_what_is_no_journal_is_passed_over(workspace: Workspace) -> None:
    folder = workspace.folder("runs")
    (folder / "bulk-x-1.journal").write_bytes(b"\x00\xff" * 50)
    (folder / "bulk-y-1.journal").write_text(json.dumps({"key": "k"}) + "\n", encoding="ascii")
    (folder / "bulk-z-1.journal").mkdir()
    assert bulk.past_runs(workspace) == []
