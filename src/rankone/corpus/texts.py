"""Texts: whole documents as they are, from files, directories, JSON lines and Python objects."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankone.corpus.fields import listing
from rankone.corpus.rows import Choice, Columns, Rows, check_word
from rankone.corpus.source import printable, read_data
from rankone.corpus.tokenizers import Tokenizer, newlines
from rankone.documents import parse_document
from rankone.errors import CorpusError

JSON = (".jsonl", ".ndjson", ".json")
OBJECT = 'give one object per line: {"text": "..."}'
BLANK = re.compile(r"(?:[ \t]*\r?\n)+[ \t]*\r?\n")  # one line or more without text


@dataclass(frozen=True, slots=True)
class Document:
    """A text, where it begins, and its label if it has one."""

    text: str
    where: str
    line: int
    file: str | None = None
    label: str | None = None
    columns: Columns = field(default_factory=Columns)


def read_texts(
    source: str | os.PathLike[str],
    tokenizer: Tokenizer,
    choice: Choice,
    *,
    format: str = "auto",
    blocks: bool = False,
) -> tuple[str, str, Rows]:
    """The name of the source, its format, and its rows: one document per file, line of JSON or
    line of TSV; with `blocks`, one for each run of lines without a blank line among them."""
    if os.path.isdir(source):
        name, kind = printable(os.fspath(source)), "text"
        found = [d for path in _files(Path(source)) for d in _documents(path, tokenizer, choice)[2]]
    else:
        name, kind, found = _documents(source, tokenizer, choice, format)
    if blocks:
        found = [block for document in found for block in _blocks(document)]
    return name, kind, rows_of(found, name, tokenizer)


def read_given(given: Any, source: str, tokenizer: Tokenizer, choice: Choice) -> Rows:
    """The rows of texts that are given as Python objects: strings, mappings, (text, label) pairs,
    a mapping of columns, or a Hugging Face dataset."""
    return rows_of(list(_given(given, source, tokenizer, choice)), source, tokenizer)


def rows_of(documents: list[Document], source: str, tokenizer: Tokenizer) -> Rows:
    """The tokens of all documents. The label of a document is that of its last token; others have
    none."""
    if not documents:
        raise CorpusError("no document in it", where=source, remedy="give at least one text")
    rows = Rows(columns=documents[0].columns)
    ids, starts = rows.tokens.ids, rows.starts
    labels = [document.label for document in documents]
    for document in documents:
        tokens = tokenizer.split(document.text, document.where) if document.text else []
        if not tokens:
            raise CorpusError("an empty document", where=document.where, remedy="take it out")
        starts.append(len(ids))
        rows.tokens.extend(tokens)
        rows.files.append(document.file)
    for word in rows.tokens.index:
        check_word(word, "the tokens", source)
    _number_lines(rows, documents)
    bounds = [*starts, len(ids)]
    if labels.count(None) < len(labels):
        rows.labels.ids.extend([-1] * len(ids))
        for end, label in zip(bounds[1:], labels, strict=True):
            if label is not None:
                check_word(label, "the labels", source)
                rows.labels.ids[end - 1] = rows.labels.index[label]
    return rows


def _number_lines(rows: Rows, documents: list[Document]) -> None:
    """A token is on the line on which it begins."""
    ended = np.array(newlines(rows.tokens.index), dtype=np.int64)[rows.tokens.numbers()]
    before = np.cumsum(ended) - ended
    starts = np.array(rows.starts, dtype=np.int64)
    lengths = np.diff(starts, append=len(ended))
    firsts = np.array([document.line for document in documents]) - before[starts]
    rows.lines.frombytes((before + np.repeat(firsts, lengths)).astype(np.int64).tobytes())


def _files(directory: Path) -> list[Path]:
    """All files of a directory, but for hidden ones, in order."""
    found = [path for path in sorted(directory.rglob("*")) if path.is_file()]
    found = [p for p in found if not any(x[0] == "." for x in p.relative_to(directory).parts)]
    if not found:
        raise CorpusError(
            "a directory without files", where=printable(str(directory)), remedy="name another one"
        )
    return found


def _documents(
    source: str | os.PathLike[str], tokenizer: Tokenizer, choice: Choice, format: str = "auto"
) -> tuple[str, str, list[Document]]:
    """The name of a file, its format, and its documents."""
    name, data = read_data(source)
    suffixes = [suffix.lower() for suffix in Path(name.removesuffix(".gz")).suffixes[-1:]]
    if format == "auto":
        asked = choice.labelled or choice.label is not None
        plain = "tsv" if asked else "text"
        format = "jsonl" if suffixes and suffixes[0] in JSON else plain
    if format == "jsonl":
        return name, format, list(_of_json(data, name, tokenizer, choice))
    text = tokenizer.decode(data, name)
    if format == "tsv":
        return name, format, list(_of_tsv(text, name, choice))
    if not text:
        raise CorpusError("an empty document", where=name, remedy="give a file with text in it")
    return name, format, [Document(text, name, 1, name)]


def _of_tsv(text: str, name: str, choice: Choice) -> Iterator[Document]:
    """Lines of label, TAB, text. Columns may be chosen by number."""
    label, at = (
        1 if choice.label is None else choice.label,
        2 if choice.token is None else choice.token,
    )
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.removesuffix("\r")
        where = f"{name}, line {number}"
        if not line.strip(" "):
            continue
        cells = line.split("\t")
        if choice.labelled is None and len(cells) == 1:  # texts without labels
            yield Document(line, where, number, name, columns=Columns(1, None, 1))
            continue
        try:
            if label == 0 or at == 0:
                raise IndexError
            one, other = (cells[int(i) - 1 if int(i) > 0 else int(i)] for i in (label, at))
        except (IndexError, ValueError):
            raise CorpusError(
                "no label and text, separated by a TAB",
                where=where,
                remedy="give label<TAB>text in each line, or JSON lines with text and label",
            ) from None
        if not one or not other:
            what = "an empty label" if other else "an empty document"
            raise CorpusError(what, where=where, remedy="fill it in, or take the line out")
        yield Document(other, where, number, name, one, Columns(at, label, len(cells)))


def _of_json(data: bytes, name: str, tokenizer: Tokenizer, choice: Choice) -> Iterator[Document]:
    fields = None
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        record = parse_document(line, dict[str, Any], where, CorpusError, OBJECT)
        fields = fields or TextFields.among(list(record), choice, where)
        yield fields.document(record, where, number, name, tokenizer)


@dataclass(frozen=True, slots=True)
class TextFields:
    """The keys of a text and of its label (None: it has none), and the names of label numbers."""

    text: Any = "text"
    label: Any = None
    names: tuple[str, ...] = ()

    @classmethod
    def among(cls, keys: list[Any], choice: Choice, where: str, features: Any = None) -> TextFields:
        text = "text" if choice.token is None else choice.token
        label = "label" if choice.label is None else choice.label
        if text not in keys:
            raise CorpusError(
                f"no key {text!r}",
                where=where,
                remedy=f"it has {listing(keys)}: choose one by token_column",
            )
        if choice.labelled is False or (choice.labelled is None and label not in keys):
            return cls(text)
        if label not in keys:
            raise CorpusError(
                f"no key {label!r}",
                where=where,
                remedy=f"it has {listing(keys)}: choose one by label_column",
            )
        names = getattr((features or {}).get(label), "names", None) or ()
        return cls(text, label, tuple(names))

    def document(
        self, record: Any, where: str, line: int, file: str | None, tokenizer: Tokenizer
    ) -> Document:
        for key in (self.text, *([] if self.label is None else [self.label])):
            if key not in record:
                raise CorpusError(
                    f"no key {key!r}", where=where, remedy=f"it has {listing(list(record))}"
                )
        text = text_of(record[self.text], where, tokenizer)
        label = None if self.label is None else self._label(record[self.label], where)
        return Document(text, where, line, file, label, Columns(self.text, self.label))

    def _label(self, value: Any, where: str) -> str:
        if self.names and not isinstance(value, str | bool):
            try:
                return self.names[int(value)]
            except (IndexError, ValueError, TypeError):
                raise CorpusError(
                    f"{reprlib.repr(value)} is not the number of a label",
                    where=where,
                    remedy=f"give one of 0 to {len(self.names) - 1}",
                ) from None
        return label_of(value, where)


def label_of(value: Any, where: str) -> str:
    """A label: a string, or a whole number as its digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(int(value))
    raise CorpusError(
        f"{reprlib.repr(value)} is not a label",
        where=where,
        remedy="give a string that is not empty, or a whole number",
    )


def text_of(value: Any, where: str, tokenizer: Tokenizer) -> str:
    """A text as the tokenizer takes it."""
    if not isinstance(value, str):
        raise CorpusError(
            f"{reprlib.repr(value)} is not a text", where=where, remedy="give a string"
        )
    try:
        return tokenizer.decode(value.encode(), where)
    except UnicodeEncodeError:
        raise CorpusError(
            "half of a surrogate pair in a text", where=where, remedy="take it out"
        ) from None


def _given(given: Any, source: str, tokenizer: Tokenizer, choice: Choice) -> Iterator[Document]:
    if isinstance(given, str):
        given = [given]
    features = getattr(given, "features", None)
    if hasattr(given, "keys") and not hasattr(given, "iter"):  # columns
        keys = list(given.keys())
        fields = TextFields.among(keys, choice, source)
        columns = [given[key] for key in (fields.text, fields.label) if key is not None]
        names = [key for key in (fields.text, fields.label) if key is not None]
        given = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
    if not isinstance(given, Iterable):
        raise CorpusError(
            f"no texts in {reprlib.repr(given)}", where=source, remedy="give a list of strings"
        )
    found: TextFields | None = None
    for number, item in enumerate(given, start=1):
        where = f"{source}, document {number}"
        if isinstance(item, str):
            yield Document(text_of(item, where, tokenizer), where, number)
        elif isinstance(item, Mapping):
            found = found or TextFields.among(list(item), choice, where, features)
            yield found.document(item, where, number, None, tokenizer)
        elif isinstance(item, tuple) and len(item) == 2:
            text = text_of(item[0], where, tokenizer)
            yield Document(text, where, number, label=label_of(item[1], where))
        else:
            raise CorpusError(
                f"{reprlib.repr(item)} is not a text",
                where=where,
                remedy='give a string, (text, label), or {"text": ...}',
            )


def _blocks(document: Document) -> Iterator[Document]:
    """The runs of lines without a blank line among them."""
    at, line = 0, document.line
    for blank in [*BLANK.finditer(document.text), None]:
        end = len(document.text) if blank is None else blank.start()
        text = document.text[at:end]
        if text.strip():
            where = f"{document.where}, line {line}"
            yield replace(document, text=text, where=where, line=line)
        if blank is not None:
            line += document.text.count("\n", at, blank.end())
            at = blank.end()
