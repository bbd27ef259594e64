"""The vectors of words where a token sees a window of the text, and how fast the past fades."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import comb

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.construct.gated.codes import LARGEST, codes
from rankone.construct.gated.keys import below, hash_words, stream, uniform
from rankone.construct.gated.tables import CODE, KEY, Layout, Tables, clash
from rankone.construct.problem import Problem

FADED = 4.0  # the first token of a window has this exponent, about, in the slowest heads


@dataclass(frozen=True)
class WindowLayout(Layout):
    """The same for a window: heads share the coordinate of the step as their key."""

    @property
    def step(self) -> int:
        return self.one + 1

    def key(self, head: int) -> int:  # noqa: ARG002
        return self.step

    def value(self, head: int) -> int:
        return self.step + 1 + head

    @property
    def averages(self) -> Ints:
        return self.value(self.heads) + np.arange(self.heads)

    @property
    def labels(self) -> Ints:
        return self.value(2 * self.heads) + np.arange(self.label)

    @property
    def dim(self) -> int:
        return self.value(2 * self.heads) + self.label


@dataclass(frozen=True)
class WindowTables(Tables):
    """The same for a `window`: ``keys`` are the values of words, and head h averages them with
    weights e^(-``decays[h]`` j) for the token j places back."""

    decays: Floats = field(default_factory=lambda: np.empty(0))
    window: int = 1

    @property
    def reach(self) -> float:
        """No average is larger."""
        return KEY

    def table(self, labels: Floats) -> Floats:
        layout = self.layout
        table = np.zeros((len(self.own), layout.dim))
        table[:, : layout.word] = self.own
        table[:, layout.one] = 1.0
        table[:, layout.labels] = labels
        table[:, layout.value(0) : layout.value(layout.heads)] = self.keys
        return table

    def averages(self, ids: Ints, places: Ints, offsets: Ints, causal: bool) -> Floats:  # noqa: ARG002
        """What the heads add to every token, (tokens, heads)."""
        from rankone.kernels.compiled import threads  # compiled code: loaded when used
        from rankone.kernels.compiled.window_sums import window_averages

        out = np.empty((self.layout.heads, len(ids)))

        def average(head: int, decay: float) -> None:
            values = np.take(self.keys[:, head], ids)
            window_averages(values, decay, self.window, offsets, out[head])

        threads.run(average, enumerate(self.decays.tolist()))
        return out.T


def decays_for(window: int, heads: int) -> Floats:
    """1, 3/4, 1/2, 3/8, ... down to where the first token of the window has faded to e^-`FADED`,
    about. With mantissas of two bits, their products with positions are exact in float32."""
    octaves = max(1, int(np.ceil(np.log2(max(FADED, window) / FADED))))
    scales = np.outer(2.0 ** -np.arange(octaves + 1), [1.0, 0.75]).ravel()[:-1]
    return np.asarray(np.resize(scales, heads))


def unfaded(window: int) -> int:
    """How many tokens the slowest head averages over, about: sum_j e^(-decay j) = 1 / decay."""
    slowest = decays_for(window, window + 2).min()  # there are fewer scales than heads
    return min(window, int(np.ceil(1 / slowest)))


def make_window_tables(problem: Problem, salt: int, heads: int, labels: int) -> WindowTables:
    """Codes and values from hashes; where two words have the same code, longer codes."""
    words, decays = problem.corpus.vocabulary, decays_for(problem.window, heads)
    for size in range(CODE, LARGEST + 1, 2):
        layout = WindowLayout(size, 0, heads, labels)
        hashes = hash_words(words, salt + (size << 32))
        numbers = below(stream(hashes, 0), comb(size, size // 2))
        if len(np.unique(numbers)) == len(numbers):
            values = np.stack([uniform(stream(hashes, i + 1), KEY) for i in range(heads)], axis=1)
            salted = salt + (size << 32)
            own = codes(numbers, size)
            return WindowTables(
                layout, own, values, None, numbers, salted, None, decays, problem.window
            )
    raise clash(problem)
