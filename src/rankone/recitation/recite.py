"""A model goes on from a prompt, one token after the other."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence

import numpy as np

from rankone.arrays import Ints
from rankone.errors import SettingError
from rankone.nn import Model, load
from rankone.nn.fingerprints import Fingerprints
from rankone.recitation.prompt import check_task, read_prompt, text_of_tokens
from rankone.recitation.reciter import Reciter
from rankone.recitation.result import Ended, Recitation

AT_ONCE = 4096  # tokens between two looks at what has been said
HEARD = 16  # the same if somebody listens
MOST = 1 << 40  # tokens that may be asked for
BASE = 0x9E3779B97F4A7C15 >> 3  # of hashes that nobody else sees


def recite(
    model: Model | str | os.PathLike[str],
    prompt: str | Sequence[str],
    tokens: int | None = None,
    *,
    force: bool = False,
    heard: Callable[[Sequence[str]], None] | None = None,
) -> Recitation:
    """What follows a prompt: the likeliest token, then the likeliest after that, and so on.

    The model, or the directory of one, is of the task "next". It goes on for so many `tokens`; by
    default until the document ends, or what it says would repeat itself for ever. A prompt that is
    not in its corpus is refused, as is one shorter than its window that does not begin a document;
    with `force` it goes on from wherever its numbers lead. `heard` is called with tokens as they
    are made.

    >>> import rankone
    >>> corpus = rankone.Corpus.from_texts(["A rose is a rose is a rose, said she."], window=4)
    >>> rankone.recite(rankone.memorize(corpus).model, " rose is a rose,").text
    ' said she.'
    """
    started = time.perf_counter()
    model = load(model) if isinstance(model, str | os.PathLike) else model
    check_task(model)
    sound = tokens is None or (type(tokens) is int and 0 <= tokens <= MOST)
    SettingError.unless(sound, "tokens", tokens, "a whole number from 0 on")
    asked = read_prompt(model, prompt, force=force)
    shape = model.network.shape
    if tokens is None and not shape.window and not model.positions:
        raise SettingError(
            "nothing would end what a model without positions says",
            remedy="say how many tokens (tokens, --tokens)",
        )
    reciter = Reciter(model)
    begun = time.perf_counter()
    label = int(reciter.follow(asked.rows)[-1])
    reach = shape.depth * (shape.window - 1) + 1 if shape.window and tokens is None else 0
    loop = Loop(reach, asked.rows) if reach else None
    said, ended = list[str](), None
    while ended is None:
        left = AT_ONCE if tokens is None else tokens - len(said)
        more, label = reciter.go_on(label, min(left, AT_ONCE if heard is None else HEARD))
        again = None if loop is None else loop.closed(reciter.rows[more])
        names = [model.labels[i] for i in more[:again].tolist()]
        said += names
        if heard is not None and names:
            heard(names)
        ended = "loop" if again else _ended(reciter, label, len(said), tokens)
    text = _text(model, asked.tokens, said)
    seconds = {"prepare": begun - started, "recite": time.perf_counter() - begun}
    told = len(asked.tokens), asked.known, asked.remarks
    return Recitation(text, tuple(said), ended, *told, seconds)


def _ended(reciter: Reciter, label: int, said: int, wanted: int | None) -> Ended | None:
    if reciter.rows[label] < 0:
        return "end"
    if wanted is not None and said >= wanted:
        return "count"
    return "positions" if reciter.seen >= reciter.positions else None


class Loop:
    """Notices when all that a model sees has been seen before."""

    def __init__(self, reach: int, rows: Ints) -> None:
        self._hashes = Fingerprints(reach, BASE, np.empty(0, np.uint64))
        self._tail = rows[-reach:]
        self._seen = set(self._windows(self._tail)[-1:])

    def closed(self, rows: Ints) -> int | None:
        """With how many of these tokens the first loop is complete."""
        whole = np.concatenate([self._tail, rows])
        found = self._windows(whole)[len(self._tail) :]
        self._tail = whole[-self._hashes.window :]
        for i, own in enumerate(found):
            if own in self._seen:
                return i + 1
            self._seen.add(own)
        return None

    def _windows(self, rows: Ints) -> list[int]:
        found: list[int] = self._hashes.of_tokens(rows, np.array([0, len(rows)])).tolist()
        return found


def _text(model: Model, prompt: Sequence[str], said: Sequence[str]) -> str:
    """The text of what is said, as it stands after the prompt."""
    before, whole = (text_of_tokens(model, tokens) for tokens in (prompt, [*prompt, *said]))
    return whole[len(before) :] if whole.startswith(before) else text_of_tokens(model, said)
