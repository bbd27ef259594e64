"""What two splits have in common: against brute force, and against SQL on real corpora."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus
from rankone.audit import Comparison
from rankone.audit.findings import Row
from rankone.audit.leaks import compare, letters_of
from rankone.corpus.ceilings import INPUTS

# Some are the same letters; some have none.
WORDS = ("Ab", "ab", "a-b", "b", "B!", "1", "2.", "?")
Sides = tuple[corpora.Sentences, list[int]]


@st.composite
def splits(draw: st.DrawFn, words: tuple[str, ...] = WORDS, longest: int = 3) -> Sides:
    """Sentences of a few words, and the split of each: 0 here, 1 there, 2 neither."""
    row = st.tuples(st.sampled_from(words), st.sampled_from("XYZ"))
    sentence = st.lists(row, min_size=1, max_size=longest)
    found = draw(st.lists(st.tuples(sentence, st.integers(0, 2)), min_size=2, max_size=16))
    sides = [0, 1, *(side for _, side in found[2:])]
    return [([w for w, _ in rows], [x for _, x in rows]) for rows, _ in found], sides


def compared(found: Sides) -> Comparison:
    sentences, sides = found
    which = np.array(sides)
    return compare(Corpus.from_sentences(sentences), which == 0, which == 1, "there")


def letters(words: Iterable[str]) -> str:
    return re.sub(r"[^a-z]", "", "".join(words).lower())


@given(splits())
def test_leaks_equal_brute_force(found: Sides) -> None:
    sentences, sides = found
    expected = []
    groups: tuple[tuple[str, Callable[[list[str]], Hashable]], ...] = (
        ("exact", tuple),
        ("near", letters),
    )
    for kind, key in groups:
        alike: dict[Hashable, list[int]] = defaultdict(list)
        for i, (words, _) in enumerate(sentences):
            if key(words):
                alike[key(words)].append(i)
        for members in alike.values():
            here, there = ([i for i in members if sides[i] == side] for side in (0, 1))
            spelled = {tuple(sentences[i][0]) for i in here + there}
            if here and there and (kind == "exact" or len(spelled) > 1):
                labels = {tuple(sentences[i][1]) for i in here + there}
                agree = len(labels) == 1 if kind == "exact" else None
                expected.append((kind, sentences[here[0]][0], here, there, agree))
    assert [
        (
            leak.kind,
            list(leak.sentence),
            [row.line - 1 for row in leak.here],
            [row.line - 1 for row in leak.there],
            leak.agree,
        )
        for leak in compared(found).leaks
    ] == expected


@given(splits())
def test_what_is_known_equals_brute_force(found: Sides) -> None:
    sentences, sides = found

    def tokens(side: int, look: corpora.Look) -> list[Hashable]:
        pairs = zip(sentences, sides, strict=True)
        return [look(words, k) for (words, _), s in pairs if s == side for k in range(len(words))]

    def window(words: list[str], k: int) -> Hashable:
        padded = [None, *words, None]
        return tuple(padded[k : k + 3])

    known = compared(found).known
    looks = {"words": corpora.LOOKS["token"], "windows": window}
    looks["contexts"] = corpora.LOOKS["sequence"]
    for name, mine, other in (("here", 0, 1), ("there", 1, 0)):
        for figure, look in looks.items():
            theirs = set(tokens(other, look))
            expected = sum(seen in theirs for seen in tokens(mine, look))
            assert getattr(known[name], figure) == expected, (name, figure)
        own, others = (
            [words for (words, _), s in zip(sentences, sides, strict=True) if s == side]
            for side in (mine, other)
        )
        exact = [words for words in own if words in others]
        near = {letters(words) for words in others} - {""}
        assert known[name].sentences == len(own)
        assert known[name].tokens == sum(map(len, own))
        assert known[name].exact == len(exact)
        assert known[name].near == sum(w not in exact and letters(w) in near for w in own)


def tallied(found: Sides, side: int, look: corpora.Look) -> dict[Hashable, Counter[str]]:
    seen: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for (words, labels), where in zip(*found, strict=True):
        for k, label in enumerate(labels):
            if where == side:
                seen[look(words, k)][label] += 1
    return seen


@given(splits())
def test_ceilings_are_those_of_a_model_that_has_memorised_the_other_split(found: Sides) -> None:
    ceilings = compared(found).ceilings
    for name, mine, other in (("here", 0, 1), ("there", 1, 0)):
        assert ceilings[name].keys() == INPUTS.keys()
        for key, ceiling in ceilings[name].items():
            own, learnt = (tallied(found, s, corpora.LOOKS[key]) for s in (mine, other))
            right = 0
            for context, labels in own.items():
                best = max(learnt[context].values(), default=0)
                free = [x for x in "XYZ" if learnt[context][x] == best]  # any, if it is new
                right += max(labels[x] for x in free)
            tokens = sum(labels.total() for labels in own.values())
            assert (ceiling.errors, ceiling.accuracy) == (tokens - right, right / tokens), key


@given(splits(words=("a", "b", "c")))
def test_no_function_that_is_best_on_the_other_split_does_better(found: Sides) -> None:
    """By trying all functions of the token."""
    own, learnt = (tallied(found, side, corpora.LOOKS["token"]) for side in (0, 1))

    def errors(seen: dict[Hashable, Counter[str]], function: dict[str, str]) -> int:
        return sum(labels.total() - labels[function[word]] for word, labels in seen.items())

    functions = [dict(zip("abc", labels, strict=True)) for labels in product("XYZ", repeat=3)]
    _, fewest = min((errors(learnt, f), errors(own, f)) for f in functions)
    assert compared(found).ceilings["here"]["token"].errors == fewest


def test_a_third_split_does_not_speak() -> None:
    audit = rankone.inspect(
        Corpus.from_sentences(corpora.spelled("ab xy"), source="train"),
        against=[
            Corpus.from_sentences(corpora.spelled("ab xy", "c x"), source="dev"),
            Corpus.from_sentences(corpora.spelled("ab yx"), source="test"),
        ],
    )
    (dev,), (test,) = (comparison.leaks for comparison in audit.against)
    assert (dev.agree, test.agree) == (True, False)
    assert (dev.here, dev.there) == ((Row("train", 1),), (Row("dev", 1),))
    assert test.there == (Row("test", 1),)
    assert [(c.token, c.labels, c.files) for c in audit.conflicts] == [
        ("a", {"x": [1, 1], "y": [1]}, {"x": ["train", "dev"], "y": ["test"]}),
        ("b", {"y": [1, 1], "x": [1]}, {"y": ["train", "dev"], "x": ["test"]}),
    ]


def test_letters_are_those_of_any_script() -> None:
    assert letters_of("Straße-7") == letters_of("STRASSE")
    assert letters_of("Жук!") == "жук"
    assert letters_of("__2.5%") == ""


# Real corpora, asked in SQL.

SPLITS = {
    "wnut": ("wnut17/wnut17train.conll", "wnut17/emerging.dev.conll"),
    "ewt": ("ud-english-ewt/en_ewt-ud-train.conllu.gz", "ud-english-ewt/en_ewt-ud-dev.conllu"),
}
GAP = "\x1f"


@pytest.mark.parametrize("name", SPLITS)
def test_real_corpora_against_sql(shared: Path, name: str) -> None:
    paths = [shared / path for path in SPLITS[name]]
    read = [rankone.read_corpus(path) for path in paths]
    base = sqlite3.connect(":memory:")
    base.execute("create table s (id integer primary key, side, words, labels)")
    base.executemany(
        "insert into s (side, words, labels) values (?, ?, ?)",
        [
            (side, GAP.join(s.tokens), GAP.join(s.labels))
            for side, corpus in enumerate(read)
            for s in corpus.sentences
        ],
    )
    base.execute("create index words on s (words)")

    def ask(question: str) -> list[tuple[int | str, ...]]:
        return base.execute(question).fetchall()

    audit = rankone.inspect(read[0], against=read[1])
    (found,) = audit.against
    assert [(GAP.join(d.sentence), len(d.rows), d.agree) for d in audit.duplicates] == ask(
        "select words, count(*), count(distinct labels) = 1 from s where side = 0 "
        "group by words having count(*) > 1 order by min(id)"
    )
    leaks = [leak for leak in found.leaks if leak.kind == "exact"]
    assert [(GAP.join(x.sentence), len(x.here), len(x.there), x.agree) for x in leaks] == ask(
        "select words, sum(side = 0), sum(side = 1), count(distinct labels) = 1 from s "
        "group by words having count(distinct side) > 1 order by min(id)"
    )
    for side, other in (("here", 0), ("there", 1)):
        assert [(found.known[side].exact,)] == ask(
            f"select count(*) from s where side = {other} "
            f"and words in (select words from s where side = {1 - other})"
        )
    # Which sentences contradict each other, here or across the splits, and where in them.
    at_odds = ask(
        "select words, group_concat(labels, char(30)) from s where words in "
        "(select words from s group by words having count(distinct labels) > 1 and min(side) = 0) "
        "group by words"
    )
    expected = Counter[str]()
    for words, joined in at_odds:
        columns = zip(*(labels.split(GAP) for labels in str(joined).split("\x1e")), strict=True)
        expected[str(words)] = sum(len(set(column)) > 1 for column in columns)
    assert Counter(GAP.join(c.sentence) for c in audit.conflicts) == expected
    assert name != "ewt" or (leaks and at_odds and audit.duplicates)
