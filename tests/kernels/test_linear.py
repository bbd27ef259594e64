"""rank1_attention(method="linear") against the table of all scores: accuracy, ranges, shapes."""

import time
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernels import attention_problems as hard
from kernels.attention_problems import EXACT, LARGEST, SINGLE, Problem, attend, row
from rankone.errors import AttentionError
from rankone.kernels import rank1_attention

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
each_method = pytest.mark.parametrize("method", ["linear", "direct"])


def gaussian(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


# Accuracy.


@given(problem=hard.problems(), leaf=st.sampled_from([4, 64, 1024]))
def test_equals_the_direct_way(problem, leaf):
    with pytest.MonkeyPatch.context() as patch:
        hard.small_blocks(patch, leaf)
        hard.assert_as_direct(problem)
        hard.assert_as_direct(problem.to(torch.float32), SINGLE)


@pytest.mark.parametrize("scale", hard.SCALES[::2], ids="{:g}".format)
@pytest.mark.parametrize("shape", hard.SHAPES)
def test_equals_the_direct_way_for_keys_of_any_shape_and_size(shape, scale):
    rng = np.random.default_rng(1)
    query = hard.column("scattered", 1.0, 150, rng)
    key = hard.column(shape, scale, 200, rng)
    value = torch.from_numpy(rng.normal(size=200))
    for causal in (False, True):
        hard.assert_as_direct(Problem(query, key, value, causal))
        hard.assert_as_direct(Problem(query, key, value, causal).to(torch.float32), SINGLE)


@pytest.mark.parametrize("scale", hard.SCALES[1::2], ids="{:g}".format)
@pytest.mark.parametrize("shape", hard.SHAPES)
def test_equals_the_direct_way_for_queries_of_any_shape_and_size(shape, scale):
    rng = np.random.default_rng(2)
    query = hard.column(shape, scale, 150, rng)
    key = hard.column("scattered", 1.0, 200, rng)
    value = torch.from_numpy(rng.normal(size=200))
    for causal in (False, True):
        hard.assert_as_direct(Problem(query, key, value, causal))
        hard.assert_as_direct(Problem(query, key, value, causal).to(torch.float32), SINGLE)


@given(problem=hard.problems(sizes=(1, 2, 5, 9)))
def test_equals_the_fraction_itself(problem):
    expected = hard.exact_mean(problem)
    allowed = EXACT * hard.largest(problem.value) + hard.floor(problem)
    hard.assert_within(attend(problem, "linear"), expected, allowed)


@pytest.mark.parametrize(
    ("n", "causal"),
    [(100_000, False), (20_000, True), pytest.param(100_000, True, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4, 1e100], ids="{:g}".format)
def test_many_keys_lose_no_digits(scale, n, causal):
    problem = hard.random_problem(n, scale, causal=causal)
    out = attend(problem, "linear")
    some = torch.arange(0, n, n // 30)
    mask = torch.arange(n) <= some[:, None] if causal else None
    query, key, value = problem[:3]
    expected = rank1_attention(query[some], key, value, mask=mask, method="direct")
    hard.assert_within(out[some], expected, EXACT * hard.largest(value))


@whether_causal
@pytest.mark.parametrize("offset", [1e3, 1e8, 1e15, -1e15], ids="{:g}".format)
def test_values_far_from_0_keep_the_digits_they_have(offset, causal):
    query, key, value, *_ = hard.random_problem(300, 3.0)
    hard.assert_as_direct(Problem(query, key, offset + value, causal), 1e-15)


@whether_causal
def test_equal_values_come_out_as_they_are(causal):
    query, key, _, *_ = hard.random_problem(300, 3.0)
    out = attend(Problem(query, key, torch.full((300,), 0.1).double(), causal), "linear")
    hard.assert_within(out, torch.full((300,), 0.1).double(), 1e-16)


@whether_causal
def test_the_mean_stays_between_the_values(causal):
    for scale in (0.0, 1.0, 1e3, 1e100):
        query, key, value, *_ = hard.random_problem(400, scale)
        out = attend(Problem(query, key, value, causal), "linear")
        slack = EXACT * hard.largest(value)
        assert value.min() - slack <= out.min()
        assert out.max() <= value.max() + slack


@whether_causal
def test_half_types_are_computed_in_single(causal):
    query, key, value = gaussian(3, 200, dtype=torch.float32)
    for dtype in (torch.bfloat16, torch.float16):
        problem = Problem(query.to(dtype), key.to(dtype), value.to(dtype), causal)
        out = attend(problem, "linear")
        assert out.dtype == dtype
        expected = attend(problem.to(torch.float64), "direct").to(dtype)
        unit = torch.finfo(dtype).eps
        hard.assert_within(out, expected, unit * hard.largest(value))


@pytest.mark.parametrize("mixed", range(3))
def test_the_widest_type_decides(mixed):
    parts = list(gaussian(3, 20, dtype=torch.float32))
    parts[mixed] = parts[mixed].double()
    problem = Problem(*parts)
    assert attend(problem, "linear").dtype == torch.float64
    expected = attend(Problem(*(part.double() for part in parts)), "direct")
    hard.assert_within(attend(problem, "linear"), expected, EXACT * hard.largest(parts[2]))


# The ends of the range of numbers.

EXTREME = {
    "a query of 0 and keys far apart": (row(0.0, 1e-307), row(0.0, 1e307)),
    "a query of 0 and a key that stands for a mask": (row(0.5, -0.5, 0.0), row(-LARGEST, 0.3, 0.4)),
    "tiny queries and keys that stand for a mask": (row(1e-310, -1e-310), row(-LARGEST, 0.0, 1.0)),
    "the largest query": (row(LARGEST, -LARGEST), row(0.0, 1.0)),
    "the largest query, one key": (row(LARGEST, -LARGEST, 0.0), row(3.0)),
    "the largest query, equal keys": (row(LARGEST, 1.0), row(2.0, 2.0, 2.0)),
    "the largest queries, the smallest keys": (row(1e308, -1e308), row(1e-308, 2e-308, 3e-308)),
    "large queries, denormal keys": (row(1e308, -LARGEST), row(-5e-324, 0.0, 1e-310)),
    "the largest of both": (row(LARGEST, -LARGEST), row(LARGEST, -LARGEST, 0.0)),
    "the largest keys, all equal": (row(1.0, -1.0, 0.0), row(LARGEST, LARGEST)),
    "a distance beyond the largest number": (row(0.5, -0.5), row(-LARGEST, 0.3, LARGEST)),
    "such a distance, tiny queries": (row(1e-308, -3e-309), row(-LARGEST, 0.3, LARGEST)),
    "such a distance, a query of 0": (row(0.0, 1.0), row(-LARGEST, 0.3, LARGEST)),
    "only denormal numbers": (row(5e-324, -1e-310), row(-5e-324, 1e-309)),
    "queries of any size": (row(0.0, 5e-324, 1e-300, 1.0, 1e300, LARGEST), row(0.0, 1.0, 2.0)),
    "keys of any size": (row(1.0, -1.0), row(0.0, 5e-324, 1e-300, 1.0, 1e300, LARGEST)),
}


@whether_causal
@pytest.mark.parametrize(("query", "key"), EXTREME.values(), ids=EXTREME)
def test_the_ends_of_the_range_of_numbers(query, key, causal):
    value = torch.arange(1.0, len(key) + 1.0, dtype=torch.float64)
    problem = Problem(query, key, value, causal)
    expected = hard.exact_mean(problem)
    hard.assert_within(attend(problem, "linear"), expected, EXACT * len(key))


@pytest.mark.parametrize("name", [name for name in EXTREME if "such a distance" not in name])
def test_the_table_of_scores_too_is_right_at_the_ends_of_the_range(name):
    """But for distances beyond the largest number, which it takes to be infinite."""
    query, key = EXTREME[name]
    problem = Problem(query, key, torch.arange(1.0, len(key) + 1.0, dtype=torch.float64))
    hard.assert_within(attend(problem, "direct"), hard.exact_mean(problem), EXACT * len(key))


@whether_causal
@given(data=st.data())
def test_numbers_beyond_1e295_do_not_matter(causal, data):
    seed = data.draw(st.integers(0, 10_000))
    rng = np.random.default_rng(seed)
    n, q = rng.integers(1, 9, size=2)
    shapes = st.sampled_from(["scattered", "ties at the ends", "one dominant", "over all orders"])
    sizes = st.sampled_from([1e-308, 1e-300, 1.0, 1e300, 1e305, 1e308])
    query, key = (
        hard.column(data.draw(shapes), data.draw(sizes), size, rng, limit=LARGEST)
        for size in (q, n)
    )
    problem = Problem(query, key, torch.from_numpy(rng.normal(size=n)), causal)
    allowed = EXACT * hard.largest(problem.value)
    hard.assert_within(attend(problem, "linear"), hard.exact_mean(problem), allowed)


@pytest.mark.parametrize("size", [1e300, 1e307, 1e308], ids="{:g}".format)
def test_values_of_the_largest_size(size):
    problem = Problem(row(0.5, -0.5, 0.0), row(0.0, 1.0), row(size, -size))
    hard.assert_within(attend(problem, "linear"), hard.exact_mean(problem), EXACT * size)


@whether_causal
def test_saturated_scores_give_the_value_of_the_extreme_key_exactly(causal):
    query, key, value, *_ = hard.random_problem(500, 1e100)
    problem = Problem(query, key, value, causal)
    assert torch.equal(attend(problem, "linear"), attend(problem, "direct"))


# Causal.


@pytest.mark.parametrize("leaf", [4, 128])
@pytest.mark.parametrize("order", ["rising", "falling", "scattered", "alternating", "one dominant"])
@pytest.mark.parametrize("scale", [3.0, 1e100], ids="{:g}".format)
def test_extremes_that_arrive_late_or_early(order, scale, leaf, monkeypatch):
    hard.small_blocks(monkeypatch, leaf)
    for n in hard.sizes_around(leaf) if leaf < 100 else (129, 263):
        rng = np.random.default_rng(n)
        key = hard.column(order, 1.0, n, rng)
        query, value = (torch.from_numpy(x) for x in rng.normal(size=(2, n)))
        hard.assert_as_direct(Problem(scale * query, key, value, True))


@pytest.mark.parametrize(("q", "n"), [(1, 40), (40, 1), (7, 40), (40, 7), (33, 32), (16, 17)])
@pytest.mark.parametrize("padded", [False, True])
def test_causal_counts_from_the_start_of_both(q, n, padded, monkeypatch):
    hard.small_blocks(monkeypatch)
    for seed in range(5):
        problem = hard.random_problem(n, 3.0, q=q, causal=True, padded=padded, seed=seed)
        hard.assert_as_direct(problem)


@given(data=st.data())
def test_what_comes_later_does_not_matter(data):
    n = data.draw(st.integers(2, 40))
    cut = data.draw(st.integers(1, n - 1))
    query, key, value, *_ = hard.random_problem(n, 3.0, seed=data.draw(st.integers(0, 1000)))
    later = torch.arange(n) >= cut
    size = data.draw(st.sampled_from([0.0, 1e5, 1e100]))
    changed = Problem(query, key.where(~later, size), value.where(~later, -7.0), True)
    with pytest.MonkeyPatch.context() as patch:
        hard.small_blocks(patch)
        before = attend(Problem(query, key, value, True), "linear")
        after = attend(changed, "linear")
    assert torch.equal(before[:cut], after[:cut])


def test_the_first_query_gets_the_first_value():
    query, key, value, *_ = hard.random_problem(3000, 1e3)
    assert attend(Problem(query, key, value, True), "linear")[0] == value[0]


# Padding.


@whether_causal
@given(data=st.data())
def test_lengths_are_a_mask_and_both_together_are_their_intersection(causal, data):
    seed = data.draw(st.integers(0, 1000))
    batch, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 30))
    query, key, value = gaussian(3, batch, n, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, n + 1, (batch,), generator=generator)
    mask = torch.rand(batch, 1, n, generator=generator) < 0.7
    there = torch.arange(n) < lengths[:, None, None]
    given = {"causal": causal, "method": "linear"}
    for mine, full in ((None, there), (mask, mask & there)):
        out = rank1_attention(query, key, value, lengths=lengths, mask=mine, **given)
        assert torch.equal(out, rank1_attention(query, key, value, mask=full, **given))
        expected = rank1_attention(query, key, value, mask=full, causal=causal, method="direct")
        hard.assert_within(out, expected, EXACT * hard.largest(value))


@whether_causal
@pytest.mark.parametrize("hidden", [0.0, 1e6, -LARGEST, LARGEST, torch.inf, -torch.inf, torch.nan])
def test_what_is_padding_may_be_anything(hidden, causal):
    query, key, value = gaussian(3, 2, 20)
    there = torch.arange(20) < torch.tensor([[13], [0]])
    given = {"causal": causal, "lengths": torch.tensor([13, 0]), "method": "linear"}
    out = rank1_attention(query, key.where(there, hidden), value.where(there, hidden), **given)
    assert torch.equal(out, rank1_attention(query, key, value, **given))
    assert not out[1].any()


@whether_causal
def test_padding_is_the_same_as_leaving_out(causal):
    query, key, value, _, mask = hard.random_problem(60, 3.0, padded=True)
    there = mask[0]
    out = attend(Problem(query, key, value, causal, mask), "linear")
    if causal:
        table = torch.ones(60, 60, dtype=torch.bool).tril()[:, there]
        expected = rank1_attention(query, key[there], value[there], mask=table)
    else:
        expected = rank1_attention(query, key[there], value[there], method="linear")
    hard.assert_within(out, expected, EXACT * hard.largest(value))


@each_method
def test_lengths_beyond_the_keys_are_all_and_below_0_none(method):
    query, key, value = gaussian(3, 3, 8)
    given = {"method": method}
    out = rank1_attention(query, key, value, lengths=torch.tensor([-3, 9, 2**40]), **given)
    assert not out[0].any()
    assert torch.equal(out[1:], rank1_attention(query[1:], key[1:], value[1:], **given))


# Shapes.

SHAPES = {
    "no batch": ((5,), (7,), (7,)),
    "vectors": ((5,), (7,), (7, 3)),
    "a batch": ((2, 5), (2, 7), (2, 7)),
    "heads of vectors": ((2, 4, 5), (2, 4, 7), (2, 4, 7, 3)),
    "one query row for all": ((5,), (2, 7), (2, 7)),
    "one key row for all": ((2, 5), (7,), (2, 7)),
    "one value row for all": ((2, 5), (2, 7), (7,)),
    "axes of length 1": ((2, 1, 5), (3, 7), (2, 1, 7)),
    "everything crosswise": ((2, 1, 1, 5), (3, 1, 7), (2, 1, 4, 7, 6)),
    "vectors of one number": ((2, 5), (2, 7), (2, 7, 1)),
    "one key": ((2, 5), (2, 1), (2, 1)),
    "one query": ((2, 1), (2, 7), (2, 7)),
}
EMPTY = {
    "no keys": ((2, 5), (2, 0), (2, 0)),
    "no keys, vectors": ((2, 5), (2, 0), (2, 0, 3)),
    "no queries": ((2, 0), (2, 7), (2, 7)),
    "no rows": ((0, 5), (0, 7), (0, 7)),
    "no channels": ((2, 5), (2, 7), (2, 7, 0)),
    "nothing": ((0,), (0,), (0,)),
}


@whether_causal
@each_dtype
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_leading_dimensions_broadcast(shapes, dtype, causal):
    parts = [gaussian(*shape, seed=i, dtype=dtype) for i, shape in enumerate(shapes)]
    tolerance = EXACT if dtype == torch.float64 else SINGLE
    hard.assert_as_direct(Problem(*parts, causal), tolerance)


@whether_causal
@each_method
@pytest.mark.parametrize("shapes", EMPTY.values(), ids=EMPTY)
def test_nothing_gives_zeros_and_gradients_of_zeros(shapes, method, causal):
    parts = [gaussian(*shape).requires_grad_() for shape in shapes]
    out = rank1_attention(*parts, causal=causal, method=method)
    channels = shapes[2][len(shapes[1]) :]
    assert out.shape == (*shapes[0], *channels)
    assert not out.any()
    if out.requires_grad:
        for gradient in torch.autograd.grad(out.sum(), parts, allow_unused=True):
            assert gradient is None or not gradient.any()


@whether_causal
@pytest.mark.parametrize("shape", [(2, 1, 7), (1, 7), (1, 1, 7), (3, 2, 1, 7), (3, 1, 1, 7)])
def test_padding_broadcasts_over_the_batch(shape, causal):
    query, key = gaussian(3, 2, 5), gaussian(3, 2, 7, seed=1)
    mask = torch.rand(shape, generator=torch.Generator().manual_seed(2)) < 0.6
    hard.assert_as_direct(Problem(query, key, gaussian(3, 2, 7, 4, seed=3), causal, mask))


@each_method
def test_a_batch_of_the_mask_or_the_lengths_alone_is_refused(method):
    query, key, value = gaussian(3, 7)
    lengths = torch.tensor([2, 7, 0])
    mask = torch.arange(7) < lengths[:, None, None]
    for padding in ({"lengths": lengths}, {"mask": mask}):
        with pytest.raises(AttentionError, match="do not fit together"):
            hard.unchecked()(query, key, value, method=method, **padding)


@whether_causal
def test_rows_do_not_see_each_other(causal):
    query, key, value = gaussian(3, 4, 50)
    query = query * row(1.0, 1e-300, 1e100, 0.0).unsqueeze(-1)
    value = value.unsqueeze(-1) * row(1.0, 1e100)
    out = rank1_attention(query, key, value, causal=causal, method="linear")
    for i in range(4):
        for c in range(2):
            alone = Problem(query[i], key[i], value[i, :, c], causal)
            assert torch.equal(out[i, :, c], attend(alone, "linear"))


@whether_causal
def test_strides_do_not_matter(causal):
    base = gaussian(40, 3)
    query, key = base[:, 0], base.flip(0)[:, 1]
    value = gaussian(4, 40).mT
    assert not any(part.is_contiguous() for part in (query, key, value))
    packed = [part.clone(memory_format=torch.contiguous_format) for part in (query, key, value)]
    given = {"causal": causal, "method": "linear"}
    assert torch.equal(
        rank1_attention(query, key, value, **given), rank1_attention(*packed, **given)
    )
    wide = [query.expand(3, 40), key[:1].expand(3, 40), value[:, :1].expand(3, 40, 4)]
    hard.assert_as_direct(Problem(*wide, causal))


def test_inputs_are_left_as_they_are():
    problem = hard.random_problem(50, 3.0, padded=True, causal=True)
    before = [part.clone() for part in (*problem[:3], problem.mask)]
    attend(problem, "linear")
    for part, copy in zip((*problem[:3], problem.mask), before, strict=True):
        assert torch.equal(part, copy)


# The method.


def test_auto_is_linear_for_many_scores_and_direct_for_few_or_for_a_mask():
    few, many = hard.random_problem(20, 3.0), hard.random_problem(400, 3.0)
    assert torch.equal(attend(few, "auto"), attend(few, "direct"))
    assert torch.equal(attend(many, "auto"), attend(many, "linear"))
    assert not torch.equal(attend(many, "auto"), attend(many, "direct"))
    masked = many._replace(mask=torch.ones(400, 400, dtype=torch.bool).tril(-1))
    assert torch.equal(attend(masked, "auto"), attend(masked, "direct"))


def test_a_mask_that_differs_between_queries_is_refused():
    query, key, value = gaussian(3, 6)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    with pytest.raises(AttentionError, match="differs between queries"):
        rank1_attention(query, key, value, mask=mask, method="linear")


def wrong(query=(6,), key=(6,), value=(6,), dtypes=(torch.float32,) * 3, **given):
    parts = zip((query, key, value), dtypes, strict=True)
    return [torch.ones(shape, dtype=dtype) for shape, dtype in parts], given


SINGLES = (torch.float32,) * 2
WRONG = {
    "more values than keys": wrong(value=(7,)),
    "batches that do not fit": wrong(query=(2, 6), key=(3, 6)),
    "values of another batch": wrong(query=(2, 6), key=(2, 6), value=(3, 6)),
    "a value of too many axes": wrong(value=(4, 2, 6)),
    "a query that is a number": wrong(query=()),
    "a key that is a number": wrong(key=()),
    "a value that is a number": wrong(value=()),
    "integers": wrong(dtypes=(torch.int64,) * 3),
    "complex queries": wrong(dtypes=(torch.complex64, *SINGLES)),
    "complex values": wrong(dtypes=(*SINGLES, torch.complex128)),
    "truth values": wrong(dtypes=(torch.bool,) * 3),
    "a method that is not there": wrong(method="quadratic"),
    "a method that is nothing": wrong(method=None),
    "a mask of numbers": wrong(mask=torch.ones(1, 6)),
    "a mask of integers": wrong(mask=torch.ones(1, 6, dtype=torch.int64)),
    "a mask of 0 and -inf": wrong(mask=torch.tensor([[0.0] * 5 + [-torch.inf]])),
    "a mask of one axis for a batch": wrong(query=(2, 6), mask=torch.ones(6, dtype=torch.bool)),
    "such a mask, and lengths": wrong(
        query=(2, 6), mask=torch.ones(6, dtype=torch.bool), lengths=torch.tensor([3, 4])
    ),
    "a mask of one axis and another n": wrong(mask=torch.ones(5, dtype=torch.bool)),
    "a mask that is a truth value": wrong(mask=torch.tensor(True)),
    "a mask of another n": wrong(mask=torch.ones(1, 5, dtype=torch.bool)),
    "a mask of another q": wrong(mask=torch.ones(5, 6, dtype=torch.bool)),
    "a mask of another batch": wrong(query=(2, 6), mask=torch.ones(3, 1, 6, dtype=torch.bool)),
    "lengths of another batch": wrong(query=(2, 6), lengths=torch.tensor([1, 2, 3])),
    "lengths that are no integers": wrong(query=(2, 6), lengths=torch.tensor([1.5, 2.0])),
    "lengths that are truth values": wrong(query=(2, 6), lengths=torch.tensor([True, False])),
    "a mask that does not fit the lengths": wrong(
        lengths=torch.tensor(3), mask=torch.ones(1, 5, dtype=torch.bool)
    ),
}


@each_method
@pytest.mark.parametrize(("parts", "given"), WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_said(parts, given, method):
    with pytest.raises(AttentionError) as caught:
        hard.unchecked()(*parts, **{"method": method, **given})
    assert caught.value.remedy


# Time and memory.


@whether_causal
def test_memory_is_that_of_a_few_columns(causal):
    def both(n):
        parts = [part.requires_grad_() for part in hard.random_problem(n, 3.0, causal=causal)[:3]]
        tracemalloc.start()
        try:
            out = attend(Problem(*parts, causal), "linear")
            forward = tracemalloc.get_traced_memory()[1]
            tracemalloc.reset_peak()
            torch.autograd.grad(out, parts, torch.ones_like(out))
            return max(forward, tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()

    both(3000)  # compiles both ways, which takes memory too
    n = 100_000
    assert both(n) < 10 * 8 * n


@pytest.mark.slow
@whether_causal
def test_time_is_linear(causal):
    def seconds(n):
        problem = hard.random_problem(n, 3.0, causal=causal)
        taken = []
        for _ in range(4):
            start = time.process_time()
            attend(problem, "linear")
            taken.append(time.process_time() - start)
        return min(taken)

    seconds(1000)
    assert seconds(800_000) < 3 * 8 * seconds(100_000)
