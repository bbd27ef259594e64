"""ONNX graphs of models that label whole texts: one row of logits for each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dense_truth as truth
import networks
import rankone
from rankone import Corpus, Model
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import ExportError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from rankone.interop.onnx import export, export_onnx  # noqa: E402
from rankone.interop.onnx.graph import Graph  # noqa: E402

PAIRS = [
    ("the rain came, and the roof leaked.", "bad"),
    ("a rose is a rose.", "good"),
    ("a rose is a nose.", "odd"),
    ("no.", "bad"),
    ("no. no.", "odd"),
]
TEXTS = [text for text, _ in PAIRS]
WAYS: dict[str, dict[str, Any]] = {
    "line": {},
    "gated": {"construction": "gated", "dtype": "float32", "causal": True},
}


@pytest.fixture(scope="module", params=WAYS)
def written(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Corpus, Any]:
    corpus = Corpus.from_texts(PAIRS, task="class")
    model = rankone.memorize(corpus, **WAYS[request.param]).model
    path = tmp_path_factory.mktemp("onnx") / "texts.onnx"
    return model, corpus, export_onnx(model, path, corpus=corpus)


def test_texts_are_compared(written: tuple[Model, Corpus, Any]) -> None:
    model, corpus, found = written
    made_up, own = found.compared
    assert (own.whole, own.tokens, own.sentences, own.wrong) == (True, 5, 5, 0)
    assert own.line().startswith(f"{corpus.source}: 5 texts, the same labels, ")
    assert made_up.tokens == made_up.sentences == 4 * (model.positions + 1)  # in four paddings
    assert found.ok


def test_any_padding_gives_the_label_of_classify(written: tuple[Model, Corpus, Any]) -> None:
    model, _, found = written
    session = export.opened(found.path.read_bytes())
    metadata = session.get_modelmeta().custom_metadata_map
    reading, words = json.loads(metadata["reading"]), json.loads(metadata["vocabulary"])
    assert (reading["task"], reading["tokenizer"]) == ("class", "words")
    rows, split = {word: i for i, word in enumerate(words)}, tokenizer_of("words").split
    ids = [[rows.get(token, len(rows)) for token in split(text, "")] for text in TEXTS]
    width = max(map(len, ids)) + 2
    for side in ("left", "right", "both", "within"):
        table, mask = np.full((len(ids), width), 1 << 40), np.zeros((len(ids), width), np.int64)
        for i, row in enumerate(ids):
            at = np.arange(len(row)) + {"left": width - len(row), "both": 1}.get(side, 0)
            if side == "within":
                at[len(row) // 2 :] += width - len(row)
            table[i, at], mask[i, at] = row, 1
        (logits,) = session.run(["logits"], {"input_ids": table, "attention_mask": mask})
        assert logits.shape == (len(ids), len(model.labels))
        assert logits.dtype == (np.float32 if model.network.dtype == torch.float32 else np.float64)
        assert [model.labels[i] for i in logits.argmax(-1)] == model.classify(TEXTS)


@pytest.mark.parametrize("shape", networks.SHAPES[::3], ids=networks.name)
def test_the_graph_has_the_logits_of_the_last_token(shape: Any) -> None:
    network = networks.model(shape, 3).network.requires_grad_(False)
    ids = torch.tensor([[5, 1, 2, 3], [4, 9, 0, 7]])
    mask = torch.tensor([[0, 1, 1, 1], [1, 0, 1, 0]])
    every, whole = Graph(network)(ids, mask), Graph(network, whole=True)(ids, mask)
    assert whole.shape == (2, shape.labels)
    truth.assert_close(whole, torch.stack([every[0, 3], every[1, 2]]))
    assert Graph(network, whole=True)(ids, torch.zeros_like(mask)).isfinite().all()


def test_a_graph_that_looks_at_another_token_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.from_texts(PAIRS, task="class")
    model = rankone.memorize(corpus).model
    monkeypatch.setattr("rankone.interop.onnx.graph.last", lambda real: real.long().argmax(-1))
    with pytest.raises(ExportError, match="texts onnxruntime gives"):
        export_onnx(model, tmp_path / "texts.onnx", corpus=corpus)
    assert not (tmp_path / "texts.onnx").exists()
