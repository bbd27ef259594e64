"""ONNX graphs of language models: pieces of text, and the state between them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import dense_truth as truth
import networks
import rankone
from language_models import KINDS, SOFTMAX, TEXT, steady
from rankone import Corpus, Model
from rankone.corpus.tasks import BEGIN, END
from rankone.errors import ExportError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from rankone.interop.onnx import export, export_onnx  # noqa: E402
from rankone.interop.onnx.state import Step, step_of  # noqa: E402

WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "window": ({"window": 6}, {"dtype": "float32"}),
    "documents": ({}, {}),
    "documents in float32": ({}, {"dtype": "float32", "max_length": 90}),
}
Written = tuple[Model, Corpus, Any]


QUICK = ["window", "documents"]
PARAMS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WAYS]


@pytest.fixture(scope="module", params=PARAMS)
def written(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Written:
    reading, how = WAYS[request.param]
    corpus = Corpus.from_texts(TEXT.split("\n\n"), task="next", **reading)
    model = rankone.memorize(corpus, **how).model
    path = tmp_path_factory.mktemp("onnx") / "next.onnx"
    return model, corpus, export_onnx(model, path, corpus=corpus)


def test_documents_are_compared_step_by_step(written: Written) -> None:
    model, corpus, found = written
    made_up, own = found.compared
    assert found.ok
    assert (own.sentences, own.wrong) == (2, 0)
    most = model.network.shape.window + export.TAIL
    lengths = [min(n, most) if most > export.TAIL else n for n in corpus.lengths.tolist()]
    assert own.tokens == sum(lengths)
    assert made_up.sentences % 2 == 0  # alone, and padded


def test_a_session_writes_the_documents(written: Written) -> None:
    """As a user would: nothing but the file, in a batch that is padded on the left."""
    model, corpus, found = written
    session = export.opened(found.path.read_bytes())
    metadata = session.get_modelmeta().custom_metadata_map
    words, labels = (json.loads(metadata[name]) for name in ("vocabulary", "labels"))
    row = {word: i for i, word in enumerate(words)}
    state = {
        name: np.zeros((2, *part["shape"]), part["type"])
        for name, part in json.loads(metadata["state"]).items()
    }
    sizes = {name: x.shape for name, x in state.items()}
    documents = [list(sentence.tokens) for sentence in corpus.sentences]
    ids, mask = np.zeros((2, 2, 4), np.int64)
    for i, (document, n) in enumerate(zip(documents, (4, 2), strict=True)):
        ids[i, 4 - n :], mask[i, 4 - n :] = [row[word] for word in document[:n]], 1
    told: list[list[str]] = [document[:n] for document, n in zip(documents, (4, 2), strict=True)]
    for _ in range(60):
        given = {"input_ids": ids, "attention_mask": mask, **state}
        names = ["logits", *(f"next_{name}" for name in state)]
        logits, *after = session.run(names, given)
        assert logits.dtype == np.dtype(str(model.network.dtype).removeprefix("torch."))
        state = dict(zip(state, after, strict=True))
        assert {name: x.shape for name, x in state.items()} == sizes
        best = [labels[i] for i in logits[:, -1].argmax(-1)]
        for text, word in zip(told, best, strict=True):
            if text[-1] != END:
                text.append(word)
        if all(text[-1] == END for text in told):
            break
        ids, mask = np.array([[row.get(word, 0)] for word in best]), np.ones((2, 1), np.int64)
        if model.positions:  # a document that has ended takes no more places
            mask = np.array([[text[-1] != END] for text in told]).astype(np.int64)
    assert told == [[*document, END] for document in documents]
    assert (documents[0][0] == BEGIN) == bool(model.network.shape.window)


@pytest.mark.parametrize("kind", ["sums", "fading"])
@pytest.mark.parametrize("seed", range(6))
def test_pieces_of_any_size_give_the_logits_of_the_module(kind: str, seed: int) -> None:
    more = {"positions": 20 * (seed % 2)} if kind == "sums" else {"window": 1 + seed % 5}
    model = steady(replace(SOFTMAX[seed % 3], head_size=1, **more), seed)
    model.network.requires_grad_(False)
    step = step_of(model)
    assert isinstance(step, Step)
    texts, rng = [[1, 2, 3, 4, 5, 1, 8], [7, 1, 1, 0]], np.random.default_rng(seed)
    ids, mask = torch.full((2, 8), -5), torch.zeros(2, 8).long()
    for i, text in enumerate(texts):
        ids[i, 8 - len(text) :], mask[i, 8 - len(text) :] = torch.tensor(text), 1
    state, parts, i = list(step.zeros(2).values()), [], 0
    while i < 8:
        j = i + int(rng.integers(1, 4))
        logits, *state = step(ids[:, i:j], mask[:, i:j], *state)
        parts.append(logits)
        i = j
    for row, real, text in zip(torch.cat(parts, 1), mask, texts, strict=True):
        truth.assert_close(row[real != 0], model.network(torch.tensor([text]))[0])


def test_what_has_no_state() -> None:
    assert step_of(KINDS["all of it"](0)) is None
    assert step_of(networks.model(networks.SHAPES[0], 0)) is None
    with pytest.raises(ExportError, match="not weighted by their distance alone"):
        step_of(KINDS["all in a window"](0))
    model = steady(replace(SOFTMAX[0], head_size=1, positions=20), 3)
    assert step_of(model) is not None
    with torch.no_grad():
        model.network.positions += 1.0  # which queries see
    assert step_of(model) is None


def test_a_state_that_is_lost_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rankone.interop.onnx.state import WindowStep

    corpus = Corpus.from_texts(TEXT.split("\n\n"), task="next", window=4)
    model = rankone.memorize(corpus).model
    right = WindowStep.averages

    def lost(self: Any, z: Any, real: Any, place: Any, *state: Any) -> Any:
        found, values = right(self, z, real, place, *state)
        return found, values * 0.5

    monkeypatch.setattr(WindowStep, "averages", lost)
    with pytest.raises(ExportError, match="another label and"):
        export_onnx(model, tmp_path / "lost.onnx", corpus=corpus)
    assert not (tmp_path / "lost.onnx").exists()
