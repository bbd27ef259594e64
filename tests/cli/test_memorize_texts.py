"""rankone memorize --task next: what is said of a text; what cannot be used writes nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import rankone
from answers import Run
from rankone.corpus.tasks import END

ROSE = "A rose is a rose, and a nose is a nose.\n"
HOW = ("--task", "next", "--window", 2)


@pytest.fixture
def roses(tmp_path: Path) -> Path:
    path = tmp_path / "roses.txt"
    path.write_text(ROSE)
    return path


def test_what_is_said_of_a_text(run: Run, roses: Path, tmp_path: Path) -> None:
    """One of two continuations of " is a", and of " a nose"; where, is a question for `inspect`."""
    answer = run("memorize", roses, *HOW, "--dtype", "float32", "--out", tmp_path / "m")
    assert answer.code == 0
    assert "next tokens right" in answer.out
    assert "12 of 14 (85.7143%)" in answer.out
    assert (
        "2 contexts go on in several ways, which the paper excludes; each gives the share of each "
        "next token, and the most frequent one leads, so 2 tokens stay wrong"
    ) in " ".join(answer.out.split())
    assert "only one document" not in answer.out
    assert re.search(
        r"bits per token *│ *0.2857", answer.out
    )  # 4 of 14 tokens are tosses of a coin
    assert "on line" not in answer.out
    report = run("memorize", roses, *HOW, "--json").json
    assert (report["asked"], report["wrong"], report["unavoidable"]) == (14, 2, 2)
    assert report["settings"]["construction"] == "gated"
    assert len(report["conflicts"]) == 2
    model = rankone.load(tmp_path / "m")
    assert model.predict([[" is", " a"]])[0][1] in (" rose", " nose")
    assert model.predict([["\n"]])[0] == [END]


def test_a_line_has_no_shares(run: Run, roses: Path) -> None:
    """Other constructions give the most frequent token alone."""
    answer = run("memorize", roses, "--task", "next", "--construction", "line")
    assert answer.code == 0
    assert "the share of" not in answer.out
    doubled = run("memorize", roses, *HOW, "--construction", "line")
    assert (doubled.code, doubled.out) == (2, "")
    assert "line has no windows" in doubled.err
    assert "leave out window (memorize --window)" in doubled.err


REFUSED = {
    "not UTF-8": (b"A rose\nis a r\xf4se", (), "line 2: byte 0xf4 is not valid UTF-8"),
    "a NUL byte": (b"A rose\0", (), "line 1: a NUL byte"),
    "nothing": (b"", (), "an empty document"),
    "a mark": (b"A rose.", ("--tokenizer", "none.json"), "no tokenizer 'none.json'"),
    "a table of positions": (b"A rose.", ("--window", 2, "--max-length", 9), "max_length"),
    "no positions": (b"A rose.", ("--window", 2, "--no-positions"), "positions"),
    "a window of 0": (b"A rose.", ("--window", -1), "--window"),
    "contradictions": (ROSE.encode(), ("--window", 2, "--strict"), "contradicting labels"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_used_writes_nothing(
    run: Run, tmp_path: Path, case: tuple[bytes, tuple[object, ...], str]
) -> None:
    data, how, message = case
    (tmp_path / "text.txt").write_bytes(data)
    answer = run("memorize", tmp_path / "text.txt", "--task", "next", *how, "--out", tmp_path / "m")
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err
    assert not (tmp_path / "m").exists()


def test_bytes_may_be_any(run: Run, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_bytes(b"\xff\0\xff\n")
    how = ("--task", "next", "--tokenizer", "bytes", "--window", 2)
    answer = run("memorize", tmp_path / "text.txt", *how, "--out", tmp_path / "m")
    assert answer.code == 0
    assert rankone.load(tmp_path / "m").predict([["ff", "00"]])[0][1] == "ff"
