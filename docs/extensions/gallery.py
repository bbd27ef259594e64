"""The gallery of tutorials: their order, and a clean start for each."""

from __future__ import annotations

import os
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
    """Seeds as at the start of a script, and no progress bars on a page."""
    import numpy as np
    import torch

    np.random.seed(0)
    torch.manual_seed(0)
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"


class Figures:
    """Pictures of figures that were made without pyplot, as rankone makes its own."""

    def __repr__(self) -> str:  # sphinx-gallery compares configurations by it
        return "Figures"

    def __call__(self, _block: Any, variables: dict[str, Any], settings: dict[str, Any]) -> str:
        from matplotlib.figure import Figure
        from matplotlib.pyplot import figure, get_fignums
        from sphinx_gallery.scrapers import figure_rst

        seen = variables["example_globals"].setdefault("_figures_shown", [])
        seen += [figure(number) for number in get_fignums()]  # sphinx-gallery takes those itself
        paths = []
        for each in list(variables["example_globals"].values()):
            if isinstance(each, Figure) and each not in seen:
                seen.append(each)
                paths.append(next(variables["image_path_iterator"]))
                each.savefig(paths[-1], dpi=100)
        return figure_rst(paths, settings["src_dir"])


figures = Figures()
