"""Does a model recite a corpus? Where it parts from it, and whether that could be avoided."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rankone.arrays import Bools, Ints
from rankone.corpus import Corpus
from rankone.corpus.contexts import visible_contexts
from rankone.corpus.read import corpus_like
from rankone.corpus.tasks import END
from rankone.errors import CorpusError
from rankone.nn import Model, load
from rankone.nn.ragged import LONGER, check_lengths
from rankone.plural import plural
from rankone.progress import Progress
from rankone.recitation.prompt import CANNOT_TELL, check_task, text_of_tokens
from rankone.recitation.reciter import Reciter
from rankone.recitation.result import Branch, RecitationCheck

LISTED = 10_000  # branches
BEFORE = 12  # tokens of a text that are shown before a branch


def check_recitation(
    model: Model | str | os.PathLike[str],
    corpus: Corpus | str | os.PathLike[str] | Sequence[str],
    *,
    progress: Progress = lambda *_: None,
) -> RecitationCheck:
    """Recite all documents of a corpus, each from its first token.

    Where what the model says is not what the text has, that is a branch, and the model goes on
    after the token of the text. The corpus, usually the one that the model was made of, may be a
    path or texts, which are read as the model's own were.

    >>> import rankone
    >>> corpus = rankone.Corpus.from_texts(["A rose is a rose is a rose."], window=2)
    >>> found = rankone.check_recitation(rankone.memorize(corpus).model, corpus)
    >>> found.ok, found.tokens, found.recited, [(b.text, b.said) for b in found.branches]
    (True, 9, 8, [('.', ' is')])
    """
    started = time.perf_counter()
    model = load(model) if isinstance(model, str | os.PathLike) else model
    check_task(model)
    corpus = corpus_like(corpus, model.reading, model.labels, labelled=True)
    _check_reading(model, corpus)
    check_lengths(corpus.lengths, model.positions, corpus.place_of_sentence, LONGER)
    reciter = Reciter(model)
    begun = time.perf_counter()
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    labels = _recited(reciter, rows, corpus.offsets, progress)
    done = time.perf_counter()
    number = {name: i for i, name in enumerate(corpus.label_names)}
    said = np.array([number.get(name, -1) for name in model.labels])[labels]
    asked = corpus.label_ids >= 0
    wrong = asked & (said != corpus.label_ids)
    parted = np.flatnonzero(wrong)
    avoidable = _avoidable(model, corpus, parted, said)
    strange, remarks = None, list[str]()
    if model.contexts is None:
        remarks.append(CANNOT_TELL)
    else:
        strange = int((asked & ~model.contexts.know(rows, corpus.offsets)).sum())
    if strange:
        what = f"{plural(strange, 'token')} with contexts that are not in the corpus of the model"
        remarks.append(f"{what}: this is another text")
    documents = corpus.n_sentences
    return RecitationCheck(
        source=corpus.source,
        documents=documents,
        tokens=int(asked.sum()),
        recited=int(asked.sum()) - len(parted),
        whole=documents - len(np.unique(corpus.sentence_of[parted])),
        parted=len(parted),
        avoidable=int(avoidable.sum()),
        strange=strange,
        branches=_branches(model, corpus, labels, parted[:LISTED], avoidable),
        remarks=tuple(remarks),
        seconds={
            "prepare": begun - started,
            "recite": done - begun,
            "compare": time.perf_counter() - done,
        },
    )


def _check_reading(model: Model, corpus: Corpus) -> None:
    own = "next", model.network.shape.window
    if (corpus.task, corpus.window) != own:
        raise CorpusError(
            f"a corpus of the task {corpus.task!r} with a window of {corpus.window}, for a model "
            f"with a window of {own[1]}",
            where=corpus.source,
            remedy="give a path or texts, which are read as those of the model were",
        )


def _recited(reciter: Reciter, rows: Ints, offsets: Ints, progress: Progress) -> Ints:
    """The label after every token; those of a document are seen one after the other."""
    said = np.empty(len(rows), np.int64)
    for a, b in pairwise(offsets.tolist()):
        progress("recite", a / len(rows))
        reciter.begin()
        said[a:b] = reciter.follow(rows[a:b])
    return said


def _avoidable(model: Model, corpus: Corpus, parted: Ints, said: Ints) -> Bools:
    """For each branch, whether some other token follows its context more often."""
    shape, asked, placed = model.network.shape, corpus.asked, bool(model.positions)
    contexts = visible_contexts(
        corpus, positions=placed, causal=True, depth=shape.depth, window=shape.window
    )
    size = len(corpus.label_names) + 1
    keys = contexts * size + corpus.label_ids
    found, counts = np.unique(keys[asked], return_counts=True)
    most = np.zeros(corpus.n_tokens, np.int64)
    np.maximum.at(most, found // size, counts)
    wanted = contexts[parted] * size + said[parted]  # with -1, a number that no other pair has
    at = np.minimum(np.searchsorted(found, wanted), len(found) - 1)
    own = np.where(found[at] == wanted, counts[at], 0)
    return np.asarray(own < most[contexts[parted]])


def _readable(model: Model, token: str) -> str:
    """As it stands in the text; the end of a document has no text."""
    return token if token == END else text_of_tokens(model, [token])


def _branches(
    model: Model, corpus: Corpus, labels: Ints, parted: Ints, avoidable: Bools
) -> tuple[Branch, ...]:
    """What is said of each, from the last token before it."""
    begins, ends = int(corpus.window > 0), corpus.offsets[1:].tolist()
    documents = corpus.sentence_of[parted].tolist()
    found = []
    for i, j, better in zip(parted.tolist(), documents, avoidable.tolist(), strict=False):
        first = int(corpus.offsets[j]) + begins
        before = corpus.token_ids[max(first, i + 1 - BEFORE) : i + 1].tolist()
        found.append(
            Branch(
                line=int(corpus.lines[min(i + 1, ends[j] - 1)]),
                file=corpus.files[corpus.file_ids[j]],
                document=j + 1,
                position=i + 2 - first,
                before=text_of_tokens(model, [corpus.vocabulary[k] for k in before]),
                text=_readable(model, corpus.label_names[corpus.label_ids[i]]),
                said=_readable(model, model.labels[labels[i]]),
                avoidable=better,
            )
        )
    return tuple(found)
