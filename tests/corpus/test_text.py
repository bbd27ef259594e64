"""Plain text: how it is read, and how it is told from columns where nobody says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone import Corpus
from rankone.corpus.read import read_like
from rankone.corpus.reading import ASSUMED
from rankone.corpus.text import SEEN
from rankone.errors import CorpusError, RankOneError, SettingError

LABELS = ("O", "B-PER", ".")


def put(tmp_path: Path, text: str, name: str = "some.txt") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("labelled", [False, None])
def test_every_line_is_a_sentence(tmp_path: Path, labelled: bool | None) -> None:
    path = put(tmp_path, "Foo bar  baz\n\n-DOCSTART-\n \tthe\u00a0qux\u3000.\n-DOCSTART- x\n")
    corpus = rankone.read_corpus(path, format="text", labelled=labelled)
    assert [(s.tokens, s.labels, s.line) for s in corpus.sentences] == [
        (["Foo", "bar", "baz"], [], 1),
        (["the", "qux", "."], [], 4),
        (["-DOCSTART-", "x"], [], 5),
    ]
    assert (corpus.format, corpus.labelled, str(corpus.columns)) == ("text", False, "")
    lowered = rankone.read_corpus(path, format="text", labelled=labelled, lower=True)
    assert lowered.vocabulary[0] == "foo"


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({}, "plain text has no labels"),
        ({"labelled": True}, "plain text has no labels"),
        ({"labelled": None, "token_column": 1}, "plain text has no columns"),
        ({"labelled": False, "label_column": 1}, "plain text has no columns"),
    ],
)
def test_text_has_neither_labels_nor_columns(
    tmp_path: Path, how: dict[str, Any], what: str
) -> None:
    path = put(tmp_path, "Foo bar\n")
    with pytest.raises(CorpusError, match=what) as caught:
        rankone.read_corpus(path, format="text", **how)
    assert caught.value.remedy


def like(path: Path, **more: Any) -> Corpus:
    """Read for a model whose corpus had three columns, the last with its labels."""
    settings: dict[str, Any] = {"of": 3, "labelled": None, "reading": {}, **more}
    reading = {"columns": settings.pop("of"), **settings.pop("reading")}
    return read_like(path, reading, LABELS, **settings)


TEXT = [
    "Foo bar baz the qux\n",
    "Foo bar baz\n",  # as wide as the corpus, but there is no label
    "It rains .\n\nIt rains again .\n",  # with a label of the model, but not of one width
    "It rains again .\n",  # with a label of the model, but too wide
    "Foo bar\n\nFoo bar baz\nqux\n",
    "".join("w " * (3 + (i % 7 == 0) * 5 + i % 2) + ".\n" for i in range(40)),
    "Foo bar\nFoo\n" * 20,  # half of the lines equal: no column file
    "Foo bar O\nFoo bar\n",  # one line of two has the columns, by chance
    "a b c\n" * 9 + "a b\n" * 2,  # not many
    "Foo bar\nbaz qux\n",  # all of one width, but not that of the corpus
    "a A\n" * 9,
    "O\nO\nO\nfoo bar\n",  # words that are labels elsewhere
    "\u00a0\nFoo bar baz the qux\n",  # a line without words
    "a b c d e\n" * 3 + "a O\n" * 2 + "a b O\n" * 2,  # labels, but of no usual width
    "a b\n" * 3 + "a b c O\n" * 2 + "a b c d O\n" * 2,
]
COLUMNS = [
    ("the DT O\n", 1),
    ("Foo DT O\nbar NN B-PER\n", 2),
    ("a DT ?\n" * 10, 10),  # as wide as the corpus, with other labels
    ("a O\nb .\n", 2),  # of another width, with labels of the model
    ("a\nb\n\nc\n", 3),  # tokens alone
    ("word\n", 1),
    ("a\tx y z\nb\tu v w\n", 2),  # separated by TABs
    ("-DOCSTART- _ _ O\n\nthe DT O\n\nend NN O\n", 2),
    ("-DOCSTART- O\n\na\tx y z\nb\tu v\n", 2),
    ("10\u00a0000 CD O\nkm NN O\n", 2),  # a no-break space parts no columns
]
REFUSED = [
    ("Foo bar baz\nqux quux corge\n", "text or columns.* Every line has 3 words"),
    ("a DT ?\n" * 9, "text or columns"),
    ("a A\n" * 10, "text or columns.* Every line has 2 words"),
    ("the DT O\nwill NN B-PER\nrun\n", "line 3: 1 column where"),  # columns with a broken row
    ("the DT ?\n" * 10 + "run\n", "line 11: 1 column where"),
    ("a O\nb O\nc\n", "line 3: 1 column where"),
]


@pytest.mark.parametrize("text", TEXT)
def test_text_is_told_from_columns_and_said(tmp_path: Path, text: str) -> None:
    corpus = like(put(tmp_path, text))
    assert (corpus.format, corpus.remarks) == ("text", (ASSUMED,))
    assert [s.tokens for s in corpus.sentences] == [
        s.split() for s in text.split("\n") if s.split()
    ]


@pytest.mark.parametrize(("text", "tokens"), COLUMNS)
def test_columns_are_never_taken_for_text(tmp_path: Path, text: str, tokens: int) -> None:
    corpus = like(put(tmp_path, text))
    assert (corpus.format, corpus.n_tokens, corpus.remarks) == ("conll", tokens, ())
    assert corpus.columns.token == 1


@pytest.mark.parametrize(("text", "what"), REFUSED)
def test_what_may_be_either_is_refused(tmp_path: Path, text: str, what: str) -> None:
    with pytest.raises(CorpusError, match=what) as caught:
        like(put(tmp_path, text))
    assert "format text" in (caught.value.remedy or "")


def test_a_model_that_was_not_made_from_columns(tmp_path: Path) -> None:
    assert like(put(tmp_path, "Ada B-PER\n"), of=None).format == "conll"
    assert like(put(tmp_path, "Ada slept\n"), of=None).format == "text"
    assert like(put(tmp_path, "a x O\nb y O\n"), of=None).format == "conll"
    assert like(put(tmp_path, "Ada slept\nBob slept well\n"), of=None).format == "text"


def test_the_column_of_labels_is_that_of_the_model(tmp_path: Path) -> None:
    path = put(tmp_path, "Ada B-PER NN\nslept O VB\n")
    assert like(path, of=2, reading={"label_column": 2}).label_names == ("B-PER", "O")
    assert like(path, of=2).format == "text"
    assert like(put(tmp_path, "Ada\n"), reading={"label_column": 2}).format == "conll"
    short = put(tmp_path, "a x\nb y z\n")
    assert like(short, reading={"label_column": 3}).format == "text"


def test_only_what_is_unclear_is_guessed(tmp_path: Path) -> None:
    text = "Foo bar baz the qux\n"
    for name in ("t.conll", "t.iob", "t.iob2", "t.bio", "t.CONLL"):
        assert like(put(tmp_path, text, name)).format == "conll"
    path = put(tmp_path, text)
    assert like(path, format="conll").n_tokens == 1
    assert like(path, format="auto").n_tokens == 5
    assert like(path, label_column=2).n_tokens == 1  # columns were asked for
    assert like(path, token_column=3).vocabulary == ("baz",)
    assert like(path, labelled=True).format == "conll"  # labels are needed
    assert like(path, labelled=False).format == "text"
    assert rankone.read_corpus(path, labelled=None).format == "conll"  # nothing is expected
    assert like(path, reading={"token_column": 2}).n_tokens == 5  # the model's own do not matter


def test_options_of_the_model_hold_unless_others_are_given(tmp_path: Path) -> None:
    path = put(tmp_path, "A I-X O\n\nb I-X B-PER\n")
    reading = {"label_column": 2, "scheme": "iob2", "lower": True, "nonsense": 3}
    corpus = like(path, reading=reading, labelled=True)
    assert (corpus.vocabulary, corpus.label_names) == (("a", "b"), ("B-X",))
    kept = like(path, reading=reading, labelled=True, scheme="keep", lower=False, label_column=3)
    assert (kept.vocabulary, kept.label_names) == (("A", "b"), ("O", "B-PER"))
    assert like(Path("toy"), reading=reading, scheme="keep").vocabulary == tuple("abcde")
    with pytest.raises(SettingError, match="no layout and no columns"):
        like(Path("toy"), label_column=2)


def test_the_first_thousand_rows_decide(tmp_path: Path) -> None:
    rows = "a b c O\n\n-DOCSTART- x\n" * SEEN
    with pytest.raises(CorpusError, match=f"line {3 * SEEN + 1}: 2 columns"):
        like(put(tmp_path, rows + "a b\n" * 2 * SEEN))
    assert like(put(tmp_path, "a b c\n" * (SEEN // 2) + "a b\n" * (SEEN // 2))).format == "text"


words = st.text(st.characters(whitelist_categories=("L",)), min_size=1, max_size=3)


@given(st.lists(st.lists(st.sampled_from(["a", "O", "it"]) | words, max_size=6), max_size=12))
def test_whatever_the_words_it_is_text_columns_or_refused(
    tmp_path_factory: pytest.TempPathFactory, sentences: list[list[str]]
) -> None:
    text = "".join(" ".join(words) + "\n" for words in sentences)
    path = put(tmp_path_factory.getbasetemp(), text)
    try:
        corpus = like(path)
    except RankOneError:
        return
    lines = [words for words in sentences if words]
    if corpus.format == "text":
        assert [s.tokens for s in corpus.sentences] == lines
        assert corpus.remarks
    else:
        assert len({len(line) for line in lines}) == 1


def test_json_lines_are_no_text_whatever_the_file_is_called(tmp_path: Path) -> None:
    rows = '{"tokens": ["Foo", "bar"]}\n{"tokens": ["baz"]}\n'
    corpus = read_like(put(tmp_path, rows), {"columns": 2}, LABELS, labelled=None)
    assert (corpus.format, corpus.vocabulary) == ("jsonl", ("Foo", "bar", "baz"))
