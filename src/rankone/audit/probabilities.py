"""Probabilities of labels from any model, read from a file for an audit."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rankone.arrays import Floats
from rankone.audit.probability_arrays import read_arrays
from rankone.audit.probability_lines import read_sentences
from rankone.corpus.corpus import Corpus
from rankone.corpus.distributions import Remark, fit_distributions
from rankone.corpus.source import printable
from rankone.errors import ProbabilityError

Reader = Callable[[str | os.PathLike[str], Corpus], tuple[Floats, list[str]]]

LAYOUTS: dict[str, Reader] = {  # by the ending of the name; lines may be gzipped
    ".npz": read_arrays,
    ".jsonl": read_sentences,
    ".ndjson": read_sentences,
    ".json": read_sentences,
}


def read_probabilities(
    path: str | os.PathLike[str], corpus: Corpus, *, remark: Remark = lambda _: None
) -> Floats:
    """One row per token of the corpus, one column per label in the order of its ``label_names``.

    A file is numpy arrays (`.npz`: ``probabilities``, tokens x labels, and ``labels``, their names)
    or a line per sentence (`.jsonl`). It must cover every token and every label of the corpus.
    Labels that the corpus does not have are left out, and rows then sum to 1 again; `remark` is
    given a sentence about it.
    """
    name = printable(os.fspath(path))
    if Path(path).is_dir():
        raise ProbabilityError(
            "is a directory, not a file of probabilities",
            where=name,
            remedy="to run a Hugging Face model: "
            "rankone.interop.huggingface.model_probabilities(directory, corpus)",
        )
    reader = LAYOUTS.get(Path(name.lower()).suffix)
    if name.lower().endswith(".gz"):
        reader = LAYOUTS.get(Path(name.lower()[:-3]).suffix)
        reader = None if reader is read_arrays else reader
    if reader is None:
        raise ProbabilityError(
            "neither .npz nor .jsonl",
            where=name,
            remedy="save arrays with numpy.savez(FILE, probabilities=..., labels=...), "
            "or write one JSON object per sentence",
        )
    corpus.check_labelled()
    return fit_distributions(*reader(path, corpus), corpus, name, remark)
