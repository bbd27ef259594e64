"""Evidence: for each suspect the rows of the widest window in which another token has the proposed
label."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit

from rankone.arrays import Ints
from rankone.audit.suspects.looks import VOTING
from rankone.audit.suspects.polls import AT_ONCE, voting
from rankone.audit.suspects.threads import in_threads
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Numbers, look_up
from rankone.audit.windows import Keys
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Shared, Table
from rankone.engines.engine import stacked

ROWS = 5  # of evidence
Wanted = dict[str, tuple[Keys, Numbers]]  # by window: keys, and a table of keys and labels


def find_evidence(
    corpus: PartedCorpus,
    ground: Shared,
    places: Sequence[Place],
    tokens: Ints,
    wanted: Ints,
    kinds: int,
) -> list[tuple[list[int], str]]:
    """For each of these tokens, for which these labels are proposed, the numbers of some tokens,
    and the window."""
    engine, parts, names = corpus.engine, corpus.parts, list(VOTING)
    found: list[tuple[list[int], str]] = [([], "") for _ in tokens]
    order = np.argsort(tokens, kind="stable")
    calls, asked = [], []
    for part, place in zip(parts, places, strict=True):
        a, b = tokens[order].searchsorted([part.start, part.start + part.tokens])
        if a < b:
            calls.append((ground, part.columns, place, tokens[order[a:b]] - part.start))
            asked.append(order[a:b])
    refs = engine.each(windows_of, calls)
    keys = np.empty((len(tokens), len(names)), np.uint64)
    for ref, rows in zip(refs, asked, strict=True):
        keys[rows] = engine.take(ref)["keys"]
    engine.drop(refs)
    for first in range(0, len(names), AT_ONCE):
        open_ = np.array([i for i, (rows, _) in enumerate(found) if not rows], dtype=np.int64)
        if not len(open_):
            break
        some = names[first : first + AT_ONCE]
        queries: Wanted = {}
        pairs: dict[str, Numbers] = {}
        for k, name in enumerate(some, first):
            each, group = np.unique(keys[open_, k], return_inverse=True)
            table = np.full((len(each), kinds), -1, np.int32)
            table[group, wanted[open_]] = 0
            table[table == 0] = np.arange(np.count_nonzero(table == 0), dtype=np.int32)
            queries[name], pairs[name] = (each, table), table[group, wanted[open_]]
        shared = engine.share(queries)
        refs = engine.each(
            witnesses,
            [
                (ground, part.columns, place, shared)
                for part, place in zip(parts, places, strict=True)
            ],
        )
        tables = [engine.take(ref) for ref in refs]
        engine.drop(refs)
        for name in some:
            rows_of: dict[int, list[int]] = {}
            for table_ in tables:
                both = (table_[f"{what} {name}"].tolist() for what in ("pair", "token"))
                for p, t in zip(*both, strict=True):
                    rows_of.setdefault(p, []).append(t)
            for i, p in zip(open_.tolist(), pairs[name].tolist(), strict=True):
                if not found[i][0] and p in rows_of:
                    found[i] = rows_of[p][:ROWS], name
    return found


def windows_of(ground: Ground, columns: Table, place: Place, tokens: Ints) -> Table:
    """The keys of all windows of these tokens of a part, which are in order."""
    view = View.of(ground, columns, place)
    sentences = np.unique(view.corpus.sentence_of[tokens])
    found = []
    for _, _, some in view.picked(sentences).slices():
        own = np.flatnonzero(np.isin(some.numbers, tokens + place.start))
        windows = some.looks.voting().values()
        found.append({"keys": np.stack([keys[own] for keys in windows], axis=1)})
    return stacked(found)


def witnesses(ground: Ground, columns: Table, place: Place, wanted: Wanted) -> dict[str, Ints]:
    """The first tokens of a part that have a wanted label in a wanted group: for each pair of these
    a few."""
    view = View.of(ground, columns, place)
    found = voting(view, list(wanted))

    def look(name: str) -> dict[str, Ints]:
        keys, table = wanted[name]
        pair, token = _first(look_up(found.pop(name), keys), view.tags.ids, table, ROWS)
        return {f"pair {name}": pair, f"token {name}": token + place.start}

    return {k: v for table in in_threads(look, list(wanted)) for k, v in table.items()}


@njit(nogil=True, cache=True)
def _first(group: Numbers, labels: Numbers, table: Numbers, most: int) -> tuple[Ints, Ints]:
    """The first tokens of each pair of group and label that has a number in the table."""
    pairs = max(table.max() + 1, 0)
    often = np.zeros(pairs, np.int64)
    pair, token = np.empty(pairs * most, np.int64), np.empty(pairs * most, np.int64)
    end = 0
    for i in range(len(group)):
        if group[i] >= 0 and labels[i] >= 0:
            p = table[group[i], labels[i]]
            if p >= 0 and often[p] < most:
                often[p] += 1
                pair[end], token[end] = p, i
                end += 1
    return pair[:end].copy(), token[:end].copy()
