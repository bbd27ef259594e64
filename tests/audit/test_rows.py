"""Rows for an annotator: one per finding, and what comes back is what was written."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.audit import Evidence, Suspect
from rankone.audit.cells import FORMULA, guarded, unguarded
from rankone.audit.rows import ReviewRow, read_rows, rows_of_audit, write_rows
from rankone.corpus import Conflict, Corpus
from rankone.errors import OutputError, RankOneError, RowsError, SettingError

TRICKY = "=+-@'\"\\;,\t\r\n abé\u3000\u2028\uff1d\U0001f600"
words = st.text(st.sampled_from(TRICKY), max_size=5)
marks = st.sampled_from(["", "x", "YES", " Ok ", "1", "no", "Rejected", "0"])
rows_strategy = st.builds(
    ReviewRow,
    file=words.filter(bool),
    line=st.integers(0, 10**9),
    position=st.none() | st.integers(0, 10**9),
    sentence=words,
    token=words,
    label=words,
    proposal=words,
    kind=words,
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    evidence=words,
    accept=marks,
)
TABLE = "file,line,token,label,proposal,accept\r\n"
ROW = ReviewRow(file="a.conll", line=3, token="St Louis", label="B-LOC I-LOC", proposal="O O")


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "CSV"])
@given(rows=st.lists(rows_strategy))
def test_what_is_written_is_read_again(home: Path, ending: str, rows: list[ReviewRow]) -> None:
    assert write_rows(rows, home / f"r.{ending}") == home / f"r.{ending}"
    found = read_rows(home / f"r.{ending}")
    assert found == rows
    assert all(row.origin.startswith(f"{home / f'r.{ending}'}, line ") for row in found)


@given(rows=st.lists(rows_strategy))
def test_csv_is_what_the_standard_says_and_holds_no_formula(
    home: Path, rows: list[ReviewRow]
) -> None:
    text = write_rows(rows, home / "r.csv").read_bytes().decode()
    assert text.startswith("\ufefffile,line,position,sentence,token,")
    assert text.endswith("\r\n")
    table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert [len(cells) for cells in table] == [11] * (len(rows) + 1)
    assert not [c for cells in table for c in cells if c.lstrip(' "\u3000')[:1] in [*"=+-@\t\r"]]


@given(rows=st.lists(rows_strategy))
def test_a_row_of_tsv_is_one_line_and_no_cell_opens_a_quote(
    home: Path, rows: list[ReviewRow]
) -> None:
    lines = write_rows(rows, home / "r.tsv").read_bytes().decode().split("\n")
    assert len(lines) == len(rows) + 2
    cells = [cell for line in lines[:-1] for cell in line.split("\t")]
    assert len(cells) == 11 * (len(rows) + 1)
    assert not [cell for cell in cells if cell[:1] in [*'="+-@\r']]


@given(words)
def test_an_apostrophe_is_added_and_taken_away_exactly(word: str) -> None:
    assert unguarded(guarded(word)) == word
    assert (guarded(word) == word) == (not FORMULA.match(word))


@pytest.mark.parametrize(
    ("word", "cell"),
    [
        ("=1", "'=1"),
        ("+", "'+"),
        ("-5", "'-5"),
        ("@you", "'@you"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        (" =1", "' =1"),
        ('"=1', "'\"=1"),
        ("'=1", "''=1"),
        ("\uff1d1", "'\uff1d1"),
        ("'s", "'s"),
        ("''", "''"),
        ("'", "'"),
        ("a=1", "a=1"),
        ("", ""),
    ],
)
def test_which_cells_begin_with_an_apostrophe(word: str, cell: str) -> None:
    assert guarded(word) == cell
    assert unguarded(cell) == word


def resaved(path: Path, separator: str, end: str, mark: str, swallow: bool, every: bool) -> str:
    """A table as a spreadsheet saves it: columns turned round, one added, empty rows below."""
    inside = "\t" if path.suffix == ".tsv" else ","
    table = list(csv.reader(io.StringIO(path.read_text("utf-8-sig"), newline=""), delimiter=inside))
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=separator, lineterminator=end, quoting=quoting)
    for number, cells in enumerate(table):
        if swallow:
            cells = [cell[1:] if cell[:1] == "'" and len(cell) > 2 else cell for cell in cells]
        writer.writerow([*reversed(cells), f"note {number}"])
    writer.writerow([])
    writer.writerow([""] * 12)
    return mark + out.getvalue().replace("token", " Token ", 1)


@pytest.mark.parametrize("swallow", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("ending", "separator"), [("csv", ";"), ("csv", ","), ("csv", "\t"), ("tsv", "\t")]
)
def test_what_a_spreadsheet_saves_is_read(
    tmp_path: Path, ending: str, separator: str, end: str, swallow: bool
) -> None:
    rows = [
        replace(ROW, token=token, sentence=f'she said "{token}" ; , then left', score=0.5)
        for token in ['"', '""', "=", "-DOCSTART-", "@a;b", "1,5", "a\\tb", "''", "'", "\u00e9"]
    ]
    path = write_rows(rows, tmp_path / f"r.{ending}")
    for mark in ("", "\ufeff"):
        for every in (False, True):
            put(tmp_path / f"s.{ending}", resaved(path, separator, end, mark, swallow, every))
            assert read_rows(tmp_path / f"s.{ending}") == rows


def test_only_some_columns_are_needed_and_short_rows_are_filled(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", TABLE + "a,7,b,X,Y\r\n\r\na,8,c,X,Y,x,,\r\n")
    assert read_rows(path) == [
        ReviewRow(file="a", line=7, token="b", label="X", proposal="Y"),
        ReviewRow(file="a", line=8, token="c", label="X", proposal="Y", accept="x"),
    ]
    assert [row.origin for row in read_rows(path)] == [f"{path}, line 2", f"{path}, line 4"]


def test_a_row_after_a_cell_of_two_lines_has_its_own_line(tmp_path: Path) -> None:
    path = put(tmp_path / "r.csv", TABLE + 'a,7,"b\nc",X,Y,\na,8,d,X,Y,\n')
    assert [row.token for row in read_rows(path)] == ["b\nc", "d"]
    assert [row.origin for row in read_rows(path)] == [f"{path}, line 2", f"{path}, line 4"]


def test_numbers_may_be_text_and_have_a_comma(tmp_path: Path) -> None:
    table = "score;" + TABLE.replace(",", ";") + "0,25;a; 7 ;b;X;Y;\n1E-3;a;8;b;X;Y;\n"
    assert [row.score for row in read_rows(put(tmp_path / "r.csv", table))] == [0.25, 0.001]
    text = '{"file": "a", "line": "7", "token": "b", "label": 1, "proposal": 2, "accept": true}\n\n'
    (row,) = read_rows(put(tmp_path / "r.jsonl", text.replace("\n", "\r\n")))
    expected = ReviewRow(file="a", line=7, token="b", label="1", proposal="2", accept="true")
    assert row == expected
    assert row.accepted


@pytest.mark.parametrize("mark", "x X yes YES y true TRUE 1 ok Ok accept Accepted".split())
def test_marks_that_mean_yes(mark: str) -> None:
    assert replace(ROW, accept=f" {mark} ").accepted


@pytest.mark.parametrize("mark", ["", " ", *"no N false FALSE 0 reject Rejected".split()])
def test_marks_that_mean_no(mark: str) -> None:
    assert not replace(ROW, accept=mark).accepted


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("r.csv", "", "line 1: no column 'file'\n  remedy: keep the header row"),
        ("r.csv", "\n\nfile,line\n", "line 3: no column 'token'"),
        ("r.csv", TABLE.replace(",accept", ""), "line 1: no column 'accept'"),
        ("r.csv", "line," + TABLE, "line 1: several columns 'line'\n  remedy: keep one"),
        ("r.csv", TABLE + "a,7,b,X,Y,maybe\n", "line 2: accept is 'maybe', which is neither"),
        ("r.csv", TABLE + "a,7,b,X,Y,\na,seven,b,X,Y,\n", "line 3: line is 'seven'\n  remedy:"),
        ("r.csv", TABLE + "a,7.0,b,X,Y,\n", "line 2: line is '7.0'\n  remedy: give a whole number"),
        ("r.csv", TABLE + "a,,b,X,Y,\n", "line 2: line is ''"),
        ("r.csv", TABLE + ",7,b,X,Y,\n", "line 2: no file\n"),
        ("r.csv", "score," + TABLE + "97%,a,7,b,X,Y,\n", "line 2: score is '97%'"),
        ("r.csv", "score," + TABLE + "1e999,a,7,b,X,Y,\n", "line 2: score is '1e999'"),
        ("r.csv", "position," + TABLE + "-1,a,7,b,X,Y,\n", "line 2: position is '-1'"),
        ("r.csv", TABLE + "a,7,b,c,X,yes,no\n", "line 2: 7 cells where the header has 6"),
        ("r.csv", TABLE + 'a,7,"b"c,X,Y,\n', "line 2: cannot be read (',' expected after '\"')"),
        ("r.csv", TABLE + 'a,7,"b,X,Y,\n', "line 2: cannot be read (unexpected end of data)"),
        ("r.csv", TABLE.encode() + b"a,7,\xe9,X,Y,\n", "line 2: byte 0xe9 is not valid UTF-8"),
        ("r.jsonl", "\n[1]\n", "line 2: expected a mapping, got a list"),
        ("r.jsonl", '{"file": "a"}', "line 1: no key 'line'\n  remedy: give one object per line"),
        (
            "r.jsonl",
            '{"file": ["a"], "line": 1, "token": "", "label": "", "proposal": "", "accept": ""}',
            "line 1: ['a'] is neither text nor a number",
        ),
    ],
)
def test_refusals_name_the_line(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    path = put(tmp_path / name, text)
    with pytest.raises(RowsError) as refused:
        read_rows(path)
    assert str(refused.value).startswith(f"{path}, {message}")
    assert "\n  remedy: " in str(refused.value)


def test_other_endings_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    for name, what in (("r.xlsx", "rows are not kept in .xlsx files"), ("r", "has no ending")):
        for act in (read_rows, lambda path: write_rows([], path)):
            with pytest.raises(SettingError, match=what):
                act(tmp_path / name)
    with pytest.raises(RowsError, match="no such file"):
        read_rows(tmp_path / "r.csv")
    with pytest.raises(OutputError):
        write_rows([], tmp_path / "no" / "r.csv")
    assert not list(tmp_path.iterdir())


SUSPECT = Suspect(
    file="b.conll",
    line=4,
    sentence=("in", "St", "Louis"),
    token="St Louis",
    label="B-LOC I-LOC",
    proposal="B-ORG I-ORG",
    score=0.75,
    position=2,
    lines=(4, 5),
    evidence=(Evidence("b.conll", 9, "B-ORG", "St Louis won", "next word"),),
)


def spelled(path: Path, *sentences: str) -> Path:
    """A file with sentences like "a/X b/Y"."""
    rows = ["".join(f"{w.replace('/', ' ')}\n" for w in text.split()) for text in sentences]
    return put(path, "\n".join(rows))


def test_every_finding_has_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spelled(Path("a.conll"), "a/X b/X", "a/X b/Y", "A/X c/Y", "a/X b/X")
    spelled(Path("b.conll"), "a/X b/X", "A/X C/X", "d/Y")
    audit = replace(rankone.inspect("a.conll", against="b.conll"), suspects=(SUSPECT,))
    rows = rows_of_audit(audit)
    same = "the same sentence has 'b' (token 2): "
    sides = "X on lines 2, 11 of a.conll, line 2 of b.conll; Y on line 5 of a.conll"
    kinds = "suspect conflict duplicate duplicate leak leak leak near-leak"
    assert [row.kind for row in rows] == kinds.split()
    assert rows[0] == ReviewRow(
        file="b.conll",
        line=4,
        position=2,
        sentence="in St Louis",
        token="St Louis",
        label="B-LOC I-LOC",
        proposal="B-ORG I-ORG",
        kind="suspect",
        score=0.75,
        evidence="B-ORG at b.conll, line 9: St Louis won (next word)",
    )
    expected = {"file": "a.conll", "line": 5, "position": 2, "sentence": "a b", "token": "b"}
    assert rows[1] == ReviewRow(
        **expected, label="Y", proposal="X", kind="conflict", evidence=same + sides
    )
    places = [(row.file, row.line, row.sentence, row.evidence) for row in rows[2:]]
    also = "also at b.conll, line 1 (the labels differ)"
    assert places == [
        ("a.conll", 4, "a b", "also at a.conll, line 1; a.conll, line 10 (the labels differ)"),
        ("a.conll", 10, "a b", "also at a.conll, line 1; a.conll, line 4 (the labels differ)"),
        ("a.conll", 1, "a b", also),
        ("a.conll", 4, "a b", also),
        ("a.conll", 10, "a b", also),
        ("a.conll", 7, "A c", "nearly the same at b.conll, line 4"),
    ]
    assert all(row.token == row.label == row.proposal == row.accept == "" for row in rows[2:])
    write_rows(audit, "r.csv")
    assert read_rows("r.csv") == rows


def test_without_a_majority_every_place_has_a_row_and_no_proposal(tmp_path: Path) -> None:
    path = spelled(tmp_path / "a.conll", *["a/X"] * 2, "a/Y", "a/Z")
    conflicts = [row for row in rows_of_audit(rankone.inspect(path)) if row.kind == "conflict"]
    found = [(row.line, row.label, row.proposal) for row in conflicts]
    assert found == [(1, "X", ""), (3, "X", ""), (5, "Y", ""), (7, "Z", "")]
    assert {row.file for row in conflicts} == {str(path)}


def test_sentences_made_in_python_are_counted() -> None:
    corpus = Corpus.from_sentences([(["a"], ["X"])] * 15)
    rows = rows_of_audit(rankone.inspect(corpus))
    assert [(row.file, row.line) for row in rows] == [("<python>", n) for n in range(2, 16)]
    assert rows[0].evidence.startswith("also at sentence 1; sentence 3; ")
    assert rows[0].evidence.endswith("; sentence 11 and 4 more (the labels agree)")


def test_one_row_for_a_sentence_that_leaks_in_several_ways() -> None:
    ours = Corpus.from_sentences([(["a", "b"], ["X", "X"])], source="ours")
    other = Corpus.from_sentences([(["a", "b"], ["X", "X"]), (["A", "b"], ["X", "X"])], source="o")
    audit = rankone.inspect(ours, against=[other])
    assert [leak.kind for leak in audit.against[0].leaks] == ["exact", "near"]
    (row,) = rows_of_audit(audit)
    assert row.kind == "leak"
    assert row.evidence == "also at o, line 1 (the labels agree); nearly the same at o, line 2"


def test_long_sentences_are_shown_around_the_token(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(1000)]
    labels = ["X"] * 1000
    other = [*labels[:500], "Y", *labels[501:]]
    corpus = Corpus.from_sentences([(words, labels), (words, other)])
    rows = rows_of_audit(rankone.inspect(corpus))
    around = " ".join(words[450:551])
    assert [row.sentence for row in rows if row.kind == "conflict"] == [f"... {around} ..."] * 2
    assert rows[-1].sentence == " ".join([*words[:51], "..."])
    written = write_rows(rows, tmp_path / "r.jsonl").read_text()
    data: Any = [json.loads(line) for line in written.splitlines()]
    assert data[0]["position"] == 501
    assert data[0]["score"] is None


def test_refusals_are_one_kind_of_error() -> None:
    with pytest.raises(RankOneError, match="accept is 'perhaps', which is neither yes nor no"):
        replace(ROW, accept="perhaps").accepted  # noqa: B018


@pytest.mark.parametrize("kind", ["suspect", "conflict"])
def test_the_excerpt_of_a_long_sentence_is_around_the_token(kind: str) -> None:
    """A finding keeps a part of a long sentence, which does not begin with its first token."""
    words = [f"w{i}" for i in range(200)]
    if kind == "suspect":
        found = Suspect(
            "a", 1, tuple(words), "w150", "X", "Y", 0.9, position=451, lines=(1,), start=301
        )
        audit = replace(rankone.inspect("toy"), suspects=(found,))
    else:
        conflict = Conflict("w150", 451, words, {"X": [1, 2], "Y": [3]}, start=301)
        audit = replace(rankone.inspect("toy"), conflicts=(conflict,))
    (row,) = [row for row in rows_of_audit(audit) if row.kind == kind]
    assert " w149 w150 w151 " in row.sentence
    assert "w50 " not in row.sentence
    assert row.position == 451
