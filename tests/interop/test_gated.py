"""Gated feed-forward layers in Hugging Face and in ONNX: the compact form, in both precisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification

import dense_truth as truth
import networks
import rankone
from rankone.errors import ExportError
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForTokenClassification,
    as_pretrained,
    export_hf,
)
from rankone.interop.huggingface.card import is_constructed
from rankone.interop.huggingface.layers_rankone import GatedFeedForward as Pretrained
from rankone.nn import Model
from rankone.nn.gated import GatedFeedForward

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from rankone.interop.onnx import export, export_onnx  # noqa: E402
from rankone.interop.onnx.graph import Gated  # noqa: E402
from rankone.interop.onnx.rounding import Rounding  # noqa: E402

DTYPES = [torch.float64, torch.float32]
GROUPS, SIZE = 8, 8  # words, and ones and zeros of their codes
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
SHAPES = [shape for shape in networks.SHAPES if shape.feedforward == "gated"]


def by_hand(dtype: torch.dtype) -> tuple[GatedFeedForward, torch.Tensor]:
    """Five units for each of eight words, some of them for one of two places; and tokens: a code,
    two places, two numbers to read, and three coordinates to write to, one of them twice."""
    generator = torch.Generator().manual_seed(5)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    def below(count: int, size: int) -> torch.Tensor:
        return torch.randint(count, (size,), generator=generator)

    word_codes = torch.tensor([[(i >> b) & 1 for b in range(4)] for i in range(GROUPS)])
    word_codes = torch.cat([word_codes, 1 - word_codes], 1).to(dtype)
    dim, units = SIZE + 2 + 2 + 3, 5 * GROUPS
    gates = torch.zeros(1 + GROUPS + 2, dim, dtype=dtype)
    gates[1 : 1 + GROUPS, :SIZE] = word_codes - 1
    gates[1 + GROUPS :, SIZE : SIZE + 2] = torch.eye(2, dtype=dtype) - 1
    place = below(3, units)
    layer = GatedFeedForward.assemble(
        gates=gates,
        word=1 + torch.arange(units) % GROUPS,
        position=torch.where(place > 0, GROUPS + place, 0),
        penalty=torch.full((units,), 64.0, dtype=dtype),
        slopes=drawn(units, 2),
        bias1=drawn(units),
        amplitude=drawn(units),
        codes=drawn(3, 4),
        plus=below(3, units),
        minus=below(3, units),
        reads=torch.tensor([SIZE + 2, SIZE + 3]),
        writes=torch.tensor([dim - 1, dim - 3, dim - 2, dim - 1]),
    )
    h = drawn(6, 7, dim)
    h[..., :SIZE] = word_codes[below(GROUPS, 42)].reshape(6, 7, -1)
    h[..., SIZE : SIZE + 2] = torch.eye(2, dtype=dtype)[below(2, 42)].reshape(6, 7, -1)
    return layer, h


def pretrained(layer: GatedFeedForward) -> Pretrained:
    sizes = {name: layer.settings[name] for name in ("gates", "reads", "writes", "codes")}
    config = RankOneConfig(
        hidden_size=layer.gates.shape[1],
        intermediate_size=layer.hidden,
        feedforward="gated",
        **sizes,
    )
    found = Pretrained(config).to(layer.gates.dtype)
    found.load_state_dict(layer.state_dict())
    return found


@each_dtype
def test_a_layer_that_is_mostly_silent(dtype: torch.dtype, monkeypatch: Any) -> None:
    """In one go, and in many steps; with the same gradients as the layer written out."""
    layer, h = by_hand(dtype)
    full = layer.expand()
    with torch.no_grad():
        active = torch.relu(h @ full.weight1.T + full.bias1) > 0
        wanted = truth.by_sentence(truth.feedforward_of, layer, h)
        assert 0.01 < active.double().mean() < 0.1
        assert active.any(-1).double().mean() > 0.5
        for step in (1 << 22, 40, 1):
            monkeypatch.setattr(Pretrained, "PAIRS", step)
            truth.assert_close(pretrained(layer)(h), wanted)
        truth.assert_close(Gated(layer)(h), wanted)
        truth.assert_close(layer(h), wanted)
    found = []
    for one in (pretrained(layer), full):
        x = h.clone().requires_grad_()
        one(x).square().sum().backward()
        found.append((x.grad, one.bias1.grad))
    for mine, other in zip(*found, strict=True):
        scale = other.abs().max()
        truth.assert_close(mine / scale, other / scale)


@each_dtype
def test_layers_without_units(dtype: torch.dtype) -> None:
    h = torch.ones(2, 3, 4, dtype=dtype)
    layer = GatedFeedForward(4, 0, 1, 1, 1, 1, dtype=dtype)
    with torch.no_grad():
        assert pretrained(layer)(h).equal(h)
        assert Gated(layer)(h).equal(h)


@each_dtype
@pytest.mark.parametrize("asked", [*DTYPES, "auto", None], ids=str)
def test_indices_are_never_cast(dtype: torch.dtype, asked: Any, tmp_path: Path) -> None:
    model = networks.model(SHAPES[0], 1, dtype)
    export_hf(model, tmp_path / "hf")
    more = {} if asked is None else {"dtype": asked}
    found = AutoModelForTokenClassification.from_pretrained(tmp_path / "hf", **more)
    wanted = asked if isinstance(asked, torch.dtype) else dtype
    layer, other = found.blocks[0].feedforward, model.network.blocks[0].feedforward
    for name, p in layer.named_parameters():
        whole = name in GatedFeedForward.WHOLE
        assert p.dtype == (torch.int64 if whole else wanted)
        assert p.requires_grad != whole
        assert p.equal(getattr(other, name).to(p.dtype))
    assert found.dtype == wanted
    assert found.float().blocks[0].feedforward.word.dtype == torch.int64
    again = rankone.load(tmp_path / "hf").network
    assert again.shape == model.network.shape
    assert all(p.equal(again.get_parameter(n)) for n, p in model.network.named_parameters())


def test_a_fresh_configuration_can_be_trained() -> None:
    sizes = {"gates": 3, "reads": 2, "writes": 2, "codes": 4}
    torch.manual_seed(0)
    config = RankOneConfig(5, 8, 6, feedforward="gated", num_labels=3, **sizes)
    model = RankOneForTokenClassification(config).train()
    layer = model.blocks[0].feedforward
    assert layer.word.tolist() == [0, 1, 2, 0, 1, 2]
    assert layer.plus.tolist() == [0, 1, 2, 3, 0, 1]
    model(torch.tensor([[0, 1, 2, 3]]), labels=torch.tensor([[0, 1, 2, 0]])).loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.requires_grad)
    assert layer.slopes.grad.any()
    for name in sizes:
        with pytest.raises(ValueError, match=f"`{name}` must be a whole number from 1, not 0"):
            RankOneConfig(5, 8, 6, feedforward="gated", **{**sizes, name: 0})


# Constructed models.


@pytest.fixture(scope="module", params=["float32", "float64", "given"])
def constructed(request: pytest.FixtureRequest) -> tuple[rankone.Corpus, Model]:
    """With a free table in both precisions, and with given vectors."""
    corpus = rankone.builtin_corpus(50)
    choice: dict[str, Any] = {"dtype": request.param}
    if request.param == "given":
        drawn = np.random.default_rng(4).standard_normal((len(corpus.vocabulary), 20))
        choice = {"vectors": drawn}
    return corpus, rankone.memorize(corpus, construction="gated", **choice).model


@pytest.fixture(scope="module")
def written(constructed: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    corpus, model = constructed
    path = tmp_path_factory.mktemp("gated") / "gated.onnx"
    return export_onnx(model, path, corpus=corpus)


def sentences(corpus: rankone.Corpus, model: Model) -> list[list[int]]:
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    return [part.tolist() for part in np.split(rows, corpus.offsets[1:-1])]


def label_names(
    run: Any, rows: list[list[int]], labels: tuple[str, ...], *, pad: bool
) -> list[list[str]]:
    """By ids and mask, all at once with pads on the left, or one by one."""
    found = []
    width = max(map(len, rows))
    for batch in [rows] if pad else [[row] for row in rows]:
        n = width if pad else len(batch[0])
        ids = np.array([[0] * (n - len(row)) + row for row in batch])
        mask = np.array([[0] * (n - len(row)) + [1] * len(row) for row in batch])
        for logits, real in zip(run(ids, mask), mask != 0, strict=True):
            found.append([labels[i] for i in logits[real].argmax(-1)])
    return found


@pytest.mark.parametrize("pad", [True, False])
def test_transformers_gives_the_labels_of_predict(
    constructed: Any, pad: bool, tmp_path: Path
) -> None:
    corpus, model = constructed
    export_hf(model, tmp_path / "hf")
    other = AutoModelForTokenClassification.from_pretrained(tmp_path / "hf")
    assert other.dtype == model.network.dtype

    @torch.no_grad()
    def run(ids: Any, mask: Any) -> Any:
        mask = torch.from_numpy(mask)
        return other(torch.from_numpy(ids), attention_mask=mask).logits.numpy()

    found = label_names(run, sentences(corpus, model), model.labels, pad=pad)
    words = [list(sentence.tokens) for sentence in corpus.sentences]
    assert found == [list(labels) for labels in model.predict(words)]
    assert found == [list(sentence.labels) for sentence in corpus.sentences]


@pytest.mark.parametrize("pad", [True, False])
def test_onnxruntime_gives_the_labels_of_predict(constructed: Any, written: Any, pad: bool) -> None:
    corpus, model = constructed
    assert (written.ok, written.wrong) == (True, 0)
    session = export.opened(written.path.read_bytes())

    def run(ids: Any, mask: Any) -> Any:
        return session.run(["logits"], {"input_ids": ids, "attention_mask": mask})[0]

    found = label_names(run, sentences(corpus, model), model.labels, pad=pad)
    words = [list(sentence.tokens) for sentence in corpus.sentences]
    assert found == [list(labels) for labels in model.predict(words)]


def test_the_graph_is_compact(constructed: Any, written: Any) -> None:
    """No matrix of units and coordinates."""
    shape = constructed[1].network.shape
    tables = onnx.load(written.path).graph.initializer
    assert not any({shape.dim, shape.hidden} == set(table.dims) for table in tables)


SMALL = {torch.float64: 1e-6, torch.float32: 1e-2}


@pytest.mark.parametrize("name", ["slopes", "bias1", "output", "gates"])
def test_a_damaged_graph_is_caught(
    constructed: Any, written: Any, name: str, tmp_path: Path, monkeypatch: Any
) -> None:
    corpus, model = constructed
    file = onnx.load(written.path)
    (table,) = (t for t in file.graph.initializer if t.name == f"layers.1.{name}")
    array = onnx.numpy_helper.to_array(table) * (1 + SMALL[model.network.dtype])
    array = array + SMALL[model.network.dtype] * (name == "gates")
    array = array.astype(onnx.numpy_helper.to_array(table).dtype)
    table.CopyFrom(onnx.numpy_helper.from_array(array, table.name))
    data = file.SerializeToString()
    monkeypatch.setattr(export, "serialize", lambda _: data)
    with pytest.raises(ExportError):
        export_onnx(model, tmp_path / "graph.onnx", corpus=corpus)


def test_silent_units_are_not_counted(constructed: Any) -> None:
    """Neither in the tolerance nor in the balls, which tell the label of every token."""
    corpus, model = constructed
    network = model.network.requires_grad_(False)
    rounding, unit = Rounding(network), torch.finfo(network.dtype).eps / 2
    group = int(torch.bincount(network.blocks[0].feedforward.word).max())
    assert group < network.shape.hidden
    found = rounding.tolerance(np.array([1]))[0]
    if network.dtype == torch.float32:
        assert rounding.fixed < 3 * network.shape.dim + group + 50
        assert found / unit == pytest.approx(2 * rounding.fixed, rel=0.1)
    else:
        assert found == 1e-9
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    room = rounding.room(rows, corpus.offsets)
    assert (room > 0).all()
    assert room.max() < (1e-9 if network.dtype == torch.float64 else 0.5)


def test_constructed_weights_say_so(constructed: Any) -> None:
    _, model = constructed
    assert is_constructed(model.network)
    assert as_pretrained(model).config.made_by == "construction"
    assert not any(is_constructed(networks.model(shape, 0).network) for shape in SHAPES)
