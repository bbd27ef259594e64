"""Contexts of a corpus in parts, brought together by keys, are those of the whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import tasks
from rankone import Corpus
from rankone.corpus import contexts, keys
from rankone.corpus.ceilings import INPUTS
from rankone.corpus.keys import KEYS, drawn, maker_of
from rankone.corpus.keys import numbered as numbers_of
from rankone.corpus.parted import PartedCorpus, columns_of, corpus_of, parted
from rankone.corpus.picked import conflicts_of, laid_end_to_end, pick
from rankone.corpus.shuffle import errors_of, settle
from rankone.corpus.tallies import best, tally_parts
from rankone.corpus.targets import choose_targets
from rankone.engines import Engine, open_engine

LOOKS = [*KEYS, *(partial(contexts.by_window, window=k) for k in (1, 2, 3, 5))]


class Buckets:
    """An engine that splits into so many buckets, whatever their size."""

    def __init__(self, count: int) -> None:
        self.engine = open_engine("here")
        self.engine.workers = count

    def __enter__(self) -> Engine:
        return self.engine.__enter__()

    def __exit__(self, *_: object) -> None:
        self.engine.close()


@st.composite
def problems(draw: st.DrawFn) -> tuple[Corpus, int, int]:
    """A corpus with copies that contradict, the size of its parts, and a number of buckets."""
    rows = draw(corpora.sentences())
    again = draw(st.lists(st.integers(0, len(rows) - 1), max_size=4))
    rows += [(rows[i][0], rows[i][1][::-1]) for i in again]
    whole = tasks.corpus_of(rows, draw(st.sampled_from(list(tasks.ALL))))  # type: ignore[arg-type]
    return whole, draw(st.integers(1, 20)), draw(st.integers(1, 4))


@given(problems())
def test_every_context_is_settled_as_in_the_whole(problem: tuple[Corpus, int, int]) -> None:
    corpus, size, buckets = problem
    with Buckets(buckets) as engine:
        parts = parted(corpus, engine, size)
        for look in LOOKS:
            tally, (own,) = tally_parts([corpus], look)
            wanted, settled = best(tally), settle(parts, look)
            tables = [engine.take(ref) for ref in settled.tables]
            starts = [part.start for part in parts.parts]

            def joined(name: str, tables: list = tables) -> list[int]:  # type: ignore[type-arg]
                return np.concatenate([table[name] for table in tables]).tolist()

            members = [t["members"] + start for t, start in zip(tables, starts, strict=True)]
            own_members = wanted.members(own, corpus.label_ids)
            assert settled.unavoidable == errors_of(parts, look) == wanted.errors, look
            assert joined("labels") == wanted.labels[own].tolist(), look
            assert joined("begins") == (own == np.arange(len(own))).tolist(), look
            assert np.concatenate(members).tolist() == own_members.tolist(), look
            assert joined("contexts") == own[own_members].tolist(), look


@given(problems())
def test_conflicts_are_those_of_the_whole(problem: tuple[Corpus, int, int]) -> None:
    corpus, size, buckets = problem
    wanted = choose_targets([corpus], positions=True, causal=False, strict=False)
    with Buckets(buckets) as engine:
        parts = parted(corpus, engine, size)
        found = conflicts_of(parts, settle(parts, contexts.by_sequence))
    assert found == wanted.conflicts
    assert [str(conflict) for conflict in found] == [str(c) for c in wanted.conflicts]


@given(problems())
def test_parts_hold_the_whole_corpus(problem: tuple[Corpus, int, int]) -> None:
    corpus, size, _ = problem
    with open_engine("disk") as engine:
        parts = parted(corpus, engine, size)
        some = [parts.part(number) for number in range(len(parts.parts))]
        assert [s for part in some for s in part.sentences] == list(corpus.sentences)
        assert parts.sha256 == corpus.sha256
        sizes = [(part.n_tokens, part.n_sentences, len(part.asked), part.longest) for part in some]
    assert sizes == [(p.tokens, p.sentences, p.asked, p.longest) for p in parts.parts]
    counts = corpus.n_tokens, corpus.n_sentences, len(corpus.asked), corpus.longest
    assert (parts.n_tokens, parts.n_sentences, parts.n_asked, parts.longest) == counts
    assert all(part.tokens <= size + corpus.longest for part in parts.parts)
    for token in range(corpus.n_tokens):
        number, at = parts.part_of(token)
        assert some[number].place(at) == corpus.place(token)
    back, starts = laid_end_to_end(parts.heading, [columns_of(part) for part in some])
    assert back.sentences == corpus.sentences
    assert starts == [part.start for part in parts.parts]


@given(corpora.corpora, st.data())
def test_sentences_are_picked_with_their_tokens(corpus: Corpus, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.integers(0, corpus.n_tokens - 1)))
    tokens = np.array(sorted(wanted), dtype=np.int64)
    some, at = pick(corpus, tokens)
    sentences = sorted({int(corpus.sentence_of[i]) for i in wanted})
    assert list(some.sentences) == [corpus.sentences[j] for j in sentences]
    assert some.lines[at].tolist() == corpus.lines[tokens].tolist()
    assert some.positions[at].tolist() == corpus.positions[tokens].tolist()


def test_narrow_columns_become_wide_again() -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba yx"))
    table = columns_of(corpus)
    assert table["token_ids"].itemsize == table["lines"].itemsize == 4
    for name in ("token_ids", "label_ids", "offsets", "lines", "file_ids"):
        assert getattr(corpus_of(corpus, table), name).dtype == np.int64


@given(problems())
def test_keys_are_equal_for_equal_contexts_only(problem: tuple[Corpus, int, int]) -> None:
    corpus = problem[0]
    for look in LOOKS:
        every = np.arange(corpus.n_tokens)
        _, number = numbers_of(maker_of(look)(corpus, every, b"a secret of some"))
        seen: dict[int, int] = {}
        firsts = [seen.setdefault(n, i) for i, n in enumerate(number.tolist())]
        assert firsts == look(corpus).tolist(), look


def test_half_a_key_that_is_the_same_by_chance_is_not_a_key() -> None:
    found = np.array([[5, 1], [5, 2], [5, 1], [3, 1], [5, 2], [5, 0]], dtype=np.uint64)
    first, number = numbers_of(found)
    assert first.tolist() == [3, 5, 0, 1]
    assert number.tolist() == [2, 3, 2, 0, 3, 1]
    first, number = numbers_of(found[:0])
    assert len(first) == len(number) == 0


def test_random_numbers_of_keys_do_not_depend_on_how_many_there_are() -> None:
    few, many = (drawn(b"secret", keys.WORDS, n) for n in (3, 50))
    assert (many[:3] == few).all()
    assert not (drawn(b"secret", keys.PLACES, 3) == few).any()
    assert not (drawn(b"other", keys.WORDS, 3) == few).any()


def test_a_sentence_that_no_other_one_equals_sends_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contexts of copies travel, and no others: what a cluster sends depends on it."""
    corpus = Corpus.from_sentences(corpora.spelled("abc xyz", "abd xyz", "abc xyy", "abde xyzz"))
    sent: list[int] = []
    whole = maker_of(contexts.by_sequence)

    def counted(part: Corpus, tokens: np.ndarray, secret: bytes) -> np.ndarray:
        sent.append(len(tokens))
        return whole(part, tokens, secret)

    monkeypatch.setitem(KEYS, contexts.by_sequence, counted)
    with Buckets(2) as engine:
        settle(parted(corpus, engine, 6), contexts.by_sequence)
    assert sum(sent) == 6


def test_real_text(shared: Path) -> None:
    from rankone import read_corpus

    corpus = read_corpus(shared / "conll2003" / "eng.testb")
    with open_engine("disk") as engine:
        engine.room = 1_000_000
        parts: PartedCorpus = parted(corpus, engine, 7_000)
        assert len(parts.parts) == 7
        assert engine.buckets(300 * corpus.n_tokens) > 10
        for look in INPUTS.values():
            assert errors_of(parts, look) == best(tally_parts([corpus], look)[0]).errors
