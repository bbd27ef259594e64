"""Rank-1 softmax attention: the score of a query y against a key x is the product y x."""

from rankone.kernels.attention import rank1_attention
from rankone.kernels.ragged import ragged_attention, rank1_attention_ragged

__all__ = ["ragged_attention", "rank1_attention", "rank1_attention_ragged"]
