"""Which axes are which: torch's layout, masks of one axis, and what is no tensor at all."""

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from kernels.attention_problems import unchecked
from rankone.errors import AttentionError
from rankone.kernels import rank1_attention, rank1_attention_ragged
from rankone.nn import Rank1Attention

each_method = pytest.mark.parametrize("method", ["auto", "direct", "linear"])


def gaussian(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


@each_method
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", [(4, 7, 1), (1, 7, 1), (2, 3, 7, 1), (1, 2, 1)])
def test_the_layout_of_torch_is_refused_and_the_remedy_is_right(shape, causal, method):
    given = gaussian(3, *shape)
    with pytest.raises(AttentionError, match="one token each") as caught:
        rank1_attention(*given, causal=causal, method=method)
    assert str(shape) in caught.value.what
    assert "query.squeeze(-1), key.squeeze(-1), value.squeeze(-1)" in caught.value.remedy
    found = rank1_attention(*given.squeeze(-1), causal=causal, method=method)
    expected = scaled_dot_product_attention(*given, is_causal=causal, scale=1.0)
    torch.testing.assert_close(found, expected.squeeze(-1))


@pytest.mark.parametrize("batched", ["query", "key"])
def test_that_layout_is_refused_if_one_part_has_the_batch(batched):
    given = {"query": gaussian(7, 1), "key": gaussian(7, 1), "value": gaussian(7, 1)}
    given[batched] = gaussian(4, 7, 1)
    with pytest.raises(AttentionError, match="one token each"):
        rank1_attention(**given)


@each_method
def test_a_column_that_may_be_a_batch_gets_a_warning(method):
    y, x, u = gaussian(3, 7, 1)
    with pytest.warns(UserWarning, match=r"7 sequences of one token each.*squeeze\(-1\)"):
        assert torch.equal(rank1_attention(y, x, u, method=method), u)


def test_the_warning_points_to_who_called():
    with pytest.warns(UserWarning, match="one token each") as caught:
        unchecked()(*gaussian(3, 7, 1))
    assert caught[0].filename == __file__


@each_method
@pytest.mark.parametrize("shape", [(7, 1), (4, 7, 1)])
def test_sequences_of_one_token_are_to_be_had(shape, method):
    y, x, u = gaussian(3, *shape)
    given = {"method": method}
    assert torch.equal(rank1_attention(y, x, u.unsqueeze(-1), **given), u.unsqueeze(-1))
    lengths = torch.ones(shape[:-1], dtype=torch.int64)
    assert torch.equal(rank1_attention(y, x, u, lengths=lengths, **given), u)
    mask = torch.ones(*shape, 1, dtype=torch.bool)
    assert torch.equal(rank1_attention(y, x, u, mask=mask, **given), u)


FINE = {
    "one token": ((1,), (1,), (1,)),
    "one row of one token": ((1, 1), (1, 1), (1, 1)),
    "one query": ((4, 7, 1), (4, 7, 5), (4, 7, 5)),
    "one key": ((4, 7, 5), (4, 7, 1), (4, 7, 1)),
    "one key and value for all": ((4, 7, 1), (1,), (1,)),
    "rows that broadcast": ((4, 7, 1), (4, 1, 1), (4, 1, 1)),
    "no rows": ((0, 1), (0, 1), (0, 1)),
}


@pytest.mark.parametrize("shapes", FINE.values(), ids=FINE)
def test_other_axes_of_length_1_pass_without_a_word(shapes):
    query, key, value = (gaussian(*shape) for shape in shapes)
    assert rank1_attention(query, key, value).shape[-1] == shapes[0][-1]


def test_modules_and_ragged_columns_may_have_sentences_of_one_token():
    z = gaussian(5, 1, 3)
    layer = Rank1Attention(3, dtype=torch.float64)
    torch.testing.assert_close(layer(z), z + (z @ layer.v1).unsqueeze(-1) * layer.output)
    query, key, value = gaussian(3, 4).numpy()
    found = rank1_attention_ragged(query, key, value, np.arange(5))
    np.testing.assert_array_equal(found, value)


@each_method
def test_the_axis_of_head_size_beside_vectors_is_refused_with_the_remedy(method):
    y, x, u = gaussian(4, 7, 1), gaussian(4, 7, 1), gaussian(4, 7, 3)
    with pytest.raises(AttentionError) as caught:
        unchecked()(y, x, u, method=method)
    assert "squeeze(-1)" in caught.value.remedy


@each_method
@pytest.mark.parametrize("channels", [(), (2,)])
def test_padding_of_one_sequence_may_have_one_axis(channels, method):
    y, x, u = gaussian(5), gaussian(7, seed=1), gaussian(7, *channels, seed=2)
    there = torch.tensor([True, False, True, True, False, True, False])
    given = {"method": method}
    found = rank1_attention(y, x, u, mask=there, **given)
    assert torch.equal(found, rank1_attention(y, x, u, mask=there[None], **given))
    torch.testing.assert_close(found, rank1_attention(y, x[there], u[there], **given))
    both = rank1_attention(y, x, u, mask=there, lengths=torch.tensor(4), **given)
    first = (there & (torch.arange(7) < 4))[None]
    assert torch.equal(both, rank1_attention(y, x, u, mask=first, **given))


@each_method
def test_padding_of_a_batch_needs_an_axis_of_queries(method):
    y, x, u = gaussian(3, 7), gaussian(3, 7, seed=1), gaussian(3, 7, seed=2)
    there = gaussian(3, 7, seed=3) > -1
    with pytest.raises(AttentionError) as caught:
        unchecked()(y, x, u, mask=there, method=method)
    assert "mask.unsqueeze(-2)" in caught.value.remedy
    found = rank1_attention(y, x, u, mask=there.unsqueeze(-2), method=method)
    for i in range(3):
        alone = rank1_attention(y[i], x[i], u[i], mask=there[i], method=method)
        torch.testing.assert_close(found[i], alone)


@each_method
def test_strides_do_not_matter(method):
    """To the last bit, though torch adds up strided numbers in another order."""
    y, x, u = gaussian(300, 8).T, gaussian(301, 8, seed=1).T, gaussian(4, 301, 8, seed=2)
    u = u.permute(2, 1, 0)
    whole = (part.contiguous() for part in (y, x, u))
    assert torch.equal(
        rank1_attention(y, x, u, method=method), rank1_attention(*whole, method=method)
    )


@pytest.mark.parametrize("name", ["query", "key", "value", "mask", "lengths"])
@pytest.mark.parametrize("make", [list, np.array], ids=["list", "array"])
def test_what_is_no_tensor_is_named(name, make):
    given = {"query": gaussian(2), "key": gaussian(2), "value": gaussian(2)}
    given[name] = make([1.0, 2.0])
    with pytest.raises(AttentionError, match=f"{name} is of type") as caught:
        unchecked()(**given)
    assert "as_tensor" in caught.value.remedy


@pytest.mark.parametrize("name", ["query", "value"])
def test_what_is_not_dense_is_named(name):
    given = {"query": gaussian(2), "key": gaussian(2), "value": gaussian(2)}
    given[name] = gaussian(2).to_sparse()
    with pytest.raises(AttentionError, match=f"{name} is a tensor of layout torch.sparse_coo"):
        unchecked()(**given)


@each_method
def test_numbers_of_one_byte_are_refused(method):
    parts = (x.to(torch.float8_e4m3fn) for x in gaussian(3, 2))
    with pytest.raises(AttentionError, match=r"numbers of type torch\.float8_e4m3fn"):
        unchecked()(*parts, method=method)


def test_the_shapes_in_a_message_are_those_that_were_given():
    with pytest.raises(AttentionError, match=r"value \(7,\)"):
        unchecked()(gaussian(5), gaussian(6), gaussian(7))
    with pytest.raises(AttentionError, match=r"value \(7, 2\)"):
        unchecked()(gaussian(5), gaussian(6), gaussian(7, 2))
