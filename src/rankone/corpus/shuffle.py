"""Contexts of all parts of a corpus, brought together by their keys.

Every part sends the keys of its contexts, with their labels, to buckets; a bucket holds all that is
known of its contexts, decides, and answers each part. What all contexts of a sentence share
(`SHARED`) is sent first: a sentence that no other one equals decides alone, so that of whole
sentences few numbers travel, one key for each and the contexts of copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from secrets import token_bytes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Ints
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus
from rankone.corpus.keys import SHARED, Keys, maker_of, numbered
from rankone.corpus.parted import PartedCorpus, corpus_of, nameless
from rankone.corpus.tallies import Tally, best, merged
from rankone.engines import Ref, Table
from rankone.engines.engine import Tell, bucket_of, exchanged, scattered

SENTENCE, CONTEXT = 100, 300  # bytes that a bucket takes for each of them
ALONE = -1  # the bucket of a context that its part decides alone


@dataclass(frozen=True)
class Settled:
    """The contexts of a corpus in parts, one table for each part (`settle`).

    ``labels[i]`` is the label that token i should get, -1 if its context is never asked, and
    ``begins[i]`` says whether token i is the first of all parts with its context. The asked tokens
    whose context carries several labels are the ``members``, in order, and ``contexts`` has the
    first token of each of their contexts, counted over all parts. ``unavoidable`` errors remain.
    """

    tables: tuple[Ref, ...]
    unavoidable: int


def settle(corpus: PartedCorpus, look: Look, tell: Tell = lambda _: None) -> Settled:
    """Decide on the label of every context."""
    engine, secret, parts = corpus.engine, token_bytes(16), corpus.parts
    heading = engine.share(nameless(corpus.heading))
    shared = _shared(corpus, look, secret, heading, lambda share: tell(share / 4))
    buckets = engine.buckets(CONTEXT * corpus.n_tokens)
    calls = [
        (heading, part.columns, look, secret, part.start, own, buckets)
        for part, own in zip(parts, shared, strict=True)
    ]
    sent = engine.split(send, calls, 1 + buckets, lambda share: tell((1 + share) / 4))
    engine.drop(ref for ref in shared if ref is not None)
    local, outgoing = [refs[0] for refs in sent], exchanged([refs[1:] for refs in sent])
    found = engine.split(
        decide, [(refs,) for refs in outgoing], 1 + len(parts), lambda x: tell((2 + x) / 4)
    )
    _drop(engine, outgoing)
    answers = exchanged([refs[1:] for refs in found])
    tables = engine.each(
        receive,
        [
            (heading, part.columns, own, refs, part.start)
            for part, own, refs in zip(parts, local, answers, strict=True)
        ],
        lambda share: tell((3 + share) / 4),
    )
    errors = [engine.take(ref)["errors"] for ref in (*[refs[0] for refs in found], *tables)]
    _drop(engine, [local, *answers, [refs[0] for refs in found]])
    return Settled(tuple(tables), int(np.sum(errors)))


def errors_of(corpus: PartedCorpus, look: Look, tell: Tell = lambda _: None) -> int:
    """How many tokens every function of the context gets wrong: `settle` without the way back."""
    engine = corpus.engine
    alone, outgoing = counted(corpus, look, tell)
    together = engine.each(
        count_together, [(refs,) for refs in outgoing], lambda share: tell((2 + share) / 3)
    )
    errors = sum(int(engine.take(ref)["errors"][0]) for ref in (*alone, *together))
    _drop(engine, [alone, together, *outgoing])
    return errors


def counted(
    corpus: PartedCorpus, look: Look, tell: Tell = lambda _: None
) -> tuple[list[Ref], list[list[Ref]]]:
    """For each part the errors in contexts that it decides alone, and for each bucket the labels of
    all others, counted by each part (`count`)."""
    engine, secret = corpus.engine, token_bytes(16)
    heading = engine.share(nameless(corpus.heading))
    shared = _shared(corpus, look, secret, heading, lambda share: tell(share / 3))
    buckets = engine.buckets(CONTEXT * corpus.n_tokens)
    calls = [
        (heading, part.columns, look, secret, own, buckets)
        for part, own in zip(corpus.parts, shared, strict=True)
    ]
    sent = engine.split(count, calls, 1 + buckets, lambda share: tell((1 + share) / 3))
    engine.drop(ref for ref in shared if ref is not None)
    return [refs[0] for refs in sent], exchanged([refs[1:] for refs in sent])


def _drop(engine: Any, refs: Sequence[Sequence[Ref]]) -> None:
    for some in refs:
        engine.drop(some)


def _shared(
    corpus: PartedCorpus, look: Look, secret: bytes, heading: Any, tell: Tell
) -> Sequence[Ref | None]:
    """For each part which of its sentences share contexts with others; None if any may."""
    if look not in SHARED:
        return [None] * len(corpus.parts)
    engine = corpus.engine
    buckets = engine.buckets(SENTENCE * corpus.n_sentences)
    calls = [(heading, part.columns, look, secret, buckets) for part in corpus.parts]
    sent = engine.split(send_sentences, calls, 1 + buckets, lambda share: tell(share / 2))
    outgoing = exchanged([refs[1:] for refs in sent])
    found = engine.split(meet, [(refs,) for refs in outgoing], len(corpus.parts))
    answers = exchanged(found)
    shared = engine.each(
        gather,
        [(refs[0], own) for refs, own in zip(sent, answers, strict=True)],
        lambda share: tell((1 + share) / 2),
    )
    _drop(engine, [*sent, *answers])
    return shared


def send_sentences(
    heading: Corpus, columns: Table, look: Look, secret: bytes, buckets: int
) -> list[Table]:
    """The bucket of each sentence, and what goes there."""
    keys = SHARED[look](corpus_of(heading, columns), secret)
    bucket = bucket_of(keys[:, 0], buckets)
    return [{"bucket": bucket.astype(np.int32)}, *scattered(bucket, buckets, {"keys": keys})]


def meet(tables: list[Table]) -> list[Table]:
    """Which sentences share their key with others."""
    _, number = numbered(np.concatenate([table["keys"] for table in tables]))
    several = (np.bincount(number) > 1)[number] if len(number) else np.zeros(0, bool)
    cuts = np.cumsum([len(table["keys"]) for table in tables])[:-1]
    return [{"shared": part} for part in np.split(several, cuts)]


def gather(own: Table, answers: list[Table]) -> Table:
    """Answers of all buckets, in the order of the sentences."""
    return {"shared": gathered(own["bucket"], answers, "shared")}


def gathered(bucket: NDArray[Any], answers: Sequence[Table], name: str) -> NDArray[Any]:
    """Row i comes from bucket ``bucket[i]``, of which rows are in order; without one it is 0."""
    found = np.zeros(len(bucket), answers[0][name].dtype)
    for number, table in enumerate(answers):
        found[bucket == number] = table[name]
    return found


@dataclass(frozen=True)
class Sent:
    """What a part knows of its contexts: `rank` is the context of each token, a number from 0 on,
    `bucket` where each context goes."""

    rank: Ints
    firsts: Ints
    bucket: Ints
    keys: Keys
    tally: Tally

    @classmethod
    def of(
        cls, part: Corpus, look: Look, secret: bytes, shared: Table | None, buckets: int
    ) -> Sent:
        contexts = look(part)
        firsts = np.flatnonzero(contexts == np.arange(len(contexts)))
        rank = np.searchsorted(firsts, contexts)
        open_ = np.arange(len(firsts))
        if shared is not None:
            open_ = np.flatnonzero(shared["shared"][part.sentence_of[firsts]])
        keys = maker_of(look)(part, firsts[open_], secret)
        bucket = np.full(len(firsts), ALONE)
        bucket[open_] = bucket_of(keys[:, 0], buckets)
        asked = np.flatnonzero(part.label_ids >= 0)
        asked = asked[bucket[rank[asked]] != ALONE]
        once = np.broadcast_to(np.int64(1), asked.shape)
        tally = Tally(firsts, rank[asked], part.label_ids[asked], once, asked)
        return cls(
            rank, firsts, bucket, keys, tally if len(asked) == len(firsts) else tally.added()
        )


def send(
    heading: Corpus,
    columns: Table,
    look: Look,
    secret: bytes,
    start: int,
    shared: Table | None,
    buckets: int,
) -> list[Table]:
    """What the part keeps, and what goes into each bucket: contexts with their keys and first
    tokens, and entries (context, label, count, first token)."""
    part = corpus_of(heading, columns)
    own = Sent.of(part, look, secret, shared, buckets)
    found = best(Tally.of(own.firsts[own.rank], part.label_ids))
    open_ = own.bucket != ALONE
    kept = {
        "rank": own.rank.astype(np.int32),
        "bucket": own.bucket.astype(np.int32),
        "label": found.labels[own.firsts].astype(np.int32),
        "contested": found.contested[own.firsts],
    }
    contexts = scattered(
        own.bucket[open_], buckets, {"keys": own.keys, "first": own.firsts[open_] + start}
    )
    place = np.full(len(own.firsts), -1)  # of a context in its bucket
    for number in range(buckets):
        mine = own.bucket == number
        place[mine] = np.arange(np.count_nonzero(mine))
    tally = own.tally
    entries = scattered(
        own.bucket[tally.context],
        buckets,
        {
            "context": place[tally.context].astype(np.int32),
            "label": tally.label.astype(np.int32),
            "count": tally.count.astype(np.int32),
            "seen": tally.seen + start,
        },
    )
    return [kept, *({**c, **e} for c, e in zip(contexts, entries, strict=True))]


def decide(tables: list[Table]) -> list[Table]:
    """The errors that remain, and for each part the label of each of its contexts, its first token
    in all parts, and whether it carries several labels."""
    whole, ranks = merged([tally_of(table) for table in tables])
    found = best(whole)
    labels = found.labels.astype(np.int32)
    columns: Table = {"label": labels, "first": whole.first, "contested": found.contested}
    answers = [{name: column[rank] for name, column in columns.items()} for rank in ranks]
    return [{"errors": np.array([found.errors])}, *answers]


def tally_of(table: Table) -> Tally:
    wide = {name: table[name].astype(np.int64) for name in ("context", "label", "count")}
    return Tally(first=table["first"], seen=table["seen"], keys=table["keys"], **wide)


def receive(heading: Corpus, columns: Table, own: Table, answers: list[Table], start: int) -> Table:
    """The table of a part (`Settled`), and the errors in sentences that it decided alone."""
    part, rank, bucket = corpus_of(heading, columns), own["rank"], own["bucket"]
    open_ = bucket != ALONE
    firsts = np.empty(len(bucket), np.int64)
    firsts[rank[::-1]] = np.arange(part.n_tokens)[::-1]  # the last to be written is the first token
    first = np.where(open_, gathered(bucket, answers, "first"), firsts + start)
    label = np.where(open_, gathered(bucket, answers, "label"), own["label"])
    contested = np.where(open_, gathered(bucket, answers, "contested"), own["contested"])
    asked = part.label_ids >= 0
    labels, begins = label[rank], np.zeros(part.n_tokens, bool)
    begins[firsts[first == firsts + start]] = True
    members = np.flatnonzero(contested[rank] & asked)
    alone = asked & ~open_[rank] & (labels != part.label_ids)
    return {
        "labels": labels,
        "begins": begins,
        "members": members,
        "contexts": first[rank[members]],
        "errors": np.array([np.count_nonzero(alone)]),
    }


def count(
    heading: Corpus,
    columns: Table,
    look: Look,
    secret: bytes,
    shared: Table | None,
    buckets: int,
) -> list[Table]:
    """The errors of contexts that the part decides alone, and what goes into each bucket: a row for
    each context and label."""
    part = corpus_of(heading, columns)
    own = Sent.of(part, look, secret, shared, buckets)
    found = best(Tally.of(own.firsts[own.rank], part.label_ids))
    wrong = (part.label_ids >= 0) & (found.labels[own.firsts][own.rank] != part.label_ids)
    alone = np.count_nonzero(wrong & (own.bucket[own.rank] == ALONE))
    place = np.cumsum(own.bucket != ALONE) - 1  # of a context among the keys
    tally = own.tally
    rows = {
        "keys": own.keys[place[tally.context]],
        "label": tally.label.astype(np.int32),
        "count": tally.count.astype(np.int32),
    }
    return [
        {"errors": np.array([alone])},
        *scattered(own.bucket[tally.context], buckets, rows),
    ]


def count_together(tables: list[Table]) -> Table:
    """The errors that remain in a bucket."""
    keys, label, counts = (
        np.concatenate([table[name] for table in tables]) for name in ("keys", "label", "count")
    )
    first, number = numbered(keys)
    nothing = np.zeros(len(label), np.int64)
    tally = Tally(first, number, label.astype(np.int64), counts.astype(np.int64), nothing)
    return {"errors": np.array([best(tally).errors])}
