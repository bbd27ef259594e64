"""Networks whose weights are exact numbers of any size: what float64 cannot hold, but a proof can.

`network` says what they are made of, `evaluate` runs them over sentences, `segments` and `pieces`
run deep feed-forward stacks along one line, `floats` goes to and from float64, `model` adds words
and labels, `store` writes and reads them.
"""

from rankone.nn.exact.model import ExactModel, load_exact
from rankone.nn.exact.network import (
    ExactAttention,
    ExactBlock,
    ExactFeedForward,
    ExactNetwork,
    Sparse,
)

__all__ = [
    "ExactAttention",
    "ExactBlock",
    "ExactFeedForward",
    "ExactModel",
    "ExactNetwork",
    "Sparse",
    "load_exact",
]
