"""What a run starts with, and how it begins to write."""

from __future__ import annotations

import contextlib
import logging
import math
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rankone.corpus.tokenizers import is_path
from rankone.errors import SettingError, TrainingError
from rankone.files import made
from rankone.plural import plural
from rankone.training.directory import RunDirectory
from rankone.training.document import Document, Start
from rankone.training.evaluation import Evaluation
from rankone.training.log import Log, open_log, write_log
from rankone.training.processes import check_threads
from rankone.training.settings import CHANGEABLE, NAMES, Settings
from rankone.training.state import Run

SECONDS = 60.0  # between checkpoints


def start(
    before: Document | None,
    where: str,
    settings: Settings | Mapping[str, Any] | None = None,
    reading: Mapping[str, Any] | None = None,
    threads: int | None = None,
    checkpoint_seconds: float | None = None,
) -> tuple[Start, list[str]]:
    """What is given, over what a run was started with, over the defaults; and what changed.

    `settings` as `Settings` describe a whole run, and another is refused; a mapping names only
    what is to be set, or changed. None is left to the run, or to the defaults.
    """
    old = {} if before is None else before.settings.to_json()
    strict = isinstance(settings, Settings)
    now = settings if isinstance(settings, Settings) else settings_of(old | dict(settings or {}))
    changed: list[str] = []
    changes = [] if before is None else list(before.changes)
    if before is not None:
        _check_same(before.settings, now, where, strict=strict)
        _check_epochs(before, now, where)
        for name, value in now.to_json().items():
            if value != old[name]:
                changed.append(f"{name} {value} (was {old[name]})")
                if name not in ("epochs", "patience") or now.schedule == "linear":
                    changes.append(f"After epoch {before.place.epoch}: {changed[-1]}.")
    kept = {} if before is None else before.reading
    if is_path(kept.get("tokenizer", "words")) and "tokenizer" not in (reading or {}):
        raise TrainingError(
            "this run names a file as its tokenizer, and no file is opened because of that",
            where=where,
            remedy="name it: --tokenizer PATH",
        )
    if threads is None:
        threads = 1 if before is None else before.threads
    if checkpoint_seconds is None:
        checkpoint_seconds = SECONDS if before is None else before.checkpoint_seconds
    begun = Start(
        settings=now,
        reading={**kept, **(reading or {})},
        threads=check_threads(threads),
        checkpoint_seconds=check_seconds(checkpoint_seconds),
        changes=changes,
    )
    return begun, changed


def settings_of(named: Mapping[str, Any]) -> Settings:
    """Settings from a mapping; unknown names are refused."""
    for name in named:
        if name not in NAMES:
            raise SettingError(
                f"no setting is called {reprlib.repr(name)}",
                remedy=f"give one of {', '.join(NAMES)}",
            )
    return Settings(**named)


def check_seconds(seconds: float) -> float:
    """Time between checkpoints."""
    sound = type(seconds) in (int, float) and 0 <= seconds < math.inf
    SettingError.unless(sound, "checkpoint_seconds", seconds, "a number from 0")
    return float(seconds)


def _check_same(before: Settings, now: Settings, where: str, *, strict: bool) -> None:
    """Refuse what would make it another run."""
    differences = before.differences(now, () if strict else CHANGEABLE)
    if differences:
        changeable = ", ".join(f"--{name}" for name in CHANGEABLE)
        raise TrainingError(
            f"this is another run: {'; '.join(differences)}",
            where=where,
            remedy="leave out what differs, or choose another directory"
            + ("" if strict else f" (a run can be resumed with another {changeable})"),
        )


def _check_epochs(before: Document, settings: Settings, where: str) -> None:
    place = before.place
    if (settings.epochs, 0) < (place.epoch, place.batch):
        raise TrainingError(
            f"{plural(settings.epochs, 'epoch')} asked for, but more are done",
            where=where,
            remedy=f"give --epochs {place.epoch + (place.batch > 0)} or more",
        )


LOGGER = logging.getLogger("rankone")


def watch(run: Run, evaluation: Evaluation) -> list[str]:
    """Forget a best epoch that patience can no longer be compared with."""
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
    """Log the remarks at once: the report may be hours away."""
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
    """Open the log and, for a new run, write a first checkpoint; if that fails, nothing is left."""
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
    """Remove the checkpoint of a run that cannot begin."""
    try:
        yield
    except BaseException:
        if path is not None:
            path.unlink(missing_ok=True)
        raise


def share(run: Run) -> None:
    """Let all processes begin where the first one is."""
    if run.processes.world > 1:
        place = run.processes.tell(run.place)
        if not run.processes.first:
            run.begin(place)
        run.processes.agree(list(run.tensors().values()))
