"""Texts with one label each in transformers: the model, its pipeline, its directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy
from transformers import (
    AutoModel,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    AutoTokenizer,
    TextClassificationPipeline,
    pipeline,
)

import dense_truth as truth
import networks
import rankone
from rankone import Corpus, Model
from rankone.errors import ModelError
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForSequenceClassification,
    RankOneForTokenClassification,
    as_pretrained,
    export_hf,
)
from rankone.nn import Architecture
from tokenizer_files import FILES

PAIRS = [
    ("the rain came, and the roof leaked.", "bad"),
    ("a rose is a rose.", "good"),
    ("a rose is a nose.", "odd"),
    ("caf\u00e9\r\n\twarm  bread in the morning! \U0001f600", "good"),
    ("no.", "bad"),
    ("no. no.", "odd"),
]
TEXTS = [text for text, _ in PAIRS]
OTHERS = ["a rose, no?", "zebras\u0301 sleep", "\n", "the rose came in."]


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[list[int]], torch.Tensor, torch.Tensor]:
    """Texts, none of them empty, and the same ones padded in some way: (ids, mask)."""
    row = st.integers(0, len(networks.WORDS))
    texts = draw(st.lists(st.lists(row, min_size=1, max_size=7), min_size=1, max_size=4))
    n = max(map(len, texts)) + draw(st.integers(0, 2))
    ids, mask = torch.full((len(texts), n), -7), torch.zeros(len(texts), n)
    for i, text in enumerate(texts):
        places = sorted(draw(st.permutations(range(n)))[: len(text)])
        ids[i, places] = torch.tensor(text)
        mask[i, places] = 1
    return texts, ids, mask.long()


def whole(model: Model) -> RankOneForSequenceClassification:
    model.reading["task"] = "class"
    found = as_pretrained(model)
    assert isinstance(found, RankOneForSequenceClassification)
    return found


@given(networks.shapes, networks.seeds, batches(), st.booleans())
def test_logits_are_those_of_the_last_token(
    shape: Architecture, seed: int, batch: Any, states: bool
) -> None:
    texts, ids, mask = batch
    model = networks.model(shape, seed)
    output = whole(model)(ids, attention_mask=mask, output_hidden_states=states)
    assert output.logits.shape == (len(texts), len(networks.LABELS))
    for row, text in zip(output.logits, texts, strict=True):
        past = torch.ones(len(text), len(text)).tril().bool().numpy() if shape.causal else None
        truth.assert_close(row, truth.logits_of(model.network, text, past).T[-1])
    if states:
        assert output.hidden_states[-1].shape == (*ids.shape, shape.dim)


def test_without_a_mask_every_token_is_real() -> None:
    model = networks.model(networks.SHAPES[0], 1)
    ids = torch.tensor([[1, 2, 8], [4, 5, 8]])
    found, tokens = whole(model), networks.model(networks.SHAPES[0], 1)
    tagger = as_pretrained(tokens)
    assert isinstance(tagger, RankOneForTokenClassification)
    truth.assert_close(found(ids).logits, tagger(ids).logits[:, -1])
    assert found(ids, return_dict=False)[0].equal(found(ids).logits)
    assert len(found(ids, output_attentions=True).attentions) == 1


def test_the_loss_is_that_of_transformers() -> None:
    model = whole(networks.model(networks.SHAPES[0], 1))
    ids, labels = torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([2, 0])
    output = model(ids, labels=labels)
    truth.assert_close(output.loss, cross_entropy(output.logits, labels))
    output.loss.backward()
    assert model.head.weight.grad.any()
    assert model(ids, labels=labels, return_dict=False)[0].equal(output.loss)
    shape = {"vocab_size": 9, "hidden_size": 8}
    torch.manual_seed(0)
    fresh = RankOneForSequenceClassification(RankOneConfig(**shape, num_labels=2)).train()
    optimizer = torch.optim.Adam(fresh.parameters(), 0.05)
    for _ in range(60):
        optimizer.zero_grad()
        fresh(ids, labels=torch.tensor([1, 0])).loss.backward()
        optimizer.step()
    assert fresh(ids).logits.argmax(-1).tolist() == [1, 0]
    one = RankOneForSequenceClassification(RankOneConfig(**shape, num_labels=1))
    truth.assert_close(
        one(ids, labels=torch.tensor([0.5, 1.0])).loss,
        (one(ids).logits[:, 0] - torch.tensor([0.5, 1.0])).square().mean(),
    )


def test_a_text_without_tokens_has_no_label() -> None:
    model = whole(networks.model(networks.SHAPES[0], 1))
    ids = torch.tensor([[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="Text 2 of the batch has no token, so it has no label"):
        model(ids, attention_mask=torch.tensor([[1, 1], [0, 0]]))
    with pytest.raises(ValueError, match="Text 1 of the batch has no token"):
        model(torch.empty(1, 0))
    assert model(torch.empty(0, 3)).logits.shape == (0, 3)


WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "words": ({"tokenizer": "words"}, {}),
    "characters": ({"tokenizer": "characters"}, {"positions": False}),
    "bytes": ({"tokenizer": "bytes"}, {"construction": "gated", "dtype": "float32"}),
    "a file": ({"tokenizer": FILES["byte-level BPE"]().to_str()}, {}),
    "lower": ({"lower": True}, {}),
}


@pytest.fixture(scope="module", params=WAYS)
def exported(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path]:
    reading, how = WAYS[request.param]
    corpus = Corpus.from_texts(PAIRS, task="class", **reading)
    result = rankone.memorize(
        corpus, max_length=None if not how.get("positions", True) else 90, **how
    )
    home = tmp_path_factory.mktemp("class") / "hf"
    certificate = rankone.certify(result.model, corpus)
    written = export_hf(result.model, home, report=result.to_json(), certificate=certificate)
    assert written.remarks == ()
    return result.model, home


def test_the_pipeline_labels_as_classify_does(exported: tuple[Model, Path]) -> None:
    model, home = exported
    label = pipeline("text-classification", model=str(home))
    assert isinstance(label, TextClassificationPipeline)
    assert type(label.model) is RankOneForSequenceClassification
    texts = TEXTS + OTHERS
    wanted = model.classify(texts)
    assert wanted[: len(TEXTS)] == [name for _, name in PAIRS]
    assert [row["label"] for row in label(texts)] == wanted
    for side in ("left", "right"):
        label.tokenizer.padding_side = side
        assert [row["label"] for row in label(texts, batch_size=4)] == wanted
    (every,) = label(TEXTS[:1], top_k=None)
    assert {row["label"] for row in every} == {"bad", "good", "odd"}
    with pytest.raises(ValueError, match="Text 1 of the batch has no token, so it has no label"):
        label("")
    if model.positions:
        long = "a " * 200
        with pytest.raises(ValueError, match="but the table of positions has 90"):
            label(long)
        assert label(long, truncation=True)[0]["label"] in model.labels  # as was asked for


def test_rankone_opens_the_directory_too(exported: tuple[Model, Path], tmp_path: Path) -> None:
    model, home = exported
    again = rankone.load(home)
    assert (again.vocabulary, again.labels, again.reading) == (
        model.vocabulary,
        model.labels,
        model.reading,
    )
    for name, tensor in again.network.named_parameters():
        assert tensor.equal(model.network.get_parameter(name))
    assert again.classify(TEXTS + OTHERS) == model.classify(TEXTS + OTHERS)
    assert rankone.certification.read_certificate(home / "certificate.json").is_of(again)
    # What transformers saves again is the same, too.
    AutoModelForSequenceClassification.from_pretrained(home).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(home).save_pretrained(tmp_path)
    assert rankone.load(tmp_path).classify(TEXTS + OTHERS) == model.classify(TEXTS + OTHERS)


def test_every_class_opens_it(exported: tuple[Model, Path]) -> None:
    model, home = exported
    texts = AutoModelForSequenceClassification.from_pretrained(home)
    tokens, body = (
        kind.from_pretrained(home) for kind in (AutoModelForTokenClassification, AutoModel)
    )
    config = texts.config
    assert config.architectures == ["RankOneForSequenceClassification"]
    assert config.problem_type == "single_label_classification"
    assert config.id2label == dict(enumerate(model.labels))
    assert texts.dtype == model.network.dtype
    tokenizer = AutoTokenizer.from_pretrained(home)
    given = tokenizer(TEXTS[:1], return_tensors="pt")
    with torch.no_grad():
        wanted = texts(**given).logits
        truth.assert_close(tokens(**given).logits[:, -1], wanted)
        truth.assert_close(texts.head(body(**given).last_hidden_state[:, -1]), wanted)
    # Tokens beyond the table have its last row, but not just any number is a token.
    beyond = len(tokenizer)
    assert config.pad_token_id == tokenizer.pad_token_id
    assert max(config.tokenizer_size, config.vocab_size) == beyond
    last = torch.tensor([[config.vocab_size - 1]])
    assert texts(torch.tensor([[beyond - 1]])).logits.equal(texts(last).logits)
    with pytest.raises(ValueError, match=f"`input_ids` holds {beyond}, but the token table has"):
        texts(torch.tensor([[beyond]]))


def test_the_card_says_what_it_is(exported: tuple[Model, Path]) -> None:
    model, home = exported
    card = (home / "README.md").read_text()
    assert "pipeline_tag: text-classification\n" in card
    assert 'pipeline("text-classification", model="hf")' in card
    assert "| labelled right | 6 (100.0000%) |" in card
    assert "token-classification" not in card
    assert "{" not in card.replace("{name}", "{")
    name = model.reading["tokenizer"]
    assert f"(`{name if len(name) < 20 else 'tokenizer.json'}`)" in card
    assert ("longer\nones are refused" in card) == bool(model.positions)


def test_lists_of_words_are_split_at_blanks(tmp_path: Path) -> None:
    corpus = Corpus.from_sentences(
        [
            (["a", "b"], ["x", "x"]),
            (
                ["b"],
                [
                    "y",
                ],
            ),
        ],
        task="class",
    )
    model = rankone.memorize(corpus).model
    export_hf(model, tmp_path)
    label = pipeline("text-classification", model=str(tmp_path))
    assert [row["label"] for row in label(["a b", "b"])] == model.classify([["a", "b"], ["b"]])
    assert rankone.load(tmp_path).classify([["a", "b"], ["b"]]) == ["x", "y"]


def test_one_hidden_unit_and_one_label(tmp_path: Path) -> None:
    """One number alone may lie in memory in any way."""
    pairs = [("a b.", "x"), ("a c.", "y")]
    model = rankone.memorize(Corpus.from_texts(pairs, task="class"), construction="gated").model
    assert model.network.shape.hidden == 1
    export_hf(model, tmp_path / "unit")
    assert rankone.load(tmp_path / "unit").classify(["a b.", "a c."]) == ["x", "y"]
    model = rankone.memorize(Corpus.from_texts([("a", "x")], task="class")).model
    export_hf(model, tmp_path / "label")
    label = pipeline("text-classification", model=str(tmp_path / "label"))
    assert label("anything")[0]["label"] == "x"


def edit(path: Path, change: Any) -> None:
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


TAMPERED: dict[str, tuple[str, Any, str]] = {
    "a path as the tokenizer": (
        "config.json",
        lambda d: d["reading"].update(tokenizer="/etc/hostname"),
        "the tokenizer is neither a known one nor the text of a file",
    ),
    "letters that are no bytes": (
        "tokenizer.json",
        lambda d: d["model"]["vocab"].update({"\u4e00": d["model"]["vocab"].pop("a")}),
        "a token that does not stand for a byte",
    ),
    "another task": (
        "config.json",
        lambda d: d["reading"].update(task="chess"),
        "config.json",
    ),
    "another kind of vocabulary": (
        "tokenizer.json",
        lambda d: d["model"].update(vocab=[["a", 0.0], ["b", 0.0]]),
        "different entries|the last row of the token table",
    ),
}


@pytest.mark.parametrize(("file", "change", "message"), TAMPERED.values(), ids=TAMPERED)
def test_directories_that_were_edited(file: str, change: Any, message: str, tmp_path: Path) -> None:
    corpus = Corpus.from_texts([("a b", "x"), ("b", "y")], task="class", tokenizer="bytes")
    export_hf(rankone.memorize(corpus).model, tmp_path)
    assert rankone.load(tmp_path).classify(["a b"]) == ["x"]
    edit(tmp_path / file, change)
    with pytest.raises(ModelError, match=message):
        rankone.load(tmp_path)
