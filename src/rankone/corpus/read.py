"""From a file to a corpus: open, guess the format, parse."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from rankone.choices import Format, Scheme, Task
from rankone.corpus import schemes
from rankone.corpus.builtin import check_no_layout, is_builtin, read_builtin
from rankone.corpus.corpus import Corpus
from rankone.corpus.join import join
from rankone.corpus.layouts import CONLL, check_format, suffix_of
from rankone.corpus.reading import rows_in
from rankone.corpus.rows import Choice, Column, Words, is_annotated
from rankone.corpus.source import opened, printable
from rankone.corpus.sources import files_of
from rankone.corpus.splitting import Splitting
from rankone.corpus.story import STORY, is_story
from rankone.corpus.tasks import Task as Asking
from rankone.corpus.tasks import task_of
from rankone.corpus.text import Expected
from rankone.corpus.texts import read_texts
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import SettingError

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
LAYOUT = ("format", "token_column", "label_column")  # options that only a file has
COLUMNS = (*CONLL, ".conllu", ".parquet")
TEXTS = ("auto", "text", "jsonl", "tsv")  # formats of texts


def read_corpus(
    source: Source,
    *,
    format: Format = "auto",
    token_column: Column | None = None,
    label_column: Column | None = None,
    scheme: Scheme = "keep",
    lower: bool = False,
    labelled: bool | None = True,
    task: Task = "tags",
    tokenizer: str | os.PathLike[str] = "words",
    window: int = 0,
    blocks: bool = False,
) -> Corpus:
    """Read a labelled corpus: a path, "-" for standard input, "builtin", "toy", or (a text)
    "story".

    Files may be packed (gzip, zstd). Several are read as one corpus: a list of paths, a pattern
    such as ``"data/*.conll.gz"``, or a directory, of which all files are taken that end as corpora
    do (.conll, .iob, .iob2, .bio, .conllu, .tsv, .jsonl, .ndjson, .json, .parquet, packed or not),
    in the order of their names, but for hidden ones.

    Columns are counted from 1, or from the end if negative. CoNLL-U columns ("upos", "xpos"), those
    of a TSV file with a header, and the keys of JSON lines can also be given by name. The defaults
    are the first column for tokens and the last for labels (CoNLL-U: form and UPOS);
    ``corpus.columns`` says which were used.
    ``scheme="iob2"`` turns IOB1 entity tags into IOB2 and refuses other labels, "auto" leaves those
    unchanged. ``labelled=False`` reads tokens only, None reads labels if there are any;
    ``format="text"``, one sentence per line, needs one of the two. ``task`` says what is asked of
    the tokens.

    The documents of the tasks "next" and "class" are texts. A source is then plain text (one
    document, or with ``blocks`` one for every run of lines without a blank line), a directory of
    such files, JSON lines with a key "text" (and "label"), or, for "class", lines of label, TAB,
    text. ``tokenizer`` is "words", "characters", "bytes", or the path of a tokenizer.json. A model
    of the next token sees all that came before, or only a ``window`` of so many tokens.

    >>> read_corpus("builtin").n_sentences
    2000
    """
    choice = Choice(token_column, label_column, labelled).checked()
    splitting = Splitting(tokenizer, window, blocks).checked(task)
    files = files_of(source, directories=not task_of(task).text)
    return join(_read(file, format, choice, scheme, lower, task, splitting) for file in files)


def read_like(
    source: Source,
    reading: Mapping[str, Any],
    labels: Collection[str],
    *,
    labelled: bool | None,
    **given: Any,
) -> Corpus:
    """Read files as the corpus of a model was read, except for the options that are `given`.

    Unless labels are needed, a file without the columns of the model's corpus may be plain text;
    ``corpus.remarks`` then says so.
    """
    how, expected = like(source, reading, labels, labelled=labelled, given=given)
    splits = "tokenizer" in how or not task_of(how["task"]).text
    texts = {name: how[name] for name in ("tokenizer", "window", "blocks") if name in how}
    splitting = Splitting(**texts).checked(how["task"]) if splits else None
    choice = Choice(how["token_column"], how["label_column"], labelled).checked()
    form, scheme, lower, task = (how[name] for name in ("format", "scheme", "lower", "task"))
    files = files_of(source, directories=not task_of(task).text)
    return join(
        _read(file, form, choice, scheme, lower, task, splitting, expected) for file in files
    )


def like(
    source: Source,
    reading: Mapping[str, Any],
    labels: Collection[str],
    *,
    labelled: bool | None,
    given: Mapping[str, Any],
) -> tuple[dict[str, Any], Expected | None]:
    """The settings of `read_corpus` with which the corpus of a model was read, but for those that
    are `given`; and what tells plain text from columns, if it may be either."""
    known = {"token_column", "label_column", "scheme", "lower", "task"}
    known |= {"tokenizer", "window", "blocks"}
    before = {key: value for key, value in reading.items() if key in known}
    chosen = {key: value for key, value in given.items() if value is not None}
    how = {"format": "auto", "scheme": "keep", "lower": False, "task": "tags", **before, **chosen}
    how = {"token_column": None, "label_column": None, **how}
    files = files_of(source, directories=not task_of(how["task"]).text)
    if all(map(is_builtin, files)):
        how |= {key: chosen.get(key) for key in LAYOUT[1:]}
    guess = not labelled and not {"token_column", "label_column"} & set(chosen)
    width = reading.get("columns")
    of = width if type(width) is int else None
    return how, Expected(frozenset(labels), how["label_column"], of) if guess else None


def corpus_like(
    given: Any, reading: Mapping[str, Any], labels: Collection[str], *, labelled: bool | None
) -> Corpus:
    """A corpus from whatever is given for a model: a corpus, a path, which is read as the model's
    own corpus was (`read_like`), or Python objects: texts where that was made of texts, and
    sentences otherwise."""
    if isinstance(given, str | os.PathLike):
        return read_like(given, reading, labels, labelled=labelled)
    if isinstance(given, Corpus):
        found = given
    else:
        names = ("task", "tokenizer", "window", "lower") if "tokenizer" in reading else ("task",)
        how = {name: reading[name] for name in names if name in reading}
        make = Corpus.from_texts if "tokenizer" in reading else Corpus.from_sentences
        found = make(given, **how)
    return found.check_labelled() if labelled else found


def read_other(source: str | os.PathLike[str], **how: Any) -> Corpus:
    """Read another corpus with the same options; a built-in one has no layout."""
    if is_builtin(source):
        how = {key: value for key, value in how.items() if key not in LAYOUT}
    return read_corpus(source, **how)


def as_corpus(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    token_column: Column | None = None,
    label_column: Column | None = None,
) -> Corpus:
    """A labelled corpus from a path, sentences, a dataset, a data frame, or a corpus."""
    if isinstance(corpus, str | os.PathLike):
        corpus = read_corpus(corpus, token_column=token_column, label_column=label_column)
    elif not isinstance(corpus, Corpus):
        corpus = Corpus.from_sentences(corpus, token_column=token_column, label_column=label_column)
    elif (token_column, label_column) != (None, None):
        raise SettingError(
            "a corpus that is read has no columns to choose from",
            where=corpus.source,
            remedy="give token_column and label_column where it is read",
        )
    return corpus.check_labelled()


def _read(
    source: str | os.PathLike[str],
    format: str,
    choice: Choice,
    scheme: str,
    lower: bool,
    task: Task,
    splitting: Splitting | None,
    expected: Expected | None = None,
) -> Corpus:
    schemes.check(scheme)
    check_format(format)
    started, asking, labelled = time.perf_counter(), task_of(task), choice.labelled
    if is_builtin(source) and not (asking.text and is_story(source)):
        return read_builtin(os.fspath(source), format, choice, scheme, lower, task)
    choice = asking.choice(choice)
    if is_story(source):
        check_no_layout(STORY, format, choice)
    columnar = suffix_of(str(source)) in COLUMNS if format == "auto" else format not in TEXTS
    if asking.text and not columnar:
        if splitting is None:
            raise SettingError(
                "the model was made of tokens, and does not say how a text becomes tokens",
                where=printable(os.fspath(source)),
                remedy="give columns (--format conll), or lists of words to Model.classify",
            )
        return _read_texts(source, format, choice, scheme, lower, asking, splitting, labelled)
    with opened(source) as stream:
        name = stream.name
        kind, choice, rows, remarks = rows_in(stream, format, choice, expected)
    if not is_annotated(rows.labels.index, choice, name):
        rows = replace(rows, labels=Words())
    rows = rows.lowered() if lower else rows
    window = 0 if splitting is None else splitting.window
    rows, found = asking.apply(*schemes.apply(rows, scheme, name), labelled, window)
    corpus = Corpus.from_rows(rows, source=name, format=kind, scheme=found, task=task)
    reading = {
        "token_column": choice.token,
        "label_column": choice.label,
        "columns": corpus.columns.of,
        "scheme": "auto" if found == "IOB2" else "keep",
        "lower": bool(lower),
        "task": task,
        **({"window": window} if window else {}),
    }
    seconds = time.perf_counter() - started
    return replace(corpus, window=window, reading=reading, remarks=remarks, seconds=seconds)


def _read_texts(
    source: str | os.PathLike[str],
    format: str,
    choice: Choice,
    scheme: str,
    lower: bool,
    asking: Asking,
    splitting: Splitting,
    labelled: bool | None,
) -> Corpus:
    """The corpus of a task whose documents are texts."""
    if scheme == "iob2":
        raise SettingError(
            "texts have no entity tags", remedy="leave out scheme (memorize --scheme)"
        )
    started = time.perf_counter()
    tokenizer = tokenizer_of(splitting.tokenizer)
    name, kind, rows = read_texts(
        source,
        tokenizer,
        choice,
        format=format,
        in_lines=asking.from_labels,
        blocks=splitting.blocks,
        lower=bool(lower),
    )
    rows, _ = asking.apply(rows, None, labelled, splitting.window)
    corpus = Corpus.from_rows(rows, source=name, format=kind, task=asking.name)
    reading = {
        "token_column": choice.token,
        "label_column": choice.label,
        "lower": bool(lower),
        "task": asking.name,
        **splitting.reading,
    }
    seconds = time.perf_counter() - started
    return replace(corpus, window=splitting.window, reading=reading, seconds=seconds)
