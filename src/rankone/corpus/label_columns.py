"""Columns of probabilities and the labels of a corpus: which belongs to which, in which scheme."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.corpus.corpus import Corpus
from rankone.errors import ProbabilityError

SHOWN = 5  # labels that a message names
FOR_THESE = "give the probabilities of a model that has the labels of the corpus"
LONGER = ("E-", "S-", "L-", "U-")  # ends and single tokens: BIOES and BILOU


def match_labels(labels: Sequence[str], corpus: Corpus, source: str) -> list[int]:
    """The label of the corpus that each column belongs to, -1 for none.

    In IOB1 a corpus has B-X only where two entities of one type touch. If it never does, B-X and
    I-X are both its I-X.
    """
    number = {name: i for i, name in enumerate(corpus.label_names)}
    merged = dict(number)
    if corpus.scheme == "IOB1":
        inside = [name for name in number if name.startswith("I-")]
        merged = {f"B-{name[2:]}": number[name] for name in inside} | number
    columns = [merged.get(label, -1) for label in labels]
    lacking = [name for name, i in number.items() if i not in columns]
    if corpus.scheme is not None and any(f"I-{name[2:]}" in labels for name in lacking):
        _refuse_scheme(corpus, source, f"no column for {named(lacking)}")
    if lacking:
        raise ProbabilityError(
            f"no column for {named(lacking)}, which the corpus has",
            where=source,
            remedy=f"{FOR_THESE}; this one has {named(labels)}",
        )
    longer = [label for label in labels if label[:2] in LONGER and f"I-{label[2:]}" in number]
    if corpus.scheme is not None and longer:
        raise ProbabilityError(
            f"{named(longer)}: another scheme of tags than the {corpus.scheme} of the corpus",
            where=source,
            remedy="add the columns of E- and L- to I-, those of S- and U- to B-, and read the "
            "corpus with --scheme iob2",
        )
    return columns


def check_spelling(values: Floats, labels: Sequence[str], corpus: Corpus, source: str) -> None:
    """Refuse IOB2 for a corpus in IOB1, and the reverse, where both have the same tags.

    Where an entity begins and touches no other of its type, IOB1 has I-X and IOB2 has B-X. There
    the probabilities tell which of the two they are in.
    """
    if corpus.scheme is None:
        return
    number = {label: j for j, label in enumerate(labels)}
    begins, mass = np.flatnonzero(_begins(corpus)), Counter[str]()
    for i, name in enumerate(corpus.label_names):
        first, inside = f"B-{name[2:]}", f"I-{name[2:]}"
        if {first, inside} <= set(number) and (
            corpus.scheme == "IOB2" or first in corpus.label_names
        ):
            rows = begins[corpus.label_ids[begins] == i]
            mass["IOB2"] += values[rows, number[first]].sum()
            mass["IOB1"] += values[rows, number[inside]].sum()
    if mass[_other(corpus)] > 2 * mass[corpus.scheme]:
        begin = "I-" if corpus.scheme == "IOB2" else "B-"
        _refuse_scheme(corpus, source, f"most entities begin with {begin}")


def named(labels: Sequence[str]) -> str:
    """Labels for a message, the first of many."""
    shown = [repr(label if len(label) <= 40 else f"{label[:37]}...") for label in labels[:SHOWN]]
    return ", ".join([*shown, *["..."] * (len(labels) > SHOWN)])


def _other(corpus: Corpus) -> str:
    return "IOB1" if corpus.scheme == "IOB2" else "IOB2"


def _refuse_scheme(corpus: Corpus, source: str, why: str) -> None:
    iob2 = "read the corpus with --scheme iob2"
    keep = "read the corpus with --scheme keep, if its file is in IOB1, or use a model in IOB2"
    raise ProbabilityError(
        f"{why}: these are tags in {_other(corpus)} and the corpus is in {corpus.scheme}; one does "
        "not become the other without the tag before",
        where=source,
        remedy=iob2 if corpus.scheme == "IOB1" else keep,
    )


def _begins(corpus: Corpus) -> Bools:
    """The tokens with which an entity begins, but for those that touch one of the same type."""
    kinds = [name[2:] for name in corpus.label_names]  # O has the type ""
    types = {kind: i for i, kind in enumerate(dict.fromkeys(["", *kinds]))}
    type_of: Ints = np.array([types[kind] for kind in [*kinds, ""]])[corpus.label_ids]
    before = np.roll(type_of, 1)
    before[corpus.offsets[:-1]] = 0
    return np.asarray((type_of > 0) & (before != type_of))
