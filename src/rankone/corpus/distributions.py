"""Distributions over labels, one per token: checked, and given the columns of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from rankone.arrays import Bools, Floats
from rankone.corpus.corpus import Corpus
from rankone.corpus.label_columns import FOR_THESE, check_spelling, match_labels, named
from rankone.errors import ProbabilityError, SizeError
from rankone.memory import installed
from rankone.plural import plural

Remark = Callable[[str], None]  # is given a sentence that the caller may want to print

TOLERANCE = 1e-3  # of the sum of a row: float16 is that coarse
SPARE = 1000  # labels beyond those of the corpus
SOFTMAX = "give probabilities: the softmax of the logits, with a column for each label of the model"


def fit_distributions(
    values: Floats,
    labels: Sequence[str],
    corpus: Corpus,
    source: str,
    remark: Remark = lambda _: None,
) -> Floats:
    """Row i is token i of the corpus, column j now ``corpus.label_names[j]``; rows sum to 1.

    In `values`, column j is ``labels[j]``. Labels that the corpus does not have are left out. If
    the corpus is in IOB1 and never has B-X, B-X counts as I-X; other differences between IOB1 and
    IOB2 depend on the label before, and are refused. `source` is where the numbers come from.

    >>> corpus = Corpus.from_sentences([(["a", "rose"], ["DET", "NOUN"])])
    >>> rows = np.array([[0.25, 0.5, 0.25], [0.75, 0.0, 0.25]])
    >>> fit_distributions(rows, ["NOUN", "DET", "X"], corpus, "rows").round(3).tolist()
    [[0.667, 0.333], [0.0, 1.0]]
    """
    check_shape(values.shape, labels, corpus, source)
    _check_rows(values, corpus, source)
    columns = match_labels(labels, corpus, source)
    check_spelling(values, labels, corpus, source)
    found = np.zeros((corpus.n_tokens, len(corpus.label_names)))
    for column, numbers in zip(columns, values.T, strict=True):
        if column >= 0:
            found[:, column] += numbers
    kept = found.sum(1)
    _refuse(kept == 0, "no probability for any label of the corpus", FOR_THESE, corpus, source)
    unknown = [label for label, column in zip(labels, columns, strict=True) if column < 0]
    if unknown:
        share = max(0.0, 1 - float((kept / values.sum(1)).mean()))
        remark(
            f"{source}: left out {plural(len(unknown), 'label')} that the corpus does not have "
            f"({named(unknown)}), {share:.2%} of the probability"
        )
    known = zip(labels, columns, strict=True)
    merged = [label for label, c in known if c >= 0 and corpus.label_names[c] != label]
    if merged:
        remark(f"{source}: counted {named(merged)} as I-, since the corpus is in IOB1")
    found /= kept[:, None]
    return found


def check_shape(shape: tuple[int, ...], labels: Sequence[str], corpus: Corpus, source: str) -> None:
    """Refuse what is not one row per token and one column per label, or does not fit in memory;
    readers ask before they make anything of that size."""
    corpus.check_labelled()
    check_columns(labels, corpus, source)
    if len(shape) != 2 or shape[1] != len(labels):
        raise ProbabilityError(
            f"an array of shape {shape} for {plural(len(labels), 'label')}",
            where=source,
            remedy="give one row per token and one column per label",
        )
    if shape[0] != corpus.n_tokens:
        raise ProbabilityError(
            f"probabilities for {plural(shape[0], 'token')}, but {corpus.source} has "
            f"{corpus.n_tokens:,}",
            where=source,
            remedy="give one row per token, in the order of the corpus (which has no -DOCSTART-)",
        )


def check_columns(labels: Sequence[str], corpus: Corpus, source: str) -> None:
    """Refuse a label that is there twice, and more labels than memory, or any sense, allows."""
    most = len(corpus.label_names) + SPARE
    if len(labels) > most:
        raise ProbabilityError(
            f"{len(labels):,} labels for a corpus that has {len(corpus.label_names):,}",
            where=source,
            remedy=f"leave out labels that the corpus does not have: at most {most:,} are read",
        )
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        raise ProbabilityError(
            f"two columns for {named(twice)}", where=source, remedy="give one column per label"
        )
    needed = 16 * corpus.n_tokens * (len(labels) + len(corpus.label_names))
    if needed > installed() // 2:
        raise SizeError(
            f"takes {needed / 1e9:,.1f} GB, more than half of the memory",
            where=source,
            remedy="audit a part of the corpus, or use a machine with more memory",
        )


def _check_rows(values: Floats, corpus: Corpus, source: str) -> None:
    bad: Bools = np.asarray(~np.isfinite(values).all(1))
    _refuse(bad, "a number that is not finite", SOFTMAX, corpus, source)
    what = "a negative number: these are logits or logarithms, not probabilities"
    _refuse(np.asarray((values < 0).any(1)), what, SOFTMAX, corpus, source)
    sums = values.sum(1)
    bad = np.abs(sums - 1) > TOLERANCE
    total = float(sums[bad.argmax()])
    logits = ": these look like logits" if total > 1 else ""
    _refuse(bad, f"sums to {total:.6g}, not to 1{logits}", SOFTMAX, corpus, source)


def _refuse(bad: Bools, what: str, remedy: str, corpus: Corpus, source: str) -> None:
    """Name the first of the tokens that are bad, if there are any."""
    if bad.any():
        token = int(bad.argmax())
        raise ProbabilityError(
            f"{what} ({plural(int(bad.sum()), 'such row')})",
            where=f"{source}, token {token + 1:,} ({corpus.place(token)})",
            remedy=remedy,
        )
