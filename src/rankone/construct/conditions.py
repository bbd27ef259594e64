"""What `memorize` is given: is it sound, and does it meet the paper's conditions?"""

from __future__ import annotations

import os

from numpy.typing import ArrayLike

from rankone.construct.mapping import Floats
from rankone.construct.targets import ContextTargets
from rankone.construct.vectors import check_vectors, read_vectors
from rankone.corpus import Corpus
from rankone.corpus.audit import sentences_with_repeats
from rankone.errors import RankOneError
from rankone.nn.model import check_lengths


def position_rows(corpus: Corpus, positions: bool, max_length: int | None) -> int:
    """Rows of the table of positions; 1 where there is none."""
    if not positions:
        return 1
    length = corpus.longest if max_length is None else max_length
    check_sentences(corpus, length)
    return length


def check_sentences(corpus: Corpus, length: int) -> None:
    """Refuse a corpus with a sentence that is longer than the table of positions (0: there is
    none)."""
    check_lengths(corpus.lengths, length, corpus.place_of_sentence)


def given_vectors(
    corpus: Corpus, vectors: ArrayLike | str | os.PathLike[str] | None
) -> Floats | None:
    """The checked token vectors, None where the table is free."""
    if vectors is None:
        return None
    if isinstance(vectors, str | os.PathLike):
        vectors = read_vectors(vectors, corpus.vocabulary)
    return check_vectors(vectors, corpus.vocabulary)


def check_settings(
    head_size: int, readout: str, verify: str, max_length: int | None, seed: int
) -> None:
    """Refuse settings that mean nothing."""
    for name, number, least, most in (
        ("head_size", head_size, 1, 1 << 16),
        ("max_length", 1 if max_length is None else max_length, 1, 1 << 24),
        ("seed", seed, 0, None),
    ):
        if not isinstance(number, int) or number < least or (most and number > most):
            upper = f" to {most}" if most else " up"
            raise RankOneError(
                f"{name} cannot be {number!r}", remedy=f"give a whole number from {least}{upper}"
            )
    for name, value, choices in (
        ("readout", readout, ("merged", "paper")),
        ("verify", verify, ("sample", "dense")),
    ):
        if value not in choices:
            raise RankOneError(f"{name} cannot be {value!r}", remedy=f"give {' or '.join(choices)}")


def remarks_on(corpus: Corpus, targets: ContextTargets, positions: bool) -> list[str]:
    """What the paper's conditions forbid or leave without content, and what was done about it."""
    remarks = []
    if targets.conflicts:
        remarks.append(
            f"{len(targets.conflicts)} contexts carry contradicting labels, which the paper "
            f"excludes; each got its majority label, so {targets.unavoidable} tokens stay wrong"
        )
    repeats = 0 if positions else sentences_with_repeats(corpus)
    if repeats:
        remarks.append(
            f"{repeats} sentences repeat a token, which Corollary 1 excludes without positions; "
            "sentences are told apart by the share of each token"
        )
    for count, thing in (
        (corpus.n_sentences, "sentence"),
        (corpus.longest, "token per sentence"),
        (len(corpus.vocabulary), "word"),
        (len(corpus.label_names), "label"),
    ):
        if count == 1:
            remarks.append(f"only one {thing}: the theorem holds, but says little here")
    return remarks
