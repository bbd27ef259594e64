"""Probabilities of Hugging Face models: against a plain loop over sentences, and every refusal."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    BertConfig,
    BertForTokenClassification,
    ByT5Tokenizer,
    DistilBertConfig,
    DistilBertForTokenClassification,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForTokenClassification,
)

import rankone
from rankone import Corpus
from rankone.errors import ProbabilityError
from rankone.interop.huggingface import model_probabilities
from rankone.interop.huggingface.windows import windows

LABELS = ["DET", "NOUN", "VERB", "X"]
LETTERS = "abcdefgh"
SMALL = {"num_labels": 4, "id2label": dict(enumerate(LABELS)), "vocab_size": 40}
LONGEST = 16  # sub-words that the models take, special tokens included


def sentences(lengths: list[int], seed: int = 0) -> Corpus:
    """Made-up words of one to three letters, which become as many sub-words."""
    draw = np.random.default_rng(seed)
    rows = [
        ["".join(draw.choice(list(LETTERS), draw.integers(1, 4))) for _ in range(n)]
        for n in lengths
    ]
    return Corpus.from_sentences(
        [(words, [LABELS[draw.integers(3)] for _ in words]) for words in rows]
    )


def word_pieces() -> PreTrainedTokenizerFast:
    """A letter is a sub-word; the soft hyphen is dropped."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    rows = [*special, *LETTERS, *(f"##{letter}" for letter in LETTERS)]
    backend = Tokenizer(models.WordPiece({p: i for i, p in enumerate(rows)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.Replace("\u00ad", "")
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    backend.enable_truncation(5)  # as some tokenizers are saved; nothing may be lost by it
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="[PAD]", unk_token="[UNK]", model_max_length=LONGEST
    )


def bytes_of_text() -> PreTrainedTokenizerFast:
    """A byte is a sub-word, and so is the blank before a word, which has to be asked for."""
    rows = {"<s>": 0, "<pad>": 1, "</s>": 2, "Ġ": 3} | {c: i for i, c in enumerate(LETTERS, 4)}
    backend = Tokenizer(models.BPE(rows, []))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    backend.post_processor = processors.BertProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="<pad>")


def classifiers() -> dict[str, tuple[Any, Any]]:
    torch.manual_seed(0)
    tiny = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    tiny |= {"intermediate_size": 16, "initializer_range": 1.0}
    distil = {"dim": 16, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "initializer_range": 1.0}
    return {
        "bert": (
            BertForTokenClassification(
                BertConfig(**SMALL, **tiny, max_position_embeddings=LONGEST)
            ),
            word_pieces(),
        ),
        "distilbert": (
            DistilBertForTokenClassification(
                DistilBertConfig(**SMALL, **distil, max_position_embeddings=99)
            ).half(),
            word_pieces(),
        ),
        "roberta": (  # whose positions begin after that of the padding
            RobertaForTokenClassification(
                RobertaConfig(**SMALL, **tiny, max_position_embeddings=LONGEST + 2, pad_token_id=1)
            ),
            bytes_of_text(),
        ),
    }


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("classifiers")
    for name, (model, tokenizer) in classifiers().items():
        model.save_pretrained(home / name)
        tokenizer.save_pretrained(home / name)
    return home


@pytest.fixture
def changed(home: Path, tmp_path: Path) -> Callable[..., Path]:
    """A copy of BERT with other files, or other values in its configuration."""

    def change(**config: Any) -> Path:
        copy = tmp_path / "copy"
        shutil.copytree(home / "bert", copy)
        path = copy / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        return copy

    return change


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        pytest.fail("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def plainly(directory: Path, words: list[str], blank: str = "") -> np.ndarray:
    """Word by word, what the model says of a sentence that it takes whole: (words, labels)."""
    model = AutoModelForTokenClassification.from_pretrained(directory, local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    first, *_, last = backend.encode("a").ids
    ids, begins = [first], []
    for word in words:
        begins.append(len(ids))
        ids += backend.encode(f"{blank}{word}", add_special_tokens=False).ids
    with torch.inference_mode():
        (logits,) = model.float()(torch.tensor([[*ids, last]])).logits
    exps = np.exp(logits[begins].double().numpy())
    return exps / exps.sum(1, keepdims=True)


def in_order(corpus: Corpus, rows: np.ndarray) -> np.ndarray:
    """Columns as in the corpus, which does not have X."""
    own = rows[:, [LABELS.index(name) for name in corpus.label_names]]
    return own / own.sum(1, keepdims=True)


@pytest.mark.parametrize(("name", "blank"), [("bert", ""), ("distilbert", ""), ("roberta", " ")])
def test_probabilities_are_those_of_first_sub_words(home: Path, name: str, blank: str) -> None:
    corpus, said, stages = sentences([3, 1, 4, 2, 3, 3, 1]), list[str](), list[Any]()
    found = model_probabilities(
        home / name, corpus, progress=lambda *told: stages.append(told), remark=said.append
    )
    expected = np.concatenate([plainly(home / name, s.tokens, blank) for s in corpus.sentences])
    np.testing.assert_allclose(found, in_order(corpus, expected), atol=1e-6)
    assert np.ptp(found, axis=0).min() > 0.01
    assert stages[-1] == ("probabilities", 1.0)
    assert any("left out 1 label that the corpus does not have ('X')" in text for text in said)
    assert len(said) == 1 + (name == "roberta")


@pytest.mark.parametrize(("name", "blank"), [("bert", ""), ("roberta", " ")])
def test_long_sentences_are_run_in_pieces_with_context(home: Path, name: str, blank: str) -> None:
    corpus, said = sentences([40, 2], seed=1), list[str]()
    found = model_probabilities(home / name, corpus, remark=said.append)
    assert any(f"ran 1 sentence longer than {LONGEST} sub-words in pieces" in t for t in said)
    words = corpus.sentences[0].tokens
    pieces = [(k, i) for k, w in enumerate(words) for i in range(-len(blank), len(w))]
    expected, room = np.full((42, 4), np.nan), LONGEST - 2
    for start, end, ours in windows(len(pieces), room):
        # A window may cut words: a rest of letters is given as sub-words that continue one.
        rows = sub_words(home / name, [(words[k], i) for k, i in pieces[start:end]])
        for place in ours:
            k, i = pieces[place]
            if i == -len(blank):
                expected[k] = rows[place - start]
    expected[40:] = plainly(home / name, corpus.sentences[1].tokens, blank)
    np.testing.assert_allclose(found, in_order(corpus, expected), atol=1e-6)


def sub_words(directory: Path, letters: list[tuple[str, int]]) -> np.ndarray:
    """What the model says of letters (a word and a place in it, -1 for the blank before)."""
    model = AutoModelForTokenClassification.from_pretrained(directory, local_files_only=True)
    backend = AutoTokenizer.from_pretrained(directory, local_files_only=True).backend_tokenizer
    first, *_, last = backend.encode("a").ids
    continued = "##" if "##a" in backend.get_vocab() else ""
    names = ["Ġ" if i < 0 else f"{continued if i else ''}{word[i]}" for word, i in letters]
    ids = [first, *(backend.token_to_id(name) for name in names), last]
    with torch.inference_mode():
        (logits,) = model(torch.tensor([ids])).logits
    exps = np.exp(logits[1:-1].double().numpy())
    return exps / exps.sum(1, keepdims=True)


@given(st.integers(1, 200), st.integers(1, 40))
def test_windows_read_every_place_once_and_with_context(length: int, room: int) -> None:
    found = windows(length, room)
    assert [place for _, _, ours in found for place in ours] == list(range(length))
    for start, end, ours in found:
        assert 0 <= start < end <= length
        assert end - start == min(room, length)
        for place in ours:
            assert start <= place < end
            assert start == 0 or place - start >= room // 4
            assert end == length or end - place > room // 4


def test_a_word_longer_than_the_model_takes_is_not_lost(home: Path) -> None:
    corpus = Corpus.from_sentences([(["a", "b" * 60, "c"], LABELS[:3])])
    said: list[str] = []
    found = model_probabilities(home / "bert", corpus, remark=said.append)
    assert np.isfinite(found).all()
    assert not np.allclose(found, 1 / 3)
    assert any("in pieces" in text for text in said)


def test_words_that_the_tokenizer_drops_are_counted(home: Path) -> None:
    words = [["ab", "\u00ad", "c"], ["\u00ad"], ["d"]]
    labels = [LABELS[:3], ["NOUN"], ["VERB"]]
    corpus, said = Corpus.from_sentences(zip(words, labels, strict=True)), list[str]()
    found = model_probabilities(home / "bert", corpus, remark=said.append)
    assert any("2 words without a sub-word (first: <python>, sentence 1)" in text for text in said)
    assert found[[1, 3]].tolist() == [[1 / 3] * 3] * 2
    expected = plainly(home / "bert", ["ab", "c"])
    np.testing.assert_allclose(found[[0, 2]], in_order(corpus, expected), atol=1e-6)


def test_a_memorised_model_says_what_it_predicts(tmp_path: Path) -> None:
    corpus = rankone.builtin_corpus(60)
    model = rankone.memorize(corpus).model
    rankone.export_hf(model, tmp_path / "hf")
    said: list[str] = []
    found = model_probabilities(tmp_path / "hf", corpus, remark=said.append)
    assert said == []
    labels = [corpus.label_names[i] for i in found.argmax(1)]
    assert labels == [label for row in model.predict(corpus) for label in row]
    assert (found.max(1) > 1.5 / len(corpus.label_names)).all()
    rankone.inspect(corpus, suspects=1, probabilities=found)


# What is refused.


def refused(directory: Path, corpus: Corpus | None = None) -> str:
    with pytest.raises(ProbabilityError) as caught:
        model_probabilities(directory, corpus or sentences([2, 3]))
    assert caught.value.remedy
    assert caught.value.where == str(directory)
    return str(caught.value)


def test_directories_that_transformers_does_not_open(
    tmp_path: Path, changed: Callable[..., Path]
) -> None:
    assert "no such directory" in refused(tmp_path / "none")
    assert "cannot open this as a token classifier" in refused(tmp_path)
    rankone.memorize(sentences([2, 2])).save(tmp_path / "model")
    assert "rankone export MODEL --hf DIRECTORY" in refused(tmp_path / "model")
    path = changed()
    torch.save({}, path / "pytorch_model.bin")
    (path / "model.safetensors").unlink()
    assert "cannot open this as a token classifier" in refused(path)


def test_code_in_the_directory_is_not_run(changed: Callable[..., Path]) -> None:
    auto = {"AutoConfig": "own.Config", "AutoModelForTokenClassification": "own.Model"}
    path = changed(model_type="own", auto_map=auto)
    (path / "own.py").write_text("raise SystemExit('run')\n")
    assert "cannot open this as a token classifier" in refused(path)


def test_a_model_without_a_head_is_refused(home: Path, tmp_path: Path) -> None:
    model = DistilBertForTokenClassification.from_pretrained(home / "distilbert")
    model.distilbert.save_pretrained(tmp_path)
    word_pieces().save_pretrained(tmp_path)
    said = refused(tmp_path)
    assert "no weights for classifier.bias, classifier.weight, so the labels would be" in said


@pytest.mark.parametrize(
    "names",
    [
        {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2", "3": "LABEL_3"},
        {"0": "a", "1": "b", "2": "c", "7": "d"},
    ],
)
def test_labels_without_names_are_refused(
    changed: Callable[..., Path], names: dict[str, str]
) -> None:
    assert "the labels have no names" in refused(changed(id2label=names))


def test_slow_tokenizers_are_refused(changed: Callable[..., Path]) -> None:
    path = changed()
    (path / "tokenizer.json").unlink()
    ByT5Tokenizer().save_pretrained(path)
    assert "ByT5Tokenizer is not a fast tokenizer" in refused(path)


def test_a_tokenizer_of_another_model_is_refused(home: Path, changed: Callable[..., Path]) -> None:
    path = changed()
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.add_tokens([AddedToken(f"new{i}") for i in range(30)])
    tokenizer.save_pretrained(path)
    words = [["a", "new29"], ["b", "c", "d"]]
    corpus = Corpus.from_sentences(zip(words, [LABELS[:2], LABELS[:3]], strict=True))
    assert "the model fails on sentences of up to 5 sub-words" in refused(path, corpus)
    assert model_probabilities(home / "bert", corpus).shape == (5, 3)


def test_a_model_without_room_is_refused(changed: Callable[..., Path]) -> None:
    path = changed()
    tokenizer = AutoTokenizer.from_pretrained(path)
    tokenizer.model_max_length = 2
    tokenizer.save_pretrained(path)
    assert "takes 2 sub-words, no more than the tokenizer adds" in refused(path)


def test_labels_of_another_task_are_refused(home: Path) -> None:
    corpus = Corpus.from_sentences([(["a", "b"], ["B-PER", "O"])])
    assert "no column for 'B-PER', 'O', which the corpus has" in refused(home / "bert", corpus)
