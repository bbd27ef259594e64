"""Shape checking is on in all tests; hypothesis has a quick and a thorough profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before anything imports these rooms: every annotated shape is checked at run time.
# (Not the compiled loops of kernels: what is compiled cannot be wrapped.)
CHECKED = ["rankone.nn", "rankone.kernels.attention", "rankone.kernels.direct"]
install_import_hook(CHECKED, "beartype.beartype")

quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=30, derandomize=True, **quiet)
settings.register_profile("thorough", max_examples=500, **quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The corpora beside the checkout, which are never part of it."""
    if not SHARED.is_dir():
        pytest.skip("the shared corpora are not beside this checkout")
    return SHARED
