"""Texts: whole documents as they are, from files, directories, JSON lines and Python objects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankone.corpus.rows import Choice, Rows, check_word
from rankone.corpus.source import files_in, printable, read_data, unpacked_name
from rankone.corpus.story import STORY, is_story, read_story
from rankone.corpus.text_lines import documents_of_lines
from rankone.corpus.text_records import Document, TextFields, given_documents, text_of
from rankone.corpus.tokenizers import Tokenizer, newlines, tokenizer_of
from rankone.documents import parse_document
from rankone.errors import CorpusError, SettingError

JSON = (".jsonl", ".ndjson", ".json")
OBJECT = 'give one object per line: {"text": "..."}'
BLANK = re.compile(r"\A(?:[ \t]*\r?\n)+|(?:[ \t]*\r?\n)+[ \t]*(?:\r?\n|\Z)|[ \t]+\Z")


def read_texts(
    source: str | os.PathLike[str],
    tokenizer: Tokenizer,
    choice: Choice,
    *,
    format: str = "auto",
    in_lines: bool = False,
    blocks: bool = False,
    lower: bool = False,
) -> tuple[str, str, Rows]:
    """The name of the source, its format, and its rows: one document per file, line of JSON or
    line of TSV; with `blocks`, one for each run of lines without a blank line among them.

    A file whose name says nothing is TSV if documents are usually `in_lines`. In a directory it is
    one document; its label is the name of the subdirectory that it is in.
    """
    check_lower(lower, tokenizer)
    if os.path.isdir(source) and not is_story(source):
        name, kind, found = printable(os.fspath(source)), "text", list[Document]()
        for path in _files(Path(source)):
            _, own, documents = _documents(path, tokenizer, choice, format, in_lines, "text")
            if own == "text" and choice.labelled is not False and path.parent != Path(source):
                label = printable(path.parent.name)
                documents = [replace(document, label=label) for document in documents]
            found += documents
    else:
        plain = "tsv" if in_lines else "text"
        name, kind, found = _documents(source, tokenizer, choice, format, in_lines, plain)
    if blocks:
        found = [block for document in found for block in _blocks(document)]
    return name, kind, rows_of(found, name, tokenizer, choice.labelled, lower)


def read_given(
    given: Any, source: str, tokenizer: Tokenizer, choice: Choice, *, lower: bool = False
) -> Rows:
    """The rows of texts that are given as Python objects."""
    check_lower(lower, tokenizer)
    found = list(given_documents(given, source, tokenizer, choice))
    return rows_of(found, source, tokenizer, choice.labelled, lower)


def split_text(text: Any, reading: Mapping[str, Any], where: str) -> list[str]:
    """The tokens of a text, split as a corpus was that was read so."""
    tokenizer = tokenizer_of(reading["tokenizer"])
    text = text_of(text, where, tokenizer)
    tokens = tokenizer.split(text.lower() if reading.get("lower") else text, where)
    if not tokens:
        raise CorpusError("an empty document", where=where, remedy="take it out")
    return tokens


def check_lower(lower: bool, tokenizer: Tokenizer) -> None:
    if lower and tokenizer.name == "bytes":
        raise SettingError(
            "bytes have no lower case",
            remedy="leave out lower (memorize --lower), or choose characters",
        )


def rows_of(
    documents: list[Document],
    source: str,
    tokenizer: Tokenizer,
    labelled: bool | None = None,
    lower: bool = False,
) -> Rows:
    """The tokens of all documents. The label of a document is that of its last token; others have
    none. Either all documents have a label, or, unless they must be `labelled`, none."""
    if not documents:
        raise CorpusError("no document in it", where=source, remedy="give at least one text")
    _check_labels(documents, labelled)
    rows = Rows(columns=documents[0].columns)
    ids, starts = rows.tokens.ids, rows.starts
    for document in documents:
        text = document.text.lower() if lower else document.text
        tokens = tokenizer.split(text, document.where) if text else []
        if not tokens:
            raise CorpusError("an empty document", where=document.where, remedy="take it out")
        starts.append(len(ids))
        rows.tokens.extend(tokens)
        rows.files.append(document.file)
    for word in rows.tokens.index:
        check_word(word, "the tokens", source)
    _number_lines(rows, documents, tokenizer)
    bounds = [*starts, len(ids)]
    if documents[0].label is not None:
        rows.labels.ids.extend([-1] * len(ids))
        for end, document in zip(bounds[1:], documents, strict=True):
            label = document.label or ""
            check_word(label, "the labels", document.where)
            rows.labels.ids[end - 1] = rows.labels.index[label]
    return rows


def _check_labels(documents: list[Document], labelled: bool | None) -> None:
    """Refuse documents without a label among others that have one, or where all must have one."""
    without = next((document for document in documents if document.label is None), None)
    if without is None or (not labelled and all(d.label is None for d in documents)):
        return
    raise CorpusError(
        "a document without a label" + ("" if labelled else ", and others have one"),
        where=without.where,
        remedy="give label<TAB>text in each line, JSON lines with text and label, or a directory "
        "with a subdirectory for each label"
        if labelled
        else "give all of them a label, or none (texts with TABs go into JSON lines)",
    )


def _number_lines(rows: Rows, documents: list[Document], tokenizer: Tokenizer) -> None:
    """A token is on the line on which it begins; all of a document that has a line to itself are
    there."""
    starts = np.array(rows.starts, dtype=np.int64)
    lengths = np.diff(starts, append=len(rows.tokens.ids))
    ended = np.array(newlines(tokenizer, rows.tokens.index), dtype=np.int64)[rows.tokens.numbers()]
    ended[np.repeat([not document.lines for document in documents], lengths)] = 0
    before = np.cumsum(ended) - ended
    firsts = np.array([document.line for document in documents]) - before[starts]
    rows.lines.frombytes((before + np.repeat(firsts, lengths)).astype(np.int64).tobytes())


def _files(directory: Path) -> list[Path]:
    """All files of a directory, but for hidden ones, in order."""
    found = files_in(directory)
    if not found:
        raise CorpusError(
            "a directory without files", where=printable(str(directory)), remedy="name another one"
        )
    return found


def _documents(
    source: str | os.PathLike[str],
    tokenizer: Tokenizer,
    choice: Choice,
    format: str,
    in_lines: bool,
    plain: str,
) -> tuple[str, str, list[Document]]:
    """The name of a file, its format, and its documents."""
    name, data = (STORY, read_story()) if is_story(source) else read_data(source)
    if format == "auto":
        suffix = Path(unpacked_name(name)).suffix
        known = {**dict.fromkeys(JSON, "jsonl"), **({".tsv": "tsv"} if in_lines else {})}
        format = known.get(suffix, plain)
    if format == "jsonl":
        return name, format, list(_of_json(data, name, tokenizer, choice))
    text = tokenizer.decode(data, name)
    if format == "tsv":
        return name, format, list(documents_of_lines(text, name, tokenizer, choice))
    if not text:
        raise CorpusError("an empty document", where=name, remedy="give a file with text in it")
    return name, format, [Document(text, name, 1, name, lines=True)]


def _of_json(data: bytes, name: str, tokenizer: Tokenizer, choice: Choice) -> Iterator[Document]:
    fields = None
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        record = parse_document(line, dict[str, Any], where, CorpusError, OBJECT)
        fields = fields or TextFields.among(list(record), choice, where)
        yield fields.document(record, where, number, name, tokenizer)


def _blocks(document: Document) -> Iterator[Document]:
    """The runs of lines without a blank line among them."""
    at, line = 0, document.line
    for blank in [*BLANK.finditer(document.text), None]:
        end = len(document.text) if blank is None else blank.start()
        text = document.text[at:end]
        if text.strip():
            where = f"{document.where}, line {line}" if document.lines else document.where
            yield replace(document, text=text, where=where, line=line)
        if blank is not None:
            line += document.text.count("\n", at, blank.end()) if document.lines else 0
            at = blank.end()
