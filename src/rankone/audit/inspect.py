"""The audit: counts, ceilings and findings of a corpus, before any model."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rankone.arrays import Bools, Floats
from rankone.audit.figures import conflicts_of, figures_of
from rankone.audit.findings import Suspect
from rankone.audit.leaks import compare
from rankone.audit.pieces import unmarked
from rankone.audit.result import Audit
from rankone.corpus.conflicts import Conflict
from rankone.corpus.contexts import by_sequence
from rankone.corpus.corpus import Corpus
from rankone.corpus.distributions import fit_distributions
from rankone.corpus.join import join
from rankone.corpus.joined import join_parts
from rankone.corpus.parted import PartedCorpus, parted
from rankone.corpus.read import as_corpus
from rankone.corpus.rows import Column
from rankone.corpus.tallies import best_targets
from rankone.corpus.tasks import asks_next, of_texts
from rankone.engines import open_engine
from rankone.errors import SettingError
from rankone.progress import Progress

Given = Corpus | PartedCorpus | str | os.PathLike[str] | Iterable[Any]
ALONE = (str, os.PathLike, Corpus, PartedCorpus)


def inspect(
    corpus: Given | Sequence[Given],
    *,
    against: Given | Sequence[Given] = (),
    suspects: int = 0,
    above: float | None = None,
    probabilities: Floats | None = None,
    token_column: Column | None = None,
    label_column: Column | None = None,
    progress: Progress = lambda *_: None,
) -> Audit:
    """Count, compute the best that any model could do, and list what is wrong with the labels.

    Takes whatever `memorize` takes (a corpus, a path, sentences, a dataset, a data frame), or a
    list of paths or corpora, which are read as one; also corpora in parts that one engine keeps,
    which need not fit in memory (`rankone.corpus.parted`). `against` are other splits: sentences
    that leak, rows that contradict each other across files. `suspects` is how many of the tokens
    most likely to be mislabelled to list, and `above` a score above which all are listed; the other
    splits vote too. `probabilities` are those of any model, one row per token of the corpus and one
    column per label, in the order of ``corpus.label_names``.

    >>> inspect("builtin").ceilings["sequence"]
    Ceiling(accuracy=1.0, errors=0)
    """
    looked_for = suspects > 0 or above is not None
    if suspects < 0 or (probabilities is not None and not looked_for):
        what = f"suspects={suspects}" + (" with probabilities" if probabilities is not None else "")
        raise SettingError(what, remedy="give the number of suspects to list, 1 or more")
    if any(isinstance(item, PartedCorpus) for item in (*_several(corpus), *_several(against))):
        return _of_parts(corpus, against, suspects, above, probabilities, progress)
    own = join(_corpora(corpus, token_column, label_column) or [as_corpus([])])
    if looked_for and of_texts(own.task):
        what = f"suspects are single labels of tokens, which the task {own.task!r} does not have"
        raise SettingError(what, where=own.source, remedy="leave out suspects")
    others = _corpora(against, token_column, label_column)
    seconds = {"read": own.seconds + sum(other.seconds for other in others)}
    started = time.perf_counter()
    progress("inspect", 0.0)
    figures = figures_of(own)
    whole, sizes = join([own, *others]), [part.n_sentences for part in (own, *others)]
    side = np.repeat(np.arange(len(sizes)), sizes)  # 0 is the corpus, i > 0 another split
    if others and not asks_next(own.task):
        figures["conflicts"] = _conflicts_across(whole, side == 0)
    comparisons = []
    for i, other in enumerate(others, 1):
        progress("compare", (i - 1) / len(others))
        comparisons.append(compare(whole, side == 0, side == i, other.source))
    seconds["inspect"] = time.perf_counter() - started
    found: tuple[Suspect, ...] = ()
    if looked_for:
        from rankone.audit.suspects import find_suspects  # which compiles its loops

        given = probabilities
        if given is not None:
            given = fit_distributions(np.asarray(given), own.label_names, own, "probabilities")
        progress("suspects", 0.0)
        started = time.perf_counter()
        at_once = parted(whole, open_engine("here"), whole.n_tokens)
        found = find_suspects(at_once, own.n_tokens, suspects, given, above=above)
        seconds["suspects"] = time.perf_counter() - started
    return Audit(**figures, against=tuple(comparisons), suspects=found, seconds=seconds)


def _corpora(
    given: Given | Sequence[Given], token_column: Column | None, label_column: Column | None
) -> list[Corpus]:
    return [unmarked(as_corpus(item, token_column, label_column)) for item in _several(given)]


def _several(given: Given | Sequence[Given]) -> Sequence[Any]:
    """One corpus or several: a list of paths and corpora is several, of anything else sentences."""
    several = isinstance(given, list | tuple) and all(isinstance(item, ALONE) for item in given)
    return given if several else [given]  # type: ignore[return-value]


def _of_parts(
    corpus: Any,
    against: Any,
    suspects: int,
    above: float | None,
    probabilities: Floats | None,
    progress: Progress,
) -> Audit:
    from rankone.audit.parted.inspect import inspect_parts

    own, others = [*_several(corpus)], [*_several(against)]
    engines = {getattr(each, "engine", None) for each in (*own, *others)}
    if len(engines) > 1 or probabilities is not None:
        what = "probabilities" if len(engines) == 1 else "corpora in memory, or of another engine"
        raise SettingError(
            f"a corpus in parts does not go with {what}",
            where=own[0].source if isinstance(own[0], PartedCorpus) else None,
            remedy="read all of it into memory, or all of it with one engine and files alone",
        )
    return inspect_parts(join_parts(own), others, suspects, above, progress)


def _conflicts_across(whole: Corpus, own: Bools) -> tuple[Conflict, ...]:
    """The contexts of our own sentences that carry several labels, in whichever split."""
    contexts = by_sequence(whole)
    members = best_targets(contexts, whole.label_ids).members
    ours = np.unique(contexts[own[whole.sentence_of]])
    return conflicts_of(whole, contexts, members[np.isin(contexts[members], ours)])
