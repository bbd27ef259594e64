"""learn and forget: change what a gated model holds, at the cost of the change.

The result has the same bytes as a model made of the changed corpus: some sentences are taken out of
the old one, and new ones stand at its end.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import nn

from rankone.arrays import Ints
from rankone.construct.edited import Edited
from rankone.construct.gated.change import Changed, change
from rankone.construct.gated.draw import GatedDraft, model_of, salt_of
from rankone.construct.gated.splice import Finder, Splice, splice
from rankone.construct.heads import LabelHead
from rankone.construct.memorize import memorize, seeded
from rankone.construct.problem import RESERVE, position_rows
from rankone.construct.verify import check_outputs, outputs
from rankone.corpus import Corpus
from rankone.corpus.read import corpus_like
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import CorpusError, ModelError, SettingError
from rankone.nn import Evaluator, Model, TokenClassifier
from rankone.nn.memory import Made, Memory

Sentences = Corpus | str | os.PathLike[str] | Iterable[Any]
SHOWN = 8  # words of a sentence in a message


def learn(model: Model, sentences: Sentences, *, corpus: Sentences | None = None) -> Edited:
    """Add labelled sentences. The model must be editable, or its `corpus` be given.

    >>> import rankone
    >>> corpus = rankone.builtin_corpus(50)
    >>> made = rankone.memorize(corpus, construction="gated", editable=True)
    >>> found = rankone.learn(made.model, [(["Rose", "sleeps"], ["B-PER", "O"])])
    >>> found.model.predict([["Rose", "sleeps"]])
    [['B-PER', 'O']]
    """
    return edit(model, learn=sentences, corpus=corpus)


def forget(model: Model, sentences: Sentences, *, corpus: Sentences | None = None) -> Edited:
    """Take out all copies of these sentences: those with the same words and labels, or, of a
    sentence without labels (a list of words), with the same words."""
    return edit(model, forget=sentences, corpus=corpus)


def edit(
    model: Model,
    *,
    learn: Sentences | None = None,
    forget: Sentences | None = None,
    corpus: Sentences | None = None,
) -> Edited:
    """Forget first, then learn."""
    clock = [time.perf_counter()]
    if model.made is None:
        raise ModelError(
            "this model cannot be changed: only those of the construction gated can",
            remedy="memorize with construction='gated' (rankone memorize --construction gated)",
        )
    old = draft_of(model, corpus)
    clock.append(time.perf_counter())
    out = _forgotten(model, old.problem.corpus, forget)
    more = None if learn is None else _read(model, learn, labelled=True)
    cut = splice(old.problem.corpus, out, more)
    if cut is None:
        raise CorpusError("nothing would be left", remedy="forget fewer sentences")
    found = _changed(old, cut, model.made)
    clock.append(time.perf_counter())
    checked = None if isinstance(found, str) else _verified(found, cut)
    if isinstance(found, str) or checked is None:
        rebuilt = found if isinstance(found, str) else "rounding would leave too little room"
        new, groups, checked = _made_of(cut.corpus, model.made), 0, cut.corpus.n_tokens
    else:
        rebuilt, new, groups = None, found.draft, found.groups
    asked = cut.corpus.label_ids >= 0
    holding = model.memory is not None
    changed = model_of(new, model.reading, model.made, editable=holding)
    clock.append(time.perf_counter())
    return Edited(
        model=changed,
        learned=0 if more is None else more.n_sentences,
        forgotten=len(out),
        tokens=cut.corpus.n_tokens,
        wrong=int((asked & (new.problem.labels != cut.corpus.label_ids)).sum()),
        words=0 if rebuilt else len(np.unique(cut.words)),
        groups=groups,
        hidden_units=changed.network.shape.hidden,
        before=model.network.shape.hidden,
        checked=checked,
        rebuilt=rebuilt,
        seconds=dict(zip(("prepare", "change", "verify"), np.diff(clock).tolist(), strict=True)),
    )


def draft_of(model: Model, corpus: Sentences | None = None) -> GatedDraft:
    """The draft that the model was assembled from: kept, or made again from its corpus."""
    memory = model.memory
    if memory is not None and corpus is not None:
        raise SettingError("this model holds its own corpus", remedy="leave out corpus (--corpus)")
    if memory is not None and isinstance(memory.state, GatedDraft):
        return memory.state
    assert model.made is not None
    if memory is not None:
        own = _remembered(model, memory)
    elif corpus is not None:
        own = _read(model, corpus, labelled=True)
    else:
        raise ModelError(
            "this model does not hold its corpus",
            remedy="name the corpus (corpus=..., --corpus FILE), or make the model with "
            "editable=True (rankone memorize --editable)",
        )
    draft = _made_of(own, model.made)
    if not _same(model_of(draft, model.reading, model.made, editable=False), model):
        raise ModelError(
            f"made again of {own.source}, this model is another one",
            remedy="name the corpus it was made of, read with the same settings",
        )
    return draft


def is_made_of(model: Model, corpus: Corpus) -> bool:
    """Whether the model has the bytes of one that is made of this corpus with its settings: then it
    holds nothing else."""
    if model.made is None:
        return False
    draft = _made_of(corpus, model.made)
    return _same(model_of(draft, model.reading, model.made, editable=False), model)


def _made_of(corpus: Corpus, made: Made) -> GatedDraft:
    settings: dict[str, Any] = dict(made)
    memory = memorize(corpus, **settings, editable=True).model.memory
    assert memory is not None
    draft: GatedDraft = memory.state
    return draft


def _changed(old: GatedDraft, cut: Splice, made: Made) -> Changed | str:
    """The changed draft, or why there is none."""
    if old.tables.seed != salt_of(seeded(made["seed"], 1)):
        return "the model is not of the first draw"
    positions = made["positions"]
    length = position_rows(cut.corpus, positions, made["max_length"])
    return change(old, cut, length=length, positions=positions, strict=made["strict"])


def _remembered(model: Model, memory: Memory) -> Corpus:
    """The corpus in the memory of a model; its lines are the numbers of its sentences."""
    lengths = np.diff(memory.offsets)
    return Corpus(
        source="the memory of the model",
        vocabulary=model.vocabulary,
        label_names=model.labels,
        token_ids=memory.token_ids,
        label_ids=memory.label_ids,
        offsets=memory.offsets,
        lines=np.repeat(np.arange(1, len(lengths) + 1), lengths),
        files=(None,),
        file_ids=np.zeros(len(lengths), np.int64),
        task=model.task.name,
        reading=model.reading,
    )


def _same(one: Model, other: Model) -> bool:
    """Whether two models have the same words, labels and weights, to the last bit."""
    a, b = (dict(m.network.named_parameters()) for m in (one, other))
    return (
        (one.vocabulary, one.labels) == (other.vocabulary, other.labels)
        and one.network.shape == other.network.shape
        and all(a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]) for name in a)
    )


def _forgotten(model: Model, corpus: Corpus, sentences: Sentences | None) -> Ints:
    """The numbers of all copies; every sentence must have one."""
    if sentences is None:
        return np.empty(0, np.int64)
    finder, found = Finder(corpus), []
    unit = "document" if model.task.text else "sentence"
    for words, labels, place in _wanted(model, sentences):
        copies = finder.copies(words, labels)
        if not len(copies):
            alike = labels is not None and len(finder.copies(words, None))
            raise CorpusError(
                f"{_shown(model, words)} stands in the model's corpus with other labels only"
                if alike
                else f"{_shown(model, words)} is not a {unit} of the model's corpus",
                where=place,
                remedy="give its labels as they are there, or none" if alike else "leave it out",
            )
        found.append(copies)
    return np.unique(np.concatenate(found))


def _wanted(
    model: Model, sentences: Sentences
) -> Iterator[tuple[Sequence[str], list[str | None] | None, str]]:
    """Words, labels (None: whatever they are) and place of every sentence to forget."""
    kinds = list if "tokenizer" in model.reading else list | tuple  # (text, label) is a tuple
    if isinstance(sentences, list | tuple) and all(_is_words(x, kinds) for x in sentences):
        yield from ((words, None, f"sentence {i + 1}") for i, words in enumerate(sentences))
        return
    given = _read(model, sentences)
    names = [*given.label_names, None]  # number -1 finds the last
    for a, b in pairwise(given.offsets.tolist()):
        words = [given.vocabulary[i] for i in given.token_ids[a:b].tolist()]
        labels = [names[i] for i in given.label_ids[a:b].tolist()] if given.labelled else None
        yield words, labels, given.place(a)


def _is_words(given: object, kinds: Any) -> bool:
    return isinstance(given, kinds) and all(isinstance(word, str) for word in given)


def _read(model: Model, sentences: Sentences, *, labelled: bool | None = None) -> Corpus:
    """Files are read as the model's own corpus was."""
    return corpus_like(sentences, model.reading, model.labels, labelled=labelled)


def _shown(model: Model, words: Sequence[str]) -> str:
    join = " ".join if (name := model.reading.get("tokenizer")) is None else tokenizer_of(name).join
    return repr(join(words[:SHOWN]) + (" ..." if len(words) > SHOWN else ""))


def _verified(found: Changed, cut: Splice) -> int | None:
    """How many tokens went through the new network: the sentences that were learned, and those with
    contexts of groups that were fitted. None if too little of the margin is left.

    Only rows of the table that these sentences need are taken along; what the others do cannot
    have changed.
    """
    problem, network = found.draft.problem, found.draft.network
    assert network is not None
    corpus, wanted = problem.corpus, problem.labels
    more = np.arange(int(cut.kept.sum()), corpus.n_tokens)
    numbers = np.unique(corpus.sentence_of[np.concatenate([found.contexts, more])])
    if not len(numbers):
        return 0
    tokens = np.flatnonzero(np.isin(corpus.sentence_of, numbers))
    rows, ids = np.unique(corpus.token_ids[tokens], return_inverse=True)
    part = replace(
        corpus,
        token_ids=ids,
        label_ids=corpus.label_ids[tokens],
        offsets=np.append(0, np.cumsum(corpus.lengths[numbers])),
        lines=corpus.lines[tokens],
        file_ids=corpus.file_ids[numbers],
    )
    small = TokenClassifier.assemble(
        replace(network.shape, vocabulary=len(rows)),
        nn.Parameter(network.table.detach()[torch.from_numpy(rows)]),
        network.positions,
        list(network.blocks),
        network.head,
    )
    head = LabelHead(small.head)
    fast = outputs(Evaluator(small, only=head.seen), head, part, wanted[tokens])
    check = check_outputs(fast, part.label_ids, wanted[tokens])
    return len(tokens) if check.holds(RESERVE) else None
