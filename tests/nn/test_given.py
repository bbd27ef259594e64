"""Networks from given tensors: the same parameters as those that are drawn, none of them copied."""

from __future__ import annotations

import pytest

import networks
from rankone.nn import Network, TokenClassifier


@pytest.mark.parametrize("shape", networks.SHAPES, ids=str)
def test_a_network_of_tensors(shape: Network) -> None:
    drawn = TokenClassifier(shape)
    tensors = {name: p.detach() for name, p in drawn.named_parameters()}
    assert shape.parameter_shapes() == {name: tuple(t.shape) for name, t in tensors.items()}
    given = TokenClassifier.of(shape, tensors)
    assert given.shape == shape
    assert str(given) == str(drawn)  # the same modules, the sizes of the head among them
    for name, parameter in given.named_parameters():
        assert parameter.data_ptr() == tensors[name].data_ptr()
        assert parameter.requires_grad
    for block, other in zip(given.blocks, drawn.blocks, strict=True):
        assert getattr(block.attention, "kind", None) == getattr(other.attention, "kind", None)
