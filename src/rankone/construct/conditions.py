"""What `memorize` is given: is it sound, and does it meet the paper's conditions?"""

from __future__ import annotations

import os

from numpy.typing import ArrayLike

from rankone.arrays import Floats
from rankone.construct.problem import Problem
from rankone.construct.vectors import check_vectors, read_vectors
from rankone.corpus import Corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.errors import SettingError, VectorError
from rankone.nn.ragged import check_lengths
from rankone.plural import plural

NUMBERS = 1 << 27  # in one table: a gigabyte


def position_rows(corpus: Corpus, positions: bool, max_length: int | None) -> int:
    """Rows of the table of positions; 1 where there is none."""
    if not positions:
        if max_length is not None:
            raise SettingError(
                "max_length is the length of the table of positions, and there is none",
                remedy="leave out max_length (--max-length), or turn positions on",
            )
        return 1
    length = corpus.longest if max_length is None else max_length
    check_lengths(corpus.lengths, length, corpus.place_of_sentence)
    return length


def check_size(corpus: Corpus, length: int, dim: int, head_size: int) -> None:
    """Refuse tables that would not fit in memory."""
    for name, rows, columns, what in (
        ("max_length", length, dim, f"positions with {plural(dim, 'number')} each"),
        ("head_size", head_size, corpus.longest, "numbers in the key of every token"),
    ):
        if rows * columns > NUMBERS:
            raise SettingError(
                f"{name} cannot be {rows}: {what}, and so more than {NUMBERS:,} numbers at once",
                where=corpus.source,
                remedy=f"give at most {max(1, NUMBERS // columns)}",
            )


def given_vectors(
    corpus: Corpus, vectors: ArrayLike | str | os.PathLike[str] | None
) -> Floats | None:
    """The checked token vectors, None where the table is free."""
    if vectors is None:
        return None
    if not isinstance(vectors, str | os.PathLike):
        return check_vectors(vectors, corpus.vocabulary)
    try:
        return check_vectors(read_vectors(vectors, corpus.vocabulary), corpus.vocabulary)
    except VectorError as error:  # rows of the table are no lines of the file
        where = os.fspath(vectors) if (error.where or "row").startswith("row") else error.where
        raise VectorError(error.what, where=where, remedy=error.remedy) from None


def remarks_on(problem: Problem, positions: bool) -> tuple[str, ...]:
    """What the paper's conditions forbid or leave without content, and what was done about it."""
    remarks, targets, corpus = [], problem.targets, problem.corpus
    if targets.conflicts:
        remarks.append(
            f"{plural(len(targets.conflicts), 'context carries', 'contexts carry')} contradicting "
            "labels, which the paper excludes; each got its majority label, so "
            f"{plural(targets.unavoidable, 'token stays', 'tokens stay')} wrong"
        )
    repeats = 0 if positions else sum(map(sentences_with_repeats, problem.parts))
    if repeats:
        remarks.append(
            f"{plural(repeats, 'sentence repeats', 'sentences repeat')} a token, which Corollary 1 "
            "excludes without positions; "
            "sentences are told apart by the share of each token"
        )
    for count, thing in (
        (sum(part.n_sentences for part in problem.parts), "sentence"),
        (problem.longest, "token per sentence"),
        (len(corpus.vocabulary), "word"),
        (len(corpus.label_names), "label"),
    ):
        if count == 1:
            remarks.append(f"only one {thing}: the theorem holds, but says little here")
    return tuple(remarks)
