"""The paper's networks as torch modules. Tokens are rows: (batch, n, d), not d x n as there."""

from rankone.nn.approximator import Approximator
from rankone.nn.attention import Rank1Attention, SelfAttention
from rankone.nn.classifier import Architecture, TokenClassifier
from rankone.nn.evaluate import Evaluator
from rankone.nn.feedforward import FeedForward, PiecewiseLinear, Rank1FeedForward
from rankone.nn.layers import Block
from rankone.nn.masks import causal_mask, padding_mask
from rankone.nn.model import Model, load
from rankone.nn.multihead import MultiheadRank1Attention
from rankone.nn.stairs import Stairs, TiltedStairs

__all__ = [
    "Approximator",
    "Architecture",
    "Block",
    "Evaluator",
    "FeedForward",
    "Model",
    "MultiheadRank1Attention",
    "PiecewiseLinear",
    "Rank1Attention",
    "Rank1FeedForward",
    "SelfAttention",
    "Stairs",
    "TiltedStairs",
    "TokenClassifier",
    "causal_mask",
    "load",
    "padding_mask",
]
