"""Lemmas 1, 4, 5, 6 and 7 and the masked form of Appendix C, each with its hypothesis.

Vectors hold floats or exact `flint.arb`; log is natural. The proofs of monotonicity and concavity
are the paper's; docstrings mention where the wording was corrected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from rankone.errors import SettingError, VectorError
from rankone.theory.boltzmann import log_partition
from rankone.theory.lemma_claims import (
    Claim,
    LemmaBound,
    Row,
    entries,
    exact,
    in_kind,
    log,
    repeated,
    show,
    smallest_gap,
)
from rankone.theory.numeric_input import as_whole


def lemma4(a: Row, i: int) -> Claim:
    """d boltz(a) / d a_i < 0 where a_i < max_j a_j - log n - 1   (Lemma 4, eq. 84)."""
    return _sign(a, i, 1, f"Lemma 4: d boltz(a) / d a[{i}] < 0")


def lemma5(a: Row, i: int) -> Claim:
    """d^2 boltz(a) / d a_i^2 < 0 where a_i < max_j a_j - log n - 3   (Lemma 5, eq. 94, 95)."""
    return _sign(a, i, 3, f"Lemma 5: d^2 boltz(a) / d a[{i}]^2 < 0")


def lemma6(a: Row, b: Row) -> LemmaBound:
    """boltz(b) - boltz(a) > (a_n - b_n)(delta + a_n - b_n - log n - 1) p_n   (Lemma 6, eq. 103).

    a and b agree but for their last entries a_n > b_n, and delta = max_{i < n} a_i - a_n exceeds
    log n + 3; p = sigma_S[b]. The lemma is stated for any smaller delta, which gives less.
    """
    a, b = entries(a, "a"), entries(b, "b")
    x, y = exact(a, "a"), exact(b, "b")
    n = _length([x, y])
    if n < 2:
        raise VectorError(
            "Lemma 6 needs vectors of two or more numbers", remedy="give longer vectors"
        )
    delta, needed, drop = max(x[:-1]) - x[-1], arb(n).log() + 3, x[-1] - y[-1]
    broken = None
    if differ := [i for i in range(n - 1) if x[i] != y[i]]:
        i = differ[0]
        broken = f"entry {i} is {show(x[i])} in a and {show(y[i])} in b; only the last may differ"
    elif not drop > 0:
        broken = f"the last entry is {show(x[-1])} in a, not above {show(y[-1])} in b"
    elif not delta > needed:
        broken = f"max - a_n = {show(delta)} does not exceed log n + 3 = {show(needed)}"
    says = "Lemma 6: boltz(b) - boltz(a) > exp(log_bound)"
    figures = _figures((a, b), says, n, delta, needed, broken)
    log_bound = log(drop * (delta + drop - arb(n).log() - 1)) + y[-1] - log_partition(y)
    return LemmaBound(**figures, **in_kind((a, b), log_bound=None if broken else log_bound))


def lemma7(a: Row, b: Row) -> LemmaBound:
    """|boltz(a) - boltz(b)| > (log n)^2 e^{-(a_1 - b_{k+1})}   (Lemma 7, eq. 117).

    a and b are taken in decreasing order, agree in their first k entries, and a_{k+1} > b_{k+1}
    (else they change places). In each of them all entries are distinct, and any two different
    entries of both together are more than 2 log n + 3 apart. (Eq. 114 prints i > j; the order is
    decreasing, so i < j is meant.)
    """
    a, b = entries(a, "a"), entries(b, "b")
    rows = exact(a, "a"), exact(b, "b")
    n = _length(rows)
    return _pair("Lemma 7", (a, b), rows, n, arb(n).log() ** 2)


def lemma1(vectors: NDArray[np.float64] | Sequence[Row]) -> LemmaBound:
    """|boltz(a) - boltz(b)| > (log n)^2 e^{-2r} and |boltz(a)| <= r   (Lemma 1, eq. 15, 16).

    For all a, b of ``vectors`` that differ AS SETS (the paper says a != b, but boltz does not see
    the order), where no entry is repeated in a vector, and any two different entries of all
    vectors together are more than 2 log n + 3 apart. r is the largest |a_k|. Where that is not so,
    ``broken`` says why, ``missing`` by how much, and there is no bound.
    """
    vectors = [entries(row, f"vector {i}") for i, row in enumerate(entries(vectors, "vectors"))]
    rows = [exact(row, f"vector {i}") for i, row in enumerate(vectors)]
    n, r = _length(rows), max(abs(x) for row in rows for x in row)
    return _apart("Lemma 1", vectors, rows, n, log(arb(n).log() ** 2) - 2 * r)


def appendix_c(a: Row, b: Row) -> LemmaBound:
    """|boltz(a) - boltz(b)| > (log n + 1) e^{-D}   (Lemma 7 with masks, Appendix C).

    As Lemma 7, for the visible entries: entries of -inf are masked, a and b may differ in length,
    n is the larger number of visible entries and D = a_1 - b_{k+1}. With masks a may end after the
    k entries it shares with b; then the distance is sum_{j > k} p_j (boltz(a) - b_j), p =
    sigma_S[b], about D e^{-D}, and (log n)^2 e^{-D} is more than that for n > 20, D near 2 log n
    + 3. Proof of the bound, with l = log n and delta > 2l + 3:

    * a_1 > b_1: as in eq. 131 the distance is above delta / (1 + (n-1) e^{-delta}) > 2l + 2.
    * a_{k+1} > b_{k+1}, k >= 1: as in eq. 126 to 128 it is at least
      ((l + 3)(2l + 5) - l) / 2 e^{-D} = (l^2 + 5l + 7.5) e^{-D}.
    * a ends at k >= 1: p_{k+1} > (1 - e^{-delta}) e^{-D}, boltz(a) - b_{k+1} > D - (n-1) delta
      e^{-delta} and D > delta, so it is above (2l + 2) e^{-D}.

    It holds for n = 1, where Lemma 7 says nothing: a query that sees one token only, and maybe not
    itself, tells these apart. Eq. 16 survives masks for n >= 2 although its proof does not: where
    n numbers lie in (-r, r), 2r > (n-1) delta, and 2r e^{-2r} is enough.
    """
    a, b = entries(a, "a"), entries(b, "b")
    visible = ([x for x in row if not _is_masked(x)] for row in (a, b))
    rows = [exact(row, name) for row, name in zip(visible, "ab", strict=True)]
    n = max(map(len, rows))
    return _pair("Appendix C", (a, b), rows, n, arb(n).log() + 1)


def _sign(a: Row, i: int, reserve: int, says: str) -> Claim:
    a = entries(a, "a")
    x = exact(a, "a")
    i = as_whole("i", i, least=0)
    if i >= len(x):
        raise SettingError(
            f"i = {i} cannot be used with {len(x)} entries", remedy=f"give 0 to {len(x) - 1}"
        )
    delta, needed = max(x) - x[i], arb(len(x)).log() + reserve
    broken = None
    if not delta > needed:
        broken = f"max - a[{i}] = {show(delta)} does not exceed log n + {reserve} = {show(needed)}"
    return Claim(**_figures([a], says, len(x), delta, needed, broken))


def _pair(
    name: str, given: Sequence[Row], rows: Sequence[Sequence[arb]], n: int, factor: arb
) -> LemmaBound:
    """The claim factor e^{-(a_1 - b_{k+1})}, from the first place where a and b differ."""
    first, second = (sorted(row, reverse=True) for row in rows)
    for x, y in zip_longest(first, second):
        if x is None or y is None or x != y:
            lower = y if x is None or (y is not None and y < x) else x
            reach = max(first[0], second[0]) - lower
            return _apart(name, given, rows, n, log(factor) - reach)
    return _apart(name, given, rows, n, arb.neg_inf(), broken="a and b are equal as sets")


def _apart(
    name: str,
    given: Sequence[Row],
    rows: Sequence[Sequence[arb]],
    n: int,
    log_bound: arb,
    broken: str | None = None,
) -> LemmaBound:
    """The claim of Lemmas 1 and 7: no repetition, and gaps of more than 2 log n + 3."""
    delta, pair = smallest_gap(rows)
    needed = 2 * arb(n).log() + 3
    broken = broken or repeated(rows)
    if broken is None and not delta > needed:
        broken = f"{pair} are {show(delta)} apart, not more than 2 log n + 3 = {show(needed)}"
    says = f"{name}: |boltz(a) - boltz(b)| > exp(log_bound)"
    figures = _figures(given, says, n, delta, needed, broken)
    return LemmaBound(**figures, **in_kind(given, log_bound=None if broken else log_bound))


def _figures(
    given: Sequence[Row], says: str, n: int, delta: arb, needed: arb, broken: str | None
) -> dict[str, Any]:
    """The figures of every claim; `missing` only if the distance falls short."""
    missing = None if delta > needed else needed - delta
    return in_kind(
        given,
        says=says,
        n=n,
        delta=delta,
        threshold=needed,
        missing=missing,
        broken=broken,
    )


def _is_masked(x: Any) -> bool:
    if isinstance(x, arb | int | float):  # an arb may be finite though no float is as large
        return bool(x == -math.inf)
    try:
        return not isinstance(x, str) and float(x) == -math.inf
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return False  # not a number: `exact` raises the error


def _length(rows: Sequence[Sequence[arb]]) -> int:
    lengths = {len(row) for row in rows}
    if not lengths:
        raise VectorError("there are no vectors", remedy="give one or more vectors")
    if len(lengths) != 1:
        raise VectorError(
            f"the vectors have different lengths: {sorted(lengths)}",
            remedy="use appendix_c for sets of different sizes",
        )
    return lengths.pop()
