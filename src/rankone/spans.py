"""Going through ragged columns piece by piece, so that what is computed stays in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SPAN = 1 << 16  # tokens: their columns of float64 take half a megabyte each


def spans(offsets: NDArray[np.int64], size: int = SPAN) -> Iterator[tuple[int, int]]:
    """Runs of whole sentences, first and behind the last, with about `size` tokens each.

    A sentence that is longer makes a run by itself.
    """
    sentences, first = len(offsets) - 1, 0
    while first < sentences:
        last = int(offsets.searchsorted(offsets[first] + size, side="right")) - 1
        last = min(max(last, first + 1), sentences)
        yield first, last
        first = last
