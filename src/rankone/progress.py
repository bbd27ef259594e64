"""How long computations report progress: the stage, and the share of it that is done."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
