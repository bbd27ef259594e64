"""The figures of a corpus: counts, ceilings, and what contradicts or repeats in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankone.arrays import Ints
from rankone.audit.duplicates import find_duplicates, first_copies
from rankone.audit.texts.documents import documents_at_odds
from rankone.corpus.ceilings import INPUTS, Ceiling
from rankone.corpus.conflicts import Conflict, find_conflicts
from rankone.corpus.contexts import sentences_with_repeats
from rankone.corpus.corpus import PYTHON, Corpus
from rankone.corpus.tallies import best, tally_parts
from rankone.corpus.tasks import asks_next, of_texts


def figures_of(corpus: Corpus) -> dict[str, Any]:
    """The fields of an `Audit` that are about one corpus alone."""
    return _counts(corpus) | (_of_text(corpus) if asks_next(corpus.task) else _of_labels(corpus))


def conflicts_of(corpus: Corpus, contexts: Ints, members: Ints) -> tuple[Conflict, ...]:
    """The conflicts of these tokens, each with its context; those of texts are about documents."""
    if of_texts(corpus.task):
        return documents_at_odds(corpus, contexts, members)
    return tuple(find_conflicts(corpus, contexts, members))


def _counts(corpus: Corpus) -> dict[str, Any]:
    longest = int(corpus.lengths.argmax())
    counts = np.bincount(corpus.label_ids[corpus.asked])
    return {
        "source": corpus.source,
        "format": corpus.format,
        "columns": corpus.columns,
        "scheme": corpus.scheme,
        "inputs": tuple(PYTHON if file is None else file for file in corpus.files),
        "sentences": corpus.n_sentences,
        "tokens": corpus.n_tokens,
        "vocabulary": len(corpus.vocabulary),
        "labels": {
            corpus.label_names[i]: int(counts[i]) for i in np.argsort(-counts, kind="stable")
        },
        "longest": corpus.longest,
        "longest_line": int(corpus.lines[corpus.offsets[longest]]),
        "longest_file": corpus.files[corpus.file_ids[longest]] or PYTHON,
        "mean_length": corpus.n_tokens / corpus.n_sentences,
        "sentences_with_repeated_token": sentences_with_repeats(corpus),
        "task": corpus.task,
        "asked": len(corpus.asked),
    }


def _of_labels(corpus: Corpus) -> dict[str, Any]:
    tallies = {name: tally_parts([corpus], look) for name, look in INPUTS.items()}
    found = {name: best(tally) for name, (tally, _) in tallies.items()}
    (sequence,) = tallies["sequence"][1]
    members = found["sequence"].members(sequence, corpus.label_ids)
    first = first_copies(corpus, sequence)
    copies = np.bincount(first)
    at_odds = np.unique(corpus.sentence_of[sequence[members]])  # first copies
    return {
        **_copies(copies),
        "disagreeing_sequences": len(at_odds),
        "disagreeing_copies": int(copies[at_odds].sum()),
        "ceilings": {
            name: Ceiling.of(of_all.errors, len(corpus.asked)) for name, of_all in found.items()
        },
        "conflicts": conflicts_of(corpus, sequence, members),
        "duplicates": find_duplicates(corpus, first, members),
    }


def _of_text(corpus: Corpus) -> dict[str, Any]:
    """Every token asks for the next one, so that copies of a document always agree."""
    from rankone.audit.texts.figures import text_figures  # which compiles its loops

    found, conflicts = text_figures(corpus)
    most = int(np.bincount(corpus.label_ids).max())
    first, nobody = first_copies(corpus), np.empty(0, dtype=np.int64)
    return {
        **_copies(np.bincount(first)),
        "disagreeing_sequences": 0,
        "disagreeing_copies": 0,
        "ceilings": {
            "majority": Ceiling.of(corpus.n_tokens - most, corpus.n_tokens),
            "token": found.ceiling(1).ceiling,
            "prefix": found.ceiling().ceiling,
        },
        "conflicts": conflicts,
        "duplicates": find_duplicates(corpus, first, nobody),
        "text": found,
    }


def _copies(copies: Ints) -> dict[str, int]:
    """From the number of copies of each sentence, counted for the first of them."""
    distinct = int((copies > 0).sum())
    return {"distinct_sentences": distinct, "surplus_copies": int(copies.sum()) - distinct}
