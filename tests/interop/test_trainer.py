"""transformers' Trainer trains a model to the ceiling, and changes one that was constructed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    AutoConfig,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

import rankone
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForTokenClassification,
    RankOneTokenizer,
    as_pretrained,
    word_tokenizer,
)
from rankone.interop.huggingface.pretrained_rankone import logger
from rankone.nn.scores import score


def rows(tokenizer: RankOneTokenizer, corpus: rankone.Corpus) -> list[dict[str, Any]]:
    number = {name: i for i, name in enumerate(corpus.label_names)}
    return [
        {
            **tokenizer(list(s.tokens), is_split_into_words=True),
            "labels": [number[label] for label in s.labels],
        }
        for s in corpus.sentences
    ]


def trained(
    model: RankOneForTokenClassification,
    tokenizer: RankOneTokenizer,
    corpus: rankone.Corpus,
    home: Path,
    **settings: Any,
) -> rankone.Model:
    arguments = TrainingArguments(
        str(home / "run"),
        per_device_train_batch_size=16,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **settings,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=rows(tokenizer, corpus),
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model(str(home / "model"))
    return rankone.load(home / "model")


def test_trainer_reaches_the_ceiling(tmp_path: Path) -> None:
    corpus = rankone.builtin_corpus(500)
    tokenizer = word_tokenizer(corpus.vocabulary, max_length=corpus.longest)
    torch.manual_seed(0)
    names = dict(enumerate(corpus.label_names))
    config = RankOneConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        max_position_embeddings=corpus.longest,
        id2label=names,
        label2id={name: i for i, name in names.items()},
    )
    found = trained(
        RankOneForTokenClassification(config),
        tokenizer,
        corpus,
        tmp_path,
        num_train_epochs=12,
        gradient_accumulation_steps=2,
        learning_rate=2e-2,
    )
    audit = rankone.inspect(corpus)
    assert audit.ceilings["sequence"].errors == 0
    assert audit.ceilings["token"].errors > 500  # so attention was needed
    scores = score(found, corpus)
    assert (scores.right, scores.unknown) == (corpus.n_tokens, 0)
    certificate = rankone.certify(found, corpus)  # what Trainer made can be proved, too
    assert certificate.wrong == 0
    assert AutoConfig.from_pretrained(tmp_path / "model").made_by is None


def test_a_constructed_model_warns_and_is_not_called_so_afterwards(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    type(logger).warning_once.cache_clear()
    corpus = rankone.Corpus.from_sentences([(["a", "b"], ["x", "y"]), (["b", "a"], ["x", "y"])])
    made = rankone.memorize(corpus).model
    tokenizer = word_tokenizer(made.vocabulary, max_length=2)
    trained(as_pretrained(made), tokenizer, corpus, tmp_path, max_steps=2)
    assert caplog.text.count("These weights were constructed, not learned") == 1
    assert AutoConfig.from_pretrained(tmp_path / "model").made_by == "construction, then changed"
