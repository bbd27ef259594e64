"""rankone certify, with good and bad input, as a user meets it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import rankone
from answers import CORPUS, Run
from certification import judge
from rankone.certification import Outcome
from rankone.construct.theorem2.embedded import embed_corpus, graded_model
from rankone.construct.theorem2.weights import contextual_mapping


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "certify")


def edit(model: Path, change: Callable[[dict[str, torch.Tensor]], None]) -> None:
    tensors = load_file(model / "model.safetensors")
    change(tensors)
    save_file(tensors, model / "model.safetensors")


def files(home: Path) -> dict[str, bytes]:
    return {str(p.relative_to(home)): p.read_bytes() for p in home.rglob("*") if p.is_file()}


def test_a_memorized_model_is_certified(run: Run, model: Path, corpus: Path) -> None:
    answer = run(model, corpus)
    assert answer.code == 0
    assert f"{corpus}: certified" in answer.out.replace("\n", "")
    for part in ("contextual mapping", "contexts apart", "labels", "1 unavoidable", "margin"):
        assert part in answer.out
    assert str(model / "certificate.json") in answer.out.replace("\n", "")
    assert json.loads((model / "certificate.json").read_text())["outcome"] == "certified"
    assert answer.err == ""


def test_json_has_what_was_promised(run: Run, model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere.json"
    answer = run(model, corpus, "--json", "--out", out)
    assert (answer.code, answer.err) == (0, "")
    found = answer.json
    assert (found["ok"], found["outcome"], found["mapping"], found["labels"]) == (
        True,
        *["certified"] * 3,
    )
    assert float(found["r"]) > float(found["delta"]) > 0
    assert 0 < found["margin"] <= 0.5
    assert (found["tokens"], found["wrong"], found["unavoidable"]) == (7, 1, 1)
    assert found["decided"] == {"float": 7, "exact": 0, "undecided": 0}
    assert {spot["line"] for spot in found["closest"]} <= {1, 2, 4, 5, 6, 8, 9}
    assert found["seconds"]["total"] > 0
    assert found["float_labels"] is True
    assert found["files"] == [str(out)]
    assert not (model / "certificate.json").exists()
    stored = json.loads(out.read_text())
    assert stored == {name: value for name, value in found.items() if name != "files"}


def test_quiet(run: Run, model: Path, corpus: Path) -> None:
    answer = run(model, corpus, "--quiet")
    assert (answer.code, answer.out, answer.err) == (0, "", "")
    assert (model / "certificate.json").exists()
    answer = run(model, corpus, "--check", model / "certificate.json", "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_a_certificate_is_checked(run: Run, model: Path, corpus: Path) -> None:
    run(model, corpus, "--quiet")
    before = files(model)
    answer = run(model, corpus, "--check", model / "certificate.json")
    assert answer.code == 0
    assert "The certificate stands: certified." in answer.out
    answer = run(model, corpus, "--check", model / "certificate.json", "--json")
    assert answer.json == {
        "ok": True,
        "outcome": "certified",
        "reasons": [],
        "seconds": answer.json["seconds"],
        "certificate": str(model / "certificate.json"),
    }
    assert files(model) == before


def test_a_certificate_of_another_model(
    run: Run, model: Path, corpus: Path, tmp_path: Path
) -> None:
    run(model, corpus, "--quiet")
    rankone.memorize(corpus, seed=1).save(tmp_path / "other")
    answer = run(tmp_path / "other", corpus, "--check", model / "certificate.json")
    assert answer.code == 1
    assert "The certificate does not stand:" in answer.out
    assert "the weights are not those that were certified" in answer.out


def test_a_wrong_label_is_refuted(run: Run, model: Path, corpus: Path) -> None:
    corpus.write_text(CORPUS.replace("run VB O", "run VB B-X"))
    answer = run(model, corpus)
    assert answer.code == 1
    assert "refuted" in answer.out
    said = answer.out.replace("\n", " ")
    assert "line 6 (sentence 2, position 3)" in said
    stored = json.loads((model / "certificate.json").read_text())
    assert (stored["outcome"], stored["ok"], stored["wrong"]) == ("refuted", False, 2)
    answer = run(model, corpus, "--check", model / "certificate.json")
    assert answer.code == 1  # it stands, but says that something does not hold
    assert "The certificate stands: refuted." in answer.out


def test_weights_that_see_no_context_are_refuted(run: Run, model: Path, corpus: Path) -> None:
    edit(model, lambda tensors: tensors["blocks.0.attention.output"].zero_())
    answer = run(model, corpus, "--json")
    assert answer.code == 1
    assert answer.json["mapping"] == "refuted"


@pytest.fixture
def graded(tmp_path: Path) -> tuple[Path, Path]:
    """The proof's own weights for three words: float64 cannot tell their contexts apart."""
    path = tmp_path / "toy.tsv"
    path.write_text("a\tX\nb\tX\n\na\tY\nc\tX\n\nb\tX\nc\tY\n")
    corpus = rankone.read_corpus(path)
    where = embed_corpus(corpus, np.array([[1.0], [2.0], [3.0]]), positions=False)
    mapping = contextual_mapping(where.columns, where.n, grade="paper", masked=where.masked)
    graded_model(corpus, where, mapping).save(tmp_path / "graded")
    return tmp_path / "graded", path


def test_the_proof_s_own_weights(run: Run, graded: tuple[Path, Path]) -> None:
    """Enough digits certify them; --cap 20 does not, and says so."""
    home, corpus = graded
    answer = run(home, corpus, "--json")
    assert answer.code == 0
    found = answer.json
    assert (found["labels"], found["margin"], found["wrong"]) == (None, None, None)
    assert found["decided"]["exact"] > 0
    assert found["digits"] > 100
    assert float(found["delta"]) == 0 or float(found["delta"]) < 1e-100
    assert found["delta"] != "0"
    assert "none: the model has no readout" in run(home, corpus).out

    capped = run(home, corpus, "--cap", 20)
    assert capped.code == 1
    assert "undecided" in capped.out
    assert "--cap" in capped.out.replace("\n", " ")
    stored = json.loads((home / "certificate.json").read_text())
    assert (stored["outcome"], stored["cap"], stored["delta"]) == ("undecided", 20, "0")
    assert stored["digits"] <= 21


def nan(tensors: dict[str, torch.Tensor]) -> None:
    tensors["table"][0, 0] = torch.nan


def cut(model: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])


BROKEN: list[tuple[str, Callable[[Path], Any], str]] = [
    ("NaN", lambda model: edit(model, nan), "table holds values that are not finite"),
    ("truncated", cut, "damaged weights"),
    ("no weights", lambda model: (model / "model.safetensors").unlink(), "no weights"),
    ("no config", lambda model: (model / "config.json").unlink(), "config.json: no such file"),
    ("no labels", lambda model: (model / "labels.json").unlink(), "labels.json: no such file"),
]


@pytest.mark.parametrize(("name", "damage", "message"), BROKEN, ids=[row[0] for row in BROKEN])
def test_broken_models_are_refused_and_nothing_is_written(
    run: Run,
    model: Path,
    corpus: Path,
    name: str,
    damage: Callable[[Path], Any],
    message: str,
) -> None:
    run(model, corpus, "--quiet")
    damage(model)
    before = files(model)
    answer = run(model, corpus)
    assert (answer.code, answer.out) == (2, ""), name
    assert message in answer.err
    assert len(answer.err.splitlines()) == 2
    assert files(model) == before


REFUSED: list[tuple[str, str, str]] = [
    ("another word", CORPUS.replace("run", "walk"), "the word 'walk'"),
    ("another label", CORPUS.replace("VB O", "VB B-Y"), "the label 'B-Y'"),
    ("a longer sentence", CORPUS.replace("run VB O", "run VB O\nrun VB O"), "table of positions"),
    ("no labels", "the\nwill\n", "label"),
    ("nothing", "", "no sentence"),
]


@pytest.mark.parametrize(("name", "text", "message"), REFUSED, ids=[row[0] for row in REFUSED])
def test_other_corpora_are_refused_and_nothing_is_written(
    run: Run, model: Path, corpus: Path, name: str, text: str, message: str
) -> None:
    run(model, corpus, "--quiet")
    before = files(model)
    corpus.write_text(text)
    answer = run(model, corpus, "--json")
    assert (answer.code, answer.out) == (2, ""), name
    assert answer.err.startswith("rankone: ")
    assert message in answer.err
    assert "remedy:" in answer.err
    assert "Traceback" not in answer.err
    assert files(model) == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "no such file"),
        ("{", "cannot be read"),
        ("{}", "not a certificate"),
        ('{"format": "rankone certificate", "version": 7}', "another format than version 5"),
        ('{"format": "rankone certificate", "version": 5}', "no required field"),
    ],
)
def test_what_is_no_certificate_is_refused(
    run: Run,
    model: Path,
    corpus: Path,
    tmp_path: Path,
    text: str | None,
    message: str,
) -> None:
    path = tmp_path / "c.json"
    if text is not None:
        path.write_text(text)
    answer = run(model, corpus, "--check", path)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert len(answer.err.splitlines()) == 2


def test_places_that_cannot_be_written_to(
    run: Run, model: Path, corpus: Path, tmp_path: Path
) -> None:
    for place, what in (
        (tmp_path / "no" / "where.json", "no such directory"),
        (tmp_path, "is a directory"),
    ):
        answer = run(model, corpus, "--out", place)
        assert answer.code == 2
        assert f"{place}: {what}" in answer.err
    assert not (model / "certificate.json").exists()
    assert run(tmp_path / "none", corpus).code == 2


@pytest.mark.parametrize("cap", ["0", "19", "-1", "many", "1.5", "1000000001", "9" * 400])
def test_caps_that_are_none(run: Run, model: Path, corpus: Path, cap: str) -> None:
    answer = run(model, corpus, "--cap", cap)
    assert answer.code == 2
    assert "Traceback" not in answer.err
    assert not (model / "certificate.json").exists()


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon"])
def test_time_limits_that_are_none(run: Run, model: Path, corpus: Path, seconds: str) -> None:
    for more in ((), ("--check", model / "config.json")):
        answer = run(model, corpus, "--seconds", seconds, *more)
        assert (answer.code, answer.out) == (2, "")
        assert "seconds" in answer.err
        assert "Traceback" not in answer.err
    assert not (model / "certificate.json").exists()


def test_a_time_limit(run: Run, model: Path, corpus: Path) -> None:
    """No time at all decides nothing, and says how much that is; enough time changes nothing."""
    answer = run(model, corpus, "--seconds", 0)
    assert answer.code == 1
    said = " ".join(answer.out.split())
    assert f"{corpus}: undecided" in answer.out.replace("\n", "")
    assert (
        "undecided after 0 s: the labels of 7 tokens in 3 sentences and the distances of "
        "10 pairs of contexts; give more time (--seconds)" in said
    )
    assert "not decided" in said
    answer = run(model, corpus, "--check", model / "certificate.json")
    assert (answer.code, answer.out) == (1, "The certificate stands: undecided.\n")
    found = run(model, corpus, "--seconds", 600, "--json")
    assert found.code == 0
    assert (found.json["left"], found.json["limit"], found.json["reason"]) == (None, 600, None)
    answer = run(model, corpus, "--check", model / "certificate.json", "--seconds", 0)
    assert answer.code == 1
    assert "labels: the certificate says certified, the proof undecided" in answer.out
    assert "the time limit of 0 s was hit" in answer.out
    assert run(model, corpus, "--check", model / "certificate.json").code == 0


def test_one_of_everything(run: Run, tmp_path: Path) -> None:
    """1 context, not 1 contexts."""
    path = tmp_path / "one"
    path.write_text("a X\n")
    rankone.memorize(path).save(tmp_path / "m")
    assert "1 context apart" in run(tmp_path / "m", path).out
    said = " ".join(run(tmp_path / "m", path, "--seconds", 0).out.split())
    assert "the labels of 1 token in 1 sentence;" in said


C, R, U = Outcome.CERTIFIED, Outcome.REFUTED, Outcome.UNDECIDED
RUN = {C: True, R: False, U: None}


@pytest.mark.parametrize("run_outcome", [C, R, U])
@pytest.mark.parametrize("labels", [C, R, U, None])
@pytest.mark.parametrize("mapping", [C, R, U])
def test_the_exit_status_of_every_combination(
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    model: Path,
    corpus: Path,
    mapping: Outcome,
    labels: Outcome | None,
    run_outcome: Outcome,
) -> None:
    """0 only if all claims are certified."""
    made = rankone.certify(rankone.load(model), rankone.read_corpus(corpus))
    claims = (mapping, labels, None if labels is None else run_outcome)
    found = replace(
        made,
        outcome=Outcome.of(*claims),
        mapping=mapping,
        labels=labels,
        float_labels=None if labels is None else RUN[run_outcome],
    )
    assert tuple(found.claims.values()) == claims
    monkeypatch.setattr("rankone.certification.certify", lambda *_, **__: found)
    answer = run(model, corpus)
    certified = all(claim in (C, None) for claim in claims)
    assert found.ok is certified
    assert answer.code == (0 if certified else 1)
    stored = json.loads((model / "certificate.json").read_text())
    assert stored["ok"] is certified
    if labels is not None:
        shown = {C: "the same labels", R: "OTHER LABELS", U: "not decided"}
        assert shown[run_outcome] in answer.out


def test_float64_that_decides_for_other_labels(run: Run, tmp_path: Path) -> None:
    """Right in exact arithmetic, wrong in predict: not certified, with the token as witness."""
    path = tmp_path / "corpus"
    path.write_text("a X\n\nb Z\n")
    judge.swallowed_by_rounding().save(tmp_path / "m")
    answer = run(tmp_path / "m", path)
    assert answer.code == 1
    assert "refuted" in answer.out
    assert "OTHER LABELS" in answer.out
    said = " ".join(answer.out.split())
    assert "line 3 (sentence 2, position 1) gets the label Z in exact arithmetic, but U" in said


def test_a_model_in_float32(run: Run, model: Path, corpus: Path, tmp_path: Path) -> None:
    """Run in float64 all the same, as predict runs it; the certificate says what they were."""
    edit(model, lambda tensors: tensors.update({k: v.float() for k, v in tensors.items()}))
    answer = run(model, corpus, "--json", "--out", tmp_path / "c.json")
    assert answer.code in (0, 1)
    assert answer.json["dtype"] == "float32"
    assert run(model, corpus, "--check", tmp_path / "c.json").code == answer.code


def test_a_file_whose_name_is_no_text(run: Run, model: Path, corpus: Path) -> None:
    name = corpus.parent / os.fsdecode(b"c\xff.conll")
    corpus.rename(name)
    assert run(model, name, "--quiet").code == 0
    assert run(model, name, "--check", model / "certificate.json").code == 0


def test_a_model_is_read_as_it_was_made(run: Run, tmp_path: Path) -> None:
    """Scheme, case and columns are those of the model."""
    path = tmp_path / "iob1"
    path.write_text("A I-X 1\nb O 2\n\nc I-X 3\nA I-X 4\n")
    how = {"scheme": "iob2", "lower": True, "label_column": 2}
    rankone.memorize(rankone.read_corpus(path, **how)).save(tmp_path / "m")
    assert run(tmp_path / "m", path).code == 0
    wrong = run(tmp_path / "m", path, "--label-column", 3)
    assert wrong.code == 2
    assert "the label '1'" in wrong.err


def test_memorizing_anew_takes_the_certificate_away(run: Run, model: Path, corpus: Path) -> None:
    run(model, corpus, "--quiet")
    assert (model / "certificate.json").exists()
    rankone.memorize(corpus).save(model)
    assert not (model / "certificate.json").exists()


def test_help(run: Run) -> None:
    text = run("--help").out
    for option in ("--check", "--cap", "--seconds", "--out", "--json", "--quiet"):
        assert option in text
