"""How a run begins to write, and where it continues from."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

from rankone.files import made
from rankone.training.directory import RunDirectory
from rankone.training.document import Document
from rankone.training.log import Log, open_log, write_log
from rankone.training.state import Run
from rankone.training.trained import Evaluation

LOGGER = logging.getLogger("rankone")


def watch(run: Run, evaluation: Evaluation) -> list[str]:
    """Forget a best epoch that patience does not compare with any more."""
    best = run.place.best
    if best is None or (run.settings.patience and best.corpus == evaluation.watched):
        return []
    run.place.best, run.best = None, {}
    if not run.settings.patience:
        return []
    return [
        f"After epoch {run.place.epoch}: the corpus to evaluate on is another one, so patience "
        "starts again."
    ]


def announce(
    directory: RunDirectory | None, changed: list[str], remarks: list[str], *, resume: bool
) -> None:
    """At once: the report may be hours away."""
    for remark in remarks:
        LOGGER.info(remark)
    if directory is None or not resume:
        return
    if directory.found is None:
        LOGGER.info(f"{directory.path}: nothing to resume, so this is a new run")
        return
    for remark in directory.remarks:
        LOGGER.warning(remark)
    place = directory.found.document.place
    what = f"; changed: {', '.join(changed)}" if changed else ""
    LOGGER.info(f"{directory.path}: resumed after epoch {place.epoch}{what}")


def begin_writing(
    stack: contextlib.ExitStack,
    directory: RunDirectory | None,
    board: Path | None,
    run: Run,
    document: Document,
) -> Log:
    """The log, and of a new run its first checkpoint; where that fails, nothing is left."""
    with contextlib.ExitStack() as new:
        if directory is not None:
            new.enter_context(made(directory.path))
            stack.enter_context(directory.taken())
            if not run.place.step:  # where there is a log, there is a checkpoint
                directory.keep(run, document, now=True)
                new.enter_context(_taken_back(directory.last))
            write_log(directory.log, run.place.curve)
        if board is not None:
            new.enter_context(made(board))
        path = directory.log if directory is not None else None
        return stack.enter_context(open_log(path, board, run.place.epoch))


@contextlib.contextmanager
def _taken_back(path: Path | None) -> Iterator[None]:
    """A checkpoint of a run that cannot begin."""
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise


def share(run: Run) -> None:
    """All processes begin where the first one is."""
    if run.processes.world > 1:
        place = run.processes.tell(run.place)
        if not run.processes.first:
            run.begin(place)
        run.processes.agree(list(run.tensors().values()))
