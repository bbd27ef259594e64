"""What docs/interop.md shows runs as it stands, each block by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs" / "interop.md"
BLOCKS = re.findall(r"```py\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)


def test_there_are_blocks() -> None:
    assert len(BLOCKS) == 4


@pytest.mark.parametrize("block", BLOCKS, ids=["hf", "data", "onnx", "sklearn"])
def test_a_block_runs_as_printed(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(block, names)
    if "logits" in names:
        assert names["logits"].shape == (1, 3, 5)
