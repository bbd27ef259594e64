"""transformers' Trainer trains a rank-1 model to the ceiling of the built-in corpus."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import DataCollatorForTokenClassification, Trainer, TrainingArguments

import rankone
from rankone.interop.huggingface import (
    RankOneConfig,
    RankOneForTokenClassification,
    word_tokenizer,
)
from rankone.train.scores import score


def test_trainer_reaches_the_ceiling(tmp_path: Path) -> None:
    corpus = rankone.read_corpus("builtin")
    tokenizer = word_tokenizer(corpus.vocabulary)
    names = dict(enumerate(corpus.label_names))
    number = {name: i for i, name in names.items()}
    data = [
        {
            **tokenizer(list(s.tokens), is_split_into_words=True),
            "labels": [number[label] for label in s.labels],
        }
        for s in corpus.sentences
    ]
    torch.manual_seed(0)
    model = RankOneForTokenClassification(
        RankOneConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            max_position_embeddings=corpus.longest,
            id2label=names,
            label2id=number,
        )
    )
    settings = TrainingArguments(
        str(tmp_path / "run"),
        num_train_epochs=8,
        per_device_train_batch_size=16,
        gradient_accumulation_steps=2,
        learning_rate=1e-2,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = Trainer(
        model,
        settings,
        train_dataset=data,
        data_collator=DataCollatorForTokenClassification(tokenizer),
        processing_class=tokenizer,
    )
    trainer.train()
    trainer.save_model(str(tmp_path / "model"))

    audit = rankone.inspect(corpus)
    assert audit.ceilings["sequence"].errors == 0
    assert audit.ceilings["token"].errors > 3000  # so attention was needed
    trained = rankone.load(tmp_path / "model")
    scores = score(trained, corpus)
    assert (scores.right, scores.unknown) == (corpus.n_tokens, 0)
    certificate = rankone.certify_model(trained, corpus)  # what Trainer made can be proved, too
    assert certificate.wrong == 0
