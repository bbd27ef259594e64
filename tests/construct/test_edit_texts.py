"""learn and forget for models of texts: the bytes of a model that is made of what is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.corpus import Corpus
from rankone.corpus.tasks import BEGIN
from rankone.errors import CorpusError

TEXTS = [
    "a rose is a rose",
    "no rose is a tulip",
    "a tulip is red",
    "a rose is red\n",
    "red is a rose",
]
MANY = "one of many letters, to say the least of them"
READINGS: list[dict[str, Any]] = [
    {},
    {"window": 2},
    {"window": 1, "tokenizer": "characters"},
    {"tokenizer": "bytes"},
]


def made(texts: list[str], dtype: Any = "float64", **reading: Any) -> rankone.Model:
    return rankone.memorize(Corpus.from_texts(texts, **reading), editable=True, dtype=dtype).model


some_texts = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join), min_size=1, max_size=6
)


@given(some_texts, some_texts, st.data(), st.sampled_from([0, 1, 3]))
def test_the_same_bytes_as_a_model_of_the_changed_texts(
    start: list[str], more: list[str], data: st.DataObject, window: int
) -> None:
    model, now = made(start, window=window), start
    out = data.draw(st.sampled_from(now))
    if set(now) != {out}:
        found = rankone.forget(model, [out])
        assert found.forgotten == now.count(out)
        now, model = [text for text in now if text != out], found.model
        assert model.files() == made(now, window=window).files()
    found = rankone.learn(model, more)
    assert (found.learned, found.model.task.name) == (len(more), "next")
    assert found.model.files() == made(now + more, window=window).files()


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_texts_go_through_the_tokenizer_of_the_model(
    reading: dict[str, Any], tmp_path: Path
) -> None:
    model = made(TEXTS, "float32", **reading)
    left = made([TEXTS[0], TEXTS[2], TEXTS[4]], "float32", **reading)
    out = [TEXTS[1], TEXTS[3]]
    assert rankone.forget(model, out).model.files() == left.files()
    assert rankone.forget(model, [{"text": text} for text in out]).model.files() == left.files()
    model.save(tmp_path / "model")
    (tmp_path / "out").mkdir()
    for i, text in enumerate(out):
        (tmp_path / "out" / f"{i}.txt").write_text(text)
    loaded = rankone.load(tmp_path / "model")
    assert rankone.forget(loaded, tmp_path / "out").model.files() == left.files()
    whole = made([TEXTS[0], TEXTS[2], TEXTS[4], *out], "float32", **reading)
    assert rankone.learn(left, tmp_path / "out").model.files() == whole.files()
    assert rankone.learn(left, out).model.files() == whole.files()


@pytest.mark.parametrize("window", [0, 2])
def test_documents_may_be_given_as_tokens(window: int) -> None:
    model = made(TEXTS, window=window)
    assert rankone.forget(model, [["red", " is", " a", " rose"]]).forgotten == 1
    if window:
        assert rankone.forget(model, [[BEGIN, "red", " is", " a", " rose"]]).forgotten == 1


@pytest.mark.parametrize("window", [0, 2])
def test_what_is_not_a_document_of_the_model_is_refused(window: int) -> None:
    model = made([*TEXTS, MANY], window=window)
    for strange, message in (
        (["a rose is a"], "<python>, sentence 1: 'a rose is a' is not a document of the model's"),
        ([TEXTS[0], "Tulip"], "sentence 2: 'Tulip' is not a document"),
        ([["a", " nose"]], "document 1: 'a nose' is not a document"),
        ([MANY.replace("least", "most")], "'one of many letters, to say the most of  ..."),
        ([], "no document to forget"),
        ([""], "document 1: an empty document"),
        ([5], "5 is not a text"),
        ([*TEXTS, MANY], "nothing would be left"),
    ):
        with pytest.raises(CorpusError) as error:
            rankone.forget(model, strange)
        assert message in str(error.value)
        assert BEGIN not in str(error.value)
        assert error.value.remedy


@pytest.mark.parametrize("change", [rankone.learn, rankone.forget])
def test_a_corpus_of_another_kind_is_refused(change: Any) -> None:
    """Its tokens would not have the marks, or the labels, that the model's own have."""
    models = {window: made(TEXTS, window=window) for window in (0, 2)}
    tags = Corpus.from_sentences([(["a", "rose"], ["DET", "NOUN"])])
    for window, model in models.items():
        for other in (Corpus.from_texts(TEXTS[:1], window=2 - window), tags):
            with pytest.raises(CorpusError, match=r"for a model of the task 'next'"):
                change(model, other)
    tagged = rankone.memorize(tags, construction="gated", editable=True).model
    with pytest.raises(CorpusError, match=r"of the task 'next' and window 2, for .* 'tags'"):
        change(tagged, Corpus.from_texts(TEXTS[:1], window=2))


def test_forgetting_a_passage_makes_the_rest_certain_again() -> None:
    """Two texts part after "a rose is": once one is forgotten, the other is all that follows."""
    model = made([TEXTS[0], TEXTS[3], TEXTS[2]])
    start = [["a", " rose", " is"]]

    def shares(model: rankone.Model) -> dict[str, float]:
        (rows,) = model.log_probabilities(start)
        return dict(zip(model.labels, np.exp(rows[2]).tolist(), strict=True))

    before = shares(model)
    assert before[" a"] == pytest.approx(0.5, rel=1e-3)
    assert before[" red"] == pytest.approx(0.5, rel=1e-3)
    assert shares(rankone.forget(model, [TEXTS[3]]).model)[" a"] == pytest.approx(1, rel=1e-6)


def test_certificates_take_texts_too() -> None:
    model = rankone.forget(made(TEXTS), [TEXTS[3]]).model
    kept = Corpus.from_texts([text for text in TEXTS if text != TEXTS[3]])
    found = rankone.certify(model, kept, forgotten=[TEXTS[3]])
    assert found.outcome.value == "certified"
    assert found.forgotten is not None
    assert found.forgotten.ok
    assert (found.forgotten.contexts, found.forgotten.held) == (5, 3)
    assert rankone.certify(made(TEXTS), kept, forgotten=[TEXTS[3]]).forgotten != found.forgotten
