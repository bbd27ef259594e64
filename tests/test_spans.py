"""Places of tokens in sentences that are laid end to end, and runs of whole sentences."""

from __future__ import annotations

import numpy as np
import pytest

from rankone.spans import places, spans


def test_places_count_from_the_start_of_each_sentence() -> None:
    assert places(np.array([0, 3, 4, 6])).tolist() == [0, 1, 2, 0, 0, 1]
    assert places(np.array([5, 7, 8])).tolist() == [0, 1, 0]
    assert places(np.array([0])).tolist() == []


@pytest.mark.parametrize(
    ("size", "runs"),
    [(1, [(0, 1), (1, 2), (2, 3)]), (4, [(0, 2), (2, 3)]), (5, [(0, 2), (2, 3)]), (6, [(0, 3)])],
)
def test_runs_are_whole_sentences_of_about_the_size(size: int, runs: list[tuple[int, int]]) -> None:
    assert list(spans(np.array([0, 3, 4, 6]), size)) == runs
