"""Several corpora in parts as one: the splits of a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.join import join
from rankone.corpus.parted import NARROW, PartedCorpus
from rankone.engines import Table


def join_parts(corpora: Sequence[PartedCorpus]) -> PartedCorpus:
    """The sentences of all corpora, in order, as `join` does; one engine must keep all of them.

    Parts whose numbers of words, labels and files stay the same are those of the corpora.
    """
    if len(corpora) == 1:
        return corpora[0]
    engine, parts = corpora[0].engine, []
    heading = join([corpus.heading for corpus in corpora])
    several = len({corpus.source for corpus in corpora}) > 1
    names = heading.vocabulary, heading.label_names, heading.files
    words, labels, places = ({name: i for i, name in enumerate(each)} for each in names)
    start = before = 0
    for corpus in corpora:
        own = corpus.heading
        files = [corpus.source if file is None and several else file for file in own.files]
        numbers = {
            "token_ids": np.array([words[name] for name in own.vocabulary], np.int64),
            "label_ids": np.array([*(labels[name] for name in own.label_names), -1], np.int64),
            "file_ids": np.array([places[file] for file in files], np.int64),
        }
        order = own.vocabulary, own.label_names, files
        same = all(list(x) == list(y[: len(x)]) for x, y in zip(order, names, strict=True))
        refs = [part.columns for part in corpus.parts]
        if not same:
            shared = engine.share(numbers)
            refs = engine.each(renumber, [(ref, shared) for ref in refs])
        for part, ref in zip(corpus.parts, refs, strict=True):
            parts.append(replace(part, columns=ref, start=start, before=before))
            start, before = start + part.tokens, before + part.sentences
    return PartedCorpus(heading, tuple(parts), engine)


def renumber(columns: Table, numbers: dict[str, Ints]) -> Table:
    """A part with other numbers for words, labels and files."""
    return {
        **columns,
        **{name: new.astype(NARROW[name])[columns[name]] for name, new in numbers.items()},
    }
