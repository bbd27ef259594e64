"""What the compiled steps need, taken from the weights of a network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankone.arrays import Floats, Ints
from rankone.nn.classifier import TokenClassifier
from rankone.nn.gated_layer import HUGE, GatedLayer, Large, gated_layer
from rankone.nn.layers import Head
from rankone.nn.mixed_codes import MixedCodes
from rankone.nn.rank1_heads import along, rank1_heads
from rankone.nn.windows import Fading

if TYPE_CHECKING:
    from rankone.kernels.compiled.nearest_label import Labels
    from rankone.kernels.compiled.recite import Filter, Network
    from rankone.kernels.compiled.running_averages import Heads, State, Tables

Numbers = NDArray[Any]

FAR = 0.25  # features may be off by half of what a label can bear: the rest is for rounding
SMALL = 300.0  # scores: exponentials are added up as they are
LARGE = 32  # units of a group: from here on, single precision says which may be active


def assemble(network: TokenClassifier) -> Network | None:
    """None for a network of another kind: one without gates that are proved to keep units silent,
    with heads that ask different tokens for different things, or that write to several coordinates.
    """
    layer, heads = gated_layer(network), rank1_heads(network.blocks[0].attention)
    if layer is None or heads is None or not network.shape.causal:
        return None
    tables = _tables(network, layer, heads)
    asked = None if tables is None else _heads(network, heads, tables)
    if tables is None or asked is None or not _reads_writes(network, layer):
        return None
    from rankone.kernels.compiled.recite import Network  # compiled code: loaded when used

    return Network(
        tables,
        asked,
        layer.groups,
        layer.units,
        layer.pieces,
        _filter(layer, tables),
        _labels(network, layer.writes),
    )


def new_state(network: Network) -> State:
    """Nothing has been seen yet."""
    from rankone.kernels.compiled.running_averages import State

    heads, levels = network.heads.doubled.shape
    rows = 2 * (2**levels - 1)
    return State(
        np.zeros(1, np.int64),
        np.zeros((rows, heads)),
        np.zeros(heads),
        np.zeros(heads),
        np.zeros_like(network.tables.writes[0]),
    )


def _tables(
    network: TokenClassifier, layer: GatedLayer, heads: list[Head[Numbers]]
) -> Tables | None:
    from rankone.kernels.compiled.running_averages import Tables

    table, own = network.table.detach().numpy(), network.positions
    positions = table[:1] * 0 if own is None else own.detach().numpy()
    to = [np.flatnonzero(head.output) for head in heads]
    reads = layer.reads.tolist()
    if any(len(at) != 1 or int(at[0]) not in reads for at in to):
        return None
    keeper, placed = layer.keeper, layer.placed
    keys = [head.key for head in heads]
    values = [head.key if head.shared else head.value for head in heads]
    return Tables(
        key=_columns(table, keys),
        value=_columns(table, values),
        reads=np.ascontiguousarray(table[:, layer.reads]),
        writes=np.ascontiguousarray(table[:, layer.writes]),
        key_at=_columns(positions, keys),
        value_at=_columns(positions, values),
        reads_at=np.ascontiguousarray(positions[:, layer.reads]),
        gates=keeper.word,
        gates_at=keeper.place if placed else np.zeros(1, np.int64),
        fines=keeper.word_fine[0],
        fines_at=keeper.place_fine[0] if placed else np.zeros(1),
        to=np.array([reads.index(int(at[0])) for at in to]),
        scale=np.array([h.output[at[0]] for h, at in zip(heads, to, strict=True)], table.dtype),
    )


def _columns(table: Numbers, vectors: list[Numbers]) -> Numbers:
    found = np.stack([along(vector, table.T) for vector in vectors], axis=1)
    return np.ascontiguousarray(found.astype(table.dtype))


def _heads(network: TokenClassifier, heads: list[Head[Numbers]], tables: Tables) -> Heads | None:
    """How the heads weigh the past; None where that depends on the token that asks."""
    from rankone.kernels.compiled.running_averages import Heads, fading
    from rankone.kernels.compiled.window_sums import window_sums

    window, count = network.shape.window, len(heads)
    if window:
        fades = Fading.of(network)
        if fades is None:
            return None
        levels = window.bit_length()
        doubled, joined = np.empty((count, levels)), np.empty((count, levels))
        weights, whole = np.empty((window, count)), np.array([0, window])
        for h, fade in enumerate(fades):
            fading(fade.decay, window, doubled[h], joined[h])
            total = np.empty(window)
            window_sums(np.ones(window), fade.decay, window, whole, total)
            weights[:, h] = total
        return Heads(np.zeros(count), window, doubled, joined, weights)
    asking = [along(head.query, network.table.detach().numpy().T) for head in heads]
    asking_at = [
        along(head.query, network.positions.detach().numpy().T)
        for head in heads
        if network.positions is not None
    ]
    if any(np.ptp(query) for query in asking) or any(query.any() for query in asking_at):
        return None
    query = np.array([float(query[0]) for query in asking])
    most = np.abs(tables.key).max(0) + np.abs(tables.key_at).max(0)
    if not (np.abs(query) * most < SMALL).all():
        return None
    return Heads(query, 0, np.empty((count, 0)), np.empty((count, 0)), np.empty((0, count)))


def _reads_writes(network: TokenClassifier, layer: GatedLayer) -> bool:
    """Whether the head looks at nothing but what words bring along and units add to it."""
    seen = np.flatnonzero(network.head.weight.detach().numpy().any(0))
    heads = network.blocks[0].attention.heads
    added = [head.output.detach().numpy()[layer.writes] for head in heads]
    if network.positions is not None:
        added.append(network.positions.detach().numpy()[:, layer.writes])
    if network.step is not None:
        added.append(network.step.detach().numpy()[layer.writes])
    return bool(np.isin(seen, layer.writes).all()) and not any(x.any() for x in added)


def _filter(layer: GatedLayer, tables: Tables) -> Filter:
    """The groups of words that are worth it, and which products of theirs count."""
    from rankone.kernels.compiled.recite import AT_ONCE, LANES, Filter

    groups, units = layer.groups, layer.units
    sizes = np.diff(groups.first)
    large = (groups.pairs % groups.gates == 0) & (sizes >= LARGE) & (layer.pieces.at < 0)
    found = Large.of(0, len(units.bias), units)
    longest = _longest(tables)
    if found is None or not layer.keeper.exact or not longest < HUGE:
        large[:] = False
    blocks = np.where(large, -(-sizes // LANES), 0)
    first = np.append(0, np.cumsum(blocks))
    heads = units.slopes.shape[1]
    slopes = np.zeros((int(first[-1]) * LANES, -(-heads // AT_ONCE) * AT_ONCE), np.float32)
    least = np.full(len(slopes), np.inf, np.float32)
    if found is not None:
        border = (found.border - found.slip * (longest + 1.0)).astype(np.float32)
        border = np.nextafter(border, np.float32(-np.inf))
        for g in np.flatnonzero(large).tolist():
            own = slice(int(groups.first[g]), int(groups.first[g + 1]))
            start = int(first[g]) * LANES
            slopes[start : start + int(sizes[g]), :heads] = found.slopes[own]
            least[start : start + int(sizes[g])] = border[own]
    laid = slopes.reshape(-1, LANES, slopes.shape[1]).transpose(0, 2, 1)
    return Filter(large, first, np.ascontiguousarray(laid), least.reshape(-1, LANES))


def _longest(tables: Tables) -> float:
    """No vector that units see is longer."""
    most = np.abs(tables.reads).max(0) + np.abs(tables.reads_at).max(0)
    values = np.abs(tables.value).max(0) + np.abs(tables.value_at).max(0)
    np.add.at(most, tables.to, np.abs(tables.scale) * values)
    return float(np.sqrt((most.astype(np.float64) ** 2).sum())) * (1 + 2.0**-10)


def _labels(network: TokenClassifier, writes: Ints) -> Labels:
    from rankone.kernels.compiled.nearest_label import Labels

    codes = MixedCodes.of(network.head)
    if codes is None:
        none, floats, keys = np.empty(0, np.int64), np.empty(0), np.empty(0, np.uint64)
        return Labels(none, none, np.empty((0, 0)), keys, none, none, floats, floats, 1.0, FAR)
    order = np.argsort(writes)
    at, own = (order[np.searchsorted(writes[order], x)] for x in (codes.at, codes.own))
    rows: Floats = np.ascontiguousarray(codes.codes)
    return Labels(
        at,
        own,
        rows,
        codes.keys,
        codes.order,
        codes.leader,
        codes.lead,
        codes.range,
        codes.sharp,
        FAR,
    )
