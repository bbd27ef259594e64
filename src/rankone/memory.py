"""The memory of this machine."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def installed(unknown: int = 8 * 10**9) -> int:
    """Bytes of memory that this machine, or the container, has; `unknown` if it does not say."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        total = unknown
    with contextlib.suppress(OSError, ValueError):
        total = min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return total
