"""A Ray of our own talks to nobody else."""

from __future__ import annotations

import os
import secrets
import sys


def keep_private() -> None:
    """Before Ray is imported, which then reads these variables: it answers only who has its token,
    which it would write into the home directory if there were none, and sends no statistics."""
    if "ray" not in sys.modules and not any(name.startswith("RAY_AUTH") for name in os.environ):
        os.environ.update({"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
