"""The built-in corpora: made-up English, a toy that meets every condition of the theorem, and a
story."""

from __future__ import annotations

import os
import random
from dataclasses import replace
from itertools import combinations

from rankone.choices import Task
from rankone.corpus.corpus import Corpus
from rankone.corpus.rows import Choice
from rankone.corpus.story import is_story
from rankone.errors import CorpusError, SettingError

# Each name appears in every role, so that only the sentence shows which role it has.
NAMES = (
    "Jordan Chelsea Florence Austin Georgia Paris Lincoln Madison Sydney Victoria Charlotte Dakota "
    "Savannah Orlando Phoenix Sterling Hamilton Houston Carolina Valencia Ford Wells Morgan Barclay"
).split()
FIRST = "Ada Grace Emmy Alan Kurt Sofia Karl Mary".split()
COUNTS = "two three four five six seven eight nine".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
GOODS = "ships engines cameras bicycles maps clocks bridges".split()
VERBS = "praised visited ignored remembered answered followed".split()

# A word in capitals is drawn from its list; PER, LOC and ORG are names in that role.
TEMPLATES = (
    "PER VERBS PER in LOC .",
    "ORG sold COUNTS GOODS to ORG on DAYS .",
    "ORG beat ORG COUNTS to COUNTS in LOC .",
    "FULL VERBS the people of LOC .",
    "the road from LOC to LOC was closed on DAYS .",
    "PER works for ORG in LOC .",
    "FULL of ORG VERBS FULL .",
    "shares of ORG fell after PER left .",
    "PER , PER and PER met in LOC on DAYS .",
    "LOC imports GOODS from LOC .",
    "on DAYS ORG opened COUNTS offices in LOC and LOC .",
    "it rained in LOC when ORG VERBS PER .",
    "will ORG buy ORG ?",
    "PER told ORG that LOC needs GOODS .",
)
WORDS = {"COUNTS": COUNTS, "DAYS": DAYS, "GOODS": GOODS, "VERBS": VERBS}


def builtin_corpus(sentences: int = 2000, seed: int = 0) -> Corpus:
    """Made-up sentences with IOB2 entity tags; the same seed gives the same corpus.

    A sentence that repeats an earlier one carries the same tags, so the sequence determines every
    label, while about one token in five cannot be labelled by the token alone.
    """
    draw = random.Random(seed)
    seen: dict[tuple[str, ...], tuple[str, ...]] = {}
    drawn: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
    while len(drawn) < sentences:
        tokens, labels = _sentence(draw)
        if seen.setdefault(tokens, labels) == labels:
            drawn.append((tokens, labels))
    return Corpus.from_sentences(drawn, source="builtin")


def toy_corpus(words: int = 5, length: int = 3) -> Corpus:
    """Every way to choose `length` of a few words: no word repeated, all sentences equally long.

    The label, odd or even, is the parity of the sum of the numbers of all words of the sentence
    plus the word's own number. So the set of words determines it, and the word alone does not.
    """
    names = [chr(ord("a") + i) for i in range(words)]
    sentences = [
        ([names[i] for i in chosen], [("even", "odd")[(sum(chosen) + i) % 2] for i in chosen])
        for chosen in combinations(range(words), length)
    ]
    return Corpus.from_sentences(sentences, source="toy")


BUILTIN = {"builtin": builtin_corpus, "toy": toy_corpus}


def is_builtin(source: object) -> bool:
    """Whether this names a built-in corpus, not a file."""
    named = isinstance(source, str | os.PathLike) and os.fspath(source) in BUILTIN
    return named or is_story(source)


def read_builtin(
    name: str, format: str, choice: Choice, scheme: str, lower: bool, task: Task
) -> Corpus:
    """A built-in corpus of sentences by its name; options about files do not apply."""
    check_no_layout(name, format, choice)
    if is_story(name):
        raise SettingError(
            "a text, whose tokens have no labels",
            where=name,
            remedy="choose the task of the next token (memorize --task next)",
        )
    corpus = BUILTIN[name]()
    if scheme == "iob2" and corpus.scheme is None:
        raise CorpusError(
            "its labels are not IOB tags", where=name, remedy="leave the labels as they are (keep)"
        )
    if not lower and task == corpus.task:
        return corpus
    pairs = [(s.tokens, s.labels) for s in corpus.sentences]
    if lower:
        pairs = [([word.lower() for word in words], labels) for words, labels in pairs]
    corpus = Corpus.from_sentences(pairs, source=name, task=task)
    return replace(corpus, reading={**corpus.reading, "lower": bool(lower)})


def check_no_layout(name: str, format: str, choice: Choice) -> None:
    """Refuse options that only a file has."""
    if (format, choice.token, choice.label) != ("auto", None, None):
        raise SettingError(
            "a built-in corpus has no layout and no columns",
            where=name,
            remedy="leave the options for files out",
        )


def _sentence(draw: random.Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    tokens: list[str] = []
    labels: list[str] = []
    for word in draw.choice(TEMPLATES).split():
        if word == "FULL":
            tokens += [draw.choice(FIRST), draw.choice(NAMES)]
            labels += ["B-PER", "I-PER"]
        elif word in ("PER", "LOC", "ORG"):
            tokens.append(draw.choice(NAMES))
            labels.append(f"B-{word}")
        else:
            tokens.append(draw.choice(WORDS[word]) if word in WORDS else word)
            labels.append("O")
    return tuple(tokens), tuple(labels)
