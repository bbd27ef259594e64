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
from rankone.training.batches import batches, count
from rankone.training.document import Epoch, EpochLine, Evaluated
from rankone.training.log import Log
from rankone.training.state import Run


def fit(
    run: Run,
    corpus: Corpus,
    evaluate: Callable[[Run], list[Evaluated]],
    log: Log,
    keep: Callable[[], None],
    progress: Progress,
    on_epoch: Callable[[EpochLine], None],
) -> None:
    """Train until the run is over; `keep` is called after every step, and writes checkpoints.

    After the last step of an epoch it is called once the epoch is evaluated, so that there is only
    one state for each number of steps.
    """
    settings, place = run.settings, run.place
    size, each = settings.batch_size, count(corpus, settings.batch_size)
    last = settings.epochs * each
    line = place.curve[-1] if place.curve else None
    while not run.over:
        stage = f"epoch {place.epoch + 1} of {settings.epochs}"
        if line:
            stage += f", accuracy {line['accuracy']:.4f}"
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
        line = finish_epoch(run, corpus)
        evaluations = evaluate(run)
        if evaluations:
            line["evaluations"] = evaluations
        log.add(line)
        keep()
        on_epoch(line)


def finish_epoch(run: Run, corpus: Corpus) -> EpochLine:
    """The line of the log for the epoch that has ended."""
    place, so_far = run.place, run.place.so_far
    right = so_far.right
    if run.settings.accuracy == "after":
        right = right_labels(run.network, corpus, run.processes.device)
    place.epoch += 1
    line: EpochLine = {
        "epoch": place.epoch,
        "loss": so_far.loss / max(1, so_far.tokens),
        "accuracy": right / len(corpus.asked),
        "tokens_per_second": round(so_far.tokens / so_far.seconds, 1),
    }
    place.curve.append(line)
    place.seconds += so_far.seconds
    place.batch, place.so_far = 0, Epoch()
    return line


@torch.no_grad()
def right_labels(network: TokenClassifier, corpus: Corpus, device: torch.device) -> int:
    """The number of labels of the corpus that the network gets right now."""
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
