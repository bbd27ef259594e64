"""The compiled pass over bytes reads what the reader with the rules reads, whatever the bytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import rankone
from hostile_files import columns, conllu
from rankone.corpus import reading
from rankone.corpus.blocks import Blocks, lines_of
from rankone.corpus.columns import ColumnReader
from rankone.corpus.hashing import Table
from rankone.corpus.layouts import READERS, rows_of
from rankone.corpus.rows import Choice, Rows
from rankone.corpus.source import Stream
from rankone.errors import CorpusError


def outcome(read: Any, *given: Any) -> Any:
    """All that a reader found, or its message."""
    try:
        rows: Rows = read(*given)
    except CorpusError as error:
        return error.where, error.what, error.remedy
    columns = rows.columns if rows.tokens.ids else None
    names = (list(rows.tokens.index), list(rows.labels.index))
    ids = [list(x) for x in (rows.tokens.ids, rows.labels.ids, rows.lines, rows.starts)]
    return columns, names, ids


def plainly(text: str, kind: str, choice: Choice) -> Rows:
    return rows_of(lines_of(text.removeprefix("\ufeff")), kind, "made", choice)


def compiled(text: str, kind: str, choice: Choice, size: int) -> Rows:
    """In blocks of so many bytes, all of them by the compiled pass once columns are known."""
    data = text.encode()
    head, blocks = reading.head_of(iter(Blocks(Stream("made", io.BytesIO(data), 0), size)))
    reader = READERS[kind](head, "made", choice, 1)
    assert isinstance(reader, ColumnReader)
    return reading.read_blocks(blocks, reader, reading.WORTH)


CHOICES = [Choice(), Choice(labelled=None), Choice(labelled=False), Choice(2, 1), Choice(-1, 1)]


@pytest.fixture(autouse=True, scope="module")
def _small() -> Any:
    """Columns are known after a line or two, so that the compiled pass has most of the rows."""
    from rankone.corpus import scan

    patch = pytest.MonkeyPatch()
    patch.setattr(scan, "HEAD", 1)
    yield
    patch.undo()


@pytest.mark.parametrize("kind", ["conll", "tsv"])
@given(text=columns(), choice=st.sampled_from(CHOICES), size=st.sampled_from([1, 7, 30, 1000]))
@example(text="a\tb\n-DOCSTART- x\tb\n", choice=Choice(), size=1000)
@example(text="a b\n-DOCSTART- b c\n-DOCSTART-x b\n- b\n", choice=Choice(), size=1000)
@example(text="x a b\nx -DOCSTART- b\nx c b\n", choice=Choice(2), size=1000)
def test_columns(kind: str, text: str, choice: Choice, size: int) -> None:
    assert outcome(compiled, text, kind, choice, size) == outcome(plainly, text, kind, choice)


@given(text=conllu(), choice=st.sampled_from(CHOICES), size=st.sampled_from([1, 30, 1000]))
def test_conllu(text: str, choice: Choice, size: int) -> None:
    expected = outcome(plainly, text, "conllu", choice)
    assert outcome(compiled, text, "conllu", choice, size) == expected


def test_ordinary_files_are_read_without_the_other_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rankone.corpus.scan import Scanner

    conll = "-DOCSTART- -X- O O\n\n" + "a b  c d\n" * 3 + "\n-DOCSTART- O\n\n"
    tabs = "a b\tX\n\t\nc\tY\r\n\r\n\ufeffd\tX\n \n-DOCSTART- O\n\n"
    ten = "\t_" * 8
    ud = f"# text = a\tb\n1-2\tab{ten}\n1\ta{ten}\n2\tb{ten}\n2.1\tc{ten}\n\n"
    spelled = []
    plain = Scanner._spell_out
    monkeypatch.setattr(
        Scanner, "_spell_out", lambda self, *block: (spelled.append(block), plain(self, *block))
    )
    for kind, text in (("conll", conll), ("tsv", tabs), ("conllu", ud)):
        spelled.clear()
        rows = compiled(text * 50, kind, Choice(), 100)
        assert len(rows.starts) >= 50
        assert len(spelled) <= 2, kind  # to find out where columns are


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20))))
def test_words_are_numbered_as_a_dictionary_would(words: list[list[str]]) -> None:
    table, index = Table(), dict[str, int]()
    for part in words:
        expected = [index.setdefault(word, len(index)) for word in part]
        assert table.add(part).tolist() == expected
    assert table.words() == list(index)


def test_a_table_grows() -> None:
    table = Table()
    words = [f"{'w' * (i % 30)}{i}" for i in range(50_000)] + ["x" * 300_000, "é" * 9]
    assert table.add(words).tolist() == list(range(len(words)))
    assert table.add(words[::-1]).tolist() == list(range(len(words)))[::-1]
    assert table.words() == words


def test_a_large_file_is_the_small_one_many_times(tmp_path: Path) -> None:
    text = "".join(f"w{i % 977} T{i % 7}\n" + "\n" * (i % 11 == 0) for i in range(20_000))
    once, often = tmp_path / "once.conll", tmp_path / "often.conll"
    once.write_text(text + "\n")
    often.write_text((text + "\n") * 60)
    assert often.stat().st_size > reading.WORTH
    one, many = rankone.read_corpus(once), rankone.read_corpus(often)
    assert one.vocabulary == many.vocabulary
    assert one.label_names == many.label_names
    assert (many.token_ids.reshape(60, -1) == one.token_ids).all()
    assert (many.label_ids.reshape(60, -1) == one.label_ids).all()
    lines = many.lines.reshape(60, -1) - one.lines
    assert (lines == lines[:, :1]).all()
    assert lines[:, 0].tolist() == [i * (text.count("\n") + 1) for i in range(60)]
    often.write_text((text + "\n") * 60 + "broken\n")
    with pytest.raises(CorpusError, match=f"line {(text.count(chr(10)) + 1) * 60 + 1}: 1 column"):
        rankone.read_corpus(often)
