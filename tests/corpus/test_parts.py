"""Parts of a corpus, worked on alone and put together, give what the whole gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import corpora
import tasks
from rankone import Corpus, Sentence
from rankone.corpus import contexts
from rankone.corpus.ceilings import INPUTS
from rankone.corpus.keys import KEYS, maker_of
from rankone.corpus.parts import cut, joined, numbered
from rankone.corpus.tallies import best, merge, tally_parts
from rankone.corpus.targets import choose_targets
from rankone.errors import ConflictError, SettingError

FILES = st.sampled_from(["one.conll", "two.conll", None])


LOOKS = [*KEYS, *(partial(contexts.by_window, window=k) for k in (1, 2, 3, 5))]


@dataclass(frozen=True)
class Problem:
    """A corpus, and sentences to cut it at."""

    whole: Corpus
    at: list[int]

    @property
    def parts(self) -> tuple[Corpus, ...]:
        return numbered(cut(self.whole, self.at))


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Few words and labels, copies that contradict, several files or one, any task, any cut."""
    sentences = draw(corpora.sentences())
    again = draw(st.lists(st.integers(0, len(sentences) - 1), max_size=4))
    sentences += [(sentences[i][0], sentences[i][1][::-1]) for i in again]
    task = draw(st.sampled_from(list(tasks.ALL)))
    files = draw(st.one_of(FILES.map(lambda file: [file] * len(sentences)), st.lists(FILES)))
    files = (files * len(sentences) + [None] * len(sentences))[: len(sentences)]
    line, rows = 1, []
    for (words, labels), file in zip(sentences, files, strict=True):
        lines = list(range(line, line + len(words)))
        rows.append(Sentence(words, labels, line, lines, file))
        line += len(words) + 1
    whole = tasks.corpus_of(rows, task)  # type: ignore[arg-type]
    return Problem(whole, draw(st.lists(st.integers(0, len(sentences)), max_size=5)))


def end_to_end(columns: list[np.ndarray]) -> list[int]:
    return np.concatenate(columns).tolist()


@given(problems())
def test_a_part_is_as_if_it_had_been_read_alone(problem: Problem) -> None:
    whole, bounds = problem.whole, sorted({0, *problem.at, problem.whole.n_sentences})
    parts = cut(whole, problem.at)
    assert len(parts) == len(bounds) - 1
    assert [s for part in parts for s in part.sentences if part.labelled] == [
        s
        for part, a, b in zip(parts, bounds, bounds[1:], strict=False)
        for s in whole.sentences[a:b]
        if part.labelled
    ]
    for part in parts:
        words = [word for sentence in part.sentences for word in sentence.tokens]
        assert part.vocabulary == tuple(dict.fromkeys(words))
        names = [part.label_names[i] for i in part.label_ids[part.asked]]
        assert part.label_names == tuple(dict.fromkeys(names))
        assert part.files == tuple(dict.fromkeys(s.file for s in part.sentences))


@given(problems())
def test_numbered_parts_have_the_numbers_of_the_whole(problem: Problem) -> None:
    whole, parts = problem.whole, problem.parts
    for part in parts:
        assert (part.vocabulary, part.label_names) == (whole.vocabulary, whole.label_names)
    assert end_to_end([part.token_ids for part in parts]) == whole.token_ids.tolist()
    assert end_to_end([part.label_ids for part in parts]) == whole.label_ids.tolist()
    assert end_to_end([part.lines for part in parts]) == whole.lines.tolist()
    assert end_to_end([part.lengths for part in parts]) == whole.lengths.tolist()


@given(st.lists(st.lists(st.sampled_from("abcdefg"), unique=True).map(tuple), min_size=3))
def test_lists_of_names_can_be_joined_two_by_two(lists: list[tuple[str, ...]]) -> None:
    first, *rest = lists
    expected = tuple(dict.fromkeys(name for names in lists for name in names))
    assert reduce(joined, lists) == joined(first, reduce(joined, rest)) == expected


@given(problems())
def test_every_look_has_the_ceiling_and_the_contexts_of_the_whole(problem: Problem) -> None:
    starts = np.cumsum([0, *(part.n_tokens for part in problem.parts)])
    for look in LOOKS:
        name = str(look)
        whole, alone = best(tally_parts([problem.whole], look)[0]), look(problem.whole)
        tally, own = tally_parts(problem.parts, look)
        found = best(tally)
        assert found.errors == whole.errors, name
        assert end_to_end([tally.first[seen] for seen in own]) == alone.tolist(), name
        assert end_to_end([found.labels[seen] for seen in own]) == whole.labels[alone].tolist()
        members = [
            found.members(seen, part.label_ids) + start
            for seen, part, start in zip(own, problem.parts, starts, strict=False)
        ]
        assert end_to_end(members) == whole.members(alone, problem.whole.label_ids).tolist(), name


@pytest.mark.parametrize("positions", [True, False])
@pytest.mark.parametrize("causal", [True, False])
@given(problem=problems())
def test_targets_are_those_of_the_whole(problem: Problem, positions: bool, causal: bool) -> None:
    how = {"positions": positions, "causal": causal, "strict": False}
    whole, found = choose_targets([problem.whole], **how), choose_targets(problem.parts, **how)
    (alone,) = whole.parts
    assert end_to_end([part.contexts for part in found.parts]) == alone.contexts.tolist()
    assert end_to_end([part.labels for part in found.parts]) == alone.labels.tolist()
    assert (found.unavoidable, found.conflicts) == (whole.unavoidable, whole.conflicts)
    assert [str(c) for c in found.conflicts] == [str(c) for c in whole.conflicts]


@given(problems())
def test_strict_says_the_same_of_parts(problem: Problem) -> None:
    def said(parts: Sequence[Corpus]) -> str:
        try:
            choose_targets(parts, positions=True, causal=False, strict=True)
        except ConflictError as error:
            return str(error)
        return "no conflict"

    assert said(problem.parts) == said([problem.whole])


@given(problems())
def test_tallies_can_be_merged_in_any_order(problem: Problem) -> None:
    """The tallies of three parts, as a tree and back to front."""
    assume(problem.whole.n_sentences > 2)
    parts = numbered(cut(problem.whole, [1, 2]))
    for look in LOOKS:
        keys = maker_of(look)
        each, start = [], 0
        for part in parts:
            own = look(part)
            first = np.flatnonzero(own == np.arange(len(own)))
            tally = tally_parts([part], look)[0]
            each.append(tally.keyed(first, keys(part, first, b"key"), start))
            start += part.n_tokens
        a, b, c = each
        wanted = merge(each)
        for found in (merge([merge([a, b]), c]), merge([a, merge([b, c])]), merge([c, a, b])):
            for name in ("keys", "first", "context", "label", "count", "seen"):
                assert (getattr(found, name) == getattr(wanted, name)).all(), (look, name)


def test_every_look_has_keys() -> None:
    looks = {getattr(contexts, name) for name in dir(contexts) if name.startswith("by_")}
    assert looks == {*KEYS, contexts.by_window}
    assert set(INPUTS.values()) < looks


def test_parts_that_number_their_words_differently_are_refused() -> None:
    parts = cut(Corpus.from_sentences(corpora.spelled("ab xy", "ba yx")), [1])
    with pytest.raises(SettingError, match="number their words differently"):
        choose_targets(parts, positions=True, causal=False, strict=False)


@pytest.mark.parametrize("at", [-1, 3])
def test_there_must_be_a_sentence_to_cut_at(at: int) -> None:
    corpus = Corpus.from_sentences(corpora.spelled("ab xy", "ba yx"))
    with pytest.raises(SettingError, match=f"no sentence {at} to cut at"):
        cut(corpus, [at])


def test_parts_of_a_shared_corpus(shared: Path) -> None:
    """Copies and conflicts far apart in a file of 200,000 tokens."""
    from rankone import read_corpus

    whole = read_corpus(shared / "conll2003/eng.train")
    parts = numbered(cut(whole, range(1000, whole.n_sentences, 1000)))
    how = {"positions": True, "causal": False, "strict": False}
    found, expected = choose_targets(parts, **how), choose_targets([whole], **how)
    assert found.unavoidable == expected.unavoidable == 2
    assert found.conflicts == expected.conflicts
    (alone,) = expected.parts
    assert end_to_end([part.contexts for part in found.parts]) == alone.contexts.tolist()
