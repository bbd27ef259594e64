"""The contexts of a bucket: which float64 does not know well, and which are closest."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rankone.arrays import Ints
from rankone.certification.ball_arithmetic import Balls, linear
from rankone.certification.claims import known
from rankone.certification.context_gaps import Nearest, Widest, nearest, norm_of
from rankone.certification.context_ids import ContextIds
from rankone.certification.parted.evaluate import Kit
from rankone.deadline import TimeIsUpError, time_limit
from rankone.engines import Table
from rankone.engines.engine import stacked


def contexts_of(kit: Kit, tables: Sequence[Table], better: Table) -> ContextIds:
    """The contexts of these tables in the order of their tokens, some of them `better` known."""
    columns = stacked(tables)
    order = np.argsort(columns["token"])
    tokens, place = columns["token"][order], columns["place"][order]
    kept = Balls(*(np.ascontiguousarray(columns[name][order].T) for name in ("mid", "rad")))
    del columns, order
    written = kit.balls.written
    along = linear(kit.direction[written], kept)
    at = np.searchsorted(tokens, better["token"])
    mine = np.flatnonzero(tokens[np.minimum(at, max(0, len(tokens) - 1))] == better["token"])
    if len(mine):
        at = at[mine]
        along[at] = Balls(better["along"][mine], better["along_rad"][mine])
        kept[:, at] = Balls(better["mid"][mine].T, better["rad"][mine].T)

    def locate(wanted: Ints) -> tuple[Balls, Balls]:
        words, where = np.divmod(place[wanted], max(1, kit.shape.positions))
        return kit.balls.located(words, where, kept[:, wanted])

    rest = (None, None, np.zeros(0), locate, kit.straight, written, kept)
    return ContextIds(tokens, place, kit.direction, along, *rest)


def sizes_of(kit: Kit, ids: ContextIds) -> np.ndarray:
    """Upper bounds on the norms of the context ids."""
    words, where = np.divmod(ids.place, max(1, kit.shape.positions))
    assert ids.kept is not None
    return kit.balls.sizes(words, where, ids.kept)


NOT_BETTER: Table = {
    "token": np.empty(0, np.int64),
    "along": np.empty(0),
    "along_rad": np.empty(0),
    "mid": np.empty((0, 0)),
    "rad": np.empty((0, 0)),
}  # better known contexts, none of them


def rough_contexts(kit: Kit, tables: list[Table], scale: float) -> Table:
    """The contexts that float64 does not know well, and the largest figures of the others."""
    with np.errstate(over="ignore", invalid="ignore"):
        ids = contexts_of(kit, tables, NOT_BETTER)
        ids = replace(ids, size=sizes_of(kit, ids))
        assert ids.kept is not None
        fine = known(ids, scale)
        at = np.flatnonzero(~fine)
        return {
            "token": ids.tokens[at],
            "place": ids.place[at],
            "mid": ids.kept.mid[:, at].T,
            "rad": ids.kept.rad[:, at].T,
            "along": np.array([ids.along.rad[fine].max(initial=0.0)]),
            "norm": np.array([norm_of(ids.kept[:, fine])]),
            "size": np.array([ids.size[fine].max(initial=0.0)]),
        }


def nearest_contexts(
    kit: Kit, tables: list[Table], better: Table, widest: Widest, until: float
) -> Table:
    """The closest contexts of one word at one position, and clusters (`Nearest`); nothing if that
    takes longer than `until`."""
    try:
        with time_limit(until - time.time()), np.errstate(over="ignore", invalid="ignore"):
            found = nearest(contexts_of(kit, tables, better), widest)
    except TimeIsUpError:
        return {}
    return {
        "distance": np.array([found.distance, found.reach]),
        "pair": np.array(found.pair),
        "tokens": np.array([t for cluster in found.clusters for t in cluster], np.int64),
        "lengths": np.array([len(cluster) for cluster in found.clusters], np.int64),
    }


def nearest_of(table: Table) -> Nearest:
    """That of a bucket."""
    if not table:
        raise TimeIsUpError
    distance, reach = table["distance"].tolist()
    one, other = table["pair"].tolist()
    ends = np.cumsum(table["lengths"])
    clusters = np.split(table["tokens"], ends[:-1]) if len(ends) else []
    return Nearest(distance, (one, other), tuple(tuple(c.tolist()) for c in clusters), reach)
