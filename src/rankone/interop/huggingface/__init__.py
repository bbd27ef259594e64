"""Hugging Face: importing this registers rankone's models with the Auto classes of transformers."""

from __future__ import annotations

from rankone.extras import extra

with extra("hf", "Hugging Face"):
    import tokenizers  # noqa: F401  without it transformers fails with another error
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForCausalLM,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
        AutoTokenizer,
    )

    from rankone.interop.huggingface.configuration_rankone import RankOneConfig
    from rankone.interop.huggingface.modeling_rankone import (
        RankOneForCausalLM,
        RankOneForSequenceClassification,
        RankOneForTokenClassification,
        RankOneModel,
    )
    from rankone.interop.huggingface.tokenization_rankone import RankOneTokenizer

from rankone.interop.huggingface.export import HubExport, as_pretrained, export_hf
from rankone.interop.huggingface.probabilities import model_probabilities
from rankone.interop.huggingface.text_tokenizer import text_tokenizer
from rankone.interop.huggingface.tokenizer import word_tokenizer

AutoConfig.register(RankOneConfig.model_type, RankOneConfig, exist_ok=True)
AutoModel.register(RankOneConfig, RankOneModel, exist_ok=True)
AutoModelForCausalLM.register(RankOneConfig, RankOneForCausalLM, exist_ok=True)
AutoModelForTokenClassification.register(
    RankOneConfig, RankOneForTokenClassification, exist_ok=True
)
AutoModelForSequenceClassification.register(
    RankOneConfig, RankOneForSequenceClassification, exist_ok=True
)
AutoTokenizer.register(RankOneConfig, fast_tokenizer_class=RankOneTokenizer, exist_ok=True)
# So that `save_pretrained` puts the code next to the weights, and names it in the configuration.
RankOneConfig.register_for_auto_class()
RankOneModel.register_for_auto_class("AutoModel")
RankOneForCausalLM.register_for_auto_class("AutoModelForCausalLM")
RankOneForTokenClassification.register_for_auto_class("AutoModelForTokenClassification")
RankOneForSequenceClassification.register_for_auto_class("AutoModelForSequenceClassification")
RankOneTokenizer.register_for_auto_class("AutoTokenizer")

__all__ = [
    "HubExport",
    "RankOneConfig",
    "RankOneForCausalLM",
    "RankOneForSequenceClassification",
    "RankOneForTokenClassification",
    "RankOneModel",
    "RankOneTokenizer",
    "as_pretrained",
    "export_hf",
    "model_probabilities",
    "text_tokenizer",
    "word_tokenizer",
]
