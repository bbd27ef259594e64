"""A token classifier of transformers: a local directory, opened and looked at before it is run."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rankone.corpus.distributions import Remark
from rankone.corpus.source import printable
from rankone.errors import ProbabilityError
from rankone.extras import extra
from rankone.interop.huggingface.export import without_bars

with extra("hf", "Hugging Face"):
    from tokenizers import pre_tokenizers
    from transformers import AutoModelForTokenClassification, AutoTokenizer

LOCAL = {"local_files_only": True, "trust_remote_code": False}
SAVED = "give a directory that `save_pretrained` of a token classifier and its tokenizer wrote"
UNNAMED = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class Classifier:
    """A model and its tokenizer; ``longest`` is how many sub-words it takes, None for any."""

    source: str
    model: Any
    tokenizer: Any
    labels: list[str]
    longest: int | None


def open_classifier(directory: str | os.PathLike[str], remark: Remark) -> Classifier:
    """Refuse what cannot be run, or would give numbers that mean nothing."""
    source = printable(os.fspath(directory))
    if not Path(directory).is_dir():
        raise ProbabilityError("no such directory", where=source, remedy="check the path")
    try:
        with without_bars():
            tokenizer = AutoTokenizer.from_pretrained(os.fspath(directory), **LOCAL)
            model, loading = AutoModelForTokenClassification.from_pretrained(
                os.fspath(directory), **LOCAL, use_safetensors=True, output_loading_info=True
            )
    except Exception as problem:  # whatever transformers makes of other people's files
        raise ProbabilityError(
            f"transformers cannot open this as a token classifier ({first_line(problem)})",
            where=source,
            remedy=f"{SAVED} (of a rankone model: rankone export MODEL --hf DIRECTORY)",
        ) from None
    lacking = sorted(loading["missing_keys"])
    if lacking:
        raise ProbabilityError(
            f"no weights for {', '.join(lacking[:3])}, so the labels would be random",
            where=source,
            remedy="give a model that was trained for token classification",
        )
    if not tokenizer.is_fast:
        raise ProbabilityError(
            f"{type(tokenizer).__name__} is not a fast tokenizer: it does not tell which word "
            "a sub-word belongs to",
            where=source,
            remedy="save the directory with a fast tokenizer (a tokenizer.json), or write the "
            "probabilities to a file",
        )
    if _begin_words_with_blanks(tokenizer):
        remark(f"{source}: words are given to the byte-level tokenizer with a blank before")
    if model.dtype in (torch.float16, torch.bfloat16):
        model.float()
    return Classifier(source, model, tokenizer, _labels(model, source), _longest(model, tokenizer))


def _labels(model: Any, source: str) -> list[str]:
    names = dict(model.config.id2label)
    labels = [str(names.get(i, "")) for i in range(len(names))]
    if "" in labels or any(UNNAMED.fullmatch(label) for label in labels):
        raise ProbabilityError(
            f"the labels have no names ({', '.join(map(repr, list(names.values())[:3]))})",
            where=source,
            remedy='name them in config.json: "id2label": {"0": "O", "1": "B-PER"} and so on',
        )
    return labels


def _longest(model: Any, tokenizer: Any) -> int | None:
    """The most sub-words of a sentence, special tokens included; None if nothing limits them."""
    config = model.config.get_text_config()
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            before = -1 if module.padding_idx is None else module.padding_idx  # as in RoBERTa
            limits.append(module.num_embeddings - before - 1)
    known = [int(limit) for limit in limits if limit and limit > 0 and limit < 10**9]
    return min(known, default=None)


def _begin_words_with_blanks(tokenizer: Any) -> bool:
    """A byte-level tokenizer glues words that are given one by one, unless it is set not to."""
    found = tokenizer.backend_tokenizer.pre_tokenizer
    several = isinstance(found, pre_tokenizers.Sequence)
    parts: list[Any] = list(found) if several else [found]
    glued = [
        part
        for part in parts
        if isinstance(part, pre_tokenizers.ByteLevel) and not part.add_prefix_space
    ]
    for part in glued:
        part.add_prefix_space = True
    return bool(glued)


def first_line(problem: Exception) -> str:
    """The first line of what another library says."""
    return (str(problem).strip().splitlines() or [type(problem).__name__])[0][:200]
