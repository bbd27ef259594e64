"""e^z for loops that the compiler vectorises; libm's exponential takes one number at a time."""

from __future__ import annotations

import math

import numpy as np

from rankone.kernels.compiled.compiler import inlined

LEAST = -708.0  # below this, e^z is not a normal number and counts as 0
LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # exact for |k| < 2^20
ROUND = 1.5 * 2.0**52  # adding it leaves the nearest integer in the low bits
C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13 = (1 / math.factorial(k) for k in range(2, 14))


@inlined
def exponential(z: float) -> float:
    """e^z to about one unit in the last place, for z <= 700.

    With k the integer nearest to z / ln 2, e^z = 2^k e^r and |r| <= ln 2 / 2. e^r is the sum of
    fourteen terms, in pairs that need not wait for each other; k is added to the exponent.
    """
    shifted = z * LOG2_E + ROUND
    k = shifted - ROUND
    r = (z - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (C2 + r * C3)
    middle = (C4 + r * C5) + r2 * (C6 + r * C7)
    high = (C8 + r * C9) + r2 * (C10 + r * C11)
    p = low + r4 * (middle + r4 * (high + r4 * (C12 + r * C13)))
    bits = np.float64(p).view(np.int64) + (np.float64(shifted).view(np.int64) << 52)
    return np.int64(bits).view(np.float64) if z > LEAST else 0.0
