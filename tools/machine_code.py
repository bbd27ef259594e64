"""Machine code for `tools/mutate.py`: made once, for all processes that do not change it.

What is compiled keeps its machine code as long as its module is loaded. So the kernels are
compiled before processes are forked, and each of these forgets the modules that see its change.
"""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path

ROOM = "rankone.kernels"
# Not the compiler: it is loaded anew with the fingerprint of what was changed.
LOOPS = "exponential merge_and_refine placement polynomials sentences tally_and_read transform"
COMPILED = ["chebyshev", *(f"compiled.{name}" for name in f"{LOOPS} triangle".split())]


def compile_kernels() -> None:
    """Both precisions, whole and causal, forward and backward, and the loops over sentences."""
    import numpy as np

    from rankone.kernels.compiled import batch, sentences

    for number in (np.float64, np.float32):
        row = np.linspace(-1.0, 1.0, 2 * batch.LEAF).astype(number)[None]
        for causal in (False, True):
            out, total = batch.forward(row, row, row[None], None, causal=causal)
            batch.backward(out, row, row, row[None], None, out, total, causal=causal)
        x, offsets = row[0, :4], np.array([0, 4])
        mean, weights = np.empty_like(x), np.empty(16, number)
        sentences.attend(x, x, x, offsets, False, mean, weights)
        sentences.turn(x, x, x, x, offsets, False, mean, weights, *np.zeros((3, 4), number))


def forget(source: Path, changed: Path) -> None:
    """All modules of the package but what is compiled and imports nothing that was changed.

    And jaxtyping, which pytest wants to load itself.
    """
    stem = ".".join(changed.with_suffix("").parts[1:])  # below the room
    kept = {f"{ROOM}.{name}" for name in COMPILED if stem not in _imports(source, name)}
    for module in [name for name in sys.modules if name.split(".")[0] in ("rankone", "jaxtyping")]:
        if module not in kept:
            del sys.modules[module]


@cache
def _imports(source: Path, name: str) -> frozenset[str]:
    """Modules of the room that a module is made from, itself among them."""
    found = {name}
    path = source.joinpath("kernels", *name.split(".")).with_suffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM):
            part = (node.module or "").removeprefix(ROOM).removeprefix(".")
            rooms = ("", "compiled", "portable")
            names = [part] if part not in rooms else [alias.name for alias in node.names]
            for each in names:
                found |= _imports(source, f"{part}.{each}" if part in rooms[1:] else each)
    return frozenset(found)
