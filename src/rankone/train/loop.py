"""The loop: epochs of batches, a line in the log after each, checkpoints in between."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch.nn import functional

from rankone.corpus import Corpus
from rankone.nn import TokenClassifier
from rankone.nn.ragged import Ragged
from rankone.progress import Progress
from rankone.spans import spans
from rankone.train.batches import batches, count
from rankone.train.document import Epoch, Evaluated, Line
from rankone.train.log import Log
from rankone.train.state import Run


def fit(
    run: Run,
    corpus: Corpus,
    evaluate: Callable[[Run], list[Evaluated]],
    log: Log,
    keep: Callable[[], None],
    progress: Progress,
    on_epoch: Callable[[Line], None],
) -> None:
    """Train until the run is over; `keep` is called after every step, and writes what is due.

    After the last step of an epoch that is when the epoch is evaluated, so that there is one state
    for each number of steps.
    """
    settings, place = run.settings, run.place
    size, each = settings.batch_size, count(corpus, settings.batch_size)
    last = settings.epochs * each
    told = place.curve[-1] if place.curve else None
    while not run.over:
        stage = f"epoch {place.epoch + 1} of {settings.epochs}"
        if told:
            stage += f", accuracy {told['accuracy']:.4f}"
        for batch in batches(
            corpus,
            size,
            seed=settings.seed,
            epoch=place.epoch,
            first=place.batch,
            processes=run.processes,
        ):
            started = time.perf_counter()
            left = 1 - place.step / last if settings.schedule == "linear" else 1.0
            run.step(batch, settings.lr * left)
            place.so_far.seconds += time.perf_counter() - started
            progress(stage, place.step / last)
            if place.batch < each:
                keep()
        told = finish_epoch(run, corpus)
        evaluations = evaluate(run)
        if evaluations:
            told["evaluations"] = evaluations
        log.add(told)
        keep()
        on_epoch(told)


def finish_epoch(run: Run, corpus: Corpus) -> Line:
    """The line of the log for the epoch that is over."""
    place, so_far = run.place, run.place.so_far
    right = so_far.right
    if run.settings.accuracy == "after":
        right = right_labels(run.network, corpus, run.processes.device)
    place.epoch += 1
    line: Line = {
        "epoch": place.epoch,
        "loss": so_far.loss / so_far.tokens,
        "accuracy": right / corpus.n_tokens,
        "tokens_per_second": round(so_far.tokens / so_far.seconds, 1),
    }
    place.curve.append(line)
    place.seconds += so_far.seconds
    place.batch, place.so_far = 0, Epoch()
    return line


@torch.no_grad()
def right_labels(network: TokenClassifier, corpus: Corpus, device: torch.device) -> int:
    """How many labels of the corpus the network gives as it is now."""
    ids = torch.from_numpy(corpus.token_ids).to(device)
    labels = torch.from_numpy(corpus.label_ids).to(device)
    right = 0
    for first, last in spans(corpus.offsets, 1 << 12):
        offsets = corpus.offsets[first : last + 1]
        at = slice(int(offsets[0]), int(offsets[-1]))
        rows = functional.embedding(ids[at], network.table)
        logits = network.ragged(rows, Ragged(offsets - offsets[0], device))
        right += int((logits.argmax(1) == labels[at]).sum())
    return right
