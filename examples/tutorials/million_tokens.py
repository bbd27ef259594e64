"""
Attention over a million tokens
===============================

With head size 1 (eq. 20 of the paper) the score of two tokens is a product of two numbers, and
softmax attention no longer costs n^2. `rankone.rank1_attention` computes the same sums in linear
time.
"""

import time

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import scaled_dot_product_attention

import rankone

torch.manual_seed(0)


def draw(n, dtype=torch.float64):
    return torch.randn(3, n, dtype=dtype)


query, key, value = draw(1_000_000)
rankone.rank1_attention(query, key, value)  # the first call compiles; later ones load that
began = time.perf_counter()
out = rankone.rank1_attention(query, key, value)
print(f"a million tokens in {time.perf_counter() - began:.2f} s: a table would have 10^12 weights")

# %%
# Is it right?
# ------------
#
# For a few of the queries, take the sums as they are written.

chosen = torch.randint(len(query), (50,))
weights = torch.softmax(query[chosen, None] * key, -1)
print(f"largest difference {(weights @ value - out[chosen]).abs().max():.1e}")

# %%
# Gradients
# ---------
#
# The backward pass is as fast. Here is the derivative of the sum of squares with respect to a
# million keys.

key.requires_grad_()
began = time.perf_counter()
rankone.rank1_attention(query, key, value).square().sum().backward()
took = time.perf_counter() - began
print(f"forward and backward in {took:.2f} s, |gradient| = {key.grad.norm():.3g}")
key.requires_grad_(False)

# %%
# How it grows
# ------------
#
# `torch.nn.functional.scaled_dot_product_attention` with head size 1 does the same in n^2 steps.
# It runs in float32 here, the linear way in float64.


def seconds(function):
    times = []
    for _ in range(3):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


linear, table = {}, {}
for n in (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000):
    y, x, u = draw(n)
    linear[n] = seconds(lambda y=y, x=x, u=u: rankone.rank1_attention(y, x, u))
    if n <= 16_000:
        q, k, v = (row.float().reshape(1, 1, -1, 1) for row in (y, x, u))
        table[n] = seconds(lambda q=q, k=k, v=v: scaled_dot_product_attention(q, k, v, scale=1.0))

figure, axis = plt.subplots(figsize=(7, 3.6), layout="constrained")
axis.loglog(
    list(linear), list(linear.values()), "o-", color="#4477aa", label="rank1_attention, float64"
)
axis.loglog(
    list(table),
    list(table.values()),
    "s-",
    color="#cc6677",
    label="scaled_dot_product_attention, float32",
)
axis.set(xlabel="tokens", ylabel="seconds")
axis.legend(frameon=False)

# %%
# What the curve costs in digits
# ------------------------------
#
# Attention is a function of the query alone: a weighted mean of the values, in which large
# queries look at the largest keys. This is what is evaluated, here at queries on a line.

line = torch.linspace(-6, 6, 400, dtype=torch.float64)
few = draw(2_000)
curve = rankone.rank1_attention(line, few[1], few[2])
exact = torch.softmax(line[:, None] * few[1], -1) @ few[2]
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 4.4), sharex=True, layout="constrained")
above.plot(line, curve, color="#4477aa")
above.set(ylabel="attention")
below.semilogy(line, (curve - exact).abs().clamp_min(1e-18), ".", ms=3, color="#cc6677")
below.set(xlabel="query", ylabel="difference", ylim=(1e-18, 1e-10))

# %%
# :doc:`/attention` explains the five steps and bounds the error.
