"""The directory of a run: its log and checkpoints while it lasts, and the model when it is done."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType

from rankone.corpus import Corpus
from rankone.errors import OutputError, TrainingError
from rankone.files import refused
from rankone.nn.store import FILES
from rankone.training import checkpoint
from rankone.training.batches import count
from rankone.training.document import Document
from rankone.training.log import LOG
from rankone.training.state import REMEDY, Run

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

BOARD, EVENTS = "tensorboard", "events.out.tfevents."  # may be here too
BEGUN = re.compile(rf"\.({'|'.join(map(re.escape, (*FILES, LOG)))})-.*|\.checkpoint-.*\.new")


class RunDirectory:
    """What a directory holds of a run, and when a checkpoint is due."""

    def __init__(self, path: Path, *, board: Path | None = None) -> None:
        """`board` is where TensorBoard's files go."""
        self.path, self.board = path, board
        self.found: checkpoint.Checkpoint[Document] | None = None
        self.remarks: list[str] = []
        self.last: Path | None = None  # checkpoint that is known to be whole
        self.written = time.monotonic()
        self.holds = False

    @property
    def log(self) -> Path:
        return self.path / LOG

    @contextlib.contextmanager
    def opened(self, *, resume: bool) -> Iterator[None]:
        """Lock the directory, if it exists and holds a run or nothing, and find the checkpoint to
        resume from."""
        self.check(resume=resume)
        with self.held() if self.path.is_dir() else contextlib.nullcontext():
            if resume and self.holds:
                self._find()
            yield

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        """Lock a directory that did not exist before."""
        if self.holds:
            yield
            return
        with self.held():
            self.check(resume=False)  # somebody may have been quicker
            yield

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Lock the directory, and remove what a killed run was about to write."""
        with locked(self.path):
            for entry in self.path.iterdir():
                if BEGUN.fullmatch(entry.name):
                    linked = entry.is_symlink()
                    shutil.rmtree(entry) if entry.is_dir() and not linked else entry.unlink()
            self.holds = True
            yield

    def check(self, *, resume: bool) -> None:
        """Refuse a directory with other files, or with a run that is not to be resumed."""
        with refused("cannot be read", self.path, "choose another directory"):
            names = {entry.name for entry in self.path.iterdir()} if self.path.is_dir() else set()
        if self.board is not None and self.board.parent == self.path:
            names.discard(self.board.name)
        names = {name for name in names if name != BOARD and not name.startswith(EVENTS)}
        run = {name for name in names if checkpoint.NAME.fullmatch(name) or BEGUN.fullmatch(name)}
        strangers = names - run - {*FILES, LOG}
        if resume and any(map(checkpoint.NAME.fullmatch, names)):
            return  # a run, whatever else somebody has put there
        if names and not strangers and not run and LOG not in names:
            strangers = names  # a model that was memorized
        if strangers:
            what = f"holds other files ({', '.join(sorted(strangers)[:3])})"
            remedy = "choose a new or an empty directory"
        elif names and not resume:
            what = "holds a run already"
            remedy = "continue it with --resume, or choose another directory"
        else:
            return
        raise OutputError(what, where=str(self.path), remedy=remedy)

    def _find(self) -> None:
        """The newest checkpoint that is whole."""
        self.found, self.remarks = checkpoint.newest(self.path, Document)
        if self.found is None and self.log.exists():
            raise TrainingError(
                "a log, but no checkpoint",
                where=str(self.path),
                remedy="copy the checkpoint back, or start a new run in another directory",
            )
        self.last = self.found.path if self.found else None
        if self.found and self.remarks:
            step = self.found.document.place.step
            self.remarks.append(f"Resumed from the checkpoint before, step {step:,}.")

    def restore(self, run: Run, corpus: Corpus, now: Document) -> None:
        """Continue from the checkpoint, if there is one; another corpus is refused."""
        if self.found is None:
            return
        before = self.found.document
        if before.corpus != now.corpus:
            raise TrainingError(
                "this is another run: the corpus is another one, or read in another way",
                where=str(self.path),
                remedy="give the file it was started with, or choose another directory",
            )
        if not before.place.fits(count(corpus, run.settings.batch_size)):
            raise TrainingError(
                "a run with these settings and this corpus never is where this checkpoint says",
                where=str(self.found.path),
                remedy=REMEDY,
            )
        for name in ("threads", "processes", "device"):
            old, new = getattr(before, name), getattr(now, name)
            if old != new:
                self.remarks.append(
                    f"{name}: {old} when this run was started, now {new}; results may differ in "
                    "the last bits."
                )
        try:
            run.restore(self.found.tensors, before.place)
        except TrainingError as error:
            where = str(self.found.path)
            raise TrainingError(error.what, where=where, remedy=error.remedy) from None

    def keep(self, run: Run, document: Document, *, now: bool = False) -> None:
        """Write a checkpoint if one is due."""
        if not now and time.monotonic() - self.written < document.checkpoint_seconds:
            return
        run.check()
        stated = asdict(replace(document, place=run.place))
        step, tensors = run.place.step, run.tensors()
        self.last = checkpoint.write(self.path, step, tensors, stated, before=self.last)
        self.written = time.monotonic()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Lock a directory: two runs in it would overwrite each other's files."""
    if fcntl is None:  # no such lock, so nobody is kept out
        yield
        return
    held = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                "another process trains here",
                where=str(directory),
                remedy="wait for it, or choose another directory",
            ) from None
        yield
    finally:
        os.close(held)
