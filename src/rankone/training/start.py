"""What a run starts with: what is given, and, if it is resumed, what it was started with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rankone.errors import SettingError, TrainingError
from rankone.plural import plural
from rankone.training.document import Document, Reading
from rankone.training.processes import check_threads
from rankone.training.settings import CHANGEABLE, NAMES, Settings, short

SECONDS = 60.0  # between checkpoints


@dataclass(frozen=True)
class Given:
    """What the caller names; None is what the caller leaves to the run, or to the defaults.

    ``settings`` as `Settings` describe a whole run, and another is refused; a mapping names only
    what is to be set, or changed.
    """

    settings: Settings | Mapping[str, Any] | None = None
    reading: Mapping[str, Any] | None = None
    threads: int | None = None
    checkpoint_seconds: float | None = None


@dataclass(frozen=True)
class Start:
    """``changed`` says what is not as before; ``changes`` what a reader of the figures has to know
    of it, from all times that this run was resumed."""

    settings: Settings
    reading: Reading
    threads: int
    checkpoint_seconds: float
    changed: list[str]
    changes: list[str]


def start(given: Given, before: Document | None, where: str) -> Start:
    """What is given, over what a run was started with, over the defaults."""
    old = {} if before is None else before.settings.to_json()
    if given.settings is None or isinstance(given.settings, Mapping):
        named = dict(given.settings or {})
        settings = settings_of(old | named)
    else:
        settings = given.settings
        named = settings.to_json()
    changed, changes = [], list(before.changes if before is not None else [])
    if before is not None:
        strict = isinstance(given.settings, Settings)
        _check_same(before.settings, settings, where, strict=strict)
        _check_epochs(before, settings, where)
        for name, value in settings.to_json().items():
            if value != old[name]:
                changed.append(f"{name} {value} (was {old[name]})")
                if name not in ("epochs", "patience") or settings.schedule == "linear":
                    changes.append(f"After epoch {before.place.epoch}: {changed[-1]}.")
    threads = given.threads
    if threads is None:
        threads = before.threads if before is not None else 1
    seconds = given.checkpoint_seconds
    if seconds is None:
        seconds = before.checkpoint_seconds if before is not None else SECONDS
    reading: Reading = {**(before.reading if before is not None else {}), **(given.reading or {})}
    return Start(
        settings=settings,
        reading=reading,
        threads=check_threads(threads),
        checkpoint_seconds=check_seconds(seconds),
        changed=changed,
        changes=changes,
    )


def settings_of(named: Mapping[str, Any]) -> Settings:
    """Settings from a mapping, in which every name has to be one."""
    for name in named:
        if name not in NAMES:
            raise SettingError(
                f"no setting is called {short(name)}", remedy=f"give one of {', '.join(NAMES)}"
            )
    return Settings(**named)


def check_seconds(seconds: float) -> float:
    """Time between checkpoints."""
    if type(seconds) not in (int, float) or not 0 <= seconds < math.inf:
        raise SettingError(
            f"checkpoint_seconds cannot be {short(seconds)}", remedy="give a number from 0"
        )
    return float(seconds)


def _check_same(before: Settings, now: Settings, where: str, *, strict: bool) -> None:
    """Refuse what would make it another run."""
    differences = before.differences(now)
    if not strict:
        old, new = asdict(before), asdict(now)
        differences = [
            f"{name} {new[name]}, not {old[name]}"
            for name in old
            if new[name] != old[name] and name not in CHANGEABLE
        ]
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
