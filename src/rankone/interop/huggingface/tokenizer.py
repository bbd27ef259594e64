"""A word-level fast tokenizer: a word is a row of the token table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from rankone.extras import extra

with extra("hf", "Hugging Face"):
    from tokenizers import AddedToken, Regex, Tokenizer, normalizers
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    from rankone.interop.huggingface.tokenization_rankone import RankOneTokenizer

UNKNOWN = "[UNK]"
CASED, IGNORED = r"[\p{Cased}&&[^\p{Case_Ignorable}]]", r"\p{Case_Ignorable}"
CHUNK = 10_000  # words tried at once


def word_tokenizer(
    vocabulary: Sequence[str], *, lower: bool = False, max_length: int | None = None
) -> RankOneTokenizer:
    """Splits at white space and numbers the words as they come; one more number, the last, is for
    unknown words and pads. Words that hold white space themselves are found first. `max_length` is
    what `truncation=True` truncates to: as many tokens as the model has positions.

    >>> tokenizer = word_tokenizer(["a", "rose"])
    >>> tokenizer("a red rose")["input_ids"]
    [0, 2, 1]
    """
    unknown = unused(UNKNOWN, vocabulary)
    rows = {word: i for i, word in enumerate((*vocabulary, unknown))}
    backend = Tokenizer(WordLevel(rows, unk_token=unknown))
    backend.pre_tokenizer = WhitespaceSplit()
    if lower:
        backend.normalizer = lower_case()
    spaced = [word for word in vocabulary if re.search(r"\s", word)]
    backend.add_tokens([AddedToken(w, single_word=True, normalized=lower) for w in spaced])
    return RankOneTokenizer(
        tokenizer_object=backend,
        unk_token=unknown,
        pad_token=unknown,
        split_special_tokens=True,  # text that looks like the unknown word is a word like others
        model_max_length=max_length,
        model_input_names=["input_ids", "attention_mask"],
        clean_up_tokenization_spaces=False,
    )


def unused(name: str, words: Iterable[str]) -> str:
    """A name, in brackets if need be, that is not one of these words."""
    known = set(words)
    while name in known:
        name = f"[{name}]"
    return name


def lower_case() -> Any:
    """Letter by letter, but for the sigma that ends a word, as in Python: after a letter that has a
    case, and before none, whatever marks and points stand between (here, three before it at most).
    """
    before = "|".join(CASED + IGNORED * count for count in range(4))
    final = normalizers.Replace(Regex(f"(?<={before})Σ(?!{IGNORED}*{CASED})"), "ς")
    return normalizers.Sequence([final, normalizers.Lowercase()])


def lost_words(
    tokenizer: RankOneTokenizer, vocabulary: Sequence[str], *, lower: bool = False
) -> list[str]:
    """Words that, given one by one, do not come back as their own row; nor, if case does not
    matter, in capitals."""
    lost = []
    for first in range(0, len(vocabulary), CHUNK):
        words = vocabulary[first : first + CHUNK]
        spelled = {word: word for word in words}
        if lower:
            spelled |= {w.upper(): w for w in words if w.upper().lower() == w}
        rows = tokenizer([[s] for s in spelled], is_split_into_words=True)["input_ids"]
        number = {word: i for i, word in enumerate(words, first)}
        pairs = zip(spelled.values(), rows, strict=True)
        lost += [word for word, row in pairs if row != [number[word]]]
    return list(dict.fromkeys(lost))
