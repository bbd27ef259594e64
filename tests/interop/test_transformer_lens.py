"""TransformerLens: the same logits, every activation where it belongs, ablation and patching."""

from __future__ import annotations

import functools
import importlib
import logging
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import dense_truth as truth
import language_models
import networks
import rankone
from rankone.errors import ModelError
from rankone.interop.huggingface import as_pretrained, export_hf
from rankone.nn import Architecture, Model, TokenClassifier

LEVEL = logging.getLogger("transformers").level
pytest.importorskip("transformer_lens", reason="the extra lens is not installed")
from transformer_lens.model_bridge import TransformerBridge  # noqa: E402

import rankone.interop.transformer_lens as lens  # noqa: E402
from rankone.interop.transformer_lens.boot import CLASSES  # noqa: E402
from rankone.interop.transformer_lens.stepwise import KINDS  # noqa: E402

logging.getLogger("transformers").setLevel(LEVEL)  # TransformerLens silences it

Hook = Callable[[str, Tensor], Tensor]
IDS = torch.tensor([[0, 3, 8, 3, 1], [5, 2, 2, 7, 7]])
MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
# Every kind of attention with every kind of feed-forward layer, one or the other setting each.
KINDS_OF = [
    networks.architecture(attention, feedforward, positions=9 * (i % 2), causal=i % 3 > 0, depth=2)
    for i, attention in enumerate(networks.ATTENTIONS)
    for feedforward in networks.FEEDFORWARDS
]
each_kind = pytest.mark.parametrize("shape", KINDS_OF, ids=networks.name)
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def bridge_of(model: Model, pretrained: Any = None) -> Any:
    """As from a directory, without one."""
    return TransformerBridge.boot_transformers(
        "made",
        hf_model=pretrained or as_pretrained(model),
        tokenizer=rankone.interop.huggingface.word_tokenizer(model.vocabulary),
    )


def left_alone(_: str, x: Tensor) -> Tensor:
    return x


def by_hand(network: TokenClassifier, hook: Hook = left_alone) -> Tensor:
    """Logits of IDS under MASK, from matrices that are written out; every number on the way goes
    through `hook`, under the name that it should have."""
    places = torch.where(MASK > 0, MASK.cumsum(1) - 1, 0)
    rows = hook("embed.hook_in", torch.where(MASK > 0, IDS, 0))
    z = hook("embed.hook_out", network.table.double()[rows])
    if network.positions is not None:
        seen = hook("pos_embed.hook_in", places)
        z = z + hook("pos_embed.hook_out", network.positions.double()[seen])
    n = IDS.shape[1]
    blind = (MASK[:, None, :] == 0).expand(-1, n, n)
    if network.shape.causal:
        blind = blind | ~torch.ones(n, n, dtype=torch.bool).tril()
    for i, block in enumerate(network.blocks):
        z = block_by_hand(block, z, blind, lambda name, x, i=i: hook(f"blocks.{i}.{name}", x))
    z = hook("unembed.hook_in", z)
    return hook("unembed.hook_out", z @ network.head.weight.double().T + network.head.bias.double())


def block_by_hand(block: Any, z: Tensor, blind: Tensor, hook: Hook) -> Tensor:
    z = hook("hook_in", z)
    full = block.attention.expand()
    z = hook("attn.hook_in", z)
    q, k, v = (
        hook(f"attn.hook_{name}", torch.einsum("bnd,hsd->bnhs", z, matrix.double()))
        for name, matrix in (("q", full.query), ("k", full.key), ("v", full.value))
    )
    scores = torch.einsum("bqhs,bkhs->bhqk", q, k).masked_fill(blind[:, None], -torch.inf)
    scores = hook("attn.hook_attn_scores", scores)
    if full.kind == "hardmax":
        largest = (scores == scores.max(-1, keepdim=True).values).double()
        weights = largest / largest.sum(-1, keepdim=True)
    else:
        weights = (scores - scores.max(-1, keepdim=True).values).exp()
        weights = weights / weights.sum(-1, keepdim=True)
    weights = hook("attn.hook_pattern", weights)
    averages = hook("attn.hook_z", torch.einsum("bhqk,bkhs->bqhs", weights, v))
    result = torch.einsum("bnhs,hds->bnhd", averages, full.output.double())
    h = z + hook("attn.hook_out", hook("attn.hook_result", result).sum(2))
    h = hook("mlp.hook_in", h)
    w1, b1, w2, b2 = (torch.from_numpy(x) for x in matrices(block.feedforward, h.shape[-1]))
    active = hook("mlp.hook_post", torch.relu(hook("mlp.hook_pre", h @ w1.T + b1)))
    return hook("hook_out", h + hook("mlp.hook_out", active @ w2.T + b2))


def matrices(layer: Any, dim: int) -> tuple[Any, ...]:
    """W1, b1, W2 and b2 of eq. 3."""
    p = truth.parameters(layer)
    if "gates" in p:
        return (*truth.gated_matrices(p), np.zeros(dim))
    full = truth.parameters(layer.expand())
    return tuple(full[name] for name in ("weight1", "bias1", "weight2", "bias2"))


def finite(scores: Tensor) -> Tensor:
    return torch.where(scores == -torch.inf, -99, scores)


@each_dtype
@each_kind
def test_logits_and_activations(shape: Architecture, dtype: torch.dtype) -> None:
    """Bit for bit the logits of transformers, whether somebody looks or not; every hook point is
    called once, with the numbers that the equations give."""
    model = networks.model(shape, 3, dtype)
    wanted, calls = dict[str, Tensor](), list[str]()

    def kept(name: str, x: Tensor) -> Tensor:
        wanted[name] = x
        return x

    with torch.no_grad():
        logits = as_pretrained(model)(IDS, MASK).logits
        truth.assert_close(logits, by_hand(model.network, kept))
        bridge = bridge_of(model)
        assert torch.equal(bridge(IDS, attention_mask=MASK), logits)
        for name, point in bridge.hook_dict.items():
            if name == point.name:
                point.add_hook(lambda _, hook: calls.append(hook.name))
        found, cache = bridge.run_with_cache(IDS, attention_mask=MASK)
    assert torch.equal(found, logits)
    assert sorted(calls) == sorted(wanted)
    assert set(cache) == set(bridge.hook_dict)
    for name, point in bridge.hook_dict.items():
        assert cache[name].shape == wanted[point.name].shape, name
        assert cache[name].dtype in (dtype, torch.int64)
        truth.assert_close(finite(cache[name]), finite(wanted[point.name]), dtype)
    assert bridge.blocks[0].hook_resid_mid is bridge.blocks[0].mlp.hook_in
    assert bridge.cfg.d_vocab_out == shape.labels


@each_kind
def test_every_change_of_an_activation(shape: Architecture) -> None:
    """One activation after the other is changed: the logits are those of the equations with the
    same change. In this way an ablation, and a patch, means what it says."""
    model = networks.model(shape, 4)
    bridge = bridge_of(model)

    def changed(x: Tensor) -> Tensor:
        return x.copy_(torch.where(x.isfinite(), 0.5 * x + 0.25, x))  # in place, as is usual

    with torch.no_grad():
        before = by_hand(model.network)
        for point in {id(point): point for point in bridge.hook_dict.values()}.values():
            if point.name.endswith("embed.hook_in") and not point.name.startswith("un"):
                continue  # whole numbers
            wanted = by_hand(
                model.network,
                lambda name, x, own=point.name: changed(x) if name == own else x,
            )
            hooks = [(point.name, lambda x, hook: changed(x))]  # noqa: ARG005
            found = bridge.run_with_hooks(IDS, attention_mask=MASK, fwd_hooks=hooks)
            truth.assert_close(found, wanted)
            if shape.attention != "hardmax":  # which may give the same weights
                assert not torch.allclose(wanted, before), point.name


@each_kind
def test_gradients_of_units(shape: Architecture) -> None:
    """For attribution: also of units that are silent."""
    model = networks.model(shape, 5)
    bridge = bridge_of(model)
    names = [f"blocks.{i}.mlp.hook_{kind}" for i in range(2) for kind in ("pre", "post")]
    found, wanted = dict[str, Tensor](), dict[str, Tensor]()

    def into(kept: dict[str, Tensor]) -> Hook:
        def keep(name: str, x: Tensor) -> Tensor:
            if name in names:
                x.retain_grad()
                kept[name] = x
            return x

        return keep

    by_hand(model.network, into(wanted)).square().sum().backward()
    keep = into(found)
    hooks = [(name, lambda x, hook: keep(hook.name, x)) for name in names]
    logits = bridge.run_with_hooks(IDS, attention_mask=MASK, fwd_hooks=hooks)
    logits.square().sum().backward()
    for name in names:
        scale = wanted[name].grad.abs().max()
        assert scale > 0
        truth.assert_close(found[name].grad / scale, wanted[name].grad / scale)


@pytest.mark.parametrize("memory", ["window", "positions"])
@each_dtype
def test_next_tokens(memory: str, dtype: torch.dtype) -> None:
    shape = language_models.shapes(**{memory: 3 if memory == "window" else 9})[-1]
    shape = replace(shape, attention="softmax")
    model = language_models.steady(shape, 2, dtype)
    found = as_pretrained(model)
    ids = torch.tensor([[0, 3, 2, 6, 1], [4, 4, 2, 0, 3]])
    with torch.no_grad():
        wanted = found(ids).logits  # by way of the memory
    slow = found(ids, use_cache=False, output_attentions=True)
    with torch.no_grad():
        bridge = bridge_of(model, found)  # which has been run
        logits, cache = bridge.run_with_cache(ids)
        assert set(cache) == set(bridge.hook_dict)
        for i, weights in enumerate(slow.attentions):
            assert torch.equal(cache[f"blocks.{i}.attn.hook_pattern"], weights)
    assert torch.equal(bridge(ids), logits)
    assert torch.equal(logits, slow.logits)
    truth.assert_close(logits, wanted)
    z = cache["hook_embed"] + cache["hook_pos_embed"]
    assert torch.equal(z, cache["blocks.0.hook_resid_pre"])
    assert bridge.cfg.attention_dir == "causal"


@pytest.fixture(scope="module")
def corpus() -> rankone.Corpus:
    return rankone.builtin_corpus(60)


@pytest.fixture(scope="module", params=["float32", "float64"])
def home(
    request: pytest.FixtureRequest, corpus: rankone.Corpus, tmp_path_factory: Any
) -> tuple[Path, Model]:
    model = rankone.memorize(corpus, construction="gated", dtype=request.param).model
    path = tmp_path_factory.mktemp("lens") / "hf"
    export_hf(model, path)
    return path, model


def test_a_directory(home: tuple[Path, Model], corpus: rankone.Corpus) -> None:
    """Its own precision, its words and its labels."""
    path, model = home
    bridge: Any = TransformerBridge.boot_transformers(str(path))
    assert bridge.cfg.dtype == bridge.W_E.dtype == model.network.dtype
    labels = bridge.original_model.config.id2label
    for sentence in corpus.sentences[:20]:
        logits = bridge(" ".join(sentence.tokens))
        found = [labels[i] for i in logits[0].argmax(-1).tolist()]
        assert found == model.predict([list(sentence.tokens)])[0]
    assert bridge.to_str_tokens(" ".join(corpus.sentences[0].tokens)) == list(
        corpus.sentences[0].tokens
    )
    heads = model.network.blocks[0].attention
    assert torch.equal(bridge.W_O[0], heads.output.mT)
    for name in ("key", "query", "value"):
        assert torch.equal(getattr(bridge, f"W_{name[0].upper()}")[0], getattr(heads, name).mT)
    other = torch.float32 if model.network.dtype == torch.float64 else torch.float64
    bridge = TransformerBridge.boot_transformers(path, dtype=other)
    assert bridge.cfg.dtype == bridge.W_E.dtype == other


def test_padding_is_no_unknown_word(home: tuple[Path, Model]) -> None:
    """In a list of texts, and in their tokens without a mask."""
    bridge: Any = TransformerBridge.boot_transformers(str(home[0]))
    texts = ["Savannah told zebras", "Savannah told zebras about [PAD] zebras", "Savannah"]
    alone = [bridge(text)[0] for text in texts]
    assert [len(logits) for logits in alone] == [3, 6, 1]
    right, left = (bridge.to_tokens(texts, padding_side=side) for side in ("right", "left"))
    for batch, ids in ((texts, right), (right, right), (left, left)):
        real = ids != bridge.tokenizer.pad_token_id
        for logits, own, wanted in zip(bridge(batch), real, alone, strict=True):
            truth.assert_close(logits[own], wanted)


def test_a_unit_is_the_memory_of_its_group(
    home: tuple[Path, Model], corpus: rankone.Corpus
) -> None:
    """Without it, those logits change where it fires, all of one word, by what it writes."""
    path, model = home
    bridge: Any = TransformerBridge.boot_transformers(str(path))
    tokens = as_pretrained(model)  # to find numbers of words
    row = {word: i for i, word in enumerate(model.vocabulary)}
    long = max(len(s.tokens) for s in corpus.sentences)
    ids = torch.zeros(len(corpus.sentences), long, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, s in enumerate(corpus.sentences):
        ids[i, : len(s.tokens)] = torch.tensor([row[word] for word in s.tokens])
        mask[i, : len(s.tokens)] = 1
    layer: Any = model.network.blocks[0].feedforward
    name = "blocks.0.mlp.hook_post"
    with torch.no_grad():
        before, cache = bridge.run_with_cache(ids, attention_mask=mask, names_filter=name)
        assert torch.equal(before, tokens(ids, mask).logits)
        fires = (cache[name] > 0) & (mask > 0)[..., None]
        units = fires.any(0).any(0).nonzero()[:, 0].tolist()
        assert len(units) > 20
        for unit in units[:: len(units) // 20]:

            def ablated(x: Tensor, hook: Any, unit: int = unit) -> Tensor:  # noqa: ARG001
                x[..., unit] = 0
                return x

            hooks = [(name, ablated)]
            after = bridge.run_with_hooks(ids, attention_mask=mask, fwd_hooks=hooks)
            moved = (after != before).any(-1) & (mask > 0)
            assert torch.equal(moved, fires[..., unit])
            assert len(ids[moved].unique()) == 1  # one word
            if layer.position[unit]:
                assert len(moved.nonzero()[:, 1].unique()) == 1
            codes = layer.codes[layer.plus[unit]] - layer.codes[layer.minus[unit]]
            written = torch.zeros(model.network.shape.dim, dtype=model.network.dtype)
            written = written.index_add(0, layer.writes, layer.amplitude[unit] * codes)
            lost = cache[name][..., unit, None] * (model.network.head.weight @ written)
            truth.assert_close((before - after) * mask[..., None], lost * mask[..., None])


def test_patching_a_sentence_into_another(home: tuple[Path, Model], corpus: rankone.Corpus) -> None:
    """The residual stream of one token carries all that the model says of it."""
    path, _ = home
    bridge: Any = TransformerBridge.boot_transformers(str(path))
    pairs = [s for s in corpus.sentences if len(s.tokens) == len(corpus.sentences[0].tokens)]
    clean, corrupted = (bridge.to_tokens(" ".join(s.tokens)) for s in pairs[:2])
    place = int((clean != corrupted).nonzero()[0, 1])
    name = "blocks.0.hook_resid_mid"
    wanted, cache = bridge.run_with_cache(clean)

    def patch(x: Tensor, hook: Any) -> Tensor:  # noqa: ARG001
        x[:, place] = cache[name][:, place]
        return x

    before = bridge(corrupted)
    found = bridge.run_with_hooks(corrupted, fwd_hooks=[(name, patch)])
    others = torch.arange(clean.shape[1]) != place
    assert torch.equal(found[:, place], wanted[:, place])
    assert torch.equal(found[:, others], before[:, others])
    assert not torch.equal(wanted[:, place], before[:, place])


def test_texts_and_generation(tmp_path: Path) -> None:
    """Models that label texts see every token of theirs; those of next tokens go on."""
    texts = [("A rose.", "yes"), ("No rose.", "no"), ("A red rose.", "no")]
    model = rankone.memorize(
        rankone.Corpus.from_texts(texts, task="class"), construction="gated"
    ).model
    export_hf(model, tmp_path / "texts")
    bridge: Any = TransformerBridge.boot_transformers(str(tmp_path / "texts"))
    for text, label in texts:
        logits, cache = bridge.run_with_cache(text)
        assert model.labels[int(logits.argmax())] == label
        assert cache["blocks.0.mlp.hook_post"].shape[1] == len(bridge.to_str_tokens(text)) > 1
    with pytest.raises(NotImplementedError):
        bridge.generate("A")
    for window in (0, 3):
        book = rankone.Corpus.from_texts(["A rose is a rose is red."], window=window)
        model = rankone.memorize(book, construction="gated", dtype="float32").model
        export_hf(model, tmp_path / f"next{window}")
        bridge = TransformerBridge.boot_transformers(str(tmp_path / f"next{window}"))
        found = bridge.generate("A rose", max_new_tokens=9, do_sample=False, verbose=False)
        assert found.endswith("A rose is a rose is red.")
        assert bridge.to_str_tokens("A")[0] == ("<|begin|>" if window else "A")


def test_what_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One message; names and directories of other models go to TransformerLens as they came."""
    model = networks.model(KINDS_OF[0], 1)
    model.save(tmp_path / "own")
    (tmp_path / "empty").mkdir()
    export_hf(model, tmp_path / "cut")
    (tmp_path / "cut" / "model.safetensors").write_bytes(b"")
    export_hf(model, tmp_path / "bare")
    (tmp_path / "bare" / "model.safetensors").unlink()
    export_hf(model, tmp_path / "headless")
    about = tmp_path / "headless" / "config.json"
    about.write_text(
        about.read_text().replace('RankOneForTokenClassification"', 'RankOneModel"', 1)
    )
    for name, said in {
        "own": "not a model in the layout of Hugging Face",
        "empty": "not a model in the layout of Hugging Face",
        "cut": "model.safetensors",
        "headless": "RankOneModel",
        "bare": "model.safetensors",
    }.items():
        with pytest.raises(ModelError, match=said):
            TransformerBridge.boot_transformers(str(tmp_path / name))
    module = importlib.import_module("rankone.interop.transformer_lens.boot")
    seen: list[Any] = []
    monkeypatch.setattr(
        module, "boot", functools.wraps(module.boot)(lambda *a, **k: seen.append((a, k)))
    )
    (tmp_path / "empty" / "config.json").write_text('{"model_type": "gpt2"}')
    for name in ("gpt2", str(tmp_path / "empty")):
        lens.boot_transformers(name, None, "cpu", n_ctx=4)
    assert [(a[1:], k) for a, k in seen] == [((None, "cpu"), {"n_ctx": 4})] * 2 or [
        {**k, "args": a} for a, k in seen
    ]


def test_entry_points() -> None:
    """TransformerLens finds the adapter by them where it looks for them first."""
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    named = project["entry-points"]["transformer_lens.architectures"]
    assert named.keys() == CLASSES.keys()
    for target in named.values():
        module, name = target.split(":")
        assert getattr(importlib.import_module(module), name) is lens.RankOneAdapter
    assert all(kind.__name__ == made.__name__ for kind, made in KINDS.items())
