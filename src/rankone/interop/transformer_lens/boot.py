"""`TransformerBridge.boot_transformers` for directories of rankone; unchanged for all others."""

from __future__ import annotations

import inspect
from functools import wraps
from pathlib import Path
from typing import Any

from transformer_lens.model_bridge.sources.transformers import boot
from transformers import AutoTokenizer

from rankone.documents import has_field, read_document
from rankone.errors import ModelError
from rankone.interop.huggingface import (
    RankOneForCausalLM,
    RankOneForSequenceClassification,
    RankOneForTokenClassification,
)
from rankone.interop.huggingface.export import without_bars
from rankone.interop.huggingface.pretrained_rankone import RankOnePreTrainedModel
from rankone.interop.huggingface.tokenizer import unused
from rankone.nn import hub, load

PADDING = "[PAD]"
CLASSES = {
    kind.__name__: kind
    for kind in (
        RankOneForCausalLM,
        RankOneForSequenceClassification,
        RankOneForTokenClassification,
    )
}


@wraps(boot)
def boot_transformers(*args: Any, **kwargs: Any) -> Any:
    """As in TransformerLens. A directory that rankone exported is opened in the class that was
    saved and in its own precision (float64 too), on the CPU, unless `dtype` or `device` says
    otherwise: TransformerLens would take a causal language model in float32.
    """
    call = inspect.signature(boot).bind(*args, **kwargs)
    given = call.arguments
    home, model = Path(str(given["model_name"])), given.get("hf_model")
    if model is None and given.get("load_weights", True) and _is_ours(home):
        model = _opened(home)
        model.to(device=given.setdefault("device", "cpu"), dtype=given.get("dtype"))
        if given.get("tokenizer") is None:
            given["tokenizer"] = AutoTokenizer.from_pretrained(home)
    if isinstance(model, RankOnePreTrainedModel):
        given |= {"hf_model": model, "dtype": model.dtype}
        model.config.architectures = [type(model).__name__]
        if given.get("tokenizer") is not None:
            _pad_apart(given["tokenizer"], model)
    return boot(*call.args, **call.kwargs)


def _pad_apart(tokenizer: Any, model: RankOnePreTrainedModel) -> None:
    """Pad with a token of its own: TransformerLens finds padding by its number, and would take
    unknown words for padding, which have the same one otherwise."""
    if tokenizer.pad_token_id == tokenizer.unk_token_id:
        name = unused(PADDING, tokenizer.get_vocab())
        tokenizer.add_special_tokens({"pad_token": name})
        model.config.pad_token_id = tokenizer.pad_token_id


def _is_ours(home: Path) -> bool:
    """Whether it is a directory that rankone exported; refuses those that are no model at all."""
    if not home.is_dir():
        return False  # the name of a model, which TransformerLens looks for
    if has_field(home / hub.CONFIG, "model_type", hub.MODEL_TYPE):
        return True
    about = read_document(home / hub.CONFIG, dict[str, Any]) if (home / hub.CONFIG).exists() else {}
    if "model_type" not in about:
        raise ModelError(
            "is not a model in the layout of Hugging Face",
            where=str(home),
            remedy="export one (rankone export MODEL --hf DIR), and open that directory",
        )
    return False


def _opened(home: Path) -> Any:
    load(home)  # what is damaged is refused with one message
    (name,) = read_document(home / hub.CONFIG, dict[str, Any]).get("architectures") or [None]
    if name not in CLASSES:
        raise ModelError(
            f"holds a {name}, which has no logits",
            where=str(home / hub.CONFIG),
            remedy=f"save one of {', '.join(CLASSES)}",
        )
    with without_bars():
        return CLASSES[name].from_pretrained(home)
