"""Batches: every token once an epoch, in an order that only seed and epoch decide."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rankone
from corpora import corpora
from rankone import Corpus
from rankone.training.batches import batches, count, gather
from rankone.training.processes import Processes

sizes = st.sampled_from([1, 2, 3, 5, 100])
seeds = st.integers(0, 2**31 - 1)


def epoch_of(corpus, size, *, seed=0, epoch=0, first=0, rank=0, world=1):
    processes = Processes(rank, world)
    return list(batches(corpus, size, seed=seed, epoch=epoch, first=first, processes=processes))


def sentences_of(batch):
    """Each sentence of the batch as its words and labels, by number."""
    words, labels = batch.words[batch.index].tolist(), batch.labels.tolist()
    return [(tuple(words[a:b]), tuple(labels[a:b])) for a, b in pairwise(batch.sentences.offsets)]


def sentences_in(corpus):
    words, labels = corpus.token_ids.tolist(), corpus.label_ids.tolist()
    return [(tuple(words[a:b]), tuple(labels[a:b])) for a, b in pairwise(corpus.offsets)]


def numbered(n):
    """Sentence j is the word j alone, so that the order can be read off."""
    return Corpus.from_sentences([([f"w{j}"], ["L"]) for j in range(n)])


def order(corpus, **given):
    return [int(word) for batch in epoch_of(corpus, 1, **given) for word in batch.words]


# One process.


@given(corpus=corpora, size=sizes, seed=seeds, epoch=st.integers(0, 1000))
def test_every_sentence_comes_whole_and_once_an_epoch(corpus, size, seed, epoch):
    found = epoch_of(corpus, size, seed=seed, epoch=epoch)
    assert sorted(s for b in found for s in sentences_of(b)) == sorted(sentences_in(corpus))
    assert sum(batch.asked for batch in found) == corpus.n_tokens


@given(corpus=corpora, size=sizes)
def test_batches_have_so_many_sentences_and_the_last_what_is_left(corpus, size):
    held = [len(batch.sentences.lengths) for batch in epoch_of(corpus, size)]
    assert held[:-1] == [size] * (len(held) - 1)
    assert 1 <= held[-1] <= size
    assert sum(held) == corpus.n_sentences
    assert len(held) == count(corpus, size)


@given(corpus=corpora, size=sizes)
def test_words_are_each_there_once_and_indexed_by_the_tokens(corpus, size):
    for batch in epoch_of(corpus, size):
        words = batch.words.tolist()
        assert words == sorted(set(words))
        assert set(batch.index.tolist()) == set(range(len(words)))
        for part in (batch.words, batch.index, batch.labels):
            assert part.dtype == torch.int64
        assert batch.index.shape == batch.labels.shape == (batch.asked,)
        assert batch.sentences.offsets[0] == 0
        assert batch.sentences.offsets[-1] == batch.asked
        assert (batch.sentences.lengths > 0).all()


@given(corpus=corpora, size=sizes, seed=seeds, data=st.data())
def test_one_can_go_on_at_any_batch(corpus, size, seed, data):
    whole = epoch_of(corpus, size, seed=seed, epoch=3)
    first = data.draw(st.integers(0, len(whole)))
    rest = epoch_of(corpus, size, seed=seed, epoch=3, first=first)
    assert [sentences_of(b) for b in rest] == [sentences_of(b) for b in whole[first:]]
    for a, b in zip(rest, whole[first:], strict=True):
        assert torch.equal(a.words, b.words)
        assert torch.equal(a.index, b.index)


def test_the_order_depends_on_seed_and_epoch_and_nothing_else():
    corpus = numbered(50)
    orders = {
        (seed, epoch): tuple(order(corpus, seed=seed, epoch=epoch))
        for seed in range(4)
        for epoch in range(4)
    }
    assert len(set(orders.values())) == len(orders)  # seed 0, epoch 1 is not seed 1, epoch 0
    np.random.seed(7)  # what others draw does not matter
    torch.manual_seed(7)
    assert tuple(order(corpus, seed=2, epoch=3)) == orders[2, 3]
    state = torch.get_rng_state(), np.random.get_state()[1].copy()
    order(corpus, seed=2, epoch=3)
    assert torch.equal(torch.get_rng_state(), state[0])
    np.testing.assert_array_equal(np.random.get_state()[1], state[1])


@pytest.mark.parametrize("size", [1, 7, 32, 100])
def test_the_order_does_not_depend_on_the_size_of_the_batches(size):
    corpus = numbered(50)
    words = [word for batch in epoch_of(corpus, size) for word in batch.words[batch.index].tolist()]
    assert words == order(corpus)


def test_every_place_in_the_order_is_as_likely():
    corpus, epochs = numbered(5), 600
    seen = np.zeros((5, 5))
    for epoch in range(epochs):
        seen[np.arange(5), order(corpus, epoch=epoch)] += 1
    # Six standard deviations of a binomial count with p = 1/5.
    assert np.abs(seen - epochs / 5).max() < 6 * np.sqrt(epochs * 0.2 * 0.8)


@given(corpus=corpora, data=st.data())
def test_gathering_takes_the_tokens_of_each_sentence_in_turn(corpus, data):
    numbers = st.integers(0, corpus.n_sentences - 1)
    chosen = np.array(data.draw(st.lists(numbers, max_size=6)), dtype=np.int64)
    at, offsets = gather(corpus, chosen)
    assert len(offsets) == len(chosen) + 1
    assert len(at) == offsets[-1]
    for j, (a, b) in zip(chosen, pairwise(offsets), strict=True):
        assert at[a:b].tolist() == list(range(corpus.offsets[j], corpus.offsets[j + 1]))


# Several processes.


@given(corpus=corpora, size=sizes, world=st.integers(2, 5), seed=seeds)
def test_the_shares_put_together_are_the_whole_batch(corpus, size, world, seed):
    whole = epoch_of(corpus, size, seed=seed, epoch=1)
    shares = [epoch_of(corpus, size, seed=seed, epoch=1, rank=r, world=world) for r in range(world)]
    for batch, parts in zip(whole, zip(*shares, strict=True), strict=True):
        found = [s for part in parts for s in sentences_of(part)]
        assert sorted(found) == sorted(sentences_of(batch))
        for part in parts:
            assert part.asked == batch.asked  # the loss is a mean over the tokens of all
            assert torch.equal(part.words, batch.words)  # so that gradients can be added
            assert part.index.shape == part.labels.shape == (part.sentences.offsets[-1],)
            assert part.index.dtype == torch.int64


@given(corpus=corpora, size=sizes, world=st.integers(2, 5))
def test_shares_are_even(corpus, size, world):
    shares = [epoch_of(corpus, size, rank=r, world=world) for r in range(world)]
    for parts in zip(*shares, strict=True):
        held = [len(part.sentences.lengths) for part in parts]
        assert max(held) - min(held) <= 1


def test_more_processes_than_sentences_leave_somebody_with_nothing():
    corpus = rankone.read_corpus("toy")
    *_, last = epoch_of(corpus, 2, rank=2, world=3)
    assert last.sentences.offsets.tolist() == [0]
    assert last.index.shape == last.labels.shape == (0,)
    assert last.asked > 0
    assert len(last.words) > 0
