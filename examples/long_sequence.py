"""Attention over a million tokens, forward and backward, on a laptop.

    python examples/long_sequence.py
    python examples/long_sequence.py --causal --tokens 200000

Every token attends to every token (with --causal, to itself and earlier ones) with softmax weights,
as in nn.MultiheadAttention. But the queries and keys of a head are single numbers, so the sums over
all tokens need not be computed term by term.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import torch
from torch import Tensor

from rankone import MultiheadRank1Attention


def main() -> None:
    parser = argparse.ArgumentParser(description="Rank-1 attention over one long sequence.")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--dim", type=int, default=16, help="a multiple of the heads")
    parser.add_argument("--causal", action="store_true", help="attend to earlier tokens only")
    options = parser.parse_args()

    torch.manual_seed(0)
    attention = MultiheadRank1Attention(options.dim, options.heads)
    x = torch.randn(options.tokens, options.dim, requires_grad=True)

    # Compile first, so that compilation is not timed below.
    few = x[:1000]
    attention(few, few, few, need_weights=False, is_causal=options.causal)[0].sum().backward()
    attention.zero_grad()
    x.grad = None
    before = peak_memory()

    start = time.perf_counter()
    out, _ = attention(x, x, x, need_weights=False, is_causal=options.causal)
    forward = time.perf_counter() - start

    start = time.perf_counter()
    out.square().mean().backward()
    backward = time.perf_counter() - start

    table = 4 * options.heads * options.tokens**2
    print(f"{options.tokens:,} tokens, {options.heads} heads, dimension {options.dim}")
    print(f"  forward       {forward:10.3f} s")
    print(f"  backward      {backward:10.3f} s")
    print(f"  peak memory   {size(peak_memory())}, {size(before)} of it before the first step")
    print(f"  all weights   {size(table)}, if they were stored")

    error = largest_error(attention, x.detach(), out.detach(), options.causal)
    print(f"  largest error {error:10.1e} of the largest output, at a few tokens")
    if not error < 1e-5:
        sys.exit("the outputs differ from the sums over all keys")


@torch.no_grad()
def largest_error(
    attention: MultiheadRank1Attention, x: Tensor, out: Tensor, causal: bool
) -> float:
    """A few outputs against the sums over all keys, term by term and in float64."""
    heads, dim = attention.num_heads, attention.embed_dim
    weights = attention.in_proj_weight.double()
    to_query, to_key, to_value = weights.split([heads, heads, dim])  # a new module has no bias
    x = x.double()
    keys, values = x @ to_key.T, (x @ to_value.T).view(len(x), heads, -1)
    errors = []
    for token in {0, len(x) // 3, len(x) // 2, len(x) - 1}:
        seen = token + 1 if causal else len(x)
        softmax = (keys[:seen] * (to_query @ x[token])).softmax(0)
        head_outputs = torch.einsum("nh,nhc->hc", softmax, values[:seen])
        expected = attention.out_proj.weight.double() @ head_outputs.flatten()
        errors.append((out[token] - expected).abs().max().item())
    return max(errors) / out.abs().max().item()


def peak_memory() -> int:
    """Peak memory of this process, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024  # in bytes on macOS, in KiB elsewhere


def size(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1000:
            return f"{count:.4g} {unit}"
        count /= 1000
    return f"{count:,.4g} TB"


if __name__ == "__main__":
    main()
