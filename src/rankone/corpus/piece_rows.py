"""The rows of a piece of a corpus, as columns that any process can send to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus.rows import Rows, Words
from rankone.corpus.schemes import begins, opening

Narrow = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class PieceRows:
    """The rows of a piece. The bytes of word i are ``words[word_ends[i]:word_ends[i + 1]]`` in
    UTF-8, and in the same way those of labels, of which there are none if it is not labelled.

    Token i is ``token_ids[i]``, with ``label_ids[i]``, from line ``lines[i]`` of the piece, of
    which the first is 1 and which has ``n_lines``. Sentences begin at the tokens ``starts``.
    """

    words: bytes
    word_ends: Ints
    labels: bytes
    label_ends: Ints
    token_ids: Narrow
    label_ids: Narrow
    lines: Narrow
    starts: Narrow
    n_lines: int

    @property
    def vocabulary(self) -> list[str]:
        return _split(self.words, self.word_ends)

    @property
    def label_names(self) -> list[str]:
        return _split(self.labels, self.label_ends)

    @classmethod
    def of(cls, rows: Rows, n_lines: int) -> PieceRows:
        """What a reader found in so many lines."""
        columns = (rows.tokens.ids, rows.labels.ids, rows.lines, rows.starts)
        tokens, labels, lines, starts = (np.array(column, dtype=np.int32) for column in columns)
        words = (*_spelled(rows.tokens), *_spelled(rows.labels))
        return cls(*words, tokens, labels, lines, starts, n_lines)


def as_iob2(rows: PieceRows) -> PieceRows:
    """The piece with entity tags in IOB2, if the tags of the whole corpus are in IOB1."""
    kinds, ids = rows.label_names, rows.label_ids.astype(np.int64)
    opens = opening(kinds, ids, rows.starts.astype(np.int64)) if kinds else np.zeros(0, dtype=bool)
    words = Words.renamed([*kinds, *begins(kinds)], ids + len(kinds) * opens)
    labels, ends = _spelled(words)
    narrow = words.numbers().astype(np.int32)
    return replace(rows, labels=labels, label_ends=ends, label_ids=narrow)


def _spelled(words: Words) -> tuple[bytes, Ints]:
    data = [word.encode() for word in words.index]
    return b"".join(data), np.cumsum([0, *map(len, data)], dtype=np.int64)


def _split(text: bytes, ends: Ints) -> list[str]:
    bounds = ends.tolist()
    return [text[a:b].decode() for a, b in pairwise(bounds)]
