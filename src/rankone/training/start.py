"""What a run starts with: what is given, over what it was started with, if it is resumed."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Any

from rankone.errors import SettingError, TrainingError
from rankone.plural import plural
from rankone.training.document import Document, Start
from rankone.training.processes import check_threads
from rankone.training.settings import CHANGEABLE, NAMES, Settings

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
    if threads is None:
        threads = 1 if before is None else before.threads
    if checkpoint_seconds is None:
        checkpoint_seconds = SECONDS if before is None else before.checkpoint_seconds
    begun = Start(
        settings=now,
        reading={**(before.reading if before is not None else {}), **(reading or {})},
        threads=check_threads(threads),
        checkpoint_seconds=check_seconds(checkpoint_seconds),
        changes=changes,
    )
    return begun, changed


def settings_of(named: Mapping[str, Any]) -> Settings:
    """Settings from a mapping, in which every name has to be one."""
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
