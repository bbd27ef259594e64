"""Evaluate a part of a corpus: figures that merge, what stays open, and its contexts by bucket."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import inf

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.certification.any_order import AnyOrder
from rankone.certification.context_gaps import norm_of
from rankone.certification.float_evaluation import Readings, follow
from rankone.certification.gated_balls import GatedBalls
from rankone.certification.gathered import Gathered
from rankone.certification.label_heads import Head
from rankone.deadline import time_limit
from rankone.engines import Table
from rankone.engines.engine import bucket_of, scattered
from rankone.nn import Architecture, Evaluator
from rankone.spans import SPAN

LISTED = 10_000  # witnesses of each kind that a part names
MIXED = np.uint64(0x9E3779B97F4A7C15)  # odd: places spread over all buckets


@dataclass(frozen=True)
class Kit:
    """What it takes to evaluate a part, made once and sent to every worker. ``rows`` and ``labels``
    are what the model has for the numbers of the corpus; the last label stands for none."""

    rows: Ints
    labels: Ints
    shape: Architecture
    balls: GatedBalls
    head: Head
    evaluator: Evaluator
    order: AnyOrder | None
    direction: Floats
    straight: bool


def evaluate_part(
    kit: Kit, columns: Table, settled: Table, start: int, before: int, buckets: int, until: float
) -> list[Table]:
    """Figures of the part, and for every bucket the contexts that belong there. Token 0 is number
    `start` of the corpus, sentence 0 number `before`; `until` is the time when it has to end."""
    rows, gold = kit.rows[columns["token_ids"]], kit.labels[columns["label_ids"]]
    offsets, tokens = columns["offsets"].astype(np.int64), np.flatnonzero(settled["begins"])
    gathered = Gathered(kit.shape, kit.balls, rows, offsets, tokens, kit.direction)
    order = None if kit.order is None else kit.order.over(gold)
    # what overflows gets an infinite radius or NaN, and counts as open
    with time_limit(until - time.time()), np.errstate(over="ignore", invalid="ignore"):
        readings = follow(gathered, kit.evaluator, kit.head, SPAN, lambda *_: None, order)
        whole = bool(readings.reached.all())
        readings.leave(np.flatnonzero(gold < 0))
        sent = contexts_by_bucket(gathered, start, buckets if whole else 0)
        figures = {
            **label_figures(readings, gold, kit.labels[settled["labels"]], settled, start),
            **sentences_left(readings, offsets, before),
            **context_figures(gathered, whole),
            "right": np.array([order is None or order.right]),
        }
    return [figures, *(sent if whole else [{} for _ in range(buckets)])]


def label_figures(
    readings: Readings, gold: Ints, target: Ints, settled: Table, start: int
) -> dict[str, np.ndarray]:
    """Counts of labels, the witnesses against them, and the tokens that stay open."""
    sure, asked, reached = readings.sure, gold >= 0, readings.reached
    labels, run = readings.labels.astype(np.int64), readings.run_labels.astype(np.int64)
    wrong = sure & asked & (labels != gold)
    context = np.full(len(gold), -1)  # of those that carry several labels, the first token
    context[settled["members"]] = settled["contexts"]
    least = asked & (target != gold)
    # whoever has one of these contexts counts: its network may be wrong more often than need be
    doubtful = np.unique(context[(context >= 0) & sure & (labels != target)])
    open_ = reached & ~sure
    told = np.flatnonzero((context >= 0) & ~open_ & (~reached | np.isin(context, doubtful)))
    plain = np.flatnonzero(wrong & (context < 0))[:LISTED]
    other = np.flatnonzero(sure & (run != labels))[:LISTED]
    off = np.where(np.isnan(readings.off), inf, readings.off)
    closed = np.where(open_, -inf, off)
    furthest, left = int(closed.argmax()), np.flatnonzero(open_)
    values = [readings.run_values[i] for i in left.tolist()]
    return {
        "wrong": np.array([np.count_nonzero(wrong)]),
        "unreached": np.array([np.count_nonzero(~reached)]),
        "unreached_inside": np.array([np.count_nonzero(~reached & ~settled["begins"])]),
        "contexts": np.array([np.count_nonzero(settled["begins"])]),
        "distance": np.array([readings.distance]),
        "off": closed[[furthest]],
        "furthest": np.array([furthest + start]),
        "plain": plain + start,
        "plain_label": labels[plain],
        "told": told + start,
        "told_context": context[told],
        "told_wrong": wrong[told],
        "told_least": least[told],
        "told_label": labels[told],
        "other": other + start,
        "other_label": labels[other],
        "other_run": run[other],
        "open": left + start,
        "open_off": readings.off[left],
        "open_label": labels[left],
        "open_run": run[left],
        "open_gold": gold[left],
        "open_least": least[left],
        "open_context": context[left],
        "open_begins": settled["begins"][left],
        "open_values": np.array(values) if values else np.empty((0, 0)),
    }


def sentences_left(readings: Readings, offsets: Ints, before: int) -> dict[str, np.ndarray]:
    """How many sentences were not reached, and those of the open tokens, -1 if counted already."""
    sentence = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    reached = readings.reached
    missed = np.unique(sentence[~reached])
    own = sentence[reached & ~readings.sure]
    return {
        "missed": np.array([len(missed)]),
        "open_sentence": np.where(np.isin(own, missed), -1, own + before),
    }


def context_figures(gathered: Gathered, whole: bool) -> dict[str, np.ndarray]:
    """How large the context ids are, how well they are known, and which words and positions occur;
    of a part that was left, only that."""
    if not whole:
        return {"whole": np.array([False])}
    along, size, kept = gathered.along, gathered.size, gathered.all_kept()
    finite = np.isfinite(along.mid).all() and np.isfinite(along.rad).all()
    words, places = np.divmod(gathered.place, gathered.positions)
    return {
        "whole": np.array([True]),
        "finite": np.array([finite and np.isfinite(size).all()]),
        "scale": np.array([np.nanmax(np.abs(along.mid), initial=0.0)]),
        "along": np.array([along.rad.max(initial=0.0)]),
        "norm": np.array([norm_of(kept)]),
        "size": np.array([size.max(initial=0.0)]),
        "words": np.unique(words),
        "places": np.unique(places),
    }


def contexts_by_bucket(gathered: Gathered, start: int, buckets: int) -> list[Table]:
    """The contexts, so that all of one word at one position go to one bucket."""
    if not buckets:
        return []
    columns = {
        "token": gathered.tokens + start,
        "place": gathered.place,
        "mid": gathered.kept.mid.T,
        "rad": gathered.kept.rad.T,
    }
    mixed = gathered.place.astype(np.uint64) * MIXED
    return scattered(bucket_of(mixed, buckets), buckets, columns)
