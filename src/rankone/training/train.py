"""Training: a labelled corpus becomes a Transformer of any depth, step by step."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from rankone.corpus import Corpus
from rankone.errors import SettingError
from rankone.nn.store import save_into
from rankone.plural import plural
from rankone.progress import Progress
from rankone.training.directory import RunDirectory
from rankone.training.document import Document, EpochLine, Start
from rankone.training.evaluation import Evaluation
from rankone.training.footprint import check_memory
from rankone.training.initial import initial
from rankone.training.inputs import read_inputs, strange_labels
from rankone.training.log import Log
from rankone.training.loop import fit
from rankone.training.processes import arithmetic, join
from rankone.training.settings import Settings
from rankone.training.start import announce, begin_writing, share, start, watch
from rankone.training.state import Run
from rankone.training.trained import Trained, finish


def train(
    corpus: Corpus | str | os.PathLike[str] | Iterable[Any],
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    checkpoint_seconds: float | None = None,
    evaluate: Sequence[Corpus | str | os.PathLike[str]] = (),
    tensorboard: str | os.PathLike[str] | None = None,
    threads: int | None = None,
    device: str = "cpu",
    reading: Mapping[str, Any] | None = None,
    progress: Progress = lambda *_: None,
    on_epoch: Callable[[EpochLine], None] = lambda _: None,
) -> Trained:
    """Train a Transformer on a labelled corpus, by cross-entropy over its tokens.

    `settings` are `Settings`, or a mapping of those that are not the default. `out` is the
    directory for the log, checkpoints, and at last the model, which `load` and every command read
    as they read a memorized one. A checkpoint is written every `checkpoint_seconds` (60).

    A run that was stopped, at any moment, continues from its last checkpoint with `resume`, and
    ends with the same bits on the same machine and number of `threads` (1; more pay for large
    networks only); one that is finished goes on if there are more epochs now. A resumed run has the
    settings, `reading`, `threads` and `checkpoint_seconds` it was started with; a mapping changes
    only what it names (epochs, patience, lr, schedule or accuracy).

    After every epoch the model is measured on the corpora in `evaluate`. Files are read with the
    keyword arguments of `read_corpus` in `reading`. Under torchrun every process takes its share of
    each batch. `progress` gets the stage and the share of the work that is done, `on_epoch` each
    line of the log.

    >>> import rankone
    >>> rankone.train("toy", {"epochs": 300}).wrong
    0
    """
    if resume and out is None:
        raise SettingError("no directory to resume from", remedy="name it with out (--out)")
    if checkpoint_seconds is not None and out is None:
        raise SettingError(
            "checkpoint_seconds has no effect without a directory",
            remedy="name it with out (--out)",
        )
    with contextlib.ExitStack() as stack:
        processes = stack.enter_context(join(device))
        board = Path(tensorboard) if tensorboard is not None and processes.first else None
        directory = RunDirectory(Path(out), board=board) if out is not None else None

        def open_directory() -> tuple[Start, list[str]]:
            before = None
            if directory is not None:
                stack.enter_context(directory.opened(resume=resume))
                before = directory.found.document if directory.found else None
            return start(before, str(out), settings, reading, threads, checkpoint_seconds)

        opened = processes.tell(processes.first_does(open_directory))
        assert opened is not None
        begun, changed = opened
        corpus, others, how = read_inputs(corpus, evaluate, begun.reading, explicit=bool(reading))
        check_inputs(corpus, others, begun.settings, directory)
        stack.enter_context(arithmetic(begun.threads))
        run = Run(initial(corpus, begun.settings).to(processes.device), begun.settings, processes)
        document = Document(
            **{**vars(begun), "reading": how},
            corpus=corpus.sha256,
            processes=processes.world,
            device=str(processes.device),
            evaluated=[other.source for other in others],
            place=run.place,
        )
        evaluation = Evaluation(corpus, others)
        if not processes.first:
            directory = None

        def begin() -> tuple[Log, list[str]]:
            remarks = strange_labels(corpus, others)
            known = begun.changes
            if directory is not None:
                directory.restore(run, corpus, document)
                known = [*directory.remarks, *known]
            remarks += watch(run, evaluation)
            announce(directory, changed, remarks, resume=resume)
            return begin_writing(stack, directory, board, run, document), [*known, *remarks]

        log, remarks = processes.first_does(begin) or (Log(None), [])
        share(run)
        keep = partial(directory.keep, run, document) if directory is not None else _nothing
        fit(run, corpus, evaluation, log, keep, progress, on_epoch)
        keep(now=True)
        result = finish(run, corpus, others, document, remarks)
        if directory is not None:
            model = save_into(directory.path, result.model.files(report=result.to_json()))
            result = replace(result, files=(directory.log, *model))
    return result


def _nothing(*, now: bool = False) -> None:
    """Keeps no checkpoint."""


def check_inputs(
    corpus: Corpus, others: list[Corpus], settings: Settings, directory: RunDirectory | None
) -> None:
    """Check memory, windows and patience before any work is done."""
    for given in (corpus, *others):
        if given.window:
            raise SettingError(
                f"a window of {plural(given.window, 'token')}, but a network that is trained sees "
                "all that came before",
                where=given.source,
                remedy="leave out window (--window), or memorize the text",
            )
    check_memory(corpus, settings)
    if settings.patience and not others:
        found = directory and directory.found
        before = found.document.evaluated[:1] if found else []
        raise SettingError(
            "patience waits for a better evaluation, but there is nothing to evaluate on",
            remedy=f"name a file with --evaluate{''.join(f' (it was {name})' for name in before)}, "
            "or give --patience 0",
        )
