"""From a draw to the network: table, heads of rank 1, gated units, and a linear head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from rankone.construct.contextual_mapping import tensor
from rankone.construct.gated.given import look_along
from rankone.construct.gated.tables import QUERY, Tables
from rankone.construct.gated.windows import WindowLayout, WindowTables
from rankone.nn import Architecture, Block, SelfAttention, TokenClassifier
from rankone.nn.gated import GatedFeedForward
from rankone.nn.layers import module_of

if TYPE_CHECKING:
    from rankone.construct.gated.draw import GatedDraft


def assemble(draft: GatedDraft) -> TokenClassifier:
    """One block, heads of rank 1 and gated units, and a linear head."""
    dtype = torch.float32 if draft.problem.dtype == "float32" else torch.float64
    layout, tables, units = draft.tables.layout, draft.tables, draft.units
    positions, labels = tables.positions, draft.label_codes
    words, word = np.unique(units.word, return_inverse=True)
    held = units.position >= 0
    places, place = np.unique(units.position[held], return_inverse=True)
    gates = np.zeros((1 + len(words) + len(places), layout.dim))
    if draft.given is None:
        table = tables.table(labels.rows[draft.usual])
        gates[1 : 1 + len(words), : layout.word] = table[words, : layout.word] - 1
    else:
        table = tables.table(labels.rows[draft.usual[-1]])
        gates[1 : 1 + len(words)] = draft.given.rows(words, layout.dim, layout.one)
    if positions is not None:
        at = slice(layout.word, layout.one)
        gates[1 + len(words) :, at] = positions[places, at] - 1
    position = np.zeros(len(word), np.int64)
    position[held] = 1 + len(words) + place
    codes_ = np.concatenate([np.zeros((1, labels.rows.shape[1])), labels.rows])
    # a coordinate per label: only the unit that writes a word's usual label takes the default away
    beside = labels.one_hot & (units.label != draft.usual[units.word])
    minus = np.where(beside, 0, 1 + units.usual)
    whole = {
        "word": 1 + word,
        "position": position,
        "plus": 1 + units.label,
        "minus": minus,
        "reads": layout.averages,
        "writes": layout.labels,
    }
    other = {
        "gates": gates,
        "penalty": draft.penalty,
        "bias1": units.bias,
        "slopes": units.slopes,
        "amplitude": units.amplitude,
        "codes": codes_,
    }
    layer = GatedFeedForward.assemble(
        **{name: torch.from_numpy(np.asarray(x, np.int64)).clone() for name, x in whole.items()},
        **{name: tensor(x).to(dtype) for name, x in other.items()},
    )
    weight = np.zeros((len(labels.bias), layout.dim))
    weight[:, layout.labels] = labels.weight
    attention = heads_of(tables, dtype)
    if tables.seen is not None:
        look_along(attention, tables.seen, layout.one)
    step = None
    if isinstance(layout, WindowLayout):
        step = torch.zeros(layout.dim, dtype=dtype)
        step[layout.step] = 1.0
    shape = Architecture(
        vocabulary=len(table),
        labels=len(labels.bias),
        dim=layout.dim,
        positions=0 if positions is None else len(positions),
        causal=draft.problem.causal,
        window=draft.problem.window,
        **attention.settings,
        **layer.settings,
    )
    head = {"weight": tensor(weight).to(dtype), "bias": tensor(labels.bias).to(dtype)}
    sizes = {"in_features": layout.dim, "out_features": len(labels.bias)}
    return TokenClassifier.assemble(
        shape,
        nn.Parameter(torch.from_numpy(table).to(dtype)),  # nobody else has this table
        None if positions is None else nn.Parameter(tensor(positions).to(dtype)),
        [Block(attention, layer)],
        module_of(nn.Linear, head, sizes),
        None if step is None else nn.Parameter(step),
    )


@torch.no_grad()
def heads_of(tables: Tables, dtype: torch.dtype) -> SelfAttention:
    """Head h asks with the constant, compares with key h, and writes the average of value h."""
    layout, query, key = tables.layout, QUERY, np.ones(tables.layout.heads)
    if isinstance(tables, WindowTables):
        query, key = 1.0, tables.decays
    attention = SelfAttention(layout.dim, heads=layout.heads, head_size=1, dtype=dtype)
    for parameter in attention.parameters():
        parameter.zero_()
    for h in range(layout.heads):
        attention.key[h, 0, layout.key(h)] = float(key[h])
        attention.query[h, 0, layout.one] = query
        attention.value[h, 0, layout.value(h)] = 1.0
        attention.output[h, int(layout.averages[h]), 0] = 1.0
    return attention
