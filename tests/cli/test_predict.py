"""predict and inspect on what people have: plain text, long sentences, several columns."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import rankone
from answers import Run


def test_plain_text_is_labelled_and_said(run: Run, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("the will\nthe will run\n\nFoo bar baz the qux\n")
    answer = run("predict", model, text)
    assert answer.code == 0
    assert answer.out == (
        "the\tO\nwill\tB-X\n\nthe\tO\nwill\tO\nrun\tO\n\nFoo\tO\nbar\tO\nbaz\tO\nthe\tO\nqux\tO\n"
    )
    how, figures = answer.err.splitlines()
    assert how == (
        f"{text}: read as plain text, one sentence per line, since it does not have the columns "
        "of the model's corpus; --format conll reads columns"
    )
    assert figures == (
        "10 tokens (4 unknown); 1 sentence longer than the table of positions, labelled in pieces"
    )
    document = run("predict", model, text, "--json").json
    assert document["format"] == "text"
    assert document["remarks"] == [how.removeprefix(f"{text}: ")]
    assert document["columns"] == {"token": None, "label": None, "of": None}
    assert (document["in_pieces"], document["ok"], document["right"]) == (1, True, None)
    assert document["sentences"][1] == {
        "tokens": ["the", "will", "run"],
        "labels": ["O", "O", "O"],
        "line": 2,
    }


def test_text_that_was_asked_for_is_no_assumption(
    run: Run, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"the DT O\n")))
    answer = run("predict", model, "-", "--format", "text")
    assert answer.out == "the\tO\nDT\tO\nO\tO\n"
    assert answer.err == "<stdin>: read as text\n3 tokens (2 unknown)\n"
    for command in ("inspect", "memorize", "train"):
        assert run(command, "builtin", "--format", "text").code == 2


def test_columns_that_were_taken_are_said(run: Run, model: Path, corpus: Path) -> None:
    answer = run("predict", model, corpus)
    assert answer.err == (
        f"{corpus}: read as conll, tokens in column 1, labels in column 3 of 3\n"
        "7 tokens (0 unknown); 6 as labelled in the file (85.7143%); entities: F1 80.00%\n"
    )
    document = run("predict", model, corpus, "--json").json
    assert (document["source"], document["format"]) == (str(corpus), "conll")
    assert document["columns"] == {"token": 1, "label": 3, "of": 3}
    assert (document["remarks"], document["in_pieces"], document["ok"]) == ([], 0, False)
    assert "tokens in column 1, labels in column 3 of 3" in run("inspect", corpus).out
    assert run("inspect", corpus, "--json").json["columns"] == document["columns"]
    assert "Read tokens in column 1, labels in column 3 of 3." in run("memorize", corpus).out
    report = run("memorize", corpus, "--json").json
    assert report["settings"]["columns"] == document["columns"]


def test_one_token_is_not_several(run: Run, model: Path, tmp_path: Path) -> None:
    text = tmp_path / "text.conll"
    text.write_text("the\n")
    assert run("predict", model, text).err.endswith("\n1 token (0 unknown)\n")
    built_in = run("predict", model, "builtin", "--quiet", "--out", tmp_path / "out")
    assert (built_in.code, built_in.err) == (0, "")
    assert run("predict", model, "builtin").err.startswith("builtin\n16,525 tokens (")


def test_a_label_that_would_break_the_rows_is_refused(run: Run, tmp_path: Path) -> None:
    rankone.memorize([(["a"], ["X\tY"])]).save(tmp_path / "m")
    text = tmp_path / "t.jsonl"
    text.write_text('{"tokens": ["a"]}\n')
    answer = run("predict", tmp_path / "m", text)
    assert (answer.code, answer.out) == (2, "")
    assert "the label 'X\\tY' does not fit into a row" in answer.err
    assert run("predict", tmp_path / "m", text, "--json").json["sentences"][0]["labels"] == ["X\tY"]


def test_conflicts_are_shown_with_their_sentence(run: Run, corpus: Path, tmp_path: Path) -> None:
    out = run("inspect", corpus).out
    assert "Conflicts: 1 place in equal sentences\n" in out
    assert "  'the' (token 1): O on line 1; B-X on line 8\n    [the] will\n" in out
    assert "(2 copies)" in out
    assert "3 tokens (line 4)" in out
    conflict = run("inspect", corpus, "--json").json["conflicts"][0]
    assert (conflict["sentence"], conflict["start"]) == (["the", "will"], 1)
    assert "\n    [the] will\n" in run("memorize", corpus).out
    many = tmp_path / "many"
    many.write_text("".join(f"w{i} X\n\n" for i in range(12)) * 11)
    many.write_text(many.read_text() + "".join(f"w{i} Y\n\n" for i in range(12)))
    out = run("inspect", many).out
    assert "Conflicts: 12 places in equal sentences\n" in out
    assert "  'w0' (token 1): X on lines 1, 25, 49, 73, 97, 121, 145, 169, 193, 217 and 1 more; Y on line 265\n" in out  # fmt: skip  # noqa: E501
    assert "w9" in out
    assert "w10" not in out
    assert "  and 2 more (--json lists all)\n" in out


def test_the_longest_sentence_of_a_built_in_corpus_has_a_number(run: Run) -> None:
    assert "tokens (sentence " in run("inspect", "toy").out


def test_evaluate_takes_a_built_in_corpus_whatever_the_columns(run: Run, corpus: Path) -> None:
    how = ("--label-column", 2, "--lower", "--epochs", 1, "--evaluate", "builtin", "--json")
    (scores,) = run("train", corpus, *how).json["evaluations"]
    assert (scores["source"], scores["tokens"]) == ("builtin", 16525)
    assert scores["in_pieces"] == 2000


def test_a_test_file_with_longer_sentences_is_labelled(
    run: Run, shared: Path, tmp_path: Path
) -> None:
    home = tmp_path / "m"
    run("memorize", shared / "conll2003" / "eng.train", "--out", home, "--quiet")
    answer = run("predict", home, shared / "conll2003" / "eng.testb", "--out", tmp_path / "out")
    assert answer.code == 0
    assert "; 1 sentence longer than the table of positions, labelled in pieces; " in answer.err
    assert len((tmp_path / "out").read_text().split("\n\n")) == 3453
