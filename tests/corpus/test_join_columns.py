"""Files of different width as one corpus: a column that the user chose is the same in all."""

from __future__ import annotations

from pathlib import Path

import pytest

import rankone
from rankone import Corpus
from rankone.corpus import join
from rankone.errors import CorpusError


def read(tmp_path: Path, *texts: str, **how: int) -> list[Corpus]:
    paths = [tmp_path / f"{i}.conll" for i in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return [rankone.read_corpus(path, **how) for path in paths]


@pytest.mark.parametrize(
    ("texts", "how"),
    [
        (("a P X\n", "b P P X\n"), {"label_column": -1}),
        (("a X P\n", "b X P P\n"), {"label_column": 2}),
        (("P a X\n", "P P b X\n"), {"token_column": -2, "label_column": -1}),
    ],
)
def test_a_column_that_was_chosen_is_the_same(
    tmp_path: Path, texts: tuple[str, str], how: dict[str, int]
) -> None:
    whole = join(read(tmp_path, *texts, **how))
    assert (whole.vocabulary, whole.label_names) == (("a", "b"), ("X",))


def test_a_column_that_was_guessed_may_not_be(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"labels in column 3 of 3, but .*column 4 of 4") as no:
        join(read(tmp_path, "a P X\n", "b P P X\n"))
    assert "--label-column" in str(no.value.remedy)


def test_columns_that_were_chosen_differently_are_not(tmp_path: Path) -> None:
    path = tmp_path / "a.conll"
    path.write_text("a b X Y\n")
    parts = [rankone.read_corpus(path, token_column=k, label_column=k + 1) for k in (1, 2)]
    with pytest.raises(CorpusError, match="tokens in column 1, labels in column 2 of 4, but"):
        join(parts)
