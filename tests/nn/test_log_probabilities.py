"""log p of labels: against torch's log softmax of the network's own forward pass."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

import rankone
from rankone.corpus import Corpus
from rankone.errors import CorpusError, ModelError, SettingError
from rankone.nn import Architecture, Model, TokenClassifier, readout

KINDS: list[dict[str, Any]] = [
    {},
    {"positions": 4},
    {"causal": True, "window": 3, "attention": "softmax", "heads": 2},
    {"depth": 2, "attention": "softmax", "causal": True},
]
SENTENCES = [list("abcx"), [], list("aa"), list("feda"), []]  # x is unknown


def made(dtype: torch.dtype = torch.float64, **kind: Any) -> Model:
    torch.manual_seed(1)
    shape = Architecture(vocabulary=7, labels=5, dim=5, hidden=4, **kind)
    return Model(TokenClassifier(shape, dtype=dtype), tuple("abcdef"), tuple("vwxyz"))


def expected(model: Model, words: list[str]) -> np.ndarray:
    ids = torch.from_numpy(model.rows(words))[None]
    with torch.no_grad():
        return torch.log_softmax(model.network(ids)[0], -1).numpy()


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("held", [1 << 22, 7, 1])
def test_every_label_of_every_token(
    kind: dict[str, Any], dtype: torch.dtype, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readout, "LOGITS", held)
    model = made(dtype, **kind)
    found = list(model.log_probabilities(SENTENCES))
    assert [x.shape for x in found] == [(len(words), 5) for words in SENTENCES]
    close = {"rtol": 0, "atol": 4e-6 if dtype == torch.float32 else 1e-14}
    for words, x in zip(SENTENCES, found, strict=True):
        assert x.dtype == model.network.table.detach().numpy().dtype
        if words:
            np.testing.assert_allclose(x, expected(model, words), **close)


def test_a_sentence_longer_than_the_table_is_cut_as_predict_does() -> None:
    model = made(positions=4)
    (found,) = model.log_probabilities([list("abcdef")])
    pieces = [expected(model, list(part)) for part in ("abcd", "ef")]
    np.testing.assert_allclose(found, np.concatenate(pieces), rtol=0, atol=1e-14)
    names = [model.labels[i] for i in found.argmax(1)]
    assert model.predict([list("abcdef")]) == [names]


def test_losses_are_those_of_the_labels_that_are_asked() -> None:
    model = made()
    corpus = Corpus.from_sentences([(list("ab"), ["z", "w"]), (list("cax"), ["v", "none", "x"])])
    some = corpus.label_ids.copy()
    some[2] = -1
    object.__setattr__(corpus, "label_ids", some)  # as a task may ask
    found = model.losses(corpus)
    rows = np.concatenate(list(model.log_probabilities(corpus)))
    assert found[0] == -rows[0, 4]
    assert found[1] == -rows[1, 1]
    assert np.isnan(found[2])
    assert found[3] == np.inf
    assert found[4] == -rows[4, 2]
    with pytest.raises(CorpusError, match="no labels"):
        model.losses(Corpus.from_texts(["a"], task="class"))


def test_the_losses_of_a_memorized_text_are_those_of_its_labels() -> None:
    corpus = Corpus.from_texts(["a rose is a rose", "no rose is a tulip", "a tulip"])
    model = rankone.memorize(corpus, construction="gated", dtype="float32").model
    losses, rows = model.losses(corpus), list(model.log_probabilities(corpus))
    assert losses.dtype == np.float32
    gold = [model.labels.index(name) for name in np.array(corpus.label_names)[corpus.label_ids]]
    bounds = list(pairwise(corpus.offsets.tolist()))
    assert len(rows) == len(bounds)
    for (a, b), own in zip(bounds, rows, strict=True):
        np.testing.assert_array_equal(losses[a:b], -own[np.arange(b - a), gold[a:b]])
        np.testing.assert_allclose(np.exp(own).sum(1), 1, rtol=1e-5)


def test_thousands_of_labels_are_summed_in_float64() -> None:
    """Small terms next to a 1 would be lost, if they were added to it one by one in float32."""
    head = torch.nn.Linear(2, 1 << 16)
    with torch.no_grad():
        head.weight.zero_()
        head.bias.fill_(np.log(2.0**-26))
        head.bias[0] = 0.0
    found = readout.Readout.of(head)
    (rows,) = found.log_probabilities(np.zeros((0, 2), np.float32))
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows[:, 0], -np.log1p((2**16 - 1) * 2.0**-26), rtol=1e-5)


def test_no_more_logits_are_held_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readout, "LOGITS", 12)
    head = readout.Readout.of(made().network.head)
    sizes = [x.shape for x in head.log_probabilities(np.ones((5, 7)))]
    assert sizes == [(2, 5), (2, 5), (2, 5), (1, 5)]


def test_what_overflows_is_refused_and_numpy_warns_again_afterwards() -> None:
    model = made(torch.float32)
    with torch.no_grad():
        model.network.head.weight.fill_(3e38)
    with pytest.raises(ModelError, match="overflow float32"):
        list(model.log_probabilities([["a", "b"]]))
    found = made().log_probabilities([["a"], ["b"]])
    next(found)
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        np.float64(1e308) * 10  # between two sentences, too


def test_wrong_input_is_refused_before_anything_is_computed() -> None:
    with pytest.raises(SettingError, match="is not a list of words"):
        made().log_probabilities(["a rose"])
    with torch.no_grad():
        model = made()
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
    with pytest.raises(ModelError, match="without a readout"):
        list(model.log_probabilities([["a"]]))
