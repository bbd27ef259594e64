"""What an exported graph computes, next to what the model itself does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankone.arrays import Bools, Floats, Ints
from rankone.interop.onnx.rounding import Rounding, own_logits
from rankone.interop.onnx.sentences import Padding, run, run_pieces
from rankone.nn import Model
from rankone.plural import plural
from rankone.spans import spans

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from rankone.interop.onnx.state import Step


@dataclass(frozen=True)
class Compared:
    """onnxruntime's logits beside rankone's own over the tokens of ``source``, both in the
    precision of the network.

    Differences of two logits are taken relative to max(1, |logit|). They may be as large as
    `Rounding.tolerance` says: 1e-9 in float64, a few hundred units of rounding in float32.
    ``difference`` is the largest there is. Only where the precision itself knows no better, on a
    steep ramp between two labels for instance, what rounding explains (`Rounding.room`) may be
    added: ``steep`` counts the tokens that need it, and ``steep_difference`` is their largest.
    ``far`` counts tokens that differ by more than that, ``wrong`` those with another label,
    whatever the reason. If the graph labels ``whole`` texts, these are compared and counted instead
    of tokens.
    """

    source: str
    sentences: int
    tokens: int
    difference: float
    steep: int
    steep_difference: float
    far: int
    wrong: int
    whole: bool = False

    @property
    def ok(self) -> bool:
        return not self.far and not self.wrong

    def line(self) -> str:
        """For people to read."""
        differ = "label differs" if self.wrong == 1 else "labels differ"
        labels = f"{self.wrong:,} {differ}" if self.wrong else "the same labels"
        within = f"logits within {self.difference:.2g}" if self.difference else "identical logits"
        unit = "text" if self.whole else "token"
        line = f"{self.source}: {plural(self.tokens, unit)}, {labels}, {within}"
        if self.steep:
            steep = plural(self.steep, unit)
            line += f" (but for {steep} where rounding grows: {self.steep_difference:.2g})"
        return line


def compare(
    session: InferenceSession,
    model: Model,
    rows: Ints,
    offsets: Ints,
    *,
    source: str,
    paddings: tuple[Padding, ...] = ("right",),
    step: Step | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Compared:
    """Every sentence ``offsets[j]:offsets[j + 1]`` of rows of the table, in all `paddings`; by a
    graph with a state in pieces, `step`."""
    network, rng, whole = model.network, np.random.default_rng(0), model.task.whole
    rounding = Rounding(network)
    difference, steep_difference, steep, far, wrong = 0.0, 0.0, 0, 0, 0
    for first, last in spans(offsets):
        ids = rows[offsets[first] : offsets[last]]
        bounds = offsets[first : last + 1] - offsets[first]
        asked = bounds[1:] - 1 if whole else np.arange(len(ids))
        logits = own_logits(network, ids, bounds)[asked]
        labels, scale = model.label_ids(ids, bounds)[asked], np.maximum(1.0, np.abs(logits))
        lengths = np.minimum(np.diff(bounds), network.shape.window or np.inf).astype(np.int64)
        usual = np.repeat(rounding.tolerance(lengths), np.diff(bounds))[asked, None]
        for padding in paddings:
            if step is None:
                found = run(session, network.shape, ids, bounds, padding, rng, whole=whole)
            else:
                found = run_pieces(session, step, ids, bounds, padding, rng)
            off, allowed = np.abs(found - logits) / scale, usual + np.zeros_like(logits)
            beyond = tokens_beyond(off, allowed)
            if beyond.any():
                at, edges = whole_sentences(asked[beyond], bounds)
                room = np.zeros((len(ids), logits.shape[1]))
                room[at] = rounding.room(ids[at], edges)
                allowed += room[asked] / scale
            too_far = tokens_beyond(off, allowed)
            explained = beyond & ~too_far
            difference = max(difference, float(off[~explained].max(initial=0.0)))
            steep_difference = max(steep_difference, float(off[explained].max(initial=0.0)))
            steep += int(explained.sum())
            far += int(too_far.sum())
            wrong += int((found.argmax(1) != labels).sum())
        progress(last / (len(offsets) - 1))
    sentences = (len(offsets) - 1) * len(paddings)
    tokens = sentences if whole else len(rows) * len(paddings)
    figures = difference, steep, steep_difference, far, wrong
    return Compared(source, sentences, tokens, *figures, whole=whole)


def tokens_beyond(off: Floats, allowed: Floats) -> Bools:
    """Those with a logit that is further off than allowed, or is no number."""
    return np.asarray(~(off <= allowed).all(1))


def whole_sentences(chosen: Ints, offsets: Ints) -> tuple[Ints, Ints]:
    """The tokens of all sentences with a chosen one, and the offsets of these sentences."""
    some = np.zeros(len(offsets) - 1, dtype=bool)
    some[offsets.searchsorted(chosen, side="right") - 1] = True
    lengths = np.diff(offsets)
    return np.flatnonzero(np.repeat(some, lengths)), np.append(0, np.cumsum(lengths[some]))
