"""Heads of codes and distributions: which label leads, and by how much at least."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from rankone.nn.mixed_codes import MixedCodes, packed

CODES = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1]], float)
MIXED = np.array([[64.0, 0], [63.5, 62.25], [0, 64.0], [0, 0]])
SHARP = 8.0


def head(codes=CODES, mixed=MIXED, sharp=SHARP):
    """Coordinates 1 and 4 of 8 are read by nobody; those of codes and distributions alternate."""
    found = nn.Linear(8, len(codes), dtype=torch.float64)
    with torch.no_grad():
        found.weight[:] = 0.0
        found.weight[:, [0, 2, 5, 7]] = torch.from_numpy(2 * sharp * codes)
        found.weight[:, [3, 6]] = torch.from_numpy(mixed)
        found.bias[:] = torch.from_numpy(-sharp * codes.sum(1))
    return found


def features(y, z):
    found = np.zeros((8, y.shape[1]))
    found[[0, 2, 5, 7]], found[[3, 6]] = y, z
    return found


def logits(found, y, z):
    return found(torch.from_numpy(features(y, z).T)).detach().numpy().T


def test_what_a_head_is_made_of():
    found = MixedCodes.of(head())
    assert found.at.tolist() == [0, 2, 5, 7]
    assert found.own.tolist() == [3, 6]
    assert found.sharp == SHARP
    assert found.codes.tolist() == CODES.tolist()
    assert found.leader.tolist() == [0, 2]
    assert found.lead.tolist() == [0.5, 1.75]
    assert found.range.tolist() == [64.0, 64.0]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda h: h.bias[0].add_(1e-9),
        lambda h: h.weight[0, 0].mul_(1 + 1e-12),
        lambda h: h.weight[3].copy_(h.weight[2]),
        lambda h: h.weight[0, 3].fill_(63.5),  # two labels lead
        lambda h: h.weight[0, 5].fill_(16.0),  # three ones
    ],
)
def test_other_heads(spoil):
    found = head()
    with torch.no_grad():
        spoil(found)
    assert MixedCodes.of(found) is None


def test_two_labels_that_share_most_of_their_codes():
    """A coordinate may be a one in all codes; a distribution over all labels has no zeros."""
    codes = np.array([[1, 1, 0, 0], [1, 0, 1, 0]], float)
    found = MixedCodes.of(head(codes, np.array([[63.5, 0], [63.25, 0]])))
    assert found.at.tolist() == [0, 2, 5]
    assert found.own.tolist() == [3]
    assert found.leader.tolist() == [0]


def test_the_lead_is_never_overrated():
    """At random features near codes and distributions, and far from them."""
    rng = np.random.default_rng(0)
    linear, count = head(), 4000
    codes = MixedCodes.of(linear)
    y, z = CODES[rng.integers(4, size=count)].T, np.zeros((2, count))
    mixed = rng.random(count) < 0.5
    y[:, mixed] = 0.0
    z[rng.integers(2, size=mixed.sum()), np.flatnonzero(mixed)] = 1.0
    size = 10.0 ** rng.uniform(-7, 0, count)
    y = y + size * rng.uniform(-1, 1, y.shape)
    z[:, mixed] += (size * rng.uniform(-1, 1, z.shape))[:, mixed]
    labels, known = codes.nearest(y, z)
    off = codes.away(y, z, labels)
    found = logits(linear, y, z)
    assert codes.logits(y, z) == pytest.approx(found, abs=1e-10)
    sure = known & (off < 0.5)
    assert 500 < sure[mixed].sum() < mixed.sum()
    assert 500 < sure[~mixed].sum() < (~mixed).sum()
    assert (found.argmax(0) == labels)[sure].all()
    own = found[labels, np.arange(count)]
    found[labels, np.arange(count)] = -np.inf
    lead = np.full(count, 2 * SHARP)
    tokens, which = codes.mixtures(z)
    lead[tokens] = codes.lead[which]
    left = own - found.max(0)
    assert (left >= lead * (1 - 2 * off) - 1e-9)[sure].all()
    assert codes.away(y, z, (labels + 1) % 4)[mixed & sure].min() == np.inf


def test_every_bit_of_a_code_counts():
    bits = np.random.default_rng(1).integers(0, 2, (62, 300)).astype(float)
    assert len(set(packed(bits).tolist())) == 300
    for i in range(62):
        other = bits[:, :1].copy()
        other[i] = 1 - other[i]
        assert packed(other)[0] != packed(bits[:, :1])[0]


def test_without_distributions_that_nobody_has_a_share_of():
    """The labels, and how far off, are those of the whole head."""
    whole = MixedCodes.of(head())
    rng = np.random.default_rng(5)
    z = np.zeros((len(whole.own), 40))
    z[-1] = rng.random(40) * (rng.random(40) < 0.5)
    y = rng.random((len(whole.at), 40)) * (rng.random(40) < 0.5)
    kept = z.any(1)
    some, rest = whole.among(kept), z[kept]
    assert (len(some.own), kept.sum()) == (1, 1)
    labels = whole.nearest(y, z)[0]
    assert (some.nearest(y, rest)[0] == labels).all()
    assert some.away(y, rest, labels) == pytest.approx(whole.away(y, z, labels))
    assert some.logits(y, rest) == pytest.approx(whole.logits(y, z))
    assert some.terms(y, rest) == pytest.approx(whole.terms(y, z))
