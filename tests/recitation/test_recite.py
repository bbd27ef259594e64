"""What follows a prompt is the text, as far as the tokens that the model sees determine it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import Any

import pytest

import rankone
from rankone import Corpus, Model
from rankone.corpus.tasks import BEGIN, END
from rankone.errors import CorpusError, ModelError, SettingError
from rankone.recitation.prompt import CANNOT_TELL
from tokenizer_files import byte_level

WINDOW = 8


@pytest.fixture(scope="module")
def story() -> Corpus:
    return rankone.read_corpus("story", task="next", window=WINDOW)


@pytest.fixture(scope="module", params=["float64", "float32"])
def model(request: pytest.FixtureRequest, story: Corpus) -> Model:
    return rankone.memorize(story, dtype=request.param).model


@pytest.fixture(scope="module")
def blocks() -> Model:
    """With documents that begin with the same words."""
    corpus = rankone.read_corpus("story", task="next", window=WINDOW, blocks=True)
    return rankone.memorize(corpus).model


def words(corpus: Corpus) -> list[str]:
    return [corpus.vocabulary[i] for i in corpus.token_ids.tolist()]


def test_from_any_place_the_continuation_is_the_likeliest(story: Corpus, model: Model) -> None:
    tokens = words(story)
    follows: defaultdict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for i in range(WINDOW, len(tokens) + 1):
        follows[tuple(tokens[i - WINDOW : i])][[*tokens, END][i]] += 1
    for at in range(1, len(tokens) - WINDOW, 113):
        seen = tokens[at : at + WINDOW]
        found = rankone.recite(model, seen, 30)
        assert found.ok
        assert found.known
        assert (found.ended, len(found.tokens)) in [("count", 30), ("end", len(found.tokens))]
        for token in [*found.tokens, *([END] if found.ended == "end" else [])]:
            counts = follows[tuple(seen[-WINDOW:])]
            assert counts[token] == max(counts.values())
            seen.append(token)


def test_a_document_is_recited_to_its_end_byte_for_byte(story: Corpus) -> None:
    text = "".join(words(story)[1:])
    found = rankone.recite(rankone.memorize(Corpus.from_texts([text])).model, "THE LAMP")
    assert "THE LAMP" + found.text == text
    assert found.ended == "end"
    assert found.prompt == 2
    assert found.remarks == ()


@pytest.mark.parametrize("window", [0, 6])
@pytest.mark.parametrize("tokenizer", ["characters", "bytes", "file"])
def test_other_tokenizers(tokenizer: str, window: int, tmp_path: Any) -> None:
    text = "The caf\u00e9 by the sea:  warm bread, cold tea.\n\nNobody knows why."
    name: Any = tokenizer
    if tokenizer == "file":
        name = tmp_path / "tokenizer.json"
        byte_level().save(str(name))
    corpus = Corpus.from_texts([text], tokenizer=name, window=window)
    model = rankone.memorize(corpus).model
    found = rankone.recite(model, text[:11])
    rest = text[11:].encode().decode("latin-1") if tokenizer == "bytes" else text[11:]
    assert (found.text, found.ended) == (rest, "end")


def test_why_it_ended() -> None:
    model = rankone.memorize(Corpus.from_texts(["one two three four five"])).model
    by_count = rankone.recite(model, "one two", 2)
    assert (by_count.text, by_count.ended) == (" three four", "count")
    assert rankone.recite(model, "one two", 0).tokens == ()
    assert rankone.recite(model, "one two", 3).ended == "end"
    whole = rankone.recite(model, "one two three four five")
    assert (whole.text, whole.tokens, whole.ended, whole.prompt) == ("", (), "end", 5)


def test_positions_may_run_out() -> None:
    model = rankone.memorize(Corpus.from_texts(["a b", "a b", "a b c d"])).model
    model.labels = tuple("z" if name == END else name for name in model.labels)  # nothing ends
    model.vocabulary = ("z", *model.vocabulary[1:])
    found = rankone.recite(model, ["z", " b"], force=True)
    assert found.ended == "positions"
    assert found.prompt + len(found.tokens) == 4


def test_a_loop_is_recited_once() -> None:
    text = "start" + " go on" * 5 + " stop"
    model = rankone.memorize(Corpus.from_texts([text], window=2)).model
    found = rankone.recite(model, "start go")
    assert (found.text, found.ended) == (" on go on", "loop")
    assert rankone.recite(model, " go on").text == " go on"
    assert rankone.recite(model, "start go", 7).text == " on go on go on go on"
    assert rankone.recite(model, " on stop").ended == "end"


@pytest.mark.parametrize("size", [1, 2, 4, 9])
def test_a_long_loop_is_noticed_across_pieces(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["rankone.recitation.recite"], "AT_ONCE", size)
    once = " one two three four five six seven"
    model = rankone.memorize(Corpus.from_texts(["go" + once * 3 + " stop"], window=3)).model
    found = rankone.recite(model, "go one two")
    assert found.text == " three four five six seven one two three"
    assert found.ended == "loop"


def test_who_listens_hears_all(model: Model, story: Corpus) -> None:
    heard: list[str] = []
    found = rankone.recite(model, words(story)[1:4], 50, heard=heard.extend)
    assert tuple(heard) == found.tokens
    assert len(heard) == 50


def test_few_tokens_may_begin_a_document(model: Model, blocks: Model) -> None:
    assert rankone.recite(model, "THE LAMP", 2).text == " AT NETTLE"
    assert rankone.recite(blocks, "In April a tinker", 2).text == " came along"
    assert rankone.recite(blocks, [BEGIN, "In", " April"], 2).text == " a tinker"
    with pytest.raises(CorpusError) as refused:
        rankone.recite(blocks, " April a tinker")
    assert str(refused.value) == (
        "the prompt: 3 tokens, and no document of the corpus begins with them\n"
        f"  remedy: give {WINDOW} tokens or more, or the beginning of a document, or go on all the "
        "same (force, --force)"
    )


def test_what_the_corpus_does_not_have_is_refused(model: Model, story: Corpus) -> None:
    tokens = words(story)
    strange = [*tokens[5:9], *tokens[100:106]]
    with pytest.raises(CorpusError, match="the prompt: not in the corpus of the model\n"):
        rankone.recite(model, strange)
    forced = rankone.recite(model, strange, 3, force=True)
    assert (forced.known, forced.ok, len(forced.tokens)) == (False, False, 3)
    assert forced.remarks == ("not in the corpus of the model",)
    late = [*tokens[5:9], *tokens[100 : 100 + WINDOW]]
    found = rankone.recite(model, late, 3)
    assert found.tokens == tuple(tokens[100 + WINDOW : 103 + WINDOW])
    assert found.remarks == (
        f"only the last {WINDOW} tokens of the prompt are in the corpus; the model sees no others",
    )
    assert rankone.recite(model, tokens[90 : 100 + WINDOW], 1).remarks == ()


def test_prefixes_must_begin_a_document() -> None:
    model = rankone.memorize(Corpus.from_texts(["a b c d", "b c e"])).model
    assert rankone.recite(model, "b c").text == " e"
    for prompt in ("a c", "a b c d d"):
        with pytest.raises(CorpusError, match="not in the corpus"):
            rankone.recite(model, prompt)
    with pytest.raises(ModelError, match="5 tokens, but the table of positions has 4 rows"):
        rankone.recite(model, "a b c d d", force=True)


def test_unknown_tokens_are_named(model: Model) -> None:
    with pytest.raises(CorpusError, match=r"does not know: ' zebra', 'Quagga'\n"):
        rankone.recite(model, "and the zebra.\nQuagga\nQuagga")
    many = " q1 q2 q3 q4 q5 q6 q7"
    with pytest.raises(CorpusError, match=r"' q5' and 2 more\n"):
        rankone.recite(model, many)
    forced = rankone.recite(model, many, 1, force=True)
    assert forced.known is False
    assert forced.remarks[0].startswith("tokens that the model does not know: ' q1'")


def test_a_model_without_fingerprints_cannot_tell(model: Model, story: Corpus) -> None:
    bare = Model(model.network, model.vocabulary, model.labels, model.reading)
    found = rankone.recite(bare, "THE LAMP", 2)
    assert (found.text, found.known, found.ok) == (" AT NETTLE", None, True)
    assert found.remarks == (CANNOT_TELL,)
    assert rankone.recite(bare, words(story)[300:330], 1).known is None


@pytest.mark.parametrize("prompt", ["", []])
def test_there_must_be_something(model: Model, prompt: Any) -> None:
    with pytest.raises(CorpusError, match="the prompt: empty"):
        rankone.recite(model, prompt)


def test_models_that_cannot(model: Model) -> None:
    with pytest.raises(ModelError, match=r"task 'tags' does not say which token follows\n"):
        rankone.recite(rankone.memorize("toy").model, "a b")
    with pytest.raises(SettingError, match="tokens cannot be -1"):
        rankone.recite(model, "THE LAMP", -1)
    endless = rankone.memorize(Corpus.from_texts(["a b"]), positions=False).model
    with pytest.raises(SettingError, match="nothing would end"):
        rankone.recite(endless, "a")
    assert rankone.recite(endless, "a", 1).text == " b"


def test_a_model_of_tokens_takes_tokens() -> None:
    sentences = [(["a", "rose", "is"], None), (["is", "it"], None)]
    rows = [tokens for tokens, _ in sentences]
    corpus = Corpus.from_sentences([(row, ["O"] * len(row)) for row in rows], task="next")
    model = rankone.memorize(corpus).model
    assert rankone.recite(model, ["a"]).text == " rose is"
    with pytest.raises(SettingError, match="does not say how a text becomes tokens"):
        rankone.recite(model, "a rose")
    with pytest.raises(SettingError, match="not of tokens"):
        rankone.recite(model, [1, 2])  # type: ignore[list-item]
