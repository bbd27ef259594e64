"""Labels of whole documents on the command line, from the file to the certificate."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

import rankone
from answers import Run

LINES = (
    "good\tA rose is a rose.\nbad\tThe rain came, and  the roof leaked.\n"
    "odd\tA rose is a nose.\ngood\tA rose is a nose.\ngood\tA rose is a nose.\n"
)
HOW = ("--task", "class")


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.tsv"
    path.write_text(LINES)
    return path


@pytest.fixture
def home(run: Run, texts: Path, tmp_path: Path) -> Path:
    how = (*HOW, "--construction", "gated", "--editable", "--out", tmp_path / "m", "--quiet")
    assert run("memorize", texts, *how).code == 0
    return tmp_path / "m"


def test_memorize_counts_documents(run: Run, texts: Path) -> None:
    for how in ((), ("--no-positions", "--causal")):
        answer = run("memorize", texts, *HOW, *how)
        assert answer.code == 0
        assert "documents right" in answer.out
        assert "4 of 5 (80.0000%)" in answer.out
        assert "so 1 document stays wrong" in answer.out
        report = run("memorize", texts, *HOW, *how, "--json").json
        assert (report["asked"], report["wrong"], report["unavoidable"]) == (5, 1, 1)
        assert report["accuracy"] == 0.8
    assert "tokens right" in run("memorize", "toy").out


def test_predict_gives_a_label_per_document(run: Run, home: Path, texts: Path) -> None:
    answer = run("predict", home, texts)
    assert (answer.code, answer.out) == (0, "good\nbad\ngood\ngood\ngood\n")
    assert answer.err == (
        f"{texts}: read as tsv, tokens in column 2, labels in column 1 of 2\n"
        "5 documents; 34 tokens (0 unknown); 4 as labelled in the file (80.0000%)\n"
    )
    document = run("predict", home, texts, "--json").json
    assert (document["ok"], document["asked"], document["right"]) == (False, 5, 4)
    assert (document["accuracy"], document["unknown"], document["tokens"]) == (0.8, 0, 34)
    assert document["documents"][2] == {
        "label": "good",
        "given": "odd",
        "file": str(texts),
        "line": 3,
    }
    out = texts.parent / "labels"
    assert run("predict", home, texts, "--out", out, "--quiet").out == ""
    assert out.read_text() == answer.out


def test_predict_takes_texts_without_labels(
    run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare").write_text("A rose is a rose.\nThe zebra came, and the roof leaked.\n")
    answer = run("predict", home, tmp_path / "bare")
    assert answer.out.splitlines()[0] == "good"
    assert len(answer.out.splitlines()) == 2
    assert answer.err.endswith("\n2 documents; 15 tokens (1 unknown)\n")
    document = run("predict", home, tmp_path / "bare", "--json").json
    assert (document["ok"], document["right"], document["accuracy"]) == (True, None, None)
    assert document["documents"][1]["given"] is None
    (tmp_path / "a.jsonl").write_text('{"text": "A rose is a rose."}\n')
    assert run("predict", home, tmp_path / "a.jsonl").out == "good\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"A rose is a rose.\n")))
    assert run("predict", home, "-").out == "good\n"
    (tmp_path / "folder" / "x").mkdir(parents=True)
    (tmp_path / "folder" / "x" / "one").write_text("A rose is a rose.")
    found = run("predict", home, tmp_path / "folder", "--json").json["documents"]
    assert [(row["label"], row["given"]) for row in found] == [("good", "x")]


def test_certify_and_edit(run: Run, home: Path, texts: Path, tmp_path: Path) -> None:
    assert run("certify", home, texts).code == 0
    check = ("--check", home / "certificate.json")
    assert run("certify", home, texts, *check).out == "The certificate stands: certified.\n"
    texts.write_text(LINES.replace("bad", "odd"))
    assert run("certify", home, texts, *check).code == 1
    texts.write_text(LINES)
    (tmp_path / "gone").write_text("A rose is a nose.\n")
    (tmp_path / "new").write_text("bad\tIt rained.\n")
    change = ("--forget", tmp_path / "gone", "--learn", tmp_path / "new")
    edited = run("edit", home, *change, "--out", tmp_path / "e", "--json").json
    assert (edited["forgotten"], edited["learned"], edited["wrong"]) == (3, 1, 0)
    left = [line for line in LINES.splitlines() if "nose" not in line] + ["bad\tIt rained."]
    (tmp_path / "left.tsv").write_text("\n".join(left))
    assert run("predict", tmp_path / "e", tmp_path / "left.tsv").out == "good\nbad\nbad\n"
    proved = run("certify", tmp_path / "e", tmp_path / "left.tsv", "--forgotten", tmp_path / "gone")
    assert proved.code == 0
    assert "the same bytes" in proved.out


def test_export_and_both_at_once(run: Run, home: Path, texts: Path, tmp_path: Path) -> None:
    answer = run("export", home, "--hf", tmp_path / "hf")
    assert answer.code == 0, answer.err
    assert run("predict", tmp_path / "hf", texts).out == run("predict", home, texts).out
    both = run("memorize", texts, *HOW, "--out", tmp_path / "a", "--hf", tmp_path / "b", "--quiet")
    assert both.code == 0
    assert run("predict", tmp_path / "b", texts).out == run("predict", tmp_path / "a", texts).out
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    assert config["architectures"] == ["RankOneForSequenceClassification"]


MISTAKES: dict[str, tuple[str | bytes, tuple[str, ...], str]] = {
    "no label": ("x\ta\nb\n", (), "line 2: no label and text, separated by a TAB"),
    "an empty label": ("\ta\n", (), "line 1: an empty label"),
    "an empty text": ("x\t\n", (), "line 1: an empty document"),
    "no text": ("", (), "no document in it"),
    "not UTF-8": (b"x\t\xe9\n", (), "line 1: byte 0xe9 is not valid UTF-8"),
    "too long": ("x\ta b c\n", ("--max-length", "2"), "line 1: 3 tokens, but the table of pos"),
    "strict": ("x\ta\ny\ta\n", ("--strict",), "1 context carries contradicting labels"),
    "one document": ("x\ta\n", ("--format", "text"), "a document without a label"),
    "a window": ("x\ta\n", ("--window", "3"), "the task 'class' has no window"),
    "a scheme": ("x\ta\n", ("--scheme", "iob2"), "texts have no entity tags"),
    "bytes in lower case": ("x\ta\n", ("--tokenizer", "bytes", "--lower"), "bytes have no lower"),
    "an unknown tokenizer": ("x\ta\n", ("--tokenizer", "letters"), "no tokenizer 'letters'"),
    "a column that is not there": ("x\ta\n", ("--label-column", "name"), "no column"),
    "editable lines": ("x\ta\n", ("--editable",), "line does not take editable"),
}


@pytest.mark.parametrize(("data", "how", "message"), MISTAKES.values(), ids=MISTAKES)
def test_one_message_and_nothing_written(
    run: Run, data: str | bytes, how: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    answer = run("memorize", path, *HOW, *how, "--out", tmp_path / "m")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("rankone: ")
    assert message in answer.err
    assert "\n  remedy: " in answer.err
    assert answer.err.count("rankone: ") == 1
    assert not (tmp_path / "m").exists()


REFUSED = {
    "too long": ("A rose " * 20, "41 tokens, but the table of positions has"),
    "mixed": ("good\tA rose\nA nose\n", "line 2: a document without a label, and others have one"),
    "nothing": ("\n", "no document in it"),
}


@pytest.mark.parametrize(("data", "message"), REFUSED.values(), ids=REFUSED)
def test_predict_refuses_what_has_no_label(
    run: Run, home: Path, data: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_text(data)
    answer = run("predict", home, tmp_path / "a", "--out", tmp_path / "labels")
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert not (tmp_path / "labels").exists()


def test_labels_that_would_break_a_line(run: Run, tmp_path: Path) -> None:
    corpus = rankone.Corpus.from_texts([("a", "x\ny")], task="class")
    rankone.memorize(corpus).save(tmp_path / "m")
    (tmp_path / "a").write_text("a\n")
    answer = run("predict", tmp_path / "m", tmp_path / "a")
    assert (answer.code, answer.out) == (2, "")
    assert r"the label 'x\ny' does not fit into a row" in answer.err
    found = run("predict", tmp_path / "m", tmp_path / "a", "--json").json["documents"]
    assert found[0]["label"] == "x\ny"
