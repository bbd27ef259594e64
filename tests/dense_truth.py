"""The paper's equations, evaluated as they stand: numpy, d x n, tokens as columns, in float64.

A mask M is boolean and M[k, l] is True where query k may attend to key l: the matrix C of eq. 132
is 0 at [l, k] there and -inf elsewhere. A query that may attend to nothing adds nothing.

Nothing is imported from the package. The functions ending in ``_of`` read the parameters of a
module, by their names, and put them into the equation that the module stands for.
"""

from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import torch

# The one place where tolerances are stated. Relative and absolute, for numbers of about size 1.
TOLERANCE = {torch.float64: 1e-11, torch.float32: 2e-5}


# Section 2.1: the nonlinearities.


def softmax(a):
    weights = np.exp(a - a.max())
    return weights / weights.sum()


def hardmax(a):
    largest = a == a.max()
    return largest / largest.sum()


def relu(a):
    return np.maximum(a, 0.0)


def column_wise(sigma, A, M=None):
    """sigma of the column of every query k, over the keys that k may attend to."""
    weights = np.zeros_like(A)
    for k in range(A.shape[1]):
        seen = np.full(len(A), True) if M is None else M[k]
        if seen.any():
            weights[seen, k] = sigma(A[seen, k])
    return weights


# Equations 2 to 5 and 20.


def self_attention(Z, WO, WV, WK, WQ, sigma=softmax, M=None):
    """Eq. 2, and eq. 5 where sigma is hardmax; the matrices of head i are WO[i] and so on."""
    out = Z.copy()
    for i in range(len(WO)):
        A = (WK[i] @ Z).T @ (WQ[i] @ Z)
        out += WO[i] @ (WV[i] @ Z) @ column_wise(sigma, A, M)
    return out


def rank1_attention(Z, v1, v2, WO, M=None):
    """Eq. 20, all three vectors as columns."""
    A = (v1.T @ Z).T @ (v2.T @ Z)
    return Z + WO @ (v1.T @ Z) @ column_wise(softmax, A, M)


def feed_forward(H, W1, b1, W2, b2):
    """Eq. 3."""
    out = np.empty_like(H)
    for k in range(H.shape[1]):
        out[:, k] = H[:, k] + W2 @ relu(W1 @ H[:, k] + b1) + b2
    return out


def boltzmann(query, key, value, M=None):
    """sum_l value_l e^(y_k x_l) / sum_l e^(y_k x_l) for every query k, to 60 digits."""
    y, x, u = ([Decimal(float(number)) for number in column] for column in (query, key, value))
    out = np.zeros(len(y))
    with localcontext(prec=60):
        for k in range(len(y)):
            seen = [i for i in range(len(x)) if M is None or M[k, i]]
            if seen:
                highest = max(y[k] * x[i] for i in seen)
                weights = {i: (y[k] * x[i] - highest).exp() for i in seen}
                out[k] = sum(weights[i] * u[i] for i in seen) / sum(weights.values())
    return out


# The same for the parameters of a module.


def parameters(module):
    """Weights in float64; indices stay whole numbers."""
    named = ((name, p.detach()) for name, p in module.named_parameters())
    return {name: (p.double() if p.is_floating_point() else p).numpy() for name, p in named}


def attention_of(layer, Z, M=None):
    p = parameters(layer)
    if "v1" in p:
        return rank1_attention(Z, p["v1"][:, None], p["v2"][:, None], p["output"][:, None], M)
    sigma = {"softmax": softmax, "hardmax": hardmax}[layer.kind]
    return self_attention(Z, p["output"], p["value"], p["key"], p["query"], sigma, M)


def feedforward_of(layer, H, _=None):
    p = parameters(layer)
    if "gain" in p:
        W1, W2 = np.outer(p["gain"], p["direction"]), np.outer(p["out_direction"], p["out_gain"])
        return feed_forward(H, W1, p["bias1"], W2, p["bias2"])
    if "gates" in p:
        return feed_forward(H, *gated_matrices(p), np.zeros(len(H)))
    return feed_forward(H, p["weight1"], p["bias1"], p["weight2"], p["bias2"])


def gated_matrices(p):
    """W1, b1 and W2 of a gated layer, unit by unit."""
    q, d = len(p["word"]), p["gates"].shape[1]
    W1, W2 = np.zeros((q, d)), np.zeros((d, q))
    for j in range(q):
        w, k = p["word"][j], p["position"][j]
        W1[j] = p["penalty"][j] * (p["gates"][w] + p["gates"][k])
        for i, v in zip(p["reads"], p["slopes"][j], strict=True):
            W1[j, i] += v
        o = p["amplitude"][j] * (p["codes"][p["plus"][j]] - p["codes"][p["minus"][j]])
        for i, value in zip(p["writes"], o, strict=True):
            W2[i, j] += value
    return W1, p["bias1"], W2


def block_of(block, Z, M=None):
    """Eq. 4."""
    return feedforward_of(block.feedforward, attention_of(block.attention, Z, M))


def embedding_of(network, ids, _=None):
    """One sentence: column k is the row of its k-th token, plus the k-th row of positions."""
    p = parameters(network)
    Z = np.stack([p["table"][i] for i in ids], axis=1)
    if "positions" in p:
        Z += p["positions"][: len(ids)].T
    return Z


def features_of(network, ids, M=None):
    Z = embedding_of(network, ids)
    for block in network.blocks:
        Z = block_of(block, Z, M)
    return Z


def logits_of(network, ids, M=None):
    p = parameters(network)
    return p["head.weight"] @ features_of(network, ids, M) + p["head.bias"][:, None]


# Comparing modules, which take batches with tokens as rows, with the above.


def by_sentence(truth, module, z, mask=None):
    """The truth for every sentence of a batch, tokens as rows again."""
    *batch, n, d = z.shape
    Zs = z.detach().double().numpy().reshape(-1, n, d)
    if mask is None:
        mask = torch.ones(n, n, dtype=torch.bool)
    Ms = mask.expand(*batch, n, n).numpy().reshape(-1, n, n)
    rows = [truth(module, Z.T, M).T for Z, M in zip(Zs, Ms, strict=True)]
    return np.stack(rows).reshape(z.shape)


def assert_close(actual, expected, dtype=None):
    """Equal up to the rounding of `dtype`, by default that of `actual`, which is never NaN."""
    actual, expected = torch.as_tensor(actual).detach(), torch.as_tensor(expected).detach()
    tolerance = TOLERANCE[dtype or actual.dtype]
    torch.testing.assert_close(
        actual.double(), expected.double(), rtol=tolerance, atol=tolerance, equal_nan=False
    )


@torch.no_grad()
def randomize(module, seed):
    """Every parameter random: many start as 0 or 1, which would hide a bias or a gain left out."""
    generator = torch.Generator().manual_seed(seed)
    for p in module.parameters():
        if p.is_floating_point():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=torch.float64) / 2)
    for layer in module.modules():
        if hasattr(layer, "gates"):
            point(layer, generator)
    return module


def point(layer, generator):
    """Random indices of a gated layer, each within what it counts; row 0 of the gates is 0."""
    layer.gates[:1] = 0
    rows, dim = len(layer.gates), layer.gates.shape[1]
    counts = {"reads": dim, "writes": dim, "plus": len(layer.codes), "minus": len(layer.codes)}
    for name in ("word", "position", "plus", "minus", "reads", "writes"):
        p = getattr(layer, name)
        p.copy_(torch.randint(max(1, counts.get(name, rows)), p.shape, generator=generator))


GATED = {"gates": 4, "reads": 2, "writes": 3, "codes": 4}  # sizes of a small layer


def sized(shape):
    """The shape of a network; one with gated layers that has no sizes gets those above."""
    return replace(shape, **GATED) if shape.feedforward == "gated" and not shape.gates else shape


def random_mask(*shape, seed):
    """Boolean, with a query here and there that sees nothing."""
    generator = torch.Generator().manual_seed(seed)
    mask = torch.rand(shape, generator=generator) < 0.6
    return mask & (torch.rand(*shape[:-1], 1, generator=generator) < 0.8)
