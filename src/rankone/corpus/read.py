"""From a file to a corpus: open, decode, guess the format, parse."""

from __future__ import annotations

import dataclasses
import gzip
import os
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from rankone.corpus import columns, jsonlines, schemes
from rankone.corpus.builtin import BUILTIN
from rankone.corpus.corpus import Choice, Corpus, Rows, Words
from rankone.errors import CorpusError

Format = Literal["auto", "conll", "conllu", "tsv", "jsonl"]
Scheme = Literal["keep", "iob2", "auto"]
Column = int | str
Reader = Callable[[list[str], str, Choice], Rows]

READERS: dict[str, Reader] = {
    "conll": columns.read_conll,
    "conllu": columns.read_conllu,
    "tsv": columns.read_tsv,
    "jsonl": jsonlines.read_jsonlines,
}
SUFFIXES = {
    ".conllu": "conllu",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}


def read_corpus(
    source: str | os.PathLike[str],
    *,
    format: Format = "auto",
    token_column: Column | None = None,
    label_column: Column | None = None,
    scheme: Scheme = "keep",
    lower: bool = False,
    labelled: bool | None = True,
) -> Corpus:
    """Read a labelled corpus, plain or gzipped: a path, "-" for standard input, "builtin" or "toy".

    Columns count from 1, or from the end if negative; CoNLL-U columns also go by name ("upos",
    "xpos"), those of a TSV file with a header and the keys of JSON lines as well. Without a choice
    the token is the first column and the label the last (CoNLL-U: form and UPOS).
    ``scheme="iob2"`` turns IOB1 entity tags into IOB2 and refuses other labels, "auto" lets those
    be. ``labelled=False`` reads tokens alone, None takes labels if there are any.

    >>> read_corpus("builtin").n_sentences
    2000
    """
    if os.fspath(source) in BUILTIN:
        if (format, token_column, label_column, lower) != ("auto", None, None, False):
            raise CorpusError(
                "the built-in corpus is read as it is", remedy="leave the options for files out"
            )
        return BUILTIN[os.fspath(source)]()
    if format != "auto" and format not in READERS:
        raise CorpusError(
            f"unknown format {format!r}", remedy=f"choose one of auto, {', '.join(READERS)}"
        )
    started = time.perf_counter()
    name, data = _bytes(source)
    text = _decode(data, name)
    if "\r" in text:
        text = text.replace("\r\n", "\n")
        text = text if "\n" in text else text.replace("\r", "\n")
    lines = text.split("\n")
    kind = _guess(name, lines) if format == "auto" else format
    rows = READERS[kind](lines, name, Choice(token_column, label_column, labelled))
    if labelled is None and set(rows.labels.index) == {"_"}:
        rows = dataclasses.replace(rows, labels=Words())  # CoNLL-U's mark for "not annotated"
    if lower:
        names = [word.lower() for word in rows.tokens.index]
        rows = dataclasses.replace(rows, tokens=rows.tokens.renamed(names, rows.tokens.numbers()))
    rows, found = schemes.apply(rows, scheme, name)
    corpus = Corpus.from_rows(rows, source=name, format=kind, scheme=found)
    reading = {
        "token_column": token_column,
        "label_column": label_column,
        "scheme": "auto" if found == "IOB2" else "keep",
        "lower": lower,
    }
    return dataclasses.replace(corpus, reading=reading, seconds=time.perf_counter() - started)


def _bytes(source: str | os.PathLike[str]) -> tuple[str, bytes]:
    if os.fspath(source) == "-":
        if sys.stdin is None:
            raise CorpusError("closed", where="<stdin>", remedy="give a file, or pipe one in")
        name, data = "<stdin>", sys.stdin.buffer.read()
    else:
        path, name = Path(source), os.fspath(source)
        try:
            data = path.read_bytes()
        except IsADirectoryError:
            raise CorpusError(
                "is a directory", where=name, remedy="name one file inside it"
            ) from None
        except OSError as error:
            raise CorpusError(
                (error.strerror or str(error)).lower(),
                where=name,
                remedy="check the path and that the file may be read",
            ) from None
    if data.startswith(b"\x1f\x8b"):
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise CorpusError(
                f"damaged gzip data ({error})", where=name, remedy="compress or copy the file again"
            ) from None
    return name, data


def _decode(data: bytes, name: str) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise CorpusError(
            "a NUL byte: this is not a text file in UTF-8",
            where=f"{name}, line {data.count(10, 0, nul) + 1}",
            remedy="convert the file to UTF-8 (UTF-16 text and binary files have NUL bytes)",
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"byte 0x{error.object[error.start]:02x} is not valid UTF-8",
            where=f"{name}, line {line}",
            remedy="convert the file to UTF-8, for example with iconv -f latin1 -t utf-8",
        ) from None


def _guess(name: str, lines: list[str]) -> str:
    """By the ending of the name; else by the first line that says something."""
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]
    first = next((line for line in lines if not columns.blank(line)), "")
    if first.lstrip().startswith("{") and '"' in first:
        return "jsonl"
    row = next((line for line in lines if not columns.blank(line) and line[0] != "#"), "")
    cells = row.split("\t")
    if len(cells) == 10 and cells[0].split("-")[0].split(".")[0].isdigit():
        return "conllu"
    return "tsv" if columns.is_header([cell.strip().lower() for cell in cells]) else "conll"
