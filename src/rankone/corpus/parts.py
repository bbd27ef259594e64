"""Parts of a corpus: whole sentences that can be processed alone and then be put together.

Nothing here moves parts between files or machines. Code that does so needs `cut`, `numbered`, and
`merge` of rankone.corpus.tallies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.corpus import Corpus
from rankone.corpus.rows import Words
from rankone.errors import SettingError


def cut(corpus: Corpus, at: Iterable[int]) -> tuple[Corpus, ...]:
    """The corpus, cut before these sentences; each part is as if it had been read alone.

    >>> from rankone import Corpus
    >>> corpus = Corpus.from_sentences([(["a"], ["X"]), (["b"], ["Y"]), (["a"], ["Y"])])
    >>> [part.vocabulary for part in cut(corpus, [1])]
    [('a',), ('b', 'a')]
    """
    bounds = sorted({0, *at, corpus.n_sentences})
    if bounds[0] < 0 or bounds[-1] > corpus.n_sentences:
        raise SettingError(
            f"no sentence {bounds[0] if bounds[0] < 0 else bounds[-1]} to cut at",
            where=corpus.source,
            remedy=f"give numbers from 0 to {corpus.n_sentences}",
        )
    return tuple(_part(corpus, a, b) for a, b in pairwise(bounds))


def numbered(parts: Sequence[Corpus]) -> tuple[Corpus, ...]:
    """The parts with one vocabulary and one list of labels. Words are numbered in the order of
    their first appearance, so the parts laid end to end have the numbers of the whole."""
    words, labels = dict[str, int](), dict[str, int]()
    for part in parts:
        for number, names in ((words, part.vocabulary), (labels, part.label_names)):
            number.update((name, len(number)) for name in names if name not in number)
    vocabulary, label_names = tuple(words), tuple(labels)
    return tuple(
        replace(
            part,
            vocabulary=vocabulary,
            label_names=label_names,
            token_ids=_renumbered(part.token_ids, part.vocabulary, words),
            label_ids=_renumbered(part.label_ids, part.label_names, labels),
        )
        for part in parts
    )


def joined(names: tuple[str, ...], more: tuple[str, ...]) -> tuple[str, ...]:
    """Both lists as one, in the order of first appearance; more lists are joined one by one."""
    return names if names == more else tuple(dict.fromkeys(names + more))


def _part(corpus: Corpus, first: int, behind: int) -> Corpus:
    start, stop = corpus.offsets[[first, behind]].tolist()
    words = Words.renamed(list(corpus.vocabulary), corpus.token_ids[start:stop])
    labels = Words.renamed(list(corpus.label_names), corpus.label_ids[start:stop])
    files = Words.renamed([str(i) for i in range(len(corpus.files))], corpus.file_ids[first:behind])
    return replace(
        corpus,
        vocabulary=tuple(words.index),
        label_names=tuple(labels.index),
        token_ids=words.numbers(),
        label_ids=labels.numbers(),
        offsets=corpus.offsets[first : behind + 1] - start,
        lines=corpus.lines[start:stop],
        files=tuple(corpus.files[int(i)] for i in files.index),
        file_ids=files.numbers(),
    )


def _renumbered(ids: Ints, names: tuple[str, ...], number: dict[str, int]) -> Ints:
    numbers = [number[name] for name in names]
    same = numbers == list(range(len(names)))
    return ids if same else np.array([*numbers, -1], dtype=np.int64)[ids]
