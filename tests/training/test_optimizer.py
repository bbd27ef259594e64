"""The lazy optimizer against torch's: SparseAdam, Adam and SGD, step by step."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

import rankone
from rankone.training.batches import batches
from rankone.training.initial import initial
from rankone.training.optimizer import Lazy
from rankone.training.processes import Processes
from rankone.training.settings import Settings
from rankone.training.state import Run

WORDS, DIM = 6, 3
SHAPES = [(2, 3), (4,), (2, 1, 3)]  # of the dense weights
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}
KINDS = {
    "adam": {"optimizer": "adam", "lr": 0.1},
    "sgd": {"optimizer": "sgd", "lr": 0.1},
    "momentum": {"optimizer": "sgd", "lr": 0.1, "momentum": 0.9},
}

each_kind = pytest.mark.parametrize("kind", KINDS)
each_dtype = pytest.mark.parametrize("dtype", TOLERANCE)


def start(dtype, seed=0):
    """Dense weights, and the table."""
    rng = np.random.default_rng(seed)
    shapes = [*SHAPES, (WORDS, DIM)]
    *dense, table = [
        torch.from_numpy(rng.normal(size=shape)).to(getattr(torch, dtype)) for shape in shapes
    ]
    return dense, table


def drawn_steps(chosen, dtype, seed=1):
    """For each step: gradients of the dense weights, words, gradients of their rows."""
    rng = np.random.default_rng(seed)
    kind = getattr(torch, dtype)
    for words in chosen:
        shapes = [*SHAPES, (len(words), DIM)]
        *dense, rows = [torch.from_numpy(rng.normal(size=shape)).to(kind) for shape in shapes]
        yield dense, torch.tensor(words), rows


def torch_optimizer(kind, parameters, *, lazy):
    settings = KINDS[kind]
    if settings["optimizer"] == "sgd":
        momentum = settings.get("momentum", 0.0)
        return torch.optim.SGD(parameters, lr=settings["lr"], momentum=momentum)
    return (torch.optim.SparseAdam if lazy else torch.optim.Adam)(parameters, lr=settings["lr"])


def run_lazy(kind, steps, dense, table, *, lr=0.1):
    optimizer = Lazy(dense, table, Settings(**KINDS[kind]))
    for gradients, words, rows in steps:
        optimizer.step([*gradients, rows], words, table[words], lr)
    return optimizer


@torch.sparse.check_sparse_tensor_invariants(enable=True)
def run_torch(kind, steps, dense, table):
    """The same by torch.optim: the table as a sparse parameter, the rest as dense ones."""
    parameters = [torch.nn.Parameter(w) for w in dense]
    sparse = torch.nn.Parameter(table)
    first = torch_optimizer(kind, parameters, lazy=False)
    second = torch_optimizer(kind, [sparse], lazy=True)
    for number, (gradients, words, rows) in enumerate(steps, start=1):
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        if kind == "adam":  # SparseAdam adds its epsilon before the correction, Adam after it
            second.param_groups[0]["eps"] = 1e-8 * (1 - 0.999**number) ** 0.5
        sparse.grad = torch.sparse_coo_tensor(words[None], rows, table.shape, is_coalesced=True)
        first.step()
        second.step()


def assert_same(found, wanted):
    for a, b in zip(found, wanted, strict=True):
        tolerance = TOLERANCE[str(a.dtype).removeprefix("torch.")]
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


some_words = st.lists(st.integers(0, WORDS - 1), min_size=1, unique=True).map(sorted)


@each_dtype
@pytest.mark.parametrize("kind", ["adam", "sgd"])
@given(chosen=st.lists(some_words, min_size=1, max_size=12), seed=st.integers(0, 1000))
def test_equals_sparse_and_dense_optimizers_of_torch(kind, dtype, chosen, seed):
    found, wanted = start(dtype), start(dtype)
    run_lazy(kind, drawn_steps(chosen, dtype, seed), *found)
    run_torch(kind, drawn_steps(chosen, dtype, seed), *wanted)
    assert_same([*found[0], found[1]], [*wanted[0], wanted[1]])


@each_dtype
@each_kind
def test_equals_the_dense_optimizer_where_every_row_is_in_every_batch(kind, dtype):
    (dense, table), (other, whole) = start(dtype), start(dtype)
    run_lazy(kind, drawn_steps([range(WORDS)] * 30, dtype), dense, table)
    parameters = [torch.nn.Parameter(w) for w in (*other, whole)]
    optimizer = torch_optimizer(kind, parameters, lazy=False)
    for gradients, _, rows in drawn_steps([range(WORDS)] * 30, dtype):
        for parameter, gradient in zip(parameters, (*gradients, rows), strict=True):
            parameter.grad = gradient
        optimizer.step()
    assert_same([*dense, table], [*other, whole])


@each_dtype
def test_momentum_of_a_row_stands_still_while_no_batch_has_it(dtype):
    # SGD of torch on each row by itself, which steps when the row is in the batch, and only then.
    chosen = [[0, 1], [1, 2], [0, 1, 2, 5], [1], [0, 5], [2], [0, 1, 2, 3]]
    (dense, table), (_, whole) = start(dtype), start(dtype)
    run_lazy("momentum", drawn_steps(chosen, dtype), dense, table)
    rows = [torch.nn.Parameter(row.clone()) for row in whole]
    each = [torch_optimizer("momentum", [row], lazy=False) for row in rows]
    for _, words, gradients in drawn_steps(chosen, dtype):
        for word, gradient in zip(words.tolist(), gradients, strict=True):
            rows[word].grad = gradient
            each[word].step()
    assert_same(table, rows)


@each_kind
@given(chosen=st.lists(some_words, min_size=1, max_size=5))
def test_rows_that_are_in_no_batch_keep_their_bits(kind, chosen):
    dense, table = start("float32")
    optimizer = Lazy(dense, table, Settings(**KINDS[kind]))
    for gradients, words, rows in drawn_steps(chosen, "float32"):
        kept = torch.ones(WORDS, dtype=torch.bool).index_fill(0, words, False)
        before = [table.clone(), *(slot[-1].clone() for slot in optimizer.slots)]
        optimizer.step([*gradients, rows], words, table[words], 0.1)
        for old, new in zip(before, [table, *(slot[-1] for slot in optimizer.slots)], strict=True):
            assert torch.equal(new[kept], old[kept])
            assert not (new[~kept] == old[~kept]).all(1).any()


@each_kind
def test_weights_are_changed_in_place(kind):
    dense, table = start("float32")
    optimizer = run_lazy(kind, drawn_steps([[0]], "float32"), dense, table)
    for mine, held in zip([*dense, table], optimizer.weights, strict=True):
        assert mine is held


@each_kind
def test_the_learning_rate_is_that_of_the_step(kind):
    (dense, table), (_, before) = start("float64"), start("float64")
    run_lazy(kind, drawn_steps([[0, 3]], "float64"), dense, table, lr=0.1)
    short = before.clone()
    run_lazy(kind, drawn_steps([[0, 3]], "float64"), start("float64")[0], short, lr=0.025)
    torch.testing.assert_close(table - before, 4 * (short - before))


@each_kind
def test_going_on_continues_bit_for_bit(kind):
    chosen = [[0, 1], [1, 2], [0, 5], [3, 4], [0, 1, 2]]
    whole, parts = start("float32"), start("float32")
    steps = list(drawn_steps(chosen, "float32"))
    run_lazy(kind, steps, *whole)
    half = run_lazy(kind, steps[:3], *parts)
    again = Lazy([w.clone() for w in parts[0]], parts[1].clone(), Settings(**KINDS[kind]))
    for kept, new in zip(half.slots, again.slots, strict=True):
        for old, fresh in zip(kept, new, strict=True):
            fresh.copy_(old)
    again.begin(3)
    for gradients, words, rows in steps[3:]:
        again.step([*gradients, rows], words, again.table[words], 0.1)
    for a, b in zip([*whole[0], whole[1]], again.weights, strict=True):
        assert torch.equal(a, b)


def test_adam_that_does_not_know_how_many_steps_are_done_goes_elsewhere():
    # What `begin` is for: the first steps are corrected for moments that start at 0.
    (dense, table), (other, elsewhere) = start("float64"), start("float64")
    steps = list(drawn_steps([[0, 1]], "float64"))
    run_lazy("adam", steps, dense, table)
    optimizer = Lazy(other, elsewhere, Settings(**KINDS["adam"]))
    optimizer.begin(100)
    for gradients, words, rows in steps:
        optimizer.step([*gradients, rows], words, elsewhere[words], 0.1)
    assert not torch.allclose(table, elsewhere)


@each_kind
def test_gradients_may_lie_anyhow(kind):
    (dense, table), (other, whole) = start("float64"), start("float64")
    steps = list(drawn_steps([[0, 1], [1, 2], [0, 5]], "float64"))
    run_lazy(kind, steps, dense, table)
    turned = [
        ([g.mT.contiguous().mT if g.dim() > 1 else g for g in gradients], words, rows.T.clone().T)
        for gradients, words, rows in steps
    ]
    assert not turned[0][0][0].is_contiguous()
    run_lazy(kind, turned, other, whole)
    assert_same([*dense, table], [*other, whole])


# A whole network: the gradients are those that its layers give.


NETWORKS = {
    "rank1": {},
    "theorem2": {"attention": "theorem2"},
    "no positions": {"positions": False, "depth": 2},
    "one head": {"attention": "softmax"},
    "two heads": {"attention": "softmax", "heads": 2, "depth": 2},
    "heads of size 1": {"attention": "softmax", "heads": 3, "head_size": 1},
    "one dimension": {"dim": 1, "hidden": 1},
}


@each_kind
@pytest.mark.parametrize("shape", NETWORKS)
def test_a_run_takes_the_steps_that_torch_takes(shape, kind):
    corpus = rankone.read_corpus("toy")
    choices = {"dim": 4, "dtype": "float64", "init_std": 0.5, **NETWORKS[shape], **KINDS[kind]}
    settings = Settings(batch_size=corpus.n_sentences, **choices)
    run = Run(initial(corpus, settings), settings, Processes())
    network = initial(corpus, settings)
    learned = [p for p in network.parameters() if p.requires_grad]
    optimizer = torch_optimizer(kind, learned, lazy=False)
    for epoch in range(5):
        (batch,) = batches(
            corpus, settings.batch_size, seed=0, epoch=epoch, first=0, processes=Processes()
        )
        run.step(batch, 0.1)
        ids, real = batch.words[batch.index], batch.sentences.mask
        padded = torch.zeros(real.shape, dtype=torch.int64).masked_scatter(real, ids)
        optimizer.zero_grad()
        functional.cross_entropy(network(padded, real)[real], batch.labels).backward()
        optimizer.step()
    used = slice(len(corpus.vocabulary))  # the row for unknown words is in no batch
    for (name, found), wanted in zip(
        run.network.named_parameters(), network.parameters(), strict=True
    ):
        at = used if name == "table" else slice(None)
        torch.testing.assert_close(found[at], wanted[at], rtol=1e-8, atol=1e-8)
