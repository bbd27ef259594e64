"""What is told of memory beforehand is about what it takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
import resource, sys
from rankone import approximate
from rankone.approximation.memory import needed
name, n, d, cells, readout = sys.argv[1:]
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
settings = {"n": int(n), "d": int(d), "readout": readout, "samples": 1024}
approximate(name, grid=2, **settings)
before = peak()
result = approximate(name, grid=int(cells), **settings)
print(peak() - before, needed(result.grid, result.outputs, linear=readout == "linear"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts as Linux does")
@pytest.mark.parametrize(
    "settings",
    [
        ("mean-centring", "2", "1", "700", "constant"),
        ("mean-centring", "2", "1", "400", "linear"),
        ("softmax", "2", "2", "24", "constant"),
        ("nearest", "3", "1", "90", "constant"),
    ],
)
def test_the_estimate_is_of_the_size_of_what_is_taken(settings: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", CODE, *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    taken, told = map(int, done.stdout.split())
    assert told / 4 <= taken <= 2 * told  # the peak of a process depends on what was freed before
