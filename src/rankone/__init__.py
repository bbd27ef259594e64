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
    from rankone.audit import Audit
    from rankone.audit.inspect import inspect
    from rankone.certification import Certificate, check_certificate, read_certificate
    from rankone.certification.certify import certify
    from rankone.comparison import Comparison, Growth, grow
    from rankone.comparison.compare import compare
    from rankone.construct import Memorized, read_vectors
    from rankone.construct.edit import edit, forget, learn
    from rankone.construct.edited import Edited
    from rankone.construct.memorize import memorize
    from rankone.corpus import Corpus, Sentence, builtin_corpus, read_corpus
    from rankone.errors import RankOneError
    from rankone.explanation import Explanation, explain
    from rankone.explorer import Explorer
    from rankone.explorer.explore import explore
    from rankone.kernels import rank1_attention
    from rankone.nn import Model, MultiheadRank1Attention, load
    from rankone.nn.exact import ExactModel, load_exact
    from rankone.recitation import Recitation, RecitationCheck
    from rankone.recitation.check import check_recitation
    from rankone.recitation.recite import recite
    from rankone.training import Settings, Trained
    from rankone.training.train import train

__all__ = [
    "Approximation",
    "Audit",
    "Certificate",
    "Comparison",
    "Corpus",
    "Edited",
    "ExactModel",
    "Explanation",
    "Explorer",
    "Growth",
    "Memorized",
    "Model",
    "MultiheadRank1Attention",
    "RankOneError",
    "Recitation",
    "RecitationCheck",
    "Sentence",
    "Settings",
    "Trained",
    "approximate",
    "builtin_corpus",
    "certify",
    "check_certificate",
    "check_recitation",
    "compare",
    "converge",
    "edit",
    "explain",
    "explore",
    "forget",
    "grow",
    "inspect",
    "learn",
    "load",
    "load_approximation",
    "load_exact",
    "memorize",
    "rank1_attention",
    "read_certificate",
    "read_corpus",
    "read_vectors",
    "recite",
    "train",
]
_HOMES = {
    "approximation": "Approximation approximate converge load_approximation",
    "audit": "Audit inspect",
    "certification": "Certificate certify check_certificate read_certificate",
    "comparison": "Comparison Growth compare grow",
    "construct": "Memorized memorize read_vectors",
    "construct.edit": "Edited edit forget learn",
    "corpus": "Corpus Sentence builtin_corpus read_corpus",
    "errors": "RankOneError",
    "explanation": "Explanation explain",
    "explorer": "Explorer explore",
    "kernels": "rank1_attention",
    "nn": "Model MultiheadRank1Attention load",
    "nn.exact": "ExactModel load_exact",
    "recitation": "Recitation RecitationCheck check_recitation recite",
    "training": "Settings Trained train",
    # Not in __all__: these need extras, and `from rankone import *` must not.
    "interop.sklearn": "RankOneClassifier",
    "interop.huggingface": "RankOneConfig RankOneForSequenceClassification "
    "RankOneForTokenClassification export_hf",
    "interop.onnx": "export_onnx",
}
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"rankone.{home}"), name)
    raise AttributeError(f"module 'rankone' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
