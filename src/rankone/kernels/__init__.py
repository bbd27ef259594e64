"""Rank-1 softmax attention: the score of a query y against a key x is the product y x.

`batched` attends over rows of one length, `ragged` over sentences of different lengths. Both use
the table of all scores (`direct`) where that is faster, else linear time (`linear`): two torch
operators with `gradients` of every order, which handle `nonfinite` numbers separately and apply a
`rescaling` to numbers near the limits of float64. There are two implementations of the sums:
`compiled` (numba, for the CPU) and `portable` (torch operations, for all other devices). Both
follow the five steps of docs/attention.md, on the cells and nodes that `chebyshev` describes:

    step                                        compiled/             portable/
    find the cell of each point                 placement.py          placement.py
    1. tally: points to moments of cells        tally_and_read.py     factored_weights.py
    2. merge: moments to charges on nodes       merge_and_refine.py   factored_weights.py
    3. transform: charges to values on nodes    transform.py          factored_weights.py
    4. refine: values to polynomials on cells   merge_and_refine.py   factored_weights.py
    5. read: polynomials at points              tally_and_read.py     factored_weights.py
    all five, for a part of the scores          rectangle.py          partition.py
    a short part, score by score                triangle.py           weight_table.py
    all parts of all rows, forward, backward    batch.py              batch.py

For the CPU only: `sentences.py` attends within short sentences, score by score, and
`window_sums.py` within windows where weights fade. Gated layers are made by `averages.py`,
`group_units.py`, `zigzags.py`, `corners.py`, `unit_rows.py` and `solitary.py`, and run by
`add_units.py`; `screen.py` and `written.py` bound what they write. Token by token they are run
by `recite.py`, with `running_averages.py` and `nearest_label.py`; `rolling_hash.py` has the
fingerprints of what was memorised. All use
`polynomials.py` and `exponential.py` (vector code), `threads.py` (work shared by threads) and
`compiler.py` (machine code on disk).
"""

from rankone.kernels.batched import rank1_attention
from rankone.kernels.ragged import ragged_attention, rank1_attention_ragged

__all__ = ["ragged_attention", "rank1_attention", "rank1_attention_ragged"]
