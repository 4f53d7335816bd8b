"""Bulk runs: the dataset, going on from a journal, errors, locks, and stopping."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core import bulk
from core.bulk import run as running
from core.bulk.journal import journal_of, locked, sample_rows
from core.bulk.result import traces
from core.dataset import parameters_of
from core.errors import OvertonError
from core.generation.base import Sample, Sampling, TokenTrace
from core.generation.fake import FakeGenerator
from core.generation.journal import Journal
from core.prompting import query_answer
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC

Go = Callable[..., bulk.BulkRun]


class Counting(FakeGenerator):
    """Keeps what it was asked for; fails for the seeds in `fails`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.asked: list[int] = []
        self.fails: Callable[[str], bool] = lambda context: False

    def generate(self, context: str, seeds: Sequence[int], sampling: Sampling, **options: Any) -> Iterator[Sample]:
        for sample in super().generate(context, seeds, sampling, **options):
            self.asked.append(sample.seed)
            if self.fails(context):
                yield Sample(sample.index, "", "error", 0, sample.seed, error="the server hung up")
            else:
                yield Sample(
                    sample.index,
                    sample.text,
                    sample.finish_reason,
                    sample.token_count,
                    sample.seed,
                    tokens=TokenTrace((1, 2), (-0.5, -1.25), (0.5, 2.0)),
                )


@pytest.fixture
def counting(fakes: dict[str, Any]) -> Counting:
    fakes["fake"] = Counting()
    return fakes["fake"]


def rows(workspace: Workspace) -> list[dict[str, Any]]:
    return list(sample_rows(journal_of(workspace, "trial")))


def test_the_dataset_holds_contexts_seeds_and_parameters(workspace: Workspace, go: Go) -> None:
    run = go()
    assert run.job.state == "done" and run.dataset == "trial"
    data = workspace.load("trial")
    assert data.roles() == {"base": "base", "examples": "in-context", "aligned": "aligned"}
    assert list(data.prompts["kind"].fillna("")) == ["", "open"]
    assert len(data.responses) == 16 and data.usable.all()
    plan = run.plan
    assert plan is not None
    for row in data.responses.to_dict("records"):
        assert row["seed"] == plan.cell(row["system"], row["prompt_id"]).seed_of(row["sample"])
    context = data.contexts.set_index(["system", "prompt_id"])["text"]
    assert context["base", "tea"] == query_answer("How do I make tea?") and len(context) == 6
    parameters = parameters_of(data, "examples")
    assert parameters["temperature"] == 0.5 and parameters["examples"] == "plain"
    assert (parameters["revision"], parameters["spec"], parameters["seed"]) == ("fake-1", "trial", 7)
    assert parameters["engine"] == "local"


def test_a_second_run_makes_nothing_and_says_that_the_dataset_is_there(
    workspace: Workspace, go: Go, counting: Counting
) -> None:
    go()
    made = len(counting.asked)
    again = go()
    assert (again.dataset, again.was_there, again.progress.reused, again.progress.made) == ("trial", True, 16, 0)
    assert len(counting.asked) == made == 12 and workspace.names() == ["trial"]


def test_an_edited_specification_uses_what_is_still_true(workspace: Workspace, go: Go, counting: Counting) -> None:
    go()
    before = len(rows(workspace))
    edited = go(SPEC.replace("temperature = 0.5", "temperature = 0.6"))
    assert (edited.progress.reused, edited.progress.made, edited.progress.left) == (10, 6, 6)
    assert edited.dataset == "trial-2" and len(rows(workspace)) == before + 6
    back = go()
    assert (back.progress.made, back.progress.left, back.dataset) == (0, 6, "trial")
    prompt = go(SPEC.replace("How do I make tea?", "How do I make good tea?"))
    assert (prompt.progress.reused, prompt.progress.made) == (8, 8)


def test_more_samples_keep_those_that_are_there(workspace: Workspace, go: Go, counting: Counting) -> None:
    go()
    counting.asked.clear()
    more = go(SPEC.replace("samples = 3", "samples = 5", 1))
    assert (more.progress.reused, more.progress.made, len(counting.asked)) == (16, 8, 8)
    first = workspace.load("trial").responses.set_index("response_id")["text"]
    second = workspace.load("trial-2").responses.set_index("response_id")["text"]
    assert (second[first.index] == first).all()


def test_another_revision_of_the_model_is_generated_anew(go: Go, counting: Counting) -> None:
    go()
    counting.revision = "fake-2"
    assert (go().progress.reused, len(counting.asked)) == (4, 24)


def test_a_half_written_last_line_is_made_again(workspace: Workspace, go: Go) -> None:
    go()
    journal = journal_of(workspace, "trial")
    whole = journal.path.read_bytes()
    journal.path.write_bytes(whole[:-25])
    again = go()
    assert (again.progress.reused, again.progress.made) == (15, 1)
    assert again.was_there, "the sample that was lost is the same again"
    journal.path.write_bytes(whole + b'{"key": 3, "sample": 1}\nnull\n[]\n\xff\xfe\n{"key": "x"')
    assert go().progress.made == 0


def test_errors_are_rows_and_are_tried_again(workspace: Workspace, go: Go, counting: Counting) -> None:
    counting.fails = lambda context: "bike" in context and "# Instruction" not in context
    first = go()
    assert (first.job.state, first.progress.errors, first.progress.per_system["base"]["errors"]) == ("done", 3, 3)
    data = workspace.load("trial")
    failed = data.responses[data.responses["error"].notna()]
    assert (
        set(failed["prompt_id"]) == {"bike"}
        and set(failed["system"]) == {"base"}
        and not data.usable[failed.index].any()
    )
    kept = go(keep_errors=True)
    assert kept.progress.per_system["base"] == {"total": 6, "done": 6, "errors": 3}
    assert (kept.was_there, kept.progress.made, kept.progress.errors) == (True, 0, 3)
    counting.fails = lambda context: False
    mended = go()
    assert (mended.progress.reused, mended.progress.made, mended.progress.errors) == (13, 3, 0)
    assert mended.dataset == "trial-2" and workspace.load("trial-2").usable.all()


def test_a_server_that_is_gone_ends_the_run(go: Go, counting: Counting) -> None:
    counting.fails = lambda context: True
    prompts = "".join(f'[[prompt]]\nid = "p{k}"\ntext = "{k}?"\n' for k in range(40))
    text = f'name = "gone"\nsamples = 5\n{prompts}' + SPEC[SPEC.index("[[system]]") :]
    run = go(text)
    assert run.job.state == "failed" and "the server hung up" in str(run.job.error)
    assert len(counting.asked) < 40
    counting.fails = lambda context: False
    assert go(text).job.state == "done"


def test_what_does_not_fit_becomes_errors_on_request(workspace: Workspace, go: Go, fakes: dict[str, Any]) -> None:
    fakes["fake"] = Counting(limit=200)
    refused = go()
    assert refused.job.state == "failed" and "at most 200" in str(refused.job.error)
    assert fakes["fake"].asked == [], "nothing is generated before all contexts are checked"
    run = go(skip_too_long=True)
    assert (run.job.state, run.progress.errors, run.progress.made) == ("done", 6, 10)
    data = workspace.load("trial")
    long = data.responses[data.responses["system"] == "examples"]
    assert long["error"].str.contains("does not fit").all() and len(long) == 6


def test_traces_are_kept_for_every_sample(workspace: Workspace, go: Go, counting: Counting) -> None:
    go()
    saved = workspace.tokens("trial").set_index("response_id")
    assert len(saved) == 12 and saved.loc["base/tea/0", "logprobs"].tolist() == [-0.5, -1.25]
    assert set(saved.index) <= set(workspace.load("trial").responses["response_id"])
    kept = rows(workspace)
    assert sum("tokens" in row for row in kept) == 12
    frame = traces({**row, "response_id": str(k)} for k, row in enumerate(kept))
    assert len(frame) == 12
    assert frame["token_ids"][0].tolist() == [1, 2] and str(frame["token_ids"][0].dtype) == "int32"
    assert frame["entropies"][0].tolist() == [0.5, 2.0] and str(frame["logprobs"][0].dtype) == "float32"
    assert list(traces([{"response_id": "x"}]).columns) == ["response_id", "token_ids", "logprobs", "entropies"]


def test_every_sample_is_on_disk_before_the_next_is_asked_for(
    workspace: Workspace, go: Go, counting: Counting
) -> None:
    seen: list[tuple[int, int]] = []
    plain = counting.fails

    def look(context: str) -> bool:
        seen.append((len(counting.asked), len(rows(workspace))))
        return plain(context)

    counting.fails = look
    go()
    assert seen == [(k, k - 1) for k in range(1, 13)]


def test_stop_keeps_what_is_there_and_the_same_specification_goes_on(
    workspace: Workspace, fakes: dict[str, Any], go: Go
) -> None:
    fakes["fake"] = FakeGenerator(delay=0.01)
    run = bulk.start(bulk.load_spec(SPEC), workspace)
    assert run.job.thread is not None
    while run.progress.made < 3:
        run.job.thread.join(0.01)
    run.stop()
    run.job.thread.join(1)
    assert run.job.state == "stopped" and run.dataset is None
    assert {row["finish_reason"] for row in rows(workspace)} <= {"stop", "length"}
    kept = len(rows(workspace))
    fakes["fake"] = FakeGenerator()
    rest = go()
    assert (rest.progress.reused, rest.progress.made) == (kept, 16 - kept) and rest.dataset == "trial"


def test_a_second_run_of_the_same_name_is_refused(workspace: Workspace, fakes: dict[str, Any], go: Go) -> None:
    fakes["fake"] = FakeGenerator(delay=0.02)
    first = bulk.start(bulk.load_spec(SPEC), workspace)
    with pytest.raises(OvertonError, match="going on already"):
        bulk.start(bulk.load_spec(SPEC), workspace)
    other = bulk.start(bulk.load_spec(SPEC.replace('"trial"', '"other"')), workspace)
    for run in (first, other):
        run.stop()
        assert run.job.thread is not None
        run.job.thread.join(5)
    fakes["fake"] = FakeGenerator()
    assert go().job.state == "done"


def test_the_lock_is_let_go_when_its_process_is_killed(workspace: Workspace) -> None:
    journal = journal_of(workspace, "trial")
    code = (
        "import sys, time; from pathlib import Path; from core.bulk.journal import locked; "
        "from core.generation.journal import Journal\n"
        "with locked(Journal(Path(sys.argv[1]))): print('held', flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[3]
    held = subprocess.Popen(
        [sys.executable, "-c", code, str(journal.path)], cwd=root, stdout=subprocess.PIPE, text=True
    )
    assert held.stdout is not None and held.stdout.readline() == "held\n"
    with pytest.raises(OvertonError, match=f"process {held.pid}"), locked(journal):
        pass
    held.kill()
    held.wait(10)
    with locked(journal):
        pass


def test_a_full_disk_is_a_sentence_and_loses_nothing(
    workspace: Workspace, go: Go, monkeypatch: pytest.MonkeyPatch
) -> None:
    append, written = Journal.append, []

    def full(self: Journal, row: Any) -> None:
        if len(written) == 9:
            raise OSError(28, "No space left on device", str(self.path))
        append(self, row)
        written.append(row)

    monkeypatch.setattr(Journal, "append", full)
    run = go()
    assert run.job.state == "failed" and "no space left on device" in str(run.job.error)
    monkeypatch.setattr(Journal, "append", append)
    kept = len(rows(workspace))
    again = go()
    assert (again.progress.reused, again.progress.made) == (kept, 16 - kept)


def test_an_engine_that_ends_early_does_not_make_a_dataset(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(bulk.LocalEngine):
        def run(self, batches: Any, job: Any, **options: Any) -> Iterator[bulk.Done]:
            return super().run(batches[1:], job, **options)

    monkeypatch.setattr(running, "engine_named", lambda name: Lazy())
    run = go()
    assert run.dataset is None and "3 samples did not come" in str(run.job.error)


def test_engines_that_are_not_there_are_refused(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OvertonError, match="no engine 'warp'"):
        bulk.start(bulk.load_spec(SPEC), workspace, engine="warp")
    monkeypatch.setitem(bulk.ENGINES, "ray", ("core.bulk.no_such_engine", "RayEngine"))
    with pytest.raises(OvertonError, match="not installed"):
        bulk.start(bulk.load_spec(SPEC), workspace, engine="ray")


def test_no_thread_is_left(go: Go) -> None:
    before = threading.active_count()
    go()
    assert threading.active_count() == before


def test_the_summary_is_json(go: Go) -> None:
    found = json.loads(json.dumps(go().as_dict()))
    assert (found["samples"], found["made"], found["dataset"], found["state"]) == (16, 16, "trial", "done")


def test_past_runs_can_be_gone_on_with_from_their_journal(workspace: Workspace, go: Go) -> None:
    assert bulk.past_runs(workspace) == []
    go()
    go(SPEC.replace('"trial"', '"other one"').replace("samples = 3", "samples = 1", 1))
    journal_of(workspace, "broken").path.write_bytes(b"\x00\n{}\n")
    past = {found.name: found for found in bulk.past_runs(workspace)}
    assert {name: found.samples for name, found in past.items()} == {"trial": 16, "other one": 8}
    again = bulk.load_spec(past["trial"].text, folder=past["trial"].folder)
    assert again == bulk.load_spec(SPEC) and bulk.plan(again, workspace).lacking == 0


def test_a_disk_that_is_full_from_the_beginning_is_a_sentence(go: Go, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Journal, row: Any) -> None:
        raise OSError(28, "No space left on device", str(self.path))

    monkeypatch.setattr(Journal, "append", full)
    run = go()
    assert run.job.state == "failed" and "no space left on device" in str(run.job.error)


def test_the_journal_says_what_a_run_became_until_it_begins_again(workspace: Workspace, go: Go) -> None:
    run = go()
    (past,) = bulk.past_runs(workspace)
    assert past.dataset == run.dataset == "trial"
    edited = bulk.start(bulk.load_spec(SPEC.replace("seed = 7", "seed = 8")), workspace, engine=Stuck())
    assert edited.job.thread is not None
    edited.job.thread.join(10)
    (past,) = bulk.past_runs(workspace)
    assert (past.samples, past.dataset) == (16, None), "as many samples as before, and none of them counts"


class Stuck(bulk.LocalEngine):
    """Gives nothing."""

    def run(self, *_: Any, **__: Any) -> Iterator[bulk.Done]:
        yield from ()


def test_a_model_with_a_name_that_no_folder_can_have_is_a_sentence(go: Go) -> None:
    run = go(SPEC.replace('"fake"', f'"{"m" * 5000}"'))
    assert run.job.state == "failed" and "file name too long" in str(run.job.error)
