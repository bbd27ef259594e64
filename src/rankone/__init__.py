"""One-layer rank-1 softmax Transformers, after Kajitsuka and Sato (ICLR 2024).

Everything public is importable from here. Names are resolved on first use, so that
``import rankone`` itself loads neither numpy nor torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankone.approximation import Approximation, converge, load_approximation
    from rankone.approximation.approximate import approximate
    from rankone.certify import Certificate, certify_model
    from rankone.construct import Memorized, read_vectors
    from rankone.construct.memorize import memorize
    from rankone.corpus import Audit, Corpus, Sentence, builtin_corpus, inspect, read_corpus
    from rankone.errors import RankOneError
    from rankone.kernels import rank1_attention
    from rankone.nn import Model, MultiheadRank1Attention, load
    from rankone.train import Settings, Trained, train_model

_HOME = {
    "Approximation": "approximation",
    "Audit": "corpus",
    "Certificate": "certify",
    "Corpus": "corpus",
    "Memorized": "construct",
    "Model": "nn",
    "MultiheadRank1Attention": "nn",
    "RankOneError": "errors",
    "Sentence": "corpus",
    "Settings": "train",
    "Trained": "train",
    "approximate": "approximation",
    "builtin_corpus": "corpus",
    "certify_model": "certify",
    "converge": "approximation",
    "inspect": "corpus",
    "load": "nn",
    "load_approximation": "approximation",
    "memorize": "construct",
    "rank1_attention": "kernels",
    "read_corpus": "corpus",
    "read_vectors": "construct",
    "train_model": "train",
}

__all__ = [
    "Approximation",
    "Audit",
    "Certificate",
    "Corpus",
    "Memorized",
    "Model",
    "MultiheadRank1Attention",
    "RankOneError",
    "Sentence",
    "Settings",
    "Trained",
    "approximate",
    "builtin_corpus",
    "certify_model",
    "converge",
    "inspect",
    "load",
    "load_approximation",
    "memorize",
    "rank1_attention",
    "read_corpus",
    "read_vectors",
    "train_model",
]
# Not in __all__: they need extras, and `from rankone import *` must not.
_EXTRAS = {
    "RankOneClassifier": "interop.sklearn",
    "RankOneConfig": "interop.huggingface",
    "RankOneForTokenClassification": "interop.huggingface",
    "export_hf": "interop.huggingface",
    "export_onnx": "interop.onnx",
}
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOME.get(name) or _EXTRAS.get(name)
    if home is None:
        raise AttributeError(f"module 'rankone' has no attribute {name!r}")
    return getattr(importlib.import_module(f"rankone.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
