"""The directory of an exact model: a round trip, refusals, and labels that are proved."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from flint import arb, ctx
from hypothesis import given

import corpora
import exact_truth
import rankone
from exact_truth import WORDS, random_network
from rankone.errors import ModelError, OutputError, PrecisionError
from rankone.nn.exact import ExactBlock, ExactFeedForward, ExactModel, ExactNetwork, Sparse
from rankone.nn.exact.model import load_exact, winner
from rankone.nn.exact.numbers import exact

F = Fraction
FILES = {"network.json", "config.json", "vocabulary.json", "labels.json"}
VOCABULARY, LABELS = tuple("abcd")[:WORDS], ("X", "Y", "Z")
LONG = [F(1), F(-1, 3), F(10**40 + 1, 7), F(-1, 10**40), F(2**53), F(2**53 + 1)]


def a_model(seed: int = 27, **shape: Any) -> ExactModel:
    """Of every kind of layer, with long numbers, and with layers missing."""
    given = {"blocks": 5, "positions": True, "activations": ("relu", "tanh"), "choices": LONG}
    network = random_network(seed, **{**given, **shape})
    return ExactModel(network, VOCABULARY, LABELS, {"label_column": 3, "lower": True})


@pytest.fixture
def home(tmp_path: Path) -> Path:
    model = a_model()
    blocks = model.network.blocks
    assert {b.attention.kind for b in blocks if b.attention} == {"softmax", "hardmax"}
    assert {b.feedforward.activation for b in blocks if b.feedforward} == {"relu", "tanh"}
    assert None in {b.attention for b in blocks}
    assert None in {b.feedforward for b in blocks}
    model.save(tmp_path / "model")
    return tmp_path / "model"


@given(exact_truth.shapes(choices=LONG))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, shape: dict[str, Any]) -> None:
    model = ExactModel(random_network(**shape), VOCABULARY, LABELS, {"scheme": "iob2"})
    home = tmp_path_factory.mktemp("round") / "model"
    assert {path.name for path in model.save(home)} == FILES
    loaded = load_exact(home)
    assert loaded == model
    assert loaded.weights_sha256 == model.weights_sha256
    assert {path.name for path in home.iterdir()} == FILES
    assert all(isinstance(json.loads(path.read_text()), dict | list) for path in home.iterdir())


def test_the_files(home: Path) -> None:
    document = json.loads((home / "network.json").read_text())
    assert list(document) == ["table", "positions", "blocks", "head", "bias", "causal"]
    assert json.loads((home / "config.json").read_text()) == {
        "format": "rankone exact",
        "version": 1,
        "reading": {"label_column": 3, "lower": True},
    }
    assert json.loads((home / "vocabulary.json").read_text()) == [*VOCABULARY]
    assert json.loads((home / "labels.json").read_text()) == [*LABELS]
    assert load_exact(home).reading == {"label_column": 3, "lower": True}


def test_every_change_of_a_weight_changes_the_fingerprint() -> None:
    model = a_model()
    network, (first, *rest) = model.network, model.network.bias
    others = [
        replace(network, bias=(first + exact(F(1, 10**50)), *rest)),
        replace(network, causal=not network.causal),
        replace(network, blocks=network.blocks[:-1]),
        replace(network, positions=None),
        replace(network, table=Sparse(network.table.rows, network.dim + 1)),
    ]
    prints = {ExactModel(x, VOCABULARY, LABELS).weights_sha256 for x in (network, *others)}
    assert len(prints) == 6


def test_an_earlier_model_is_replaced_and_nothing_else(home: Path, tmp_path: Path) -> None:
    other = a_model(0)
    paths = other.save(home, report={"seconds": 1.5})
    assert {path.name for path in paths} == {*FILES, "report.json"}
    assert load_exact(home) == other
    a_model().save(home)
    assert {path.name for path in home.iterdir()} == FILES  # the old report is gone
    (home / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds other files \(notes.txt\)"):
        other.save(home)
    float64 = rankone.memorize(corpora.spelled("ab xy"))
    float64.save(tmp_path / "float")
    with pytest.raises(OutputError, match=r"other files|another program"):
        other.save(tmp_path / "float")


def edit(name: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """The document changed in place, or replaced by what `change` returns."""

    def damage(home: Path) -> None:
        document = json.loads((home / name).read_text())
        changed = change(document)
        (home / name).write_text(json.dumps(document if changed is None else changed))

    return damage


def network(*path: Any, to: Any) -> Callable[[Path], None]:
    """The entry of network.json at this path becomes another; `to` may be a function of it."""

    def change(document: Any) -> None:
        for step in path[:-1]:
            document = document[step]
        old = document.get(path[-1]) if isinstance(document, dict) else document[path[-1]]
        document[path[-1]] = to(old) if callable(to) else to

    return edit("network.json", change)


def number(text: str) -> Callable[[Path], None]:
    return network("bias", 0, to=text)


def layer(kind: str, *path: Any, to: Any) -> Callable[[Path], None]:
    """The same in the first block that has such a layer."""

    def change(document: Any) -> None:
        part = next(block[kind] for block in document["blocks"] if block[kind] is not None)
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = to(part.get(path[-1])) if callable(to) else to

    return edit("network.json", change)


def text(name: str, old: str, new: str) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        before = (home / name).read_text()
        assert old in before
        (home / name).write_text(before.replace(old, new, 1))

    return damage


def pipe(name: str) -> Callable[[Path], None]:
    def damage(home: Path) -> None:
        (home / name).unlink()
        os.mkfifo(home / name)

    return damage


def remove(name: str) -> Callable[[Path], None]:
    return lambda home: (home / name).unlink()


def more(columns: int) -> int:
    return columns + 1


def again(rows: list[Any]) -> list[Any]:
    return [*rows, []]


ODD = [
    "",
    "1/0",
    "1/0x0",
    "0x",
    "1e5",
    "0.5",
    "nan",
    "inf",
    "1/-2",
    "+1",
    " 1",
    "1\n",
    "0X1F",
    "1_0",
]
ODD += ["007", "9" * 17, "1/" + "9" * 17, "--1", "½", "\u0661", "0xG", "1/2/3"]
SAMPLE = {"rows": [[], [], [], []], "columns": 2**31 - 1}
DAMAGE: dict[str, list[tuple[Callable[[Path], None], str]]] = {
    "network.json": [
        *((number(odd), "bias|number|literal|zero|expected|division") for odd in ODD),
        (number(3), "bias.*expected text"),  # type: ignore[arg-type]
        (remove("network.json"), "no such file"),
        (pipe("network.json"), "not a file"),
        (lambda home: (home / "network.json").write_bytes(b""), "cannot be read"),
        (lambda home: (home / "network.json").write_bytes(b"\xff\xfe"), "cannot be read"),
        (lambda home: (home / "network.json").write_text("[" * 100_000), "network.json"),
        (edit("network.json", lambda _: []), "expected a mapping"),
        (network("table", "columns", to=more), "is needed"),
        (network("table", "columns", to=2**31 - 1), "is needed"),
        (network("table", "columns", to=2**31), "expected"),
        (network("table", "columns", to=-1), "expected"),
        (network("positions", "columns", to=more), "is needed"),
        (network("positions", "rows", to=[]), "positions"),
        (network("head", "rows", to=again), "4 x 3 where 3 x 3 is needed"),
        (network("bias", to=[]), "labels"),
        (network("bias", to=lambda b: b[:-1]), "is needed"),
        (network("causal", to="yes"), "causal: expected true or false"),
        (network("extra", to=1), "unknown field"),
        (network("blocks", 0, "extra", to=1), "unknown field"),
        (network("table", "extra", to=1), "unknown field"),
        (edit("network.json", lambda d: d.pop("bias") and None), "no required field bias"),
        (network("head", "rows", 0, to=[[1, "1"], [0, "1"]]), "not in order"),
        (network("head", "rows", 0, to=[[1, "1"], [1, "2"]]), "not in order"),
        (network("head", "rows", 0, to=[[3, "1"]]), "beyond its end"),
        (network("head", "rows", 0, to=[[-1, "1"]]), "expected"),
        (network("head", "rows", 0, to=[[0, "1", "2"]]), "expected"),
        (network("head", "rows", 0, to=[[0.5, "1"]]), "expected"),
        (layer("attention", "kind", to="sparsemax"), "unknown word 'sparsemax'"),
        (layer("attention", "heads", to=3), "expected a list"),
        (layer("attention", "heads", 0, "key", "rows", to=again), "is needed"),
        (layer("attention", "heads", 0, "value", "rows", to=again), "is needed"),
        (layer("attention", "heads", 0, "output", "rows", to=again), "is needed"),
        (layer("attention", "heads", 0, "query", "columns", to=more), "is needed"),
        (layer("feedforward", "activation", to="gelu"), "unknown word 'gelu'"),
        (layer("feedforward", "weight1", "rows", to=again), "is needed"),
        (layer("feedforward", "weight2", "rows", to=again), "is needed"),
        (layer("feedforward", "weight2", "columns", to=more), "is needed"),
        (layer("feedforward", "bias1", to=again), "expected text|is needed"),
        (layer("feedforward", "bias2", to=lambda b: [*b, "0"]), "a vector has 4 numbers"),
        (text("network.json", '"causal"', '"causal": true, "causal"'), "two of this name"),
        (edit("network.json", lambda d: {**d, "blocks": [], "positions": None, "head": {
            "rows": [[], [], []], "columns": 2**31 - 1}, "table": SAMPLE}), "no layer"),
    ],
    "config.json": [
        (remove("config.json"), "no such file"),
        (edit("config.json", lambda c: {**c, "version": 2}), "version"),
        (edit("config.json", lambda c: {**c, "version": True}), "version"),
        (edit("config.json", lambda c: {**c, "format": "rankone"}), "format"),
        (edit("config.json", lambda c: {**c, "extra": 1}), "unknown field extra"),
        (edit("config.json", lambda c: {**c, "reading": {"lower": 3}}), "reading.lower"),
        (text("config.json", '"version": 1', '"version": 1, "version": 1'), "two of this name"),
        (lambda home: (home / "config.json").write_text("{"), "cannot be read"),
    ],
    "vocabulary.json": [
        (remove("vocabulary.json"), "no such file"),
        (edit("vocabulary.json", lambda v: v[:-1]), "3 different entries where the weights need 4"),
        (edit("vocabulary.json", lambda v: [*v, "e"]), "5 different entries"),
        (edit("vocabulary.json", lambda v: [*v[:-1], v[0]]), "3 different entries"),
        (edit("vocabulary.json", lambda v: [*v[:-1], 1]), "expected text"),
    ],
    "labels.json": [
        (remove("labels.json"), "no such file"),
        (edit("labels.json", lambda v: [*v, "W"]), "4 different entries where the weights need 3"),
        (edit("labels.json", lambda _: {}), "expected a list"),
    ],
}  # fmt: skip
CASES = [(name, *case) for name, cases in DAMAGE.items() for case in cases]


@pytest.mark.parametrize(
    ("name", "damage", "message"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_damage_is_named(
    home: Path, name: str, damage: Callable[[Path], None], message: str
) -> None:
    damage(home)
    with pytest.raises(ModelError, match=message) as caught:
        load_exact(home)
    assert caught.value.where == str(home / name)
    assert caught.value.remedy


def test_what_is_no_exact_model_is_not_loaded(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such directory"):
        load_exact(tmp_path / "nowhere")
    rankone.memorize(corpora.spelled("ab xy")).save(tmp_path / "float")
    with pytest.raises(ModelError, match=r"config\.json"):
        load_exact(tmp_path / "float")
    a_model().save(tmp_path / "exact")
    with pytest.raises(ModelError, match="weights are exact numbers"):
        rankone.load(tmp_path / "exact")


def test_other_spellings_of_a_number_are_the_same_network(home: Path) -> None:
    before = load_exact(home)
    network("head", "rows", 0, to=[[0, "2/4"], [1, "0x0"], [2, "0x10"]])(home)
    rows = load_exact(home).network.head.rows
    assert rows[0] == ((0, exact(F(1, 2))), (2, exact(16)))
    assert rows[1:] == before.network.head.rows[1:]


# Labels of sentences.


@given(exact_truth.shapes(kinds=("softmax",)), exact_truth.sentences())
def test_predicted_labels_are_the_true_ones(
    shape: dict[str, Any], sentences: list[tuple[int, ...]]
) -> None:
    """Where logits differ at all: softmax of true ties is never decided."""
    network = random_network(**shape)
    model = ExactModel(network, VOCABULARY, LABELS)
    for sentence in sentences:
        logits = exact_truth.logits(network, sentence, dps=80)
        ordered = [sorted(map(exact_truth.real, row)) for row in logits]
        if all(row[-1] - row[-2] > 1e-60 for row in ordered):
            words = [VOCABULARY[i] for i in sentence]
            true = [LABELS[c] for c in exact_truth.labels(network, sentence, dps=80)]
            assert model.predict([words]) == [true]


def tiny(*logits: Any, blocks: tuple[ExactBlock, ...] = ()) -> ExactModel:
    """One word whose logits are these, before the blocks."""
    dim = len(logits)
    shown = Sparse.of(({c: 1} for c in range(dim)), dim)
    network = ExactNetwork(
        Sparse.dense([logits], dim), None, blocks, shown, tuple(map(exact, [0] * dim))
    )
    return ExactModel(network, ("a",), tuple("XYZ"[:dim]))


def test_exact_ties_go_to_the_first_label() -> None:
    assert tiny(1, 1, 0).predict([["a"]]) == [["X"]]
    assert tiny(0, 1, 1).predict([["a", "a"]]) == [["Y", "Y"]]
    assert tiny(F(-5)).predict([["a"]]) == [["X"]]


def tanh_less(x: Any) -> ExactBlock:
    """Logit 1 becomes tanh(x), and logit 0 loses it: at 0 and 0 they are the same ball."""
    unit = ExactFeedForward.of([({}, x, {0: 1, 1: 1})], 2, activation="tanh")
    return ExactBlock(None, unit)


def test_precision_rises_until_a_label_is_certain() -> None:
    """Logits tanh(1) and tanh(1) + 2^-1000: 128 bits do not tell them apart."""
    model = tiny(0, F(1, 1 << 1000), blocks=(tanh_less(1),))
    assert model.predict([["a"]]) == [["Y"]]


def test_a_label_that_is_never_certain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankone.nn.exact.model.MOST", 1 << 10)
    with pytest.raises(PrecisionError, match="not certain with 1,024 bits"):
        tiny(0, 0, blocks=(tanh_less(1),)).predict([["a"]])


def test_refused_sentences() -> None:
    model = a_model(positions=True)
    with pytest.raises(ModelError, match="does not have the word 'z'") as caught:
        model.predict([["a"], ["b", "z"]])
    assert caught.value.where == "sentence 2"
    with pytest.raises(ModelError, match="5 tokens, but there are 4 positions"):
        model.predict([["a"] * 5])


def test_no_sentences_and_empty_ones() -> None:
    model = a_model(kinds=("hardmax",), activations=("relu",))
    assert model.predict([]) == []
    assert model.predict([[]]) == [[]]
    assert [len(labels) for labels in model.predict([["a", "b"], [], ["c"]])] == [2, 0, 1]


BALL, SMALL = arb(1, 0.25), arb(0, 0.25)


@pytest.mark.parametrize(
    ("logits", "label"),
    [
        ([exact(1)], 0),
        ([arb("nan")], 0),
        ([exact(0), exact(1), exact(1)], 1),
        ([BALL, SMALL], 0),
        ([SMALL, BALL], 1),
        ([BALL, exact(1)], None),
        ([exact(1), BALL], None),
        ([SMALL, exact(2), BALL], 1),
        ([BALL, BALL], None),
        ([arb("nan"), exact(1)], None),
        ([exact(1), arb("nan")], None),
        ([SMALL, exact(1), exact(1)], 1),
        ([arb(0, 2), exact(1), exact(3), exact(3)], 2),
    ],
)
def test_the_winner_is_certain(logits: Any, label: int | None) -> None:
    assert winner(logits) == label


def test_to_float64_is_the_same_model() -> None:
    model = a_model(kinds=("softmax",), activations=("relu",), choices=[F(1), F(-1, 2), F(3, 4)])
    words = [["a", "b", "c"], ["d"], ["b", "b"]]
    float64 = model.to_float64()
    assert (float64.vocabulary, float64.labels) == (model.vocabulary, model.labels)
    assert float64.reading == model.reading
    assert float64.predict(words) == model.predict(words)
    assert repr(model).startswith("ExactModel(5 layers, ")


def test_the_working_precision_is_left_as_it_was() -> None:
    before = ctx.prec
    tiny(0, F(1, 1 << 1000), blocks=(tanh_less(1),)).predict([["a"]])
    assert ctx.prec == before
