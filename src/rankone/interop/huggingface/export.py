"""A directory that transformers opens: weights, code, tokenizer, model card."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rankone.certify import Certificate
from rankone.errors import ExportError, ModelError
from rankone.files import check_new, write_directory
from rankone.interop.extras import extra
from rankone.interop.huggingface.card import model_card
from rankone.interop.huggingface.convert import as_pretrained
from rankone.interop.huggingface.tokenizer import lost_words, word_tokenizer
from rankone.nn import Model, hub
from rankone.nn.documents import read_document
from rankone.nn.store import CERTIFICATE, CONFIG, REPORT, WEIGHTS, as_json

with extra("hf", "Hugging Face"):
    from transformers.utils import logging

    from rankone.interop.huggingface.modeling_rankone import RankOneForTokenClassification

CARD, CODE = "README.md", "modeling_rankone.py"
FILES = (WEIGHTS, CONFIG, CODE, hub.TOKENIZER, "tokenizer_config.json", CARD, REPORT, CERTIFICATE)


@dataclass(frozen=True)
class HubExport:
    """The files, and ``remarks`` on what a user of them should know."""

    files: list[Path]
    remarks: list[str]

    def to_json(self) -> dict[str, Any]:
        return {"files": [str(path) for path in self.files], "remarks": self.remarks}


def export_hf(
    model: Model,
    directory: str | os.PathLike[str],
    *,
    report: Mapping[str, Any] | None = None,
    certificate: Certificate | None = None,
) -> HubExport:
    """Write the directory, whole or not at all: it is read back first, and must be bit for bit the
    same. `report` and `certificate` go into the model card; the certificate must be the model's.
    """
    target = check_hf_target(directory)
    if certificate is not None and not certificate.is_of(model):
        raise ModelError(
            "the certificate speaks of another model", remedy="certify this one, and export again"
        )
    tokenizer = word_tokenizer(model.vocabulary, lower=bool(model.reading.get("lower")))
    with tempfile.TemporaryDirectory() as scratch:
        with _without_bars():
            as_pretrained(model).save_pretrained(scratch)
            tokenizer.save_pretrained(scratch)
            _check(model, scratch)
        contents = {path.name: path.read_bytes() for path in sorted(Path(scratch).iterdir())}
    card = model_card(model, target.resolve().name, report=report, certificate=certificate)
    contents[CARD] = card.encode()
    if report is not None:
        contents[REPORT] = as_json(dict(report), indent=2)
    if certificate is not None:
        contents[CERTIFICATE] = as_json(certificate.to_json(), indent=2)
    return HubExport(write_directory(target, contents), _remarks(model, tokenizer))


def check_hf_target(directory: str | os.PathLike[str]) -> Path:
    """A new directory, an empty one, or an earlier export."""
    return check_new(directory, FILES, _is_export)


def _is_export(home: Path) -> bool:
    try:
        return hub.is_hub(read_document(home / CONFIG))
    except ModelError:
        return False


@contextlib.contextmanager
def _without_bars() -> Iterator[None]:
    """transformers shows a bar for what takes a millisecond; ours is above it."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _check(model: Model, directory: str) -> None:
    found = RankOneForTokenClassification.from_pretrained(directory).state_dict()
    before = dict(model.network.named_parameters())
    same = before.keys() == found.keys() and all(
        tensor.dtype == found[name].dtype and torch.equal(tensor, found[name])
        for name, tensor in before.items()
    )
    if not same:
        raise ExportError(
            "transformers does not give the weights back as they are",
            remedy="install another version of transformers 5",
        )


def _remarks(model: Model, tokenizer: Any) -> list[str]:
    lost = lost_words(tokenizer, model.vocabulary)
    if not lost:
        return []
    return [
        f"{len(lost)} words cannot be told to the tokenizer, which takes them apart or for unknown "
        f"ones (the first is {lost[0]!r}); give their rows as input_ids"
    ]
