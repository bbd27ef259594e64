"""
Approximate a function
======================

Proposition 1: a Transformer with one attention layer between two feed-forward layers comes as
close as you like to any continuous function of sequences that does not care about the order of
tokens. `rankone.approximate` builds that network, and bounds its error.
"""

import numpy as np

import rankone
from rankone.approximation.plots import plot_convergence, plot_picture

# %%
# A function of two tokens
# ------------------------
#
# Any function of an array (batch, n, d) will do, if permuting the tokens permutes the result.
# This one moves each token away from the mean, the farther the closer it is.


def repel(x):
    apart = x - x.mean(-2, keepdims=True)
    return apart / (0.2 + np.abs(apart))


result = rankone.approximate(repel, n=2, grid=24, lipschitz=8.0)
low, high = result.measured.interval
print(f"{result.grid.context_ids} context ids; error {result.error:.4f} ({low:.4f} to {high:.4f})")
print(f"and never above {result.bound.total:.4f}, if 8 is a Lipschitz constant")
picture = plot_picture(result, result.target)

# %%
# The network is constant on cells: the first layer rounds every token to its cell, attention
# gives every *set* of cells a number of its own, the second layer looks the value up. The right
# picture is the error, and it is largest where the function is steepest.
#
# An honest constant
# ------------------
#
# The bound stands on the Lipschitz constant. One that the function violates is refused, with the
# point.

try:
    rankone.approximate(repel, n=2, grid=24, lipschitz=1.0)
except rankone.RankOneError as error:
    print(error)

# %%
# Finer grids
# -----------
#
# Twice as many cells, half the error. So say the bound and the measurement.

convergence = rankone.converge("nearest", [2, 4, 8, 16, 32])
print("slope", round(convergence.slope, 2))
curves = plot_convergence(convergence)

# %%
# Ask for an accuracy
# -------------------

close = rankone.approximate("softmax", n=2, epsilon=0.005)
print(f"a grid of {close.grid.cells} is enough: error {close.error:.4f}")

# %%
# Order does not matter, to the last bit: the network sorts nothing by chance.

x = np.random.default_rng(0).random((5, 2, 1))
print(np.array_equal(close(x)[:, ::-1], close(x[:, ::-1])))
