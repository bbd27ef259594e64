"""The kinds of layers: drawn, made from given tensors without a copy, written out, taken apart."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
from torch import Tensor

import dense_truth
import networks
from rankone import choices
from rankone.nn import Architecture, TokenClassifier
from rankone.nn.kinds import ATTENTIONS, FEEDFORWARDS
from rankone.nn.layers import Head


@pytest.mark.parametrize("shape", networks.SHAPES, ids=str)
def test_a_network_of_tensors(shape: Architecture) -> None:
    drawn = TokenClassifier(shape)
    tensors = {name: p.detach() for name, p in drawn.named_parameters()}
    assert shape.parameter_shapes() == {name: tuple(t.shape) for name, t in tensors.items()}
    given = TokenClassifier.of(shape, tensors)
    assert given.shape == shape
    assert str(given) == str(drawn)  # the same modules, the sizes of the head among them
    for name, parameter in given.named_parameters():
        assert parameter.data_ptr() == tensors[name].data_ptr()
        assert parameter.requires_grad == parameter.is_floating_point()
    for block, other in zip(given.blocks, drawn.blocks, strict=True):
        assert getattr(block.attention, "kind", None) == getattr(other.attention, "kind", None)


TABLES = [
    (ATTENTIONS, choices.Attention, "attention"),
    (FEEDFORWARDS, choices.FeedForward, "feedforward"),
]


@pytest.mark.parametrize(("table", "names", "field"), TABLES, ids=["attention", "feedforward"])
def test_the_tables_hold_the_names_there_are_to_choose_from(
    table: dict[str, Any], names: Any, field: str
) -> None:
    assert tuple(table) == get_args(names)
    for name, kind in table.items():
        shape = dense_truth.sized(Architecture(5, 2, dim=4, hidden=6, **{field: name}))
        layer = kind.draw(shape, torch.float32)
        assert {n: tuple(p.shape) for n, p in layer.named_parameters()} == kind.shapes(shape)
        assert {p.dtype for p in layer.parameters()} <= {torch.float32, torch.int64}
        assert layer.settings[field] == name
        assert {n: layer.settings[n] for n in kind.takes} == {
            n: getattr(shape, n) for n in kind.takes
        }


@pytest.mark.parametrize("shape", networks.SHAPES, ids=str)
def test_what_is_written_out_says_what_it_is(shape: Architecture) -> None:
    """The expanded network can be made again from its own description and tensors."""
    full = TokenClassifier(shape).expand()
    tensors = {name: p.detach() for name, p in full.named_parameters()}
    assert full.shape.parameter_shapes() == {name: tuple(t.shape) for name, t in tensors.items()}
    again = TokenClassifier.of(full.shape, tensors)
    ids = torch.tensor([[0, 3, 3, 1]])
    assert torch.equal(again(ids), full(ids))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_heads_are_the_matrices_of_eq_2(name: str) -> None:
    layer = ATTENTIONS[name].draw(
        Architecture(5, 2, dim=4, hidden=6, attention=name, heads=2, head_size=3), torch.float64
    )
    dense_truth.randomize(layer, 1)
    z = torch.randn(5, 4, dtype=torch.float64)
    matrices = [head.map(Tensor.numpy) for head in layer.heads]
    parts = zip(*((h.output, h.value, h.key, h.query) for h in matrices), strict=True)
    sigma = getattr(dense_truth, layer.kind)
    found = dense_truth.self_attention(z.numpy().T, *parts, sigma)
    dense_truth.assert_close(layer(z), found.T)


def test_a_head_keeps_what_it_shares() -> None:
    key = [1]
    assert Head(key, [2], key, [3]).map(list).shared
    assert not Head(key, [2], [1], [3]).map(list).shared
    assert Head("k", "q", "v", "o").map(str.upper) == Head("K", "Q", "V", "O")
