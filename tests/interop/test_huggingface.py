"""The Hugging Face model against the equations, and what transformers does with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForTokenClassification,
    AutoTokenizer,
    FeatureExtractionPipeline,
    pipeline,
)

import dense_truth as truth
import networks
import rankone
from rankone.errors import ModelError, OutputError
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForTokenClassification,
    RankOneModel,
    as_pretrained,
    export_hf,
)
from rankone.interop.huggingface.pretrained_rankone import logger
from rankone.nn import Architecture

shapes = networks.shapes


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[list[int]], torch.Tensor, torch.Tensor]:
    """Sentences, and the same ones padded in some way: (ids, mask)."""
    row = st.integers(0, len(networks.WORDS))
    sentences = draw(st.lists(st.lists(row, max_size=7), min_size=1, max_size=4))
    n = max(map(len, sentences)) + draw(st.integers(0, 2))
    ids, mask = torch.full((len(sentences), n), -7), torch.zeros(len(sentences), n)
    for i, sentence in enumerate(sentences):
        places = sorted(draw(st.permutations(range(n)))[: len(sentence)])
        ids[i, places] = torch.tensor(sentence, dtype=torch.long)
        mask[i, places] = 1
    return sentences, ids, mask.long()


def logits_of(model: rankone.Model, sentence: list[int]) -> np.ndarray:
    past = np.tri(len(sentence), dtype=bool) if model.network.shape.causal else None
    return truth.logits_of(model.network, sentence, past).T


@given(shapes, networks.seeds, batches(), st.booleans())
def test_logits_equal_the_dense_truth_however_sentences_are_padded(
    shape: Architecture, seed: int, batch: Any, gradients: bool
) -> None:
    sentences, ids, mask = batch
    model = networks.model(shape, seed)
    with torch.set_grad_enabled(gradients):
        logits = as_pretrained(model)(ids, attention_mask=mask).logits
    assert logits.dtype == torch.float64
    assert logits.isfinite().all()
    for row, real, sentence in zip(logits, mask.bool(), sentences, strict=True):
        if sentence:
            truth.assert_close(row[real], logits_of(model, sentence))


@given(shapes, networks.seeds, st.lists(st.integers(0, 8), min_size=1, max_size=7))
def test_what_is_trained_is_what_is_evaluated(
    shape: Architecture, seed: int, ids: list[int]
) -> None:
    """Units added up, and folded into pieces, are one function with one gradient."""
    model = as_pretrained(networks.model(shape, seed))
    gradients = []
    for mode in (True, False):
        model.train(mode).zero_grad()
        output = model(torch.tensor([ids]), labels=torch.tensor([[i % 3 for i in ids]]))
        output.loss.backward()
        gradients.append([p.grad.clone() for p in model.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(gradients[1])
    for one, other in zip(*gradients, strict=True):
        truth.assert_close(one, other)


def test_pieces_follow_the_units() -> None:
    shape = next(s for s in networks.SHAPES if s.feedforward == "rank1")
    model = as_pretrained(networks.model(shape, 0))
    ids = torch.tensor([[1, 2, 3]])
    layer = model.blocks[0].feedforward
    with torch.no_grad():
        before = model(ids).logits
        known = layer._known
        assert model(ids).logits.equal(before)
        assert layer._known is known  # not folded again
        for change in (
            lambda: layer.gain.mul_(-2),
            lambda: layer.bias1.data.add_(1),  # of which torch keeps no count
            lambda: setattr(layer.out_gain, "data", layer.out_gain.data * 3),
            lambda: setattr(layer, "gain", torch.nn.Parameter(torch.zeros(6).double())),
        ):
            change()
            after = model(ids).logits
            assert not after.equal(before)
            truth.assert_close(model.train()(ids).logits, after)
            before = model.eval()(ids).logits
        assert model.float()(ids).logits.dtype == torch.float32
    with torch.inference_mode():
        assert model(ids).logits.isfinite().all()


def test_loss_is_the_mean_over_labels_that_count() -> None:
    model = as_pretrained(networks.model(networks.SHAPES[0], 1))
    ids, labels = (
        torch.tensor([[1, 2, 3], [4, 5, 8]]),
        torch.tensor([[0, -100, 2], [1, -100, -100]]),
    )
    output = model(ids, labels=labels)
    log_p = output.logits.log_softmax(-1)
    total = -(log_p[0, 0, 0] + log_p[0, 2, 2] + log_p[1, 0, 1])
    truth.assert_close(output.loss, total / 3)
    truth.assert_close(model(ids, labels=labels, num_items_in_batch=12).loss, total / 12)
    assert model(ids, labels=torch.full_like(ids, -100)).loss == 0
    assert output.loss.dtype == torch.float64


def test_what_transformers_users_ask_for() -> None:
    shape = next(s for s in networks.SHAPES if s.attention == "softmax" and s.depth == 2)
    model = as_pretrained(networks.model(shape, 1))
    ids = torch.tensor([[1, 2, 3]])
    output = model(ids, output_hidden_states=True, output_attentions=True)
    assert len(output.hidden_states) == 3
    assert [tuple(a.shape) for a in output.attentions] == [(1, 2, 3, 3)] * 2
    truth.assert_close(output.attentions[0].sum(-1), torch.ones(1, 2, 3))
    truth.assert_close(model.head(output.hidden_states[-1]), output.logits)
    assert model(ids, return_dict=False)[0].equal(output.logits)
    assert model(ids)["logits"].equal(output.logits)
    assert model(torch.empty(2, 0)).logits.shape == (2, 0, 3)  # a tokenizer's "no tokens"


def test_auto_model_is_the_model_without_its_head(
    home: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = AutoModelForTokenClassification.from_pretrained(home)
    body = AutoModel.from_pretrained(home)
    assert type(body) is RankOneModel
    assert not caplog.records  # transformers does not miss the head
    ids, mask = torch.tensor([[1, 2, 3], [4, 5, 94]]), torch.tensor([[1, 1, 1], [1, 0, 1]])
    with torch.no_grad():
        wanted = model(ids, attention_mask=mask, output_hidden_states=True)
        found = body(ids, attention_mask=mask, output_hidden_states=True, output_attentions=True)
    assert found.last_hidden_state.equal(wanted.hidden_states[-1])
    assert model.head(found.last_hidden_state).equal(wanted.logits)
    assert all(map(torch.equal, found.hidden_states, wanted.hidden_states))
    assert len(found.attentions) == 1
    assert body(ids, return_dict=False)[0].shape == (2, 3, 3)
    vectors = FeatureExtractionPipeline(model=body, tokenizer=AutoTokenizer.from_pretrained(home))
    one, two = vectors(["Savannah told", "Orlando"], batch_size=1)
    assert (len(one[0]), len(two[0])) == (2, 1)
    body.save_pretrained(tmp_path)
    assert type(AutoModel.from_pretrained(tmp_path)) is RankOneModel
    AutoTokenizer.from_pretrained(home).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"head\.bias is missing"):
        rankone.load(tmp_path)


@given(shapes, networks.seeds, st.sampled_from([torch.float64, torch.float32]))
def test_every_bit_comes_back(
    tmp_path_factory: pytest.TempPathFactory, shape: Architecture, seed: int, dtype: torch.dtype
) -> None:
    home = tmp_path_factory.mktemp("bits")
    model = networks.model(shape, seed, dtype)
    as_pretrained(model).save_pretrained(home)
    found = AutoModelForTokenClassification.from_pretrained(home)
    assert type(found) is RankOneForTokenClassification
    assert found.config.id2label == dict(enumerate(networks.LABELS))
    before, after = dict(model.network.named_parameters()), dict(found.named_parameters())
    assert before.keys() == after.keys()
    for name, tensor in after.items():
        assert tensor.dtype == before[name].dtype
        assert tensor.dtype in (dtype, torch.int64)
        assert tensor.equal(before[name])


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = rankone.memorize("builtin")
    certificate = rankone.certify(result.model, rankone.read_corpus("builtin"))
    home = tmp_path_factory.mktemp("export") / "hf"
    export_hf(result.model, home, report=result.to_json(), certificate=certificate)
    return home


@pytest.fixture
def copy(home: Path, tmp_path: Path) -> Path:
    for path in home.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def edit(path: Path, **values: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


def test_the_pipeline_labels_as_predict_does(home: Path) -> None:
    corpus = rankone.read_corpus("builtin")
    some = corpus.sentences[:150]
    label = pipeline("token-classification", model=str(home), ignore_labels=[])
    split = label([list(s.tokens) for s in some], is_split_into_words=True)
    plain = label([" ".join(s.tokens) for s in some], batch_size=16)
    for found in (split, plain):
        assert [[t["entity"] for t in s] for s in found] == [s.labels for s in some]
    words = [[t["word"] for t in s] for s in split]
    assert words == [list(s.tokens) for s in some]
    text = " ".join(some[0].tokens)
    assert [text[t["start"] : t["end"]] for t in plain[0]] == list(some[0].tokens)
    unknown = label("Savannah told Zzyzx nothing")
    known = rankone.load(home).predict([["Savannah", "told", "Zzyzx", "nothing"]])[0]
    assert [t["entity"] for t in unknown] == known
    assert unknown[2]["word"] == "Zzyzx"


def test_rankone_opens_the_directory_too(home: Path) -> None:
    corpus = rankone.read_corpus("builtin")
    model, again = rankone.memorize(corpus).model, rankone.load(home)
    assert (again.vocabulary, again.labels, again.reading) == (
        model.vocabulary,
        model.labels,
        model.reading,
    )
    assert again.network.shape == model.network.shape
    for name, tensor in again.network.named_parameters():
        assert tensor.equal(model.network.get_parameter(name))
    assert rankone.certification.read_certificate(home / "certificate.json").is_of(again)


def test_the_card_tells_figures_and_certificate(home: Path, tmp_path: Path) -> None:
    card = (home / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: transformers\npipeline_tag: token-classification\n")
    for said in ("| labelled right | 16,525 (100.0000%) |", "| outcome | **certified** |", "# hf"):
        assert said in card
    model = networks.model(networks.SHAPES[0], 0)
    export_hf(model, tmp_path / "bare")
    assert "were measured, not proved" in (tmp_path / "bare" / "README.md").read_text()
    assert not (tmp_path / "bare" / "certificate.json").exists()
    found = rankone.certification.read_certificate(home / "certificate.json")
    with pytest.raises(ModelError, match=r"certificate\.json: is about another model"):
        export_hf(model, tmp_path / "bare", certificate=found)


def test_only_an_earlier_export_is_written_over(copy: Path) -> None:
    model = networks.model(networks.SHAPES[0], 0)
    export_hf(model, copy)
    assert rankone.load(copy).vocabulary == networks.WORDS
    (copy / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds other files \(notes.txt\)"):
        export_hf(model, copy)
    (copy / "notes.txt").unlink()
    edit(copy / "config.json", model_type="bert")
    with pytest.raises(OutputError, match="the model of another program"):
        export_hf(model, copy)


REFUSED = [
    ({"format_version": 2}, "written in version 2 of the rankone format"),
    ({"attention": "rope"}, "`attention` must be one of"),
    ({"feedforward": None}, "`feedforward` must be one of"),
    ({"hidden_size": 0}, "`hidden_size` must be a whole number from 1, not 0"),
    ({"max_position_embeddings": -1}, "`max_position_embeddings` must be a whole number from 0"),
    ({"num_attention_heads": 2}, "has one head of size 1"),
]


@pytest.mark.parametrize(("values", "message"), REFUSED)
def test_configurations_that_mean_nothing(copy: Path, values: Any, message: str) -> None:
    edit(copy / "config.json", **values)
    with pytest.raises(ValueError, match=message):
        AutoConfig.from_pretrained(copy)
    with pytest.raises(ModelError):
        rankone.load(copy)


def test_inputs_that_do_not_fit(home: Path) -> None:
    model = AutoModelForTokenClassification.from_pretrained(home)
    for ids, message in (
        (
            [[0, 95]],
            r"`input_ids` holds 95, but the token table has rows 0 to 94. Is the tokenizer",
        ),
        ([[0, -1]], "`input_ids` holds -1"),
        ([[0] * 12], "A sentence of 12 tokens, but the table of positions has 11"),
        ([0, 1], r"`input_ids` must be \(batch, length\), not \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model(torch.tensor(ids))
    ids = torch.tensor([[0, 1, 2]])
    with pytest.raises(ValueError, match=r"`attention_mask` is \(1, 2\), but `input_ids` is"):
        model(ids, attention_mask=torch.ones(1, 2))
    with pytest.raises(ValueError, match=r"`labels` is \(1, 2\), but `input_ids` is \(1, 3\)"):
        model(ids, labels=torch.ones(1, 2).long())
    longer = torch.zeros(1, 15).long()  # 11 of them real
    mask = torch.arange(15)[None] >= 4
    assert model(longer, attention_mask=mask).logits.shape == (1, 15, 5)


def test_weights_of_the_wrong_shape(copy: Path, caplog: pytest.LogCaptureFixture) -> None:
    tensors = load_file(copy / "model.safetensors")
    tensors["table"] = tensors["table"][:-1].clone()
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(RuntimeError, match="above report"):  # which names the tensor
        AutoModelForTokenClassification.from_pretrained(copy)
    assert "table | MISMATCH" in caplog.text
    with pytest.raises(ModelError, match="table is"):
        rankone.load(copy)


def test_tokenizers_that_do_not_fit(copy: Path) -> None:
    path = copy / "tokenizer.json"
    document = json.loads(path.read_text())
    vocabulary = document["model"]["vocab"]
    for change, message in (
        ({"type": "WordPiece"}, "not a word-level tokenizer"),
        ({"vocab": {**vocabulary, "more": 95}}, "last row of the token table is not the unknown"),
        ({"vocab": {w: i for w, i in vocabulary.items() if i != 3}}, "number its words from 0"),
        ({"unk_token": "Savannah"}, "last row of the token table is not the unknown"),
    ):
        edit(path, model={**document["model"], **change})
        with pytest.raises(ModelError, match=message):
            rankone.load(copy)


def test_a_fresh_configuration_is_drawn_as_ours_is() -> None:
    torch.manual_seed(0)
    model = RankOneForTokenClassification(
        RankOneConfig(vocab_size=4000, hidden_size=64, num_labels=5, feedforward="dense")
    )
    assert model.table.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.blocks[0].feedforward.weight2.std().item() == pytest.approx(1 / 16, rel=0.05)
    assert model.blocks[0].attention.v1.std().item() == pytest.approx(1 / 8, rel=0.4)
    assert model.blocks[0].feedforward.bias1.abs().max() == 0
    assert model.config.intermediate_size == 256


def test_tokenizer_is_saved_beside_the_weights(home: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(home)
    assert tokenizer.is_fast
    ids = tokenizer(["Savannah told Zzyzx", "Savannah"], padding=True)
    assert ids["attention_mask"] == [[1, 1, 1], [1, 0, 0]]
    assert ids["input_ids"][0][2] == ids["input_ids"][1][1] == 94
    assert set(ids) == {"input_ids", "attention_mask"}


def test_fewer_digits_than_the_weights_need_are_told(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    type(logger).warning_once.cache_clear()  # another test may have been told already
    model = AutoModelForTokenClassification.from_pretrained(home)
    model(torch.tensor([[0]]))
    assert not caplog.records
    model.float()(torch.tensor([[0]]))
    assert "made in torch.float64 and are run in torch.float32" in caplog.text
    caplog.clear()
    trained = as_pretrained(networks.model(networks.SHAPES[0], 0, torch.float32))
    trained.double()(torch.tensor([[0]]))  # more digits do no harm
    assert not caplog.records


def test_labels_that_transformers_leaves_out_come_back(tmp_path: Path) -> None:
    result = rankone.memorize([(["a", "b"], ["LABEL_0", "LABEL_1"])])
    export_hf(result.model, tmp_path / "hf")
    assert rankone.load(tmp_path / "hf").labels == ("LABEL_0", "LABEL_1")


def test_a_report_of_other_weights_is_left_out(tmp_path: Path) -> None:
    result = rankone.memorize([(["a", "b"], ["x", "y"])])
    export_hf(result.model, tmp_path / "hf", report=result.to_json())
    report = json.loads((tmp_path / "hf" / "report.json").read_text())
    changed = AutoModelForTokenClassification.from_pretrained(tmp_path / "hf")
    with torch.no_grad():
        changed.head.bias.add_(1)
    changed.save_pretrained(tmp_path / "hf")
    written = export_hf(rankone.load(tmp_path / "hf"), tmp_path / "again", report=report)
    assert written.remarks == ("The report is about other weights, and is left out.",)
    assert "labelled right" not in (tmp_path / "again" / "README.md").read_text()
    same = export_hf(result.model, tmp_path / "same", report=report)
    assert same.remarks == ()


def test_what_cannot_be_done_is_said() -> None:
    model = as_pretrained(networks.model(networks.SHAPES[0], 0))
    with pytest.raises(ValueError, match="a row of the token table is a word"):
        model.resize_token_embeddings(200)
    assert RankOneConfig(vocab_size=np.int64(3)).to_json_string()


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RankOneForTokenClassification, "save_pretrained", full)
    with pytest.raises(OutputError, match="No space left"):
        export_hf(networks.model(networks.SHAPES[0], 0), tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_numbers_that_rankone_does_not_read(copy: Path) -> None:
    model = AutoModelForTokenClassification.from_pretrained(copy).bfloat16()
    model.save_pretrained(copy)
    with pytest.raises(ModelError, match="is bfloat16\n  remedy: save the weights as float32 or"):
        rankone.load(copy)
