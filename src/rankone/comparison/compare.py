"""Compare constructions: build each for one corpus, run it, certify it, and tell its size."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from rankone import choices
from rankone.certification import certify
from rankone.certification.certify import CAP, check_limits
from rankone.comparison.result import Comparison, Row
from rankone.comparison.sizes import sizes
from rankone.construct import memorize
from rankone.construct.constructions import CONSTRUCTIONS
from rankone.construct.exact import Network, digit_limit
from rankone.construct.label_entropy import entropies
from rankone.construct.problem import RESERVE, Problem, pose
from rankone.construct.verify import check_fast
from rankone.corpus import Corpus, as_corpus
from rankone.corpus.contexts import sentences_with_repeats
from rankone.corpus.tasks import task_of
from rankone.deadline import TimeIsUpError, time_left, time_limit
from rankone.errors import PrecisionError, RankOneError, SettingError, UnfitError
from rankone.nn import Model, TokenClassifier
from rankone.nn.exact import ExactModel, ExactNetwork
from rankone.progress import Progress

SECONDS = 120.0  # for each construction
FLOAT64 = 1.0  # seconds to try float64 with, if a construction has used up its own


def compare(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any] = "toy",
    *,
    constructions: Sequence[choices.Construction] | None = None,
    positions: bool | None = None,
    last: bool = False,
    cap: int = CAP,
    seconds: float = SECONDS,
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> Comparison:
    """Build, run and certify constructions of the field on one corpus.

    Takes whatever `memorize` takes as a corpus. `constructions` are all by default. `positions`
    adds positional encodings; the default is to do so if some sentence repeats a token, since most
    theorems are about sequences without repeats. `last` asks for the label of the last token of
    each sentence only, as in next-token prediction. A construction that does not fit, needs more
    than `cap` digits or takes longer than `seconds` gets a row with the reason, and the others go
    on. Ctrl-C ends the comparison, and the rows that are done are
    returned.

    >>> import rankone
    >>> rows = rankone.compare("toy", constructions=["line", "kajitsuka2024-deep"]).rows
    >>> [(row.outcome.value, row.attentions, row.wrong) for row in rows]
    [('certified', 1, 0), ('certified', 1, 0)]
    """
    chosen = check_constructions(constructions)
    check_limits(cap, seconds)
    began = time.perf_counter()
    corpus = asking(as_corpus(corpus), last)
    if positions is None:
        positions = sentences_with_repeats(corpus) > 0
    problem = posed(corpus, positions)
    rows, interrupted = list[Row](), False
    try:
        for name, variant in variants(chosen):
            row = built_row(problem, name, variant, cap, seconds, seed, progress)
            with time_limit(max(FLOAT64, seconds - row.seconds)):
                rows.append(replace(row, float64=_fits(row, problem)))
    except KeyboardInterrupt:
        interrupted = True
    if not interrupted and all(row.model is None for row in rows):
        raise none_fits(corpus, rows)
    times = {row.name: row.seconds for row in rows}
    return Comparison(
        source=corpus.source,
        sentences=corpus.n_sentences,
        tokens=corpus.n_tokens,
        positions=problem.placed,
        rows=tuple(rows),
        interrupted=interrupted,
        seconds={**times, "total": time.perf_counter() - began},
    )


def asking(corpus: Corpus, last: bool) -> Corpus:
    """The corpus, with all of its labels, or only those of last tokens."""
    if not last:
        return corpus
    labels = np.full_like(corpus.label_ids, -1)
    ends = corpus.offsets[1:] - 1
    labels[ends] = corpus.label_ids[ends]
    return replace(corpus, label_ids=labels)


def check_constructions(names: Sequence[str] | None) -> list[choices.Construction]:
    """The names, all of them by default; an error for one that is unknown."""
    known: tuple[choices.Construction, ...] = get_args(choices.Construction)
    if names is None:
        return list(known)
    if isinstance(names, str) or not names:
        raise SettingError(
            "constructions must be a list of names", remedy=f"give some of {list(known)}"
        )
    for name in names:
        SettingError.unless(name in known, "constructions", name, " or ".join(known))
    return [name for name in known if name in names]


def variants(names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Every variant of these constructions."""
    for name in names:
        for variant in CONSTRUCTIONS[name].variants:
            yield name, variant


def posed(corpus: Corpus, positions: bool) -> Problem:
    """The problem that all constructions solve."""
    length = corpus.longest if positions else 1
    causal = task_of(corpus.task).causal
    return pose([corpus], positions=positions, length=length, causal=causal)


def built_row(
    problem: Problem,
    name: str,
    variant: str,
    cap: int,
    seconds: float,
    seed: int,
    progress: Progress,
) -> Row:
    """The row of one variant, whatever happens but Ctrl-C."""
    row, began = Row(name, variant or None), time.perf_counter()
    progress(row.name, 0.0)
    try:
        with time_limit(seconds), digit_limit(cap):
            row = _certified(row, _network(problem, name, variant, seed), problem, cap, progress)
    except TimeIsUpError:
        row = replace(row, reason=f"took longer than {seconds:g} s (--seconds)")
    except RankOneError as error:
        row = replace(row, reason=error.what)
    except MemoryError:
        row = replace(row, reason="did not fit in memory")
    return replace(row, seconds=time.perf_counter() - began)


def _network(problem: Problem, name: str, variant: str, seed: int) -> Network:
    build = CONSTRUCTIONS[name].variants[variant]
    if build is not None:
        return build(problem, seed)
    given: Any = name
    corpus = problem.corpus
    return memorize(
        corpus, construction=given, positions=problem.placed, causal=problem.causal, seed=seed
    ).model.network


def _certified(row: Row, network: Network, problem: Problem, cap: int, progress: Progress) -> Row:
    """The row with its sizes, and what a certificate says."""
    corpus, model = problem.corpus, _model(network, problem.corpus)
    row = replace(row, **vars(sizes(network)), model=model)

    def tell(stage: str, share: float) -> None:
        progress(f"{row.name}: {stage}", share)

    certificate = certify(model, corpus, cap=cap, seconds=time_left(), progress=tell)
    left = certificate.left
    found = None
    if CONSTRUCTIONS[row.construction].distributions and isinstance(network, ExactNetwork):
        with contextlib.suppress(TimeIsUpError):
            found = entropies(network, problem)
    return replace(
        row,
        digits=certificate.digits,
        contexts=certificate.contexts,
        wrong=None if left is not None and left.tokens else certificate.wrong,
        unavoidable=certificate.unavoidable,
        outcome=certificate.outcome,
        reason=certificate.reason,
        entropy=None if found is None else found.data,
        cross_entropy=None if found is None else found.network,
        certificate=certificate,
    )


def _model(network: Network, corpus: Corpus) -> Model | ExactModel:
    kind = Model if isinstance(network, TokenClassifier) else ExactModel
    return kind(network, corpus.vocabulary, corpus.label_names, corpus.reading)  # type: ignore[arg-type]


def _fits(row: Row, problem: Problem) -> bool | None:
    """Whether the weights are float64 numbers, and the float64 network right; None if there was no
    time to find out."""
    if row.model is None or isinstance(row.model, Model):
        return None if row.model is None else True
    try:
        return check_fast(row.model.to_float64().network, problem)[0].holds(RESERVE)
    except PrecisionError:
        return False
    except TimeIsUpError:
        return None


def none_fits(corpus: Corpus, rows: Sequence[Row]) -> UnfitError:
    """Why no construction fits, one by one."""
    reasons = "\n".join(f"    {row.name}: {row.reason}" for row in rows)
    return UnfitError(
        f"none of these constructions fits\n{reasons}",
        where=corpus.source,
        remedy="choose others (--constructions), or give more digits (--cap) or time (--seconds)",
    )
