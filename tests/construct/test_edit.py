"""learn and forget: the same bytes as a model that is made of the changed corpus."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.construct.gated import change, draw, tables, units
from rankone.construct.gated.splice import by_appearance
from rankone.corpus import Corpus
from rankone.errors import ConflictError, CorpusError, ModelError, RankOneError, SettingError
from rankone.nn.memory import Memory

Pairs = list[tuple[list[str], list[str]]]
WORDS, LABELS = list("abcdefgh"), ["X", "Y", "Z"]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"dtype": "float32"},
    {"causal": True},
    {"positions": False},
    {"positions": False, "causal": True},
    {"heads": 3, "seed": 5, "directions": 4},
]


def made(sentences: Any, **given: Any) -> rankone.Memorized:
    return rankone.memorize(sentences, construction="gated", **given)


def assert_same(one: rankone.Model, other: rankone.Model) -> None:
    assert (one.vocabulary, one.labels) == (other.vocabulary, other.labels)
    assert one.files().keys() - {"memory.safetensors"} == other.files().keys()
    for name, data in other.files().items():
        assert one.files()[name] == data, name


@st.composite
def sentences(draw: st.DrawFn, most: int = 12) -> Pairs:
    def pair(words: list[str]) -> tuple[list[str], list[str]]:
        size = len(words)
        return words, draw(st.lists(st.sampled_from(LABELS), min_size=size, max_size=size))

    lists = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5)
    return [pair(words) for words in draw(st.lists(lists, min_size=1, max_size=most))]


@given(
    sentences(), sentences(4), st.data(), st.sampled_from(SETTINGS), st.sampled_from([0, 2, 256])
)
def test_the_same_bytes_as_a_model_of_the_changed_corpus(
    start: Pairs, more: Pairs, data: st.DataObject, how: dict[str, Any], few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        limited = lambda *a, **k: units.Fitting(*a, **k, few=few)  # noqa: E731
        patch.setattr(draw, "Fitting", limited)
        model, now = made(start, editable=True, **how).model, list(start)
        for _ in range(2):
            out = data.draw(st.sampled_from(now))
            if any(pair != out for pair in now):
                found = rankone.forget(model, [out])
                assert found.forgotten == now.count(out)
                now = [pair for pair in now if pair != out]
                model = found.model
            found = rankone.learn(model, more)
            now, model = now + more, found.model
            assert found.learned == len(more)
            anew = made(now, **how)
            assert_same(model, anew.model)
            assert (found.wrong, found.tokens) == (anew.unavoidable, anew.tokens)
            assert found.hidden_units == anew.hidden_units


def test_words_that_come_to_have_many_contexts_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to so many contexts a word may have one group for all positions, then it may not."""
    limited = lambda *a, **k: units.Fitting(*a, **k, few=4)  # noqa: E731
    monkeypatch.setattr(draw, "Fitting", limited)
    start: Pairs = [
        (["b", "a"], ["Z", "X"]),
        (["a", "c"], ["Y", "Z"]),
        (["c", "c", "a"], ["Z", "Z", "Y"]),
        (["b", "b", "c"], ["Z", "Z", "Y"]),
    ]
    more: Pairs = [(["c", "b", "b", "a"], ["Z", "Z", "Z", "X"]), (["a", "b"], ["Y", "Z"])]
    model = made(start, editable=True).model
    assert set(model.memory.state.units.position.tolist()) == {-1}
    for pair in more:
        model = rankone.learn(model, [pair]).model
    assert_same(model, made([*start, *more]).model)
    assert model.memory.state.units.position.max() >= 0
    for pair in more:
        model = rankone.forget(model, [pair]).model
    assert_same(model, made(start).model)


def test_a_word_with_many_contexts_is_changed_at_two_positions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of them has its own group, few as the contexts there may be."""
    limited = lambda *a, **k: units.Fitting(*a, **k, few=4)  # noqa: E731
    monkeypatch.setattr(draw, "Fitting", limited)
    start: Pairs = [(["b"] * i + ["a"], ["Z"] * i + ["X" if i % 4 else "Y"]) for i in range(8)]
    model = made(start, editable=True).model
    pair = (["a", "a", "b"], ["Y", "Y", "Z"])
    found = rankone.learn(model, [pair])
    assert found.groups == 2
    assert_same(found.model, made([*start, pair]).model)


def test_codes_that_clash_are_drawn_anew_and_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    short = comb(tables.CODE, tables.CODE // 2)
    below = tables.below

    def clashing(hashes: Any, count: int) -> Any:
        return below(hashes, 4 if count == short else count)

    monkeypatch.setattr(tables, "below", clashing)
    words = [(list("abcdefgh"), list("XYXYXYXY"))]
    long = made(words).model.network
    assert long.shape.dim == tables.CODE + 2 + 6 + 1 + 3 * 2 + 2
    assert len(np.unique(long.table.detach().numpy()[:, : tables.CODE + 2], axis=0)) == 9
    model, grown = made([(["a"], ["X"])], editable=True).model, [(["a"], ["X"])]
    for word in "bcdefgh":
        pair = ([word, "a"], ["X", "X"])
        found, grown = rankone.learn(model, [pair]), [*grown, pair]
        model = found.model
        assert_same(model, made(grown).model)
    assert model.network.table.shape[1] > tables.CODE


def test_only_groups_that_are_touched_are_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = rankone.builtin_corpus(300)
    model = made(corpus, editable=True).model
    sizes = []
    fit = change.fit_units
    monkeypatch.setattr(change, "fit_units", lambda *a: (sizes.append(len(a[0].words)), fit(*a))[1])
    sentence = corpus.sentences[7]
    found = rankone.forget(model, [sentence])
    assert found.rebuilt is None
    own = {sentence.tokens[i] for i in range(len(sentence.tokens))}
    count = sum(word in own for s in corpus.sentences for word in s.tokens)
    assert 0 < sum(sizes) <= count < corpus.n_tokens / 3
    assert found.words == len(own & set(found.model.vocabulary))
    left = [
        s for s in corpus.sentences if (s.tokens, s.labels) != (sentence.tokens, sentence.labels)
    ]
    assert_same(found.model, made(Corpus.from_sentences(left)).model)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_fewer_heads_may_do_after_forgetting(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What more heads were needed for is forgotten: then a new model has fewer of them."""
    corpus = rankone.builtin_corpus(60)
    fits = draw.fits

    def picky(groups: units.Groups, more: float = 0.0) -> bool:
        return fits(groups, more) and groups.off.max(initial=0.0) != worst[0]

    model = made(corpus, dtype=dtype, editable=True).model
    worst = [model.memory.state.groups.off.max()]
    monkeypatch.setattr(draw, "fits", picky)
    monkeypatch.setattr(change, "fits", picky)
    more = made(corpus, dtype=dtype, editable=True).model
    assert more.network.shape.heads == 3
    state = more.memory.state
    assert set(state.failed) == {2}
    witness = state.failed[2]
    for sentence in corpus.sentences:
        if witness in sentence.tokens:
            found = rankone.forget(more, [sentence])
            left = [(s.tokens, s.labels) for s in corpus.sentences]
            left = [pair for pair in left if pair != (sentence.tokens, sentence.labels)]
            assert_same(found.model, made(left, dtype=dtype).model)
            if found.model.network.shape.heads == 2:
                assert found.rebuilt == "fewer heads may do"


def test_what_makes_a_model_anew() -> None:
    start = [(["a", "b"], ["X", "Y"]), (["b", "c"], ["Y", "X"]), (["c", "a"], ["X", "X"])]
    model = made(start, editable=True).model
    assert rankone.learn(model, [(["a"], ["N"])]).rebuilt == "the list of labels is another"
    assert rankone.learn(model, [(["a"], ["Y"])]).rebuilt is None
    longer = (["a"] * 9, ["X"] * 9)
    assert "too short" in str(rankone.learn(model, [longer]).rebuilt)
    assert rankone.learn(model, [(["a"], ["Y"])]).words == 1


def test_a_saved_model_remembers(tmp_path: Path) -> None:
    corpus = rankone.builtin_corpus(80)
    result = made(corpus, editable=True, dtype="float32")
    files = {path.name for path in result.save(tmp_path / "model")}
    assert "memory.safetensors" in files
    again = rankone.load(tmp_path / "model")
    new = (["Rose", "sleeps"], ["B-PER", "O"])
    found = rankone.learn(again, [new])
    assert found.rebuilt is None
    now = [(s.tokens, s.labels) for s in corpus.sentences]
    assert_same(found.model, made([*now, new], dtype="float32").model)
    found.model.save(tmp_path / "next")
    other = made([*now, new], editable=True, dtype="float32").model
    saved = (tmp_path / "next" / "memory.safetensors").read_bytes()
    assert saved == other.files()["memory.safetensors"]
    with pytest.raises(SettingError, match="holds its own corpus"):
        rankone.learn(again, [new], corpus=corpus)
    plain = made(corpus, dtype="float32")
    assert "memory.safetensors" not in plain.model.files()


def test_a_corpus_may_be_named_instead(tmp_path: Path) -> None:
    pairs = [(s.tokens, s.labels) for s in rankone.builtin_corpus(40).sentences]
    model = made(pairs).model
    with pytest.raises(ModelError, match=r"does not hold its corpus(?s:.*)--editable"):
        rankone.forget(model, pairs[:1])
    found = rankone.forget(model, pairs[:1], corpus=pairs)
    assert found.model.memory is None
    assert_same(found.model, made([p for p in pairs if p != pairs[0]]).model)
    with pytest.raises(ModelError, match="this model is another one"):
        rankone.forget(model, pairs[:1], corpus=pairs[10:])
    path = tmp_path / "c.conll"
    path.write_text("\n\n".join("\n".join(map(" ".join, zip(*p, strict=True))) for p in pairs))
    few = tmp_path / "few.conll"
    few.write_text("\n".join(map(" ".join, zip(*pairs[0], strict=True))))
    model = made(rankone.read_corpus(path)).model
    assert rankone.forget(model, few, corpus=path).forgotten == pairs.count(pairs[0])


def test_forgetting_goes_by_words_and_labels() -> None:
    start = [
        (["a", "b"], ["X", "Y"]),
        (["a", "b"], ["X", "X"]),
        (["a", "b"], ["X", "Y"]),
        (["c"], ["Y"]),
    ]
    model = made(start, editable=True).model
    assert rankone.forget(model, start[:1]).forgotten == 2
    assert rankone.forget(model, start[1:2]).forgotten == 1
    found = rankone.forget(model, [["a", "b"]])
    assert found.forgotten == 3
    assert found.model.vocabulary == ("c",)
    with pytest.raises(CorpusError, match=r"sentence 2: 'a b' stands(?s:.*)other labels only"):
        rankone.forget(model, [start[3], (["a", "b"], ["Y", "Y"])])
    for strange in ((["a"], ["X"]), (["d"], ["X"])):
        with pytest.raises(CorpusError, match="is not a sentence of"):
            rankone.forget(model, [strange])
    with pytest.raises(CorpusError, match="nothing would be left"):
        rankone.forget(model, [start[0], start[1], start[3]])


def test_what_cannot_be_changed() -> None:
    corpus = rankone.builtin_corpus(20)
    line = rankone.memorize(corpus).model
    with pytest.raises(ModelError, match="cannot be changed"):
        rankone.learn(line, [(["a"], ["O"])])
    strict = made([(["a"], ["X"])], strict=True, editable=True).model
    with pytest.raises(ConflictError, match="contradicting"):
        rankone.learn(strict, [(["a"], ["Y"]), (["b"], ["X"])])
    short = made([(["a", "b"], ["X", "Y"])], max_length=2, editable=True).model
    with pytest.raises(RankOneError, match="3 tokens"):
        rankone.learn(short, [(["a", "b", "a"], ["X", "Y", "X"])])
    with pytest.raises(CorpusError, match="0 labels"):
        rankone.learn(short, [rankone.Sentence(["a"], [], 1)])


def test_models_are_not_changed_in_place() -> None:
    corpus = rankone.builtin_corpus(60)
    model = made(corpus, editable=True).model
    before = {name: p.clone() for name, p in model.network.named_parameters()}
    found = rankone.learn(model, [(["Rose"], ["B-PER"])])
    with torch.no_grad():
        found.model.network.table.zero_()
        found.model.network.blocks[0].feedforward.bias1.zero_()
    for name, p in model.network.named_parameters():
        assert p.equal(before[name])
    assert_same(
        rankone.learn(model, [(["Rose"], ["B-PER"])]).model,
        made([*[(s.tokens, s.labels) for s in corpus.sentences], (["Rose"], ["B-PER"])]).model,
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"token_ids": [0, 1, 9]}, "does not have"),
        ({"label_ids": [0, 1, 5]}, "does not have"),
        ({"label_ids": [0, 1, -2]}, "does not have"),
        ({"token_ids": [0, 1, -1]}, "does not have"),
        ({"label_ids": [0, 1]}, "different lengths"),
        ({"offsets": [0, 2, 2, 3]}, "end to end"),
        ({"offsets": [1, 3]}, "different lengths, or none"),
        ({"offsets": [0, 2]}, "end to end"),
    ],
)
def test_a_memory_that_was_tampered_with(
    tmp_path: Path, change: dict[str, list[int]], message: str
) -> None:
    model = made([(["a", "b"], ["X", "Y"]), (["b"], ["X"])], editable=True).model
    columns = {"token_ids": [0, 1, 1], "label_ids": [0, 1, 0], "offsets": [0, 2, 3]}
    arrays = {name: np.array(x) for name, x in (columns | change).items()}
    files = model.files() | {"memory.safetensors": Memory(**arrays).to_bytes()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(ModelError, match=message):
        rankone.learn(rankone.load(tmp_path), [(["a"], ["X"])])
    (tmp_path / "memory.safetensors").write_bytes(b"nothing")
    with pytest.raises(ModelError, match="damaged"):
        rankone.learn(rankone.load(tmp_path), [(["a"], ["X"])])


def test_numbers_in_the_order_of_their_first_appearance() -> None:
    order, rank = by_appearance(np.array([4, 1, 4, 0, 1]), 6)
    assert order.tolist() == [4, 1, 0]
    assert rank.tolist() == [2, 1, -1, -1, 0, -1]
    order, rank = by_appearance(np.array([], int), 2)
    assert (order.tolist(), rank.tolist()) == ([], [-1, -1])
