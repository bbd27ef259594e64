"""How long closest pairs take, beside the matrix product and the sort they cannot do without.

In high dimension all pairs must be looked at, and the floor is the product X X^T in float64, in
blocks that fit a cache. `separation` needs half of the blocks and does them in float32 first, so it
may lie below that floor. Where the closest pair is a tiny part of the spread, as it is for
context ids, the floor is one np.argsort. All times are the best of several runs in one process.
"""

from __future__ import annotations

import argparse
import resource

import numpy as np

import common
from rankone.arrays import Floats
from rankone.theory.closest import closest_pair
from rankone.theory.pair_search import TILE
from rankone.theory.separation import separation


def peak() -> float:
    """The most memory this process ever held, in MB (Linux counts in KB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def product(x: Floats) -> None:
    """X X^T, block by block into the same memory; what a product must cost, and nothing else."""
    out = np.empty((TILE, TILE))
    for a in range(0, len(x), TILE):
        for b in range(0, len(x), TILE):
            rows, columns = x[a : a + TILE], x[b : b + TILE]
            np.matmul(rows, columns.T, out=out[: len(rows), : len(columns)])


def all_pairs(count: int, dim: int, repeat: int) -> None:
    x = np.random.default_rng(0).standard_normal((count, dim))
    before = peak()
    found = separation(x)
    print(
        f"{count:,} random vectors in dimension {dim} ({x.nbytes / 1e6:.0f} MB): "
        f"r_min {found.r_min:.3f}, r_max {found.r_max:.3f}, epsilon {found.epsilon:.3f}; "
        f"peak memory {peak():.0f} MB, {peak() - before:.0f} MB of it for separation()\n"
    )
    floor = common.best(lambda: product(x), repeat)
    seconds = common.best(lambda: separation(x), repeat)
    common.table(
        ["", "seconds", "beside X X^T"],
        [
            ["X X^T in float64, blocked", f"{floor:.2f}", "1.00"],
            ["half of it, for symmetry", f"{floor / 2:.2f}", "0.50"],
            ["separation()", f"{seconds:.2f}", f"{seconds / floor:.2f}"],
        ],
    )


def planted(count: int, dim: int) -> Floats:
    """Random points, two of which are 10^-9 apart."""
    x = np.random.default_rng(dim).uniform(-1, 1, (count, dim))
    x[count // 3] = x[count // 2] + 1e-9 / np.sqrt(dim)
    return x


def tiny_distances(counts: list[int], repeat: int) -> None:
    rows = []
    for dim in (1, 8):
        for count in counts:
            x = planted(count, dim)
            column = np.ascontiguousarray(x[:, 0])
            sort = common.best(lambda column=column: np.argsort(column), repeat)  # type: ignore[misc]
            seconds = common.best(lambda x=x: closest_pair(x), repeat)  # type: ignore[misc]
            times = [f"{sort * 1e3:.1f}", f"{seconds * 1e3:.1f}", f"{seconds / sort:.1f}"]
            rows.append([f"{count:,} points, dimension {dim}", *times])
    common.table(
        ["closest distance 1e-9 or less", "argsort, ms", "closest_pair, ms", "ratio"], rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", type=int, default=25_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    all_pairs(args.vectors, args.dim, args.repeat)
    tiny_distances([100_000, 200_000, 400_000], args.repeat)


if __name__ == "__main__":
    main()
