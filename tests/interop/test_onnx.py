"""The exported graph against the paper's equations, rankone's own run, and its own check."""

import copy
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dense_truth as truth
import networks
import rankone
from rankone import Corpus, Model
from rankone.certification.float_balls import FloatBalls
from rankone.errors import ExportError, ExtraError, LengthError, ModelError, OutputError, SizeError
from rankone.nn import Architecture, Evaluator, PiecewiseLinear, TokenClassifier

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from rankone.interop.onnx import check, export, export_onnx, sentences, serialize  # noqa: E402
from rankone.interop.onnx.graph import Graph, Pieces  # noqa: E402
from rankone.interop.onnx.rounding import Rounding  # noqa: E402

VOCABULARY, LABELS, D, N = len(networks.WORDS) + 1, 3, 4, 6
HIDDEN_ID = 10**12  # what stands under the mask does not matter
DTYPES = [torch.float64, torch.float32]
FEEDFORWARDS = ["rank1", "dense", "gated"]
UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}  # the largest relative error of rounding


def classifier(seed=0, dtype=torch.float64, **shape):
    sizes = {"vocabulary": VOCABULARY, "labels": LABELS, "dim": D, "hidden": 5} | shape
    return truth.randomize(TokenClassifier(truth.sized(Architecture(**sizes)), dtype=dtype), seed)


def model_of(network):
    words = tuple(f"w{i}" for i in range(network.shape.vocabulary - 1))
    labels = tuple(f"L{i}" for i in range(network.shape.labels))
    return Model(network, words, labels, {"lower": False})


# Rows of a batch: ids, and None at masked places.
def batches(positions):
    row = st.lists(st.one_of(st.none(), st.integers(0, VOCABULARY - 1)), max_size=N + 2)
    if positions:
        row = row.filter(lambda r: len(r) - r.count(None) <= positions)
    return st.lists(row, max_size=4)


def padded(rows, left=False):
    n = max(map(len, rows), default=0)
    rows = [[None] * (n - len(r)) + r if left else r + [None] * (n - len(r)) for r in rows]
    ids = [[HIDDEN_ID if i is None else i for i in row] for row in rows]
    mask = [[0 if i is None else 1 for i in row] for row in rows]
    return (np.array(x, dtype=np.int64).reshape(len(rows), n) for x in (ids, mask))


def expected(network, rows):
    """The equations, for the real tokens of each row alone."""
    for row in rows:
        ids = [i for i in row if i is not None]
        past = np.tri(len(ids), dtype=bool) if network.shape.causal else None
        yield truth.logits_of(network, ids, past).T if ids else np.empty((0, network.shape.labels))


def assert_equations(network, rows, mask, logits):
    assert np.isfinite(logits).all()
    for found, real, wanted in zip(logits, mask, expected(network, rows), strict=True):
        truth.assert_close(found[real != 0], wanted)


@given(
    attention=st.sampled_from(["rank1", "softmax", "hardmax"]),
    feedforward=st.sampled_from(FEEDFORWARDS),
    depth=st.integers(1, 2),
    causal=st.booleans(),
    hidden=st.sampled_from([0, 1, 5]),
    positions=st.sampled_from([0, N]),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
    left=st.booleans(),
    data=st.data(),
)
def test_the_module_is_the_equations(seed, dtype, left, data, **shape):
    heads = {} if shape["attention"] == "rank1" else {"heads": 2, "head_size": 3}
    network = classifier(seed, dtype, **shape, **heads)
    rows = data.draw(batches(shape["positions"]).filter(lambda b: any(map(len, b))))
    ids, mask = padded(rows, left)
    with torch.no_grad():
        logits = Graph(network)(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
    assert_equations(network, rows, mask, logits)


def test_padding_costs_no_digits():
    """The row that stands in for what is masked may have a key that dwarfs all others."""
    network = classifier()
    with torch.no_grad():
        network.table[0] = 1e12 * network.blocks[0].attention.v1
    ids, mask = padded([[None, 1, 2, None, 3]])
    with torch.no_grad():
        logits = Graph(network)(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
    truth.assert_close(logits[0, [1, 2, 4]], truth.logits_of(network, [1, 2, 3]).T)


@given(
    theta=st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.5, 3.0]), max_size=9),
    start=st.integers(0, 8),
    seed=st.integers(0, 99),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_bisection_is_searchsorted(theta, start, seed, dtype):
    """In float64, and rounded once."""
    rng = np.random.default_rng(seed)
    knots = np.sort([0.0, *theta])
    start = min(start, len(theta))
    f = PiecewiseLinear(knots, *(rng.standard_normal(len(knots) + i) for i in (0, 1)), start)
    s = np.concatenate([knots, np.nextafter(knots, 9), np.nextafter(knots, -9), [-1e9, 1e9]])
    s = s.astype(dtype)
    found = Pieces(f)(torch.from_numpy(s)).numpy()
    assert found.dtype == dtype
    assert np.array_equal(found, f(s.astype(np.float64)).astype(dtype))


# Exported graphs. Each takes seconds to write, so there are few; all kinds of layers are in them.


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(graph, ids, mask):
    (logits,) = graph.run(None, {"input_ids": ids, "attention_mask": mask})
    return logits


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return tmp_path_factory.mktemp("graphs")


@pytest.fixture(scope="module", params=DTYPES, ids=str)
def pair(places, request):
    """A network and its graph; test_seven_ways.py has one that is causal and without positions."""
    network = networks.of_every_kind(7, positions=N).to(request.param)
    result = export_onnx(model_of(network), places / f"{request.param}.onnx")
    assert result.ok
    return network, session(result.path)


@given(data=st.data(), left=st.booleans())
def test_onnxruntime_gives_what_the_equations_give(pair, data, left):
    network, graph = pair
    rows = data.draw(batches(network.shape.positions))
    ids, mask = padded(rows, left)
    logits = run(graph, ids, mask * 3)
    assert torch.from_numpy(logits).dtype == network.dtype
    assert logits.shape == (*ids.shape, LABELS)
    assert_equations(network, rows, mask, logits)


def test_odd_sentences(pair):
    """None, no words, one, as many as there are positions, unknown ones, under a mask only."""
    network, graph = pair
    longest = network.shape.positions
    unknown = VOCABULARY - 1
    for rows in (
        [],
        [[]],
        [[None] * 3],
        [[0]],
        [[unknown] * longest],
        [[unknown], [None, 1, None], []],
        [list(np.arange(longest) % VOCABULARY)],
    ):
        ids, mask = padded(rows)
        assert_equations(network, rows, mask, run(graph, ids, mask))


def test_numbers_that_are_no_rows(pair):
    _, graph = pair
    one = np.ones((1, 2), dtype=np.int64)
    for wrong in (-1, -100, -VOCABULARY, VOCABULARY, 1 << 40, -(1 << 40)):
        with pytest.raises(Exception, match=r"Gather|indices|bounds"):
            run(graph, np.array([[0, wrong]]), one)
        assert np.isfinite(run(graph, np.array([[0, wrong]]), np.array([[1, 0]]))).all()


def test_sentences_that_are_too_long(pair):
    _, graph = pair
    ids = np.zeros((1, N + 1), dtype=np.int64)
    with pytest.raises(Exception, match=r"Gather|indices|bounds"):
        run(graph, ids, np.ones_like(ids))


@pytest.fixture(scope="module")
def builtin(places):
    corpus = rankone.read_corpus("builtin")
    model = rankone.memorize(corpus).model
    return corpus, model, export_onnx(model, places / "builtin.onnx", corpus=corpus)


def test_the_whole_builtin_corpus(builtin):
    corpus, model, result = builtin
    assert result.ok
    assert result.wrong == 0
    assert result.difference <= 1e-9
    assert [part.source for part in result.compared] == ["made-up", corpus.source]
    assert result.compared[0].sentences == 4 * (corpus.longest + 1)  # each padded in four ways
    assert result.compared[1].tokens == corpus.n_tokens
    assert result.to_json()["tokens"] == result.tokens > corpus.n_tokens
    json.dumps(result.to_json())
    # And without the exporter's own check.
    mask = (np.arange(corpus.longest) < corpus.lengths[:, None]).astype(np.int64)
    ids = np.zeros_like(mask)
    ids[mask != 0] = rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    found = run(session(result.path), ids, mask)[mask != 0]
    assert np.abs(found - own_logits(model.network, rows, corpus.offsets)).max() <= 1e-9
    assert np.array_equal(found.argmax(1), model.label_ids(rows, corpus.offsets))


ALONE = """
import json, sys
import numpy as np, onnxruntime
graph = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
about = graph.get_modelmeta().custom_metadata_map
words, labels = json.loads(about["vocabulary"]), json.loads(about["labels"])
row = {word: i for i, word in enumerate(words)}
ids = np.array([[row.get(word, len(words)) for word in sys.argv[2:]]])
(logits,) = graph.run(["logits"], {"input_ids": ids, "attention_mask": np.ones_like(ids)})
print(json.dumps([labels[i] for i in logits[0].argmax(-1)]))
assert not {"torch", "rankone", "onnx"} & set(sys.modules), "not alone"
"""


def test_the_file_is_enough(builtin):
    corpus, model, result = builtin
    tokens = (*corpus.sentences[0].tokens, "unheard-of")
    said = subprocess.run(
        [sys.executable, "-c", ALONE, result.path, *tokens],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(said.stdout) == list(model.predict([tokens])[0])


def test_what_the_file_says_of_itself(builtin):
    _, model, result = builtin
    data = result.path.read_bytes()
    assert result.bytes == len(data)
    file = onnx.load_from_string(data)
    assert (file.producer_name, file.producer_version) == ("rankone", rankone.__version__)
    about = {entry.key: entry.value for entry in file.metadata_props}
    assert about.pop("format") == "rankone"
    about = {key: json.loads(value) for key, value in about.items()}
    assert about["labels"] == list(model.labels)
    assert about["vocabulary"] == list(model.vocabulary)
    assert about["reading"] == model.reading
    assert about["network"]["hidden"] == model.network.shape.hidden
    assert [opset.version for opset in file.opset_import] == [result.opset]
    assert not any(node.metadata_props or node.doc_string for node in file.graph.node)
    home = str(Path(rankone.__file__).parents[2])
    for trace in (home, sys.prefix, ".py", "aten", "pkg.", "rankone.interop", "pytorch"):
        assert trace.encode() not in data, trace


def bends(gain, bias, out_gain, s, dtype=torch.float64):
    """A network that is nothing but its bends: s is the row of the table."""
    shape = {"vocabulary": len(s), "dim": 1, "hidden": len(gain), "feedforward": "rank1"}
    network = classifier(dtype=dtype, **shape)
    layer = network.blocks[0].feedforward
    given = {
        network.table: torch.as_tensor(s)[:, None],
        network.blocks[0].attention.output: torch.zeros(1),
        layer.direction: torch.ones(1),
        layer.out_direction: torch.ones(1),
        layer.gain: torch.as_tensor(gain),
        layer.bias1: torch.as_tensor(bias),
        layer.out_gain: torch.as_tensor(out_gain),
    }
    with torch.no_grad():
        for parameter, values in given.items():
            parameter.copy_(values)
    return network


@pytest.mark.slow
def test_the_bends_in_onnxruntime(places):
    units = [1.0, 2.0, -1.0, 3.0, -2.0], [-0.5, -1.0, 0.5, 0.0, 6.0], [1.5, -2.0, 0.3, 0.7, 1.1]
    knots = PiecewiseLinear.from_units(*map(np.array, units)).knots
    assert knots.tolist() == [-0.0, 0.5, 0.5, 0.5, 3.0]
    s = np.concatenate([knots, np.nextafter(knots, 9), np.nextafter(knots, -9), knots + 1])
    model = model_of(bends(*units, s))
    written = export_onnx(model, places / "bends.onnx")
    ids = np.arange(len(s))
    found = run(session(written.path), ids[:, None], np.ones_like(ids)[:, None])[:, 0]
    assert np.array_equal(found, own_logits(model.network, ids, np.arange(len(s) + 1)))


def own_logits(network, rows, offsets):
    weight, bias = (p.detach().numpy() for p in (network.head.weight, network.head.bias))
    return Evaluator(network).run(rows, offsets, lambda z: (weight @ z).T + bias)


@pytest.mark.slow
def test_other_processes_write_the_same_bytes(places):
    code = "import sys; from rankone.interop.onnx import export_onnx; from rankone import load"
    code += "; export_onnx(load(sys.argv[1]), sys.argv[2])"
    model_of(classifier(hidden=3, feedforward="rank1")).save(places / "model")
    found = set()
    for seed in "12":
        path = places / f"seed{seed}.onnx"
        subprocess.run(
            [sys.executable, "-c", code, places / "model", path],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
        )
        found.add(path.read_bytes())
    assert len(found) == 1


# The check itself.


def damage(path, name, change):
    """The file with one of its tables changed."""
    file = onnx.load(path)
    (table,) = (t for t in file.graph.initializer if t.name == name)
    array = onnx.numpy_helper.to_array(table).copy()
    change(array)
    table.CopyFrom(onnx.numpy_helper.from_array(array, name))
    return file.SerializeToString()


def nudge(array):
    array[len(array) // 2] += 1e-3


DAMAGES = [
    ("layers.1.pieces.knots", nudge),
    ("layers.1.pieces.values", lambda values: np.add(values, 1e-8, out=values)),
    ("layers.1.pieces.slopes", lambda slopes: slopes.sort(axis=0)),
    ("table", lambda table: table[-1].fill(0.0)),
    ("positions", lambda positions: positions.sort(axis=0)),
    ("bias", lambda bias: np.add(bias, 1e-8, out=bias)),
]


@pytest.mark.parametrize(("name", "change"), DAMAGES, ids=[name for name, _ in DAMAGES])
def test_a_damaged_graph_is_caught(builtin, name, change, tmp_path, monkeypatch):
    corpus, model, result = builtin
    data = damage(result.path, name, change)
    monkeypatch.setattr(export, "serialize", lambda _: data)
    path = tmp_path / "graph.onnx"
    with pytest.raises(ExportError, match=f"{corpus.source}|made-up"):
        export_onnx(model, path, corpus=corpus)
    assert not list(tmp_path.iterdir())
    path.write_text("from before")
    with pytest.raises(ExportError):
        export_onnx(model, path, corpus=corpus)
    assert path.read_text() == "from before"


SMALL = {torch.float64: 1e-8, torch.float32: 3e-3}


@pytest.mark.parametrize("name", ["table", "positions", "weight", "bias", "layers.1.pieces.values"])
def test_small_damage_is_caught_in_either_precision(pair, name, places, tmp_path, monkeypatch):
    network, _ = pair
    small = SMALL[network.dtype]
    data = damage(places / f"{network.dtype}.onnx", name, lambda x: np.add(x, small, out=x))
    monkeypatch.setattr(export, "serialize", lambda _: data)
    with pytest.raises(ExportError, match="too far off") as caught:
        export_onnx(model_of(network), tmp_path / "graph.onnx")
    assert ("float64" in str(caught.value)) == (network.dtype == torch.float32)
    assert not list(tmp_path.iterdir())


class Bumped:
    """Stands for onnxruntime: the model's own logits, but for those of one row of the table."""

    def __init__(self, model, row, label, bump):
        self.graph, self.row, self.label, self.bump = Graph(model.network), row, label, bump

    @torch.no_grad()
    def run(self, _, given):
        ids = torch.from_numpy(given["input_ids"])
        logits = self.graph(ids, torch.from_numpy(given["attention_mask"])).numpy()
        logits[(ids == self.row).numpy(), self.label] += self.bump
        return [logits]


class Unmasked(Bumped):
    """Computes no numbers where no token is."""

    def run(self, names, given):
        (logits,) = super().run(names, given)
        logits[given["attention_mask"] == 0] = np.nan
        return [logits]


def test_logits_under_the_mask_are_numbers():
    model = model_of(classifier())
    fake, rows = Unmasked(model, 0, 0, 0.0), np.array([1, 2, 3])
    assert check.compare(fake, model, rows, np.array([0, 3]), source="x").ok
    assert check.compare(fake, model, rows, np.array([0, 2, 3]), source="x").far


class Leaning(Bumped):
    """Is right only where the first place of every sentence is real."""

    def run(self, names, given):
        ids, real = given["input_ids"], given["attention_mask"] != 0
        assert not np.isin(ids[~real], np.arange(VOCABULARY)).any()
        (logits,) = super().run(names, given)
        logits[~real[:, 0]] += 1e-6
        self.empty = not real.any(1).all()
        return [logits]


@pytest.mark.parametrize(
    ("padding", "caught"), [("alone", 0), ("right", 0), ("left", 1), ("scattered", 1)]
)
def test_every_padding_is_one(padding, caught):
    model = model_of(classifier())
    rows, offsets = sentences.made_up(model.network.shape)
    fake = Leaning(model, 0, 0, 0.0)
    found = check.compare(fake, model, rows, offsets, source="x", paddings=(padding,))
    assert bool(found.far) == bool(caught)
    assert fake.empty == (padding == "scattered")  # there is a sentence of which nothing is real
    assert (found.sentences, found.tokens) == (len(offsets) - 1, len(rows))


FLAT, RAMP = 0, 1
STEEP = {torch.float64: 1e7, torch.float32: 1e3}


def ramp(head, dtype=torch.float64):
    """From 0 to 1 within 1 / STEEP, at 1000; one row of the table stands before, one upon it."""
    steep = STEEP[dtype]
    gain, bias, out_gain = [1.0, 1.0], [-1000.0, -1000.0 - 1 / steep], [steep, -steep]
    network = bends(gain, bias, out_gain, [10.0, 1000.0 + 0.4 / steep, 2000.0], dtype)
    with torch.no_grad():
        network.head.weight.copy_(torch.tensor(head)[:, None])
        network.head.bias.zero_()
    return model_of(network)


WIDE, NARROW = DTYPES


@pytest.mark.parametrize(
    ("dtype", "head", "row", "label", "bump", "steep", "far", "wrong"),
    [
        (WIDE, [1.0, 2.0, 3.0], FLAT, 0, 0.9e-8, 0, 0, 0),  # of a logit of about 10
        (WIDE, [1.0, 2.0, 3.0], FLAT, 0, 1.3e-8, 0, 1, 0),
        (WIDE, [0.0, 2.0, 3.0], FLAT, 0, 0.9e-9, 0, 0, 0),
        (WIDE, [0.0, 2.0, 3.0], FLAT, 0, 1.3e-9, 0, 1, 0),
        (WIDE, [1.0, 2.0, 3.0], RAMP, 2, 1e-5, 1, 0, 0),
        (WIDE, [1.0, 2.0, 3.0], RAMP, 2, 1e-3, 0, 1, 0),
        (WIDE, [1.0, 3.0, 3.0], FLAT, 2, 1e-12, 0, 0, 1),  # a tie, broken the other way
        (WIDE, [1.0, 2.0, 3.0], FLAT, 0, np.inf, 0, 1, 1),
        # 24 roundings of 2^-24 in each of two runs are 2.9e-6, and as much again in the balls
        (NARROW, [1.0, 2.0, 3.0], FLAT, 0, 2.5e-5, 0, 0, 0),
        (NARROW, [1.0, 2.0, 3.0], FLAT, 0, 1e-4, 0, 1, 0),
        (NARROW, [0.0, 2.0, 3.0], FLAT, 0, 2.5e-6, 0, 0, 0),
        (NARROW, [0.0, 2.0, 3.0], FLAT, 0, 3.3e-6, 0, 1, 0),
        (NARROW, [1.0, 2.0, 3.0], RAMP, 2, 1e-1, 1, 0, 0),
        (NARROW, [1.0, 2.0, 3.0], RAMP, 2, 1e1, 0, 1, 0),
        (NARROW, [1.0, 3.0, 3.0], FLAT, 2, 1e-5, 0, 0, 1),
        (NARROW, [1.0, 2.0, 3.0], FLAT, 0, np.inf, 0, 1, 1),
    ],
)
def test_what_may_differ(dtype, head, row, label, bump, steep, far, wrong):
    model = ramp(head, dtype)
    offsets = np.arange(4)
    fake = Bumped(model, row, label, bump)
    found = check.compare(fake, model, np.arange(3), offsets, source="x", paddings=("alone",))
    assert (found.steep, found.far, found.wrong) == (steep, far, wrong)
    assert found.ok == (not far and not wrong)
    logits = own_logits(model.network, np.array([row]), np.array([0, 1]))
    size = bump / max(1.0, abs(logits[0, label]))
    sizes = (size, 0.0) if steep else (0.0, size)
    rel = 1e-3 if dtype == WIDE else 0.1  # of so small a number there are few digits
    assert (found.steep_difference, found.difference) == pytest.approx(sizes, rel=rel)


def test_the_line_for_people():
    """Numbers with their nouns, and no "within 0"."""
    told = check.Compared("x", 1, 1, 0.0, steep=0, steep_difference=0.0, far=0, wrong=0)
    assert told.line() == "x: 1 token, the same labels, identical logits"
    told = check.Compared("x", 2, 1200, 2e-10, steep=1, steep_difference=3e-7, far=0, wrong=1)
    assert told.line() == (
        "x: 1,200 tokens, 1 label differs, logits within 2e-10 (but for 1 token where rounding "
        "grows: 3e-07)"
    )
    told = check.Compared("x", 2, 1200, 0.0, steep=2, steep_difference=3e-7, far=0, wrong=2)
    assert told.line() == (
        "x: 1,200 tokens, 2 labels differ, identical logits (but for 2 tokens where rounding "
        "grows: 3e-07)"
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_room_is_what_rounding_explains(dtype):
    """On the ramp: the slope times a few of the last digits of s. On the flat: next to nothing."""
    network = ramp([1.0, 2.0, 3.0], dtype).network.requires_grad_(False)
    found = Rounding(network).room(np.array([FLAT, RAMP]), np.array([0, 1, 2]))
    assert found.shape == (2, LABELS)
    ulp = 1024 * UNIT[dtype] * STEEP[dtype] * np.array([1.0, 2.0, 3.0])
    assert (found[RAMP] > 3 * ulp).all()  # two roundings, of h and of s, in each of two runs
    assert (found[RAMP] < 20 * ulp).all()
    assert (found[FLAT] < 1000 * UNIT[dtype]).all()


def test_the_tolerance_is_what_counted_roundings_explain():
    """2n for an average; in float64 there is a rounder number."""
    lengths = np.array([1, 5, 100])
    for depth, hidden in ((1, 6), (2, 6), (1, 7)):
        shape = {"dim": 4, "hidden": hidden, "depth": depth}
        roundings = 6 + depth * (4 + 1 + 3 + 7 + 2 + 5 + hidden + 1 + 1 + 2 * lengths)
        found = Rounding(classifier(dtype=torch.float32, **shape)).tolerance(lengths)
        assert found == pytest.approx(2 * roundings * 2.0**-24, rel=1e-4)
        assert (Rounding(classifier(**shape)).tolerance(lengths) == 1e-9).all()


@given(
    seed=st.integers(0, 99),
    attention=st.sampled_from(["rank1", "softmax"]),
    feedforward=st.sampled_from(FEEDFORWARDS),
    causal=st.booleans(),
    dtype=st.sampled_from(DTYPES),
)
def test_what_runs_compute_lies_in_the_balls(seed, attention, feedforward, causal, dtype):
    """In either precision; in the narrow one they are off by more than that of the wide one."""
    shape = {"attention": attention, "feedforward": feedforward, "causal": causal, "positions": 9}
    network = classifier(seed, dtype, **shape)
    rows, offsets = sentences.made_up(network.shape)
    (balls,) = Rounding(network.requires_grad_(False)).features(rows, offsets)
    own = Evaluator(network).run(rows, offsets, lambda z: z.T).T
    assert own.dtype == (np.float64 if dtype == WIDE else np.float32)
    assert (np.abs(own - balls.mid) <= balls.rad).all()
    assert 2 * UNIT[dtype] < np.median(balls.rad) < 1000 * UNIT[dtype]
    room = Rounding(network).room(rows, offsets)
    fake = Bumped(model_of(network), 0, 0, 0.0)
    found = sentences.run(fake, network.shape, rows, offsets, "right", np.random.default_rng(0))
    off = np.abs(found - own_logits(network, rows, offsets))
    assert (off <= room)[room > 0].all()


def test_rounding_that_grows_is_measured_in_float32():
    """Balls of several blocks explain nothing; the run in float64 tells what the own one is off."""
    network = classifier(1, torch.float32, attention="softmax", heads=2, head_size=2, depth=6)
    rows, offsets = sentences.made_up(network.requires_grad_(False).shape)
    rounding, lengths = Rounding(network), np.diff(offsets)
    (balls,) = rounding.features(rows, offsets)
    assert np.median(balls.rad) > 1
    room = rounding.room(rows, offsets)
    own, exact = (own_logits(n, rows, offsets) for n in (network, copy.deepcopy(network).double()))
    off = np.abs(own - exact)
    count = rounding.tolerance(lengths) / 2 / UNIT[NARROW]
    assert (room >= 0.99 * np.repeat(count, lengths)[:, None] * off).all()
    assert np.median(room) < 0.1


def test_the_balls_are_those_of_the_pieces_that_are_run():
    """On a line this long float64 adds slopes up so badly that exact sums lie elsewhere."""
    feet = np.arange(1, 50) * 2e5 + 1 / 3
    bias = np.concatenate([[0.0], np.stack([-feet, -feet - 1e-9], 1).ravel()])
    out_gain = np.concatenate([[0.1], np.tile([1e9, -1e9], len(feet))])
    network = bends(np.ones_like(bias), bias, out_gain, [1e7])
    rows, offsets = np.array([0]), np.array([0, 1])
    own = Evaluator(network).run(rows, offsets, lambda z: z.T)[0]
    off, rad = [], []
    (chunk,) = FloatBalls(network).run(rows, offsets)
    (balls,) = Rounding(network).features(rows, offsets)
    for found in (balls, chunk.features):
        off.append(abs(own - found.mid[:, 0]).item())
        rad.append(found.rad.item())
    assert off[0] <= rad[0] < 1e-6
    assert off[1] > 1e-3 > rad[1]


def test_there_is_no_room_where_rounding_may_do_anything():
    """Hardmax shares the weight among equal scores, unless rounding makes one the largest."""
    room = Rounding(classifier(attention="hardmax")).room(np.array([1, 1]), np.array([0, 2]))
    assert (room == 0).all()


def test_made_up_sentences():
    shape = classifier(positions=100).shape
    rows, offsets = sentences.made_up(shape)
    assert np.diff(offsets).tolist() == [*range(1, 65), 100]
    assert set(rows.tolist()) == set(range(VOCABULARY))
    for other in (classifier().shape, classifier(positions=5).shape):
        assert np.diff(sentences.made_up(other)[1]).max() == (other.positions or 64)


@given(st.lists(st.integers(1, 9), min_size=1), st.integers(0, 99))
def test_masks_have_as_many_places_as_tokens(lengths, seed):
    rng = np.random.default_rng(seed)
    for padding in ("right", "left", "scattered"):
        mask = sentences.mask(np.array(lengths), padding, rng)
        assert mask.sum(1).tolist() == lengths
    assert mask.shape[1] > max(lengths)


def test_steps_of_the_check_are_small():
    shape, lengths = classifier().shape, np.array([3, 9, 1, 4, 4, 9, 2])
    parts = [lengths[part] for part in sentences.batches(lengths, shape, 100)]
    assert all(len(part) * part.max() ** 2 <= 100 or len(part) == 1 for part in parts)
    assert sorted(np.concatenate(parts)) == sorted(lengths)


# Refusals, all before the work begins.


@pytest.fixture
def no_work(monkeypatch):
    def serialize(_):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(export, "serialize", serialize)


def sentence(n):
    return Corpus.from_sentences([(["w0"] * n, ["L0"] * n)])


@pytest.mark.usefixtures("no_work")
def test_refusals(tmp_path, monkeypatch):
    model, path = model_of(classifier(positions=N)), tmp_path / "graph.onnx"
    with pytest.raises(OutputError, match="no such directory"):
        export_onnx(model, tmp_path / "none" / "graph.onnx")
    with pytest.raises(OutputError, match="is a directory"):
        export_onnx(model, tmp_path)
    with pytest.raises(LengthError, match=f"sentence 1: {N + 1} tokens"):
        export_onnx(model, path, corpus=sentence(N + 1))
    monkeypatch.setattr(export, "SCORES", 24)
    with pytest.raises(SizeError, match="a sentence of 5 tokens"):
        export_onnx(model, path, corpus=sentence(5))
    with torch.no_grad():
        model.network.head.weight.zero_()
        model.network.head.bias.zero_()
    with pytest.raises(ModelError, match="without a readout"):
        export_onnx(model, path)
    assert not list(tmp_path.iterdir())


def test_too_large_for_one_file(tmp_path, monkeypatch):
    monkeypatch.setattr(serialize, "LIMIT", 1000)
    monkeypatch.setattr(serialize, "traced", None)
    with pytest.raises(SizeError, match="at most 1,000"):
        export_onnx(model_of(classifier()), tmp_path / "graph.onnx")
    assert not list(tmp_path.iterdir())


def test_a_graph_that_does_not_run(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "serialize", lambda _: b"no graph")
    with pytest.raises(ExportError, match="cannot run it"):
        export_onnx(model_of(classifier()), tmp_path / "graph.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", ["onnxruntime", "onnx", "onnxscript"])
def test_what_is_not_installed_is_named(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraError, match=r"rankone\[onnx\]"):
        runpy.run_path((export if module == "onnxruntime" else serialize).__file__)
