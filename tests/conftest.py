"""Shape checking is on in all tests; hypothesis has a quick and a thorough profile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from jaxtyping import install_import_hook

# Before anything imports torch: threads that have nothing to do sleep. By default they spin, which
# takes the core that the other tests need; on two cores most of the time went there.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Before anything imports these rooms: every annotated shape is checked at run time.
# (Not the compiled loops of kernels: what is compiled cannot be wrapped.)
CHECKED = ["rankone.nn", "rankone.kernels.batched", "rankone.kernels.direct"]
install_import_hook(CHECKED, "beartype.beartype")

quiet = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("quick", max_examples=20, derandomize=True, **quiet)
settings.register_profile("thorough", max_examples=500, **quiet)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """No test is named after an address: processes would collect different tests, at times."""
    named = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if named:
        raise pytest.UsageError(f"give these parameters ids of their own: {named}")


SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The corpora beside the checkout, which are never part of it."""
    if not SHARED.is_dir():
        pytest.skip("the shared corpora are not beside this checkout")
    return SHARED
