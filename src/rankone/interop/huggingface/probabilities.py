"""Probabilities of labels from a Hugging Face model: any token classifier in a local directory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from inspect import signature
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankone.arrays import Floats, Ints
from rankone.corpus import Corpus
from rankone.corpus.distributions import Remark, check_columns, fit_distributions
from rankone.errors import ProbabilityError
from rankone.interop.huggingface.classifier import Classifier, first_line, open_classifier
from rankone.interop.huggingface.windows import windows
from rankone.plural import plural
from rankone.progress import Progress

ROWS, PIECES = 64, 8192  # of a batch, at most: sentences, and sub-words with their padding
CHUNK = 1000  # sentences that the tokenizer is given at once


def model_probabilities(
    directory: str | os.PathLike[str],
    corpus: Corpus,
    *,
    progress: Progress = lambda *_: None,
    remark: Remark = lambda _: None,
) -> Floats:
    """What a token classifier says of a corpus: a row per token, a column per label of the corpus.

    A word has the probabilities of its first sub-word. A sentence too long for the model is run in
    pieces that overlap, and each word is taken from a piece with context on both sides. A word that
    the tokenizer drops gets the same probability for all labels. `remark` is given a sentence about
    each of these, and about labels that the corpus does not have.

    Code in the directory is not run, weights must be safetensors, and nothing is downloaded.
    """
    corpus.check_labelled()
    classifier = open_classifier(directory, remark)
    source, labels = classifier.source, classifier.labels
    check_columns(labels, corpus, source)
    values = np.full((corpus.n_tokens, len(labels)), 1 / len(labels))
    asked = np.zeros(corpus.n_tokens, dtype=bool)
    pieces, cut = cut_up(classifier, corpus)
    done, total = 0, sum(len(piece.ids) for piece in pieces)
    for batch in batches(pieces):
        for piece, logits in zip(batch, logits_of(classifier, batch), strict=True):
            values[piece.tokens] = torch.softmax(logits[piece.places].double(), -1).numpy()
            asked[piece.tokens] = True
            done += len(piece.ids)
        progress("probabilities", done / total)
    if cut:
        longest = plural(classifier.longest or 0, "sub-word")
        remark(f"{source}: ran {plural(cut, 'sentence')} longer than {longest} in pieces")
    if not asked.all():
        dropped = plural(int((~asked).sum()), "word")
        first = corpus.place(int(asked.argmin()))
        remark(f"{source}: {dropped} without a sub-word (first: {first}), all labels alike")
    found = fit_distributions(values, labels, corpus, source, remark)
    found[~asked] = 1 / len(corpus.label_names)
    return found


@dataclass(frozen=True)
class Piece:
    """What the model is given at once: a sentence or part of it, with special tokens, and the
    places in it that tokens of the corpus are read from."""

    ids: list[int]
    types: list[int]
    places: Ints
    tokens: Ints


def cut_up(classifier: Classifier, corpus: Corpus) -> tuple[list[Piece], int]:
    """All that is to be run, and how many sentences had to be cut."""
    words = [corpus.vocabulary[i] for i in corpus.token_ids.tolist()]
    bounds, pieces, cut = list(pairwise(corpus.offsets.tolist())), list[Piece](), 0
    for k in range(0, len(bounds), CHUNK):
        sentences = [words[a:b] for a, b in bounds[k : k + CHUNK]]
        found = classifier.tokenizer(sentences, is_split_into_words=True, verbose=False)
        for (first, _), encoding in zip(bounds[k:], found.encodings, strict=False):
            pieces += pieces_of(classifier, encoding, first)
            cut += classifier.longest is not None and len(encoding.ids) > classifier.longest
    return pieces, cut


def pieces_of(classifier: Classifier, encoding: Any, first: int) -> list[Piece]:
    """A sentence that begins with token `first`, in as many pieces as it needs."""
    ids, types, words = encoding.ids, encoding.type_ids, encoding.word_ids
    own = [k for k, word in enumerate(words) if word is not None]
    if not own:
        return []
    start, end = own[0], own[-1] + 1  # special tokens stand before and after these
    added = len(ids) - (end - start)
    longest = len(ids) if classifier.longest is None else classifier.longest
    if longest <= added:
        raise ProbabilityError(
            f"the model takes {plural(longest, 'sub-word')}, no more than the tokenizer adds to "
            "every sentence",
            where=classifier.source,
            remedy="check max_position_embeddings and model_max_length",
        )
    begins: dict[int, int] = {}
    for k in own:
        begins.setdefault(words[k], k)
    places, tokens = np.array(list(begins.values())), first + np.array(list(begins))
    found = []
    for a, b, ours in windows(end - start, longest - added):
        inside = (start + ours.start <= places) & (places < start + ours.stop)
        if inside.any():
            part = [*range(start), *range(start + a, start + b), *range(end, len(ids))]
            cut = [ids[k] for k in part], [types[k] for k in part]
            found.append(Piece(*cut, places[inside] - a, tokens[inside]))
    return found


def logits_of(classifier: Classifier, batch: list[Piece]) -> Tensor:
    """Those of every sub-word, (batch, length, labels), padded on the right."""
    longest = max(len(piece.ids) for piece in batch)

    def padded(columns: Iterable[list[int]], value: int) -> Tensor:
        return torch.tensor([[*column, *[value] * (longest - len(column))] for column in columns])

    inputs = {
        "input_ids": padded((p.ids for p in batch), classifier.tokenizer.pad_token_id or 0),
        "attention_mask": padded(([1] * len(p.ids) for p in batch), 0),
    }
    if "token_type_ids" in signature(classifier.model.forward).parameters:
        inputs["token_type_ids"] = padded((p.types for p in batch), 0)
    try:
        with torch.inference_mode():
            found: Tensor = classifier.model(**inputs).logits
    except Exception as problem:  # of a model that anyone may have written
        raise ProbabilityError(
            f"the model fails on sentences of up to {plural(longest, 'sub-word')} "
            f"({first_line(problem)})",
            where=classifier.source,
            remedy="check that the tokenizer is the model's own, and its model_max_length",
        ) from None
    if found.shape != (len(batch), longest, len(classifier.labels)):
        raise ProbabilityError(
            f"logits of shape {tuple(found.shape)} for {plural(len(classifier.labels), 'label')}",
            where=classifier.source,
            remedy="check num_labels and id2label in config.json",
        )
    return found


def batches(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Pieces of similar length together, the longest first."""
    batch: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: -len(piece.ids)):
        if batch and (len(batch) == ROWS or (len(batch) + 1) * len(batch[0].ids) > PIECES):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch
