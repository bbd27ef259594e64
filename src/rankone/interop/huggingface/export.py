"""A directory that transformers opens: weights, code, tokenizer, model card."""

from __future__ import annotations

import contextlib
import os
import reprlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn

from rankone.certification import Certificate
from rankone.certification.certificate import model_hashes
from rankone.corpus.tasks import BEGIN, END, asks_next
from rankone.documents import convert_document, dump, has_field
from rankone.errors import ExportError, ModelError, OutputError
from rankone.extras import extra
from rankone.files import check_new, write_directory
from rankone.interop.huggingface.card import Report, is_constructed, model_card
from rankone.interop.huggingface.text_tokenizer import (
    split_otherwise,
    text_tokenizer,
    with_marks,
)
from rankone.interop.huggingface.tokenizer import lost_words, word_tokenizer
from rankone.nn import Model, hub, load
from rankone.nn.classifier import dtype_name
from rankone.nn.store import CERTIFICATE, CONFIG, REPORT, WEIGHTS
from rankone.plural import plural

with extra("hf", "Hugging Face"):
    from transformers.utils import logging

    from rankone.interop.huggingface.configuration_rankone import CONSTRUCTED, RankOneConfig
    from rankone.interop.huggingface.modeling_rankone import (
        RankOneForCausalLM,
        RankOneForSequenceClassification,
        RankOneForTokenClassification,
    )
    from rankone.interop.huggingface.pretrained_rankone import checksum
    from rankone.interop.huggingface.tokenization_rankone import RankOneTokenizer

CARD, GENERATION = "README.md", "generation_config.json"
CODE = tuple(
    f"{name}_rankone.py"
    for name in (
        "cache",
        "configuration",
        "layers",
        "lookup",
        "modeling",
        "plan",
        "pretrained",
        "tokenization",
    )
)
TOKENIZER = (hub.TOKENIZER, "tokenizer_config.json")
AGAIN = "remove the file, or make the model again"
FILES = (WEIGHTS, CONFIG, GENERATION, *CODE, *TOKENIZER, CARD, REPORT, CERTIFICATE)


@dataclass(frozen=True)
class HubExport:
    """The files, and ``remarks`` on what a user of them should know."""

    files: tuple[Path, ...]
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """True: a directory that does not come back bit for bit is an error, and not written."""
        return True

    def to_json(self) -> dict[str, Any]:
        files = [str(path) for path in self.files]
        return {"ok": self.ok, "files": files, "remarks": list(self.remarks)}


@dataclass(frozen=True)
class PreparedHub:
    """The contents of a directory, all checked; `write` writes them, whole or not at all."""

    directory: Path
    contents: dict[str, bytes]
    remarks: tuple[str, ...]

    def write(self) -> HubExport:
        return HubExport(tuple(write_directory(self.directory, self.contents)), self.remarks)


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
    return prepare_hf(model, directory, report=report, certificate=certificate).write()


def prepare_hf(
    model: Model,
    directory: str | os.PathLike[str],
    *,
    report: Mapping[str, Any] | None = None,
    certificate: Certificate | None = None,
) -> PreparedHub:
    """All that `export_hf` does before it writes."""
    target = check_hf_target(directory)
    if certificate is not None and not certificate.is_of(model):
        raise ModelError(
            "is about another model",
            where=CERTIFICATE,
            remedy="certify this one, or remove the file, and export again",
        )
    remarks, weights = [], model_hashes(model)["weights"]
    shown = None if report is None else convert_document(report, Report, REPORT, remedy=AGAIN)
    if report is not None and report.get("weights", weights) != weights:
        remarks.append("The report is about other weights, and is left out.")
        report = shown = None
    tokenizer, lost = _tokenizer(model)
    contents = _written(model, tokenizer)
    name = target.resolve().name
    contents[CARD] = model_card(model, name, report=shown, certificate=certificate).encode()
    if report is not None:
        contents[REPORT] = dump({**report, "weights": weights}, indent=2)
    if certificate is not None:
        contents[CERTIFICATE] = dump(certificate.to_json(), indent=2)
    remarks += lost
    return PreparedHub(target, contents, tuple(remarks))


Pretrained = RankOneForTokenClassification | RankOneForSequenceClassification | RankOneForCausalLM


def _tokenizer(model: Model) -> tuple[RankOneTokenizer, list[str]]:
    """That of the model, and a remark if it does not find every token that rankone finds."""
    words, name = model.vocabulary, model.reading.get("tokenizer")
    lower, longest = bool(model.reading.get("lower")), model.positions or None
    if name is not None:
        tokenizer = text_tokenizer(words, name, lower=lower, max_length=longest)
    else:
        tokenizer = word_tokenizer(words, lower=lower, max_length=longest)
    if asks_next(model.task.name):
        with_marks(tokenizer, words)
    if name is not None:
        texts = split_otherwise(tokenizer, words, name, lower=lower)
        if not texts:
            return tokenizer, []
        shown = reprlib.repr(texts[0])
        what = f"The tokenizer splits some texts of the vocabulary otherwise (one begins {shown})"
    else:
        lost = lost_words(tokenizer, words, lower=lower)
        if not lost:
            return tokenizer, []
        what = (
            f"The tokenizer splits or does not know {plural(len(lost), 'word')} of the vocabulary "
            f"({lost[0]!r}{', ...' if lost[1:] else ''})"
        )
    return tokenizer, [f"{what}; give the row in `input_ids` instead."]


def as_pretrained(model: Model, *, tokenizer: RankOneTokenizer | None = None) -> Pretrained:
    """A model in the class that transformers knows, which depends on its task: the same parameters,
    shared. The way back is `save_pretrained`, with the tokenizer, and `rankone.load`.

    `tokenizer` tells of tokens that the model has no row for, by default those of `word_tokenizer`.
    """
    network, weights = model.network, dict(model.network.named_parameters())
    constructed, rows = is_constructed(network), network.shape.vocabulary
    more: dict[str, Any] = {}
    if tokenizer is not None and len(tokenizer) > rows:
        more |= {"tokenizer_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    if asks_next(model.task.name):
        more |= _marks(model, tokenizer)
        weights["head.token"] = _next_tokens(model, more["eos_token_id"])
    else:
        more["id2label"] = dict(enumerate(model.labels))
        more["label2id"] = {label: i for i, label in enumerate(model.labels)}
    if model.task.whole and len(model.labels) > 1:  # for one label there is no such type
        more["problem_type"] = "single_label_classification"
    shape = {theirs: getattr(network.shape, ours) for ours, theirs in hub.NAMES.items()}
    config = RankOneConfig(
        reading=model.reading,
        dtype=network.dtype,
        made_by=CONSTRUCTED if constructed else None,
        made_in=dtype_name(network),
        made_sha256=checksum(weights) if constructed else None,
        **{**shape, **more},
    )
    with torch.device("meta"):
        found = pretrained_class(model)(config)
    found.load_state_dict(weights, assign=True)
    found.eval()
    return found


def _marks(model: Model, tokenizer: RankOneTokenizer | None) -> dict[str, Any]:
    """What the configuration of a language model says of its tokens."""
    rows, words = model.network.shape.vocabulary, model.vocabulary
    found = {"eos_token_id": rows, "pad_token_id": rows + 1, "vocab_size": rows + 2}
    if tokenizer is not None:
        found = {name: getattr(tokenizer, name) for name in ("eos_token_id", "pad_token_id")}
        found["vocab_size"] = len(tokenizer)
    return {
        **found,
        "bos_token_id": words.index(BEGIN) if BEGIN in words else None,
        "next_tokens": len(model.labels),
        "table_rows": rows,
        "tokenizer_size": 0,
        "max_position_embeddings": model.positions or None,
    }


def _next_tokens(model: Model, end: int) -> nn.Parameter:
    """The numbers of the tokens that are the labels of a language model."""
    number = {END: end} | {word: row for row, word in enumerate(model.vocabulary)}
    missing = [label for label in model.labels if label not in number]
    if missing:
        raise ModelError(
            f"the next token {reprlib.repr(missing[0])} is not in the vocabulary",
            remedy="memorize the text again",
        )
    found = torch.tensor([number[label] for label in model.labels])
    return nn.Parameter(found, requires_grad=False)


def pretrained_class(model: Model) -> type[Pretrained]:
    """The class of transformers for the task of a model."""
    if asks_next(model.task.name):
        return RankOneForCausalLM
    whole = model.task.whole
    return RankOneForSequenceClassification if whole else RankOneForTokenClassification


def _written(model: Model, tokenizer: Any) -> dict[str, bytes]:
    """The files that transformers writes, once it is checked that they can be read back."""
    try:
        with tempfile.TemporaryDirectory() as scratch, without_bars():
            as_pretrained(model, tokenizer=tokenizer).save_pretrained(scratch)
            tokenizer.save_pretrained(scratch)
            _check(model, scratch)
            return {path.name: path.read_bytes() for path in sorted(Path(scratch).iterdir())}
    except (OSError, SafetensorError) as error:
        raise OutputError(
            f"cannot write ({getattr(error, 'strerror', None) or error})",
            where="the directory for temporary files",
            remedy="make room there, or name another one in TMPDIR",
        ) from None


def check_hf_target(directory: str | os.PathLike[str]) -> Path:
    """Allow a new directory, an empty one, or an earlier export."""
    kind = "model_type", hub.MODEL_TYPE
    return check_new(directory, FILES, lambda home: has_field(home / CONFIG, *kind))


@contextlib.contextmanager
def without_bars() -> Iterator[None]:
    """Hide the progress bars of transformers, for work that takes a millisecond."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _check(model: Model, directory: str) -> None:
    found = pretrained_class(model).from_pretrained(directory)
    again = load(directory)
    words = (model.vocabulary, model.labels) == (again.vocabulary, again.labels)
    for state in (found.state_dict(), again.network.state_dict()):
        before = dict(model.network.named_parameters())
        same = before.keys() == state.keys() - {"head.token"} and all(
            tensor.dtype == state[name].dtype and torch.equal(tensor, state[name])
            for name, tensor in before.items()
        )
        if not same or not words:
            raise ExportError(
                "transformers does not give the model back as it is",
                remedy="install another version of transformers 5",
            )
