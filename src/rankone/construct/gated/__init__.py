"""The construction `gated`: units that look at one word, and one position, only."""
