"""Memory of windows: after any passage of a text, what follows it there."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import rankone
from rankone import Corpus, memorize
from rankone.construct.gated.windows import decays_for
from rankone.corpus.tasks import BEGIN, END
from rankone.errors import PrecisionError, SettingError, SizeError

TEXT = (
    "The fox said to the crow: sing, and the crow sang. The fox said to the hen: come, and the hen "
    "came. The fox said to the moon: fall, and the moon did not fall. And the fox said no more. "
) * 2 + "The end."


def counts(corpus):
    """How often each token follows each window, by counting."""
    found = defaultdict(Counter)
    for sentence in corpus.sentences:
        tokens = [*sentence.tokens, END]
        for i in range(1, len(sentence.tokens)):
            found[tuple(tokens[max(0, i - corpus.window + 1) : i + 1])][tokens[i + 1]] += 1
    return found


def softmax(model, tokens):
    """The distribution after the last of these tokens, from the network as written."""
    ids = torch.from_numpy(model.rows(tokens))[None]
    logits = model.network(ids)[0, -1].detach().double().numpy()
    shares = np.exp(logits - logits.max())
    return dict(zip(model.labels, shares / shares.sum(), strict=True))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("window", [1, 2, 4, 12])
def test_distributions_are_relative_frequencies(window, dtype):
    corpus = Corpus.from_texts([TEXT, "The fox said to the crow: no."], window=window)
    result = memorize(corpus, dtype=dtype)
    assert result.settings["construction"] == "gated"
    seen = counts(corpus)
    missed = sum(n.total() - max(n.values()) for n in seen.values())
    assert result.wrong == result.unavoidable == missed
    assert result.model.network.shape.window == window
    loss, entropy, total = 0.0, 0.0, 0
    for context, following in seen.items():
        shares = softmax(result.model, list(context))
        n = following.total()
        for token, count in following.items():
            assert shares[token] == pytest.approx(count / n, abs=2e-3)
            loss -= count * np.log(shares[token])
            entropy -= count * np.log(count / n)
        total += n
    assert abs(loss - entropy) / total < 1e-6
    assert result.bits == pytest.approx(entropy / total / np.log(2), abs=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_prompts_may_start_anywhere(dtype):
    """The same label, to the bit of the features, wherever at least a window of text begins."""
    window = 8
    corpus = Corpus.from_texts([TEXT], window=window)
    model = memorize(corpus, dtype=dtype).model
    tokens = corpus.sentences[0].tokens
    whole = model.predict([tokens])[0]
    for start in range(1, len(tokens) - window, 7):
        part = model.predict([tokens[start:]])[0]
        assert part[window - 1 :] == whole[start + window - 1 :]


letters = st.text("ab ", min_size=1, max_size=30)


@settings(deadline=None)
@given(st.lists(letters, min_size=1, max_size=4), st.integers(1, 6), st.booleans())
def test_any_texts(texts, window, single):
    """Few letters, many repetitions: "aaa" and "a" at the beginning of a text, too."""
    corpus = Corpus.from_texts(texts, tokenizer="characters", window=window)
    result = memorize(corpus, dtype="float32" if single else "float64")
    seen = counts(corpus)
    assert result.wrong == sum(n.total() - max(n.values()) for n in seen.values())
    predicted = result.model.predict(corpus)
    for sentence, labels in zip(corpus.sentences, predicted, strict=True):
        for i in range(1, len(labels)):
            context = tuple(sentence.tokens[max(0, i - window + 1) : i + 1])
            most = max(seen[context].values())
            assert seen[context][labels[i]] == most


def test_large_words_by_products_of_matrices(monkeypatch):
    """Both ways to find half-spaces hold the same corpus."""
    from rankone.construct.gated import solitary

    corpus = Corpus.from_texts([TEXT], window=6)
    one = memorize(corpus)
    monkeypatch.setattr(solitary, "SMALL", 3)
    monkeypatch.setattr(solitary, "HELD", 100)
    two = memorize(corpus)
    assert one.wrong == two.wrong == one.unavoidable
    assert one.hidden_units == two.hidden_units
    assert two.max_error < 1e-6


def test_a_unit_for_every_exception():
    corpus = Corpus.from_texts([TEXT], window=12)
    result = memorize(corpus)
    seen = counts(corpus)
    usual, exceptions = defaultdict(Counter), 0
    for context, following in seen.items():
        kind = next(iter(following)) if len(following) == 1 else tuple(sorted(following.items()))
        usual[context[-1]][kind] += 1
    for each in usual.values():
        exceptions += each.total() - max(each.values())
    assert result.hidden_units == exceptions


def test_same_seed_same_bytes(tmp_path):
    corpus = Corpus.from_texts([TEXT], window=12)
    one, two, three = (memorize(corpus, seed=seed) for seed in (1, 1, 2))
    names = [name for name, _ in one.model.network.named_parameters()]
    parts = [dict(result.model.network.named_parameters()) for result in (one, two, three)]
    assert all(torch.equal(parts[0][name], parts[1][name]) for name in names)
    assert not torch.equal(parts[0]["table"], parts[2]["table"])
    one.save(tmp_path / "m")
    again = rankone.load(tmp_path / "m")
    assert again.reading["window"] == 12
    assert again.predict(corpus) == one.model.predict(corpus)


def test_documents_begin_with_a_mark():
    corpus = Corpus.from_texts(["a b", "b a"], window=3)
    assert [sentence.tokens[0] for sentence in corpus.sentences] == [BEGIN, BEGIN]
    assert [sentence.labels for sentence in corpus.sentences] == [
        ["_", " b", END],
        ["_", " a", END],
    ]


def test_decays_have_two_bits_and_reach_the_window():
    for window in (1, 2, 4, 16, 100, 4096):
        decays = decays_for(window, 64)
        assert (np.frexp(decays)[0] * 4 % 1 == 0).all()  # two bits
        assert decays.max() == 1.0
        assert len(set(decays)) >= 2
        assert np.exp(-decays.min() * window) > 1e-4
        if window >= 16:
            assert np.exp(-decays.min() * window) < 0.2


def test_refusals():
    corpus = Corpus.from_texts([TEXT], window=3)
    for given_, what in (
        ({"construction": "line"}, "line has no windows"),
        ({"positions": False}, "positions cannot be False"),
        ({"max_length": 99}, "max_length cannot be 99"),
    ):
        with pytest.raises(SettingError, match=what):
            memorize(corpus, **given_)
    with pytest.raises(PrecisionError, match="give more heads"):
        memorize(Corpus.from_texts([TEXT * 3], window=40), dtype="float32", heads=1)


def test_too_many_distributions(monkeypatch):
    from rankone.construct.gated import labels

    monkeypatch.setattr(labels, "NUMBERS", 100)
    monkeypatch.setattr(labels, "MODEST", 1)
    said = r"(?s)distributions over \d+ next tokens.* GB, of at most .*"
    with pytest.raises(SizeError, match=said + "longer window"):
        memorize(Corpus.from_texts([TEXT], window=1))
    with pytest.raises(SizeError, match=said + "fewer documents, or longer ones"):
        memorize(Corpus.from_texts(["a b c", "a c b", "a b d"]))
