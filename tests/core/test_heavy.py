"""Models and encoders that are loaded at the same moment do not get into each other's way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core import models
from tests.core.generation.tiny import make

ROOT = Path(__file__).resolve().parent.parent.parent
TOGETHER = """
import sys, threading
from core import vectors
from core.generation.local import LocalGenerator

failed, start = [], threading.Barrier(3)
def load(make):
    start.wait()
    try:
        make()
    except Exception as error:
        failed.append(repr(error))
encoder = vectors.SentenceTransformerEncoder()
jobs = [lambda: LocalGenerator(sys.argv[1]), lambda: LocalGenerator(sys.argv[2]), lambda: encoder.dimension]
threads = [threading.Thread(target=load, args=(job,)) for job in jobs]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("failed:", failed)
"""


@pytest.mark.slow
def test_two_models_and_the_encoder_load_at_once(tmp_path: Path) -> None:
    models.fetch("all-MiniLM-L6-v2")
    folders = [str(make(tmp_path / name)) for name in ("one", "two")]
    for _ in range(3):
        ran = subprocess.run(
            [sys.executable, "-c", TOGETHER, *folders],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ran.stdout.strip() == "failed: []", ran.stdout + ran.stderr[-2000:]


HALF = """
import importlib, sys, threading, time
from pathlib import Path
from core.heavy import settled

folder = Path(sys.argv[1])
(folder / "slowly.py").write_text("import time\\ntime.sleep(0.6)\\nTensor = int\\n")
sys.path.insert(0, str(folder))
other = threading.Thread(target=importlib.import_module, args=("slowly",))
other.start()
while "slowly" not in sys.modules:
    time.sleep(0.001)
tries = []

def look():
    tries.append(1)
    return sys.modules["slowly"].Tensor

print(settled(look).__name__, len(tries))
try:
    settled(lambda: sys.nothing_like_this)
except AttributeError as error:
    print("raised", "nothing_like_this" in str(error))
"""


def test_work_that_meets_half_a_module_is_begun_again(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", HALF, str(tmp_path)], capture_output=True, text=True, timeout=60, check=True, cwd=ROOT
    )
    assert run.stdout.split("\n")[:2] == ["int 2", "raised True"]
