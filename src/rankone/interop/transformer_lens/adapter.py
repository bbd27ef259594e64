"""How TransformerLens sees a model: which of its names stands for which module."""

from __future__ import annotations

from typing import Any

from transformer_lens.model_bridge.architecture_adapter import ArchitectureAdapter
from transformer_lens.model_bridge.generalized_components import (
    EmbeddingBridge,
    OpaqueBlockBridge,
    PosEmbedBridge,
    UnembeddingBridge,
)
from transformer_lens.model_bridge.generalized_components.base import GeneralizedComponent

from rankone.interop.transformer_lens.components import HeadsBridge, UnitsBridge
from rankone.interop.transformer_lens.stepwise import make_stepwise

LONGEST = 1 << 30  # tokens of a text where positions have no table
ALIASES = {
    "hook_attn_out": "attn.hook_out",
    "hook_resid_mid": "mlp.hook_in",
    "hook_mlp_out": "mlp.hook_out",
}


class RankOneAdapter(ArchitectureAdapter):
    """One-layer rank-1 Transformers, and deeper ones, for tags, texts and next tokens.

    There are no norms, so there is nothing to fold.
    """

    supports_kv_cache = False  # what went by is in sums, which hooks would not see
    supports_compatibility_mode = False

    def __init__(self, cfg: Any) -> None:
        super().__init__(cfg)
        cfg.normalization_type = None
        cfg.positional_embedding_type = "standard"
        cfg.final_rms = cfg.gated_mlp = cfg.attn_only = cfg.use_attn_scale = False
        cfg.use_attn_result = True
        cfg.act_fn = "relu"
        cfg.n_ctx = cfg.n_ctx or LONGEST
        self.supports_generation = self.supports_causal_loss = "CausalLM" in cfg.architecture

    def prepare_model(self, hf_model: Any) -> None:
        """Make every step a module, and name those that there are."""
        super().prepare_model(hf_model)
        make_stepwise(hf_model)
        config, cfg = hf_model.config, self.cfg
        cfg.attention_dir = "causal" if config.causal else "bidirectional"
        cfg.default_prepend_bos = getattr(config, "bos_token_id", None) is not None
        if not self.supports_generation:
            cfg.d_vocab_out = config.num_labels
        layers = {"attn": HeadsBridge("attention", cfg), "mlp": UnitsBridge("feedforward", cfg)}
        places = {}
        if hf_model.position_embedding is not None:
            kind = GeneralizedComponent if config.window else PosEmbedBridge  # which has a table
            places["pos_embed"] = kind("position_embedding")
        self.component_mapping = {
            "embed": EmbeddingBridge("token_embedding"),
            **places,
            "blocks": OpaqueBlockBridge(
                "blocks", config=cfg, submodules=layers, hook_alias_overrides=ALIASES
            ),
            "unembed": UnembeddingBridge("head"),
        }
