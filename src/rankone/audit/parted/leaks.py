"""What two splits in parts have in common: `compare`, without either of them in memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankone.audit.findings import Comparison, Known, Leak, words_of
from rankone.audit.leaks import letters_of
from rankone.audit.parted.copies import HERE, THERE, Copies, find_copies
from rankone.audit.windows import Neighbourhood
from rankone.corpus.ceilings import INPUTS, Ceiling
from rankone.corpus.contexts import Look
from rankone.corpus.corpus import Corpus
from rankone.corpus.keys import numbered
from rankone.corpus.parted import PartedCorpus, corpus_of
from rankone.corpus.shuffle import counted
from rankone.engines import Table
from rankone.engines.engine import bucket_of, exchanged, scattered, stacked

WINDOW = 100  # bytes that a bucket takes for each of them
SIDES = ("here", "there")


def compare_parts(here: PartedCorpus, there: PartedCorpus, file: str) -> Comparison:
    """Two splits that share their heading; `there` comes after `here`."""
    sides = [here, there]
    exact, _, exactly = find_copies(sides)
    near, _, nearly = find_copies(sides, letters=[letters_of(w) for w in here.heading.vocabulary])
    leaks = (*_leaks(here, "exact", exact), *_leaks(here, "near", near))
    known = _known(sides, exactly, nearly)
    ceilings: dict[str, dict[str, Ceiling]] = {side: {} for side in SIDES}
    for name, look in INPUTS.items():
        for side, corpus, errors in zip(SIDES, sides, bounds(sides, look), strict=True):
            ceilings[side][name] = Ceiling.of(errors, corpus.n_asked)
    return Comparison(file, leaks, known, ceilings)


def _leaks(here: PartedCorpus, kind: str, copies: Copies) -> list[Leak]:
    words, leaks = copies.words(here), []
    for j, members in enumerate(copies.groups()):
        ours, theirs = (copies.rows(words.corpus, members, side) for side in (HERE, THERE))
        agrees = bool(copies.agrees[members.start])
        if kind == "exact":
            leaks.append(Leak("exact", words_of(words.corpus, j), ours, theirs, agrees))
        elif not agrees:  # else it is nothing but an exact leak
            leaks.append(Leak("near", words_of(words.corpus, j), ours, theirs, None))
    return leaks


def _known(
    sides: Sequence[PartedCorpus], exactly: Sequence[Table], nearly: Sequence[Table]
) -> dict[str, Known]:
    """`exactly` and `nearly` say of each part which sentences the other side has."""
    words, windows = _words_met(sides), _windows_met(sides)
    found, first = {}, 0
    for side, (name, corpus) in enumerate(zip(SIDES, sides, strict=True)):
        mine = slice(first, first + len(corpus.parts))
        first = mine.stop
        pairs = [
            (one["listed"], two["listed"])
            for one, two in zip(exactly[mine], nearly[mine], strict=True)
        ]
        found[name] = Known(
            sentences=corpus.n_sentences,
            tokens=corpus.n_tokens,
            words=words[side],
            windows=windows[side],
            contexts=int(sum(table["tokens"][0] for table in exactly[mine])),
            exact=int(sum(one.sum() for one, _ in pairs)),
            near=int(sum((two & ~one).sum() for one, two in pairs)),
        )
    return found


def _words_met(sides: Sequence[PartedCorpus]) -> list[int]:
    """How many tokens of each side are words of the other."""
    counts = []
    for corpus in sides:
        engine, size = corpus.engine, len(corpus.heading.vocabulary)
        refs = engine.each(count_words, [(part.columns, size) for part in corpus.parts])
        total = np.zeros(size, np.int64)
        for ref in refs:
            total += engine.take(ref)["count"]
        engine.drop(refs)
        counts.append(total)
    here, there = counts
    return [int(here[there > 0].sum()), int(there[here > 0].sum())]


def count_words(columns: Table, size: int) -> Table:
    """How often each word stands in a part."""
    return {"count": np.bincount(columns["token_ids"], minlength=size)}


def _windows_met(sides: Sequence[PartedCorpus]) -> list[int]:
    """How many tokens of each side stand between the same neighbours in the other."""
    engine, heading = sides[0].engine, sides[0].engine.share(sides[0].heading)
    parts = [(side, part) for side, corpus in enumerate(sides) for part in corpus.parts]
    buckets = engine.buckets(WINDOW * sum(corpus.n_tokens for corpus in sides))
    sent = engine.split(
        send_windows, [(heading, part.columns, buckets) for _, part in parts], buckets
    )
    of_part = [side for side, _ in parts]
    met = engine.each(meet_windows, [(refs, of_part) for refs in exchanged(sent)])
    total = np.sum([engine.take(ref)["met"] for ref in met], axis=0)
    for refs in (*sent, met):
        engine.drop(refs)
    return [int(count) for count in total]


def send_windows(heading: Corpus, columns: Table, buckets: int) -> list[Table]:
    """How often each window of a part stands in it."""
    keys = Neighbourhood(corpus_of(heading, columns)).window(-1, 1)
    keys, count = np.unique(keys, return_counts=True)
    return scattered(bucket_of(keys, buckets), buckets, {"keys": keys, "count": count})


def meet_windows(tables: list[Table], sides: list[int]) -> Table:
    """How many tokens of each side have a window that the other one has."""
    rows = stacked(tables)
    side = np.repeat(sides, [len(table["keys"]) for table in tables])
    _, number = np.unique(rows["keys"], return_inverse=True)
    here, there = (
        np.bincount(number, np.where(side == which, rows["count"], 0)) for which in (HERE, THERE)
    )
    return {"met": np.array([here[there > 0].sum(), there[here > 0].sum()], np.int64)}


def bounds(sides: Sequence[PartedCorpus], look: Look) -> list[int]:
    """For each of two sides, the errors that remain for a function of the input that makes as few
    on the other side as any can."""
    here, there = sides
    engine = here.engine
    both = PartedCorpus(here.heading, here.parts + there.parts, engine)
    alone, rows = counted(both, look)
    of_part = [HERE] * len(here.parts) + [THERE] * len(there.parts)
    found = engine.each(bind, [(refs, of_part) for refs in rows])
    errors = np.sum([engine.take(ref)["errors"] for ref in found], axis=0)
    for side, ref in zip(of_part, alone, strict=True):
        errors[side] += engine.take(ref)["errors"][0]
    for refs in (alone, found, *rows):
        engine.drop(refs)
    return [int(count) for count in errors]


def bind(tables: list[Table], sides: list[int]) -> Table:
    """The same for the contexts of a bucket. The other side decides on a label; only between labels
    that are equally frequent there, ours do."""
    rows = stacked(tables)
    side = np.repeat(sides, [len(table["keys"]) for table in tables])
    _, context = numbered(rows["keys"])
    label = rows["label"].astype(np.int64)
    pairs, number = np.unique(context * (label.max(initial=0) + 1) + label, return_inverse=True)
    context = pairs // (label.max(initial=0) + 1)
    here, there = (
        np.bincount(number, np.where(side == which, rows["count"], 0), len(pairs)).astype(np.int64)
        for which in (HERE, THERE)
    )
    errors = []
    for own, other in ((here, there), (there, here)):
        order = np.lexsort((own, other, context))
        chosen = order[np.flatnonzero(np.diff(context[order], append=-1))]
        errors.append(own.sum() - own[chosen].sum())
    return {"errors": np.array(errors, np.int64)}
