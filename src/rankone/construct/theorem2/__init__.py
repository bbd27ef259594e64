"""Theorem 2 and its corollaries with proved constants, in exact arithmetic.

`weights` makes the contextual mapping of a grade, with the directions that `projection` (Lemma 2)
finds; `embedded` is the corpus as the theorem sees it, and writes the weights as a model;
`corollaries` memorizes it end to end.
"""
