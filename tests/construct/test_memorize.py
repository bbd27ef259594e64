"""Memorization of random corpora of every shape, judged by brute force and by the saved model."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpora
import rankone
from rankone import Corpus, choices
from rankone.construct import verify
from rankone.construct.constructions import CONSTRUCTIONS
from rankone.errors import (
    ConflictError,
    CorpusError,
    LengthError,
    PrecisionError,
    SettingError,
    UnfitError,
    VectorError,
)

LOOK = {  # what a model with these settings sees of a token
    (True, False): "sequence",
    (True, True): "prefix",
    (False, False): "proportions",
    (False, True): "prefix proportions",
}


def wrong(model: rankone.Model, sentences: corpora.Sentences) -> int:
    found = model.predict([words for words, _ in sentences])
    return sum(a != b for s, (_, labels) in zip(found, sentences, strict=True)
               for a, b in zip(s, labels, strict=True))  # fmt: skip


@given(
    corpora.sentences(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["merged", "paper"]),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_free_vectors_reach_the_ceiling(
    sentences: corpora.Sentences,
    positions: bool,
    causal: bool,
    readout: Any,
    head_size: int,
    seed: int,
) -> None:
    result = rankone.memorize(
        sentences,
        positions=positions,
        causal=causal,
        readout=readout,
        head_size=head_size,
        seed=seed,
        verify="dense",
    )
    least = corpora.errors(sentences, corpora.LOOKS[LOOK[positions, causal]])
    assert result.ok
    assert result.wrong == result.unavoidable == least
    assert wrong(result.model, sentences) == least
    assert result.max_error < 0.01
    assert result.dense_error < 0.01
    assert result.dense_tokens == result.tokens


@given(
    corpora.sentences(),
    st.integers(1, 5),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["merged", "paper"]),
    st.integers(0, 2**32),
)
def test_given_vectors_reach_the_ceiling(
    sentences: corpora.Sentences,
    dim: int,
    positions: bool,
    causal: bool,
    readout: Any,
    seed: int,
) -> None:
    corpus = Corpus.from_sentences(sentences)
    vectors = np.random.default_rng(seed).standard_normal((len(corpus.vocabulary), dim))
    result = rankone.memorize(
        corpus, vectors=vectors, positions=positions, causal=causal, readout=readout
    )
    least = corpora.errors(sentences, corpora.LOOKS[LOOK[positions, causal]])
    assert result.wrong == result.unavoidable == least
    assert wrong(result.model, sentences) == least
    table = result.model.network.table.detach().numpy()
    assert np.array_equal(table[:-1], vectors)  # the table is the given one, bit for bit


def test_the_order_of_tokens_is_seen() -> None:
    """Permutations of one bag: only position and order tell them apart."""
    words = ["a", "b", "c", "d"]
    orders = [[words[i], words[j], *(w for k, w in enumerate(words) if k not in (i, j))]
              for i in range(4) for j in range(4) if i != j]  # fmt: skip
    sentences = [
        (order, [f"L{(7 * i + k) % 5}" for k in range(4)]) for i, order in enumerate(orders)
    ]
    assert rankone.memorize(sentences).wrong == 0
    assert rankone.memorize(sentences, positions=False).wrong > 0


def test_long_sentences_and_many_labels() -> None:
    rng = np.random.default_rng(3)
    sentences = [
        ([f"w{i}" for i in rng.integers(0, 50, n)], [f"L{i}" for i in rng.integers(0, 300, n)])
        for n in (1, 2, 500, 1500)
    ]
    result = rankone.memorize(sentences)
    assert result.wrong == 0
    assert result.margin > 0.49


def test_same_seed_same_bytes() -> None:
    corpus = rankone.builtin_corpus(200)
    one, two, other = (rankone.memorize(corpus, seed=seed) for seed in (5, 5, 6))
    weights = [dict(result.model.network.named_parameters()) for result in (one, two, other)]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
    assert not weights[0]["table"].equal(weights[2]["table"])


def test_merged_is_smaller_than_paper() -> None:
    corpus = rankone.builtin_corpus(500)
    merged, paper = (rankone.memorize(corpus, readout=kind) for kind in ("merged", "paper"))
    contexts = len({(*s.tokens, k) for s in corpus.sentences for k in range(len(s.tokens))})
    assert paper.hidden_units == contexts + 2  # and two for the unknown word
    assert merged.hidden_units < contexts / 3


def test_weights_have_rank_one_for_every_head_size() -> None:
    corpus = rankone.builtin_corpus(100)
    for size in (2, 5):
        attention = rankone.memorize(corpus, head_size=size).model.network.blocks[0].attention
        for name, shape in (("key", (1, size, 3)), ("query", (1, size, 3)), ("value", (1, size, 3)),
                            ("output", (1, 3, size))):  # fmt: skip
            matrix = getattr(attention, name).detach().numpy()
            assert matrix.shape == shape
            assert np.linalg.matrix_rank(matrix[0]) == 1


def test_no_sentence_carries_a_word_out_of_its_cell() -> None:
    """With a free table a known word gets one of its own labels, in any sentence whatever."""
    corpus = rankone.builtin_corpus(300)
    model = rankone.memorize(corpus, max_length=30).model
    own: dict[str, set[str]] = {}
    for sentence in corpus.sentences:
        for token, label in zip(sentence.tokens, sentence.labels, strict=True):
            own.setdefault(token, set()).add(label)
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 31, 300)
    texts = [list(rng.choice(np.array(corpus.vocabulary), n)) for n in lengths]
    pairs = [(t, y) for text, found in zip(texts, model.predict(texts), strict=True)
             for t, y in zip(text, found, strict=True)]  # fmt: skip
    single = [(t, y) for t, y in pairs if len(own[t]) == 1]
    assert all(y in own[t] for t, y in single)
    # Between two contexts with different labels a ramp, mostly 1/32 of the gap, passes others.
    astray = sum(y not in own[t] for t, y in pairs)
    assert astray < 0.02 * len(pairs)


def test_unknown_words_get_the_most_frequent_label() -> None:
    for readout in ("merged", "paper"):
        corpus = rankone.builtin_corpus(100)
        model = rankone.memorize(corpus, max_length=20, readout=readout).model
        assert model.predict([["zyzzyva"] * 20, ["qwerty"]]) == [["O"] * 20, ["O"]]


CONFLICT = corpora.spelled("ab xy", "ab xz", "ab xy", "ba xy")


def test_contradictions_get_the_majority_and_are_listed() -> None:
    result = rankone.memorize(CONFLICT)
    assert (result.wrong, result.unavoidable) == (1, 1)
    assert result.model.predict([["a", "b"]]) == [["x", "y"]]
    (conflict,) = result.conflicts
    assert conflict.labels == {"y": [1, 3], "z": [2]}
    assert any("contradicting" in remark for remark in result.remarks)


def test_strict_refuses_contradictions_and_names_the_rows() -> None:
    with pytest.raises(
        ConflictError, match=r"'b' \(token 2\): y in sentences 1, 3; z in sentence 2"
    ):
        rankone.memorize(CONFLICT, strict=True)
    assert rankone.memorize(CONFLICT[:1], strict=True).wrong == 0


def test_ten_of_many_contradictions_are_shown() -> None:
    for count, more in ((10, ""), (12, "and 2 more")):
        words = [[f"w{i}"] for i in range(count)]
        sentences = [(word, [label]) for word in words for label in "xy"]
        with pytest.raises(ConflictError, match=f"^<python>: {count} contexts carry") as caught:
            rankone.memorize(sentences, strict=True)
        assert caught.value.what.count("token 1") == 10
        assert caught.value.what.endswith(more)
        assert ("more" in caught.value.what) is bool(more)


def test_repeats_without_positions_are_said() -> None:
    sentences = corpora.spelled("aab xxy", "abc xyz")
    assert not rankone.memorize(sentences).remarks
    (remark,) = rankone.memorize(sentences, positions=False).remarks
    assert remark.startswith("1 sentence repeats a token")


@pytest.mark.parametrize(
    ("sentences", "thing"),
    [
        (corpora.spelled("ab xy"), "sentence"),
        (corpora.spelled("a x", "b y"), "token per sentence"),
        (corpora.spelled("a x", "aa xy"), "word"),
        (corpora.spelled("ab xx", "b x"), "label"),
    ],
)
def test_corpora_with_only_one_of_something(sentences: Any, thing: str) -> None:
    for readout in ("merged", "paper"):
        result = rankone.memorize(sentences, readout=readout)
        assert result.wrong == 0
        assert any(remark.startswith(f"only one {thing}") for remark in result.remarks)


def test_sentences_longer_than_the_positions_are_refused() -> None:
    corpus = rankone.builtin_corpus(100)
    with pytest.raises(LengthError, match=r"builtin, sentence \d+: \d+ tokens, .* has 3"):
        rankone.memorize(corpus, max_length=3)


@pytest.mark.parametrize("size", [1e-90, 1e-12, 1e12, 1e90])
@pytest.mark.parametrize("readout", ["merged", "paper"])
def test_the_size_of_given_vectors_does_not_matter(size: float, readout: Any) -> None:
    rng = np.random.default_rng(4)
    sentences = [([f"w{i}" for i in range(37)], [f"L{i}" for i in range(37)])]
    vectors = size * rng.standard_normal((37, 2))
    result = rankone.memorize(
        Corpus.from_sentences(sentences), vectors=vectors, readout=readout, verify="dense"
    )
    assert wrong(result.model, sentences) == result.wrong == 0


def test_vectors_that_differ_by_a_millionth() -> None:
    vectors = np.array([1.1, -2.9, 1.3]) + 1e-6 * np.random.default_rng(0).standard_normal((2, 3))
    sentences = corpora.spelled("ab zx", "aaab zyxz")
    for readout in ("merged", "paper"):
        corpus = Corpus.from_sentences(sentences)
        result = rankone.memorize(corpus, vectors=vectors, positions=False, readout=readout)
        assert result.wrong == result.unavoidable


def test_the_rounding_of_the_head_is_part_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs next to their labels prove nothing if the logits drown in rounding."""
    right = verify.outputs
    monkeypatch.setattr(verify, "outputs", lambda *args: replace(right(*args), rounding=0.4))
    with pytest.raises(PrecisionError):
        rankone.memorize(corpora.spelled("ab xy"))


def two(rows: list[list[float]]) -> dict[str, Any]:
    return {"corpus": corpora.spelled("ab xy", "ba yy"), "vectors": np.array(rows)}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (two([[0.0, 0.0], [1.0, 2.0]]), r"row 1: the vector of 'a' is zero"),
        (two([[1.0, 0.0], [np.nan, 2.0]]), r"row 2: the vector of 'b' is not finite"),
        (two([[1.0, 0.0], [np.inf, 2.0]]), r"row 2: the vector of 'b' is not finite"),
        (two([[1.0, 2.0], [1.0, 2.0]]), r"rows 1 and 2: 'a' and 'b' have the same vector"),
        (two([[1.0, 0.0], [1e300, 2.0]]), r"vectors as large as 1e\+300"),
        (two([[1e-200, 0.0], [0.0, 1e-200]]), r"vectors as large as 1e-200"),
        (two([[1.0, 2.0]]), r"shape \(1, 2\) for 2 tokens"),
    ],
)
def test_vectors_that_break_the_conditions_are_refused(call: dict[str, Any], message: str) -> None:
    with pytest.raises(VectorError, match=message):
        rankone.memorize(**call)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"head_size": 0}, "head_size cannot be 0"),
        ({"head_size": 1.5}, "head_size cannot be 1.5"),
        ({"head_size": True}, "head_size cannot be True"),
        ({"head_size": 65537}, r"head_size cannot be 65537\n  remedy: .* from 1 to 65536"),
        ({"seed": -1}, "seed cannot be -1"),
        ({"seed": 1 << 63}, r"be 9223372036854775808\n  remedy: .* from 0 to 9223372036854775807"),
        ({"seed": 10**400}, r"seed cannot be 1000000\d*\.\.\.\d*"),
        ({"seed": "1"}, "seed cannot be '1'"),
        ({"max_length": -5}, "max_length cannot be -5"),
        ({"max_length": (1 << 24) + 1}, r"be 16777217\n  remedy: .* from 1 to 16777216"),
        ({"max_length": 9, "positions": False}, "max_length is .* and there is none"),
        ({"readout": "other"}, "give 'merged' or 'paper'"),
        ({"verify": "never"}, "give 'sample' or 'dense'"),
        ({"verify": ["dense"]}, "verify cannot be"),
        ({"causal": "no"}, "causal cannot be 'no'\n  remedy: give True or False"),
        ({"positions": None}, "positions cannot be None"),
        ({"strict": 2}, "strict cannot be 2"),
        (
            {"construction": "circle"},
            "construction cannot be 'circle'\n  remedy: give 'yun2020' or",
        ),
    ],
)
def test_settings_are_checked(setting: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message) as caught:
        rankone.memorize(corpora.spelled("ab xy"), **setting)
    assert caught.value.remedy


def test_the_largest_settings_are_accepted() -> None:
    sentences = corpora.spelled("ab xy")
    most = {"head_size": 1 << 16, "seed": (1 << 63) - 1, "causal": np.True_}
    assert rankone.memorize(sentences, **most).ok
    assert rankone.memorize(sentences, max_length=2, strict=True).ok


def test_tables_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rankone.construct.problem.NUMBERS", 60)
    sentences = corpora.spelled("abcd xyxy")
    assert rankone.memorize(sentences, max_length=20, head_size=15).ok
    with pytest.raises(SettingError, match=r"max_length cannot be 21: .*(?s:.)*at most 20$"):
        rankone.memorize(sentences, max_length=21)
    with pytest.raises(SettingError, match=r"head_size cannot be 16: .*(?s:.)*at most 15$"):
        rankone.memorize(sentences, head_size=16)
    with pytest.raises(SettingError, match="positions with 5 numbers each"):
        rankone.memorize(sentences, max_length=13, vectors=np.eye(5)[:4])


def test_the_table_of_constructions_has_the_names_to_choose_from() -> None:
    assert tuple(CONSTRUCTIONS) == get_args(choices.Construction)


SETS = [*CONFLICT, *CONFLICT[:1], *corpora.spelled("abc xyx", "acd xxy", "cab xxy", "b z")]
REPEATS = corpora.spelled("abcab xyzyx", "bacba yyxzx", "cab zxy", "b z")


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize(("sentences", "positions"), [(SETS, True), (SETS, False), (REPEATS, True)])
def test_every_construction_memorizes(
    construction: Any, sentences: corpora.Sentences, positions: bool, tmp_path: Any
) -> None:
    """And says which one it was; what it wrote, predicts the labels, and can be certified."""
    result = rankone.memorize(sentences, construction=construction, positions=positions)
    assert result.ok
    look = corpora.LOOKS["sequence" if positions else "proportions"]
    assert result.wrong == corpora.errors(sentences, look)
    assert result.settings["construction"] == construction
    result.save(tmp_path)
    loaded = rankone.load(tmp_path)
    assert wrong(loaded, sentences) == result.wrong
    assert rankone.certify(loaded, sentences).ok


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_settings_that_a_construction_does_not_heed_are_refused(construction: Any) -> None:
    given: dict[str, Any] = {"vectors": np.eye(4), "causal": True, "head_size": 2}
    for name, value in {**given, "readout": "paper"}.items():
        if name in CONSTRUCTIONS[construction].takes:
            continue
        with pytest.raises(SettingError, match=f"{construction} does not take {name}"):
            rankone.memorize(SETS, construction=construction, **{name: value})


def test_what_a_construction_cannot_do_in_float64_is_refused() -> None:
    with pytest.raises(UnfitError, match="repeat a token"):
        rankone.memorize(REPEATS, construction="kim2023", positions=False)
    for size, told in ((40, "float64 rounds this network's numbers"), (400, "cannot hold it")):
        with pytest.raises(PrecisionError, match=told):
            rankone.memorize(rankone.builtin_corpus(size), construction="kajitsuka2025")


def test_results_are_complete_when_they_are_made() -> None:
    result = rankone.memorize(CONFLICT)
    assert isinstance(result.remarks, tuple)
    assert isinstance(result.conflicts, tuple)
    with pytest.raises(FrozenInstanceError):
        result.wrong = 0  # type: ignore[misc]


def test_an_empty_corpus_is_refused() -> None:
    with pytest.raises(CorpusError):
        rankone.memorize([])


def test_repr_is_one_line() -> None:
    shown = repr(rankone.memorize(CONFLICT))
    assert shown.startswith("Memorized('<python>': 7 of 8 tokens right, ")
    assert shown.endswith(" hidden units, margin 0.500)")
    assert repr(rankone.memorize([(["a"], ["x"])])).count("1 of 1 token right") == 1


def test_what_float64_cannot_do_is_refused_not_returned() -> None:
    """Vectors that differ by one unit in the last place, in one dimension, with a far outlier."""
    near = np.nextafter(1.0, 2.0)
    vectors = np.array([[1.0], [1e60], [near]])  # of a, c, b
    sentences = corpora.spelled("ac xy", "bc zy", "abc xxy", "bac zzx")
    with pytest.raises(PrecisionError, match="float64 cannot tell all contexts apart"):
        rankone.memorize(Corpus.from_sentences(sentences), vectors=vectors)


def test_progress_is_told() -> None:
    stages: list[tuple[str, float]] = []
    rankone.memorize(
        rankone.builtin_corpus(300), verify="dense", progress=lambda *told: stages.append(told)
    )
    assert [stage for stage, share in stages if share == 0][-3:] == ["construct", "verify", "dense"]
    assert stages[-1] == ("dense", 1.0)


def test_report_is_plain_json() -> None:
    import json

    report = json.loads(json.dumps(rankone.memorize(CONFLICT).to_json(), allow_nan=False))
    asked = {"tokens", "sentences", "wrong", "unavoidable", "hidden_units", "parameters"}
    assert asked | {"max_error", "margin", "min_gap", "seconds"} <= set(report)
    assert {"read", "construct", "verify"} <= set(report["seconds"])
    assert report["draws"] == 1  # the first that holds is taken
    assert report["paper_parameters"] == 4 * (1 + 3) + 3 * (2 * 2 * 4 + 3)
    one_label = rankone.memorize(corpora.spelled("ab xx")).to_json()
    assert one_label["min_gap"] is None or one_label["min_gap"] > 0
    json.dumps(one_label, allow_nan=False)


CEILINGS = [
    ("conll2003/eng.train", {"scheme": "iob2"}, {}, 2),
    ("conll2003/eng.train", {"scheme": "iob2"}, {"causal": True}, 334),
    ("conll2003/eng.train", {"scheme": "iob2"}, {"positions": False}, 328),
    ("ud-english-ewt/en_ewt-ud-train.conllu.gz", {}, {}, 7),
    ("wnut17/wnut17train.conll", {}, {}, 20),
    pytest.param("wnut17/wnut17train.conll", {}, {"readout": "paper"}, 20, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("name", "how", "settings", "errors"), CEILINGS)
def test_shared_corpora_reach_their_ceilings(
    shared: Any, name: str, how: dict[str, Any], settings: dict[str, Any], errors: int
) -> None:
    corpus = rankone.read_corpus(shared / name, **how)
    result = rankone.memorize(corpus, **settings)
    assert result.wrong == result.unavoidable == errors
    assert max(result.max_error, result.dense_error) < 0.01
    if name.startswith("conll") and not settings:
        assert result.hidden_units <= 16_500


@pytest.mark.slow
def test_conll_with_given_random_vectors(shared: Any) -> None:
    corpus = rankone.read_corpus(shared / "conll2003/eng.train", scheme="iob2")
    vectors = np.random.default_rng(0).standard_normal((len(corpus.vocabulary), 64))
    result = rankone.memorize(corpus, vectors=vectors)
    assert result.wrong == result.unavoidable == 2
