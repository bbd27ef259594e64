"""Sentences that are equal, or have the same letters, in whichever parts they are.

Each part sends a key of every sentence to a bucket, where equal keys meet, and gets back what it
must list. With two sides, only what both of them have is listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from secrets import token_bytes

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.audit.findings import Row
from rankone.corpus.corpus import Corpus
from rankone.corpus.gathered import Gathered, gathered
from rankone.corpus.keys import Keys, numbered, of_sequences
from rankone.corpus.parted import PartedCorpus, corpus_of
from rankone.engines import Ref, Table
from rankone.engines.engine import bucket_of, exchanged, scattered, stacked

SENTENCE = 150  # bytes that a bucket takes for each of them
HERE, THERE = 0, 1
OF_PART = ("listed", "tokens")  # columns of a part that are not about its members
NONE = -1  # the group of a sentence that is not listed


@dataclass(frozen=True)
class Copies:
    """Groups of sentences, in the order of their first members: member m is sentence
    ``number[m]`` of all parts, in the group of sentence ``group[m]``; ``agrees[m]`` says whether
    all labels of its group do, ``side[m]`` and ``row[m]`` where it is."""

    group: Ints
    number: Ints
    agrees: Bools
    side: Ints
    file: Ints
    line: Ints

    def groups(self) -> list[slice]:
        """The members of each group."""
        cuts = np.flatnonzero(np.diff(self.group, prepend=NONE))
        return [slice(a, b) for a, b in pairwise([*cuts.tolist(), len(self.group)])]

    def rows(self, corpus: Corpus, members: slice, side: int) -> tuple[Row, ...]:
        """Where the members on this side begin."""
        own = self.side[members] == side
        files, lines = self.file[members][own].tolist(), self.line[members][own].tolist()
        return tuple(Row(corpus.files[f], line) for f, line in zip(files, lines, strict=True))

    def words(self, corpus: PartedCorpus) -> Gathered:
        """The first sentence of every group."""
        return gathered(corpus, sentences=self.number[[group.start for group in self.groups()]])


def find_copies(
    sides: Sequence[PartedCorpus],
    odd: Sequence[Ref] | None = None,
    letters: Sequence[str] | None = None,
) -> tuple[Copies, Table, list[Table]]:
    """Equal sentences of one corpus or two that share their heading; sums over all groups; and for
    each part which of its sentences are listed.

    `odd` are tables of `settle`: labels agree where none of them has members; without them, where
    all labels are the same. With `letters` (those of each word) sentences of equal letters are
    found instead; they agree if they are the same words.
    """
    engine, secret = sides[0].engine, token_bytes(16)
    heading, shared = engine.share(sides[0].heading), engine.share(letters)
    parts = [(side, part) for side, corpus in enumerate(sides) for part in corpus.parts]
    buckets = engine.buckets(SENTENCE * sum(corpus.n_sentences for corpus in sides))
    sent = engine.split(
        send_sentences,
        [
            (heading, part.columns, part.before, secret, buckets, shared, odd and odd[number])
            for number, (_, part) in enumerate(parts)
        ],
        1 + buckets,
    )
    outgoing, of_part = exchanged([refs[1:] for refs in sent]), [side for side, _ in parts]
    met = engine.split(meet, [(refs, of_part) for refs in outgoing], 1 + len(parts))
    answers = exchanged([refs[1:] for refs in met])
    found = engine.each(
        receive,
        [
            (heading, part.columns, refs[0], mine, part.before)
            for (_, part), refs, mine in zip(parts, sent, answers, strict=True)
        ],
    )
    sums = {
        name: np.sum([engine.take(refs[0])[name] for refs in met], axis=0)
        for name in ("groups", "odd", "copies")
    }
    tables = [engine.take(ref) for ref in found]
    for refs in (*sent, *met, found):
        engine.drop(refs)
    members = [
        {name: column for name, column in table.items() if name not in OF_PART}
        | {"side": np.full(len(table["number"]), side)}
        for table, side in zip(tables, of_part, strict=True)
    ]
    whole = stacked(members)
    order = np.lexsort((whole["number"], whole["group"]))
    copies = Copies(**{name: column[order] for name, column in whole.items()})
    return copies, sums, tables


def send_sentences(
    heading: Corpus,
    columns: Table,
    before: int,
    secret: bytes,
    buckets: int,
    letters: Sequence[str] | None,
    odd: Table | None,
) -> list[Table]:
    """The bucket of each sentence (-1: none), and what goes there."""
    corpus = corpus_of(heading, columns)
    exact = of_sequences(corpus, secret)
    if letters is None:
        keys, labels = exact, _labels(corpus, secret)
        bucket = bucket_of(keys[:, 0], buckets)
    else:
        keys, labels = letter_keys(corpus, letters), exact
        bucket = np.where(keys.any(axis=1), bucket_of(keys[:, 0], buckets), NONE)
    if odd is not None:  # the labels of all sentences agree, but for these
        labels = np.zeros((corpus.n_sentences, 2), np.uint64)
        at_odds = corpus.sentence_of[odd["members"]]
        labels[at_odds, 0] = at_odds + before + 1  # like no other
    sent = {"keys": keys, "labels": labels, "number": np.arange(corpus.n_sentences) + before}
    some = bucket != NONE
    outgoing = scattered(bucket[some], buckets, {k: v[some] for k, v in sent.items()})
    return [{"bucket": bucket.astype(np.int32)}, *outgoing]


def meet(tables: list[Table], sides: list[int]) -> list[Table]:
    """For each sentence of each part its group if it is listed (-1 if not), and whether all that is
    said of the labels in the group is the same."""
    rows = stacked(tables)
    first, number = numbered(rows["keys"])
    sizes = [len(table["keys"]) for table in tables]
    side, size = np.repeat(sides, sizes), np.bincount(number, minlength=len(first))
    lists = size > 1
    if THERE in sides:
        theirs = np.bincount(number, side, len(first))
        lists = (theirs > 0) & (theirs < size)
    differs = (rows["labels"] != rows["labels"][first][number]).any(axis=1)
    odd = np.bincount(number, differs, len(first)) > 0
    least = np.full(len(first), np.iinfo(np.int64).max)
    np.minimum.at(least, number, rows["number"])
    answer = {"group": np.where(lists, least, NONE)[number], "agrees": ~odd[number]}
    cuts = np.cumsum(sizes)[:-1]
    split = {name: np.split(column, cuts) for name, column in answer.items()}
    sums = {
        "groups": np.array([len(first)]),
        "odd": np.array([np.count_nonzero(odd)]),
        "copies": np.array([size[odd].sum()]),
    }
    return [
        sums,
        *({name: split[name][part] for name in answer} for part in range(len(tables))),
    ]


def receive(
    heading: Corpus, columns: Table, own: Table, answers: list[Table], before: int
) -> Table:
    """The sentences of a part that are listed, a mask of them, and how many tokens they have."""
    corpus, bucket = corpus_of(heading, columns), own["bucket"]
    group, agrees = np.full(len(bucket), NONE, np.int64), np.zeros(len(bucket), bool)
    for number, table in enumerate(answers):
        group[bucket == number] = table["group"]
        agrees[bucket == number] = table["agrees"]
    listed = np.flatnonzero(group != NONE)
    return {
        "listed": group != NONE,
        "tokens": corpus.lengths[listed].sum(keepdims=True),
        "group": group[listed],
        "number": listed + before,
        "agrees": agrees[listed],
        "file": corpus.file_ids[listed],
        "line": corpus.lines[corpus.offsets[listed]],
    }


def _labels(corpus: Corpus, secret: bytes) -> Keys:
    """A key for the labels of each sentence."""
    names = ("", *corpus.label_names)
    return of_sequences(replace(corpus, token_ids=corpus.label_ids + 1, vocabulary=names), secret)


def letter_keys(corpus: Corpus, letters: Sequence[str]) -> Keys:
    """A key for the letters of each sentence, 0 if it has none."""
    ids, nothing = corpus.token_ids.tolist(), bytes(16)
    texts = ("".join([letters[i] for i in ids[a:b]]) for a, b in pairwise(corpus.offsets.tolist()))
    data = b"".join(
        blake2b(text.encode(), digest_size=16).digest() if text else nothing for text in texts
    )
    return np.frombuffer(data, np.uint64).reshape(-1, 2)
