"""Applying accepted rows: the labels change, and not a byte else."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.audit.apply import Applied, apply
from rankone.audit.locate import line_spans
from rankone.audit.rows import ReviewRow, rows_of_audit, write_rows
from rankone.corpus.blocks import read_lines
from rankone.errors import CorpusError, OutputError, RowsError, SettingError

Sentences = list[list[tuple[str, str]]]  # of tokens and labels


def put(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def row(line: int, token: str, label: str, proposal: str, **more: Any) -> ReviewRow:
    given = {"file": "c", "accept": "x", **more}
    return ReviewRow(line=line, token=token, label=label, proposal=proposal, **given)


# Every layout: the text, with each label that is to change between angles, and its new label.
LAYOUTS = {
    "blanks": (
        "a.conll",
        "-DOCSTART- O\n\nX N <X>\nSt  N \t<B-LOC>  \n Louis N <I-LOC>\n\nX N X\n",
    ),
    "tabs": ("a.conll", "X\t<X>\nSt\t <B-LOC> \nLouis\t<I-LOC>\n \t\nX\tX\n"),
    "tsv": ("a.tsv", "X\ta b\t<X>\nSt\t\t<B-LOC>\nLouis\tx\t<I-LOC>\n\nX\ty\tX\n"),
    "header": (
        "a.tsv",
        "\n Tag \tid\tToken\n<X>\t1\tX\n<B-LOC>\t2\tSt\n <I-LOC>\t\tLouis\n\nX\t\tX\n",
    ),
    "jsonl": (
        "a.jsonl",
        '\n{"labels": ["Q"], "tokens":["X", "St","Louis"],"n":{"labels":[1]}, '
        '"labels" :[ <"X">,<"B-\\u004cOC"> , <"I-LOC">]}\n{"tokens": ["X"], "labels": ["X"]}\n',
    ),
    "conllu": (
        "a.conllu",
        "# text = X X X\n1-2\tXSt\t_\t_\t_\t_\t_\t_\t_\t_\n1\tX\tX\t<X>\tX\t_\t_\t_\t_\t_\n"
        "2\tSt\t_\t<B-LOC>\tX\t_\t_\t_\t_\t_\n2.1\tX\tX\tX\tX\t_\t_\t_\t_\t_\n"
        "# X\n3\tLouis\t_\t<I-LOC>\tX\t_\t_\t_\t_\t_\n\n1\tX\tX\tX\tX\t_\t_\t_\t_\t_\n",
    ),
}
NEW = {"X": "é", "B-LOC": "B-ORG", "I-LOC": "I-ORG"}


def renamed(match: re.Match[str]) -> str:
    cell = match[1].replace("\\u004c", "L")
    return f'"{NEW[cell[1:-1]]}"' if cell[0] == '"' else NEW[cell]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mark", ["", "\ufeff", "\ufeff\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_only_the_labels_change(
    tmp_path: Path, layout: str, end: str, mark: str, packed: bool
) -> None:
    name, text = LAYOUTS[layout]
    text = (mark + text).replace("\n", end)
    for whole in (text, text.removesuffix(end)):
        before = re.sub("<(.*?)>", r"\1", whole).encode()
        after = re.sub("<(.*?)>", renamed, whole).encode()
        if layout == "jsonl" and not mark:  # a file in ASCII stays one
            after = after.replace("é".encode(), b"\\u00e9")
        path = put(tmp_path / (name + ".gz" * packed), gzip.compress(before) if packed else before)
        lines = rankone.read_corpus(path).lines.tolist()
        rows = [
            row(lines[0], "X", "X", "é", file=str(path), position=1),
            row(lines[1], "St Louis", "B-LOC I-LOC", "B-ORG I-ORG", file=str(path), position=2),
            row(lines[3], "X", "X", "nothing", file=str(path), accept="no"),
        ]
        found = apply(path, rows)
        assert found.data == after
        assert (found.ok, found.applied, found.changed) == (True, 2, 3)
        found.save(tmp_path / "new")
        assert (tmp_path / "new").read_bytes() == after
        found.save(tmp_path / "new.gz")
        assert gzip.decompress((tmp_path / "new.gz").read_bytes()) == after


def conll(sentences: Sentences) -> str:
    """Blanks in the first row, so that a TAB is no more than a blank in the others."""
    blocks = ["".join(f"{t}  -\t {v} \n" for t, v in s) for s in sentences]
    return "\n \n".join(blocks).replace("\t", "", 1)


def tabs(sentences: Sentences) -> str:
    return "\n".join("".join(f"-\t {v} \t{t}\n" for t, v in s) for s in sentences)


def conllu(sentences: Sentences) -> str:
    rest = "\t_" * 6
    blocks = [
        "# text\n" + "".join(f"{i}\t{t}\tx\t{v}{rest}\n" for i, (t, v) in enumerate(s, start=1))
        for s in sentences
    ]
    return "\n".join(blocks)


def json_lines(sentences: Sentences) -> str:
    records = [{"labels": [v for _, v in s], "tokens": [t for t, _ in s]} for s in sentences]
    return "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)


FORMATS: dict[str, tuple[Callable[[Sentences], str], str, dict[str, Any]]] = {
    "conll": (conll, "", {}),
    "tsv": (tabs, " ", {"token_column": 3, "label_column": 2}),
    "conllu": (conllu, " ", {}),
    "jsonl": (json_lines, ' "\\\n\t', {}),
}
LETTERS = "aB1,;#{[é\u00a0\U0001f600\u2028=-"


def words(more: str) -> st.SearchStrategy[str]:
    """Cells are read without the blanks around them, so none has any."""
    inside = st.text(st.sampled_from(LETTERS + more), max_size=3)
    return st.tuples(inside, st.sampled_from("aé=")).map(lambda parts: f"a{''.join(parts)}")


@st.composite
def edits(draw: st.DrawFn, more: str) -> tuple[Sentences, Sentences, list[tuple[int, int, int]]]:
    """Sentences, the same with other labels, and the runs of tokens that rows are to change."""
    labels = st.sampled_from(["O", "B-a", "I-a", "é\u00a0", draw(words(more))])
    tokens = words(more.replace(" ", ""))  # a run is written with blanks between its tokens
    lists = st.lists(st.lists(st.tuples(tokens, labels), min_size=1, max_size=6), min_size=1)
    before = draw(lists.map(lambda found: [[("é", "O")], *found[:6]]))
    after, runs = [list(sentence) for sentence in before], []
    for j, sentence in enumerate(before):
        at = draw(st.integers(0, 2))
        while at < len(sentence):
            size = min(draw(st.integers(1, 3)), len(sentence) - at)
            for k in range(at, at + size):
                after[j][k] = (sentence[k][0], draw(labels))
            if size == 1 or not any(" " in after[j][k][1] for k in range(at, at + size)):
                runs.append((j, at, size))
            else:
                after[j][at : at + size] = sentence[at : at + size]
            at += size + draw(st.integers(0, 3))
    return before, after, runs


@pytest.mark.parametrize("format", FORMATS)
@given(data=st.data(), end=st.sampled_from(["\n", "\r\n"]), mark=st.sampled_from(["", "\ufeff"]))
def test_applying_equals_writing_the_file_with_the_new_labels(
    tmp_path_factory: pytest.TempPathFactory, format: Any, data: st.DataObject, end: str, mark: str
) -> None:
    write, more, columns = FORMATS[format]
    before, after, runs = data.draw(edits(more))
    old, new = ((mark + write(s)).replace("\n", end).encode() for s in (before, after))
    path = put(tmp_path_factory.getbasetemp() / "property", old)
    corpus = rankone.read_corpus(path, format=format, **columns)
    rows = []
    for j, at, size in runs:
        cells = zip(before[j][at : at + size], after[j][at : at + size], strict=True)
        tokens, labels, proposal = zip(*((t, v, w) for (t, v), (_, w) in cells), strict=True)
        line = int(corpus.lines[corpus.offsets[j] + at])
        text = (" ".join(part) for part in (tokens, labels, proposal))
        rows.append(row(line, *text, file=str(path), position=at + 1))
    random.Random(len(rows)).shuffle(rows)
    found = apply(path, rows, format=format, **columns)
    assert found.data == new
    assert found.applied == len(runs)
    pairs = zip(chain(*before), chain(*after), strict=True)
    assert found.changed == sum(one != other for one, other in pairs)


@given(st.text(st.sampled_from("a\r\n\ufeff \u2028"), max_size=12))
def test_lines_are_those_that_readers_see(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = put(tmp_path_factory.getbasetemp() / "lines", text)
    assert [text[a:b] for a, b in line_spans(text)] == read_lines(path)[1]


def as_iob1(labels: list[str]) -> list[str]:
    """B- only behind a tag of the same type."""
    found = []
    for k, label in enumerate(labels):
        touches = label[0] == "B" and k > 0 and labels[k - 1][1:] == f"-{label[2:]}"
        found.append(label if touches or label == "O" else f"I-{label[2:]}")
    return found


def as_iob2(draws: list[int]) -> list[str]:
    """Sound tags: I- stands only behind its own type."""
    found = ["O"]
    for number in draws:
        kind = "ab"[number % 2]
        inside = found[-1] in (f"B-{kind}", f"I-{kind}") and number > 2
        found.append("O" if number > 5 else f"{'I' if inside else 'B'}-{kind}")
    return found[1:]


tags = st.lists(st.integers(0, 7), min_size=1, max_size=8)


@given(st.lists(st.tuples(tags, tags), min_size=1, max_size=5))
def test_iob2_rows_are_spelled_in_iob1_again(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[list[int], list[int]]]
) -> None:
    pairs = [(as_iob2(a[: len(b)]), as_iob2(b[: len(a)])) for a, b in drawn]
    old, new = (
        [["I-a"], *(as_iob1(pair[which]) for pair in pairs)]  # the first says that this is IOB1
        for which in (0, 1)
    )
    files = ["\n".join("".join(f"w {v}\n" for v in s) for s in side) for side in (old, new)]
    path = put(tmp_path_factory.getbasetemp() / "iob1", files[0])
    line, rows = 3, []
    for before, after in pairs:
        # Where a tag stays as it is there need be no row, although it may be spelled otherwise.
        changed = [
            k for k, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]
        ]
        rows += [row(line + k, "w", before[k], after[k], file=str(path)) for k in changed]
        line += len(before) + 1
    assert apply(path, rows, scheme="iob2").data.decode() == files[1]
    assert apply(path, rows, scheme="auto").data.decode() == files[1]


def test_what_is_no_pure_iob1_keeps_its_spelling_elsewhere(tmp_path: Path) -> None:
    path = put(tmp_path / "c", "a B-a\nb I-a\nc O\nd I-b\ne B-b\nf B-b\n")
    found = apply(path, [row(4, "d", "B-b", "O")], scheme="iob2")
    assert found.data.decode() == "a B-a\nb I-a\nc O\nd O\ne I-b\nf B-b\n"
    assert (found.applied, found.changed) == (1, 2)
    found = apply(path, [row(4, "d", "I-b", "O")])  # as stored
    assert found.data.decode() == "a B-a\nb I-a\nc O\nd O\ne B-b\nf B-b\n"


def test_tokens_may_be_lower_cased(tmp_path: Path) -> None:
    path = put(tmp_path / "c", "ST X\nÉa X\n")
    assert apply(path, [row(1, "st éa", "X X", "Y Z")], lower=True).data.decode() == "ST Y\nÉa Z\n"
    assert apply(path, [row(1, "St Éa", "X X", "Y Z")], lower=True).changed == 2
    with pytest.raises(RowsError, match="line 1 holds 'ST' labelled 'X', not 'st' labelled 'X'"):
        apply(path, [row(1, "st", "X", "Y")])


def test_in_json_lines_the_position_tells_equal_tokens_apart(tmp_path: Path) -> None:
    text = '{"tokens": ["a", "b", "a"], "labels": ["X", "X", "X"]}'
    path = put(tmp_path / "c.jsonl", text)
    given = [row(1, "a", "X", "Y", position=3), row(1, "b", "X", "Z")]
    found = apply(path, [replace(one, file="c.jsonl") for one in given])
    assert found.data.decode() == text.replace('"X", "X"]', '"Z", "Y"]')
    for position, what in (
        (None, "'a' stands 2 times on"),
        (9, "holds 'a' labelled"),
        (0, "holds"),
    ):
        with pytest.raises(RowsError, match=what):
            apply(path, [row(1, "a", "X", "Y", position=position, file="c.jsonl")])


def test_labels_that_are_numbers_stay_numbers(tmp_path: Path) -> None:
    path = put(tmp_path / "c.jsonl", '{"tokens": ["a"], "labels": [0]}')
    wanted = row(1, "a", "0", "12", file="c.jsonl")
    assert apply(path, [wanted]).data == b'{"tokens": ["a"], "labels": [12]}'
    with pytest.raises(RowsError, match="the label 'X' is not a number, as the label is there"):
        apply(path, [replace(wanted, proposal="X")])


TEXT = "St B-LOC\nLouis I-LOC\nwon O\n\nit O\n"


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(3, "lost", "O", "X")], "line 3 holds 'won' labelled 'O', not 'lost' labelled 'O'"),
        ([row(3, "won", "X", "O")], "line 3 holds 'won' labelled 'O', not 'won' labelled 'X'"),
        ([row(3, "won it", "O O", "X X")], "line 3 holds 'won' labelled 'O', not 'won it' lab"),
        ([row(3, "won", "O", "")], "no proposal for 'won' ({path}, line 3)\n  remedy: fill"),
        ([row(1, "St Louis", "B-LOC I-LOC", "O")], "1 label for 2 tokens ({path}, line 1)"),
        ([row(1, "St Louis", "B-LOC I-LOC", "O O O")], "3 labels for 2 tokens ({path}, line 1)"),
        ([row(1, "St Louis", "B-LOC I-LOC", "O ")], "the label '' is empty ({path}, line 1)"),
        ([row(3, "won", "O", "X Y")], "the label 'X Y' has white space, which separates columns"),
        ([row(3, "won", "O", "X\u0000")], "the label 'X\\x00' has a character that no text"),
        ([row(4, "won", "O", "X")], "{path}, line 4 holds no token\n  remedy: audit the file"),
        ([row(99, "won", "O", "X")], "{path}, line 99 is beyond the end, line 6\n"),
        (
            [row(3, "won", "O", "X"), row(3, "won", "O", "Y")],
            "wants 'Y' for 'won' ({path}, line 3), but row 1 wants 'X'\n  remedy: accept one",
        ),
        (
            [row(99, "", "O", "X"), row(1, "St", "B-LOC", "O"), row(3, "a", "O", "X")],
            "{path}, line 99 is beyond the end, line 6; 1 more row does not fit\n",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    tmp_path: Path, rows: list[ReviewRow], message: str
) -> None:
    path = put(tmp_path / "c", TEXT)
    expected = message.format(path=path)
    with pytest.raises(RowsError) as refused:
        apply(path, rows)
    assert expected in str(refused.value)
    assert re.match(r"row \d: ", str(refused.value))
    with pytest.raises(RowsError) as refused:
        apply(path, write_rows(rows, tmp_path / "r.csv"))
    number = int(re.match(r".*?r.csv, line (\d): ", str(refused.value))[1])  # type: ignore[index]
    assert rows[number - 2].accepted
    assert path.read_text() == TEXT


def test_labels_that_a_layout_cannot_hold(tmp_path: Path) -> None:
    path = put(tmp_path / "c.tsv", "a\tX\nb\tX\n")
    assert apply(path, [row(1, "a", "X", "Y Z", file="c.tsv")]).data == b"a\tY Z\nb\tX\n"
    for label in (" Y", "Y ", "Y\tZ", "Y\nZ"):
        with pytest.raises(RowsError, match="white space"):
            apply(path, [row(1, "a", "X", label, file="c.tsv")])
    path = put(tmp_path / "c.tsv", "word\tX\nb\tX\n")
    with pytest.raises(RowsError, match="with these labels it would be read as another corpus"):
        apply(path, [row(1, "word", "X", "tag", file="c.tsv")])
    path = put(tmp_path / "c", "X a\nX b\n")
    with pytest.raises(RowsError, match="with these labels it would be read as another corpus"):
        apply(path, [row(1, "a", "X", "-DOCSTART-")], token_column=2, label_column=1)
    path = put(tmp_path / "c.conllu", "1\ta" + "\t_" * 8)
    with pytest.raises(RowsError, match=r"with these labels it could not be read \('X' is not a "):
        apply(path, [row(1, "a", "1", "X", file="c.conllu")], label_column="id")


def test_only_tags_where_tags_are_read(tmp_path: Path) -> None:
    path = put(tmp_path / "c", "a I-x\nb O\n")
    for scheme in ("iob2", "auto"):
        with pytest.raises(RowsError, match="the label 'X' is not an IOB tag"):
            apply(path, [row(2, "b", "O", "X")], scheme=scheme)  # type: ignore[arg-type]
    assert apply(path, [row(2, "b", "O", "X")]).data == b"a I-x\nb X\n"
    with pytest.raises(CorpusError, match="label 'NN' is not an IOB tag"):
        apply(put(path, "a NN\n"), [], scheme="iob2")


def test_rows_of_other_files_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    path = put(tmp_path / "c", TEXT)
    wanted = row(3, "won", "O", "X")
    (tmp_path / "link").symlink_to(path)

    def figures(*files: str, at: Path | str = path) -> tuple[bool, int, int]:
        found = apply(at, [replace(wanted, file=file) for file in files])
        return found.ok, found.applied, found.elsewhere

    assert figures("c", "./c", "d/../c", str(path), "link", "other") == (True, 5, 1)
    assert figures("c", "elsewhere/c", "d/c") == (True, 1, 2)  # the path counts, not the name
    assert figures("elsewhere/c", "b") == (True, 1, 1)  # unless only the name is left
    assert figures("C:\\data\\c", "c\0") == (True, 1, 1)
    assert figures("b", "d/b") == (False, 0, 2)
    assert figures() == (True, 0, 0)
    with pytest.raises(RowsError, match="rows of several files of this name: d/c, e/c"):
        figures("d/c", "e/c")
    with pytest.raises(RowsError, match="accept is 'hm'"):
        apply(path, [replace(wanted, accept="hm")])


def test_rows_that_propose_no_label_are_counted(tmp_path: Path) -> None:
    path = put(tmp_path / "c", TEXT)
    found = apply(path, [ReviewRow(file="c", line=1, kind="duplicate", accept="yes")])
    assert found == Applied(str(path), "conll", 0, 0, 0, 1, TEXT.encode())
    assert not found.ok
    assert found.to_json() == {
        "ok": False,
        "source": str(path),
        "format": "conll",
        "applied": 0,
        "changed": 0,
        "elsewhere": 0,
        "unlabelled": 1,
    }


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for place in ("builtin", "-", tmp_path):
        with pytest.raises(SettingError, match="not a file"):
            apply(place, [])
    with pytest.raises(CorpusError, match="no such file"):
        apply(tmp_path / "c", [])
    with pytest.raises(OutputError):
        apply(put(tmp_path / "c", TEXT), []).save(tmp_path / "no" / "c")


def test_a_file_that_changes_meanwhile_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "c", TEXT)
    for other, what in ((TEXT.replace("O", "P"), "changed while"), (TEXT + "x O\n", "read as ano")):
        with monkeypatch.context() as patched:
            patched.setattr("rankone.audit.apply.read_data", lambda _, o=other: ("c", o.encode()))
            with pytest.raises((CorpusError, RowsError), match=what):
                apply(path, [row(3, "won", "O", "X")])


def test_from_an_audit_to_a_file_without_conflicts(tmp_path: Path) -> None:
    path = put(tmp_path / "a.conll", "a X\nb Y\n\n" * 2 + "a X\nb  Z\n")
    rows = rows_of_audit(rankone.inspect(path))
    marked = [replace(one, accept="x" * (one.kind == "conflict")) for one in rows]
    write_rows(marked, tmp_path / "r.tsv")
    found = apply(path, tmp_path / "r.tsv")
    found.save(path)
    assert path.read_text() == "a X\nb Y\n\n" * 2 + "a X\nb  Y\n"
    assert rankone.inspect(path).ok


REAL = ["ud-english-ewt/en_ewt-ud-dev.conllu", "wnut17/emerging.dev.conll"]


@pytest.mark.parametrize("name", REAL)
def test_real_corpora_byte_by_byte(shared: Path, name: str) -> None:
    path = shared / name
    corpus = rankone.read_corpus(path)
    draw = random.Random(0)
    data = path.read_bytes().split(b"\n")
    rows = []
    column = 3 if name.endswith("u") else 1
    for token in sorted(draw.sample(range(corpus.n_tokens), 300)):
        line = int(corpus.lines[token])
        cells = data[line - 1].split(b"\t")
        label, new = cells[column].decode(), draw.choice(corpus.label_names)
        cells[column] = new.encode()
        data[line - 1] = b"\t".join(cells)
        word = corpus.vocabulary[corpus.token_ids[token]]
        rows.append(row(line, word, label, new, file=str(path)))
    found = apply(path, rows)
    assert found.data == b"\n".join(data)
    assert found.applied == 300
