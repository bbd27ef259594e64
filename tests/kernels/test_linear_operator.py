"""The linear method as a torch operator: compiler, autocast, transforms, threads, forks."""

import threading

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from kernels import attention_problems as hard
from kernels.attention_problems import EXACT
from rankone.kernels import linear, rank1_attention  # noqa: F401  defines the operators
from rankone.kernels.compiled import batch, rectangle, threads

whether_causal = pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
torch_warns = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")

THERE = torch.tensor([[True, False, True, True, False], [False] * 5])


def attend(query, key, value, **given):
    return rank1_attention(query, key, value, method="linear", **given)


def gaussian(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def assert_equal(found, expected):
    for part, other in zip(found, expected, strict=True):
        assert torch.equal(part, other)


@pytest.fixture
def two_threads(monkeypatch):
    """Two threads share a few thousand tokens."""
    monkeypatch.setattr(threads, "count", lambda: 2)
    monkeypatch.setattr(batch, "LONG", 1000)
    monkeypatch.setattr(rectangle, "PIECE", 500)


@torch_warns
@pytest.mark.parametrize(
    ("there", "dtype", "causal"),
    [(None, torch.float64, False), (THERE, torch.float32, True)],
    ids=["whole", "padded, causal"],
)
def test_the_operators_keep_the_rules_of_operators(there, dtype, causal):
    given = (*hard.operator_inputs(dtype), there, causal)
    torch.library.opcheck(torch.ops.rankone.attention.default, given)
    plain = (*hard.operator_inputs(dtype, requires_grad=False), there)
    out, total = torch.ops.rankone.attention(*plain, causal)
    torch.library.opcheck(
        torch.ops.rankone.attention_backward.default,
        (torch.ones_like(out), *plain, out, total, causal),
    )


def assert_compiles(backend, dynamic, causal):
    """Without a break in the graph, for two lengths, gradients too."""
    torch._dynamo.reset()
    attention = hard.unchecked()  # the checks of shapes are not for a compiler
    lengths = torch.tensor([5, 0])

    def layer(query, key, value, method):
        given = {"causal": causal, "lengths": lengths, "method": method}
        return attention(query.tanh(), key, value, **given) * 2

    compiled = torch.compile(layer, backend=backend, fullgraph=True, dynamic=dynamic)
    for n in (9, 14):
        parts = [part.requires_grad_() for part in gaussian(3, 2, n)]
        results = []
        for run, method in ((compiled, "linear"), (layer, "direct")):
            out = run(*parts, method)
            results.append((out, *torch.autograd.grad(out.sin().sum(), parts)))
        for found, expected in zip(*results, strict=True):
            hard.assert_within(found, expected, 1e-11)


@torch_warns
@pytest.mark.parametrize(("dynamic", "causal"), [(None, False), (True, True)])
def test_compiles_into_one_graph(dynamic, causal):
    assert_compiles("aot_eager", dynamic, causal)


@pytest.mark.slow
@torch_warns
@pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])
def test_compiles_with_inductor(dynamic):
    assert_compiles("inductor", dynamic, causal=True)


@torch_warns
def test_can_be_exported():
    class Layer(torch.nn.Module):
        def forward(self, query, key, value):
            return attend(query, key, value)

    parts = tuple(gaussian(3, 2, 9))
    exported = torch.export.export(Layer(), parts).module()
    assert torch.equal(exported(*parts), attend(*parts))


@pytest.mark.parametrize("given", [torch.float64, torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("method", ["linear", "direct"])
def test_autocast_leaves_the_digits_alone(method, given):
    parts = [part.to(given).requires_grad_() for part in gaussian(3, 40)]
    with torch.autocast("cpu", torch.bfloat16):
        out = rank1_attention(*parts, method=method)
    alone = rank1_attention(*parts, method=method)
    assert out.dtype == given
    assert torch.equal(out, alone)
    grads = torch.autograd.grad(out.sum(), parts)
    assert [grad.dtype for grad in grads] == [given] * 3
    assert_equal(grads, torch.autograd.grad(alone.sum(), parts))


@pytest.mark.parametrize("method", ["linear", "direct"])
def test_shapes_are_known_without_numbers(method):
    shapes = ((2, 1, 6), (3, 5), (2, 3, 5, 7))
    parts = [torch.empty(shape, device="meta") for shape in shapes]
    out = rank1_attention(*parts, method=method)
    assert out.shape == (2, 3, 6, 7)
    assert out.device.type == "meta"


@whether_causal
def test_fake_tensors_have_the_shapes_and_strides_of_real_ones(causal):
    shapes = ((2, 1, 6), (3, 5), (2, 3, 5, 7))
    real = [gaussian(*shape).requires_grad_() for shape in shapes]
    out = attend(*real, causal=causal)
    with FakeTensorMode():
        fake = [torch.empty(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
        found = attend(*fake, causal=causal)
        found.sum().backward()
    assert (found.shape, found.stride(), found.dtype) == (out.shape, out.stride(), out.dtype)
    assert [part.grad.shape for part in fake] == [part.shape for part in real]


@torch_warns
@whether_causal
def test_vmap_is_a_batch(causal):
    parts = gaussian(3, 4, 9)
    mapped = torch.vmap(lambda *row: attend(*row, causal=causal))(*parts)
    assert torch.equal(mapped, attend(*parts, causal=causal))
    one_key = torch.vmap(lambda *row: attend(*row, causal=causal), in_dims=(0, None, 0))
    found = one_key(parts[0], parts[1, 0], parts[2])
    expected = attend(parts[0], parts[1, 0].expand(4, 9), parts[2], causal=causal)
    assert torch.equal(found, expected)


@torch_warns
@pytest.mark.parametrize("moved", range(3), ids=["query", "key", "value"])
def test_gradients_as_a_transform(moved):
    parts = [part.requires_grad_() for part in gaussian(3, 9)]
    expected = torch.autograd.grad(attend(*parts).sin().sum(), parts)[moved]
    plain = [part.detach() for part in parts]
    found = torch.func.grad(lambda *parts: attend(*parts).sin().sum(), argnums=moved)(*plain)
    assert torch.equal(found, expected)


def test_a_checkpoint_computes_the_same_again():
    parts = [part.requires_grad_() for part in gaussian(3, 40)]
    kept = torch.autograd.grad(checkpoint(attend, *parts, use_reentrant=False).sum(), parts)
    assert_equal(kept, torch.autograd.grad(attend(*parts).sum(), parts))


def test_works_in_inference_mode_and_with_tensors_from_there():
    parts = gaussian(3, 40)
    expected = attend(*parts)
    with torch.inference_mode():
        assert torch.equal(attend(*parts), expected)
        key = parts[1].clone()
    assert torch.equal(attend(parts[0], key, parts[2]), expected)


@whether_causal
@pytest.mark.usefixtures("two_threads")
def test_several_threads_may_call_at_once(causal):
    problems = [[part.requires_grad_() for part in gaussian(3, 3000, seed=i)] for i in range(4)]
    found = {}

    def work(i):
        for _ in range(2):
            out = attend(*problems[i], causal=causal)
            found[i] = (out, *torch.autograd.grad(out.sum(), problems[i]))

    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert len(found) == 4
    for i, parts in enumerate(problems):
        out = attend(*parts, causal=causal)
        assert_equal(found[i], (out, *torch.autograd.grad(out.sum(), parts)))


@torch_warns
@whether_causal
@pytest.mark.usefixtures("two_threads")
def test_works_in_a_forked_worker_after_the_parent_used_it(causal):
    parts = gaussian(2, 3, 3000)

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, i):
            return attend(*parts[i], causal=causal)

    expected = [attend(*parts[i], causal=causal) for i in range(2)]
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=None, num_workers=1, timeout=60, multiprocessing_context="fork"
    )
    assert_equal(list(loader), expected)


def test_the_number_of_threads_of_torch_is_respected(monkeypatch):
    monkeypatch.setattr(batch, "LONG", 1000)
    monkeypatch.setattr(rectangle, "PIECE", 500)
    asked = []

    def share(work, tasks, count):
        asked.append(count)
        return shared(work, tasks, count)

    shared = threads.share
    monkeypatch.setattr(threads, "share", share)
    problem = hard.random_problem(3000, 3.0)
    before = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2, 4):
            asked.clear()
            torch.set_num_threads(count)
            found.append(hard.attend(problem, "linear"))
            assert set(asked) == {count}
    finally:
        torch.set_num_threads(before)
    for out in found[1:]:
        hard.assert_within(out, found[0], EXACT)
