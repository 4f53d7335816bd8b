"""The command `measure`."""

from __future__ import annotations

import argparse
import json

import pytest

from core.commands import measure
from core.errors import OvertonError
from core.lenses import LENSES


@pytest.fixture
def run(workspace, small, capsys, monkeypatch, tmp_path):
    workspace.save(small)
    monkeypatch.setenv("OVERTON_MODELS", str(tmp_path / "no-models"))

    def go(*arguments: str) -> str:
        parser = argparse.ArgumentParser()
        measure.add(parser.add_subparsers())
        args = parser.parse_args(["measure", *arguments])
        assert args.run(args, workspace) == 0
        return capsys.readouterr().out

    return go


def test_json_has_every_lens_of_every_system(run):
    systems = json.loads(run("small", "--json"))["systems"]
    assert list(systems) == ["plain", "tuned"]
    for found in systems.values():
        assert list(found) == list(LENSES)
        assert all(set(entry) == {"value", "low", "high", "n"} for entry in found.values())
    assert systems["plain"]["words"]["value"] == pytest.approx(((4 + 3 + 7) / 3 + (3 + 0 + 8) / 3) / 2, abs=1e-6)
    assert systems["plain"]["words"]["n"] == 2
    assert systems["tuned"]["numbered_list"]["value"] == 0.5


def test_undefined_is_null(run):
    entry = json.loads(run("small", "--json", "--lens", "vendi"))["systems"]["plain"]["vendi"]
    assert entry == {"value": None, "low": None, "high": None, "n": 0}


def test_lenses_can_be_chosen_one_by_one_or_together(run):
    out = json.loads(run("small", "--json", "--lens", "words", "abstain", "--lens", "distinct_1"))
    assert list(out["systems"]["tuned"]) == ["words", "abstain", "distinct_1"]


def test_an_unknown_lens_is_refused_with_the_known_ones(run):
    with pytest.raises(OvertonError, match="no lens 'nope'; there are: words, ") as caught:
        run("small", "--json", "--lens", "nope")
    assert "\n" not in str(caught.value)


def test_an_unknown_dataset_is_refused(run):
    with pytest.raises(OvertonError, match="no dataset named 'gone'"):
        run("gone")


def test_the_table_shows_values_intervals_and_numbers_and_dashes(run):
    out = run("small", "--lens", "bullet_list", "vendi")
    assert "bullet_list" in out
    assert "  tuned    0.500  [0.000, 1.000]  n = 2 prompts" in out
    assert "  plain        –  [–, –]  n = 0 prompts  (no vectors are stored, or too few responses)" in out


def test_stored_vectors_are_used(run, small, monkeypatch):
    import numpy as np

    import core.vectors

    vectors = np.tile(np.eye(4, dtype=np.float32)[:1], (len(small.responses), 1))
    monkeypatch.setattr(core.vectors, "stored", lambda dataset, workspace: vectors)
    entry = json.loads(run("small", "--json", "--lens", "vendi"))["systems"]["tuned"]["vendi"]
    assert entry["value"] == pytest.approx(1)
    assert entry["n"] == 2


def test_names_of_systems_do_not_reach_the_terminal_raw(workspace, small, capsys):
    from core.dataset import Dataset

    evil = "\x1b[2Jevil\nname"
    frames = {name: getattr(small, name).replace({"system": {"plain": evil}}) for name in ("systems", "responses")}
    workspace.save(Dataset.build("evil", prompts=small.prompts, **frames))
    parser = argparse.ArgumentParser()
    measure.add(parser.add_subparsers())
    args = parser.parse_args(["measure", "evil", "--lens", "words"])
    assert args.run(args, workspace) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert len(out.splitlines()) == 3


@pytest.fixture
def said(run, workspace, capsys):
    """Run the command; gives what stands on stdout, read as JSON, and on stderr."""

    def go(*arguments: str):
        parser = argparse.ArgumentParser()
        measure.add(parser.add_subparsers())
        args = parser.parse_args(["measure", "small", "--json", *arguments])
        assert args.run(args, workspace) == 0
        out, err = capsys.readouterr()
        return json.loads(out)["systems"], err

    return go


@pytest.fixture
def encoder(monkeypatch, tmp_path):
    """An encoder on this machine that needs no model; gives the list of the texts that it was asked for."""
    from core import models, vectors

    texts: list[str] = []

    class Fake(vectors.HashEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.key = vectors.DEFAULT_KEY

        def encode(self, some, *, progress=None):
            texts.extend(some)
            return super().encode(some, progress=progress)

    def put() -> list[str]:
        monkeypatch.setattr(models, "local_folder", lambda model_id: tmp_path)
        monkeypatch.setattr(vectors, "SentenceTransformerEncoder", Fake)
        return texts

    return put


def test_without_the_encoder_one_sentence_says_what_to_do(said):
    systems, err = said("--lens", "vendi")
    assert systems["plain"]["vendi"]["value"] is None
    assert err.count("\n") == 1
    assert "run `python -m core fetch all-MiniLM-L6-v2` once." in err
    assert "fetch all-MiniLM-L6-v2` once, and add --vectors." in said()[1]
    assert said("--lens", "words")[1] == ""
    assert said("--lens", "words", "--vectors")[1] == ""


def test_all_lenses_encode_nothing_and_tell_how(said, encoder):
    texts = encoder()
    systems, err = said()
    assert (systems["tuned"]["vendi"]["value"], texts) == (None, [])
    assert err.count("\n") == 1
    assert "mean_cosine_distance and vendi; add --vectors to make them." in err


@pytest.mark.parametrize("words", [("--vectors",), ("--lens", "vendi")])
def test_vectors_are_made_once_where_they_are_asked_for(said, encoder, words):
    texts = encoder()
    systems, err = said(*words)
    assert systems["tuned"]["vendi"]["value"] > 1
    assert "encoding" in err
    assert len(texts) == len(set(texts)) == 10
    systems, err = said()
    assert systems["tuned"]["vendi"]["value"] > 1
    assert (err, len(texts)) == ("", 10)
