"""A tokenizer that takes what is empty: no words, and words without a letter.

Like `modeling_rankone.py`, this file depends on nothing else here and is saved with the weights.
"""

from __future__ import annotations

from typing import Any

from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import BatchEncoding, PreTrainedTokenizerFast
from transformers.utils import logging

logger = logging.get_logger(__name__)

TRUNCATED = (
    "A sentence was truncated, and the words beyond get no label. A pipeline labels long sentences "
    "in pieces if it is called with `stride=0`."
)
CUT = "A text was truncated: what the model says of it is of a piece, not of the text."


class RankOneTokenizer(PreTrainedTokenizerFast):
    """Every word is a token. Where words are given one by one, a blank one is an unknown word.
    Tokenizers of texts, which have tokens for white space, take blanks as they are.

    A sentence without words has no tokens; as a tensor, which cannot be padded without a column, it
    has one that is masked and special.
    """

    def __call__(self, text: Any = None, *args: Any, **options: Any) -> BatchEncoding:
        blanks: set[tuple[int, int]] = set()
        words = isinstance(self.backend_tokenizer.pre_tokenizer, WhitespaceSplit)
        if words and options.get("is_split_into_words"):
            text, blanks = self._without_blanks(text)
        found = super().__call__(text, *args, **options)
        if options.get("return_tensors") and not found["input_ids"].shape[-1]:
            one = {"padding": "max_length", "max_length": 1, "truncation": False}
            found = super().__call__(text, *args, **{**options, **one})
        if blanks and "offset_mapping" in found:
            _shrink(found, blanks)
        whole = options.get("return_overflowing_tokens")
        if not whole and any(part.overflowing for part in found.encodings or ()):
            logger.warning_once(TRUNCATED if words else CUT)
        return found

    def _without_blanks(self, text: Any) -> tuple[Any, set[tuple[int, int]]]:
        """Replace blank words by the unknown word, unless they are known; and their places."""
        if not isinstance(text, list | tuple) or not text:
            return text, set()
        batch = all(isinstance(words, list | tuple) for words in text)
        sentences = text if batch else [text]
        blanks = {
            (i, j)
            for i, words in enumerate(sentences)
            for j, word in enumerate(words)
            if isinstance(word, str)
            and not word.strip()
            and self.backend_tokenizer.token_to_id(word) is None
        }
        if not blanks:
            return text, blanks
        sentences = [
            [self.unk_token if (i, j) in blanks else word for j, word in enumerate(words)]
            for i, words in enumerate(sentences)
        ]
        return sentences if batch else sentences[0], blanks


def _shrink(found: BatchEncoding, blanks: set[tuple[int, int]]) -> None:
    """The unknown word that stands for a blank one covers nothing of the text."""
    places, rows = found["offset_mapping"], range(len(found.encodings or ()))
    alone = len(places) and isinstance(found["input_ids"][0], int)  # no dimension for the batch
    samples = found.get("overflow_to_sample_mapping", rows)
    for row in rows:
        offsets = places if alone else places[row]
        for at, word in enumerate(found.word_ids(row)):
            if (int(samples[row]), word) in blanks:
                offsets[at] = (0, 0) if isinstance(offsets, list) else 0
