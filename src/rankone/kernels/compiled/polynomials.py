"""Polynomials of TERMS terms with several coefficients side by side, in vector registers.

A table holds, for each cell, TERMS rows of two or four lanes. The vectors are spelled out for LLVM,
because numba turns its vectoriser of straight-line code off, and scalar code takes twice as long.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from rankone.kernels.chebyshev import GROUPS, NODES, TERMS

DOUBLE, INDEX = ir.DoubleType(), ir.IntType(32)
FUSED = ("contract",)  # a product and a sum may round once

Value = Any  # an LLVM value
Build = Any  # an LLVM builder
compiled: Any = intrinsic


@compiled
def add_powers(_, table, cell, t, first, second):  # type: ignore[no-untyped-def]
    """table[cell, j, :] += t^j (first, second), for all j < TERMS. The table has two lanes."""

    def build(context: Any, b: Build, signature: Any, args: list[Value]) -> Value:
        t = args[2]
        lower = [args[3], args[4]]
        weight = _vector(b, [*lower, *(b.fmul(w, t) for w in lower)])  # two powers at a time
        square = _vector(b, [b.fmul(t, t)] * 4)
        for j in range(0, TERMS, 2):
            if j:
                weight = b.fmul(weight, square)
            at = _row(context, b, signature, args, j, lanes=2, width=4)
            b.store(b.fadd(b.load(at, align=8), weight), at, align=8)
        return context.get_dummy_value()

    return types.void(table, cell, t, first, second), build


def _reader(lanes: int) -> Any:
    def reader(_, table, cell, t):  # type: ignore[no-untyped-def]
        """sum_j table[cell, j, :] t^j, lane by lane (Horner)."""

        def build(context: Any, b: Build, signature: Any, args: list[Value]) -> Value:
            t = _vector(b, [args[2]] * lanes)
            total = None
            for j in reversed(range(TERMS)):
                row = b.load(_row(context, b, signature, args, j, lanes, lanes), align=8)
                total = row if total is None else _multiply_add(b, total, t, row)
            found = [b.extract_element(total, INDEX(i)) for i in range(lanes)]
            return context.make_tuple(b, signature.return_type, found)

        return types.UniTuple(types.float64, lanes)(table, cell, t), build  # type: ignore[no-untyped-call]

    return compiled(reader)


read2, read4 = _reader(2), _reader(4)


@compiled
def mix(_, weights, rows, start, total):  # type: ignore[no-untyped-def]
    """total = sum_g weights[g] rows[start + g], for GROUPS rows of NODES numbers."""

    def build(context: Any, b: Build, signature: Any, args: list[Value]) -> Value:
        weights, rows, total = (
            context.make_array(signature.args[i])(context, b, args[i]).data for i in (0, 1, 3)
        )
        vector = ir.VectorType(DOUBLE, 4)

        def at(data: Value, index: Value) -> Value:
            return b.bitcast(b.gep(data, [index]), vector.as_pointer())

        first = b.mul(args[2], args[2].type(NODES))
        sums = [ir.Constant(vector, [0.0] * 4)] * (NODES // 4)
        for g in range(GROUPS):
            weight = _vector(b, [b.load(b.gep(weights, [INDEX(g)]))] * 4)
            for i, so_far in enumerate(sums):
                row = b.load(at(rows, b.add(first, first.type(g * NODES + 4 * i))), align=8)
                sums[i] = _multiply_add(b, weight, row, so_far)
        for i, found in enumerate(sums):
            b.store(found, at(total, INDEX(4 * i)), align=8)
        return context.get_dummy_value()

    return types.void(weights, rows, start, total), build


def _vector(b: Build, elements: list[Value]) -> Value:
    out = ir.Constant(ir.VectorType(DOUBLE, len(elements)), ir.Undefined)
    for i, element in enumerate(elements):
        out = b.insert_element(out, element, INDEX(i))
    return out


def _multiply_add(b: Build, x: Value, y: Value, z: Value) -> Value:
    return b.fadd(b.fmul(x, y, flags=FUSED), z, flags=FUSED)


def _row(
    context: Any, b: Build, signature: Any, args: list[Value], j: int, lanes: int, width: int
) -> Value:
    """The address of row j of the cell, as that of a vector."""
    data = context.make_array(signature.args[0])(context, b, args[0]).data
    start = b.mul(args[1], args[1].type(TERMS * lanes))
    address = b.gep(data, [b.add(start, start.type(j * lanes))])
    return b.bitcast(address, ir.VectorType(DOUBLE, width).as_pointer())
