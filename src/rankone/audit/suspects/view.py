"""Some sentences of a corpus, as suspects are looked for in them.

All parts of a corpus share a `Ground`, and each has a `Place` among the others. So windows, tags
and numbers of tokens are those of the whole corpus, whichever sentences are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rankone.arrays import Ints
from rankone.audit.suspects.looks import NEARBY, Looks, Spellings, blocks_of
from rankone.audit.suspects.tags import Tags, opened_types
from rankone.corpus.corpus import Corpus
from rankone.corpus.parted import PartedCorpus, corpus_of, sentences_of
from rankone.corpus.picked import picked
from rankone.engines import Table
from rankone.spans import SPAN, spans


@dataclass(frozen=True)
class Ground:
    """What all parts share: the heading of the corpus, tags, and what is made of words."""

    heading: Corpus
    names: tuple[str, ...]
    spellings: Spellings


@dataclass(frozen=True)
class Place:
    """Where a part begins: its first token and sentence, how many sentences of the same file come
    before it, and how many blocks of sentences."""

    start: int = 0
    before: int = 0
    inside: int = 0
    blocks: int = 0


@dataclass(frozen=True)
class View:
    """Sentences with their tags; ``blocks[j]`` is the block of sentence j, ``numbers[i]`` the
    number of token i in all parts."""

    corpus: Corpus
    tags: Tags
    spellings: Spellings
    blocks: Ints
    numbers: Ints

    @classmethod
    def of(cls, ground: Ground, columns: Table, place: Place) -> View:
        corpus = corpus_of(ground.heading, columns)
        return cls(
            corpus,
            Tags.of(corpus, ground.names),
            ground.spellings,
            blocks_of(corpus.file_ids, place.inside, place.blocks),
            np.arange(place.start, place.start + corpus.n_tokens),
        )

    @cached_property
    def looks(self) -> Looks:
        return Looks(self.corpus, self.spellings, self.blocks, self.numbers)

    def slices(self, size: int = SPAN) -> Iterator[tuple[slice, slice, View]]:
        """The same in runs of whole sentences of about so many tokens, which fit in the cache; with
        the sentences and the tokens that they are."""
        for first, behind in spans(self.corpus.offsets, size):
            start, stop = self.corpus.offsets[[first, behind]].tolist()
            some = sentences_of(self.corpus, first, behind)
            sentences, tokens = slice(first, behind), slice(start, stop)
            yield sentences, tokens, self._of(some, sentences, tokens)

    def picked(self, sentences: Ints) -> View:
        """These sentences only."""
        some, tokens = picked(self.corpus, sentences)
        return self._of(some, sentences, tokens)

    def _of(self, some: Corpus, sentences: Ints | slice, tokens: Ints | slice) -> View:
        tags = Tags(self.tags.names, self.tags.ids[tokens], self.tags.scheme)
        return View(some, tags, self.spellings, self.blocks[sentences], self.numbers[tokens])


def surveyed(corpus: PartedCorpus) -> tuple[Ground, list[Place]]:
    """What parts must know of each other."""
    engine, heading = corpus.engine, corpus.engine.share(corpus.heading)
    refs = engine.each(survey, [(heading, part.columns) for part in corpus.parts])
    names, places = dict.fromkeys(corpus.heading.label_names), []
    last, inside, blocks = -1, 0, 0
    for part, ref in zip(corpus.parts, refs, strict=True):
        found = engine.take(ref)
        names |= {f"B-{corpus.heading.label_names[i][2:]}": None for i in found["opened"].tolist()}
        files, lengths = found["files"].tolist(), found["lengths"].tolist()
        inside = inside if files[0] == last else 0
        places.append(Place(part.start, part.before, inside, blocks))
        for file, length in zip(files, lengths, strict=True):
            inside = inside if file == last else 0
            blocks += -(-(inside + length) // NEARBY) - -(-inside // NEARBY)
            inside, last = inside + length, file
    engine.drop(refs)
    spellings = Spellings.of(corpus.heading.vocabulary)
    return Ground(corpus.heading, tuple(names), spellings), places


def survey(heading: Corpus, columns: Table) -> Table:
    """The files of a part one after the other, with the number of sentences of each; and the labels
    that open an entity where IOB1 writes I-."""
    corpus = corpus_of(heading, columns)
    starts = np.flatnonzero(np.diff(corpus.file_ids, prepend=-1))
    return {
        "files": corpus.file_ids[starts],
        "lengths": np.diff(np.append(starts, corpus.n_sentences)),
        "opened": opened_types(corpus),
    }
