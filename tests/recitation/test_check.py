"""What is recited of a corpus, and where the model parts from it, counted by brute force."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import rankone
import texts
import tokenizer_files
from rankone import Corpus, Model
from rankone.corpus.tasks import END
from rankone.errors import CorpusError, LengthError, ModelError
from rankone.recitation import Branch, check
from rankone.recitation.prompt import CANNOT_TELL

# The letters of documents that begin alike, repeat each other, and end inside of each other.
DOCUMENTS = ["ababcab", "abba", "ab", "cababca", "abba", "aaaaab"]


@pytest.mark.parametrize("window", [0, 1, 2, 3, 6])
def test_figures_are_those_of_dictionaries(window: int) -> None:
    corpus = Corpus.from_texts(DOCUMENTS, tokenizer="characters", window=window)
    found = rankone.check_recitation(rankone.memorize(corpus).model, DOCUMENTS)
    # `BEGIN` is one of the tokens that a window holds
    counts = texts.counts([*DOCUMENTS], window) if window == 0 else counted(window)
    asked = sum(map(len, DOCUMENTS))
    recited = sum(max(counter.values()) for counter in counts.values())
    assert (found.tokens, found.documents) == (asked, len(DOCUMENTS))
    assert (found.recited, found.parted) == (recited, asked - recited)
    assert (found.ok, found.avoidable, found.strange) == (True, 0, 0)
    places = {(b.document, b.position) for b in found.branches}
    assert len(places) == found.parted == len(found.branches)
    assert found.whole == len(DOCUMENTS) - len({document for document, _ in places})
    for branch in found.branches:
        document, k = DOCUMENTS[branch.document - 1], branch.position - 1
        assert branch.text == (document[k] if k < len(document) else END) != branch.said
        assert document[:k].endswith(branch.before)
        assert not branch.avoidable
        counter = counts[seen(document, k - 1, window)]
        assert counter[branch.said] == max(counter.values())


def seen(document: str, k: int, window: int) -> tuple[bool, str]:
    """With a mark in front of every document, a window is a string of its own."""
    if window == 0:
        return texts.context(document, k, 0)
    return False, ("^" + document)[max(0, k + 2 - window) : k + 2]


def counted(window: int) -> dict[tuple[bool, str], Counter[str]]:
    found: dict[tuple[bool, str], Counter[str]] = {}
    for j, k, following in texts.asked(DOCUMENTS):
        found.setdefault(seen(DOCUMENTS[j], k, window), Counter())[following] += 1
    return found


def test_branches_say_where_they_are(tmp_path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("A rose is red.\nA rose is red.\nA rose is\nblue.\n")
    corpus = rankone.read_corpus(path, task="next", window=3)
    found = rankone.check_recitation(rankone.memorize(corpus).model, path)
    (first,) = found.branches
    before = "A rose is red.\nA rose is red.\nA rose is"
    assert first.before == before[-len(first.before) :]
    tail = {"file": str(path), "document": 1, "avoidable": False}
    assert first == Branch(line=3, position=16, before=first.before, text="\n", said=" red", **tail)
    document = found.to_json()
    assert document["ok"] is True
    assert document["branches"][0]["text"] == "\n"
    assert (document["tokens"], document["recited"], document["documents"]) == (19, 18, 1)


def test_a_model_of_another_text_could_do_better() -> None:
    own, other = "one two three four", "one two four three"
    model = rankone.memorize(Corpus.from_texts([own], window=2)).model
    found = rankone.check_recitation(model, [other])
    assert (found.ok, found.avoidable, found.whole) == (False, 3, 0)
    assert (found.branches[0].text, found.branches[0].said) == (" four", " three")
    assert found.strange == 2
    assert found.remarks == (
        "2 tokens with contexts that are not in the corpus of the model: this is another text",
    )
    part = rankone.check_recitation(model, [own])
    assert (part.ok, part.recited, part.remarks) == (True, 4, ())


def test_words_that_the_model_does_not_have() -> None:
    model = rankone.memorize(Corpus.from_texts(["a b c"])).model
    found = rankone.check_recitation(model, ["a x c", "a b c"])
    assert (found.ok, found.tokens, found.strange) == (False, 6, 2)
    assert found.branches[0].text == " x"


def test_the_list_of_branches_ends_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "LISTED", 3)
    corpus = Corpus.from_texts(DOCUMENTS, tokenizer="characters", window=1)
    found = rankone.check_recitation(rankone.memorize(corpus).model, corpus)
    assert len(found.branches) == 3 < found.parted


def test_without_fingerprints_nothing_is_strange() -> None:
    corpus = Corpus.from_texts(["a b c"], window=2)
    made = rankone.memorize(corpus).model
    bare = Model(made.network, made.vocabulary, made.labels, made.reading)
    found = rankone.check_recitation(bare, corpus)
    assert (found.ok, found.strange, found.remarks) == (True, None, (CANNOT_TELL,))


def test_what_is_refused() -> None:
    model = rankone.memorize(Corpus.from_texts(["a b c"])).model
    with pytest.raises(LengthError, match="4 tokens, but the table of positions has 3 rows"):
        rankone.check_recitation(model, ["a b c a"])
    with pytest.raises(CorpusError, match="with a window of 2, for a model with a window of 0"):
        rankone.check_recitation(model, Corpus.from_texts(["a b"], window=2))
    with pytest.raises(ModelError, match="task 'tags' does not say"):
        rankone.check_recitation(rankone.memorize("toy").model, ["a b"])


def test_a_directory_and_a_path_will_do(tmp_path) -> None:
    made = rankone.memorize(rankone.read_corpus("story", task="next", window=32))
    made.save(tmp_path / "model")
    found = rankone.check_recitation(tmp_path / "model", "story")
    assert (found.ok, found.parted, found.strange) == (True, made.wrong, 0)
    assert rankone.recite(tmp_path / "model", "THE LAMP", 3).tokens == (" AT", " NETTLE", " POINT")


def test_lines_and_words_of_a_tokenizer_file(tmp_path: Path) -> None:
    """A branch is told as the text has it, not as the tokenizer writes it ("Ġnose", "Ċ")."""
    tokenizer_files.byte_level().save(str(tmp_path / "t.json"))
    (tmp_path / "roses.txt").write_text("A rose is red.\nA rose is old.\n")
    how = {"task": "next", "tokenizer": tmp_path / "t.json", "window": 3}
    corpus = rankone.read_corpus(tmp_path / "roses.txt", **how)
    found = rankone.check_recitation(rankone.memorize(corpus).model, corpus)
    (branch,) = [b for b in found.branches if b.text != END]
    assert branch.line == 2
    assert branch.before.endswith("A rose is")
    assert {branch.text[0], branch.said[0]} == {" "}
    assert corpus.lines[-1] == 2
