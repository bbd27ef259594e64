"""The example examples/one_fact.py: what it takes out is one fact, and nothing else."""

from __future__ import annotations

import importlib
import logging
from pathlib import Path
from typing import Any

import pytest

LEVEL = logging.getLogger("transformers").level
pytest.importorskip("transformer_lens", reason="the extra lens is not installed")

TEXT = """\
The keeper of the tower wound the clock at seven. "At seven," said the keeper, "the tower sleeps."
The clock said seven, and the tower slept.

At eight the keeper said nothing. The clock of the tower said eight, and then it said nothing.
"""


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "examples"))
    found = importlib.import_module("one_fact")
    logging.getLogger("transformers").setLevel(LEVEL)  # TransformerLens silences it
    monkeypatch.setattr(found, "ROW", 7)
    return found


def test_one_fact(example: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Words in the middle of a row, across two, in the second text; and words that go on as usual,
    for which there is no unit."""
    (tmp_path / "a.txt").write_text(TEXT)
    given = ["--corpus", str(tmp_path / "a.txt"), "--window", "4"]
    changes = []
    for text, wanted in {
        "The clock of the": " tower",
        "and then it": " said",
        "wound the": " clock",
        '"At seven," said the': " keeper",
    }.items():
        fact = example.main([*given, "--text", text])
        assert (fact.wanted, fact.elsewhere, fact.tokens) == (wanted, 0, 62)
        assert fact.changed == (fact.wanted != fact.instead) == bool(fact.units)
        said = capsys.readouterr().out
        assert ("something else comes now after 1 of 62 tokens" in said) == fact.changed
        assert ("no unit fires there" in said) != fact.changed
        changes.append(fact.changed)
    assert changes == [0, 0, 1, 1]
    with pytest.raises(SystemExit, match="'the' must stand in the corpus once"):
        example.main([*given, "--text", "the"])
    with pytest.raises(SystemExit):
        example.main([*given, "--window", "0"])
