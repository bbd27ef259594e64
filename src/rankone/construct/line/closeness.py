"""What float64 cannot tell apart on the line, and whether drawing again is worth it.

A change of label by `jump` in a gap between two context ids of size |s| puts the output off by
about eps |s| jump / gap, everywhere to its right, so a gap needs

    needed = eps |s| jump / RESERVE

to take no more than the reserve. Errors of many changes add up like a random walk: with
t = gap / needed, the output is off by about RESERVE sqrt(sum 1 / t^2). Where ids are drawn, the
number of changes with t < T is Poisson with mean rate T for small T; then sum 1 / t^2 has Lévy's
distribution, and a draw holds with probability erfc(rate sqrt(pi) / 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, pi, sqrt

import numpy as np

from rankone.arrays import Floats
from rankone.construct.line.readout_units import Line
from rankone.construct.problem import RESERVE, Problem
from rankone.errors import PrecisionError
from rankone.plural import plural

COUNTED = 20  # the smallest gaps, from which the rate is estimated
QUICK = 5_000  # tokens for which all draws take a second or two
LEAST = 1e-150  # used in place of 0; can be squared
EVEN = 0.1  # odds of a draw with which one of seven more succeeds about as likely as not
EVEN_RATE = 0.54  # with which a draw holds as likely as not
MANY = 100  # labels above which their number costs digits


@dataclass(frozen=True)
class Closeness:
    """The two tokens (their numbers) that are closest for what they need.

    They are the same where the gap is not between tokens but between the cells of two words.
    ``too_close`` counts the ``changes`` with a gap below what it needs; ``expected`` is about how
    far rounding puts the output off, all changes together; ``odds`` the probability that a draw
    holds.
    """

    left: int
    right: int
    gap: float
    needed: float
    too_close: int
    changes: int
    expected: float
    rate: float

    @property
    def odds(self) -> float:
        return erfc(self.rate * sqrt(pi) / 2)

    def hopeful(self, before: Closeness | None, tokens: int) -> bool:
        """Whether to draw again, after this draw and the one `before` it have failed.

        A corpus of few tokens costs next to nothing. For others not if a draw seldom succeeds; nor
        if the same two tokens are too close again: then it is not the draw that puts them there.
        """
        same = before is not None and (before.left, before.right) == (self.left, self.right)
        hopeless = self.odds < EVEN or (same and self.gap < self.needed)
        return tokens <= QUICK or not hopeless

    def fitting(self, tokens: int) -> int:
        """About how many tokens of such a corpus have even odds: the rate grows with their square.

        Two digits, rounded down.
        """
        fit = int(tokens * sqrt(EVEN_RATE / max(self.rate, EVEN_RATE)))
        unit = int(10 ** max(0, len(str(fit)) - 2))
        return fit // unit * unit


def closeness(line: Line, problem: Problem) -> Closeness:
    """The gaps that the readout uses, against what they need."""
    merged = problem.readout == "merged"
    if merged:
        changes = line.changes
        left, right = changes.left, changes.right
        jump: Floats = np.abs(changes.after - changes.before).astype(np.float64)
    else:  # all neighbours; it goes through the label of each, less what the skip brings
        each = problem.contexts
        each = each[np.argsort(line.ids[each])]
        left, right = line.ids[each[:-1]], line.ids[each[1:]]
        jump = np.maximum(np.abs(np.diff(problem.labels[each] - line.ids[each])), 1.0)
    if not len(jump):
        return Closeness(0, 0, np.inf, 0.0, 0, 0, 0.0, 0.0)
    gap, size = right - left, np.maximum(np.abs(left), np.abs(right))
    needed = np.maximum(np.finfo(np.float64).eps * size * jump / RESERVE, LEAST)
    t = np.fmax(gap / needed, LEAST)
    worst, count = int(t.argmin()), min(COUNTED, len(t))
    if merged:
        ends = (left, line.changes.before), (right, line.changes.after)
        here, there = (
            np.flatnonzero((line.ids == place[worst]) & (problem.labels + 1 == label[worst]))
            for place, label in ends
        )
        pair = (int(here[0]), int(there[0])) if len(here) and len(there) else (0, 0)
    else:
        pair = int(each[worst]), int(each[worst + 1])
    return Closeness(
        *pair,
        gap=float(gap[worst]),
        needed=float(needed[worst]),
        too_close=int((t < 1).sum()),
        changes=len(t),
        expected=float(RESERVE * np.linalg.norm(1 / t)),
        rate=(count - 1) / float(np.partition(t, count - 1)[count - 1]),
    )


def refusal(found: Closeness, problem: Problem, draws: int) -> PrecisionError:
    """The error after a number of `draws`, the last of which was `found`."""
    source, longest = problem.corpus.source, problem.longest
    after = f"after {plural(draws, 'draw')}"
    if found.expected < RESERVE / 4:
        return PrecisionError(
            f"the network does not give the labels it was made for, {after}, "
            "although its context ids are far enough apart",
            where=source,
            remedy="this should not happen: please report it, with the corpus if you can",
        )
    pair = sorted((found.left, found.right))
    words, places = zip(*map(problem.named, pair), strict=True)
    names = problem.corpus.label_names
    sides = [
        f"{word!r} ({place}, labelled {names[problem.labels[i]]!r})"
        for word, place, i in zip(words, places, pair, strict=True)
    ]
    if found.left == found.right:
        sides = ["one word", "another"]
    remedies = []
    if problem.vectors is not None:
        apart = f"move the vectors of {words[0]!r} and {words[1]!r} apart"
        remedies += [apart] if words[0] != words[1] else []
        remedies += ["leave vectors out, so that the table is chosen to fit"]
    if problem.readout == "paper":
        remedies += ["use the merged readout"]
    if problem.length > max(longest, 1):
        longest_has = plural(longest, "token")
        remedies += [f"leave max_length out (the longest sentence has {longest_has})"]
    fit = found.fitting(problem.tokens)
    if 1 < fit < problem.tokens:
        remedies += [f"memorize at most about {plural(fit, 'token')} at a time"]
        if len(names) > MANY:
            remedies += [f"use fewer than {len(names):,} labels"]
    if found.odds >= EVEN / 10 or not remedies:
        remedies += ["try another seed"]
    return PrecisionError(
        f"float64 cannot tell all contexts apart {after}: {sides[0]} and {sides[1]} are "
        f"{found.gap:.1e} apart on the line of context ids and need {found.needed:.1e}; "
        f"too narrow gaps: {found.too_close:,} of {found.changes:,}; a draw succeeds with a "
        f"probability of {_share(found.odds)}",
        where=source,
        remedy=", or ".join(remedies),
    )


def _share(odds: float) -> str:
    if odds < 1e-6:
        return "less than 1 in a million"
    return f"about {odds:.0%}" if odds >= 0.05 else f"about 1 in {float(f'{1 / odds:.0e}'):,.0f}"
