"""Networks with a window: the module, the evaluator and the formula agree."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rankone.errors import ModelError
from rankone.nn import Architecture, Evaluator, Model, TokenClassifier, load
from rankone.nn import evaluate as evaluating
from rankone.nn.ragged import Ragged
from rankone.nn.windows import Fading, stretches

WORDS = tuple("abcdef")


def network(attention="softmax", heads=2, depth=1, window=3, dtype=torch.float64):
    torch.manual_seed(0)
    given = {"dim": 6, "hidden": 4, "attention": attention, "heads": heads, "depth": depth}
    shape = Architecture(vocabulary=7, labels=3, causal=True, window=window, **given)
    return TokenClassifier(shape, dtype=dtype)


@torch.no_grad()
def fading(window=3, dtype=torch.float64):
    """Coordinate 0 is 1 for all, 5 counts positions; keys and queries read nothing else."""
    found = network(window=window, dtype=dtype)
    attention = found.blocks[0].attention
    found.table[:, 0], found.table[:, 5] = 1.0, 0.0
    found.step[:] = 0.0
    found.step[5] = 0.5
    attention.query[:] = 0.0
    attention.query[:, 0, 0] = torch.tensor([1.0, 2.0])
    attention.key[:] = 0.0
    attention.key[:, 0, 5] = 1.0
    attention.value[:, 0, 5] = 0.0
    found.blocks[0].feedforward.weight1[:, 5] = 0.0
    return found


def formula(found, ids):
    """Eq. 2 with the mask written out, for one text; several blocks with their own layers."""
    z = found.table[ids] + torch.arange(len(ids))[:, None] * found.step
    for block in found.blocks:
        rows = []
        for k in range(len(ids)):
            first = max(0, k - found.shape.window + 1)
            seen, own = z[first : k + 1], z[k].clone()
            for head in block.attention.heads:
                scores = (seen @ head.key.T) @ (head.query @ z[k])
                if block.attention.kind == "hardmax":
                    weights = (scores == scores.max()).double()
                    weights = weights / weights.sum()
                else:
                    weights = scores.softmax(0)
                own = own + head.output @ (weights @ (seen @ head.value.T))
            rows.append(own)
        z = block.feedforward(torch.stack(rows))
    return z.detach().numpy()


def evaluated(found, ids, offsets):
    return np.concatenate(list(Evaluator(found).features(ids, offsets)), axis=1).T


TEXT = np.array([0, 1, 2, 3, 0, 1, 2, 4, 5, 6, 6, 1, 0])


@pytest.mark.parametrize("window", [1, 3, 20])
@pytest.mark.parametrize(
    ("attention", "heads", "depth"),
    [("softmax", 2, 1), ("softmax", 2, 2), ("rank1", 1, 1), ("hardmax", 2, 1)],
)
def test_module_and_evaluator_are_the_formula(attention, heads, depth, window):
    found = network(attention, heads, depth, window)
    expected = formula(found, torch.from_numpy(TEXT))
    rows = found.features(torch.from_numpy(TEXT)[None])[0].detach().numpy()
    assert rows == pytest.approx(expected, abs=1e-12)
    assert evaluated(found, TEXT, np.array([0, len(TEXT)])) == pytest.approx(expected, abs=1e-12)
    assert Fading.of(found) is None


@pytest.mark.parametrize("window", [1, 3, 8])
@pytest.mark.parametrize("size", [1, 2, 5, 1 << 16])
def test_fading_heads_in_pieces_of_any_size(window, size, monkeypatch):
    found = fading(window)
    assert [head.decay for head in Fading.of(found)] == [0.5, 1.0]
    monkeypatch.setattr(evaluating, "stretches", lambda o, w, _: stretches(o, w, size))
    expected = [formula(found, torch.from_numpy(text)) for text in (TEXT, TEXT[:2], TEXT[4:])]
    ids = np.concatenate([TEXT, TEXT[:2], TEXT[4:]])
    offsets = np.array([0, 13, 15, 24])
    rows = evaluated(found, ids, offsets)
    assert rows == pytest.approx(np.concatenate(expected), abs=1e-12)


def test_what_is_in_front_of_a_window_does_not_matter():
    found = fading()
    late = TEXT[5:]
    one = evaluated(found, TEXT, np.array([0, len(TEXT)]))[7:]
    two = evaluated(found, late, np.array([0, len(late)]))[2:]
    seen = np.arange(5)  # the last coordinate counts positions
    assert (one[:, seen] == two[:, seen]).all()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda n: n.blocks[0].attention.query[0, 0].add_(n.step),
        lambda n: n.blocks[0].attention.value[0, 0].add_(n.step),
        lambda n: n.blocks[0].attention.key[0, 0, 1].add_(1.0),
        lambda n: n.blocks[0].attention.query[1, 0, 2].add_(1.0),
        lambda n: n.step.neg_(),
    ],
)
def test_heads_that_are_not_fading_are_run_in_general(spoil):
    found = fading()
    with torch.no_grad():
        spoil(found)
    assert Fading.of(found) is None
    expected = formula(found, torch.from_numpy(TEXT))
    assert evaluated(found, TEXT, np.array([0, len(TEXT)])) == pytest.approx(expected, abs=1e-12)


def test_sentences_end_to_end():
    found = fading()
    offsets = np.array([0, 5, 13])
    rows = found.ragged(found.table[torch.from_numpy(TEXT)], Ragged(offsets))
    parts = [found(torch.from_numpy(TEXT[a:b])[None])[0] for a, b in ((0, 5), (5, 13))]
    assert torch.allclose(rows, torch.cat(parts), atol=1e-12)


def test_positions_may_be_given():
    """Scores grow by the same number, so only the coordinate that counts changes."""
    found = fading()
    ids = torch.from_numpy(TEXT)[None]
    one = found.embed(ids)
    two = found.embed(ids, torch.arange(len(TEXT)) + 100)
    assert torch.equal((two - one)[0, :, 5], torch.full((len(TEXT),), 50.0))
    assert torch.equal(two[..., :5], one[..., :5])


def test_masks_and_windows(tmp_path):
    found = fading()
    ids = torch.from_numpy(TEXT)[None]
    there = torch.ones(1, len(TEXT), dtype=torch.bool)
    there[0, 10:] = False
    assert torch.allclose(found(ids, there)[0, :10], found(ids)[0, :10], atol=1e-13)
    model = Model(found, WORDS, ("X", "Y", "Z"))
    model.save(tmp_path / "m")
    again = load(tmp_path / "m")
    assert torch.equal(again.network(ids), found(ids))
    assert again.network.shape.window == 3
    text = [WORDS[i] if i < 6 else "?" for i in TEXT]
    assert again.predict([text]) == model.predict([text])


def test_a_window_needs_causality_and_no_positions(tmp_path):
    model = Model(fading(), WORDS, ("X", "Y", "Z"))
    model.save(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    config.write_text(config.read_text().replace('"causal": true', '"causal": false'))
    with pytest.raises(ModelError, match="a window of a network that is not causal"):
        load(tmp_path / "m")


def test_stretches_cover_every_token_once_with_all_it_sees():
    offsets = np.array([3, 10, 11, 30])
    for window in (1, 4, 40):
        for size in (1, 3, 8, 100):
            seen = []
            for first, last, inner in stretches(offsets, window, size):
                begin = last - int(inner[-1])
                seen += range(first, last)
                text = offsets[offsets.searchsorted(first, side="right") - 1]
                assert begin == max(text, first - window + 1)
                starts = [begin, *(o for o in offsets if begin < o < last), last]
                assert (inner + begin).tolist() == starts
            assert seen == list(range(3, 30))
