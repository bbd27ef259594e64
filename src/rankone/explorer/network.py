"""The numbers of a network, as the page runs it: `Evaluator` in JavaScript (static/model.js)."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from rankone.arrays import Ints
from rankone.errors import SizeError
from rankone.explorer.packing import whole
from rankone.nn.classifier import TokenClassifier, dtype_name
from rankone.nn.evaluate import read_by
from rankone.nn.feedforward import Rank1FeedForward
from rankone.nn.gated_layer import GatedLayer, gated_layer
from rankone.nn.layers import AttentionLayer, FeedForwardLayer
from rankone.nn.rank1_heads import rank1_heads
from rankone.nn.readout import Readout
from rankone.nn.windows import Fading

Numbers = NDArray[Any]
MOST = 1 << 25  # numbers in one matrix: 256 MB, far more than a page can hold


class NetworkData:
    """What the page knows of a network: a `description`, as JSON, and `arrays` that it names.

    Only coordinates that some label depends on are kept. Codes of words and positions are not
    among them where the weights prove what they do: then each row says which gates it opens.
    """

    def __init__(self, network: TokenClassifier) -> None:
        self.arrays: dict[str, Numbers] = {}
        head, shape = Readout.of(network.head), network.shape
        self.dim = shape.dim
        seen = np.arange(shape.dim) if head.seen is None else head.seen
        gated = gated_layer(network)
        fading = Fading.of(network) if shape.window else None
        keep = gated is not None and not (shape.window and fading is None)
        self.live = read_by(network, seen) if keep else None
        blocks = []
        for i, block in enumerate(network.blocks):
            attention = self._attention(f"{i}.attention", block.attention, fading)
            feedforward = (
                self._feedforward(f"{i}.feedforward", block.feedforward)
                if gated is None
                else self._gated(f"{i}.feedforward", gated)
            )
            blocks.append({"attention": attention, "feedforward": feedforward})
        live = self._at(seen)
        self.description = {
            "dtype": dtype_name(network),
            "shape": asdict(shape),
            "dim": shape.dim if self.live is None else len(self.live),
            "table": self._add("table", self._columns(network.table)),
            "positions": self._columns_or_none("positions", network.positions),
            "step": self._columns_or_none("step", network.step),
            "blocks": blocks,
            "head": {
                "weight": self._add("head.weight", head.weight),
                "bias": self._add("head.bias", head.bias),
                "seen": self._add("head.seen", whole(live)),
            },
        }

    def _add(self, name: str, array: Numbers) -> str:
        check_size(array.size)
        self.arrays[name] = np.ascontiguousarray(array).reshape(-1)
        return name

    def _at(self, coordinates: Ints) -> Ints:
        return coordinates if self.live is None else np.searchsorted(self.live, coordinates)

    def _columns(self, table: Tensor) -> Numbers:
        rows = table.detach().numpy()
        return rows if self.live is None else rows[..., self.live]

    def _columns_or_none(self, name: str, table: Tensor | None) -> str | None:
        return None if table is None else self._add(name, self._columns(table))

    def _vector(self, name: str, vector: Numbers) -> str:
        return self._add(name, vector if self.live is None else vector[self.live])

    def _attention(
        self, name: str, layer: AttentionLayer, fading: list[Fading] | None
    ) -> dict[str, Any]:
        if fading is not None:
            heads: list[dict[str, Any]] = [
                {
                    "decay": head.decay,
                    "value": self._vector(f"{name}.{h}.value", head.value),
                    "output": self._vector(f"{name}.{h}.output", head.output),
                }
                for h, head in enumerate(fading)
            ]
            return {"kind": "fading", "size": 1, "heads": heads}
        vectors = rank1_heads(layer)
        if vectors is not None:
            heads = [
                {
                    what: self._vector(f"{name}.{h}.{what}", getattr(head, what))
                    for what in ("key", "query", "value", "output")
                }
                for h, head in enumerate(vectors)
            ]
            return {"kind": "softmax", "size": 1, "heads": heads}
        heads = []
        for h, matrices in enumerate(layer.heads):
            given = {what: getattr(matrices, what).numpy() for what in ("key", "query", "value")}
            given["output"] = np.ascontiguousarray(matrices.output.numpy().T)
            heads.append({k: self._vector2(f"{name}.{h}.{k}", x) for k, x in given.items()})
        return {"kind": layer.kind, "size": len(layer.heads[0].key), "heads": heads}

    def _vector2(self, name: str, rows: Numbers) -> str:
        return self._add(name, rows if self.live is None else rows[:, self.live])

    def _feedforward(self, name: str, layer: FeedForwardLayer) -> dict[str, Any]:
        if isinstance(layer, Rank1FeedForward):
            f = layer.piecewise()
            vectors = {
                "direction": layer.direction,
                "out": layer.out_direction,
                "bias": layer.bias2,
            }
            return {
                "kind": "rank1",
                "start": f.start,
                **{k: self._vector(f"{name}.{k}", _numpy(x)) for k, x in vectors.items()},
                **{
                    k: self._add(f"{name}.{k}", getattr(f, k))
                    for k in ("knots", "values", "slopes")
                },
            }
        check_size(layer.hidden * self.dim)
        full = layer.expand()
        names = ("weight1", "bias1", "weight2", "bias2")
        return {
            "kind": "dense",
            "hidden": layer.hidden,
            **{k: self._add(f"{name}.{k}", _numpy(getattr(full, k))) for k in names},
        }

    def _gated(self, name: str, layer: GatedLayer) -> dict[str, Any]:
        keeper, groups, units = layer.keeper, layer.groups, layer.units
        kind = np.float32 if self.single(layer) else np.float64
        numbers = {
            "word_fine": keeper.word_fine[0],
            "place_fine": keeper.place_fine[0],
            "slopes": units.slopes.astype(kind),
            "unit_bias": units.bias.astype(kind),
            "penalty": units.penalty.astype(kind),
            "amplitude": units.amplitude.astype(kind),
            "codes": units.codes.astype(kind),
        }
        indices = {
            "reads": self._at(layer.reads),
            "writes": self._at(layer.writes),
            "word": keeper.word,
            "place": keeper.place,
            "group_word": groups.pairs // groups.gates,
            "group_place": groups.pairs % groups.gates,
            "starts": groups.starts,
            "first": groups.first,
            "plus": units.plus,
            "minus": units.minus,
        }
        return {
            "kind": "gated",
            "gates": groups.gates,
            "units": len(units.bias),
            **{k: self._add(f"{name}.{k}", x) for k, x in numbers.items()},
            **{k: self._add(f"{name}.{k}", whole(x)) for k, x in indices.items()},
        }

    @staticmethod
    def single(layer: GatedLayer) -> bool:
        """Whether single precision holds the units, bit for bit: it does if the weights have it."""
        given = layer.units[:5]
        with np.errstate(over="ignore"):
            return all(np.array_equal(x.astype(np.float32).astype(np.float64), x) for x in given)


def check_size(numbers: int) -> None:
    """Refuse a matrix before it is written out."""
    if numbers > MOST:
        raise SizeError(
            f"a matrix of {numbers:,} numbers does not fit into a page",
            remedy="give a smaller model",
        )


def _numpy(parameter: Tensor | nn.Parameter) -> Numbers:
    return np.asarray(parameter.detach().numpy())
