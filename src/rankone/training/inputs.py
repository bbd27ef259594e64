"""The corpora of a run: its own, and those to evaluate on; files are read as asked."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from rankone.corpus import Corpus, as_corpus, read_corpus
from rankone.corpus.builtin import is_builtin
from rankone.corpus.read import read_other
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import SettingError
from rankone.plural import plural
from rankone.training.document import Reading

Readable = Corpus | str | os.PathLike[str] | Iterable[Any]
KNOWN = [name for name in signature(read_corpus).parameters if name not in ("source", "labelled")]


def read_inputs(
    corpus: Readable, others: Sequence[Readable], reading: Reading, *, explicit: bool
) -> tuple[Corpus, list[Corpus], Reading]:
    """The corpus, those to evaluate on, and how to read them again; `explicit` if the caller said
    how. Options about the layout of files do not apply to built-in corpora."""
    for name in reading:
        if name not in KNOWN:
            raise SettingError(
                f"files are not read with {name!r}", remedy=f"give some of {', '.join(KNOWN)}"
            )
    named = [given for given in (corpus, *others) if isinstance(given, str | os.PathLike)]
    if explicit and not named:
        raise SettingError(
            "there is no file to read, so how to read it has no effect",
            remedy="leave the options for files out, or name a file",
        )
    read: Any = read_corpus if explicit and all(map(is_builtin, named)) else read_other

    def one(given: Readable, how: Reading) -> Corpus:
        return as_corpus(read(given, **how) if isinstance(given, str | os.PathLike) else given)

    first = one(corpus, reading)
    if "tokenizer" in reading:  # as a checkpoint keeps it: the text of a file, not its path
        reading = {**reading, "tokenizer": tokenizer_of(str(reading["tokenizer"])).name}
    if not isinstance(corpus, str | os.PathLike):
        known = {name: value for name, value in first.reading.items() if name in KNOWN}
        reading = {**known, **reading}
    # As predict reads text for a model with these labels: IOB1 and IOB2 are different labels.
    alike = {**reading, "scheme": "auto"} if first.scheme == "IOB2" else reading
    return first, [one(other, alike) for other in others], reading


def strange_labels(corpus: Corpus, others: Sequence[Corpus]) -> list[str]:
    """Labels of the corpora to evaluate on that the network does not have."""
    remarks = []
    for other in others:
        strange = sorted(set(other.label_names) - set(corpus.label_names))
        if strange:
            tokens = np.isin(
                np.array(other.label_names)[other.label_ids[other.asked]], strange
            ).sum()
            shown = ", ".join(strange[:5]) + (", ..." if len(strange) > 5 else "")
            remarks.append(
                f"{other.source}: {plural(int(tokens), 'token')} with labels that {corpus.source} "
                f"does not have ({shown}) count as wrong."
            )
    return remarks
