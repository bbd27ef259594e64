"""Multi-head rank-1 attention against its formula and against nn.MultiheadAttention."""

import copy
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import dense_truth as truth
import rankone
from rankone.errors import AttentionError
from rankone.nn import MultiheadRank1Attention, causal_mask

BATCH, N, D = 3, 6, 4
PADDING = torch.arange(N) >= torch.tensor([6, 1, 4])[:, None]  # as in torch: True is ignored
CAUSAL = ~causal_mask(N)
# As they are given to nn.MultiheadAttention, and to the module here.
MASKS = {
    "none": ({}, {}),
    "padding": ({"key_padding_mask": PADDING}, {"key_padding_mask": PADDING}),
    "causal": ({"attn_mask": CAUSAL, "is_causal": True}, {"is_causal": True}),
    "causal and padding": (
        {"attn_mask": CAUSAL, "is_causal": True, "key_padding_mask": PADDING},
        {"is_causal": True, "key_padding_mask": PADDING},
    ),
    "causal as a mask": ({"attn_mask": CAUSAL}, {"attn_mask": CAUSAL}),
}
each_mask = pytest.mark.parametrize(("theirs", "ours"), MASKS.values(), ids=MASKS.keys())
each_dtype = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
LAYOUTS = ["batch first", "tokens first", "one sequence"]


def tokens(*shape, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def minus_infinity(mask, dtype=torch.float64):
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, -torch.inf)


def of_one(masks):
    """The masks of the last sentence alone."""
    return {k: x[-1] if k == "key_padding_mask" else x for k, x in masks.items()}


def heads_of(module, query, key, value, allowed):
    """The formula for one sequence, tokens as rows: out, and the weights of every head."""
    p = truth.parameters(module)
    rows = [module.num_heads, 2 * module.num_heads]
    if "in_proj_weight" in p:
        W_q, W_k, W_v = np.split(p["in_proj_weight"], rows)
    else:
        W_q, W_k, W_v = (p[f"{name}_proj_weight"] for name in "qkv")
    b_q, b_k, b_v = np.split(p.get("in_proj_bias", np.zeros(rows[1] + module.embed_dim)), rows)
    Q, K, V = (z.detach().double().numpy() for z in (query, key, value))
    y, x, v = Q @ W_q.T + b_q, K @ W_k.T + b_k, V @ W_v.T + b_v
    weights = [
        truth.column_wise(truth.softmax, np.outer(x[:, i], y[:, i]), allowed[i].numpy()).T
        for i in range(module.num_heads)
    ]
    parts = np.split(v, module.num_heads, axis=1)
    h = np.concatenate([w @ part for w, part in zip(weights, parts, strict=True)], axis=1)
    return h @ p["out_proj.weight"].T + p.get("out_proj.bias", 0.0), np.stack(weights)


@given(data=st.data())
def test_the_output_and_the_weights_are_those_of_the_formula(data):
    draw, few = data.draw, st.integers(1, 4)
    batch, q, n, heads = (draw(few) for _ in range(4))
    # As many values as keys: the annotations of rank1_attention take them for one more batch.
    size = draw(few.filter(lambda size: size != n))
    kdim, vdim = draw(st.none() | few), draw(st.none() | few)
    bias, batch_first, seed = draw(st.booleans()), draw(st.booleans()), draw(st.integers(0, 99))
    E = heads * size
    module = MultiheadRank1Attention(
        E, heads, 0.0, bias, kdim, vdim, batch_first, dtype=torch.float64
    )
    truth.randomize(module, seed)
    query, key = tokens(batch, q, E, seed=seed), tokens(batch, n, kdim or E, seed=seed + 1)
    value = tokens(batch, n, vdim or E, seed=seed + 2)
    allowed = torch.ones(batch, heads, q, n, dtype=torch.bool)
    masks = {"is_causal": draw(st.booleans())}
    if masks["is_causal"]:
        allowed = allowed.tril()
    elif draw(st.booleans()):
        shape = draw(st.sampled_from([(q, n), (batch * heads, q, n)]))
        masks["attn_mask"] = ~truth.random_mask(*shape, seed=seed)
        allowed = allowed & ~masks["attn_mask"].view(-1, heads if len(shape) == 3 else 1, q, n)
    if draw(st.booleans()):
        masks["key_padding_mask"] = ~truth.random_mask(batch, n, seed=seed + 3)
        allowed = allowed & ~masks["key_padding_mask"][:, None, None, :]

    inputs = [z if batch_first else z.transpose(0, 1) for z in (query, key, value)]
    out, weights = module(*inputs, need_weights=True, average_attn_weights=False, **masks)
    expected = [heads_of(module, *zs) for zs in zip(query, key, value, allowed, strict=True)]
    truth.assert_close(
        out if batch_first else out.transpose(0, 1), np.stack([o for o, _ in expected])
    )
    truth.assert_close(weights, np.stack([w for _, w in expected]))
    assert out.is_contiguous()
    mean = module(*inputs, **masks)[1]  # needed, as in torch, unless said otherwise
    truth.assert_close(mean, weights.mean(1))
    plain, none = module(*inputs, need_weights=False, **masks)
    assert none is None
    assert torch.equal(plain, out)


@each_dtype
@each_mask
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", [{}, {"kdim": 3, "vdim": 5}], ids=["packed", "apart"])
def test_with_a_head_per_dimension_it_is_that_of_torch(sizes, layout, theirs, ours, dtype):
    sizes = {**sizes, "batch_first": layout == "batch first", "dtype": dtype}
    reference = truth.randomize(nn.MultiheadAttention(D, D, **sizes), 1)
    module = MultiheadRank1Attention(D, D, **sizes)
    module.load_state_dict(reference.state_dict())
    shape = {"batch first": (BATCH, N), "tokens first": (N, BATCH), "one sequence": (N,)}[layout]
    if layout == "one sequence":
        theirs, ours = of_one(theirs), of_one(ours)
    dims = (D, reference.kdim, reference.vdim)
    inputs = [tokens(*shape, d, dtype=dtype, seed=d + i) for i, d in enumerate(dims)]
    results = []
    for layer, masks in ((reference, theirs), (module, ours)):
        zs = [z.clone().requires_grad_() for z in inputs]
        out, weights = layer(*zs, need_weights=True, **masks)
        assert weights.dtype == dtype
        loss = (out * tokens(*out.shape, dtype=dtype, seed=9)).sum() + weights.square().sum()
        loss.backward()
        gradients = {name: p.grad for name, p in layer.named_parameters()}
        results.append([out, weights, *(z.grad for z in zs), gradients])
    (*theirs_all, their_gradients), (*ours_all, our_gradients) = results
    for actual, expected in zip(ours_all, theirs_all, strict=True):
        truth.assert_close(actual, expected)
    assert our_gradients.keys() == their_gradients.keys()
    for name, gradient in our_gradients.items():
        truth.assert_close(gradient, their_gradients[name])


@pytest.mark.parametrize("sizes", [{}, {"kdim": 3}, {"bias": False}], ids=str)
def test_it_starts_as_that_of_torch_does(sizes):
    torch.manual_seed(3)
    reference = nn.MultiheadAttention(D, D, **sizes).state_dict()
    torch.manual_seed(3)
    module = MultiheadRank1Attention(D, D, **sizes).state_dict()
    assert module.keys() == reference.keys()
    for name, p in module.items():
        assert torch.equal(p, reference[name]), name


@pytest.mark.parametrize("method", ["direct", "linear"])
@pytest.mark.parametrize("causal", [False, True])
def test_gradients_are_those_of_finite_differences(causal, method):
    module = MultiheadRank1Attention(4, 2, dtype=torch.float64, method=method)
    truth.randomize(module, 4)
    names = [name for name, _ in module.named_parameters()]
    masks = {"is_causal": causal, "key_padding_mask": PADDING[:, :3]}

    def out(z, *weights):
        given = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(module, given, (z, z, z), masks)[0]

    assert torch.autograd.gradcheck(
        out, (tokens(3, BATCH, 4).requires_grad_(), *module.parameters())
    )


def test_the_method_is_passed_on():
    z, mask = tokens(N, D), ~truth.random_mask(N, N, seed=5)
    direct = MultiheadRank1Attention(D, 2, dtype=torch.float64, method="direct")
    direct(z, z, z, attn_mask=mask)
    linear = MultiheadRank1Attention(D, 2, dtype=torch.float64, method="linear")
    with pytest.raises(AttentionError, match="differs between queries"):
        linear(z, z, z, attn_mask=mask)
    linear(z, z, z, attn_mask=CAUSAL, is_causal=True)  # the mask is only said to be causal


def test_a_causal_mask_of_another_length_is_followed():
    module = MultiheadRank1Attention(D, D, dtype=torch.float64, batch_first=True)
    truth.randomize(module, 6)
    z = tokens(BATCH, N, D)
    last = ~torch.ones(2, N, dtype=torch.bool).tril(N - 2)  # the last two queries of six
    full, _ = module(z, z, z, is_causal=True)
    part, _ = module(z[:, -2:], z, z, attn_mask=last, is_causal=True)
    truth.assert_close(part, full[:, -2:])
    start, _ = module(z[:, :2], z, z, is_causal=True)
    truth.assert_close(start, full[:, :2])


def test_a_query_that_sees_nothing_gets_the_bias_and_no_gradient():
    module = MultiheadRank1Attention(D, 2, dtype=torch.float64)
    truth.randomize(module, 7)
    z = tokens(N, D).requires_grad_()
    out, weights = module(
        z, z, z, key_padding_mask=torch.ones(N, dtype=torch.bool), need_weights=True
    )
    truth.assert_close(out, module.out_proj.bias.expand(N, D))
    assert not weights.any()
    (out.sum() + weights.sum()).backward()
    assert not z.grad.any()


def test_arguments_and_their_defaults_are_those_of_torch():
    for name in ("__init__", "forward"):
        theirs, ours = (
            dict(signature(getattr(kind, name)).parameters)
            for kind in (nn.MultiheadAttention, MultiheadRank1Attention)
        )
        # Nothing is appended to the keys, so there is nothing to say about that.
        common = [p for p in theirs if p not in ("add_bias_kv", "add_zero_attn")]
        assert [p for p in ours if p != "method"] == common
        for p in common:
            assert ours[p].default == theirs[p].default, p


def test_a_table_of_weights_beyond_all_memory_is_refused():
    module = MultiheadRank1Attention(2, 2, device="meta")
    z = torch.zeros(1 << 15, 2, device="meta")
    with pytest.raises(AttentionError, match="2,147,483,648 attention weights") as caught:
        module(z, z, z)
    assert "need_weights=False" in caught.value.remedy
    with pytest.raises(AttentionError, match="1,073,872,896 attention"):  # 2^30 is the limit
        module(z[:, None].expand(-1, 2, -1), *[z[: (1 << 13) + 1, None].expand(-1, 2, -1)] * 2)
    few = z[: 1 << 13, None].expand(-1, 2, -1)
    assert module(z[:, None].expand(-1, 2, -1), few, few)[1].shape == (2, 1 << 15, 1 << 13)


def test_masks_of_zeros_and_infinities_say_the_same_as_booleans():
    module = MultiheadRank1Attention(D, 2, dtype=torch.float64, batch_first=True)
    z, mask = tokens(BATCH, N, D), ~truth.random_mask(BATCH * 2, N, N, seed=8)
    floats = {
        "attn_mask": minus_infinity(mask, torch.float32),
        "key_padding_mask": minus_infinity(PADDING),
    }
    expected, _ = module(z, z, z, attn_mask=mask, key_padding_mask=PADDING)
    assert torch.equal(module(z, z, z, **floats)[0], expected)


@pytest.mark.parametrize("name", ["attn_mask", "key_padding_mask"])
@pytest.mark.parametrize(
    "change",
    [lambda m: m + 0.5, lambda m: -m, lambda m: m.long() + 1, lambda m: m.requires_grad_()],
    ids=["half", "+inf", "integers", "learned"],
)
def test_masks_that_would_be_added_are_refused(name, change):
    module = MultiheadRank1Attention(D, 2, batch_first=True)
    z = tokens(BATCH, N, D, dtype=torch.float32)
    mask = {"attn_mask": CAUSAL, "key_padding_mask": PADDING}[name]
    with pytest.raises(AttentionError, match="only hold 0 and -inf"):
        module(z, z, z, **{name: change(minus_infinity(mask))})


@pytest.mark.parametrize(
    "arguments",
    [(5, 2), (0, 1), (4, 0), (4, 2, 0.0, True, False, False), (4, -2)],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(arguments):
    with pytest.raises(AttentionError, match="positive, and embed_dim a multiple of num_heads"):
        MultiheadRank1Attention(*arguments)


def test_dropout_is_refused():
    with pytest.raises(AttentionError, match=r"dropout=0\.1, but the attention weights are never"):
        MultiheadRank1Attention(4, 2, dropout=0.1)


@pytest.mark.parametrize(
    ("shapes", "masks"),
    [
        ([(3, 6, 5), (3, 6, 3), (3, 6, 4)], {}),
        ([(3, 6, 4), (3, 6, 4), (3, 6, 4)], {}),
        ([(3, 6, 4), (3, 6, 3), (3, 6, 3)], {}),
        ([(3, 6, 4), (3, 6, 3), (3, 5, 4)], {}),
        ([(3, 6, 4), (1, 6, 3), (1, 6, 4)], {}),
        ([(3, 6, 4), (6, 3), (6, 4)], {}),
        ([(4,), (3,), (4,)], {}),
        ([(2, 3, 6, 4), (2, 3, 6, 3), (2, 3, 6, 4)], {}),
        ([(3, 6, 4), (3, 6, 3), (3, 6, 4)], {"key_padding_mask": (1, 6)}),
        ([(6, 4), (6, 3), (6, 4)], {"key_padding_mask": (1, 6)}),
        ([(3, 6, 4), (3, 6, 3), (3, 6, 4)], {"attn_mask": (1, 6)}),
        ([(3, 6, 4), (3, 6, 3), (3, 6, 4)], {"attn_mask": (3, 6, 6)}),
    ],
    ids=str,
)
def test_shapes_that_do_not_fit_are_refused(shapes, masks):
    module = MultiheadRank1Attention(4, 2, kdim=3, batch_first=True)
    given = {name: torch.zeros(shape, dtype=torch.bool) for name, shape in masks.items()}
    with pytest.raises(AttentionError, match="shapes do not fit: query"):
        module(*(torch.zeros(shape) for shape in shapes), **given)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4)], ids=str)
def test_nothing_in_nothing_out(shape):
    z = torch.zeros(shape)
    out, _ = MultiheadRank1Attention(4, 2)(z, z, z, is_causal=True)
    assert out.shape == shape


def encoder_layer(nhead, **options):
    options = {"dim_feedforward": 7, "dropout": 0.0, "batch_first": True} | options
    return nn.TransformerEncoderLayer(D, nhead, **options)


ENCODER_MASKS = {
    "none": {},
    "padding": {"src_key_padding_mask": PADDING},
    "causal": {"src_mask": CAUSAL, "is_causal": True},
    "a mask": {"src_mask": ~truth.random_mask(N, N, seed=10)},
}


@pytest.mark.parametrize("masks", ENCODER_MASKS.values(), ids=ENCODER_MASKS.keys())
@pytest.mark.parametrize("heads", [2, D])
def test_an_encoder_layer_gives_the_same_in_training_and_in_use(heads, masks):
    layer = encoder_layer(heads)  # an even number of heads: torch would take its fused path
    layer.self_attn = MultiheadRank1Attention(D, heads, batch_first=True)
    truth.randomize(layer, 11)
    z = tokens(BATCH, N, D, dtype=torch.float32)
    trained = layer.train()(z, **masks)
    with torch.no_grad():
        used = layer.eval()(z, **masks)
    truth.assert_close(used, trained)


def test_an_encoder_of_torch_can_be_loaded():
    reference = nn.TransformerEncoder(encoder_layer(D), 2, enable_nested_tensor=False)
    truth.randomize(reference, 12)
    encoder = copy.deepcopy(reference)
    for layer in encoder.layers:
        layer.self_attn = MultiheadRank1Attention(D, D, batch_first=True)
    encoder.load_state_dict(reference.state_dict())
    z = tokens(BATCH, N, D, dtype=torch.float32)
    with torch.no_grad():
        for masks in ({}, {"mask": CAUSAL}, {"src_key_padding_mask": PADDING}):
            truth.assert_close(encoder.eval()(z, **masks), reference.train()(z, **masks))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_refused():
    encoder = nn.TransformerEncoder(encoder_layer(2), 1).eval()
    encoder.layers[0].self_attn = MultiheadRank1Attention(D, 2, batch_first=True)
    with torch.no_grad(), pytest.raises(AttentionError, match="enable_nested_tensor=False"):
        encoder(tokens(BATCH, N, D, dtype=torch.float32), src_key_padding_mask=PADDING)


def test_autocast_rounds_only_what_torch_rounds():
    module = truth.randomize(MultiheadRank1Attention(D, 2), 13)
    z = tokens(N, BATCH, D, dtype=torch.float32)
    exact, table = module(z, z, z, need_weights=True)
    with torch.autocast("cpu", torch.bfloat16):
        out, weights = module(z, z, z, need_weights=True)
        out.float().sum().backward()
    assert out.dtype == weights.dtype == torch.bfloat16
    # Queries, keys, values, heads and output are each rounded once, by half a unit of 2^-8.
    for actual, expected in ((out, exact), (weights, table)):
        assert (actual.float() - expected).norm() < 5 * 2**-9 * expected.norm()
    for p in module.parameters():
        assert p.grad.dtype == torch.float32
        assert p.grad.isfinite().all()


def test_copies_and_saved_states_are_the_same_module():
    module = truth.randomize(MultiheadRank1Attention(D, 2, kdim=3), 14)
    loaded = MultiheadRank1Attention(D, 2, kdim=3)
    loaded.load_state_dict(module.state_dict())
    query, key = tokens(N, D, dtype=torch.float32), tokens(N, 3, dtype=torch.float32)
    copied = copy.deepcopy(module)
    expected = module(query, key, query)[0]
    for other in (loaded, copied):
        assert torch.equal(other(query, key, query)[0], expected)
    with torch.no_grad():
        copied.q_proj_weight.zero_()
    assert torch.equal(module(query, key, query)[0], expected)


def test_it_says_what_it_is():
    assert rankone.MultiheadRank1Attention is MultiheadRank1Attention
    said = repr(MultiheadRank1Attention(8, 2, kdim=3, bias=False, method="linear"))
    assert "embed_dim=8, num_heads=2, kdim=3, vdim=8, bias=False, batch_first=False" in said
    assert "method='linear'" in said


COMPILED = """
import torch
from rankone.nn import MultiheadRank1Attention

torch.manual_seed(0)
z, mask = torch.randn(2, 6, 4), torch.rand(6, 6) < 0.5
infinite = torch.zeros(6, 6).masked_fill(mask, -torch.inf)
padding = {"key_padding_mask": mask[:2]}
cases = [{}, {"is_causal": True}, padding, {"is_causal": True, **padding}]
tables = [{"attn_mask": mask, "need_weights": True}, {"attn_mask": infinite}]
for method in ("direct", "linear"):
    module = MultiheadRank1Attention(4, 2, batch_first=True, method=method)
    for masks in cases + tables * (method == "direct"):
        torch.compiler.reset()  # there is a limit to the graphs of one function
        compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
        results = []
        for f in (module, compiled):
            module.zero_grad()
            out = f(z, z, z, **masks)
            out[0].square().sum().backward()
            gradients = [p.grad for p in module.parameters()]
            results.append([x for x in out if x is not None] + gradients)
        torch.testing.assert_close(*results)
module = MultiheadRank1Attention(4, 2)
compiled = torch.compile(module, backend="aot_eager", fullgraph=True)
for n in (6, 5, 4):  # from the second on, lengths are symbols
    inputs, mask = [z[0, :n]] * 3, infinite[:n, :n]
    expected = module(*inputs, attn_mask=mask)
    torch.testing.assert_close(compiled(*inputs, attn_mask=mask), expected)
try:
    compiled(*inputs, attn_mask=mask + 1)
except RuntimeError as error:
    assert "only hold 0 and -inf" in str(error), error
else:
    raise SystemExit("a mask that would be added was not refused")
"""


@pytest.mark.slow
def test_it_compiles_into_one_graph():
    # Apart, as the shape checks of these tests cannot be traced.
    run = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
