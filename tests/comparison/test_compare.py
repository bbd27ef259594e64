"""Constructions side by side: what is claimed is evaluated again, literally."""

from __future__ import annotations

import csv
import json
import time
from collections import Counter
from math import log
from pathlib import Path
from typing import Any

import pytest
import torch

import corpora
import exact_truth
import rankone
from rankone import Corpus
from rankone.certification import Outcome
from rankone.certification.certificate import read_certificate
from rankone.comparison import plots
from rankone.comparison.compare import posed
from rankone.comparison.result import COLUMNS, Comparison, Row
from rankone.construct.constructions import CONSTRUCTIONS
from rankone.errors import PrecisionError, SettingError, UnfitError
from rankone.nn import Model
from rankone.nn.exact import ExactModel, ExactNetwork

SETS = corpora.spelled("abc xyx", "abd yyx", "acd xxy", "bcd yxx", "cab xxy")
REPEATS = corpora.spelled("aa xy", "ab yx", "ba xx", "b y")
CONTRADICTIONS = corpora.spelled("abc xyx", "abc xyy", "abc yyx", "acd xxy", "bcd yxx")
CAP = 3000
KEYS = set(
    "construction layers heads width parameters nonzero bits digits contexts wrong unavoidable "
    "outcome seconds reason".split()
)


def labels_of(row: Row, corpus: Corpus) -> list[list[str]]:
    """What its network chooses, every equation as printed."""
    model = row.model
    assert model is not None
    found = []
    for sentence in corpus.sentences:
        ids = [corpus.vocabulary.index(word) for word in sentence.tokens]
        if isinstance(model, ExactModel):
            dps = 2 * (row.digits or 0) + 50
            chosen = exact_truth.labels(model.network, ids, dps)
        else:
            with torch.no_grad():
                chosen = model.network.expand()(torch.tensor([ids]))[0].argmax(-1).tolist()
        found.append([model.labels[c] for c in chosen])
    return found


def wrong(row: Row, corpus: Corpus) -> int:
    pairs = zip(labels_of(row, corpus), corpus.sentences, strict=True)
    return sum(a != b for chosen, s in pairs for a, b in zip(chosen, s.labels, strict=True))


def contexts(corpus: Corpus, positions: bool) -> int:
    look = corpora.LOOKS["sequence" if positions else "proportions"]
    seen = {look(list(s.tokens), k) for s in corpus.sentences for k in range(len(s.tokens))}
    return len(seen)


def entropy(sentences: corpora.Sentences, look: corpora.Look) -> float:
    """H(label | context) in nats per token, from its definition."""
    pairs = [(look(tokens, k), label) for tokens, tags in sentences for k, label in enumerate(tags)]
    both, alone = Counter(pairs), Counter(context for context, _ in pairs)
    return -sum(log(both[pair] / alone[pair[0]]) for pair in pairs) / len(pairs)


CASES = {"sets": SETS, "repeats": REPEATS, "contradictions": CONTRADICTIONS}


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("case", CASES)
def test_every_row_is_right_and_says_so(construction: Any, case: str) -> None:
    corpus = Corpus.from_sentences(CASES[case])
    found = rankone.compare(corpus, constructions=[construction], cap=CAP)
    assert found.ok
    assert found.positions == (case == "repeats")
    look = corpora.LOOKS["sequence" if found.positions else "proportions"]
    least = corpora.errors(CASES[case], look)
    assert [row.variant or "" for row in found.rows] == list(CONSTRUCTIONS[construction].variants)
    for row in found.rows:
        if row.variant == "paper":  # tests/paper has the literal constants, with all their digits
            assert f"more than the cap of {CAP:,}" in (row.reason or "")
            continue
        assert row.outcome is Outcome.CERTIFIED, (row.name, row.reason)
        assert (row.wrong, row.unavoidable) == (least, least)
        assert row.contexts == contexts(corpus, found.positions)
        assert wrong(row, corpus) == least
        assert row.reason is None
        if construction == "madden2024":
            assert row.entropy == pytest.approx(entropy(CASES[case], look), abs=1e-12)
            assert row.cross_entropy == pytest.approx(row.entropy, abs=1e-12)
        else:
            assert row.entropy is row.cross_entropy is None


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("case", ["sets", "repeats"])
def test_sizes_are_those_of_the_weights(construction: Any, case: str) -> None:
    corpus = Corpus.from_sentences(CASES[case])
    for row in rankone.compare(corpus, constructions=[construction], cap=CAP).rows:
        if row.variant == "paper":
            continue
        assert row.model is not None
        network: Any = row.model.network
        if isinstance(network, ExactNetwork):
            layers = exact_truth.flat(network)
            matrices = [
                m
                for layer in layers
                for m in (
                    [m for h in layer.heads for m in (h.key, h.query, h.value, h.output)]
                    if hasattr(layer, "heads")
                    else [layer.weight1, layer.weight2]
                )
            ] + [network.head]
            vectors = [
                b
                for layer in layers
                if not hasattr(layer, "heads")
                for b in (layer.bias1, layer.bias2)
            ] + [network.bias]
            numbers = [x for m in matrices for full in exact_truth.dense(m) for x in full]
            numbers += [x for b in vectors for x in exact_truth.vector(b)]
            used = [x for x in numbers if x]
            lengths = [abs(x.numerator).bit_length() + x.denominator.bit_length() - 1 for x in used]
            assert (row.bits, row.bits_total) == (max(lengths), sum(lengths))
            assert row.layers == len(network.blocks)
            assert row.attentions == sum(b.attention is not None for b in network.blocks)
        else:
            rest = [p for n, p in network.named_parameters() if n not in ("table", "positions")]
            numbers = [x for p in rest for x in p.detach().flatten().tolist()]
            used = [x for x in numbers if x]
            assert (row.bits, row.bits_total) == (64, 64 * len(used))
        assert row.parameters == len(numbers)
        assert row.nonzero == len(used)
        assert row.distinct == len(set(used))


def test_what_does_not_fit_is_a_row_with_the_reason() -> None:
    found = rankone.compare(Corpus.from_sentences(REPEATS), positions=False)
    rows = {row.name: row for row in found.rows}
    for name in ("kajitsuka2024 paper", "kajitsuka2024-deep", "kim2023", "yun2020 hardmax"):
        row = rows[name]
        assert "repeats a token" in (row.reason or "")
        assert {getattr(row, name) for name in ("outcome", "layers", "model")} == {None}
    for name in ("line", "kajitsuka2025"):
        assert rows[name].outcome is Outcome.CERTIFIED
    assert len(rows) == sum(len(each.variants) for each in CONSTRUCTIONS.values())


def test_only_last_tokens_may_be_asked() -> None:
    """Next token: labels that contradict each other elsewhere do not matter."""
    corpus = Corpus.from_sentences(corpora.spelled("abca xyxz", "abca yxyz", "bcaa xyyx", "a y"))
    found = rankone.compare(corpus, last=True, positions=False)
    rows = {row.name: row for row in found.rows}
    assert "repeat a token" in (rows["kim2023"].reason or "")
    for name in ("kajitsuka2025", "line", "madden2024 piecewise"):
        assert rows[name].outcome is Outcome.CERTIFIED
        assert (rows[name].wrong, rows[name].unavoidable) == (1, 1)  # abca and bcaa: equal shares
        ends = [labels[-1] for labels in labels_of(rows[name], corpus)]
        assert ends == ["z", "z", "z", "y"]
    assert found.to_json()["rows"][0]["construction"] == "yun2020"


def test_digits_and_time_end_one_construction_and_the_others_go_on() -> None:
    few = rankone.compare("toy", constructions=["line", "kajitsuka2024"], cap=300)
    rows = {row.name: row for row in few.rows}
    assert "needs" in (rows["kajitsuka2024 paper"].reason or "")
    assert "300" in (rows["kajitsuka2024 paper"].reason or "")
    assert rows["kajitsuka2024 paper"].model is None
    assert rows["kajitsuka2024 tight"].outcome is Outcome.CERTIFIED
    began = time.perf_counter()
    quick = rankone.compare("toy", constructions=["line", "kajitsuka2024"], seconds=0.2)
    assert time.perf_counter() - began < 10
    rows = {row.name: row for row in quick.rows}
    assert "s" in (rows["kajitsuka2024 paper"].reason or "")
    assert rows["kajitsuka2024 paper"].outcome is not Outcome.CERTIFIED
    assert rows["line"].outcome is Outcome.CERTIFIED


def test_if_nothing_fits_every_reason_is_given() -> None:
    corpus = Corpus.from_sentences(REPEATS)
    with pytest.raises(UnfitError) as error:
        rankone.compare(corpus, positions=False, constructions=["kim2023", "kajitsuka2024-deep"])
    assert "kim2023: " in error.value.what
    assert "kajitsuka2024-deep: " in error.value.what
    assert error.value.remedy


def with_build(patch: pytest.MonkeyPatch, name: str, error: BaseException) -> None:
    def build(*_: Any) -> Any:
        raise error

    patch.setitem(CONSTRUCTIONS[name].variants, "", build)  # type: ignore[arg-type]


def test_ctrl_c_keeps_the_rows_that_are_done(monkeypatch: pytest.MonkeyPatch) -> None:
    with_build(monkeypatch, "kajitsuka2025", KeyboardInterrupt())
    found = rankone.compare("toy", constructions=["kim2023", "kajitsuka2025", "line"])
    assert found.interrupted
    assert [row.name for row in found.rows] == ["kim2023"]
    assert found.to_json()["interrupted"] is True


def test_an_error_of_one_is_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    with_build(monkeypatch, "kajitsuka2024-deep", PrecisionError("no room", remedy="none"))
    found = rankone.compare("toy", constructions=["line", "kajitsuka2024-deep"])
    assert [row.reason for row in found.rows] == ["no room", None]
    assert not found.interrupted
    with_build(monkeypatch, "kajitsuka2024-deep", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):  # a fault of ours is not hidden
        rankone.compare("toy", constructions=["line", "kajitsuka2024-deep"])


def test_a_wrong_network_is_not_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    """Built for other labels than those it is certified on."""
    build = CONSTRUCTIONS["kajitsuka2024-deep"].variants[""]
    assert build is not None
    flipped = Corpus.from_sentences(corpora.spelled("abc xyx", "abd xxy", "acd yyx", "bcd xyy"))

    def other(_: Any, seed: int) -> Any:
        return build(posed(flipped, positions=False), seed)

    monkeypatch.setitem(CONSTRUCTIONS["kajitsuka2024-deep"].variants, "", other)  # type: ignore[arg-type]
    corpus = Corpus.from_sentences(SETS[:4])
    found = rankone.compare(corpus, constructions=["kajitsuka2024-deep"])
    assert not found.ok
    assert found.rows[0].outcome is Outcome.REFUTED
    assert "but the network chooses" in (found.rows[0].reason or "")


@pytest.mark.parametrize("names", [[], "line", ["line", "lines"], ["LINE"]])
def test_names_that_are_none(names: Any) -> None:
    with pytest.raises(SettingError, match="line"):
        rankone.compare("toy", constructions=names)


def test_order_and_repeats_of_names_do_not_matter() -> None:
    found = rankone.compare("toy", constructions=["line", "kajitsuka2024-deep", "line"])
    assert [row.name for row in found.rows] == ["kajitsuka2024-deep", "line"]


def test_what_is_written(tmp_path: Path) -> None:
    names: Any = ["kajitsuka2024-deep", "kajitsuka2025", "line"]
    corpus = Corpus.from_sentences(SETS)
    found = rankone.compare(corpus, constructions=names)
    files = found.save(tmp_path)
    document = json.loads((tmp_path / "comparison.json").read_text())
    assert document == json.loads(json.dumps(found.to_json()))
    assert all(row.keys() >= KEYS for row in document["rows"])
    with (tmp_path / "comparison.csv").open() as file:
        table = list(csv.DictReader(file))
    assert [row["construction"] for row in table] == names
    assert list(table[0]) == COLUMNS
    assert table[0]["bits"] == str(found.rows[0].bits)
    assert table[0]["variant"] == ""
    assert Counter(file.suffix for file in files)[".png"] == 1
    for row in found.rows:
        home = tmp_path / row.directory
        certificate = read_certificate(home / "certificate.json")
        loaded: Any = rankone.load(home) if row.construction == "line" else rankone.load_exact(home)
        assert rankone.check_certificate(certificate, loaded, corpus).ok
        assert certificate.is_of(loaded)
    deep = found.rows[0]
    assert isinstance(deep.model, ExactModel)
    assert rankone.load_exact(tmp_path / deep.directory).network == deep.model.network
    assert deep.float64
    model = rankone.load(tmp_path / f"{deep.directory}-float64")
    assert isinstance(model, Model)
    told = [list(sentence.labels) for sentence in corpus.sentences]
    assert model.predict(corpus) == told
    assert deep.model.predict([list(s.tokens) for s in corpus.sentences]) == told
    assert rankone.certify(model, corpus).ok


def test_what_does_not_fit_float64_is_not_written_as_float64(tmp_path: Path) -> None:
    found = rankone.compare("toy", constructions=["kajitsuka2024"])
    rows = {row.variant: row for row in found.rows}
    assert [rows[name].float64 for name in ("paper", "tight", "practical")] == [False, False, True]
    found.save(tmp_path, plots=False)
    assert not list(tmp_path.glob("*-float64"))
    with pytest.raises(rankone.RankOneError, match="exact numbers"):
        rankone.load(tmp_path / "kajitsuka2024-tight")


def test_bars_are_in_the_order_of_the_table() -> None:
    rows = tuple(
        Row(name, None, parameters=n, nonzero=n, bits=n, layers=n)
        for name, n in (("kim2023", 3), ("line", 7))
    )
    found = Comparison("here", 1, 1, False, (*rows, Row("madden2024", None)), False, {})
    axis = plots._bars(found).axes[0]
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names == ["line", "kim2023"]  # bars are drawn from below
    assert [bar.get_width() for bar in axis.patches] == [7, 3]
