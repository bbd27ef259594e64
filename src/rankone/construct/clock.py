"""Time per stage, told to whoever wants to show progress."""

from __future__ import annotations

import time

from rankone.progress import Progress


class Clock:
    """Time per stage; a stage may come again."""

    def __init__(self, read: float, progress: Progress) -> None:
        self.seconds = {"read": read, "construct": 0.0, "verify": 0.0, "dense": 0.0}
        self.progress, self.stage, self.since = progress, "", 0.0

    def start(self, stage: str) -> None:
        self.stop()
        self.stage, self.since = stage, time.perf_counter()
        self.progress(stage, 0.0)

    def share(self, done: float) -> None:
        self.progress(self.stage, done)

    def stop(self) -> dict[str, float]:
        now = time.perf_counter()
        if self.stage:
            self.seconds[self.stage] += now - self.since
        self.since = now
        return self.seconds
