"""The linear-time algorithm in torch operations against the table of all scores."""

import math
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rankone.kernels.direct import direct_attention
from rankone.kernels.portable import batch, factored_weights, partition, placement, weight_table
from rankone.kernels.portable.factored_weights import SIZE, FactoredWeights

each_order = pytest.mark.parametrize("causal", [False, True], ids=["whole", "causal"])


@pytest.fixture(autouse=True)
def one_thread():
    """The tables of these tests are small: several threads would mostly wait for each other."""
    count = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(count)


@pytest.fixture
def cells(monkeypatch):
    """Cells are used however few points there are, and causal rows are cut into short ranges."""
    monkeypatch.setattr(partition, "PAIR_COST", 0)
    monkeypatch.setattr(partition, "LEAF", 20)


def forward(*given):
    """Of query, key, value, there and causal."""
    return batch.forward(given[:4], given[4])


def backward(grad, *given):
    """Of the gradient, then query, key, value, there, out, total and causal."""
    return batch.backward(grad, given[:4], *given[4:])


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def row(*entries):
    return torch.tensor([entries], dtype=torch.float64)


def problem(R=2, q=50, n=45, c=2, scale=1.0):
    """Query, key and value; the scores are of about this size."""
    return scale * normal(R, q), normal(R, n, seed=1), normal(R, c, n, seed=2)


def errors(query, key, value, there=None, causal=False):
    """Of out and the gradients, each relative to the size of what it is a sum of."""
    grad = normal(*value.shape[:2], query.shape[1], seed=3).to(query.dtype)
    out, total = forward(query, key, value, there, causal)
    found = backward(grad, query, key, value, there, out, total, causal)
    for given_, result in zip((query, key, value), found, strict=True):
        assert result.shape == given_.shape
        assert result.dtype == given_.dtype

    y, x, u = parts = [part.double().requires_grad_() for part in (query, key, value)]
    mask = None if there is None else there.unsqueeze(1)
    exact = direct_attention(y, x, u.mT, causal=causal, mask=mask).mT
    wanted = torch.autograd.grad(exact, parts, grad.double())

    y, x, u, g = (part.detach().abs().double() for part in (*parts, grad))
    size = u.amax()
    reach = torch.minimum(x.amax(), 1 / y)  # beyond, weights are too small to matter
    scales = size, size * g.amax() * reach, size * g.amax() * y.amax(), wanted[2].abs().amax()
    pairs = zip((out, *found), (exact.detach(), *wanted), scales, strict=True)
    return [((a - b).abs() / scale.clamp_min(1e-300)).amax().item() for a, b, scale in pairs]


SCALES = [0.0, 1e-300, 1.0, 30.0, 1e3, 1e9, 1e100, 1e290]


@each_order
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.usefixtures("cells")
def test_scores_of_every_size(scale, causal):
    query, key, value = problem(scale=scale)
    assert max(errors(query, key, value, causal=causal)) < 1e-12


@each_order
@pytest.mark.parametrize("scale", [30.0, 1e9, 1e306])
@pytest.mark.usefixtures("cells")
def test_points_in_all_octaves(scale, causal):
    query, key, value = problem(q=25, n=15)
    query = scale * query.sign() * scale ** -torch.linspace(0, 1, 25).double()
    key = torch.tensor([[1.0], [-1.0]]) * scale ** -torch.linspace(1, 0, 15).double()
    key[:, 0] = 0.0  # the end that all distances are from, for one sign of the query
    assert max(errors(query, key, value, causal=causal)) < 1e-12


KEYS = {
    "one dominates": lambda x: torch.cat([x[:, :-1], 50 + x[:, -1:]], 1),
    "all equal": lambda x: torch.full_like(x, 3.7),
    "clusters": lambda x: 5 + 1e-9 * x - 3.0 * (torch.arange(x.shape[1]) % 3 == 0),
    "huge": lambda x: x * (8e307 / x.abs().amax()),
    "tiny": lambda x: 1e-300 * x,
}


@each_order
@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("keys", KEYS.values(), ids=KEYS)
@pytest.mark.usefixtures("cells")
def test_keys_of_every_kind(keys, scale, causal):
    query, key, value = problem(q=30, n=27, scale=scale)
    key = keys(key)
    query = query / key.abs().amax()
    assert max(errors(query, key, value, causal=causal)) < 1e-12


@each_order
@pytest.mark.parametrize(
    ("R", "q", "n", "c"),
    [(1, 1, 1, 1), (3, 50, 1, 1), (2, 1, 50, 3), (1, 33, 90, 0), (2, 90, 33, 1)],
)
@pytest.mark.usefixtures("cells")
def test_shapes(R, q, n, c, causal):
    query, key, value = problem(R, q, n, c, scale=20.0)
    assert forward(query, key, value, None, causal)[0].shape == (R, c, q)
    if c:
        assert max(errors(query, key, value, causal=causal)) < 1e-12


@each_order
@pytest.mark.parametrize(("q", "n"), [(0, 5), (5, 0)])
def test_nothing_to_attend(q, n, causal):
    query, key, value = problem(q=q, n=n)
    out, total = forward(query, key, value, None, causal)
    grads = backward(out, query, key, value, None, out, total, causal)
    assert out.shape == (2, 2, q)
    assert not any(x.any() for x in (out, total, *grads))


@each_order
@pytest.mark.usefixtures("cells")
def test_keys_that_are_not_there_are_ignored(causal):
    query, key, value = problem(R=3, scale=5e10)
    there = normal(3, 45, seed=4) > 0
    there[0, :20] = False  # who comes first sees nothing, if causal
    there[1] = False
    key, value = (1e-10 * key).where(there, 0.0), value.where(there.unsqueeze(1), 0.0)
    assert max(errors(query, key, value, there, causal)) < 1e-12

    grad = normal(3, 2, 50, seed=3)
    out, total = forward(query, key, value, there, causal)
    grads = backward(grad, query, key, value, there, out, total, causal)
    assert not out[1].any()
    assert not total[1].any()
    assert not grads[1][~there].any()
    assert not grads[2].mT[~there].any()

    key, value = key.where(there, 1e300), value.where(there.unsqueeze(1), 1e300)
    assert torch.equal(forward(query, key, value, there, causal)[0], out)
    again = backward(grad, query, key, value, there, out, total, causal)
    assert all(torch.equal(a, b) for a, b in zip(again, grads, strict=True))


@each_order
@pytest.mark.usefixtures("cells")
def test_scores_beyond_all_floats_leave_the_extreme_keys(causal):
    query, key, value = problem()
    out, to_query, *others = errors(1e300 * query, 1e100 * key, value, causal=causal)
    assert max(out, *others) < 1e-12
    assert 1e-300 * to_query < 1e-12  # it is 0; queries are cut off, so not relative to 1 / y


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.usefixtures("cells")
def test_scores_count_until_all_of_them_together_are_beyond_rounding(sign):
    """Query and key lie where octaves begin, and are so many, of either, that with a score of 45
    each they make e^-39 together: the cutoff of e^-40 is one for all, not for each."""
    many = round(math.exp(6))
    y, key = row(1.875 * sign), -sign * row(0.0, 96.0, *[24.0] * many)
    value = torch.cat([torch.zeros(2), torch.ones(many)]).double().view(1, 1, -1)
    out, total = forward(y, key, value, None, False)
    assert out.item() == pytest.approx(many * math.exp(-45), rel=1e-9, abs=0)

    y, key, value = y.expand(1, many), key[:, :3], value[..., :3]
    out, total = forward(y, key, value, None, False)
    grad = backward(torch.ones_like(out), y, key, value, None, out, total, False)[2]
    assert grad[0, 0, 2].item() == pytest.approx(many * math.exp(-45), rel=1e-9, abs=0)


@each_order
@pytest.mark.usefixtures("cells")
def test_rows_do_not_know_of_each_other(causal):
    query, key, value = problem(R=3, scale=4.0)
    query[1], key[1] = 1e120 * query[1], 1e120 * key[1]
    query[2] = 0.0
    together = forward(query, key, value, None, causal)
    for i in range(3):
        alone = forward(query[i : i + 1], key[i : i + 1], value[i : i + 1], None, causal)
        for a, b in zip(together, alone, strict=True):
            torch.testing.assert_close(a[i : i + 1], b, rtol=1e-14, atol=1e-14)


@each_order
def test_long_rows_by_the_way_that_costs_least(causal, monkeypatch):
    used = []
    monkeypatch.setattr(
        FactoredWeights, "at_keys", lambda *a, f=FactoredWeights.at_keys: used.append(1) or f(*a)
    )
    monkeypatch.setattr(partition, "TOKENS", 1000)
    there = normal(2, 1100, seed=4) > -1
    assert max(errors(*problem(q=1300, n=1100, c=1), there, causal)) < 1e-12
    assert used


FEW = {"cells": (0, 3 * SIZE**2), "some queries": (1 << 30, 200), "some rows": (1 << 30, 5000)}


@each_order
@pytest.mark.parametrize(("cost", "scores"), FEW.values(), ids=FEW)
def test_few_at_a_time_make_no_difference(cost, scores, causal, monkeypatch):
    monkeypatch.setattr(partition, "PAIR_COST", cost)
    monkeypatch.setattr(partition, "LEAF", 40)
    monkeypatch.setattr(partition, "TOKENS", 60)
    monkeypatch.setattr(placement, "POINTS", 40)
    monkeypatch.setattr(factored_weights, "PAIRS", 5)
    monkeypatch.setattr(weight_table, "SCORES", scores)
    there = normal(3, 45, seed=4) > -1
    assert max(errors(*problem(R=3, scale=3.0), there, causal)) < 1e-12


@given(data=st.data())
def test_any_problem(data):
    R, q, n, c = (data.draw(st.integers(1, top)) for top in (3, 600, 600, 2))
    y, x = (10 ** data.draw(st.floats(-8, 8)) for _ in range(2))
    query, key, value = problem(R, q, n, c)
    there = normal(R, n, seed=4) > data.draw(st.sampled_from([-9.0, 0.0]))
    assert max(errors(y * query, x * key, value, there, data.draw(st.booleans()))) < 1e-12


@given(q=st.integers(1, 2000), leaf=st.integers(1, 300))
def test_parts_have_every_key_up_to_a_query_once(q, leaf):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "LEAF", leaf)
        parts = partition.parts(q, q, causal=True)
    length = parts[-1].query_width
    assert q <= length < q + 2 * q / leaf + 1
    position = torch.arange(length)[None]
    seen = torch.zeros(length, dtype=torch.int64)  # how many keys, and the sum of their places
    places = torch.zeros(length, dtype=torch.int64)
    for part in parts:
        k, keys = part.of_queries(position), part.of_keys(position)
        allowed = keys[:, None] <= k[..., None]
        assert part.triangular or allowed.all()
        seen[k] += allowed.sum(-1)
        places[k] += (keys[:, None] * allowed).sum(-1)
    assert torch.equal(seen, position[0] + 1)
    assert torch.equal(places, position[0] * (position[0] + 1) // 2)


@each_order
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e30])
@pytest.mark.usefixtures("cells")
def test_float32(scale, causal):
    parts = (part.float() for part in problem(scale=scale))
    assert max(errors(*parts, causal=causal)) < 2e-6


@each_order
@pytest.mark.parametrize("scale", [1.0, 1e3, 1e30])
@pytest.mark.usefixtures("cells")
def test_a_device_without_float64(scale, causal, monkeypatch):
    assert partition.working_type(torch.device("mps")) == torch.float32
    monkeypatch.setattr(partition, "working_type", lambda _: torch.float32)
    parts = (part.float() for part in problem(scale=scale))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = forward(*parts, None, causal)[0]
    parts = [part.float() for part in problem(scale=scale)]
    assert torch.equal(forward(*parts, None, causal)[0], out)
    assert max(errors(*parts, causal=causal)) < 2e-6


@each_order
@pytest.mark.usefixtures("cells")
def test_every_tensor_is_on_the_device_of_the_query(causal):
    query, key, value = problem()
    with torch.device("meta"):  # where what is made without a device would end up, without numbers
        out, total = forward(query, key, value, None, causal)
        grads = backward(out, query, key, value, None, out, total, causal)
    assert {x.device.type for x in (out, total, *grads)} == {"cpu"}


@each_order
@pytest.mark.usefixtures("cells")
def test_views_and_gradients_are_no_trouble(causal):
    query, key, value = problem(R=3, q=40, n=40, c=1)  # nothing is padded, which would copy
    wanted = forward(query, key, value, None, causal)
    strided = [x.mT.contiguous().mT.requires_grad_() for x in (query, key, value)]
    for a, b in zip(forward(*strided, None, causal), wanted, strict=True):
        assert not a.requires_grad
        assert torch.equal(a, b)


class Meter(TorchDispatchMode):
    """Counts the numbers that operations make, and how many bytes of them live at a time."""

    def __init__(self, *given):
        super().__init__()
        self.made = self.live = self.peak = 0
        self.known = {x.untyped_storage()._cdata for x in given}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            storage = x.untyped_storage() if isinstance(x, torch.Tensor) else None
            if storage is not None and storage._cdata not in self.known:
                self.known.add(storage._cdata)
                self.made += x.numel()
                self.live += storage.nbytes()
                self.peak = max(self.peak, self.live)
                weakref.finalize(storage, self._free, storage._cdata, storage.nbytes())
        return result

    def _free(self, key, size):
        self.known.discard(key)
        self.live -= size


def metered(n, causal):
    """Numbers made; bytes alive at most, forward and backward, the given ones not counted."""
    given_ = query, key, value = problem(1, n, n, 1)
    with Meter(*given_) as first:
        out, total = forward(query, key, value, None, causal)
    with Meter(*given_, out, total) as second:
        backward(out, query, key, value, None, out, total, causal)
    return torch.tensor([first.made + second.made, first.peak, second.peak])


@pytest.mark.parametrize(("n", "causal"), [(1 << 14, False), (1 << 12, True)])
def test_time_and_memory_are_linear(n, causal, monkeypatch):
    monkeypatch.setattr(weight_table, "SCORES", 1 << 18)
    monkeypatch.setattr(partition, "TOKENS", 1 << 13)
    monkeypatch.setattr(placement, "POINTS", 1 << 13)
    less, more = metered(n, causal), metered(4 * n, causal)
    made, *_ = more / less
    _, *arrays = (more - less) / (3 * n * 8)  # of n numbers; what does not grow is left out
    assert made < 5
    assert arrays[0] < 11.5
    assert arrays[1] < 17.5


def test_rows_in_very_many_octaves_cost_no_more_than_all_scores():
    query, key, value = problem(1, 1000, 1000, 1)
    query, key = (x.sign() * 1e-200 ** (x.abs() / 4) for x in (query, key))
    given_ = 1e200 * query, key, value
    with Meter(*given_) as meter:
        forward(*given_, None, False)
    assert meter.made < 10 * 1000 * 1000
