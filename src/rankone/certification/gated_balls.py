"""The gated layer in float64 balls: only the units of a token's own group, the others are 0."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rankone.arrays import Floats, Ints
from rankone.certification.attention_balls import array
from rankone.certification.ball_arithmetic import Balls, gamma, up
from rankone.nn import TokenClassifier
from rankone.nn.gatekeeper import Gatekeeper, gated_layer_of


def gated(network: TokenClassifier) -> Callable[[Balls, Ints, Ints], Balls] | None:
    """The layer as a function of columns, rows of the table and positions; None for a network of
    another kind, or where its weights do not prove that all other units are 0 (`Gatekeeper`).

    On the coordinates of gates the sums X + E have one term that is not 0, and attention adds
    nothing there. So the gates of a token's own group are what they are for its row and position:
    exactly 0 for codes, and known up to rounding for given vectors.
    """
    keeper, layer = Gatekeeper.of(network, inexact=True), gated_layer_of(network)
    if keeper is None or layer is None:
        return None
    slopes, bias, amplitude = map(array, (layer.slopes, layer.bias1, layer.amplitude))
    penalty, position = array(layer.penalty), layer.position.numpy()  # proved to be positive
    codes, reads, writes = array(layer.codes), layer.reads.numpy(), layer.writes.numpy()
    o = codes[layer.plus.numpy()] - codes[layer.minus.numpy()]  # small whole numbers: exact
    gates = len(layer.gates)

    def run(h: Balls, ids: Ints, places: Ints) -> Balls:
        token, unit = keeper.reached(ids, places, gates)
        seen, steep = h[reads][:, token], slopes[unit].T
        terms = np.abs(steep) * np.abs(seen.mid)
        fine, slip = keeper.fines(ids[token], places[token], position[unit] > 0)
        fine, slip = penalty[unit] * fine, penalty[unit] * slip
        z = (steep * seen.mid).sum(0) + bias[unit] + fine
        sizes = terms.sum(0) + np.abs(bias[unit]) + np.abs(fine)
        off = up((np.abs(steep) * seen.rad).sum(0) + slip + gamma(2 * len(steep) + 4) * sizes)
        z = np.maximum(z, 0.0) * amplitude[unit]
        off = up(off * np.abs(amplitude[unit]) + gamma(2) * np.abs(z))
        count = int(np.bincount(token, minlength=1).max())
        out = Balls(h.mid.copy(), h.rad.copy())
        for i, at in enumerate(writes.tolist()):
            write = o[unit, i]
            added = _sums(token, write * z, h.mid.shape[1])
            size = _sums(token, np.abs(write) * (np.abs(z) + off), h.mid.shape[1])
            slip = _sums(token, np.abs(write) * off, h.mid.shape[1])
            out.mid[at] += added
            whole = np.abs(h.mid[at]) + size
            out.rad[at] = up(h.rad[at] + slip * (1 + gamma(count + 2)) + gamma(count + 4) * whole)
        return out

    return run


def _sums(token: Ints, values: Floats, tokens: int) -> Floats:
    return np.asarray(np.bincount(token, values, tokens), dtype=np.float64)
