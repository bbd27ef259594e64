"""Definition 2: which context ids must differ, and by how much they do."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankone.arrays import Ints
from rankone.errors import VectorError
from rankone.theory.closest import as_points, closest_pair
from rankone.theory.numeric_input import as_labels
from rankone.theory.separation import norms


@dataclass(frozen=True)
class Contextual:
    """|q_i| < r, and |q_i - q_j| > delta for tokens i, j of different context (Definition 2).

    ``r`` and ``delta`` are numbers for which the strict inequalities are proven, the float64
    context ids q taken as exact; ``delta`` is 0 if two contexts share an id. ``largest`` and
    ``distance`` are the norm and the distance they come from, as measured, ``closest`` the two
    tokens that far apart. With a single context no ids must differ: ``distance`` and ``closest``
    are None then, and ``delta`` is 2 r by convention.
    """

    tokens: int
    contexts: int
    dim: int
    r: float
    delta: float
    largest: float
    distance: float | None
    closest: tuple[int, int] | None

    @property
    def ok(self) -> bool:
        """Whether the ids are proven to be those of a contextual mapping."""
        return self.delta > 0

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"ok": self.ok}


def contextual(ids: ArrayLike, contexts: ArrayLike) -> Contextual:
    """Definition 2 for the context ids of N tokens, one per row of `ids`.

    Tokens with equal numbers in `contexts` have the same context and may have the same id, or ids
    that differ by rounding; each of them is compared with the tokens of all other contexts.
    """
    q = as_points(ids)
    groups = as_labels(contexts, len(q), "contexts")
    if not len(q):
        raise VectorError("no context ids", remedy="give one row per token")
    sizes = norms(q)
    found = closest_pair(q, groups=groups, among="different")
    return Contextual(
        tokens=len(q),
        contexts=len(np.unique(groups)),
        dim=q.shape[1],
        r=sizes.above,
        delta=2 * sizes.above if found is None else found.lower,
        largest=sizes.largest,
        distance=None if found is None else found.distance,
        closest=None if found is None else found.pair,
    )


def definition2_contexts(sequences: Iterable[Sequence[Hashable]]) -> Ints:
    """For each token the first with the same context: the same token, in the same SET of tokens.

    Tokens are numbered through all sequences. Definition 2 asks for different context ids where the
    tokens or the sets V^(i), V^(j) of their sequences differ; order and repeats do not count.
    """
    if isinstance(sequences, str):
        raise VectorError(
            "a string is not a list of sequences", remedy="give a list of token lists"
        )
    seen: dict[tuple[Hashable, frozenset[Hashable]], int] = {}
    contexts: list[int] = []
    try:
        for sequence in sequences:
            # Elements of a tensor are equal only to themselves; their values are not.
            row = [getattr(x, "item", lambda x=x: x)() for x in sequence]
            tokens = frozenset(row)
            for token in row:
                contexts.append(seen.setdefault((token, tokens), len(contexts)))
    except (TypeError, ValueError, RuntimeError) as error:
        raise VectorError(
            f"these are not sequences of tokens: {error}",
            where=f"token {len(contexts) + 1}",
            remedy="give a list of lists of strings or whole numbers",
        ) from None
    return np.array(contexts, dtype=np.int64)
