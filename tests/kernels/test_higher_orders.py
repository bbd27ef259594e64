"""Derivatives of second and third order, against those of the table of scores."""

import pytest
import torch
from torch.autograd import grad, gradgradcheck

from rankone.kernels import rank1_attention
from rankone.kernels.compiled import batch

each_form = pytest.mark.parametrize("causal", [False, True])


def drawn(rows, q, n, c, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((rows, q), (rows, n), (rows, n, c))
    return [
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    ]


@each_form
def test_second_derivatives_agree_with_differences(causal, monkeypatch):
    monkeypatch.setattr(batch, "LEAF", 1)
    mask = torch.tensor([[[True, True, False]], [[False, True, True]]])

    def attend(query, key, value):
        return rank1_attention(query, key, value, causal=causal, mask=mask, method="linear")

    assert gradgradcheck(attend, drawn(2, 2, 3, 2))


@each_form
@pytest.mark.parametrize("scale", [0.1, 100.0])
def test_derivatives_of_three_orders_agree_with_the_table(causal, scale, monkeypatch):
    """The gradient that comes in depends on the inputs too, as it does in a real loss."""
    monkeypatch.setattr(batch, "LEAF", 20)
    query, key, value = drawn(1, 50, 45, 1, seed=1)
    found = {}
    for method in ("linear", "direct"):
        out = rank1_attention(scale * query, key, value, causal=causal, method=method)
        first = grad(out.square().sum(), (query, key, value), create_graph=True)
        second = grad(sum(x.pow(3).sum() for x in first), (query, key, value), create_graph=True)
        third = grad(sum(x.square().sum() for x in second), (query, key, value))
        found[method] = (*first, *second, *third)
    for linear, direct in zip(found["linear"], found["direct"], strict=True):
        assert (linear - direct).abs().max() <= 1e-11 * direct.abs().max()
