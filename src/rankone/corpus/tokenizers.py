"""Tokenizers: how a text becomes tokens, and comes back from them byte for byte.

A token is a string. Tokens laid end to end are the text again, but for `bytes`, whose tokens are
two hexadecimal digits each, and for the file of another library, which knows how to join its own.
A new tokenizer is one entry of `TOKENIZERS`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Protocol

from rankone.errors import CorpusError, RankOneError, SettingError

# A blank before a word or a sign belongs to it; all other white space stands for itself.
WORD = re.compile(r" ?\w+| ?[^\w\s]|\r\n|\s")
HEX = [f"{byte:02x}" for byte in range(256)]
AS_UTF8 = "convert it to UTF-8, or take its bytes as they are (memorize --tokenizer bytes)"
MARK = b"\xef\xbb\xbf"


class Tokenizer(Protocol):
    """``name`` is what `tokenizer_of` takes to make it again: it is kept in the model."""

    @property
    def name(self) -> str: ...

    def decode(self, data: bytes, where: str) -> str:
        """The text that bytes stand for."""

    def encode(self, text: str) -> bytes:
        """The bytes of a text."""

    def split(self, text: str, where: str) -> list[str]:
        """The tokens of a text."""

    def join(self, tokens: Sequence[str]) -> str:
        """The text of tokens."""


class Plain:
    """Tokens laid end to end are the text."""

    name = ""

    def decode(self, data: bytes, where: str) -> str:
        """UTF-8, without NUL characters, which no token may have."""
        data = data.removeprefix(MARK)
        nul = data.find(b"\0")
        if nul >= 0:
            raise CorpusError(
                "a NUL byte: this is not a text file in UTF-8",
                where=f"{where}, line {data.count(10, 0, nul) + 1}",
                remedy=AS_UTF8,
            )
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"byte 0x{data[error.start]:02x} is not valid UTF-8",
                where=f"{where}, line {data.count(10, 0, error.start) + 1}",
                remedy=AS_UTF8,
            ) from None

    def encode(self, text: str) -> bytes:
        return text.encode()

    def join(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)


class WordTokenizer(Plain):
    """Words and signs, each with the blank before it, and all other white space.

    >>> WordTokenizer().split("A rose is\\na  rose.", "")
    ['A', ' rose', ' is', '\\n', 'a', ' ', ' rose', '.']
    """

    name = "words"

    def split(self, text: str, where: str) -> list[str]:  # noqa: ARG002
        return WORD.findall(text)


class CharacterTokenizer(Plain):
    """One character after the other."""

    name = "characters"

    def split(self, text: str, where: str) -> list[str]:  # noqa: ARG002
        return list(text)


class ByteTokenizer:
    """Bytes of any data. A text is here a string of the characters 0 to 255, which stand for the
    bytes.

    >>> ByteTokenizer().split("a\\n", "")
    ['61', '0a']
    """

    name = "bytes"

    def decode(self, data: bytes, where: str) -> str:  # noqa: ARG002
        return data.decode("latin-1")

    def encode(self, text: str) -> bytes:
        return text.encode("latin-1")

    def split(self, text: str, where: str) -> list[str]:  # noqa: ARG002
        return [HEX[byte] for byte in text.encode("latin-1")]

    def join(self, tokens: Sequence[str]) -> str:
        return bytes.fromhex("".join(tokens)).decode("latin-1")


class FileTokenizer(Plain):
    """That of a tokenizer.json of the library `tokenizers`; ``name`` is the text of the file."""

    def __init__(self, contents: str, where: str) -> None:
        try:
            from tokenizers import Tokenizer as Loaded
        except ImportError:
            raise SettingError(
                "a tokenizer file needs the library tokenizers, which is not installed",
                where=where,
                remedy="pip install 'rankone[hf]', or choose words, characters or bytes",
            ) from None
        try:
            self.inner: Any = Loaded.from_str(contents)
        except Exception as error:  # the library raises nothing more special
            raise SettingError(
                f"not a tokenizer ({error})",
                where=where,
                remedy="give a tokenizer.json of Hugging Face, or words, characters or bytes",
            ) from None
        self.inner.no_truncation()
        self.inner.no_padding()
        self.name = contents

    def split(self, text: str, where: str) -> list[str]:
        found = self.inner.encode(text, add_special_tokens=False)
        back = self.inner.decode(found.ids, skip_special_tokens=False)
        if back != text:
            pairs = enumerate(zip_longest(text, back))
            at = next(i for i, (one, other) in pairs if one != other)
            raise CorpusError(
                f"the tokenizer does not reproduce the text: after {text[max(0, at - 20) : at]!r} "
                f"it has {text[at : at + 10]!r}, and the tokens give {back[at : at + 10]!r}",
                where=f"{where}, line {text.count(chr(10), 0, at) + 1}",
                remedy="give a tokenizer without loss (such as byte-level BPE), or words",
            )
        tokens: list[str] = found.tokens
        return tokens

    def join(self, tokens: Sequence[str]) -> str:
        ids = [self.inner.token_to_id(token) for token in tokens]
        text: str = self.inner.decode(ids, skip_special_tokens=False)
        return text


TOKENIZERS: dict[str, Callable[[], Tokenizer]] = {
    "words": WordTokenizer,
    "characters": CharacterTokenizer,
    "bytes": ByteTokenizer,
}


def tokenizer_of(name: str | os.PathLike[str]) -> Tokenizer:
    """The tokenizer of this name: one of the table, the path of a tokenizer.json, or its text."""
    if not isinstance(name, str | os.PathLike):
        raise SettingError(
            f"a tokenizer cannot be {type(name).__name__}", remedy="give its name, or a path"
        )
    return _made(os.fspath(name))


@lru_cache(4)
def _made(name: str) -> Tokenizer:
    if name in TOKENIZERS:
        return TOKENIZERS[name]()
    if name.lstrip().startswith("{"):
        return FileTokenizer(name, "the tokenizer of the model")
    try:
        return FileTokenizer(Path(name).read_text("utf-8"), name)
    except RankOneError:
        raise
    except (OSError, ValueError) as error:
        raise SettingError(
            f"no tokenizer {name!r} ({getattr(error, 'strerror', None) or error})".lower(),
            remedy=f"choose {', '.join(TOKENIZERS)}, or the path of a tokenizer.json",
        ) from None


def is_path(name: object) -> bool:
    """Whether it names a file, rather than a tokenizer of the table or the text of a file."""
    return not (isinstance(name, str) and (name in TOKENIZERS or name.lstrip().startswith("{")))


def shown(name: str) -> str:
    """For people: a file's text is too long to print."""
    return name if name in TOKENIZERS else "tokenizer.json"


def newlines(tokenizer: Tokenizer, tokens: Iterable[str]) -> list[int]:
    """How many lines end within each of these tokens."""
    return [tokenizer.join([token]).count("\n") for token in tokens]
