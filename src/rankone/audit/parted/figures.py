"""The figures of a corpus in parts: counts, ceilings, and what contradicts or repeats in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankone.audit.findings import Duplicate, words_of
from rankone.audit.parted.copies import HERE, find_copies
from rankone.corpus.ceilings import INPUTS, Ceiling
from rankone.corpus.contexts import by_sequence, sentences_with_repeats
from rankone.corpus.corpus import PYTHON, Corpus
from rankone.corpus.parted import PartedCorpus, corpus_of
from rankone.corpus.picked import conflicts_of
from rankone.corpus.shuffle import errors_of, settle
from rankone.engines import Table
from rankone.engines.engine import Tell


def figures_of_parts(corpus: PartedCorpus, tell: Tell = lambda _: None) -> dict[str, Any]:
    """The fields of an `Audit` that are about one corpus alone: `figures_of`."""
    engine, steps = corpus.engine, len(INPUTS) + 2
    counted = _counts(corpus)
    errors = {}
    for step, (name, look) in enumerate(INPUTS.items(), 1):
        tell(step / steps)
        if look is by_sequence:
            settled = settle(corpus, look)
            errors[name] = settled.unavoidable
        else:
            errors[name] = errors_of(corpus, look)
    tell((steps - 1) / steps)
    copies, sums, _ = find_copies([corpus], odd=settled.tables)
    conflicts = conflicts_of(corpus, settled)
    engine.drop(settled.tables)
    first = copies.words(corpus)
    duplicates = [
        Duplicate(words_of(first.corpus, j), copies.rows(first.corpus, each, HERE), bool(agrees))
        for j, each in enumerate(copies.groups())
        for agrees in copies.agrees[[each.start]]
    ]
    return {
        **counted,
        "distinct_sentences": int(sums["groups"][0]),
        "surplus_copies": corpus.n_sentences - int(sums["groups"][0]),
        "disagreeing_sequences": int(sums["odd"][0]),
        "disagreeing_copies": int(sums["copies"][0]),
        "ceilings": {name: Ceiling.of(errors[name], corpus.n_asked) for name in INPUTS},
        "conflicts": conflicts,
        "duplicates": tuple(duplicates),
    }


def _counts(corpus: PartedCorpus) -> dict[str, Any]:
    engine, known = corpus.engine, corpus.heading
    heading = engine.share(known)
    refs = engine.each(count, [(heading, part.columns) for part in corpus.parts])
    tables = [engine.take(ref) for ref in refs]
    engine.drop(refs)
    counts = np.sum([table["labels"] for table in tables], axis=0)
    at = next(k for k, part in enumerate(corpus.parts) if part.longest == corpus.longest)
    (file,), (line,) = tables[at]["file"].tolist(), tables[at]["line"].tolist()
    order = [i for i in np.argsort(-counts, kind="stable").tolist() if counts[i]]
    return {
        "source": known.source,
        "format": known.format,
        "columns": known.columns,
        "scheme": known.scheme,
        "inputs": tuple(PYTHON if file is None else file for file in known.files),
        "sentences": corpus.n_sentences,
        "tokens": corpus.n_tokens,
        "vocabulary": len(known.vocabulary),
        "labels": {known.label_names[i]: int(counts[i]) for i in order},
        "longest": corpus.longest,
        "longest_line": line,
        "longest_file": known.files[file] or PYTHON,
        "mean_length": corpus.n_tokens / corpus.n_sentences,
        "sentences_with_repeated_token": int(sum(table["repeats"][0] for table in tables)),
        "task": known.task,
        "asked": corpus.n_asked,
    }


def count(heading: Corpus, columns: Table) -> Table:
    """How often each label stands in a part, how many sentences repeat a word, and where the
    longest sentence is."""
    corpus = corpus_of(heading, columns)
    longest = int(corpus.lengths.argmax())
    asked = corpus.label_ids[corpus.asked]
    return {
        "labels": np.bincount(asked, minlength=len(heading.label_names)),
        "repeats": np.array([sentences_with_repeats(corpus)]),
        "file": corpus.file_ids[[longest]],
        "line": corpus.lines[corpus.offsets[[longest]]],
    }
