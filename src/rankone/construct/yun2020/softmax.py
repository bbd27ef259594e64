"""How large scores must be for softmax to do what hardmax does."""

from __future__ import annotations

from rankone.construct.yun2020.shift import Shift


def softmax_factor(shift: Shift) -> int:
    """A whole number lambda: if scores are multiplied by it, softmax in place of hardmax changes no
    final id of a sentence of up to n words by more than delta/8.

    *Proof.* With one column, softmax is hardmax. So let there be 2 to n columns, and measure ids in
    units of delta. Before a layer, let all ids be within eps <= 1/8 of the ids h with hardmax. As
    h are 1 apart, and 1/2 from b, the score of the column j that hardmax takes leads the others by

        lambda delta^2 (1/2 - eps) (1 - 2 eps)  >=  gamma := 9/32 lambda delta^2

    at least. So the other columns have weights of e^-gamma at most, and if R bounds the range of
    ids, the average is within tau := (n-1) e^-gamma R of id j. This makes of eps, in

        a column that is hit     (1 + 2M) eps + 2M tau    each head is off by eps + tau
        any other column         eps + M tau              both heads take the same j, and their
                                                          averages are on the same side of id j
        the global layer         (1 + G) eps + G tau

    Let P be the number of places; all grid values are below P S/delta. Hit i lands at (M-1) i or
    above, see (1) in `shift`, so at most P (S/delta) / (M-1) = P / (1-delta) <= 2P hits land below
    P S/delta. The others land where no hit follows, one for each column. So there are at most
    K := n + 2P hits. A hit lands at g + M max <= (M+1) max or below, so R := P S/delta (M+1)^K + 1
    will do. With L layers before the global one,

        final eps  <=  (1 + G) (1 + 2M)^K (2ML + 1) tau  =:  A e^-gamma / 8,

    which bounds all earlier eps, too. It is at most 1/8 if gamma >= ln A, and ln A is less than 0.7
    times the number of bits of A.
    """
    size, places = shift.grid.size, shift.places
    hits = shift.n + 2 * places
    reach = places * shift.grid.step * (size + 1) ** hits + 1
    growth = (1 + shift.last) * (1 + 2 * size) ** hits * (2 * size * (shift.depth - 1) + 1)
    bits: int = (8 * growth * (shift.n - 1) * reach).bit_length()
    return max(1, -(-32 * 7 * bits * shift.grid.inverse**2 // (9 * 10)))
