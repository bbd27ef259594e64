"""Certificates in files: unaltered they stand; altered, or beside other files, they do not."""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from certification import judge
from rankone import Corpus
from rankone.certification import Certificate, Outcome, certify, check, check_certificate
from rankone.certification import read_certificate as read
from rankone.certification.certificate import Left, contradiction
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
    return certify(model, corpus)


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
    assert (document["format"], document["version"]) == ("rankone certificate", 5)
    assert document["ok"] is certificate.ok is True
    assert document["outcome"] == "certified"


def test_unaltered_it_stands(path: Path, model: Model, corpus: Corpus) -> None:
    found = check_certificate(read(path), model, corpus)
    assert (found.outcome, found.reasons) == ("certified", ())
    assert list(found.seconds) == ["hash", "float", "exact", "total"]
    assert sum(found.seconds.values()) <= 2 * found.seconds["total"]
    figures = {"outcome": "certified", "reasons": (), "seconds": found.seconds}
    assert found.to_json() == {"ok": True, **figures}


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
    made = certify(model, corpus, cap=50)
    found = check_certificate(read(made.save(tmp_path / "c.json")), model, corpus)
    assert (found.outcome, found.reasons) == (outcome, ())
    forged = replace(made, outcome=Outcome.CERTIFIED, mapping=Outcome.CERTIFIED)
    assert not check_certificate(forged, model, corpus).ok


def test_fewer_wrong_tokens_are_claimed_only_where_tokens_are_open(
    certificate: Certificate, model: Model, corpus: Corpus
) -> None:
    """That pairs are open says nothing of the labels."""
    fewer = replace(certificate, outcome=Outcome.UNDECIDED, mapping=Outcome.UNDECIDED, wrong=0)
    reasons = {
        tokens: check_certificate(
            replace(fewer, left=Left(tokens, tokens, 1, time=False)), model, corpus
        ).reasons
        for tokens in (0, 1)
    }
    assert [r for r in reasons[0] if "wrong" in r] == ["wrong: the certificate says 0, the proof 1"]
    assert [r for r in reasons[1] if "wrong" in r] == []
    more = replace(fewer, wrong=2, left=Left(1, 1, 1, time=False))
    assert (
        "wrong: the certificate says 2, the proof 1"
        in check_certificate(more, model, corpus).reasons
    )


def test_figures_and_labels_come_together(certificate: Certificate) -> None:
    assert contradiction(certificate, True) is None
    nothing = dict.fromkeys(("labels", "wrong", "unavoidable"))
    a_margin_of_no_labels = replace(certificate, **nothing)
    undecided = {"outcome": Outcome.UNDECIDED, "left": Left(1, 1, 0, time=False)}
    labels_alone = dict.fromkeys(("wrong", "margin", "float_labels")) | undecided
    for found in (a_margin_of_no_labels, replace(certificate, **labels_alone)):
        problem = contradiction(found, found.ok)
        assert problem is not None
        assert problem.startswith("figures without labels, or labels without ")


# Figures that say what is not true, and what the check then says of each.
WORSE: list[tuple[dict[str, Any], list[str]]] = [
    ({"mapping": "refuted", "outcome": "refuted"}, ["mapping refuted", "reason None"]),
    ({"labels": "refuted", "outcome": "refuted"}, ["labels refuted", "reason None"]),
    ({"float_labels": False, "outcome": "refuted"}, ["float_labels refuted", "reason None"]),
    (
        dict.fromkeys(("labels", "wrong", "unavoidable", "margin", "float_labels")),
        ["labels None", "float_labels None", "unavoidable None", "wrong None", "margin None"],
    ),
    ({"reason": "because"}, ["reason because"]),
    ({"r": "1.0e-03"}, ["r 1.0e-03"]),
    ({"r": "-inf"}, ["r -inf"]),
    ({"delta": "1.0e+03"}, ["delta 1.0e+03"]),
    ({"delta": "inf"}, ["delta inf"]),
    ({"contexts": 1}, ["contexts 1"]),
    ({"contexts": 1000}, ["contexts 1000"]),
    ({"margin": 0.5}, ["margin 0.5"]),
    ({"margin": None}, ["margin None"]),
    ({"tokens": 11}, ["tokens 11"]),
    ({"wrong": 0}, ["wrong 0"]),
    ({"wrong": 2}, ["wrong 2"]),
    ({"unavoidable": 0}, ["unavoidable 0"]),
    ({"unavoidable": 2}, ["unavoidable 2"]),
    ({"float_distance": "0"}, ["float_distance 0"]),
    ({"closest": None}, ["closest None"]),
    ({"closest": [{"sentence": 1, "position": 1, "line": 1}] * 2}, ["closest line 1"]),
]


@pytest.mark.parametrize(("fields", "reasons"), WORSE, ids=lambda x: "-".join(x))
def test_an_altered_figure_is_told(
    path: Path, model: Model, corpus: Corpus, fields: dict[str, Any], reasons: list[str]
) -> None:
    found = check_certificate(read(altered(path, **fields)), model, corpus)
    assert not found.ok
    assert len(found.reasons) == len(reasons)
    for reason, start in zip(found.reasons, reasons, strict=True):
        name, _, value = start.partition(" ")
        assert reason.startswith(f"{name}: the certificate says {value}")


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
    "network": "the network is not of the architecture",
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
    certificate, other = read(path), changed_model(model, part)
    assert certificate.is_of(model)
    assert not certificate.is_of(other)
    found = check_certificate(certificate, other, corpus)
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
    made = certify(model, rankone.read_corpus(one))
    found = check_certificate(made, model, rankone.read_corpus(other))
    assert found.ok, found.reasons


# What is no certificate.

FORMAT = '"format": "rankone certificate"'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[" * 100_000, "a mapping"),
        ('{"a":' * 100_000, "cannot be read"),
        ("[]", "expected a mapping, got a list"),
        ('"certified"', "expected a mapping, got text"),
        ("{}", "not a certificate"),
        ('{"format": "rankone", "version": 2}', "not a certificate"),
        ('{"format": ["rankone certificate"], "version": 2}', "not a certificate"),
        (f"{{{FORMAT}}}", "another format than version 5"),
        (f'{{{FORMAT}, "version": 1}}', "another format than version 5"),
        (f'{{{FORMAT}, "version": "2"}}', "another format than version 5"),
        (f'{{{FORMAT}, "version": {"9" * 5000}}}', "another|out of range|cannot be read"),
        (f'{{{FORMAT}, "version": 5}}', "no required field"),
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
    with pytest.raises(CertificateError, match="no such file") as caught:
        read(tmp_path / "none.json")
    assert caught.value.remedy == "give a file written by certify"
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
    for name in document:
        path.write_text(json.dumps({k: v for k, v in document.items() if k != name}))
        with pytest.raises(CertificateError):
            read(path)


HUGE = 10**400
LEFT = {"tokens": 1, "sentences": 1, "pairs": 0, "time": False}
HOME = {"sentence": 1, "position": 1, "line": 1}
REFUSED: list[tuple[str, Any, str]] = [
    ("outcome", "maybe", "outcome: unknown word"),
    ("outcome", None, "outcome: "),
    ("outcome", "refuted", "altered: outcome refuted, but the claims make it certified"),
    ("outcome", "undecided", "altered: outcome undecided"),
    ("mapping", 1, "mapping: "),
    ("mapping", None, "mapping: "),
    ("mapping", "refuted", "altered: outcome certified, but the claims make it refuted"),
    ("labels", "undecided", "altered: outcome certified, but the claims make it undecided"),
    ("labels", None, "altered: figures without labels"),
    ("float_labels", False, "altered: outcome certified, but the claims make it refuted"),
    ("float_labels", None, "altered: outcome certified, but the claims make it undecided"),
    ("ok", False, "altered: ok does not fit"),
    ("ok", "yes", "altered: ok does not fit"),
    ("ok", 1, "altered: ok does not fit"),
    ("left", LEFT, "altered: left does not fit the outcome certified"),
    ("left", {**LEFT, "tokens": -1}, "left.tokens: "),
    ("r", "wide", "r: "),
    ("r", 1.5, "r: expected text"),
    ("r", "1_000", "r: "),
    ("r", "\uff11\uff10", "r: "),
    ("r", "Infinity", "r: "),
    ("r", "nan", "r: "),
    ("r", "1.0e+03\n", "r: "),
    ("r", "9" * 10**6, "r: "),
    ("r", "1e1" + "0" * 30, "r: "),
    ("delta", {}, "delta: "),
    ("delta", None, "delta: "),
    ("float_distance", True, "float_distance: "),
    ("margin", "0.4", "margin: "),
    ("margin", [], "margin: "),
    ("closest", [], "closest: "),
    ("closest", "abc", "closest: "),
    ("closest", [HOME], "closest: "),
    ("closest", [HOME] * 3, "closest: "),
    ("closest", [{**HOME, "sentence": [1]}, HOME], "closest[0].sentence: "),
    ("closest", [{**HOME, "sentence": 0}, HOME], "closest[0].sentence: "),
    ("closest", [{**HOME, "position": 0}, HOME], "closest[0].position: "),
    ("worst", 3, "worst: "),
    ("worst", {"sentence": 1, "line": 1}, "worst: "),
    ("hashes", None, "hashes: "),
    ("hashes", {"weights": ""}, "hashes: "),
    ("hashes", ["weights", "network", "vocabulary", "label names", "corpus"], "hashes: "),
    ("decided", ["float", "exact", "undecided"], "decided: "),
    ("decided", {"float": 1, "exact": -1, "undecided": 0}, "decided.exact: "),
    ("tokens", "eleven", "tokens: "),
    ("tokens", HUGE, "tokens: "),
    ("contexts", -1, "contexts: "),
    ("wrong", None, "altered: figures without labels, or labels without wrong"),
    ("unavoidable", None, "altered: figures without labels, or labels without unavoidable"),
    ("digits", 1.5, "digits: "),
    ("cap", "many", "cap: "),
    ("cap", None, "cap: "),
    ("cap", 0, "cap: "),
    ("cap", -5, "cap: "),
    ("cap", 10**9 + 1, "cap: "),
    ("cap", HUGE, "cap: "),
    ("cap", True, "cap: "),
    ("limit", -1.0, "limit: "),
    ("source", ["a"], "source: "),
    ("source", "\ud800", ""),
    ("reason", "\ud800", ""),
    ("seconds", {"total": "1"}, "seconds"),
    ("seconds", {"total": -1}, "seconds"),
]


@pytest.mark.parametrize(("field", "value", "message"), REFUSED, ids=lambda x: repr(x)[:30])
def test_nonsense_is_refused(path: Path, field: str, value: Any, message: str) -> None:
    """With the name of the field; never a traceback."""
    document = json.loads(path.read_text())
    assert field in document
    path.write_text(json.dumps({**document, field: value}))
    with pytest.raises(CertificateError) as caught:
        read(path)
    assert caught.value.what.startswith(message)
    assert caught.value.remedy == ("certify again" if message else caught.value.remedy)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400"])
@pytest.mark.parametrize("field", ["margin", "limit", "cap"])
def test_numbers_that_json_does_not_have(path: Path, field: str, text: str) -> None:
    document = json.dumps({**json.loads(path.read_text()), field: "here"})
    path.write_text(document.replace('"here"', text))
    with pytest.raises(CertificateError):
        read(path)


def test_a_limit_must_be_there_for_time_to_run_out(tmp_path: Path) -> None:
    model, corpus = nearly_saturated(1.0)
    made = certify(model, corpus, seconds=0)
    assert made.left is not None
    path = made.save(tmp_path / "c.json")
    assert read(path) == made
    with pytest.raises(CertificateError, match="time ran out, but there was no limit"):
        read(altered(path, limit=None))
    with pytest.raises(CertificateError, match="left does not fit the outcome undecided"):
        read(altered(path, left=None))


# Any file at all.

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([0, 1, -1, 2**63, HUGE, 0.5, -0.0, 1e308, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["certified", "refuted", "undecided", "inf", "-inf", "0", "1e9", "1e-9"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)


def nodes(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside."""
    items: Any = ()
    if isinstance(document, dict):
        items = document.items()
    elif isinstance(document, list):
        items = enumerate(document)
    for key, value in items:
        yield (*path, key)
        yield from nodes(value, (*path, key))


def put(document: Any, way: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at one place."""
    copied = copy.deepcopy(document)
    inner = copied
    for key in way[:-1]:
        inner = inner[key]
    inner[way[-1]] = value
    return copied


def is_weaker(claim: Certificate, true: Certificate) -> bool:
    """Whether a certificate says no more than one that is known to be true."""
    undecided = Outcome.UNDECIDED
    some_open = claim.left is not None and claim.left.tokens > 0
    return (
        all(a is b or a is undecided for a, b in zip_claims(claim, true))
        and (claim.contexts, claim.tokens) == (true.contexts, true.tokens)
        and claim.unavoidable == true.unavoidable
        and (claim.wrong == true.wrong or (some_open and claim.wrong <= true.wrong))
        and arb(claim.r) >= arb(true.r) * 0.99999
        and arb(claim.delta) <= arb(true.delta) * 1.00001
        and arb(claim.float_distance) >= arb(true.float_distance) * 0.99999
        and (claim.margin is None or claim.margin <= true.margin + 1e-5)
        and (claim.hashes == true.hashes)
    )


def zip_claims(one: Certificate, other: Certificate) -> list[tuple[Any, Any]]:
    return list(zip(one.claims.values(), other.claims.values(), strict=True))


def three_certificates() -> list[tuple[Certificate, Model, Corpus]]:
    """Certified, refuted and undecided."""
    corpus = Corpus.from_sentences(SENTENCES)
    model = rankone.memorize(corpus).model
    other = Corpus.from_sentences(corpora.spelled("abc XYZ", "bca YYX", "ab XX", "ab ZY"))
    saturated = nearly_saturated(1.0)
    return [
        (certify(model, corpus), model, corpus),
        (certify(model, other), model, other),
        (certify(*saturated, cap=50), *saturated),
    ]


THREE: list[tuple[Certificate, Model, Corpus]] = []


@pytest.mark.parametrize("which", range(3))
@given(data=st.data())
def test_any_value_in_any_place(which: int, data: st.DataObject) -> None:
    """Refused, or checked and found wrong, or no more than the truth; never anything else."""
    if not THREE:
        THREE.extend(three_certificates())
    true, model, corpus = THREE[which]
    document = json.loads(json.dumps(true.to_json()))
    ways = st.lists(st.sampled_from(list(nodes(document))), min_size=4, max_size=8)
    for way in data.draw(ways):
        changed = put(document, way, data.draw(JSON))
        with tempfile.TemporaryDirectory() as home, suppress(CertificateError):
            path = Path(home, "c.json")
            path.write_text(json.dumps(changed))
            claim = read(path)
            if check_certificate(claim, model, corpus).ok:
                assert is_weaker(claim, true)
            else:
                assert claim != true


def test_infinite_bounds_imply_those_of_their_own_sign() -> None:
    for lower in (False, True):
        for said in ("inf", "-inf"):
            for proved in ("inf", "-inf"):
                assert check._implied(said, arb(proved), lower) is (said == proved)
