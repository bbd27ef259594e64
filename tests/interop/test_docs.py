"""What docs/interop.md and the model card show runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datasets
import pytest

import rankone

DOCS = Path(__file__).resolve().parents[2] / "docs" / "interop.md"


def blocks(text: str) -> list[str]:
    return re.findall(r"```py\n(.*?)```", text, re.S)


def test_every_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = rankone.memorize("builtin")
    rankone.export_hf(result.model, "hf", report=result.to_json())
    rankone.export_onnx(result.model, "model.onnx")
    corpus = rankone.builtin_corpus(60)
    columns = {
        "tokens": [list(s.tokens) for s in corpus.sentences],
        "ner_tags": [list(s.labels) for s in corpus.sentences],
    }
    given = datasets.Dataset.from_dict(columns)
    monkeypatch.setattr(datasets, "load_dataset", lambda *_, **__: given)
    names: dict[str, Any] = {
        "dataset": given.rename_columns({"tokens": "words", "ner_tags": "pos"}),
        "sequences": columns["tokens"],
        "labels": columns["ner_tags"],
    }
    found = blocks(DOCS.read_text())
    assert len(found) == 4
    for block in found:
        exec(block, names)
    assert names["logits"].shape == (1, 3, 5)
    card = blocks(Path("hf", "README.md").read_text())
    assert len(card) == 3
    for block in card:
        exec(block, names)
    capsys.readouterr()
