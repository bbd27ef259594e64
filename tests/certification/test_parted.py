"""The certificate of a corpus in parts is that of the whole, in every number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.certification.gated_models import changed, layer_of, model_of, sentences_of

import corpora
import rankone
from rankone import Certificate, Corpus
from rankone.certification import check_certificate, claims, context_gaps
from rankone.certification.any_order import AnyOrder
from rankone.certification.certificate import Outcome
from rankone.certification.float_evaluation import Readings
from rankone.certification.gated_balls import GatedChunk
from rankone.certification.parted import contexts, evaluate, gaps
from rankone.corpus.parted import PartedCorpus, parted
from rankone.engines import open_engine
from rankone.errors import CorpusError, LengthError, SettingError
from rankone.nn import Model, TokenClassifier

Change = Callable[[TokenClassifier], None]


def figures(found: Certificate) -> dict[str, Any]:
    return {name: x for name, x in found.to_json().items() if name != "seconds"}


def same(
    model: Model, corpus: Corpus, size: int = 60, buckets: int = 3, name: Any = "here", **given: Any
) -> Certificate:
    """The certificate, which is the same in parts, where it stands, too."""
    whole = rankone.certify(model, corpus, **given)
    with open_engine(name) as engine:
        engine.workers = buckets
        parts = parted(corpus, engine, size)
        found = rankone.certify(model, parts, **given)
        assert figures(found) == figures(whole)
        if given.get("seconds") is None:
            assert check_certificate(whole, model, parts).reasons == ()
    return found


BUILTIN = rankone.builtin_corpus(30)
CONTRARY = Corpus.from_sentences(
    [
        (["a", "b"], ["X", "Y"]),
        (["a", "b"], ["X", "Z"]),
        (["c"], ["X"]),
        (["a", "b"], ["X", "Z"]),
        (["c"], ["Y"]),
        (["a", "c", "b"], ["Y", "Y", "X"]),
    ]
    * 2
)


def unasked(corpus: Corpus) -> Corpus:
    """Every third token is not asked."""
    at = np.arange(corpus.n_tokens) % 3 == 0
    return replace(corpus, label_ids=np.where(at, -1, corpus.label_ids))


def made(corpus: Corpus, **given: Any) -> Model:
    return rankone.memorize(corpus, construction="gated", **given).model


@given(
    corpora.sentences(),
    st.integers(1, 20),
    st.integers(1, 4),
    st.fixed_dictionaries(
        {
            "positions": st.booleans(),
            "causal": st.booleans(),
            "dtype": st.sampled_from(["float32", "float64"]),
            "heads": st.sampled_from([1, 2, 3]),
        }
    ),
)
def test_however_it_is_cut_the_certificate_is_the_same(
    rows: corpora.Sentences, size: int, buckets: int, settings: dict[str, Any]
) -> None:
    corpus = Corpus.from_sentences(rows)
    same(made(corpus, **settings), corpus, size, buckets)


@pytest.mark.parametrize("name", ["here", "disk"])
@pytest.mark.parametrize("size", [50, 10**6])
@pytest.mark.parametrize("corpus", [CONTRARY, unasked(BUILTIN)])
def test_certified(corpus: Corpus, size: int, name: str) -> None:
    assert same(made(corpus), corpus, size, name=name).ok


@pytest.mark.slow
def test_on_ray() -> None:
    pytest.importorskip("ray")
    assert same(made(BUILTIN, dtype="float32"), BUILTIN, 200, 2, "ray").ok


def negated(network: TokenClassifier) -> None:
    layer_of(network).slopes.mul_(-1)


def one_unit(network: TokenClassifier) -> None:
    layer_of(network).amplitude[-1] *= -1


def one_word(network: TokenClassifier) -> None:
    network.table[1] = network.table[0]


def steep(network: TokenClassifier) -> None:
    """Scores of some sentences lie far apart."""
    network.blocks[0].attention.query.mul_(16)  # type: ignore[operator, union-attr]


def steeper(network: TokenClassifier) -> None:
    """So far that context ids are not known in float64."""
    network.blocks[0].attention.query.mul_(1024)  # type: ignore[operator, union-attr]


def faint(network: TokenClassifier) -> None:
    """Outputs lie halfway between two labels, as far as float64 can tell."""
    layer_of(network).amplitude.mul_(0.5 + 2.0**-43)


def halfway(network: TokenClassifier) -> None:
    layer_of(network).amplitude.mul_(0.5)


def overflowing(network: TokenClassifier) -> None:
    network.head.weight.mul_(1e38)
    network.head.bias.mul_(1e38)


@pytest.mark.parametrize(
    ("change", "dtype", "refuted", "exact"),
    [
        (negated, "float64", {"labels"}, False),
        (one_unit, "float64", {"labels"}, False),
        (one_word, "float64", {"labels"}, False),
        (steep, "float64", {"labels"}, False),
        (steeper, "float64", {"labels"}, True),
        (faint, "float64", set(), True),
        (halfway, "float64", {"labels", "float_labels"}, True),
        (overflowing, "float32", {"float_labels"}, False),
    ],
)
@pytest.mark.parametrize("corpus", [BUILTIN, CONTRARY], ids=["builtin", "contrary"])
def test_changed_weights(
    corpus: Corpus, change: Change, dtype: str, refuted: set[str], exact: bool
) -> None:
    model = changed(made(corpus, dtype=dtype), change)
    found = same(model, corpus, cap=60)
    if corpus is BUILTIN:
        claims = found.claims.items()
        assert {name for name, claim in claims if claim is Outcome.REFUTED} == refuted
        assert (found.decided["exact"] > 0) is exact


def test_contexts_that_coincide() -> None:
    rows = [(["a"], ["X"]), (["b"], ["Y"]), (["a", "b"], ["X", "X"]), (["b", "b"], ["Y", "X"])]
    corpus = Corpus.from_sentences(rows)
    found = same(changed(made(corpus), one_word), corpus, 1)
    assert found.mapping is Outcome.REFUTED
    assert "must differ, but have the same context id" in str(found.reason)


@pytest.mark.parametrize("corpus", [BUILTIN, unasked(CONTRARY)], ids=["builtin", "contrary"])
def test_out_of_time(corpus: Corpus) -> None:
    found = same(made(corpus), corpus, seconds=0)
    assert found.outcome is Outcome.UNDECIDED
    assert found.decided["undecided"] > corpus.n_tokens / 2


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("loose", [2.0**-51, 2.0**-60])
def test_contexts_that_float64_does_not_know_well(
    monkeypatch: pytest.MonkeyPatch, loose: float, heads: int
) -> None:
    """Some or all of them go to the referee, and come back with smaller radii."""
    corpus = rankone.builtin_corpus(4)
    model = made(corpus, heads=heads)
    rough = rankone.certify(model, corpus)
    for module in (claims, contexts):
        monkeypatch.setattr(module, "LOOSE", loose)
    found = same(model, corpus, 9)
    assert found.decided["exact"] > 0
    assert found.r <= rough.r
    with monkeypatch.context() as patch:  # where that makes all the difference
        patch.setattr(context_gaps, "CRAMPED", 2.0**40)
        same(model, corpus, 9)


def test_what_the_referee_found_takes_the_place_of_what_was_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claims, "LOOSE", 2.0**-51)
    monkeypatch.setattr(contexts, "LOOSE", 2.0**-51)
    corpus, at, right = rankone.builtin_corpus(4), list[int](), contexts.nearest_contexts

    def seen(kit: Any, tables: Any, better: Any, widest: Any, until: float) -> Any:
        ids = gaps.contexts_of(kit, tables, better)
        own = np.isin(ids.tokens, better["token"])
        mine = np.isin(better["token"], ids.tokens)
        assert np.array_equal(ids.kept.mid[:, own], better["mid"][mine].T)
        assert np.array_equal(ids.kept.rad[:, own], better["rad"][mine].T)
        assert np.array_equal(ids.along.mid[own], better["along"][mine])
        assert widest.along >= max(ids.along.rad.max(), better["along_rad"].max())
        assert widest.moved >= context_gaps.norm_of(ids.kept)
        at.extend(better["token"][mine].tolist())
        return right(kit, tables, better, widest, until)

    monkeypatch.setattr(contexts, "nearest_contexts", seen)
    with open_engine("here") as engine:
        engine.workers = 2
        rankone.certify(made(corpus), parted(corpus, engine, 9))
    assert len(at) == len(set(at)) > 1


def test_one_part_in_which_any_order_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    see, last = AnyOrder.see, len(BUILTIN.vocabulary) - 1

    def without(self: AnyOrder, chunk: GatedChunk, *rest: Any) -> None:
        see(self, chunk, *rest)
        self.right &= not (chunk.ids == last).any()

    monkeypatch.setattr(AnyOrder, "see", without)
    assert same(made(BUILTIN), BUILTIN).any_order is False


def test_labels_that_were_not_reached_count_as_errors_that_may_be_left() -> None:
    """Token 1 has the context of token 0, which is wrong, token 3 that of tokens of other parts."""
    readings = Readings.room(4)
    readings.labels[:3], readings.run_labels[:3], readings.off[:3] = [1, 0, 0], [1, 0, 0], 0.25
    readings.off[1], readings.run_values[1] = 0.75, np.zeros(1)
    gold, target = np.array([0, 1, 0, 2]), np.array([0, 0, 0, 0])
    settled = {
        "members": np.array([0, 1, 3]),
        "contexts": np.array([10, 10, 5]),
        "begins": np.array([True, False, True, False]),
    }
    found = evaluate.label_figures(readings, gold, target, settled, 10)
    assert found["told"].tolist() == [10, 13]
    assert found["told_context"].tolist() == [10, 5]
    assert found["told_wrong"].tolist() == [True, False]
    assert found["told_least"].tolist() == [False, True]
    assert found["open"].tolist() == [11]
    assert found["open_context"].tolist() == [10]
    assert (found["unreached"][0], found["unreached_inside"][0], found["wrong"][0]) == (1, 1, 1)


def test_contexts_of_different_words_are_compared_in_one_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where whole numbers in the vectors do not tell words apart."""

    def halves(network: TokenClassifier) -> None:
        network.table[:, :48] *= 0.5

    sentences = sentences_of(4, 12)
    corpus = Corpus.from_sentences(sentences)
    model = changed(model_of(sentences), halves)
    same(model, corpus)
    monkeypatch.setattr(contexts, "BYTES", 1 << 30)
    with open_engine("here") as engine, pytest.raises(SettingError, match="cannot be told apart"):
        rankone.certify(model, parted(corpus, engine, 9))


@pytest.mark.parametrize("patience", [0, 16])
def test_ties_and_many_pairs(monkeypatch: pytest.MonkeyPatch, patience: int) -> None:
    """The same sentence after each of many words: gaps that are equal, in several buckets."""
    monkeypatch.setattr(context_gaps, "PATIENCE", patience)
    rows = [([w, "x", "y", e], ["A", e, e, "B"]) for w in "abcdefg" for e in "pqrs"]
    corpus = Corpus.from_sentences(rows)
    for size, buckets in ((4, 5), (20, 2)):
        same(made(corpus), corpus, size, buckets)


def test_what_takes_a_whole_corpus_is_refused() -> None:
    corpus = BUILTIN
    with open_engine("here") as engine:
        parts = parted(corpus, engine, 100)
        with pytest.raises(SettingError, match="only networks with gates"):
            rankone.certify(rankone.memorize(corpus).model, parts)
        with pytest.raises(SettingError, match="forgotten"):
            rankone.certify(made(corpus), parts, forgotten=corpus)
        text = Corpus.from_texts(["a b a b"])
        with pytest.raises(SettingError, match="next token"):
            rankone.certify(rankone.memorize(text).model, parted(text, engine, 2))

        def leaky(network: TokenClassifier) -> None:
            layer_of(network).penalty.mul_(2.0**-6)

        with pytest.raises(SettingError, match="do not prove"):
            rankone.certify(changed(made(corpus), leaky), parts)


def test_words_labels_and_lengths_that_the_model_does_not_have() -> None:
    model = made(Corpus.from_sentences([(["a", "b"], ["X", "Y"]), (["b"], ["X"])]))
    wrong: list[tuple[Any, Any]] = [
        ([(["a"], ["X"]), (["b"], ["X"]), (["c"], ["X"])], CorpusError),
        ([(["a"], ["X"]), (["b"], ["X"]), (["b"], ["Z"])], CorpusError),
        ([(["a"], ["X"]), (["b"], ["X"]), (["b", "a", "b"], ["X"] * 3)], LengthError),
    ]
    for rows, error in wrong:
        corpus, messages = Corpus.from_sentences(rows), []
        with open_engine("here") as engine:
            for given_ in (corpus, parted(corpus, engine, 1)):
                with pytest.raises(error) as refused:
                    rankone.certify(model, given_)
                messages.append(str(refused.value))
        assert messages[0] == messages[1]


def test_a_part_names_few_witnesses(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the first of all is the one of the whole."""
    monkeypatch.setattr(evaluate, "LISTED", 1)
    same(changed(made(BUILTIN), negated), BUILTIN, 200)


def test_stages_are_told() -> None:
    told: list[str] = []
    with open_engine("here") as engine:
        parts: PartedCorpus = parted(BUILTIN, engine, 100)
        rankone.certify(made(BUILTIN), parts, progress=lambda stage, _: told.append(stage))
    assert list(dict.fromkeys(told)) == ["contexts", "float64", "distances"]
