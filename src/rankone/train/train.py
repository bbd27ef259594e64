"""Training: a labelled corpus becomes a Transformer of any depth, step by step."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rankone.corpus import Ceiling, Corpus, as_corpus, contexts
from rankone.corpus.ceilings import best_targets
from rankone.errors import TrainingError
from rankone.nn import Model, TokenClassifier
from rankone.nn.store import save_into
from rankone.progress import Progress
from rankone.train.directory import RunDirectory
from rankone.train.initial import initial
from rankone.train.log import open_log
from rankone.train.loop import fit
from rankone.train.precision import arithmetic
from rankone.train.processes import join
from rankone.train.scores import score
from rankone.train.settings import Settings
from rankone.train.state import Place, Run
from rankone.train.trained import Trained


def train_model(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    settings: Settings | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float = 60.0,
    evaluate: Sequence[Corpus | str | os.PathLike[str]] = (),
    tensorboard: str | os.PathLike[str] | None = None,
    threads: int = 1,
    device: str = "cpu",
    progress: Progress = lambda *_: None,
) -> Trained:
    """Train a Transformer on a labelled corpus, by cross-entropy over its tokens.

    `out` is the directory for the log, checkpoints, and at last the model, which `load` and every
    command read as they read a memorized one. A run that was stopped, at any moment, goes on from
    its last checkpoint with `resume`, and ends with the same bits on the same machine and number of
    `threads` (more than one pays for large networks only); one that is finished goes on if there
    are more epochs now. A checkpoint is written every `checkpoint_seconds`. The finished model is
    measured on the corpora in `evaluate` too. Under torchrun every process takes its share of each
    batch. `progress` is told the stage and the share of the work that is done.

    >>> import rankone
    >>> settings = rankone.Settings(epochs=300)
    >>> rankone.train_model(rankone.read_corpus("toy"), settings).wrong
    0
    """
    if resume and out is None:
        raise TrainingError("no directory to resume from", remedy="name it with out (--out)")
    settings = settings or Settings()
    corpus = as_corpus(corpus)
    settings.network(corpus)  # refuses what does not go together, before all the work
    others = [as_corpus(other) for other in evaluate]
    with contextlib.ExitStack() as stack:
        stack.enter_context(arithmetic(threads))
        processes = stack.enter_context(join(device))
        board = Path(tensorboard) if tensorboard is not None and processes.first else None
        directory = None
        if out is not None and processes.first:
            directory = RunDirectory(
                Path(out),
                corpus,
                machine={"threads": threads, "processes": processes.world},
                seconds=checkpoint_seconds,
                board=board,
            )
        run = Run(initial(corpus, settings).to(processes.device), settings, processes)

        def begin() -> list[str]:
            if directory is None:
                return []
            stack.enter_context(directory.begun(resume=resume))
            return _go_on(run, directory)

        remarks = processes.first_does(begin) or []
        _share(run)

        def keep(*, now: bool = False) -> None:
            if directory is not None:
                directory.keep(run, now=now)

        log = stack.enter_context(
            open_log(directory.log if directory else None, board, run.place.epoch)
        )
        if not run.place.step:  # before the log: where there is a log, there is a checkpoint
            keep(now=True)
        log.begin(run.place.curve)
        fit(run, corpus, log, keep, progress)
        keep(now=True)
        result = _finish(run, corpus, others, remarks)
        if directory is not None:
            result.files.append(directory.log)
            files = result.model.files(report=result.to_json())
            result.files.extend(save_into(directory.path, files))
    return result


def _go_on(run: Run, directory: RunDirectory) -> list[str]:
    """Bring the run to where its last checkpoint is, if there is one."""
    found, remarks = directory.find(run.settings)
    for remark in remarks:  # at once: the report may be hours away
        logging.getLogger("rankone").warning(remark)
    if found is not None:
        run.restore(found.tensors, Place.from_json(found.document["place"]))
    return remarks


def _share(run: Run) -> None:
    """All processes begin where the first one is."""
    if run.processes.world > 1:
        tensors, place = run.tensors(), run.processes.tell(run.place)
        run.processes.agree(list(tensors.values()))
        run.restore(tensors, place)


def _finish(run: Run, corpus: Corpus, others: list[Corpus], remarks: list[str]) -> Trained:
    run.check()
    network = run.network.cpu()
    set_unknown_row(network, corpus)
    model = Model(network, corpus.vocabulary, corpus.label_names, corpus.reading)
    place = run.place
    try:
        with np.errstate(over="raise", invalid="raise"):
            own, *evaluations = [score(model, one) for one in (corpus, *others)]
    except FloatingPointError:
        raise run.diverged("the output", place.step) from None
    return Trained(
        model=model,
        source=corpus.source,
        tokens=corpus.n_tokens,
        sentences=corpus.n_sentences,
        parameters=sum(p.numel() for p in network.parameters()),
        epochs=place.epoch,
        steps=place.step,
        loss=place.curve[-1]["loss"],
        accuracy=own.accuracy,
        wrong=own.tokens - own.right,
        ceilings=ceilings(corpus, run.settings),
        curve=place.curve,
        evaluations=evaluations,
        settings={**run.settings.to_json(), "scheme": corpus.scheme},
        seconds=place.seconds,
        tokens_per_second=place.epoch * corpus.n_tokens / place.seconds,
        remarks=remarks,
        files=[],
    )


def ceilings(corpus: Corpus, settings: Settings) -> dict[str, Ceiling]:
    """The best of any function of the token, and of all that the network sees."""
    seen = {
        "token": contexts.by_token(corpus),
        "input": contexts.visible_contexts(corpus, positions=settings.positions, causal=False),
    }
    errors = {name: best_targets(seen[name], corpus.label_ids).errors for name in seen}
    return {name: Ceiling.of(e, corpus.n_tokens) for name, e in errors.items()}


@torch.no_grad()
def set_unknown_row(network: TokenClassifier, corpus: Corpus) -> None:
    """An unknown word is most like the rarest, those seen once: it stands at their mean."""
    times = np.bincount(corpus.token_ids, minlength=len(corpus.vocabulary))
    alike = np.flatnonzero(times == times.min())
    network.table[-1] = network.table[torch.from_numpy(alike)].mean(0)
