"""Votes over all parts of a corpus: the ballot of each token's group, window by window.

Every part adds up the ballots of its own groups and sends them to buckets by their keys; a bucket
adds those of all parts, and answers which ballot each group has. So little travels of what is
frequent, and a word that is everywhere needs no more room than any other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from rankone.audit.suspects.looks import VOTING
from rankone.audit.suspects.threads import in_threads
from rankone.audit.suspects.view import Ground, Place, View
from rankone.audit.suspects.votes import Ballots, group_of
from rankone.audit.windows import Keys, mixed
from rankone.corpus.parted import PartedCorpus
from rankone.engines import Ref, Shared, Table
from rankone.engines.engine import exchanged, scattered

AT_ONCE = 4  # windows
GROUP = 80  # bytes that a bucket takes for each group


def poll(
    corpus: PartedCorpus,
    ground: Shared,
    places: Sequence[Place],
    windows: Sequence[str],
    kinds: int,
) -> list[list[Ref]]:
    """For each part, the tables of these windows: the ``number`` of the ballot of each token's
    group, and the ballots."""
    engine, parts = corpus.engine, corpus.parts
    buckets = engine.buckets(GROUP * corpus.n_tokens)
    found: list[list[Ref]] = [[] for _ in parts]
    for first in range(0, len(windows), AT_ONCE):
        some = list(windows[first : first + AT_ONCE])
        calls = [
            (ground, part.columns, place, some, buckets)
            for part, place in zip(parts, places, strict=True)
        ]
        sent = engine.split(send_ballots, calls, len(some) * (1 + buckets))
        for k in range(len(some)):
            mine = [refs[k * (1 + buckets) : (k + 1) * (1 + buckets)] for refs in sent]
            outgoing = exchanged([refs[1:] for refs in mine])
            answers = exchanged(
                engine.split(add_ballots, [(refs, kinds) for refs in outgoing], len(parts))
            )
            for refs in outgoing:
                engine.drop(refs)
            tables = engine.each(
                receive_ballots,
                [(refs[0], those) for refs, those in zip(mine, answers, strict=True)],
            )
            engine.drop(refs[0] for refs in mine)
            for part, those, table in zip(found, answers, tables, strict=True):
                engine.drop(those)
                part.append(table)
    return found


def send_ballots(
    ground: Ground, columns: Table, place: Place, windows: list[str], buckets: int
) -> list[Table]:
    """For each window what the part keeps, and what goes into each bucket."""
    view, kinds = View.of(ground, columns, place), len(ground.names)
    found = voting(view, windows)

    def sent(name: str) -> list[Table]:
        keys = found.pop(name)
        group, first = group_of(keys)
        ballots = Ballots.of_groups(group, view.tags.ids, len(first), kinds)
        keys = keys[first]
        bucket = (mixed(keys) >> np.uint64(33)).astype(np.int64) * buckets >> 31
        groups = scattered(bucket, buckets, {"keys": keys, "size": ballots.lengths})
        entries = scattered(
            np.repeat(bucket, ballots.lengths),
            buckets,
            {"label": ballots.label, "count": ballots.count},
        )
        kept = {"group": group, "bucket": bucket.astype(np.int32)}
        return [kept, *({**g, **e} for g, e in zip(groups, entries, strict=True))]

    return [table for tables in in_threads(sent, windows) for table in tables]


def add_ballots(tables: list[Table], kinds: int) -> list[Table]:
    """For each part the ballot of each of its groups: a number, and the ballots."""
    keys = np.concatenate([table["keys"] for table in tables])
    group, first = group_of(keys)
    del keys
    own = Ballots.joined([ballots_of(table) for table in tables])
    number, ballots = own.united(group, len(first), kinds)
    cuts = np.cumsum([len(table["keys"]) for table in tables])[:-1]
    return [{"number": part, **ballots.table} for part in np.split(number[group], cuts)]


def ballots_of(table: Table) -> Ballots:
    """The ballots that a part has sent."""
    starts = np.append(np.int32(0), np.cumsum(table["size"], dtype=np.int32))
    return Ballots(starts, table["label"], table["count"])


def receive_ballots(own: Table, answers: list[Table]) -> Table:
    """The number of the ballot of each token's group, among the ballots of all buckets."""
    number, before = np.empty(len(own["bucket"]), np.int32), 0
    for bucket, table in enumerate(answers):
        number[own["bucket"] == bucket] = table["number"] + np.int32(before)
        before += len(table["starts"]) - 1
    ballots = Ballots.joined([Ballots.of_table(table) for table in answers])
    return {"number": number[own["group"]], **ballots.table}


def voting(view: View, windows: Sequence[str] = tuple(VOTING)) -> dict[str, Keys]:
    """The keys of these windows for all tokens."""
    found = {name: np.empty(view.corpus.n_tokens, np.uint64) for name in windows}

    def look(what: tuple[slice, slice, View]) -> None:
        _, tokens, some = what
        for name, keys in some.looks.voting(windows).items():
            found[name][tokens] = keys

    deque(in_threads(look, view.slices()), maxlen=0)
    return found
