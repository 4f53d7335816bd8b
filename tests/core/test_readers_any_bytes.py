"""Any bytes at all: problems or one sentence, never another exception."""

from __future__ import annotations

import contextlib
import json
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import OvertonError, Problems
from core.export import COLUMNS, export_bytes
from core.readers import chat, flat, guess_mapping, own, preview, read, release
from core.readers.rows import rows
from tests.conftest import TEXTS as RESPONSES

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# Keys and values that the readers look at, in any combination.
NAMES = (
    "outputs choices message content generated_text details response body ok usage messages metadata request "
    "custom_id responses instance_id inputs data"
)
KEYS = st.sampled_from([*COLUMNS, *NAMES.split()])
TEXTS = st.text(st.characters(codec=None), max_size=8)
NUMBERS = st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
ODD = st.sampled_from(["", "stop", "base", "# Answer:\n```\n", "```", "[1]", "1e400", "\ud800", "9" * 30])
LEAVES = st.none() | NUMBERS | TEXTS | ODD
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=12
)
ROWS = st.lists(st.dictionaries(KEYS, VALUES, max_size=8) | VALUES, min_size=1, max_size=5)
CELLS = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(['"', ",", "\n", "\r", ";", "0", "nan"])


def must_not_raise(path: Path) -> None:
    for act in (read, guess_mapping, preview):
        with contextlib.suppress(OvertonError):
            act(path)
    for reader in (own, chat, flat, release):
        with contextlib.suppress(OvertonError):
            dataset, problems = reader.read(path)
            assert len(dataset.responses) > 0
            assert isinstance(problems, Problems)
            export_bytes(dataset, "parquet")


def lay_out(folder: Path, data: bytes, name: str) -> list[Path]:
    """The bytes as a file, as a run of the release, as its prompts, and as its arguments."""
    file = folder / name
    file.write_bytes(data)
    root = folder / "root"
    good = json.dumps({"prompt": "q", "outputs": [{"generated_text": "x"}]}).encode()
    for run, samples in (("bad", data), ("good", good)):
        (root / "outputs" / run).mkdir(parents=True)
        (root / "outputs" / run / "samples.jsonl").write_bytes(samples)
        (root / "outputs" / run / "args.json").write_bytes(data)
    (root / "instances").mkdir()
    (root / "instances" / "data.jsonl").write_bytes(data)
    return [file, root]


@pytest.mark.parametrize("name", ["f.jsonl", "f.json", "f.csv", "f.parquet", "f"])
@quick
@given(data=st.binary(max_size=200))
def test_random_bytes(name, data):
    with tempfile.TemporaryDirectory() as folder:
        for path in lay_out(Path(folder), data, name):
            must_not_raise(path)


@pytest.mark.parametrize("name", ["f.jsonl", "f.json"])
@quick
@given(values=ROWS, cut=st.integers(0, 30), array=st.booleans())
def test_json_of_any_shape_perhaps_cut_off(name, values, cut, array):
    text = json.dumps(values) if array else "\n".join(json.dumps(value) for value in values)
    data = text.encode()[: -cut or None]
    with tempfile.TemporaryDirectory() as folder:
        for path in lay_out(Path(folder), data, name):
            must_not_raise(path)


@quick
@given(
    cells=st.lists(CELLS, max_size=60),
    header=st.sampled_from([",".join(COLUMNS), "prompt,response,seed", "text", ""]),
)
def test_csv_of_any_cells(cells, header):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.csv"
        file.write_bytes((header + "\n" + ",".join(cells)).encode())
        must_not_raise(file)


@quick
@given(at=st.integers(0, 10_000), value=st.integers(0, 255))
def test_parquet_with_one_byte_changed(tmp_path_factory, at, value):
    folder = tmp_path_factory.mktemp("p")
    rows_ = [{"prompt": p, "system": s, "text": t} for (p, s), texts in RESPONSES.items() for t in texts]
    file = folder / "f.parquet"
    parquet.write_table(pa.Table.from_pylist(rows_), file)
    data = bytearray(file.read_bytes())
    data[at % len(data)] = value
    file.write_bytes(data)
    must_not_raise(file)


@quick
@given(text=st.text(st.characters(codec=None), max_size=30))
def test_any_text_survives_or_is_repaired_and_listed(text):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.jsonl"
        file.write_text(json.dumps({"prompt": "p", "response": text}) + "\n")
        ((dataset, problems),) = read(file)
    whole = not any("\ud800" <= letter <= "\udfff" for letter in json.loads(json.dumps(text)))
    assert (dataset.responses["text"][0] == json.loads(json.dumps(text))) == whole
    assert (len(problems) == 0) == whole


@quick
@given(data=st.binary(min_size=1, max_size=100))
def test_rows_stop_in_order(data):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "f.jsonl"
        file.write_bytes(data)
        with contextlib.suppress(OvertonError):
            numbers = [line for line, _ in rows(file, Problems())]
            assert numbers == sorted(numbers)
