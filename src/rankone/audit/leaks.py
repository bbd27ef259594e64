"""What two splits have in common: sentences that leak, what one knows of the other."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.audit.duplicates import first_copies, members_of
from rankone.audit.findings import Comparison, Known, Leak, Row, rows_of, words_of
from rankone.audit.pieces import joined
from rankone.audit.windows import Keys, Neighbourhood
from rankone.corpus.ceilings import INPUTS, Ceiling
from rankone.corpus.contexts import by_sequence
from rankone.corpus.corpus import Corpus
from rankone.corpus.tallies import Tally, best
from rankone.corpus.tasks import asks_next

LETTERS = "LM"  # categories of Unicode: letters, and the marks that belong to them


def compare(whole: Corpus, here: Bools, there: Bools, file: str) -> Comparison:
    """Two splits of a corpus that holds both; `here` and `there` say which sentences are theirs."""
    contexts = by_sequence(whole)
    copies, alike = first_copies(whole, contexts), first_alike(whole)
    exact, near = _both(copies, here, there), _both(alike, here, there)
    labels = _labellings(whole)
    leaks = []
    for members in members_of(copies, exact):
        found = {labels[j] for j in members if here[j] or there[j]}  # there may be further splits
        leaks.append(Leak("exact", *_sides(whole, members, here, there), len(found) == 1))
    for members in members_of(alike, near):
        sides = {copies[j] for j in members if here[j]}, {copies[j] for j in members if there[j]}
        if sides[0] != sides[1] or len(sides[0]) > 1:  # else it is nothing but an exact leak
            leaks.append(Leak("near", *_sides(whole, members, here, there), None))
    mine, other = here[whole.sentence_of], there[whole.sentence_of]
    exactly, nearly = np.isin(copies, exact), np.isin(alike, near)
    windows = Neighbourhood(whole).window(-1, 1)
    known = {
        side: Known(
            sentences=int(own.sum()),
            tokens=int(tokens.sum()),
            words=_met(whole.token_ids, tokens, others),
            windows=_met(windows, tokens, others),
            contexts=_met(contexts, tokens, others),
            exact=int((own & exactly).sum()),
            near=int((own & nearly & ~exactly).sum()),
        )
        for side, own, tokens, others in (
            ("here", here, mine, other),
            ("there", there, other, mine),
        )
    }
    # Of the next token, what another split says is no label that ours could contradict.
    inputs = {} if asks_next(whole.task) else INPUTS
    looks = {name: look(whole) for name, look in inputs.items()}
    ceilings = {
        side: {name: _bound(seen, whole.label_ids, tokens, others) for name, seen in looks.items()}
        for side, tokens, others in (("here", mine, other), ("there", other, mine))
    }
    return Comparison(file, tuple(leaks), known, ceilings)


def first_alike(corpus: Corpus) -> Ints:
    """For each sentence, the first one with the same letters; one without letters is alone."""
    seen: dict[str, int] = {}
    texts = enumerate(_letters_of_all(corpus))
    return np.array([seen.setdefault(text, j) if text else j for j, text in texts])


def _letters_of_all(corpus: Corpus) -> Iterator[str]:
    bounds = pairwise(corpus.offsets.tolist())
    if corpus.reading.get("tokenizer") == "bytes":  # of which several may be one letter
        return (letters_of(joined(corpus, a, b)) for a, b in bounds)
    letters, ids = [letters_of(word) for word in corpus.vocabulary], corpus.token_ids.tolist()
    return ("".join(letters[i] for i in ids[a:b]) for a, b in bounds)


def letters_of(word: str) -> str:
    """A word without case, digits, punctuation and symbols.

    >>> letters_of("U.S.-based"), letters_of("1996-12-06")
    ('usbased', '')
    """
    return "".join(c for c in word.casefold() if unicodedata.category(c)[0] in LETTERS)


def _both(groups: Ints, here: Bools, there: Bools) -> Ints:
    """The groups with members on both sides."""
    return np.intersect1d(groups[here], groups[there])


def _sides(
    corpus: Corpus, members: list[int], here: Bools, there: Bools
) -> tuple[tuple[str, ...], tuple[Row, ...], tuple[Row, ...]]:
    ours, theirs = ([j for j in members if side[j]] for side in (here, there))
    return words_of(corpus, ours[0]), rows_of(corpus, ours), rows_of(corpus, theirs)


def _labellings(corpus: Corpus) -> list[bytes]:
    """The labels of each sentence, to compare."""
    bounds = pairwise((corpus.offsets * corpus.label_ids.itemsize).tolist())
    data = corpus.label_ids.tobytes()
    return [data[a:b] for a, b in bounds]


def _met(contexts: Ints | Keys, own: Bools, other: Bools) -> int:
    """How many of our tokens have a context of theirs."""
    return int(np.isin(contexts[own], contexts[other]).sum())


def _bound(contexts: Ints, labels: Ints, own: Bools, other: Bools) -> Ceiling:
    """The best on `own` of a function that makes as few errors on `other` as any can."""
    asked = own & (labels >= 0)
    tally = Tally.of(contexts, np.where(own | other, labels, -1))
    # One token of the other split outweighs all of ours, so that ours decide only between equals.
    weighted = np.where(other, len(labels) + 1, 1)[tally.seen]
    chosen = best(replace(tally, count=weighted)).labels[contexts]
    return Ceiling.of(int((chosen != labels)[asked].sum()), int(asked.sum()))
