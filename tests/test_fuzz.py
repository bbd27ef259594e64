"""The targets of tools/fuzz.py hold on what they begin with, and on a few things beside it."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

path = Path(__file__).parents[1] / "tools" / "fuzz.py"
spec = importlib.util.spec_from_file_location("fuzz", path)
assert spec is not None
fuzz = importlib.util.module_from_spec(spec)
assert spec.loader is not None
spec.loader.exec_module(fuzz)


@pytest.mark.parametrize("name", fuzz.TARGETS)
def test_every_target_runs_on_its_seeds(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", None)  # put back afterwards
    target = fuzz.TARGETS[name](tmp_path)
    run = fuzz.kept(target.run)
    for seed in target.seeds:
        run(seed)
    for seed in target.seeds[:: max(1, len(target.seeds) // 4)]:
        for other in (b"", seed[:1], seed[: len(seed) // 2], seed[:-1] + b"\xff", seed + seed):
            run(other)


@given(st.sampled_from(fuzz.ROWS), st.integers(0, 255), st.data())
def test_corpora_with_bytes_put_in_are_read_or_refused(
    rows: bytes, how: int, data: st.DataObject
) -> None:
    a, b = sorted(data.draw(st.tuples(*[st.integers(0, len(rows))] * 2)))
    stdin = sys.stdin
    try:
        changed = rows[:a] + data.draw(st.binary()) + rows[b:]
        fuzz.kept(fuzz.corpus(Path()).run)(bytes([how]) + changed)
    finally:
        sys.stdin = stdin
