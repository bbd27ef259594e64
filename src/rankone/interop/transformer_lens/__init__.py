"""TransformerLens: importing this lets `TransformerBridge.boot_transformers` open exported models.

    import rankone.interop.transformer_lens
    from transformer_lens.model_bridge import TransformerBridge

    bridge = TransformerBridge.boot_transformers("hf")  # `rankone export model --hf hf`
    logits, cache = bridge.run_with_cache(tokens)
    cache["blocks.0.mlp.hook_post"]  # hidden units, (batch, n, units)

The adapter is also the entry point ``transformer_lens.architectures``. TransformerLens 4.3 loads
entry points only after it has looked for the architecture in a table of its own, and for the
configuration in transformers: hence the import.
"""

from __future__ import annotations

from importlib.metadata import entry_points

from rankone.extras import extra

with extra("lens", "TransformerLens"):
    from transformer_lens.factories import architecture_adapter_factory as factory
    from transformer_lens.model_bridge import TransformerBridge

    import rankone.interop.huggingface  # noqa: F401  registers the model with transformers
    from rankone.interop.transformer_lens.adapter import RankOneAdapter
    from rankone.interop.transformer_lens.boot import CLASSES, boot_transformers

_named = {found.name for found in entry_points(group="transformer_lens.architectures")}
for _name in CLASSES:
    factory.SUPPORTED_ARCHITECTURES[_name] = RankOneAdapter
    if _name not in _named:  # found by its entry point otherwise, which must be the first to do so
        factory.ArchitectureAdapterFactory.register_adapter(_name, RankOneAdapter)
TransformerBridge.boot_transformers = staticmethod(boot_transformers)

__all__ = ["RankOneAdapter", "boot_transformers"]
