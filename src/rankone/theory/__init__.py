"""The statements of the paper as functions of the quantities they are about.

Nothing here builds a network: `rankone.construct` builds, `rankone.certification` checks.
"""

from rankone.theory.boltzmann import (
    boltzmann,
    entropy,
    gradient,
    log_partition,
    second_derivative,
    softmax,
)
from rankone.theory.bounds import (
    MappingBound,
    ParameterCounts,
    corollary2,
    masked,
    parameter_counts,
    theorem2,
)
from rankone.theory.closest import ClosestPair, closest_pair
from rankone.theory.contextual import Contextual, contextual, definition2_contexts
from rankone.theory.gates import bits_per_weight, code_size, gated_dimension, units_bound
from rankone.theory.hardmax import (
    CounterExample,
    Indistinguishable,
    counter_example,
    hardmax_attention,
    indistinguishable,
)
from rankone.theory.lemma_claims import Claim, LemmaBound
from rankone.theory.lemmas import appendix_c, lemma1, lemma4, lemma5, lemma6, lemma7
from rankone.theory.separation import Separation, separation

__all__ = [
    "Claim",
    "ClosestPair",
    "Contextual",
    "CounterExample",
    "Indistinguishable",
    "LemmaBound",
    "MappingBound",
    "ParameterCounts",
    "Separation",
    "appendix_c",
    "bits_per_weight",
    "boltzmann",
    "closest_pair",
    "code_size",
    "contextual",
    "corollary2",
    "counter_example",
    "definition2_contexts",
    "entropy",
    "gated_dimension",
    "gradient",
    "hardmax_attention",
    "indistinguishable",
    "lemma1",
    "lemma4",
    "lemma5",
    "lemma6",
    "lemma7",
    "log_partition",
    "masked",
    "parameter_counts",
    "second_derivative",
    "separation",
    "softmax",
    "theorem2",
    "units_bound",
]
