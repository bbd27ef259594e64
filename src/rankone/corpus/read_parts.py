"""From files to a corpus in parts: pieces are read wherever the engine likes, then numbered alike.

Words are numbered in the order of first appearance, as in memory (`part_numbers`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from rankone.choices import Format, Scheme, Task
from rankone.corpus import schemes
from rankone.corpus.builtin import is_builtin
from rankone.corpus.corpus import Corpus, check_sentences, name_of_all
from rankone.corpus.join import Alike
from rankone.corpus.part_numbers import number_rows, numbers_of_words
from rankone.corpus.parted import COLUMNS, Part, PartedCorpus, part_tokens, parted
from rankone.corpus.piece_rows import as_iob2
from rankone.corpus.pieces import Piece, Plan, plan, read_piece
from rankone.corpus.read import Source, like, read_corpus
from rankone.corpus.rows import Choice, Column, is_annotated
from rankone.corpus.sources import files_of
from rankone.corpus.splitting import Splitting
from rankone.corpus.tasks import of_texts, task_of
from rankone.corpus.text import Expected
from rankone.engines import Engine, Ref, Table
from rankone.engines.engine import strings, strings_of
from rankone.errors import SettingError
from rankone.progress import Progress

LEAST, PER_TOKEN = 1 << 16, 8  # bytes of a piece: at least, and of text for each token of a part


@dataclass(frozen=True)
class Found:
    """What is known of a piece, besides its rows and words, which stay with the engine."""

    file: int
    tokens: int
    sentences: int
    longest: int
    lines: int
    labels: list[str]  # in the order of first appearance
    begins: list[str]  # the same in IOB2, if they may be entity tags
    opens: bool  # whether an I- opens an entity
    stray: int  # the line, in the piece, of the first label that is no entity tag; 0: there is none
    rows: Ref
    words: Ref


def read_parts(
    source: Source,
    engine: Engine,
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
    expected: Expected | None = None,
    progress: Progress = lambda *_: None,
) -> PartedCorpus:
    """Read files as `read_corpus` does, into parts that an engine keeps.

    >>> from rankone.engines import open_engine
    >>> with open_engine("disk") as engine:
    ...     read_parts("builtin", engine).n_sentences
    2000
    """
    started = time.perf_counter()
    schemes.check(scheme)
    Splitting(tokenizer, window, blocks).checked(task)
    how: dict[str, Any] = {"format": format, "token_column": token_column, "lower": lower}
    how |= {"label_column": label_column, "labelled": labelled}
    files = files_of(source)
    if of_texts(task_of(task).name):
        raise SettingError(
            f"texts (task {task!r}) are read as a whole",
            remedy="leave out memory and engine (--memory, --engine)",
        )
    if any(map(is_builtin, files)):  # as small as they are
        return parted(read_corpus(source, scheme=scheme, task=task, **how), engine)
    size = max(LEAST, PER_TOKEN * part_tokens(engine))
    planned = plan(source, size=size, expected=expected, **how)
    choice = Choice(token_column, label_column, labelled).checked()
    found = _read(planned, engine, lambda share: progress("read", share / 2))
    files_ = _files(planned, found, scheme, choice, task)
    maps, vocabulary = numbers_of_words([piece.words for piece in found], engine)
    names = list(dict.fromkeys(name for file in files_ for name in file.labels))
    sources = [file.source for file in planned.files]
    numbers = {name: i for i, name in enumerate(dict.fromkeys(sources))}
    of_file = [numbers[name] for name in sources]
    parts = _parts(
        found, files_, of_file, maps, names, engine, lambda x: progress("read", 0.5 + x / 2)
    )
    heading = _heading(planned, files_, vocabulary, names, lower, task)
    seconds = time.perf_counter() - started
    return PartedCorpus(replace(heading, seconds=seconds), parts, engine)


def read_parts_like(
    source: Source,
    engine: Engine,
    reading: Mapping[str, Any],
    labels: Collection[str],
    *,
    labelled: bool | None,
    progress: Progress = lambda *_: None,
    **given: Any,
) -> PartedCorpus:
    """Read files as `read_like` does, into parts that an engine keeps."""
    how, expected = like(source, reading, labels, labelled=labelled, given=given)
    return read_parts(
        source, engine, labelled=labelled, expected=expected, progress=progress, **how
    )


def _read(planned: Plan, engine: Engine, tell: Callable[[float], None]) -> list[Found]:
    """Read all pieces. Those that hold their bytes are read as they come."""
    found, size = list[Found](), sum(file.size for file in planned.files) or 1
    done = 0
    for pieces in _batches(planned, engine.room):
        tables = engine.split(read_table, [(piece,) for piece in pieces], 3)
        for piece, (known, rows, words) in zip(pieces, tables, strict=True):
            done += piece.last - piece.first
            found.append(_found(piece.file, engine.take(known), rows, words))
            engine.drop([known])
        tell(min(1.0, done / size))
    return found


def _batches(pieces: Iterable[Piece], room: int) -> Iterator[list[Piece]]:
    """Many pieces at a time, but not more bytes than there is room for."""
    batch, held = list[Piece](), 0
    for piece in pieces:
        batch.append(piece)
        held += len(piece.data or b"") + (piece.last - piece.first) // 16
        if held > room // 4:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def read_table(piece: Piece) -> list[Table]:
    """What is known of a piece, its rows, and its words."""
    rows = read_piece(piece)
    names, ids = rows.label_names, rows.label_ids
    strays = schemes.strays_among(names)
    begins, opens, first = names, False, 0
    if strays:
        odd = np.isin(ids, [names.index(name) for name in strays])
        first = int(rows.lines[int(odd.argmax())])
    elif names:
        begins = as_iob2(rows).label_names
        at = rows.starts.astype(np.int64)
        opens = bool(schemes.opening(names, ids.astype(np.int64), at).any())
    longest = int(np.diff(np.append(rows.starts, len(rows.token_ids))).max(initial=0))
    numbers = [len(rows.token_ids), len(rows.starts), longest, rows.n_lines, int(opens), first]
    known: dict[str, Any] = {"numbers": np.array(numbers)}
    for name, some in (("labels", names), ("begins", begins)):
        known |= {f"{name}.{part}": column for part, column in strings(some).items()}
    columns: Table = {
        **{name: getattr(rows, name) for name in ("token_ids", "label_ids", "lines", "starts")},
        "labels": np.frombuffer(rows.labels, np.uint8),
        "label_ends": rows.label_ends,
    }
    words = {"bytes": np.frombuffer(rows.words, np.uint8), "ends": rows.word_ends[1:]}
    return [known, columns, words]


def _found(file: int, known: Table, rows: Ref, words: Ref) -> Found:
    tokens, sentences, longest, lines, opens, stray = known["numbers"].tolist()
    labels, begins = (
        strings_of({part: known[f"{name}.{part}"] for part in ("bytes", "ends")})
        for name in ("labels", "begins")
    )
    return Found(
        file, tokens, sentences, longest, lines, labels, begins, bool(opens), stray, rows, words
    )


@dataclass(frozen=True)
class Read:
    """What is known of a file: its labels as they will be, and the number of lines before each of
    its pieces."""

    labels: list[str]
    scheme: str | None
    converted: bool  # from IOB1 to IOB2
    before: list[int]


def _files(
    planned: Plan, found: Sequence[Found], scheme: str, choice: Choice, task: str
) -> list[Read]:
    """What only whole files know; those that do not belong together are refused."""
    alike, files = Alike(), list[Read]()
    for number, file in enumerate(planned.files):
        pieces = [piece for piece in found if piece.file == number]
        before = list(accumulate((piece.lines for piece in pieces), initial=0))
        check_sentences(sum(piece.sentences for piece in pieces), file.source)
        kinds = list(dict.fromkeys(name for piece in pieces for name in piece.labels))
        if not is_annotated(kinds, choice, file.source):
            kinds = []
        if scheme == "iob2":
            for piece, lines in zip(pieces, before, strict=False):
                if piece.stray:
                    tag = schemes.strays_among(piece.labels)[0]
                    raise schemes.stray(tag, f"{file.source}, line {lines + piece.stray}")
        tags = schemes.are_tags(kinds)
        opens = tags and any(piece.opens for piece in pieces)
        converted = opens and scheme != "keep"
        if converted:
            kinds = list(dict.fromkeys(name for piece in pieces for name in piece.begins))
        known = "IOB1" if opens and not converted else "IOB2" if tags else None
        files.append(Read(kinds, known, converted, before))
        alike.add(_as_corpus(file, kinds, known, task))
    alike.check_labels()
    return files


def _as_corpus(file: Any, labels: Sequence[str], scheme: str | None, task: str) -> Corpus:
    """A file without its sentences."""
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS, np.empty(0, np.int64))
    return Corpus(
        source=file.source,
        vocabulary=(),
        label_names=tuple(labels),
        **nothing,
        files=(file.source,),
        format=file.format,
        scheme=scheme,
        task=task,
        columns=file.columns if labels else replace(file.columns, label=None),
        reading=file.reading,
    )


def _parts(
    found: Sequence[Found],
    files: Sequence[Read],
    of_file: Sequence[int],
    maps: Sequence[Ref],
    names: Sequence[str],
    engine: Engine,
    tell: Callable[[float], None],
) -> tuple[Part, ...]:
    """The parts; pieces of small files are put together."""
    limit, groups, held = part_tokens(engine), list[list[int]](), 0
    for i, piece in enumerate(found):
        if not groups or held + piece.tokens > limit:
            groups.append([])
            held = 0
        groups[-1].append(i)
        held += piece.tokens
    number = {name: i for i, name in enumerate(names)}
    shared = engine.share(number)
    next_ = [0] * len(files)
    settings = []
    for piece in found:
        file = files[piece.file]
        line = file.before[next_[piece.file]]
        next_[piece.file] += 1
        settings.append((of_file[piece.file], line, file.converted, bool(file.labels)))
    calls = [
        (
            [found[i].rows for i in group],
            [maps[i] for i in group],
            shared,
            [settings[i] for i in group],
        )
        for group in groups
    ]
    refs = engine.each(number_rows, calls, tell)
    engine.drop([*maps, *(piece.rows for piece in found)])
    parts, start, before = list[Part](), 0, 0
    for group, ref in zip(groups, refs, strict=True):
        some = [found[i] for i in group]
        tokens, sentences = (
            sum(getattr(p, name) for p in some) for name in ("tokens", "sentences")
        )
        if tokens:
            asked = sum(p.tokens for p in some if files[p.file].labels)
            longest = max(p.longest for p in some)
            parts.append(Part(ref, tokens, sentences, asked, longest, start, before))
        start, before = start + tokens, before + sentences
    return tuple(parts)


def _heading(
    planned: Plan,
    files: Sequence[Read],
    words: Sequence[str],
    names: Sequence[str],
    lower: bool,
    task: str,
) -> Corpus:
    """The corpus without its sentences, as `read_corpus` describes it."""
    first, sources = planned.files[0], [file.source for file in planned.files]
    found = files[0].scheme
    scheme = next((file.scheme for file in files if file.scheme is not None), None)
    heading = _as_corpus(first, files[0].labels, scheme, task)
    reading = {
        **first.reading,
        "columns": heading.columns.of,
        "scheme": "auto" if found == "IOB2" else "keep",
        "lower": bool(lower),
        "task": task,
    }
    return replace(
        heading,
        source=name_of_all(sources),
        vocabulary=tuple(words),
        label_names=tuple(names),
        files=tuple(dict.fromkeys(sources)),
        offsets=np.zeros(1, np.int64),
        reading=reading,
        remarks=tuple(dict.fromkeys(note for file in planned.files for note in file.remarks)),
    )
