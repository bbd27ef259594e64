"""The gallery of tutorials: their order, and a clean start for each."""

from __future__ import annotations

from typing import Any

TUTORIALS = (
    "first_model",
    "audit_a_data_set",
    "what_a_certificate_means",
    "recite_a_text",
    "million_tokens",
    "proof_in_pictures",
    "approximate_a_function",
    "hugging_face_and_back",
    "test_an_unlearning_metric",
)


def tutorial_order(name: str) -> int:
    """From the first model to the last measure."""
    return TUTORIALS.index(name.removesuffix(".py"))


def reset(_configuration: Any, _script: str) -> None:
    import numpy as np

    np.random.seed(0)
