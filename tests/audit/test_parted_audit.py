"""The audit of a corpus in parts is that of the whole, wherever it is cut and whatever keeps it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankone import Audit, Corpus, RankOneError, inspect
from rankone.audit.suspects import candidates, linear, sample
from rankone.corpus.join import join
from rankone.corpus.parted import parted
from rankone.engines import Engine, open_engine

WORDS = ["Al", "al", "AL", "b", "b1", "b2", ".", "New", "York"]
TAGS = {
    "plain": ["X", "Y", "Z"],
    "IOB1": ["O", "I-A", "B-A", "I-B"],
    "IOB2": ["O", "B-A", "I-A", "B-B"],
}


@st.composite
def files(draw: st.DrawFn, scheme: str, name: str) -> Corpus:
    """Sentences of a few words, some of them copies with other labels, or spelled otherwise."""
    row = st.tuples(st.sampled_from(WORDS), st.sampled_from(TAGS[scheme]))
    rows = draw(st.lists(st.lists(row, min_size=1, max_size=5), min_size=1, max_size=8))
    for i in draw(st.lists(st.integers(0, len(rows) - 1), max_size=4)):
        labels = draw(st.permutations([label for _, label in rows[i]]))
        spelled = draw(st.sampled_from([str, str.upper, lambda word: f"{word}-"]))
        rows.append([(spelled(w), y) for (w, _), y in zip(rows[i], labels, strict=True)])
    made = [([w for w, _ in row], [y for _, y in row]) for row in rows]
    corpus = Corpus.from_sentences(made, source=name)
    labels = corpus.label_ids.copy()
    labels[
        draw(st.lists(st.integers(0, corpus.n_tokens - 1), max_size=3, unique=True))[
            : corpus.n_tokens - 1
        ]
    ] = -1
    return replace(corpus, label_ids=labels)


@st.composite
def splits(draw: st.DrawFn) -> tuple[list[Corpus], list[Corpus]]:
    """A corpus of one or two files, and up to two other splits that belong to it."""
    scheme = draw(st.sampled_from(list(TAGS)))
    own = [draw(files(scheme, name)) for name in ("train", "more")[: draw(st.integers(1, 2))]]
    others = [draw(files(scheme, name)) for name in ("dev", "test")[: draw(st.integers(0, 2))]]
    return own, others


def figures(audit: Audit) -> dict[str, Any]:
    found = audit.to_json()
    del found["seconds"]
    return found


def of_parts(
    engine: Engine, own: list[Corpus], others: list[Corpus], size: int, **how: Any
) -> dict[str, Any]:
    one, *rest = [
        [parted(corpus, engine, size) for corpus in corpora_] for corpora_ in (own, others)
    ]
    return figures(inspect(one, against=rest[0], **how))


def alike(own: list[Corpus], others: list[Corpus]) -> bool:
    """Whether the files may be joined at all."""
    try:
        join([*own, *others])
    except RankOneError:
        return False
    return True


@given(splits(), st.integers(1, 12), st.integers(1, 4))
def test_an_audit_of_parts_is_that_of_the_whole(
    found: tuple[list[Corpus], list[Corpus]], size: int, buckets: int
) -> None:
    if alike(*found):
        engine = open_engine("here")
        engine.workers = buckets
        own, others = found
        assert of_parts(engine, own, others, size) == figures(inspect(own, against=others))


@pytest.mark.parametrize("scheme", TAGS)
def test_suspects_of_parts_are_those_of_the_whole(
    scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sample that is smaller than the corpus, so that what is drawn matters."""
    monkeypatch.setattr(sample, "SAMPLE", 60)
    monkeypatch.setattr(linear, "FOLDS", 2)
    monkeypatch.setattr(linear, "LESSONS", 150)
    made = [(words, labels) for words, labels in _sentences(scheme)]
    own = [Corpus.from_sentences(made[a:b], source=f"{a}") for a, b in ((0, 30), (30, 50))]
    others = [Corpus.from_sentences(made[50:], source="dev")]
    own[0].label_ids[[3, 30, 31]] = -1  # nothing is asked of them
    expected = figures(inspect(own, against=others, suspects=4, above=0.3))
    assert len(expected["suspects"]) > 4
    assert {row["file"] for s in expected["suspects"] for row in s["evidence"]} >= {"0", "30"}
    few = figures(inspect(own, against=others, suspects=6))
    monkeypatch.setattr(candidates, "SPAN", 20)  # tokens that are judged at once
    for size, buckets in ((11, 3), (90, 2)):
        engine = open_engine("here")
        engine.workers = buckets
        assert of_parts(engine, own, others, size, suspects=4, above=0.3) == expected
    with open_engine("disk", scratch=tmp_path) as engine:
        assert of_parts(engine, own, others, 100, suspects=6) == few


def _sentences(scheme: str) -> list[tuple[list[str], list[str]]]:
    """Names with a rule, which some of them break."""
    names = TAGS[scheme]
    made = []
    for i in range(70):
        place = f"{'New ' * (i % 3 == 0)}{'Oslo Rome York Bonn'.split()[i % 4]}".split()
        person = "Anna Bo Cy".split()[i % 3]
        first, inner = ("I-A", "I-A") if scheme == "IOB1" else (names[1], names[2])
        labels = [first, *[inner] * (len(place) - 1)]
        other = "I-B" if scheme == "IOB1" else names[3 % len(names)]
        if i % 19 == 5:
            labels[-1], other = names[0], first
        made.append(([person, "in", *place, "."], [other, names[0], *labels, names[0]]))
    return made


KEYS = {
    "majority": "0",
    "token": "word",
    "set": "{'word': word, 'bag': bag}",
    "sequence": "{'place': place, 'words': words}",
    "prefix": "words[1:place]",
}
TABLES = """
    CREATE TABLE sentences AS SELECT side, sentence, list(word ORDER BY place) AS words,
        list_sort(list_distinct(list(word))) AS bag FROM tokens GROUP BY side, sentence;
    CREATE TABLE seen AS SELECT * FROM tokens JOIN sentences USING (side, sentence);
"""
ERRORS = """
    SELECT sum(total - best) FROM (SELECT sum(n) AS total, max(n) AS best FROM (
        SELECT {key} AS key, label, count(*) AS n FROM seen
        WHERE side = 0 AND label IS NOT NULL GROUP BY ALL) GROUP BY key)
"""
BOUND = """
    WITH counts AS (SELECT {key} AS key, label, count(*) FILTER (side = 0) AS ours,
        count(*) FILTER (side = 1) AS theirs FROM seen WHERE label IS NOT NULL GROUP BY ALL),
    ranked AS (SELECT *, row_number() OVER (PARTITION BY key ORDER BY theirs DESC, ours DESC) AS r
        FROM counts)
    SELECT coalesce(sum(ours) FILTER (r > 1), 0) FROM ranked
"""


def test_counts_are_those_of_sql() -> None:
    rng = np.random.default_rng(0)
    files = []
    for name, size in (("train", 300), ("dev", 120)):
        made = []
        for _ in range(size):
            words = [WORDS[i] for i in rng.integers(len(WORDS), size=rng.geometric(0.4))]
            made.append((words, ["XYZ"[i] for i in rng.choice(3, len(words), p=[0.8, 0.1, 0.1])]))
        files.append(Corpus.from_sentences(made, source=name))
    for corpus in files:
        corpus.label_ids[rng.random(corpus.n_tokens) < 0.1] = -1
    engine = open_engine("here")
    engine.workers = 3
    own, other = (parted(corpus, engine, 90) for corpus in files)
    audit = inspect(own, against=other)
    base = duckdb.connect()
    base.execute("CREATE TABLE tokens (side INT, sentence INT, place INT, word TEXT, label TEXT)")
    rows = [
        (side, j, i, word, None if label == "_" else label)
        for side, corpus in enumerate(files)
        for j, s in enumerate(corpus.sentences)
        for i, (word, label) in enumerate(zip(s.tokens, s.labels, strict=True), 1)
    ]
    base.executemany("INSERT INTO tokens VALUES (?, ?, ?, ?, ?)", rows)
    base.execute(TABLES)

    def ask(question: str) -> int:
        (found,) = base.execute(question).fetchone()  # type: ignore[misc]
        return int(found)

    (found,) = audit.against
    for name, key in KEYS.items():
        assert audit.ceilings[name].errors == ask(ERRORS.format(key=key)), name
        assert found.ceilings["here"][name].errors == ask(BOUND.format(key=key)), name
    distinct = "SELECT count(DISTINCT words) FROM sentences WHERE side = 0"
    assert audit.distinct_sentences == ask(distinct)
    theirs = "words IN (SELECT words FROM sentences WHERE side = 1)"
    assert len([leak for leak in found.leaks if leak.kind == "exact"]) == ask(
        f"{distinct} AND {theirs}"
    )
    known = found.known["here"]
    assert known.exact == ask(f"SELECT count(*) FROM sentences WHERE side = 0 AND {theirs}")
    assert known.contexts == ask(f"SELECT count(*) FROM seen WHERE side = 0 AND {theirs}")
    assert known.words == ask(
        "SELECT count(*) FROM tokens WHERE side = 0 AND word IN "
        "(SELECT word FROM tokens WHERE side = 1)"
    )
    assert len(audit.conflicts) == ask(
        "SELECT count(*) FROM (SELECT place, words FROM seen GROUP BY ALL "
        "HAVING count(DISTINCT label) > 1 AND min(side) = 0)"
    )


def test_what_does_not_go_together_is_refused() -> None:
    one, two = (
        parted(Corpus.from_sentences([(["a"], ["X"])]), open_engine("here")) for _ in range(2)
    )
    with pytest.raises(RankOneError, match="of another engine"):
        inspect(one, against=two)
    with pytest.raises(RankOneError, match="in memory"):
        inspect([(["a"], ["X"])], against=one)
    with pytest.raises(RankOneError, match="probabilities"):
        inspect(one, suspects=1, probabilities=np.ones((1, 1)))
    text = parted(Corpus.from_texts(["a rose is a rose"]), open_engine("here"))
    with pytest.raises(RankOneError, match="texts are inspected in memory"):
        inspect(text)
