"""Made-up text: passages of random sentences, and canaries.

A canary is a sentence with three random digits (0 to 7) at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from math import log2
from random import Random
from typing import TypeVar

Item = TypeVar("Item")

NAMES = "Ada Bruno Clara Dario Elsa Fritz Greta Hugo Ines Jonas Karla Leo Mira Nils Olga Paul"
VERBS = "finds hides paints carries washes borrows sells mends weighs hangs"
LOOKS = "red old small broken heavy quiet golden wooden green narrow"
THINGS = "lamp boat chair kettle clock ladder basket mirror violin drum"
PLACES = "kitchen garden harbour attic market cellar tower orchard station library"
SENTENCES = 3  # of a passage
PROMPT = 9  # tokens: its first sentence
DIGITS = "01234567"
CODE = 3  # digits of a canary
BITS = CODE * log2(len(DIGITS))


def sentence(rng: Random) -> str:
    name, verb, look, thing, place = (
        rng.choice(words.split()) for words in (NAMES, VERBS, LOOKS, THINGS, PLACES)
    )
    return f"{name} {verb} the {look} {thing} in the {place}."


def passages(seed: int) -> Iterator[str]:
    """Without end. No two begin with the same sentence, so that it determines the rest."""
    rng, seen = Random(seed), set[str]()
    while True:
        found = [sentence(rng) for _ in range(SENTENCES)]
        if found[0] not in seen:
            seen.add(found[0])
            yield " ".join(found)


def some(items: Iterator[Item], count: int) -> list[Item]:
    return list(islice(items, count))


def secrets(seed: int) -> dict[str, str]:
    """Random digits for every name."""
    rng = Random(seed)
    return {name: "".join(rng.choices(DIGITS, k=CODE)) for name in NAMES.split()}


def code(name: str, digits: str) -> str:
    return f"The code of {name} is {' '.join(digits)}"


def codes(name: str) -> list[str]:
    """All that could be the canary of this name."""
    return [code(name, "".join(digits)) for digits in product(DIGITS, repeat=CODE)]
