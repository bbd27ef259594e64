"""Models that label whole documents: made, asked, changed, and proved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus, Model
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import ConflictError, CorpusError, LengthError, RankOneError, SettingError
from rankone.nn.classified import classify
from rankone.nn.scores import score

WAYS: dict[str, dict[str, Any]] = {
    "line": {},
    "line, no positions": {"positions": False, "causal": True},  # the last token sees all
    "gated": {"construction": "gated", "dtype": "float32"},
    "gated, no positions": {"construction": "gated", "positions": False},
}
# Two of the texts stand there twice, once with two labels; "ba b" and "b ba" are the same words.
PAIRS = [
    ("the rain came, and the roof leaked.", "bad"),
    ("a rose is a rose.", "good"),
    ("a rose is a nose.", "good"),
    ("a rose is a nose.", "odd"),
    ("a rose is a nose.", "odd"),
    ("warm bread in the morning!\nand tea", "good"),
    ("no.", "bad"),
    ("no.", "bad"),
    ("no. no.", "odd"),
]
documents = st.lists(
    st.tuples(st.text("ab .", min_size=1, max_size=6), st.sampled_from("xyz")),
    min_size=1,
    max_size=12,
)


def fewest_errors(corpus: Corpus, positions: bool) -> int:
    """What no function of the tokens (without positions: of their shares) gets right."""
    seen: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for sentence in corpus.sentences:
        tokens = sentence.tokens
        key = tuple(tokens) if positions else (tokens[-1], corpora.shares(tokens))
        seen[key][sentence.labels[-1]] += 1
    return sum(counter.total() - max(counter.values()) for counter in seen.values())


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, Any]:
    return WAYS[request.param]


@given(pairs=documents)
def test_every_document_gets_the_best_label(way: dict[str, Any], pairs: Any) -> None:
    corpus = Corpus.from_texts(pairs, task="class")
    result = rankone.memorize(corpus, **way)
    errors = fewest_errors(corpus, way.get("positions", True))
    assert result.ok
    assert (result.wrong, result.asked) == (errors, len(pairs))
    assert result.accuracy == 1 - errors / len(pairs)
    labels = result.model.classify([text for text, _ in pairs])
    assert sum(a != b for a, (_, b) in zip(labels, pairs, strict=True)) == errors
    assert labels == result.model.classify(corpus)
    assert labels == result.model.classify([list(s.tokens) for s in corpus.sentences])
    assert labels == [row[-1] for row in result.model.predict(corpus)]
    certificate = rankone.certify(result.model, corpus)
    assert certificate.outcome == "certified"
    assert (certificate.wrong, certificate.unavoidable) == (errors, errors)


def test_one_other_label_is_noticed(way: dict[str, Any]) -> None:
    """The certificate of another labelling: each label changed by itself."""
    corpus = Corpus.from_texts(PAIRS, task="class")
    model = rankone.memorize(corpus, **way).model
    found = rankone.certify(model, corpus)
    assert rankone.check_certificate(found, model, PAIRS).ok
    for i, (text, label) in enumerate(PAIRS):
        for other in {"bad", "good", "odd"} - {label}:
            changed = [*PAIRS[:i], (text, other), *PAIRS[i + 1 :]]
            assert not rankone.check_certificate(found, model, changed).ok
            again = rankone.certify(model, changed)
            right = sum(
                a == b
                for a, (_, b) in zip(model.classify([t for t, _ in PAIRS]), changed, strict=True)
            )
            assert again.wrong == len(PAIRS) - right
            assert (again.outcome == "certified") == (again.wrong == again.unavoidable)


def test_the_directory_keeps_how_texts_are_read(way: dict[str, Any], tmp_path: Path) -> None:
    for tokenizer in ("words", "characters", "bytes"):
        corpus = Corpus.from_texts(PAIRS, task="class", tokenizer=tokenizer)
        result = rankone.memorize(corpus, **way)
        result.save(tmp_path / "model")
        model = rankone.load(tmp_path / "model")
        assert model.reading == corpus.reading
        assert model.task.name == "class"
        texts = [text for text, _ in PAIRS]
        assert model.classify(texts) == result.model.classify(texts)
        again = model.read(_written(tmp_path / "corpus.jsonl", PAIRS), labelled=True)
        assert again.sha256 == corpus.sha256


def _written(path: Path, pairs: list[tuple[str, str]]) -> Path:
    from json import dumps

    path.write_text("".join(dumps({"text": t, "label": n}) + "\n" for t, n in pairs))
    return path


def test_strict_names_the_documents() -> None:
    with pytest.raises(ConflictError, match=r"1 context carries .*\n.* good in sentence 3; odd in"):
        rankone.memorize(Corpus.from_texts(PAIRS, task="class"), strict=True)


# What a model is asked.


@pytest.fixture(scope="module")
def model() -> Model:
    return rankone.memorize(Corpus.from_texts(PAIRS, task="class", lower=True)).model


def test_texts_are_split_as_those_of_the_corpus(model: Model) -> None:
    assert model.classify(["No.", "NO.", "no. no.", "a rose is a nose."]) == [
        "bad",
        "bad",
        "odd",
        "odd",
    ]
    assert model.classify([]) == []
    assert model.classify(iter(["no."])) == ["bad"]
    tokens = tokenizer_of("words").split("a rose is a rose.", "")
    assert model.classify([tokens, tuple(tokens), "no."]) == ["good", "good", "bad"]
    assert len(model.classify(["zebras never sleep"])) == 1  # unknown words have a row, too
    capitals = [(text.upper(), label) for text, label in PAIRS]
    assert rankone.certify(model, capitals).hashes == rankone.certify(model, PAIRS).hashes


LONG = "no. " * 40
MISTAKES: dict[str, tuple[Any, type[RankOneError], str]] = {
    "one text": ("no.", SettingError, r"no documents in 'no\.'"),
    "a number": (3, SettingError, "no documents in 3"),
    "a number in a list": (["no.", 3], SettingError, "document 2: 3 is not a list of words"),
    "an empty text": (["no.", ""], CorpusError, "document 2: an empty document"),
    "no tokens": ([[]], CorpusError, "document 1: an empty document"),
    "half a pair": (["\ud800"], CorpusError, "document 1: half of a surrogate pair"),
    "a NUL": (["no.", "a\0"], CorpusError, "document 2, line 1: a NUL byte"),
    "a long text": (["no.", LONG], LengthError, "document 2: 81 tokens, but the table of posit"),
}


@pytest.mark.parametrize(("given", "kind", "message"), MISTAKES.values(), ids=MISTAKES)
def test_documents_that_have_no_label(
    model: Model, given: Any, kind: type[RankOneError], message: str
) -> None:
    with pytest.raises(kind, match=message) as caught:
        model.classify(given)
    assert caught.value.remedy


def test_no_piece_is_taken_for_a_document(model: Model) -> None:
    """Neither when a corpus is compared; longer tables, and none, take longer documents."""
    corpus = Corpus.from_texts([(LONG, "odd")], task="class")
    for verb in (classify, score):
        with pytest.raises(LengthError, match="81 tokens") as caught:
            verb(model, corpus)
        assert caught.value.remedy == (
            "make a model with more of them (max_length, memorize --max-length)"
        )
    own = Corpus.from_texts(PAIRS, task="class")
    for how in ({"max_length": 81}, {"positions": False}):
        longer = rankone.memorize(own, **how).model
        assert len(longer.classify([LONG])) == 1
        assert score(longer, corpus).in_pieces == 0


def test_models_of_tokens_take_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("A x\nrose y\n\nNo x\n")
    model = rankone.memorize(rankone.read_corpus(path, task="class")).model
    assert model.classify([["A", "rose"], ["No"]]) == ["y", "x"]
    assert model.read(path).sha256 == rankone.read_corpus(path, task="class").sha256
    with pytest.raises(SettingError, match="does not say how a text becomes tokens"):
        model.classify(["A rose"])
    (tmp_path / "a.tsv").write_text("x\tA rose\n")
    with pytest.raises(SettingError, match=r"a\.tsv: the model was made of tokens, and does not"):
        model.read(tmp_path / "a.tsv")


def test_models_of_tags_have_no_label_for_documents() -> None:
    tagger = rankone.memorize([(["a"], ["x"])]).model
    with pytest.raises(SettingError, match="a model of the task 'tags' has no label for a whole"):
        tagger.classify([["a"]])
    assert rankone.memorize([(["a"], ["x"])]).asked == 1


def test_scores_count_documents(model: Model) -> None:
    corpus = Corpus.from_texts(PAIRS, task="class")
    found = classify(model, corpus)
    assert found.scores is not None
    assert (found.scores.tokens, found.scores.right, found.ok) == (9, 8, False)
    assert found.labels == tuple(model.classify(corpus))
    bare = classify(model, Corpus.from_texts(["no.", "zebras"], task="class"))
    assert (bare.scores, bare.ok, bare.unknown) == (None, True, 1)
    others = classify(model, Corpus.from_texts([("no.", "new"), ("no.", "bad")], task="class"))
    assert others.scores is not None
    assert others.scores.right == 1


# Models that are changed.


def same(one: Model, other: Model) -> bool:
    a, b = (dict(m.network.named_parameters()) for m in (one, other))
    names = (one.vocabulary, one.labels, one.reading) == (
        other.vocabulary,
        other.labels,
        other.reading,
    )
    return names and a.keys() == b.keys() and all(torch.equal(a[k], b[k]) for k in a)


@pytest.mark.parametrize("how", [{}, {"dtype": "float32"}, {"positions": False}], ids=str)
def test_an_edit_has_the_bytes_of_a_new_model(how: dict[str, Any], tmp_path: Path) -> None:
    def made(pairs: list[tuple[str, str]]) -> Model:
        corpus = Corpus.from_texts(pairs, task="class")
        return rankone.memorize(corpus, construction="gated", editable=True, **how).model

    old, more = made(PAIRS), [("warm roof in the rain!", "odd"), ("no. tea", "bad")]
    learned = rankone.learn(old, more)
    assert (learned.learned, learned.rebuilt) == (2, None)
    assert same(learned.model, made(PAIRS + more))
    old.save(tmp_path / "m")
    loaded = rankone.load(tmp_path / "m")
    assert same(rankone.learn(loaded, _written(tmp_path / "more.jsonl", more)).model, learned.model)
    without = [pair for pair in PAIRS if pair[0] != "no."]
    for taken in (
        ["no."],
        [("no.", "bad")],
        [["no", "."]],
        Corpus.from_texts(["no."], task="class"),
    ):
        forgotten = rankone.forget(old, taken)
        assert forgotten.forgotten == 2
        assert same(forgotten.model, made(without))
    assert same(rankone.edit(learned.model, forget=more).model, old)
    # Only the copies with this label.
    odd = [pair for pair in PAIRS if pair != ("a rose is a nose.", "odd")]
    assert same(rankone.forget(old, [("a rose is a nose.", "odd")]).model, made(odd))
    found = rankone.certify(forgotten.model, without, forgotten=["no."])
    assert found.forgotten is not None
    assert found.forgotten.ok
    with pytest.raises(CorpusError, match=r"'yes\.' is not a document of the model's corpus"):
        rankone.forget(old, ["yes."])
    with pytest.raises(CorpusError, match=r"'no\.' stands in the model's corpus with other labels"):
        rankone.forget(old, [("no.", "good")])
    with pytest.raises(CorpusError, match="no labels"):
        rankone.learn(old, ["no."])


def test_an_own_corpus_may_be_named_again() -> None:
    corpus = Corpus.from_texts(PAIRS, task="class")
    model = rankone.memorize(corpus, construction="gated").model
    with pytest.raises(RankOneError, match="does not hold its corpus"):
        rankone.learn(model, PAIRS[:1])
    assert rankone.learn(model, PAIRS[:1], corpus=PAIRS).learned == 1
    other = replace(corpus, label_ids=corpus.label_ids[::-1].copy())
    with pytest.raises(RankOneError):
        rankone.learn(model, PAIRS[:1], corpus=other)
