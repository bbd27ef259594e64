"""Audits of texts: Python and JSON, copies and leaks, the page, labels of documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rankone
from rankone.audit import Audit, Row, TextConflict
from rankone.audit.baseline import Baseline
from rankone.audit.digest import digest
from rankone.audit.gate import Gate
from rankone.audit.page import page
from rankone.audit.pieces import LETTERS, joined, piece
from rankone.audit.review import rows_of_audit
from rankone.audit.verdict import verdict
from rankone.errors import SettingError

ROSES = "A rose is a rose.\n\nA rose is red.\nA rose is red.\n"


def text(*documents: str, window: int = 0, tokenizer: str = "words") -> rankone.Corpus:
    return rankone.Corpus.from_texts(documents, window=window, tokenizer=tokenizer)


def labelled(*pairs: tuple[str, str]) -> rankone.Corpus:
    return rankone.Corpus.from_texts(pairs, task="class")


# The next token


def test_the_figures_of_a_text(tmp_path: Path) -> None:
    path = tmp_path / "roses.txt"
    path.write_text(ROSES)
    audit = rankone.inspect(rankone.read_corpus(path, task="next", window=2))
    assert audit.text is not None
    assert (audit.task, audit.tokens, audit.sentences, audit.ok) == ("next", 20, 1, False)
    assert [row.window for row in audit.text.ceilings] == [1, 2, 0]
    rows = {row.window: row for row in audit.text.ceilings}
    assert audit.ceilings["token"] == rows[1].ceiling
    assert audit.ceilings["prefix"] == rows[0].ceiling
    assert audit.ceilings["majority"].errors == 20 - 4  # four lines end
    assert audit.text.limit is not None
    passage = audit.text.passages[0]
    assert (passage.text, passage.length) == ("\nA rose is red.\n", 7)
    assert passage.rows == (Row(str(path), 2), Row(str(path), 3))
    assert passage.continuations == {"A": 1, "<|end|>": 1}
    assert {conflict.excerpt() for conflict in audit.conflicts} == {" rose is", ".\n"}


def test_json_holds_what_python_does() -> None:
    audit = rankone.inspect(text("x ab ab ac", window=1))
    found = json.loads(json.dumps(audit.to_json()))
    assert audit.text is not None
    assert "labels" not in found
    assert found["text"].keys() == {"ok", "window", "ceilings", "enough", "limit", "passages"}
    for row, shown in zip(audit.text.ceilings, found["text"]["ceilings"], strict=True):
        for name, value in shown.items():
            assert getattr(row, name) == value
        assert {"contexts", "determined", "accuracy", "errors", "bits", "perplexity"} <= {*shown}
    assert found["text"]["ok"] is found["ok"] is False
    (conflict,) = found["conflicts"]
    assert conflict["counts"] == {" ab": 1, " ac": 1}
    tags = rankone.inspect("toy").to_json()
    assert "text" not in tags
    assert "labels" in tags


def test_copies_of_a_document() -> None:
    audit = rankone.inspect(text("one two", "three", "one two"))
    assert (audit.distinct_sentences, audit.surplus_copies) == (2, 1)
    (twice,) = audit.duplicates
    assert (twice.sentence, twice.agree) == (("one two",), True)
    assert twice.rows == (Row(None, 1), Row(None, 3))
    assert audit.ok


def test_long_documents_are_quoted_from_their_beginning() -> None:
    words = " ".join(f"w{i}" for i in range(1000))
    audit = rankone.inspect(text(words, words))
    (quoted,) = audit.duplicates[0].sentence
    assert quoted == words[:LETTERS].rstrip() + " ..."
    assert len(json.dumps(audit.to_json())) < 10_000


def test_leaks_between_texts_that_share_hardly_a_word() -> None:
    own, other = text("one two", "three"), text("four", "five six", "seven", "ONE, two", "three")
    audit = rankone.inspect(own, against=[other])
    (comparison,) = audit.against
    assert [(leak.kind, leak.sentence) for leak in comparison.leaks] == [
        ("exact", ("three",)),
        ("near", ("one two",)),
    ]
    assert comparison.ceilings == {"here": {}, "there": {}}
    assert (comparison.known["here"].exact, comparison.known["there"].near) == (1, 1)


def test_prefixes_of_another_text_are_no_conflict() -> None:
    audit = rankone.inspect(text("one two"), against=[text("one three")])
    assert audit.ok


def test_bytes_are_compared_by_their_letters() -> None:
    """The digits of their numbers are letters as well."""
    own, other = (text(of, tokenizer="bytes") for of in ("Où? é", "OÙ É!"))
    (comparison,) = rankone.inspect(own, against=[other]).against
    assert [leak.kind for leak in comparison.leaks] == ["near"]
    assert comparison.leaks[0].sentence == ("Où? é",)
    apart = text("oè é", tokenizer="bytes")
    assert rankone.inspect(own, against=[apart]).against[0].leaks == ()


def test_pieces_are_read_back_by_their_tokenizer() -> None:
    corpus = text("é\na", tokenizer="bytes")
    assert joined(corpus, 0, 4) == "é\na"
    assert joined(corpus, 1, 4) == "\ufffd\na"
    columns = rankone.Corpus.from_sentences([(["a", "b"], ["X", "Y"])], task="next")
    assert joined(columns, 0, 2) == "a b"
    letters = text("x" * 100 + "y" * 100, tokenizer="characters")
    assert piece(letters, 0, 200) == "x" * 80 + " ... " + "y" * 80
    assert piece(letters, 0, 200, of="head") == "x" * 100 + "y" * 60 + " ..."
    assert piece(letters, 0, 200, of="tail") == "... " + "x" * 60 + "y" * 100
    assert piece(letters, 20, 180) == "x" * 80 + "y" * 80


def test_the_file_of_a_tokenizer(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False)
    made.train_from_iterator(["the rose, the rose"], trainer)
    made.save(str(tmp_path / "tokenizer.json"))
    corpus = text("see the rosé, the rosé!", tokenizer=str(tmp_path / "tokenizer.json"))
    audit = rankone.inspect(corpus)
    assert audit.text is not None
    assert audit.text.passages[0].text == " the rosé"
    assert set(audit.text.passages[0].continuations) == {",", "!"}


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (rankone.inspect(text("ab")), "Prefixes determine the only next token."),
        (
            rankone.inspect(text("a b", "a b", window=9)),
            "Windows of 9 tokens determine all 4 next tokens; there is also 1 repeated document.",
        ),
        (
            rankone.inspect(text("a b", "a c")),
            "No model can predict more than 3 of 4 next tokens (75.0000%) or have a perplexity "
            "below 1.41421, because 1 prefix has several continuations.",
        ),
        (
            rankone.inspect(labelled(("good", "pos"), ("good", "neg"), ("bad", "neg"))),
            "No model can be right on more than 2 of 3 labels (66.6667%), because equal documents "
            "are labelled differently in 1 place; there is also 1 repeated document.",
        ),
        (
            rankone.inspect(labelled(("good", "pos"), ("bad", "neg"))),
            "The document determines all 2 labels.",
        ),
    ],
)
def test_verdicts(audit: Audit, said: str) -> None:
    assert verdict(audit) == said


def test_the_page_of_a_text() -> None:
    audit = rankone.inspect(text("a\nb c", "a\nb d", "a\nb d", window=2), against=[text("a\nb c")])
    found = digest(audit)
    assert audit.text is not None
    assert found["labels"] == []
    assert found["text"]["ceilings"] == [row.to_json() for row in audit.text.ceilings]
    assert found["totals"]["passages"] == len(found["findings"]["passages"]) == 2
    shown = found["findings"]["passages"][0]
    assert (shown["words"], shown["length"], shown["rows"]["count"]) == (["a⏎b d"], 4, 2)
    assert (shown["next"], shown["next_count"]) == ([["'<|end|>'", 2]], 1)
    shown = found["findings"]["passages"][1]
    assert (shown["words"], shown["length"], shown["rows"]["count"]) == (["a⏎b"], 3, 3)
    assert (shown["next"], shown["next_count"]) == ([["' d'", 2], ["' c'", 1]], 2)
    conflict = found["findings"]["conflicts"][0]
    assert (conflict["words"], conflict["mark"]) == (["⏎b"], [])
    assert [side["label"] for side in conflict["sides"]] == ["' d'", "' c'"]
    assert [side["rows"]["count"] for side in conflict["sides"]] == [2, 1]
    assert {leak["agree"] for leak in found["findings"]["leaks"]} == {None}
    assert verdict(audit) in page(audit).replace("&#x27;", "'")
    tags = digest(rankone.inspect("toy"))
    assert tags["text"] is None
    assert "passages" not in tags["totals"] | tags["findings"]


def test_the_page_counts_what_it_does_not_hold() -> None:
    words = [f"w{i} {end}" for i in range(1001) for end in "ab"]
    found = digest(rankone.inspect(text(" ".join(words), window=1)))
    assert found["totals"]["conflicts"] > len(found["findings"]["conflicts"])
    assert found["totals"]["conflicts"] == 1000 + 2  # after each word but the first, after each end


def test_a_baseline_knows_the_conflicts_of_a_text(tmp_path: Path) -> None:
    documents = ["a b c", "a b d", "a e"]
    gate = Gate.parse("conflicts,duplicates")
    audit = rankone.inspect(text(*documents, window=2))
    path = tmp_path / "baseline.json"
    path.write_text(json.dumps(audit.to_json()))
    known = Baseline.read(path)
    assert len(gate.failures(audit)) == 2
    assert gate.failures(audit, known) == ()
    more = rankone.inspect(text(*documents, "a b f", "a e", window=2))
    assert {failure.kind for failure in gate.failures(more, known)} == {"conflicts", "duplicates"}


@pytest.mark.parametrize("how", [{"suspects": 1}, {"above": 0.5}])
@pytest.mark.parametrize("corpus", [text("a b"), labelled(("a b", "x"))])
def test_texts_have_no_suspects(corpus: rankone.Corpus, how: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=f"the task '{corpus.task}' does not have"):
        rankone.inspect(corpus, **how)  # type: ignore[arg-type]


# Labels of documents


def test_equal_documents_with_different_labels(tmp_path: Path) -> None:
    path = tmp_path / "films.tsv"
    rows = ["pos\tA good film", "neg\tA bad film", "neg\tA good film", "pos\tA good film"]
    path.write_text("\n".join([*rows, "neg\tA bad film"]))
    audit = rankone.inspect(rankone.read_corpus(path, task="class"))
    (conflict,) = audit.conflicts
    assert isinstance(conflict, TextConflict)
    assert (conflict.token, conflict.position) == ("", 3)
    assert (conflict.sentence, conflict.labels) == (["A good film"], {"pos": [1, 4], "neg": [3]})
    assert str(conflict) == "pos on lines 1, 4; neg on line 3"
    assert audit.ceilings["sequence"].errors == 1
    assert audit.asked == sum(audit.labels.values()) == 5
    rows_ = [
        (row.line, row.position, row.token, row.label, row.proposal)
        for row in rows_of_audit(audit)
        if row.kind == "conflict"
    ]
    assert rows_ == [(3, None, "", "neg", "pos")]
    assert rows_of_audit(audit)[0].sentence == "A good film"
    assert [(twice.sentence, twice.agree) for twice in audit.duplicates] == [
        (("A good film",), False),
        (("A bad film",), True),
    ]
    shown = digest(audit)["findings"]["conflicts"][0]
    assert (shown["words"], [side["label"] for side in shown["sides"]]) == (
        ["A good film"],
        ["pos", "neg"],
    )


def test_a_document_of_several_files_is_placed_where_it_begins(tmp_path: Path) -> None:
    for name, label, other in (("one", "x", "y"), ("two", "y", "x")):
        pairs = [("two\nlines", label), (name, other)]
        lines = [json.dumps({"text": of, "label": label}) for of, label in pairs]
        (tmp_path / f"{name}.jsonl").write_text("\n" + "\n".join(lines))
    parts = [rankone.read_corpus(tmp_path / f"{n}.jsonl", task="class") for n in ("one", "two")]
    (conflict,) = rankone.inspect(parts).conflicts
    assert conflict.labels == {"x": [2], "y": [2]}
    assert [Path(*of).name for of in conflict.files.values()] == ["one.jsonl", "two.jsonl"]
    (leaky,) = rankone.inspect(parts[0], against=[parts[1]]).conflicts
    assert leaky.labels == conflict.labels


def test_documents_made_in_python_have_numbers() -> None:
    (conflict,) = rankone.inspect(labelled(("c", "y"), ("a\nb", "x"), ("a\nb", "y"))).conflicts
    assert (str(conflict), conflict.position) == ("x in document 2; y in document 3", 3)
