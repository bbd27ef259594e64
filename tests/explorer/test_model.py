"""The model in the page chooses the labels that `Model.predict` chooses, in its own precision."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import networks
import rankone
from networks import SHAPES
from rankone.explorer.network import NetworkData
from rankone.explorer.packing import pack, whole
from rankone.explorer.sentences import SentencesData
from rankone.nn import Architecture, TokenClassifier
from rankone.nn.evaluate import Evaluator
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS


def packed(model: rankone.Model, corpus: rankone.Corpus) -> str:
    data = NetworkData(model.network)
    given = {"network": data.description, "known": len(model.vocabulary)}
    return pack(given, {**data.arrays, **SentencesData(model, corpus).arrays()})


def compared(run: Callable[..., Any], model: rankone.Model, corpus: rankone.Corpus) -> Any:
    labels, numbers = run("run", packed(model, corpus))
    wanted = [label for sentence in model.predict(corpus) for label in sentence]
    assert [model.labels[i] for i in labels] == wanted
    return numbers


def test_line_on_every_token_of_the_built_in_corpus(
    run_module: Any, line: rankone.Model, builtin: rankone.Corpus
) -> None:
    numbers = compared(run_module, line, builtin)
    ids, layer = (
        line.rows(builtin.vocabulary)[builtin.token_ids],
        line.network.blocks[0].feedforward,
    )
    before = rankone.Model(line.network, line.vocabulary, line.labels).network
    z = Evaluator(before).embedded(ids, builtin.offsets)
    attention = Evaluator(before).layers[0]
    wanted = np.concatenate(
        [layer.direction.detach().numpy() @ attention(c.z, c.offsets) for c in z]
    )
    assert np.abs(np.array(numbers) - wanted).max() < 1e-11


def test_gates_in_float32_on_every_token_of_the_built_in_corpus(
    run_module: Any, builtin: rankone.Corpus
) -> None:
    model = rankone.memorize(builtin, construction="gated", dtype="float32").model
    compared(run_module, model, builtin)
    other = rankone.Corpus.from_sentences(
        [(s.tokens[::-1], s.labels) for s in builtin.sentences[:300]]
    )
    compared(run_module, model, other)  # with averages that no unit was made for


SENTENCES = ["a b c d e", "e d c b a h g f c d e a", "a x a x", "c", "b a", "a b b a c c e g h"]


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("feedforward", FEEDFORWARDS)
def test_networks_of_every_kind(run_module: Any, attention: str, feedforward: str) -> None:
    """Random weights, so that no label is chosen by construction; a sentence is longer than the
    table of positions, and a word is unknown."""
    corpus = rankone.Corpus.from_sentences(
        [(words.split(), [*words.split()]) for words in SENTENCES]
    )
    own = [s for s in SHAPES if (s.attention, s.feedforward) == (attention, feedforward)]
    windowed = [replace(s, positions=0, window=3, causal=True) for s in own if s.depth == 2]
    for seed, shape in enumerate([*own[::3], *windowed[:1]]):
        made = networks.model(shape, seed, (torch.float32, torch.float64)[seed % 2])
        compared(run_module, made, corpus)


def test_a_window_over_a_text(run_module: Any) -> None:
    text = rankone.Corpus.from_texts(["A rose is a rose is a rose.", "Is a rose a rose?"], window=4)
    compared(run_module, rankone.memorize(text).model, text)


@pytest.mark.parametrize("construction", ["line", "gated"])
def test_documents(run_module: Any, construction: Any) -> None:
    texts = [("A rose is a rose.", "good"), ("No rose.", "bad"), ("A rose.", "bad")]
    corpus = rankone.Corpus.from_texts(texts, task="class")
    compared(run_module, rankone.memorize(corpus, construction=construction).model, corpus)


@pytest.mark.parametrize(("x", "gap"), [(1234.5678, 1e-9), (-31_415_926.5, 2.0**-27), (0.0, 1e-12)])
def test_the_line_keeps_its_digits(run_module: Any, x: float, gap: float) -> None:
    """From 1e8 to the gap by a hundred steps, and back and forth: pixels still tell the two apart,
    where the gap of the two floats is known exactly."""
    zooms = [["zoom", 0.75], ["pan", 31.0], ["pan", -17.0]] * 100
    span = 2e5 * 0.75**100
    more = [["zoom", 4 * gap / span], ["pan", 900.0], ["pan", -905.0]]
    apart, shown, base, ticks, scale, shift = run_module("zoomed", x, gap, [*zooms, *more])
    real = (x + gap) - x
    assert apart == pytest.approx(1000 * real / shown, rel=1e-6)
    assert 200 < apart < 300 or shown > 4.1 * gap
    assert (base is None) == (x == 0.0)
    assert 2 <= ticks < 40
    assert scale == pytest.approx(shown / 1000, rel=1e-6)
    assert shift == pytest.approx(5.0, abs=1e-3)  # also where a number of float64 is pixels wide


def test_sums_of_float32_are_rounded_after_every_step(run_module: Any) -> None:
    """(2^24 + 1) - 2^24 is 0 there, less than 1/2, and 1 in float64."""
    shape = Architecture(vocabulary=2, labels=2, dim=4, hidden=1)
    for dtype, label in ((torch.float32, "half"), (torch.float64, "sum")):
        network = TokenClassifier(shape, dtype=dtype)
        for parameter in network.parameters():
            parameter.data.zero_()
        network.table.data[:] = torch.tensor([2.0**24, 1.0, -(2.0**24), 0.5])
        network.head.weight.data[:] = torch.tensor([[0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 0.0]])
        model = rankone.Model(network, ("a",), ("half", "sum"))
        assert model.predict([["a"]]) == [[label]]
        compared(run_module, model, rankone.Corpus.from_sentences([(["a"], ["a"])]))


def test_packing() -> None:
    """What is written can be read from the description in the docstring alone."""
    arrays = {
        "a": np.array([1.5, -0.0]),
        "b": whole(np.array([3, 300])),
        "c": np.zeros(0, np.float32),
    }
    text = pack({"word": "</script>"}, arrays)
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", text)
    assert text == pack({"word": "</script>"}, arrays)
    data = gzip.decompress(base64.b64decode(text))
    size = int.from_bytes(data[:4], "little")
    found = json.loads(data[8 : 8 + size])
    assert size % 8 == 0
    assert found["word"] == "</script>"
    assert found["arrays"] == {
        "a": ["Float64Array", 2, 0],
        "b": ["Uint16Array", 2, 16],
        "c": ["Float32Array", 0, 24],
    }
    assert np.frombuffer(data[8 + size :][:16], "<f8").tolist() == [1.5, 0.0]
    assert np.frombuffer(data[8 + size + 16 :][:4], "<u2").tolist() == [3, 300]
    assert [whole(np.array([0, most])).dtype.itemsize for most in (255, 256, 65535, 65536)] == [
        1,
        2,
        2,
        4,
    ]
