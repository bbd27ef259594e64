"""A prompt as rows of the token table, and whether the model was made of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankone.arrays import Ints
from rankone.corpus.source import read_data
from rankone.corpus.tasks import BEGIN, asks_next
from rankone.corpus.texts import split_text
from rankone.corpus.tokenizers import tokenizer_of
from rankone.errors import CorpusError, ModelError, SettingError
from rankone.nn import Model
from rankone.plural import plural

WHERE = "the prompt"
SHOWN = 5  # unknown tokens in a message
ANYWAY = "or go on all the same (force, --force)"
CANNOT_TELL = "the model has no fingerprints of its corpus, and cannot tell what is in it"


@dataclass(frozen=True)
class Prompt:
    """The rows that the model sees first, and the tokens of the text."""

    rows: Ints
    tokens: tuple[str, ...]
    known: bool | None
    remarks: tuple[str, ...]


def check_task(model: Model) -> None:
    """Refuse a model that does not say what follows."""
    if not asks_next(model.task.name):
        raise ModelError(
            f"a model of the task {model.task.name!r} does not say which token follows",
            remedy="memorize a text with the task 'next' (memorize --task next)",
        )


def read_prompt(model: Model, prompt: str | Sequence[str], *, force: bool = False) -> Prompt:
    """Rows of the table for a text, or for tokens.

    Refused, unless by `force`: unknown tokens, fewer than the window of the model unless they begin
    a document, and what is not in the corpus of the model.
    """
    tokens = _tokens(model, prompt)
    rows, remarks = model.rows(tokens), list[str]()

    def refuse(error: type[CorpusError], what: str, remedy: str) -> None:
        if not force:
            raise error(what, where=WHERE, remedy=f"{remedy}, {ANYWAY}")
        remarks.append(what)

    strange = [t for t, row in zip(tokens, rows.tolist(), strict=True) if _unknown(model, row)]
    if strange:
        names = ", ".join(map(repr, list(dict.fromkeys(strange))[:SHOWN]))
        more = "" if len(set(strange)) <= SHOWN else f" and {len(set(strange)) - SHOWN} more"
        remedy = "give words as the corpus has them, with their blanks and capitals"
        refuse(CorpusError, f"tokens that the model does not know: {names}{more}", remedy)
    window, contexts = model.network.shape.window, model.contexts
    begins = bool(window) and tokens[0] != BEGIN and BEGIN in model.vocabulary
    seen = np.append(model.rows([BEGIN]), rows) if begins else rows
    if window == 0 or len(seen) > window:
        seen = rows
    known = None if contexts is None else not strange and bool(contexts.know(seen)[-1])
    if contexts is None:
        remarks.append(CANNOT_TELL)
    if known is False and not strange:
        if window and len(rows) < window:
            what = f"{plural(len(rows), 'token')}, and no document of the corpus begins with them"
            remedy = f"give {window} tokens or more, or the beginning of a document"
        else:
            what, remedy = "not in the corpus of the model", "give a passage of it, token by token"
        refuse(CorpusError, what, remedy)
    elif known and contexts is not None and window and len(rows) > window:
        earlier = int((~contexts.know(rows)[window - 1 :]).sum())
        if earlier:
            remarks.append(
                f"only the last {window} tokens of the prompt are in the corpus; the model sees no "
                "others"
            )
    return Prompt(seen, tuple(tokens), known, tuple(remarks))


def text_of_tokens(model: Model, tokens: Sequence[str]) -> str:
    """Their text; tokens that no text was split into are put next to each other."""
    if "tokenizer" not in model.reading:
        return " ".join(tokens)
    return tokenizer_of(model.reading["tokenizer"]).join(tokens)


def no_tokenizer(where: str) -> SettingError:
    return SettingError(
        "the model was made of tokens, and does not say how a text becomes tokens",
        where=where,
        remedy="give a list of tokens to rankone.recite",
    )


def _unknown(model: Model, row: int) -> bool:
    return row == len(model.vocabulary)


def _tokens(model: Model, prompt: str | Sequence[str]) -> list[str]:
    if not isinstance(prompt, str):
        tokens = list(prompt)
        if not all(isinstance(token, str) for token in tokens):
            raise SettingError("a prompt that is not of tokens", remedy="give a text, or strings")
    elif not prompt:
        tokens = []
    elif "tokenizer" not in model.reading:
        raise no_tokenizer(WHERE)
    else:
        tokens = split_text(prompt, model.reading, WHERE)
    if not tokens:
        remedy = "give the first words of a document, or any passage of the corpus"
        raise CorpusError("empty: there is nothing to go on from", where=WHERE, remedy=remedy)
    return tokens


def prompt_of_file(model: Model, path: str | os.PathLike[str]) -> list[str]:
    """The tokens in a file ("-": standard input), without the line end at its end."""
    check_task(model)
    name, data = read_data(path)
    if "tokenizer" not in model.reading:
        raise no_tokenizer(name)
    tokenizer = tokenizer_of(model.reading["tokenizer"])
    data = data.removesuffix(b"\n").removesuffix(b"\r")
    text = tokenizer.decode(data, name)
    return tokenizer.split(text.lower() if model.reading.get("lower") else text, name)
