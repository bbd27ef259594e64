"""The size of a network, whatever its weights are."""

from __future__ import annotations

import numpy as np

from rankone.construct.exact import Network
from rankone.nn.exact import ExactNetwork
from rankone.nn.exact.network import Counts

FLOAT_BITS = 64


def sizes(network: Network) -> Counts:
    """Counts of an exact network, or of a float64 one as it is stored, tables left out."""
    if isinstance(network, ExactNetwork):
        return network.count
    shape = network.shape
    weights = np.concatenate(
        [
            parameter.detach().numpy().ravel()
            for name, parameter in network.named_parameters()
            if name not in ("table", "positions")
        ]
    )
    used = weights[weights != 0]
    return Counts(
        layers=shape.depth,
        attentions=shape.depth,
        heads=shape.heads,
        width=max(shape.dim, shape.hidden),
        parameters=len(weights),
        nonzero=len(used),
        distinct=len(np.unique(used)),
        bits=FLOAT_BITS,
        bits_total=FLOAT_BITS * len(used),
    )
