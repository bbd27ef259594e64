"""The directory of a run: its log and checkpoints while it lasts, and the model when it is done."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from rankone.corpus import Corpus
from rankone.errors import OutputError, TrainingError
from rankone.files import make_directory
from rankone.nn.store import FILES
from rankone.train import checkpoint
from rankone.train.log import LOG
from rankone.train.settings import Settings
from rankone.train.state import Run

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None

BOARD, EVENTS = "tensorboard", "events.out.tfevents."  # may lie here too
BEGUN = re.compile(rf"\.({'|'.join(map(re.escape, (*FILES, LOG)))})-.*|\.checkpoint-.*\.new")


class RunDirectory:
    """Knows what a directory holds of a run, and when a checkpoint is due."""

    def __init__(
        self,
        path: Path,
        corpus: Corpus,
        *,
        machine: Mapping[str, int],
        seconds: float,
        board: Path | None = None,
    ) -> None:
        """`machine` is what the last bits depend on; `board` where TensorBoard's files go."""
        self.path, self.machine, self.seconds, self.board = path, dict(machine), seconds, board
        self.corpus = fingerprint(corpus)
        self.written = time.monotonic()
        self.last: Path | None = None  # checkpoint that is known to be whole

    @property
    def log(self) -> Path:
        return self.path / LOG

    @contextlib.contextmanager
    def begun(self, *, resume: bool) -> Iterator[None]:
        """Hold a new or an empty directory, or, to resume, that of a run."""
        self.check(resume=resume)
        make_directory(self.path)
        with locked(self.path):
            for entry in self.path.iterdir():
                if BEGUN.fullmatch(entry.name):  # what a killed run was about to write
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            yield

    def check(self, *, resume: bool) -> None:
        """Refuse, before any work is done, what is not ours, or not meant."""
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
            remedy = "go on with it by --resume, or choose another directory"
        else:
            return
        raise OutputError(what, where=str(self.path), remedy=remedy)

    def find(self, settings: Settings) -> tuple[checkpoint.Checkpoint | None, list[str]]:
        """The checkpoint to go on from, and remarks; refuses that of another run."""
        found, remarks = checkpoint.newest(self.path)
        if found is None:
            if self.log.exists():
                raise TrainingError(
                    "a log, but no checkpoint",
                    where=str(self.path),
                    remedy="copy the checkpoint back, or train anew in another directory",
                )
            return None, []
        self.last, before = found.path, found.document
        place = before["place"]
        if (settings.epochs, 0) < (place["epoch"], place["batch"]):
            raise TrainingError(
                f"{settings.epochs} epochs are asked for, more are done",
                where=str(self.path),
                remedy=f"give --epochs {place['epoch'] + (place['batch'] > 0)} or more",
            )
        differences = Settings(**before["settings"]).differences(settings)
        if before["corpus"] != self.corpus:
            differences.append("the corpus is another one, or read in another way")
        if differences:
            raise TrainingError(
                f"this is another run: {'; '.join(differences)}",
                where=str(self.path),
                remedy="give the settings and the file it was begun with, or another directory",
            )
        if remarks:
            remarks.append(f"Went on from the checkpoint before, step {place['step']:,}.")
        for name, number in self.machine.items():
            if before.get(name, number) != number:
                remarks.append(
                    f"{name}: {before[name]} when this was begun, now {number}; results may differ "
                    "in the last bits."
                )
        return found, remarks

    def keep(self, run: Run, *, now: bool = False) -> None:
        """Write a checkpoint if one is due."""
        if not now and time.monotonic() - self.written < self.seconds:
            return
        run.check()
        document = {
            "settings": run.settings.to_json(),
            "corpus": self.corpus,
            **self.machine,
            "place": run.place.to_json(),
        }
        self.last = checkpoint.write(
            self.path, run.place.step, run.tensors(), document, before=self.last
        )
        self.written = time.monotonic()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Two runs in one directory would write over each other."""
    if fcntl is None:  # where there is no such lock, nobody is kept out
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


def fingerprint(corpus: Corpus) -> str:
    """The same for corpora that train the same: words, labels, and where sentences end."""
    digest = sha256()
    for words in (corpus.vocabulary, corpus.label_names):
        digest.update("".join(f"{word}\0" for word in (*words, "")).encode())
    for column in (corpus.token_ids, corpus.label_ids, corpus.offsets):
        digest.update(column.tobytes())
    return digest.hexdigest()
