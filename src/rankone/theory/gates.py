"""What gates cost: the figures of the theorem in docs/construction.md#gates.

A gate is silent, exactly 0, outside one word and position. The theorem says how many coordinates,
hidden units and bits a network of one block with gated units needs.
"""

from __future__ import annotations

import math
from fractions import Fraction

from rankone.errors import SettingError
from rankone.theory.numeric_input import as_real, as_whole

ONE_HOT = 32  # so many labels have a coordinate each,
BASE = 16  # more of them are digits in this base
KEY_BITS = 15  # mantissa of keys and values, which are multiples of 2^-15 or 2^-16


def code_size(count: int) -> int:
    """s(count): the smallest even s with C(s, s/2) >= count.

    So many coordinates have `count` codes of s/2 ones each, none of which contains another
    (Sperner). s(c) is log2 c + (log2 log2 c) / 2 + O(1).

    >>> [code_size(count) for count in (1, 2, 3, 6, 7, 20, 21)]
    [2, 2, 4, 4, 6, 6, 8]
    >>> code_size(1_000_000)
    24
    """
    count, size = as_whole("count", count), 2
    while math.comb(size, size // 2) < count:
        size += 2
    return size


def label_size(labels: int) -> int:
    """m: a coordinate per label up to 32 labels, else as many as the label has digits to base 16.

    >>> [label_size(labels) for labels in (1, 32, 33, 256, 257)]
    [1, 32, 2, 2, 3]
    """
    labels, size = as_whole("labels", labels), 1
    if labels <= ONE_HOT:
        return labels
    while BASE**size < labels:
        size += 1
    return size


def gated_dimension(words: int, length: int, heads: int, labels: int) -> int:
    """d = s(|V| + 1) + s(n) + 1 + 3 H + m.

    |V|, n, H are `words`, `length` and `heads`. There is one more code for unknown words, one
    coordinate is constant, and a head has three: key, value and average. Without positions
    (Corollary 1) n is 0 and s(n) drops out.

    >>> gated_dimension(23_623, 113, heads=2, labels=9)  # CoNLL-2003
    44
    >>> gated_dimension(1_000_000, 1_000, heads=2, labels=9)
    54
    """
    words, length = as_whole("words", words), as_whole("length", length, 0)
    heads = as_whole("heads", heads)
    places = code_size(length) if length else 0
    return code_size(words + 1) + places + 1 + 3 * heads + label_size(labels)


def units_bound(exceptions: int, *, zigzag: bool = False) -> int:
    """Hidden units for so many exceptions: contexts whose label is not the usual one of their word.

    Three make a peak. A zigzag (labels with a coordinate each) takes one per change of label along
    a direction, and an exception has at most two changes.

    >>> units_bound(4_938), units_bound(4_938, zigzag=True)  # CoNLL-2003
    (14814, 9876)
    """
    return (2 if zigzag else 3) * as_whole("exceptions", exceptions, 0)


def bits_per_weight(gap: float, *, labels: int = 2) -> int:
    """Bits of the longest mantissa if peaks are rounded: log2(1/gap) + 3, rounded up.

    `gap` is the least distance between the averages of two contexts of one group. With more than 32
    labels a peak must reach its height within 1/64, which takes four bits more. Keys and values
    take 15, and no other weight takes more.

    >>> bits_per_weight(2**-20), bits_per_weight(2**-20, labels=1_000)
    (23, 27)
    >>> bits_per_weight(0.5)
    15
    """
    gap = as_real("gap", gap)
    if gap <= 0:
        raise SettingError(f"gap = {gap} is not above 0", remedy="give a number above 0")
    bits = grid_exponent(gap, labels) + 1
    return max(KEY_BITS, bits)


def grid_exponent(gap: float, labels: int = 2) -> int:
    """k: the bends of rounded peaks are multiples of 2^-k, the largest power of two that is at most
    gap / 4 (more than 32 labels: gap / 64). Gaps above 1 count as 1.

    >>> grid_exponent(2**-20), grid_exponent(2**-20 * 0.9), grid_exponent(100.0)
    (22, 23, 2)
    """
    share = 4 if as_whole("labels", labels) <= ONE_HOT else 64
    needed = share / min(Fraction(as_real("gap", gap)), Fraction(1))
    return (math.ceil(needed) - 1).bit_length()


def rounded_peak(at: float, gap: float, labels: int = 2) -> tuple[Fraction, Fraction, Fraction]:
    """Where the peak of the theorem bends: left end, top, right end.

    It is 0 wherever the distance from `at` is `gap` or more, and at `at` itself at least 3/4 of its
    height (more than 32 labels: 63/64).

    >>> [str(x) for x in rounded_peak(0.3, 0.1)]
    ['17/64', '19/64', '21/64']
    """
    step = Fraction(1, 2 ** grid_exponent(gap, labels))
    width = step * (2 if labels <= ONE_HOT else 32)
    top = round(Fraction(as_real("at", at)) / step) * step
    return top - width, top, top + width
