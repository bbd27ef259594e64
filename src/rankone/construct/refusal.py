"""The error for a corpus that float64 cannot memorize: what is too close, and what would help."""

from __future__ import annotations

from rankone.construct.closeness import EVEN, RESERVE, Closeness
from rankone.construct.readout import Kind
from rankone.construct.targets import ContextTargets
from rankone.corpus import Corpus
from rankone.errors import PrecisionError
from rankone.plural import plural

MANY = 100  # labels from which on their number costs digits


def refusal(
    found: Closeness,
    corpus: Corpus,
    targets: ContextTargets,
    *,
    draws: int,
    given: bool,
    length: int,
    readout: Kind,
) -> PrecisionError:
    """After so many `draws`, the last of which was `found`; with vectors that were `given`, and a
    table of positions of that `length`."""
    after = f"after {plural(draws, 'draw')}"
    if found.expected < RESERVE / 4:
        return PrecisionError(
            f"the network does not give the labels it was made for, {after}, "
            "although its context ids are far enough apart",
            where=corpus.source,
            remedy="this should not happen: please report it, with the corpus if you can",
        )
    pair = sorted((found.left, found.right))
    words = [corpus.vocabulary[corpus.token_ids[i]] for i in pair]
    names = [corpus.label_names[targets.labels[i]] for i in pair]
    sides = [
        f"{word!r} ({corpus.place(i)}, labelled {name!r})"
        for word, name, i in zip(words, names, pair, strict=True)
    ]
    if found.left == found.right:
        sides = ["one word", "another"]
    remedies = []
    if given:
        apart = f"move the vectors of {words[0]!r} and {words[1]!r} apart"
        remedies += [apart] if words[0] != words[1] else []
        remedies += ["leave vectors out, so that the table is chosen to fit"]
    if readout == "paper":
        remedies += ["use the merged readout"]
    if length > max(corpus.longest, 1):
        longest = plural(corpus.longest, "token")
        remedies += [f"leave max_length out (the longest sentence has {longest})"]
    fit = found.fitting(corpus.n_tokens)
    if 1 < fit < corpus.n_tokens:
        remedies += [f"memorize at most about {plural(fit, 'token')} at a time"]
        if len(corpus.label_names) > MANY:
            remedies += [f"use fewer than {len(corpus.label_names):,} labels"]
    if found.odds >= EVEN / 10 or not remedies:
        remedies += ["try another seed"]
    return PrecisionError(
        f"float64 cannot tell all contexts apart {after}: {sides[0]} and {sides[1]} are "
        f"{found.gap:.1e} apart on the line of context ids and need {found.needed:.1e}; "
        f"too narrow gaps: {found.too_close:,} of {found.changes:,}; a draw succeeds with a "
        f"probability of {_share(found.odds)}",
        where=corpus.source,
        remedy=", or ".join(remedies),
    )


def _share(odds: float) -> str:
    if odds < 1e-6:
        return "less than 1 in a million"
    return f"about {odds:.0%}" if odds >= 0.05 else f"about 1 in {float(f'{1 / odds:.0e}'):,.0f}"
