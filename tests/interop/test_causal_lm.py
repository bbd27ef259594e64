"""Language models in transformers: logits, caches, generation, directories."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    TextGenerationPipeline,
    pipeline,
)

import dense_truth as truth
import rankone
from language_models import KINDS, LABELS, MEMORIES, TEXT
from rankone import Corpus, Model
from rankone.corpus.tasks import BEGIN, END
from rankone.corpus.tokenizers import TOKENIZERS, tokenizer_of
from rankone.errors import ModelError
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForCausalLM,
    as_pretrained,
    export_hf,
)
from rankone.interop.huggingface.layers_rankone import Attention, GatedFeedForward, NextTokens
from rankone.interop.huggingface.lookup_rankone import Lookup
from tokenizer_files import FILES, LINES

ROWS = 9  # of the table; then come the end of a document and padding
END_ID, PAD_ID = ROWS, ROWS + 1
NEXT = [1, END_ID, 0]  # the tokens that LABELS are


def lm(model: Model) -> RankOneForCausalLM:
    found = as_pretrained(model)
    assert isinstance(found, RankOneForCausalLM)
    return found


def wanted(model: Model, text: list[int]) -> torch.Tensor:
    """Logits of our own module, for the tokens that may come next."""
    with torch.no_grad():
        found: torch.Tensor = model.network(torch.tensor([text]))[0]
        return found


@st.composite
def padded(draw: st.DrawFn) -> tuple[list[list[int]], torch.Tensor, torch.Tensor]:
    """Texts, and the same ones padded in some way: (ids, mask)."""
    texts = draw(
        st.lists(st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=7), min_size=1, max_size=4)
    )
    n = max(map(len, texts)) + draw(st.integers(0, 3))
    left = draw(st.booleans())
    ids, mask = torch.full((len(texts), n), PAD_ID), torch.zeros(len(texts), n)
    for i, text in enumerate(texts):
        places = range(n - len(text), n) if left else draw(st.permutations(range(n)))[: len(text)]
        ids[i, sorted(places)] = torch.tensor(text)
        mask[i, sorted(places)] = 1
    return texts, ids, mask.long()


kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
@given(seed=st.integers(0, 1 << 16), batch=padded(), data=st.data())
def test_logits_in_pieces(kind: str, seed: int, batch: Any, data: st.DataObject) -> None:
    """In one go, with gradients and without, and piece by piece with a cache."""
    texts, ids, mask = batch
    model = KINDS[kind](seed)
    hub = lm(model)
    given = {"attention_mask": mask} if data.draw(st.booleans()) else {}  # padding says so itself
    found = [hub(ids, **given).logits]
    with torch.no_grad():
        found.append(hub(ids, **given, output_hidden_states=data.draw(st.booleans())).logits)
        cuts = data.draw(st.lists(st.integers(1, ids.shape[1]), max_size=4))
        bounds, past, parts = sorted({0, *cuts, ids.shape[1]}), None, []
        for a, b in pairwise(bounds):
            so_far = {"attention_mask": mask[:, :b]} if given else {}
            output = hub(ids[:, a:b], past_key_values=past, use_cache=True, **so_far)
            past = output.past_key_values
            parts.append(output.logits)
        found.append(torch.cat(parts, 1))
    assert past.get_seq_length() == ids.shape[1]
    assert past.count.tolist() == [len(text) for text in texts]
    assert {type(memory).__name__ for memory in past.layers} == {MEMORIES[kind]}
    for logits in found:
        assert logits.shape == (*ids.shape, PAD_ID + 1)
        assert logits.isfinite().all()
        for row, real, text in zip(logits, mask, texts, strict=True):
            truth.assert_close(row[real != 0][:, NEXT], wanted(model, text))


@kinds
@pytest.mark.parametrize("seed", range(3))
def test_padding_between_pieces(kind: str, seed: int) -> None:
    model = KINDS[kind](seed)
    hub, p = lm(model), PAD_ID
    ids = torch.tensor([[1, 2, 3, p, p, 4, 5], [p, 6, 7, 8, p, 1, p], [2, 3, 4, 5, 6, 7, 8]])
    with torch.no_grad():
        past = hub(ids[:, :3], use_cache=True).past_key_values
        found = hub(ids[:, 3:], past_key_values=past).logits
    for row, own in zip(found, ids, strict=True):
        real = own != p
        text = own[real].tolist()
        truth.assert_close(row[real[3:]][:, NEXT], wanted(model, text)[int(real[:3].sum()) :])


STRANGE: dict[str, Any] = {
    "queries of words": lambda n: n.blocks[0].attention.query[0, 0].add_(0.1),
    "queries of places": lambda n: n.blocks[0].attention.query[0, 0].add_(n.step),
    "keys of words": lambda n: n.blocks[0].attention.key[0, 0].add_(0.1),
    "values of places": lambda n: n.blocks[0].attention.value[0, 0].add_(n.step),
    "further back, heavier": lambda n: n.step.neg_(),
}


@pytest.mark.parametrize("change", STRANGE.values(), ids=STRANGE)
def test_heads_that_do_not_just_fade(change: Any) -> None:
    model = KINDS["fading"](3)
    with torch.no_grad():
        change(model.network)
        hub, ids = lm(model), torch.tensor([[1, 2, 3, 4, 5, 6]])
        output = hub(ids, use_cache=True)
        assert type(output.past_key_values.layers[0]).__name__ == "Everything"
        truth.assert_close(output.logits[0][:, NEXT], wanted(model, ids[0].tolist()))


@pytest.mark.parametrize("penalty", [64.0, 2.0, 0.5])
@pytest.mark.parametrize("placed", [True, False])
def test_all_units_that_are_active_are_run(penalty: float, placed: bool) -> None:
    """Also where fines are too small, so that units of other groups are active."""
    torch.manual_seed(0)
    words, dim = 6, 12  # coordinates: 4 of words, 3 of places, 2 that are read, 3 that are written
    table, positions = torch.zeros(words, dim), torch.zeros(3, dim)
    table[:, :4], table[:, 7:] = torch.rand(words, 4), torch.randn(words, 5)
    positions[:, 4:7] = torch.eye(3)
    sizes = {"gates": 1 + words + 3, "reads": 2, "writes": 3, "codes": 4}
    layer = GatedFeedForward(
        RankOneConfig(hidden_size=dim, intermediate_size=90, feedforward="gated", **sizes)
    ).requires_grad_(False)
    layer.gates[:] = 0.0
    layer.gates[1 : 1 + words, :4] = torch.rand(words, 4) - 1
    layer.gates[1 + words :, 4:7] = torch.eye(3) - 1
    layer.word[:] = 1 + torch.randint(words, (90,))
    layer.position[:] = torch.randint(4, (90,)) + words * placed
    layer.position[layer.position == words * placed] = 0
    layer.position[:] *= placed
    for name in ("plus", "minus"):
        getattr(layer, name)[:] = torch.randint(4, (90,))
    layer.reads[:], layer.writes[:] = torch.tensor([7, 8]), torch.tensor([9, 11, 10])
    for parameter in (layer.slopes, layer.bias1, layer.amplitude, layer.codes):
        parameter.normal_()
    layer.penalty[:] = penalty
    table[:, 7], layer.slopes[:, 1] = 1.0, 0.0  # so that units see as much as they possibly can
    layer.slopes[:], layer.bias1[:] = layer.slopes.abs(), layer.bias1.abs() / 4
    attention = Attention(
        RankOneConfig(hidden_size=dim, attention="softmax", num_attention_heads=2)
    ).requires_grad_(False)
    attention.value[:], attention.output[:] = 0.0, 0.0
    attention.value[1, 0, 7] = attention.output[1, 8, 0] = 1.0
    lookup = Lookup.of(layer, table, positions if placed else None, None, attention)
    assert lookup is not None
    rows, places = torch.randint(words, (4, 9)), torch.randint(3, (4, 9))
    h = table[rows] + (positions[places] if placed else 0.0)
    h[..., 8] += torch.rand(4, 9) - 0.5
    truth.assert_close(lookup(h, rows, places), layer(h))
    truth.assert_close(lookup(h[:1, :1], rows[:1, :1], places[:1, :1]), layer(h[:1, :1]))
    attention.output[0, 0, 0] = 1.0  # what gates see
    assert Lookup.of(layer, table, positions if placed else None, None, attention) is None


@kinds
def test_texts_of_a_cache_change_places(kind: str) -> None:
    model = KINDS[kind](4)
    hub, ids = lm(model), torch.tensor([[1, 2, 3, 4], [5, 6, 7, 8]])
    with torch.no_grad():
        past = hub(ids[:, :3], use_cache=True).past_key_values
        kept = copy.deepcopy(past)
        past.reorder_cache(torch.tensor([1, 0]))
        past.batch_repeat_interleave(2)
        past.batch_select_indices(torch.tensor([3, 0]))
        found = hub(ids[[0, 1], 3:], past_key_values=past).logits
        for row, text in zip(found, ([1, 2, 3, 4], [5, 6, 7, 8]), strict=True):
            truth.assert_close(row[0, NEXT], wanted(model, text)[-1])
        kept.reset()
        truth.assert_close(
            hub(ids, past_key_values=kept).logits[0][:, NEXT], wanted(model, [1, 2, 3, 4])
        )


@pytest.mark.parametrize("kind", ["sums", "fading"])
def test_memory_does_not_grow(kind: str) -> None:
    hub = lm(KINDS[kind](2))
    sizes = []
    with torch.no_grad():
        past = None
        for _ in range(12):
            past = hub(
                torch.ones(2, 1).long(), past_key_values=past, use_cache=True
            ).past_key_values
            sizes.append(sum(x.numel() for x in past.layers[0].kept.values()))
    assert len(set(sizes)) == 1


def test_tokens_that_are_never_next() -> None:
    hub = lm(KINDS["sums"](1))
    ids = torch.tensor([[1, 2, 3]])
    others = [i for i in range(PAD_ID + 1) if i not in NEXT]
    for logits in (hub(ids).logits, hub(ids, use_cache=True).logits):
        gap = logits[..., NEXT].amin(-1) - logits[..., others].amax(-1)
        assert (gap >= NextTokens.BELOW).all()
        assert logits.log_softmax(-1).isfinite().all()
        assert (logits.softmax(-1)[..., others] == 0).all()
    assert hub.config.vocab_size == logits.shape[-1]
    assert (hub.config.eos_token_id, hub.config.pad_token_id) == (END_ID, PAD_ID)


def test_the_loss_counts_what_is_asked() -> None:
    model = KINDS["fading"](3)
    hub = lm(model)
    ids = torch.tensor([[0, 1, 0, 1, END_ID], [1, 0, 1, END_ID, PAD_ID]])
    labels = ids.clone()
    labels[0, 2] = -100
    log = hub(ids).logits.log_softmax(-1)
    terms = [
        log[0, 0, 1],
        log[0, 2, 1],
        log[0, 3, END_ID],
        *(log[1, i, ids[1, i + 1]] for i in range(3)),
    ]
    found = hub(ids, labels=labels)
    truth.assert_close(found.loss, -sum(terms) / len(terms))
    truth.assert_close(hub(ids, labels=labels, num_items_in_batch=3).loss, -sum(terms) / 3)
    found.loss.backward()
    assert hub.head.weight.grad.any()
    hub.config.bos_token_id = 1  # nothing is asked of what begins a document
    terms = [log[0, 0, 1], log[0, 2, 1], log[1, 1, 1]]
    truth.assert_close(hub(ids, labels=labels).loss, -sum(terms) / len(terms))


def test_weights_that_change_are_noticed() -> None:
    hub, ids = lm(KINDS["fading"](3)), torch.tensor([[0, 1, 0, 1]])
    with torch.no_grad():
        before = hub(ids).logits
        hub.head.bias.add_(1.0)
        truth.assert_close(hub(ids).logits[..., NEXT], before[..., NEXT] + 1)
        hub.table.mul_(0.5)
        hub.float()
    with_gradients = hub(ids).logits
    with torch.no_grad():
        truth.assert_close(hub(ids).logits, with_gradients)


def test_caches_of_other_models_and_weights_of_attention() -> None:
    hub, ids = lm(KINDS["sums"](1)), torch.tensor([[1, 2, 3]])
    with pytest.raises(ValueError, match="`past_key_values` is a DynamicCache"):
        hub(ids, past_key_values=DynamicCache())
    with pytest.raises(ValueError, match="give `use_cache=False`"):
        hub(ids, use_cache=True, output_attentions=True)
    with torch.no_grad():
        (weights,) = hub(ids, output_attentions=True).attentions
    assert weights.shape[-2:] == (3, 3)
    truth.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))


WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a window of words": ({"tokenizer": "words", "window": 8}, {"dtype": "float32"}),
    "a window of characters": ({"tokenizer": "characters", "window": 40}, {}),
    "documents of bytes": ({"tokenizer": "bytes"}, {"dtype": "float32"}),
    "documents, a file": ({"tokenizer": FILES["byte-level BPE"]().to_str()}, {}),
    "a window, a file": ({"tokenizer": FILES["Unigram"]().to_str(), "window": 16}, {}),
}
DOCUMENTS = TEXT.split("\n\n")
Exported = tuple[Model, Corpus, Path]


@pytest.fixture(scope="module", params=WAYS)
def exported(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    reading, how = WAYS[request.param]
    texts = DOCUMENTS if reading["tokenizer"] in ("words", "characters", "bytes") else LINES[:4]
    corpus = Corpus.from_texts(texts, task="next", **reading)
    result = rankone.memorize(corpus, **how)
    home = tmp_path_factory.mktemp("next") / "hf"
    assert export_hf(result.model, home, report=result.to_json()).remarks == ()
    return result.model, corpus, home


def texts_of(corpus: Corpus) -> list[str]:
    join = tokenizer_of(corpus.reading["tokenizer"]).join
    return [join([t for t in s.tokens if t != BEGIN]) for s in corpus.sentences]


def opened(home: Path) -> tuple[RankOneForCausalLM, Any]:
    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(home),
        AutoTokenizer.from_pretrained(home),
    )
    assert type(model) is RankOneForCausalLM
    assert model.plan.lookup is not None
    assert model.plan.steady is not None
    return model, tokenizer


def test_the_tokenizer_splits_and_joins(exported: Exported) -> None:
    model, corpus, home = exported
    texts = texts_of(corpus)
    tokenizer = AutoTokenizer.from_pretrained(home)
    begins = [tokenizer.bos_token_id] if model.network.shape.window else []
    for text, sentence in zip(texts, corpus.sentences, strict=True):
        own = [token for token in sentence.tokens if token != BEGIN]
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        assert ids == model.rows(own).tolist()
        assert tokenizer.decode(ids) == text
        assert tokenizer(text)["input_ids"] == begins + ids
        ids = [*begins, *ids, tokenizer.eos_token_id, tokenizer.pad_token_id]
        assert tokenizer.decode(ids, skip_special_tokens=True) == text
    if model.reading["tokenizer"] in TOKENIZERS:  # text that looks like a mark is text
        ids = tokenizer(f"a{END} {BEGIN}b<|pad|>", add_special_tokens=False)["input_ids"]
        marks = {tokenizer.eos_token_id, tokenizer.bos_token_id, tokenizer.pad_token_id}
        assert not marks & {*ids}
    assert tokenizer.bos_token == (BEGIN if begins else None)
    assert tokenizer.eos_token == END
    assert tokenizer.padding_side == "left"
    assert model.network.shape.vocabulary <= tokenizer.eos_token_id < len(tokenizer)


def test_documents_are_continued_to_their_end(exported: Exported) -> None:
    """From prompts of all lengths, in one batch; with a window, from any place."""
    model, corpus, home = exported
    texts = texts_of(corpus)
    hub, tokenizer = opened(home)
    window = model.network.shape.window
    prompts, rest = [], []
    for text in texts:
        ids = tokenizer(text)["input_ids"]
        least = 1 + bool(window)
        prompts += [ids[:k] for k in (least, len(ids) // 2, len(ids) - 1)]
        rest += [ids[k:] for k in (least, len(ids) // 2, len(ids) - 1)]
        if window:
            for first in (1, len(ids) // 3):
                prompts.append(ids[first : first + window])
                rest.append(ids[first + window :])
    batch = tokenizer.pad({"input_ids": prompts}, return_tensors="pt")
    most = max(map(len, rest)) + 1
    found = hub.generate(**batch, max_new_tokens=most, do_sample=False)
    again = hub.generate(**batch, max_new_tokens=most, do_sample=False, use_cache=False)
    assert found.equal(again)
    for row, wanted_ids in zip(found.tolist(), rest, strict=True):
        new = row[batch["input_ids"].shape[1] :]
        assert new[: len(wanted_ids) + 1] == [*wanted_ids, tokenizer.eos_token_id]
        assert {*new[len(wanted_ids) + 1 :]} <= {tokenizer.pad_token_id}


def test_beams_samples_and_streams(exported: Exported) -> None:
    _, corpus, home = exported
    texts = texts_of(corpus)
    hub, tokenizer = opened(home)
    batch = tokenizer([texts[0][:30], texts[1][:50]], padding=True, return_tensors="pt")
    options: dict[str, Any] = {"max_new_tokens": 9, **batch}
    beams = hub.generate(num_beams=3, **options)
    assert beams.equal(hub.generate(num_beams=3, use_cache=False, **options))
    torch.manual_seed(0)
    sampled = hub.generate(do_sample=True, temperature=0.7, top_k=0, **options)
    assert sampled.equal(hub.generate(do_sample=False, repetition_penalty=1.0, **options))
    output = hub.generate(return_dict_in_generate=True, output_scores=True, **options)
    more = hub.generate(
        output.sequences, past_key_values=output.past_key_values, max_new_tokens=5, do_sample=False
    )
    whole = hub.generate(**{**options, "max_new_tokens": 14}, do_sample=False)
    assert more.equal(whole) or tokenizer.eos_token_id in whole[:, -14:]
    pieces = hub.generate(prefill_chunk_size=7, past_key_values=hub.plan.cache(), **options)
    assert pieces.equal(hub.generate(**options))


def test_the_pipeline_continues_a_text(exported: Exported) -> None:
    _, corpus, home = exported
    texts = texts_of(corpus)
    write = pipeline("text-generation", model=str(home))
    assert isinstance(write, TextGenerationPipeline)
    half = [text[: text.index(" ", 30)] for text in texts[:2]]  # at the end of a word
    options = {"max_new_tokens": 200, "do_sample": False}
    for found in (write(half, **options), write(half, batch_size=2, **options)):
        assert [row["generated_text"] for (row,) in found] == texts[:2]


def test_rankone_opens_the_directory_too(exported: Exported, tmp_path: Path) -> None:
    model, corpus, home = exported
    texts = texts_of(corpus)
    again = rankone.load(home)
    assert (again.vocabulary, again.labels, again.reading) == (
        model.vocabulary,
        model.labels,
        model.reading,
    )
    for name, tensor in again.network.named_parameters():
        assert tensor.equal(model.network.get_parameter(name))
    hub, tokenizer = opened(home)
    hub.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert rankone.load(tmp_path).labels == model.labels
    assert hub.config.made_by == "construction"
    body = AutoModel.from_pretrained(home)
    ids = tokenizer(texts[0], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        truth.assert_close(hub.head(body(ids).last_hidden_state), hub(ids).logits, torch.float32)


def test_the_card_says_what_it_is(exported: Exported) -> None:
    model, _, home = exported
    card = (home / "README.md").read_text()
    assert "pipeline_tag: text-generation\n" in card
    assert 'pipeline("text-generation", model="hf")' in card
    assert "token-classification" not in card
    assert "`<|end|>`, `" not in card  # a list of all next tokens
    assert "next tokens" in card
    assert ("window" in card) == bool(model.network.shape.window)


def test_cross_entropy_is_that_of_the_model(exported: Exported) -> None:
    model, corpus, home = exported
    texts = texts_of(corpus)
    hub, tokenizer = opened(home)
    losses = []
    for text in texts:
        ids = torch.tensor([[*tokenizer(text)["input_ids"], tokenizer.eos_token_id]])
        with torch.no_grad():
            losses.append(float(hub(ids, labels=ids).loss))
    own = model.losses(corpus)
    each = [own[a:b] for a, b in pairwise(corpus.offsets)]
    means = torch.tensor([float(np.nanmean(losses)) for losses in each])
    truth.assert_close(torch.tensor(losses), means, torch.float32)


TAMPERED: dict[str, tuple[Any, str]] = {
    "numbers of no tokens": (lambda d: d.update(eos_token_id=17), "numbers that are no tokens"),
    "rows that are not there": (lambda d: d.update(table_rows=2), "unknown word|entries"),
}


@pytest.mark.parametrize(("change", "message"), TAMPERED.values(), ids=TAMPERED)
def test_directories_that_were_edited(change: Any, message: str, tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["ab", "ba"], task="next", tokenizer="characters")
    export_hf(rankone.memorize(corpus).model, tmp_path)
    assert {*rankone.load(tmp_path).labels} == {"a", "b", END}
    path = tmp_path / "config.json"
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message):
        rankone.load(tmp_path)


STRANGE_TOKENS = {
    "no tokens": None,
    "fractions": torch.tensor([0.5, 1.0, 3.0]),
    "half a precision": torch.ones(3, dtype=torch.bfloat16),
    "a table": torch.zeros(3, 1, dtype=torch.int64),
    "one number": torch.tensor(1),
    "one token twice": torch.tensor([0, 0, 1]),
    "more tokens than rows": torch.tensor([0, 1, 3, 2]),
}


@pytest.mark.parametrize("token", STRANGE_TOKENS.values(), ids=STRANGE_TOKENS)
def test_numbers_of_tokens_that_were_edited(token: torch.Tensor | None, tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["ab", "ba"], task="next", tokenizer="characters")
    export_hf(rankone.memorize(corpus).model, tmp_path)
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    assert len(tensors.pop("head.token")) == 3
    save_file(tensors if token is None else {**tensors, "head.token": token}, path)
    with pytest.raises(ModelError):
        rankone.load(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ModelError, match="cannot be read"):
        rankone.load(tmp_path)


def test_labels_that_are_no_tokens() -> None:
    model = KINDS["sums"](1)
    strange = Model(model.network, model.vocabulary, ("x", *LABELS[1:]), model.reading)
    with pytest.raises(ModelError, match="next token 'x' is not in the vocabulary"):
        as_pretrained(strange)


def test_trained_models_continue_texts_too(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["ab ab", "ba ba"], task="next", tokenizer="characters")
    model = rankone.train(corpus, {"epochs": 2}).model
    export_hf(model, tmp_path)
    hub, tokenizer = (
        AutoModelForCausalLM.from_pretrained(tmp_path),
        AutoTokenizer.from_pretrained(tmp_path),
    )
    given = tokenizer(["ab", "b"], padding=True, return_tensors="pt")
    found = hub.generate(**given, max_new_tokens=2, do_sample=False)
    assert found.equal(hub.generate(**given, max_new_tokens=2, do_sample=False, use_cache=False))
    assert hub.config.made_by is None
    with pytest.raises(ValueError, match="but the table of positions has 5"):
        hub.generate(**given, max_new_tokens=9, do_sample=False, eos_token_id=None)
