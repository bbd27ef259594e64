"""The gate: what fails, and what a baseline lets through."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Audit
from rankone.audit import Suspect
from rankone.audit.baseline import Baseline
from rankone.audit.findings import Row, excerpt, listed
from rankone.audit.gate import Failure, Gate
from rankone.audit.kinds import KINDS
from rankone.documents import parse_document
from rankone.errors import BaselineError, CorpusError, SettingError

ALL = ",".join(KINDS)


def known(audit: Audit) -> Baseline:
    """The audit as it comes back from a file."""
    return parse_document(json.dumps(audit.to_json()), Baseline, "baseline")


def failures(gate: str, audit: Audit, baseline: Audit | None = None) -> list[str]:
    found = Gate.parse(gate).failures(audit, None if baseline is None else known(baseline))
    return [str(failure) for failure in found]


def put(path: Path, *pairs: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    sentences = corpora.spelled(*pairs)
    rows = [[f"{w} {x}\n" for w, x in zip(*pair, strict=True)] for pair in sentences]
    path.write_text("\n".join(map("".join, rows)))
    return path


# What is asked for.


def test_what_is_parsed() -> None:
    assert Gate.parse("conflicts") == Gate(("conflicts",))
    assert Gate.parse(" leaks , near-leaks ").of_splits == ("leaks", "near-leaks")
    assert Gate.parse(ALL).kinds == tuple(KINDS)
    assert (Gate.parse("suspects").score, Gate.parse("suspects > 0.95").score) == (0.5, 0.95)
    assert Gate.parse("suspects>0").score == 0
    assert Gate.parse("duplicates").score is None


@pytest.mark.parametrize(
    ("text", "what", "remedy"),
    [
        ("", "cannot fail on ''", "choose from leaks, near-leaks, conflicts, dupl"),
        ("leaks,", "cannot fail on ''", "choose from"),
        ("Leaks", "cannot fail on 'Leaks'", "choose from"),
        ("conflicts;leaks", "cannot fail on 'conflicts;leaks'", "commas between them"),
        ("leaks,conflicts,leaks", "cannot fail on leaks twice", "once"),
        ("suspects,suspects>0.9", "cannot fail on suspects twice", "once"),
        ("leaks>0.5", "leaks have no score", "suspects>0.95"),
        *(
            (f"suspects>{number}", "is no score", "from 0 to less than 1")
            for number in ("", "1", "-0.1", "nan", "inf", "x", "0.5>0.6", "95%")
        ),
    ],
)
def test_what_is_refused(text: str, what: str, remedy: str) -> None:
    with pytest.raises(SettingError) as refused:
        Gate.parse(text)
    assert what in refused.value.what
    assert remedy in str(refused.value.remedy)


# What fails.


def test_every_kind_fails_with_its_rows(tmp_path: Path) -> None:
    train = put(tmp_path / "train", "ab xy", "ab xx", "cd xx", "cd xx", "Ef xy")
    dev = put(tmp_path / "dev", "cd xx", "eF xy")
    audit = rankone.inspect(train, against=dev)
    assert failures("leaks", audit) == [f"{train}:7: leaks: also {dev}:1: c d"]
    assert failures("near-leaks", audit) == [f"{train}:13: near-leaks: also {dev}:4: E f"]
    assert failures("duplicates", audit) == [
        f"{train}:1: duplicates: also {train}:4: a b",
        f"{train}:7: duplicates: also {train}:10: c d",
    ]
    places = f"y on line 2 of {train}; x on line 5 of {train}"
    (conflict,) = failures("conflicts", audit)
    assert conflict == f"{train}:2: conflicts: 'b' (token 2): {places}: a [b]"
    assert len(failures(ALL, audit)) == 5
    (alone,) = failures("conflicts", rankone.inspect(train))
    assert alone == f"{train}:2: conflicts: 'b' (token 2): y on line 2; x on line 5: a [b]"
    assert failures("conflicts", rankone.inspect(corpora.spelled("a x", "a y"))) == [
        "sentence 1: conflicts: 'a' (token 1): x in sentence 1; y in sentence 2: [a]"
    ]
    assert failures(ALL, rankone.inspect(dev)) == []


def suspect(**changes: Any) -> Suspect:
    whole = Suspect(
        file="old/train",
        line=7,
        sentence=("in", "New", "York", "today"),
        token="New York",
        label="B-PER I-PER",
        proposal="B-LOC I-LOC",
        score=0.9,
        position=2,
        lines=(7, 8),
        evidence=(),
    )
    return replace(whole, **changes)


def with_suspects(*found: Suspect) -> Audit:
    return replace(rankone.inspect("toy"), suspects=found)


def test_suspects_fail_above_a_score() -> None:
    audit = with_suspects(suspect(), suspect(score=0.5, position=1))
    assert failures("suspects", audit) == failures("suspects>0.8999", audit)
    assert failures("suspects", audit) == [
        "old/train:7: suspects: 'New York' (token 2): B-PER I-PER, more likely B-LOC I-LOC "
        "(score 0.900): in [New York] today"
    ]
    assert len(failures("suspects>0.4", audit)) == 2
    (late,) = failures("suspects", with_suspects(suspect(position=102, start=101)))
    assert late.endswith(": in [New York] today")
    assert failures("suspects>0.9", audit) == []
    assert failures("conflicts", audit) == []


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({}, False),
        ({"line": 99, "lines": (99, 100)}, False),
        ({"file": "new/train"}, False),
        ({"proposal": "O O", "score": 0.99}, False),
        ({"token": "York", "label": "I-PER", "position": 3, "lines": (8,)}, False),  # a part of it
        ({"file": "old/dev"}, True),
        ({"label": "B-PER O"}, True),
        ({"position": 1}, True),
        ({"start": 2, "position": 3}, True),
        ({"sentence": ("in", "New", "York", "Tuesday")}, True),
        ({"token": "New York today", "label": "B-PER I-PER O", "lines": (7, 8, 9)}, True),
    ],
)
def test_which_suspects_are_known(changes: dict[str, Any], new: bool) -> None:
    before = with_suspects(suspect(score=0.1))
    assert bool(failures("suspects", with_suspects(suspect(**changes)), before)) == new


def test_a_label_with_a_blank_in_it_is_still_one() -> None:
    odd = suspect(token="York", label="B PER", lines=(8,), position=3)
    assert failures("suspects", with_suspects(odd), with_suspects(odd)) == []
    other = replace(odd, label="B LOC")
    assert len(failures("suspects", with_suspects(other), with_suspects(odd))) == 1


# What a baseline lets through.


def test_shifted_lines_and_other_folders_are_no_news(tmp_path: Path) -> None:
    pairs = "ab xy", "ab xx", "cd xx", "cd xx", "Ef xy"
    old = rankone.inspect(
        put(tmp_path / "old" / "train", *pairs),
        against=put(tmp_path / "old" / "dev", "cd xx", "eF xy"),
    )
    moved = rankone.inspect(
        put(tmp_path / "new" / "train", "gh xy", *reversed(pairs)),
        against=put(tmp_path / "new" / "dev", "q x", "eF xy", "cd xx"),
    )
    assert len(failures(ALL, moved)) == 5
    assert failures(ALL, moved, old) == []
    renamed = rankone.inspect(
        put(tmp_path / "old" / "other", *pairs), against=tmp_path / "old" / "dev"
    )
    assert len(failures(ALL, renamed, old)) == 5


@pytest.mark.parametrize(
    ("train", "dev", "kinds"),
    [
        (("ab xy", "ab xy"), (), ["duplicates"]),
        (("cd xx",), (), ["leaks", "duplicates"]),
        ((), ("cd xx",), ["leaks"]),
        (("EF xy",), (), ["near-leaks"]),
        ((), ("ab xy",), ["leaks", "conflicts"]),
        ((), ("ab xz",), ["leaks", "conflicts"]),
        (("g x",), ("h x",), []),
    ],
)
def test_one_more_copy_is_news(
    tmp_path: Path, train: tuple[str, ...], dev: tuple[str, ...], kinds: list[str]
) -> None:
    pairs = "ab xy", "ab xx", "cd xx", "cd xx", "Ef xy"
    files = tmp_path / "train", tmp_path / "dev"
    old = rankone.inspect(put(files[0], *pairs), against=put(files[1], "cd xx", "eF xy", "q z"))
    new = rankone.inspect(
        put(files[0], *pairs, *train), against=put(files[1], "cd xx", "eF xy", "q z", *dev)
    )
    found = Gate.parse(ALL).failures(new, known(old))
    expected = kinds + ["conflicts"] * (train == ("ab xy", "ab xy"))
    assert sorted({failure.kind for failure in found}) == sorted(expected)


def test_a_row_that_is_corrected_halfway_is_no_news(tmp_path: Path) -> None:
    path = tmp_path / "train"
    old = rankone.inspect(put(path, "a x", "a x", "a y", "a z"))
    assert failures("conflicts", rankone.inspect(put(path, "a x", "a x", "a y", "a x")), old) == []
    assert len(failures("conflicts", rankone.inspect(put(path, "a x", "a y", "a q")), old)) == 1
    one_more = rankone.inspect(put(path, "a x", "a x", "a y", "a z", "a x"))
    assert len(failures("conflicts", one_more, old)) == 1


@given(corpora.sentences(), corpora.sentences(), st.randoms())
def test_duplicates_and_conflicts_equal_brute_force(
    before: corpora.Sentences, after: corpora.Sentences, draw: Any
) -> None:
    after = after + before
    old, same = rankone.inspect(before), rankone.inspect(draw.sample(before, len(before)))
    assert failures("conflicts,duplicates", same, old) == []
    gate, new = Gate.parse("conflicts,duplicates"), rankone.inspect(after)
    found = Counter(failure.kind for failure in gate.failures(new, known(old)))

    def counts(sentences: corpora.Sentences) -> Counter[tuple[str, ...]]:
        return Counter(tuple(words) for words, _ in sentences)

    def labels(sentences: corpora.Sentences) -> dict[Any, set[str]]:
        seen: dict[Any, set[str]] = {}
        for words, tags in sentences:
            for k, tag in enumerate(tags):
                seen.setdefault((tuple(words), k), set()).add(tag)
        return seen

    old_counts, new_counts = counts(before), counts(after)
    grown = {words for words, n in new_counts.items() if n > max(old_counts[words], 1)}
    assert found["duplicates"] == len(grown)
    at_odds = {context for context, tags in labels(after).items() if len(tags) > 1}
    old_odds = {context for context, tags in labels(before).items() if len(tags) > 1}
    fresh = {c for c in at_odds if c not in old_odds or c[0] in grown}
    assert found["conflicts"] == len(fresh)


# The baseline as a file.


def document() -> dict[str, Any]:
    audit = rankone.inspect(corpora.spelled("a x", "a y"))
    return {**audit.to_json(), "files": []}


def test_a_baseline_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(document()))
    audit = rankone.inspect(corpora.spelled("a x", "a y"))
    assert Gate.parse(ALL).failures(audit, Baseline.read(path)) == ()
    assert Baseline.read(path).conflicts == audit.conflicts


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"conflicts": None}, "conflicts: expected a list, got nothing (null)"),
        ({"duplicates": [{"rows": []}]}, "duplicates[0]: no required field sentence"),
        ({"suspects": [1]}, "suspects[0]: expected a mapping, got a whole number"),
        ({"against": [{"file": "a"}]}, "against[0]: no required field leaks"),
        ({"inputs": []}, "conflicts[0]: 1 lines of x, but 0 files"),
    ],
)
def test_a_baseline_of_another_kind_is_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps({**document(), **change}))
    with pytest.raises(BaselineError, match="write it again: rankone inspect --json") as refused:
        Baseline.read(path)
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "{", '{"inputs": NaN}', "1"])
def test_anything_else_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text)
    with pytest.raises(BaselineError, match=r"baseline\.json"):
        Baseline.read(path)


def test_a_missing_baseline_says_how_to_write_it(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no such file\n  remedy: write it first: rankone"):
        Baseline.read(tmp_path / "none")
    with pytest.raises(BaselineError, match="not a file"):
        Baseline.read(tmp_path)


# How many suspects are looked for.


def test_all_suspects_above_a_score_are_found() -> None:
    every = rankone.inspect("builtin", suspects=300).suspects
    score = every[200].score
    above = tuple(suspect for suspect in every if suspect.score > score)
    assert 0 < len(above) <= 200
    assert rankone.inspect("builtin", above=score).suspects == above
    assert rankone.inspect("builtin", suspects=250, above=score).suspects == every[:250]
    audit = rankone.inspect("toy")
    assert (audit.suspects, "suspects" in audit.seconds) == ((), False)


@pytest.mark.parametrize("settings", [{"suspects": -1}, {"probabilities": [[0.5, 0.5]] * 30}])
def test_numbers_of_suspects_that_make_no_sense(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"suspects=.*\n  remedy: give the number of suspects"):
        rankone.inspect("toy", **settings)


def test_no_corpus_at_all_is_refused() -> None:
    with pytest.raises(CorpusError, match="no sentence"):
        rankone.inspect([])
    assert rankone.inspect("toy", against=[]).against == ()


# Words for people.


def test_rows_are_listed_by_file() -> None:
    assert (
        listed([Row("a", 1), Row("a", 2), Row("b", 1), Row(None, 4)]) == "a:1, 2; b:1; sentence 4"
    )
    many = [Row("a", i) for i in range(1, 13)]
    assert listed(many) == "a:1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"


def test_excerpts() -> None:
    words = [str(i) for i in range(30)]
    assert excerpt(words[:16]) == " ".join(words[:16])
    assert excerpt(words[:17]) == " ".join([*words[:16], "..."])
    assert excerpt(words, 10, 2) == "... 2 3 4 5 6 7 8 9 [10 11] 12 13 14 15 16 17 18 19 ..."
    assert excerpt(words[:20], 8, 4) == "0 1 2 3 4 5 6 7 [8 9 10 11] 12 13 14 15 16 17 18 19"


def test_a_failure_is_one_line() -> None:
    assert str(Failure("leaks", (Row("a", 1), Row("b", 2)), "also b:2")) == "a:1: leaks: also b:2"
