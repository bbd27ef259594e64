"""
The proof in pictures
=====================

Why can one layer of softmax attention tell every context apart, and one layer of hardmax
attention not? Each statement of the paper gets a picture here, drawn from numbers that are
computed on the spot. :doc:`/paper` says where each is in the code.
"""

import math
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from flint import arb, ctx

import rankone
from rankone import theory

BLUE, RED, GREY = "#4477aa", "#cc6677", "#999999"
rng = np.random.default_rng(0)

# %%
# .. _picture-definition-1:
#
# Definition 1: separated tokens
# ------------------------------
#
# Tokens are vectors between two spheres, and no two are closer than epsilon. That is all that the
# proof asks of them. `rankone.theory.separation` measures the three numbers, rounded to the safe
# side.

words = rng.normal(size=(7, 2))
words *= (0.5 + rng.random((7, 1))) / np.linalg.norm(words, axis=1, keepdims=True)
apart = theory.separation(words)
print(f"r_min = {apart.r_min:.3f}, r_max = {apart.r_max:.3f}, epsilon = {apart.epsilon:.3f}")

figure, axis = plt.subplots(figsize=(4.2, 4.2), layout="constrained")
for radius in (apart.r_min, apart.r_max):
    axis.add_patch(plt.Circle((0, 0), radius, fill=False, color=GREY, ls="--"))
for word in words:
    axis.add_patch(plt.Circle(word, apart.epsilon / 2, color=BLUE, alpha=0.2, lw=0))
axis.plot(*words.T, "o", color=BLUE)
axis.plot(*words[list(apart.closest)].T, color=RED, label="epsilon")
axis.set(aspect="equal", xlim=(-1.7, 1.7), ylim=(-1.7, 1.7))
axis.legend(frameon=False, loc="upper left")

# %%
# .. _picture-theorem-1:
#
# Theorem 1: hardmax fails
# ------------------------
#
# Hardmax (eq. 5) gives all weight to the largest score. On tokens along one line a head can
# return the value of the largest token, of the smallest, or the mean of all, and nothing else.
# Two different sequences that agree in these three are one sequence to it. Here are 2,000 random
# heads on (1, 2, 5, 6) and (1, 3, 4, 6), and what softmax makes of them.

example = theory.counter_example([1.0])
first, second = example.first[:, 0], example.second[:, 0]
scales = rng.normal(size=2000)


def softmax_mean(keys, scale):
    return float(theory.softmax(scale * keys) @ keys)


def hardmax_mean(keys, scale):
    return keys[scale * keys == (scale * keys).max()].mean()


figure, axes = plt.subplots(
    1, 2, figsize=(8.5, 3.4), sharex=True, sharey=True, layout="constrained"
)
for axis, mean, name in zip(
    axes, (hardmax_mean, softmax_mean), ("hardmax", "softmax"), strict=True
):
    a, b = (np.array([mean(keys, scale) for scale in scales]) for keys in (first, second))
    axis.plot([1, 6], [1, 6], color=GREY, lw=0.8)
    axis.plot(
        a, b, "." if name == "softmax" else "o", ms=5, color=RED if name == "hardmax" else BLUE
    )
    axis.set(title=f"{name}: {np.mean(a == b):.0%} equal", xlabel="the head on (1, 2, 5, 6)")
axes[0].set_ylabel("the head on (1, 3, 4, 6)")
weights = rng.normal(size=(4, 3, 2, 1)).round(2)
print(
    theory.indistinguishable(*weights[:3], weights[3].transpose(0, 2, 1)).ok,
    "for three random heads, in fractions",
)

# %%
# .. _picture-definition-3:
#
# Definition 3: the Boltzmann operator
# ------------------------------------
#
# Softmax attention with one shared direction is a known function: boltz(a), the mean of numbers,
# each weighted by its own exponential. It is close to the maximum, but not equal to it: what it
# is short of depends on all the others.

from rankone.explanation.plots import plot_boltzmann

operator = plot_boltzmann()
a = np.array([0.0, -1.0, -3.0])
print(
    f"boltz {float(theory.boltzmann(a)):.4f}, log partition {float(theory.log_partition(a)):.4f}, "
    f"entropy {float(theory.entropy(a)):.4f}: boltz = log partition - entropy"
)

# %%
# .. _picture-lemma-1:
#
# Lemma 1: different sets, different values
# -----------------------------------------
#
# If numbers are more than 2 log n + 3 apart, boltz tells their sets apart, by more than (log n)^2
# e^(-2r). All sets of three numbers out of eight: every dot is a pair of neighbours on the line
# of values, the line is the bound. Floats do not reach down there, so the values are balls of 600
# bits.

n, count = 3, 8
step = 2 * math.log(n) + 3.01
numbers = (np.arange(count) - (count - 1) / 2) * step
sets = [numbers[[i, j, k]] for i in range(count) for j in range(i) for k in range(j)]
bound = theory.lemma1(sets)
with ctx.workprec(600):

    def ball(row):
        terms = [arb(x).exp() for x in row.tolist()]
        return sum((t * arb(x) for t, x in zip(terms, row.tolist(), strict=True)), arb(0)) / sum(
            terms, arb(0)
        )

    values = sorted((ball(row) for row in sets), key=float)
    values.sort(key=lambda value: value.mid())
    gaps = [float((b - a).log()) / math.log(10) for a, b in pairwise(values)]
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(sorted(gaps), ".", color=BLUE)
axis.axhline(float(bound.log_bound) / math.log(10), color=RED, label="the bound of Lemma 1")
axis.set(xlabel="neighbouring sets, closest first", ylabel="log10 of the distance")
axis.legend(frameon=False)
promised = float(bound.log_bound) / math.log(10)
print(f"{len(sets)} sets; closest 1e{min(gaps):.0f}, bound 1e{promised:.0f}")

# %%
# .. _picture-lemma-2:
#
# Lemma 2: one direction for all pairs
# ------------------------------------
#
# Attention of rank 1 sees the tokens along one unit vector. Is there one along which no two
# tokens fall together? A random one will do: the share that a distance keeps is rarely below
# sqrt(8 / (pi d)) / N^2. Below, the least share over all pairs of 20 tokens in 8 dimensions, for
# 2,000 random directions.

from rankone.construct.theorem2.projection import draw_directions, find_projection, measure

tokens = rng.normal(size=(20, 8))
shares = [
    measure(tokens, v, draws=1, method="sample").ratio for v in draw_directions(8, 2000, seed=0)
]
best = find_projection(tokens, draws=2000)
figure, axis = plt.subplots(figsize=(7, 2.8), layout="constrained")
axis.hist(np.log10(shares), bins=60, color=BLUE, alpha=0.7)
axis.axvline(math.log10(best.lemma_ratio), color=RED, label="what Lemma 2 asks for")
axis.axvline(math.log10(best.ratio), color="black", ls=":", label="the best one")
axis.set(xlabel="log10 of the least share of a distance", ylabel="directions")
axis.legend(frameon=False)
print(f"{np.mean(np.array(shares) >= best.lemma_ratio):.0%} of the directions will do")

# %%
# .. _picture-lemma-3:
#
# Lemma 3: scores apart
# ---------------------
#
# The same direction, with 0 as one more point, gives scores: query times key. Multiplied by a
# large enough number they are more than 2 log n + 3 apart, which is what Lemma 1 wants. On the
# left the tokens along v, on the right all scores of the smallest query.

with_zero = np.vstack([words, np.zeros((1, 2))])
v = find_projection(with_zero).v
keys = words @ v
query = np.abs(keys).min()
scale = (2 * math.log(len(words)) + 3) / (query * np.diff(np.sort(keys)).min())
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].plot(*words.T, "o", color=BLUE)
axes[0].axline((0, 0), slope=v[1] / v[0], color=GREY, lw=0.8)
for word, key in zip(words, keys, strict=True):
    axes[0].plot(*zip(word, key * v, strict=True), color=GREY, lw=0.6, ls=":")
axes[0].plot(*np.outer(keys, v).T, "|", color=RED, ms=10)
axes[0].set(aspect="equal", title="tokens, and their places along v")
scores = np.sort(scale * query * keys)
axes[1].plot(scores, np.zeros(len(scores)), "|", color=RED, ms=24)
axes[1].set(
    yticks=[], xlabel="score", title=f"least distance {np.diff(scores).min():.2f} = 2 log n + 3"
)

# %%
# .. _picture-lemma-4:
#
# Lemma 4: more below, less above
# -------------------------------
#
# Where an entry is more than log n + 1 below the maximum, raising it *lowers* boltz: the small
# entry only draws weight away from the large ones.

n = 3
x = np.linspace(-9, -1, 400)
rows = np.stack([np.zeros_like(x), np.full_like(x, -1.0), x], 1)
slope = theory.gradient(rows)[:, 2]
bend = np.array([theory.second_derivative(row)[2] for row in rows])
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for axis, curve, edge, name in (
    (axes[0], slope, math.log(n) + 1, "first derivative"),
    (axes[1], bend, math.log(n) + 3, "second derivative"),
):
    axis.axhline(0, color=GREY, lw=0.8)
    axis.axvspan(x[0], -edge, color=BLUE, alpha=0.15, lw=0)
    axis.plot(x, curve, color=BLUE)
    axis.set(xlabel="x", title=f"{name} of boltz(0, -1, x)", xlim=(x[0], x[-1]))
    axis.set_ylim(1.3 * curve.min(), -1.3 * curve.min())
axes[0].text(-8.8, -slope.min(), "Lemma 4: negative here", color=BLUE)
axes[1].text(-8.8, -bend.min(), "Lemma 5: negative here", color=BLUE)
print(theory.lemma4(rows[0], 2).ok, (slope[x < -math.log(n) - 1] < 0).all())

# %%
# .. _picture-lemma-5:
#
# Lemma 5: and bends downwards
# ----------------------------
#
# More than log n + 3 below the maximum it is concave as well, the right half of the picture
# above. So a step down by some amount gains at least what the tangent promises.

print(theory.lemma5(rows[0], 2).ok, (bend[x < -math.log(n) - 3] < 0).all())

# %%
# .. _picture-lemma-6:
#
# Lemma 6: what a fall of the last entry gains
# --------------------------------------------
#
# Lower the last entry from a_n to b_n and boltz grows. Lemma 6 says by how much at least. The
# curve is the truth, the dots are the bound.

drops = np.linspace(0.5, 12, 24)
base = np.array([0.0, -6.0, -7.5])
gains, promised = [], []
for drop in drops:
    lower = base - [0, 0, drop]
    found = theory.lemma6(base.tolist(), lower.tolist())
    promised.append(float(found.log_bound) / math.log(10))
    gains.append(math.log10(float(theory.boltzmann(lower)) - float(theory.boltzmann(base))))
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(drops, gains, color=BLUE, label="what boltz gains")
axis.plot(drops, promised, ".", color=RED, label="what Lemma 6 promises")
axis.set(xlabel="fall of the last entry", ylabel="log10")
axis.legend(frameon=False)

# %%
# .. _picture-lemma-7:
#
# Lemma 7: the first difference decides
# -------------------------------------
#
# Sort both vectors in decreasing order. Whatever comes after the first entry in which they
# differ, it cannot make up for it. The distance is above (log n)^2 e^(-D), where D is how far
# below the maximum that entry is.

depths, truth, promise = np.linspace(6.0, 24, 40), [], []
for depth in depths:
    a, b = [0.0, -depth, -depth - 14], [0.0, -depth - 7, -depth - 21]
    promise.append(float(theory.lemma7(a, b).log_bound) / math.log(10))
    with ctx.workprec(200):
        distance = abs(ball(np.array(a)) - ball(np.array(b)))
        truth.append(float(distance.log()) / math.log(10))
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(depths, truth, color=BLUE, label="the distance, about D e^(-D)")
axis.plot(depths, promise, "--", color=RED, label="Lemma 7")
axis.set(xlabel="D", ylabel="log10")
axis.legend(frameon=False)

# %%
# .. _picture-theorem-2:
#
# Theorem 2: softmax succeeds
# ---------------------------
#
# Put together: project to v, multiply, average. Left, what attention adds to six words in all
# their contexts of a toy corpus: hardmax puts many contexts on one point, softmax none. The
# constants of the proof are large, though. The second picture shows how many digits it takes to
# see the distance, from logits of order 1, where float64 is enough, to those of Lemma 1.

from rankone.construct.theorem2.embedded import embed_corpus
from rankone.explanation.context_sample import context_sample
from rankone.explanation.plots import plot_context_ids, plot_gap

toy = rankone.read_corpus("toy")
where = embed_corpus(toy, None, positions=None, causal=False, dim=2, seed=0)
sample = context_sample(toy, where)
ids = plot_context_ids(sample)
gap = plot_gap(sample)
bound = theory.theorem2(0.5, 1.5, 0.1, vocabulary=10, n=4, dim=2)
print(f"ten words: r = {bound.r:.3f}, delta = 10^{bound.log10_delta:.4g}, {bound.digits} digits")

# %%
# .. _picture-appendix-c:
#
# Remark 1 and Appendix C: masks
# ------------------------------
#
# With masks the sets have different sizes. The bound then has log n + 1 instead of (log n)^2, and
# holds for a single visible token, where Lemma 7 says nothing. Below, for n visible entries that
# are just far enough apart.

sizes = list(range(2, 41))
figure, axis = plt.subplots(figsize=(7, 3), layout="constrained")
axis.plot(sizes, [math.log(n) ** 2 for n in sizes], color=BLUE, label="(log n)^2: Lemma 7")
axis.plot(
    [1, *sizes], [math.log(n) + 1 for n in [1, *sizes]], color=RED, label="log n + 1: Appendix C"
)
axis.set(xlabel="n", ylabel="factor of e^(-D)")
axis.legend(frameon=False)
claim = theory.appendix_c([0.0, -12.0], [0.0])
print("a longer set against a shorter one:", claim.ok, f"log bound {float(claim.log_bound):.2f}")

# %%
# .. _picture-corollary-1:
#
# Corollary 1: one block memorises
# --------------------------------
#
# Each context has a number of its own now, so a function of one number is all that is missing:
# hidden units, each a step. Here is the network of the proof, with the constants of the proof, on
# three sentences, in exact arithmetic; and the staircase of the network that `rankone.memorize`
# builds for the toy corpus in float64.

from rankone.construct.theorem2.corollaries import memorize_exactly
from rankone.explanation.readout_plots import plot_staircase
from rankone.explanation.trace import staircase

small = rankone.Corpus.from_sentences(
    [(list(words), list(tags)) for words, tags in [("ab", "xy"), ("ac", "yx"), ("bc", "yy")]]
)
proved = memorize_exactly(small)
print(f"exact: {proved.contexts} contexts, {proved.digits} digits, error {proved.max_error}")
stairs = plot_staircase(staircase(rankone.memorize(toy, positions=False).model, toy))

# %%
# .. _picture-remark-2:
#
# Remark 2: how many parameters
# -----------------------------
#
# One hidden layer takes a few numbers for each of nN tokens, which is optimal up to logarithms.
# Deeper readouts take about sqrt(nN). `rankone.grow` builds networks of both kinds for 1, 2, 4, ...
# sentences, certifies each, and fits the exponents.

growth = rankone.grow(constructions=["line", "kajitsuka2024-deep"], seconds=15, most=64)
figure, axis = plt.subplots(figsize=(7, 3.2), layout="constrained")
for curve, mark in zip(growth.curves, "os^v", strict=False):
    sizes = [row.nonzero for row in curve.rows[: len(curve.contexts)]]
    axis.loglog(curve.contexts, sizes, mark + "-", label=curve.name)
    print(f"{curve.name}: grows like nN^{curve.exponents['nonzero']:.2f}")
axis.set(xlabel="contexts nN", ylabel="numbers that are not 0")
axis.legend(frameon=False)

# %%
# .. _picture-corollary-2:
#
# Corollary 2: positions
# ----------------------
#
# Sentences with repeated words have equal sets of tokens. Positional encodings move token k by k
# steps that are longer than the vocabulary is wide, so that every word at every position is a
# token of its own. The price is in the bound.

steps = np.arange(4)[:, None, None]
moved = words + steps * (2 * apart.r_max + apart.epsilon) / math.sqrt(2)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
for place, cloud in enumerate(moved):
    axes[0].plot(*cloud.T, "o", ms=4, label=f"position {place + 1}")
axes[0].set(aspect="equal")
axes[0].legend(frameon=False, fontsize=8)
lengths = range(2, 9)
digits = [
    theory.corollary2(apart.r_max, apart.epsilon, n=n, dim=2, sentences=10).digits for n in lengths
]
axes[1].semilogy(lengths, digits, "o-", color=RED)
axes[1].set(xlabel="tokens in a sentence", ylabel="digits that the bound asks for")

# %%
# Proposition 1 has a page of its own: :doc:`approximate_a_function`. What Definition 2 means for
# given weights is :doc:`what_a_certificate_means`.
