"""Certificates in files: unaltered they stand; altered, or beside other files, they do not."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import corpora
import rankone
from certify import judge
from rankone import Corpus
from rankone.certify import Certificate, Check, Outcome, certify_model, check_certificate
from rankone.certify import read_certificate as read
from rankone.errors import CertificateError
from rankone.nn import Model

SENTENCES = corpora.spelled("abc XYZ", "bca YYX", "ab XX", "ab XY")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return Corpus.from_sentences(SENTENCES)


@pytest.fixture(scope="module")
def model(corpus: Corpus) -> Model:
    return rankone.memorize(corpus).model


@pytest.fixture(scope="module")
def certificate(model: Model, corpus: Corpus) -> Certificate:
    return certify_model(model, corpus)


@pytest.fixture
def path(tmp_path: Path, certificate: Certificate) -> Path:
    return certificate.save(tmp_path / "certificate.json")


def altered(path: Path, **fields: Any) -> Path:
    """The file with other values in some fields; `ok` follows the outcome."""
    document = json.loads(path.read_text())
    assert set(fields) <= set(document)
    if "outcome" in fields:
        fields = {"ok": fields["outcome"] == "certified", **fields}
    path.write_text(json.dumps({**document, **fields}))
    return path


def test_the_file_holds_the_certificate(certificate: Certificate, path: Path) -> None:
    assert read(path) == certificate
    document = json.loads(path.read_text())
    assert (document["format"], document["version"]) == ("rankone certificate", 1)
    assert document["ok"] is certificate.ok is True
    assert document["outcome"] == "certified"


def test_unaltered_it_stands(path: Path, model: Model, corpus: Corpus) -> None:
    found = check_certificate(read(path), model, corpus)
    assert found == Check("certified", ())
    assert found.to_json() == {"ok": True, "outcome": "certified", "reasons": ()}


def test_it_stands_for_the_model_as_it_is_stored(
    path: Path, model: Model, corpus: Corpus, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    assert check_certificate(read(path), rankone.load(tmp_path / "model"), corpus).ok


def nearly_saturated(v1: float) -> tuple[Model, Corpus]:
    """Contexts of a that differ by e^-7000, or not at all if v1 is 0; no labels."""
    table = [[7000.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 1.0, 0.0]]
    model = judge.plain_model(table, v1=[v1, 0, 0], v2=[0.0, 1.0, 0.0], output=[0.0, 0.0, 1.0])
    return model, Corpus.from_sentences(corpora.spelled("ab XX", "ac XX"))


@pytest.mark.parametrize(("v1", "outcome"), [(0.0, "refuted"), (1.0, "undecided")])
def test_what_is_not_certified_stands_as_such(v1: float, outcome: str, tmp_path: Path) -> None:
    model, corpus = nearly_saturated(v1)
    made = certify_model(model, corpus, cap=50)
    found = check_certificate(read(made.save(tmp_path / "c.json")), model, corpus)
    assert found == Check(outcome, ())
    forged = replace(made, outcome=Outcome.CERTIFIED, mapping=Outcome.CERTIFIED)
    assert not check_certificate(forged, model, corpus).ok


# A figure that says more than is true, and what the check then says.
WORSE: list[tuple[str, Any, str]] = [
    ("outcome", "refuted", "outcome refuted"),
    ("outcome", "undecided", "outcome undecided"),
    ("mapping", "refuted", "mapping refuted"),
    ("labels", "refuted", "labels refuted"),
    ("labels", None, "labels None"),
    ("reason", "because", "reason because"),
    ("r", "1.0e-03", "r 1.0e-03"),
    ("r", "-inf", "r -inf"),
    ("delta", "1.0e+03", "delta 1.0e+03"),
    ("delta", "inf", "delta inf"),
    ("contexts", 1, "contexts 1"),
    ("contexts", 1000, "contexts 1000"),
    ("margin", 0.5, "margin 0.5"),
    ("margin", float("inf"), "margin inf"),
    ("margin", None, "margin None"),
    ("tokens", 11, "tokens 11"),
    ("wrong", 0, "wrong 0"),
    ("wrong", 2, "wrong 2"),
    ("unavoidable", 0, "unavoidable 0"),
    ("unavoidable", 2, "unavoidable 2"),
    ("float_distance", "0", "float_distance 0"),
    ("float_labels", False, "float_labels False"),
    ("float_labels", None, "float_labels None"),
    ("closest", None, "closest None"),
    ("closest", [{"sentence": 1, "position": 1, "line": 1}] * 2, "closest line 1"),
]


@pytest.mark.parametrize(("field", "value", "reason"), WORSE)
def test_an_altered_figure_is_told(
    path: Path, model: Model, corpus: Corpus, field: str, value: Any, reason: str
) -> None:
    found = check_certificate(read(altered(path, **{field: value})), model, corpus)
    assert not found.ok
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith(f"it says {reason}")


@pytest.mark.parametrize("field", ["r", "delta", "margin", "float_distance"])
def test_a_weaker_figure_is_still_true(
    path: Path, model: Model, corpus: Corpus, certificate: Certificate, field: str
) -> None:
    value = getattr(certificate, field)
    weaker = 2.0 if field in ("r", "float_distance") else 0.5
    changed = float(value) * weaker
    given = changed if isinstance(value, float) else repr(changed)
    assert check_certificate(read(altered(path, **{field: given})), model, corpus).ok


@pytest.mark.parametrize("field", ["r", "delta", "margin"])
def test_a_figure_made_better_by_a_thousandth(
    path: Path, model: Model, corpus: Corpus, certificate: Certificate, field: str
) -> None:
    value = getattr(certificate, field)
    changed = float(value) * (0.999 if field == "r" else 1.001)
    given = changed if isinstance(value, float) else repr(changed)
    assert not check_certificate(read(altered(path, **{field: given})), model, corpus).ok


REMARKS = {
    "worst": {"sentence": 1, "position": 2, "line": 1},
    "decided": {"float": 0, "exact": 11, "undecided": 0},
    "digits": 99,
}


@pytest.mark.parametrize("field", REMARKS)
def test_remarks_are_no_claims(path: Path, model: Model, corpus: Corpus, field: str) -> None:
    """They tell how it went, which may differ from machine to machine; so the page says."""
    certificate = read(altered(path, **{field: REMARKS[field]}))
    assert check_certificate(certificate, model, corpus).ok


def test_names_and_times_may_differ(path: Path, model: Model, corpus: Corpus) -> None:
    changed = altered(path, source="elsewhere", seconds={"total": 0.0}, cap=100)
    assert check_certificate(read(changed), model, corpus).ok


HASHES = {
    "weights": "the weights are not those",
    "network": "the network is not shaped",
    "vocabulary": "the model's vocabulary",
    "label names": "the model's labels",
    "corpus": "the corpus is not the one",
}


@pytest.mark.parametrize("part", HASHES)
def test_an_altered_hash_is_told(path: Path, model: Model, corpus: Corpus, part: str) -> None:
    certificate = read(path)
    certificate = replace(certificate, hashes={**certificate.hashes, part: "0" * 64})
    found = check_certificate(certificate, model, corpus)
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith(HASHES[part])


@torch.no_grad()
def changed_model(model: Model, part: str) -> Model:
    other = copy.deepcopy(model)
    network = other.network
    if part == "weights":  # the last bit of one number
        bits = network.table.data.view(torch.int64)
        bits[0, 0] ^= 1
    elif part == "network":
        network.shape = replace(network.shape, causal=True)
    elif part == "vocabulary":
        return Model(network, (*model.vocabulary[:-1], "other"), model.labels)
    else:
        return Model(network, model.vocabulary, model.labels[::-1])
    return other


@pytest.mark.parametrize("part", ["weights", "network", "vocabulary", "label names"])
def test_another_model_is_told(path: Path, model: Model, corpus: Corpus, part: str) -> None:
    found = check_certificate(read(path), changed_model(model, part), corpus)
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith(HASHES[part])


@pytest.mark.parametrize(
    "sentences",
    [
        corpora.spelled("abc XYZ", "bca YYX", "ab XY", "ab XX"),  # two labels change places
        corpora.spelled("bca YYX", "abc XYZ", "ab XX", "ab XY"),  # two sentences do
        corpora.spelled("abc XYZ", "bca YYX", "ab XX", "ac XY"),  # another word
        corpora.spelled("abc XYZ", "bca YYX", "abab XXXY"),  # two sentences are one
        corpora.spelled("abc XYZ", "bca YYX", "ab XX"),  # one is missing
    ],
)
def test_another_corpus_is_told(path: Path, model: Model, sentences: corpora.Sentences) -> None:
    found = check_certificate(read(path), model, Corpus.from_sentences(sentences))
    assert len(found.reasons) == 1
    assert found.reasons[0].startswith(HASHES["corpus"])


def test_every_parameter_counts(path: Path, model: Model, corpus: Corpus) -> None:
    certificate = read(path)
    for name, parameter in model.network.named_parameters():
        other = copy.deepcopy(model)
        with torch.no_grad():
            flat = dict(other.network.named_parameters())[name].data.view(-1)
            flat[-1] = torch.nextafter(flat[-1], torch.tensor(9.0, dtype=flat.dtype))
        assert not check_certificate(certificate, other, corpus).ok, (name, parameter.shape)


def test_someone_else_s_certificate(path: Path) -> None:
    """All that differs is told at once."""
    other = judge.random_model(0)
    found = check_certificate(read(path), other, Corpus.from_sentences(corpora.spelled("f X")))
    assert [reason.split(" are ")[0].split(" is ")[0] for reason in found.reasons] == [
        "the weights",
        "the network",
        "the model's vocabulary",
        "the corpus",
    ]


def test_the_same_corpus_in_another_file(model: Model, tmp_path: Path) -> None:
    """Blank lines and other columns do not matter, so the certificate stands there too."""
    rows = [[f"{w}\t{t}" for w, t in zip(*pair, strict=True)] for pair in SENTENCES]
    one, other = tmp_path / "one.tsv", tmp_path / "other.tsv"
    one.write_text("\n\n".join("\n".join(lines) for lines in rows) + "\n")
    other.write_text("\n\n\n".join("\n".join(lines) for lines in rows) + "\n")
    made = certify_model(model, rankone.read_corpus(one))
    found = check_certificate(made, model, rankone.read_corpus(other))
    assert found.ok, found.reasons


# What is no certificate.


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ("[]", "not a certificate"),
        ("{}", "not a certificate"),
        ('"certified"', "not a certificate"),
        ('{"format": "rankone", "version": 1}', "not a certificate"),
        ('{"format": "rankone certificate", "version": 2}', "version 2 of the format"),
        ('{"format": "rankone certificate"}', "version None of the format"),
        ('{"format": "rankone certificate", "version": 1}', "incomplete or altered"),
    ],
)
def test_files_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match=message) as caught:
        read(path)
    assert caught.value.where == str(path)
    assert caught.value.remedy


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="no such file"):
        read(tmp_path / "none.json")
    with pytest.raises(CertificateError, match="cannot be read"):
        read(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(CertificateError, match="cannot be read"):
        read(tmp_path / "bytes")


def test_a_file_that_was_cut_off(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole) - 2, 37):
        path.write_bytes(whole[:length])
        with pytest.raises(CertificateError):
            read(path)


def test_no_field_may_be_missing(path: Path) -> None:
    document = json.loads(path.read_text())
    for name in set(document) - {"ok"}:
        path.write_text(json.dumps({k: v for k, v in document.items() if k != name}))
        with pytest.raises(CertificateError):
            read(path)


NONSENSE: list[tuple[str, Any]] = [
    ("outcome", "maybe"),
    ("mapping", 1),
    ("mapping", None),
    ("ok", False),
    ("ok", "yes"),
    ("r", "wide"),
    ("r", 1.5),
    ("r", []),
    ("delta", {}),
    ("delta", None),
    ("delta", "nan"),
    ("margin", "0.4"),
    ("margin", []),
    ("float_distance", True),
    ("closest", []),
    ("closest", "abc"),
    ("closest", [{"sentence": 1, "position": 1, "line": 1}]),
    ("worst", 3),
    ("hashes", None),
    ("hashes", {"weights": ""}),
    ("tokens", "eleven"),
    ("outcome", None),
    ("hashes", ["weights", "network", "vocabulary", "label names", "corpus"]),
    ("decided", ["float", "exact", "undecided"]),
    ("cap", "many"),
    ("cap", None),
    ("cap", 0),
    ("cap", -5),
    ("cap", 1e400),
    ("cap", True),
]


def check_nonsense(path: Path, model: Model, corpus: Corpus) -> None:
    with suppress(CertificateError):
        assert not check_certificate(read(path), model, corpus).ok


@pytest.mark.parametrize(("field", "value"), NONSENSE)
def test_nonsense_is_refused_or_told(
    path: Path, model: Model, corpus: Corpus, field: str, value: Any
) -> None:
    """Never a traceback, and never a certificate that stands."""
    check_nonsense(altered(path, **{field: value}), model, corpus)
