"""Some sentences of a corpus in parts, for what has to be looked at in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.conflicts import Conflict, add_conflicts
from rankone.corpus.corpus import Corpus
from rankone.corpus.parted import PartedCorpus, columns_of, corpus_of, nameless
from rankone.corpus.shuffle import Settled
from rankone.engines import Table


def picked(corpus: Corpus, sentences: Ints) -> tuple[Corpus, Ints]:
    """These sentences, with the words, labels and files of all; and which tokens they are."""
    lengths = corpus.lengths[sentences]
    ends = np.append(0, np.cumsum(lengths))
    tokens = np.repeat(corpus.offsets[sentences] - ends[:-1], lengths) + np.arange(ends[-1])
    found = replace(
        corpus,
        token_ids=corpus.token_ids[tokens],
        label_ids=corpus.label_ids[tokens],
        lines=corpus.lines[tokens],
        offsets=ends,
        file_ids=corpus.file_ids[sentences],
    )
    return found, tokens


def pick(corpus: Corpus, tokens: Ints) -> tuple[Corpus, Ints]:
    """The sentences of these tokens, which are in order, and where the tokens are in them."""
    some, held = picked(corpus, np.unique(corpus.sentence_of[tokens]))
    return some, np.searchsorted(held, tokens)


def laid_end_to_end(heading: Corpus, tables: Sequence[Table]) -> tuple[Corpus, list[int]]:
    """The sentences of all these tables of columns as one corpus, and where each table begins."""
    some = [corpus_of(heading, table) for table in tables]
    starts = np.cumsum([0, *(part.n_tokens for part in some)]).tolist()
    offsets = [part.offsets[:-1] + start for part, start in zip(some, starts, strict=False)]
    whole = replace(
        heading,
        token_ids=np.concatenate([part.token_ids for part in some]),
        label_ids=np.concatenate([part.label_ids for part in some]),
        lines=np.concatenate([part.lines for part in some]),
        offsets=np.append(np.concatenate(offsets), starts[-1]),
        file_ids=np.concatenate([part.file_ids for part in some]),
    )
    return whole, starts[:-1]


def conflicts_of(
    corpus: PartedCorpus, settled: Settled, before: int | None = None
) -> tuple[Conflict, ...]:
    """All contexts that carry several labels, with the lines of all their rows; if wanted, only
    those that begin before a token."""
    engine, heading = corpus.engine, corpus.engine.share(nameless(corpus.heading))
    calls = [
        (heading, part.columns, table, before)
        for part, table in zip(corpus.parts, settled.tables, strict=True)
    ]
    refs = engine.each(pick_members, calls)
    found: dict[int, Conflict] = {}
    for ref in refs:
        table = engine.take(ref)
        if len(members := table["members"]):
            part = corpus_of(corpus.heading, table)
            groups = np.empty(part.n_tokens, np.int64)
            groups[members] = table["contexts"]
            add_conflicts(found, part, groups, members, corpus.heading.files)
    engine.drop(refs)
    return tuple(found.values())


def pick_members(
    heading: Corpus, columns: Table, settled: Table, before: int | None = None
) -> Table:
    """The sentences of a part in which a context carries several labels."""
    members, contexts = settled["members"], settled["contexts"]
    if before is not None:
        members, contexts = members[contexts < before], contexts[contexts < before]
    some, members = pick(corpus_of(heading, columns), members)
    return {**columns_of(some), "members": members, "contexts": contexts}
