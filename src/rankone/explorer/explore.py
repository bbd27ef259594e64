"""Explore a model: a page in which it runs, with its corpus and its certificate."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankone.certification import Certificate
from rankone.corpus import Corpus
from rankone.corpus.parts import cut
from rankone.corpus.read import corpus_like
from rankone.corpus.tasks import BEGIN
from rankone.documents import figures
from rankone.errors import CorpusError, SettingError, SizeError
from rankone.explorer.frame import page
from rankone.explorer.network import NetworkData
from rankone.explorer.packing import Arrays, pack
from rankone.explorer.proof import certificate_in, proof_data
from rankone.explorer.sentences import SentencesData
from rankone.files import write_file
from rankone.nn import Model, load
from rankone.nn.classifier import dtype_name
from rankone.nn.ragged import LONGER, check_lengths
from rankone.plural import plural
from rankone.progress import Progress

LIMIT = 10_000_000  # bytes of a page


@dataclass(frozen=True)
class Explorer:
    """A page: HTML that needs no network and no other file. ``sentences`` and ``tokens`` count
    those of the corpus that are in it, ``bytes`` its size."""

    title: str
    sentences: int
    tokens: int
    bytes: int
    html: str = field(repr=False)

    @property
    def ok(self) -> bool:
        """A page that is too large is refused; so there always is one."""
        return True

    def to_json(self) -> dict[str, Any]:
        return figures(self, "html")

    def save(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the page, whole or not at all."""
        return [write_file(path, self.html)]


def explore(
    model: Model | str | os.PathLike[str],
    corpus: Any = None,
    *,
    certificate: Certificate | None = None,
    sentences: int | None = None,
    limit: int = LIMIT,
    progress: Progress = lambda *_: None,
) -> Explorer:
    """A page with a model that runs in it, in its own precision.

    `model` is a model or its directory, whose certificate is then taken. `corpus` is whatever
    `memorize` takes; with None, sentences can be typed only. Of a large one, the first `sentences`
    are taken. A page of more than `limit` bytes is refused.

    >>> import rankone
    >>> explore(rankone.memorize("toy").model, "toy").tokens
    30
    """
    SettingError.unless(sentences is None or sentences > 0, "sentences", sentences, "1 or more")
    progress("load", 0.0)
    name = "model"
    if not isinstance(model, Model):
        name = Path(model).name or os.fspath(model)
        certificate = certificate or certificate_in(Path(model))
        model = load(model)
    progress("read", 0.0)
    whole = None
    if corpus is not None:
        whole = corpus_like(corpus, model.reading, model.labels, labelled=None)
        if not isinstance(whole, Corpus):
            raise CorpusError("a corpus in parts", remedy="give a file, or a corpus in memory")
        if model.task.whole:
            check_lengths(whole.lengths, model.positions, whole.place_of_sentence, LONGER)
    progress("write", 0.0)
    network = NetworkData(model.network)
    arrays: Arrays = network.arrays
    given: SentencesData | None = None
    if whole is not None:
        count = min(sentences or whole.n_sentences, whole.n_sentences)
        given = SentencesData(model, cut(whole, [count])[0])
        given.check()
        arrays = {**arrays, **given.arrays()}
    data = {
        "network": network.description,
        "vocabulary": list(model.vocabulary),
        "labels": list(model.labels),
        "reading": {**model.reading},
        "begin": BEGIN if model.network.shape.window else None,
        "corpus": None if given is None else given.figures(),
        "certificate": proof_data(certificate, model, whole),
    }
    line = described(model)

    def made(arrays: Arrays) -> str:
        return page("explorer.html", "app", title=name, shape=line, data=pack(data, arrays))

    html = made(arrays)
    size = len(html.encode())
    if size > limit:
        raise SizeError(
            f"the page would have {size / 1e6:.1f} MB, and {limit / 1e6:.0f} MB is the limit",
            remedy=_smaller(given, size, len(made(network.arrays)), limit),
        )
    counts = (0, 0) if given is None else (given.corpus.n_sentences, given.corpus.n_tokens)
    return Explorer(name, *counts, size, html)


def _smaller(given: SentencesData | None, size: int, bare: int, limit: int) -> str:
    """What to leave out: the model alone takes about `bare` bytes of `size`."""
    if given is None or bare >= limit:
        return f"give a smaller model: this one alone takes {bare / 1e6:.1f} MB"
    most = max(1, int(given.corpus.n_sentences * (limit - bare) / (size - bare) * 0.9))
    return f"take fewer sentences: about {most:,} fit (--sentences {most})"


def described(model: Model) -> str:
    """The network in a line."""
    shape = model.network.shape
    parts = [
        plural(shape.depth, "block"),
        plural(shape.heads, "head"),
        f"{plural(shape.hidden, 'hidden unit')}, {model.network.blocks[-1].feedforward.kind}",
        f"dimension {shape.dim:,}",
        plural(len(model.vocabulary), "word"),
        plural(shape.labels, "label"),
        dtype_name(model.network),
    ]
    parts += [f"a window of {plural(shape.window, 'token')}"] if shape.window else []
    parts += ["causal"] if shape.causal and not shape.window else []
    return " · ".join(parts)
