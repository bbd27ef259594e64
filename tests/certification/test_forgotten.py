"""What a certificate says of sentences that a model should not hold."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import rankone
from rankone.certification.certificate import read_certificate
from rankone.cli import main
from rankone.corpus import Corpus
from rankone.errors import ModelError

KEPT = [
    (["a", "b"], ["X", "Y"]),
    (["b", "a"], ["Y", "X"]),
    (["a", "c"], ["X", "Y"]),
    (["c", "b", "b"], ["Y", "Y", "Y"]),
]
GONE = (["a", "d", "b"], ["Y", "X", "Y"])  # an exception for a, a new word, and a usual label


def made(sentences: Any, **given: Any) -> rankone.Model:
    return rankone.memorize(sentences, construction="gated", editable=True, **given).model


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_before_and_after(dtype: str) -> None:
    model = made([*KEPT, GONE], dtype=dtype)
    before = rankone.certify(model, KEPT, forgotten=[GONE]).forgotten
    assert before is not None
    assert (before.contexts, before.held) == (3, 0)
    assert before.units >= 1
    assert before.idle == before.units  # only the exception needed them
    assert not before.ok
    after = rankone.certify(rankone.forget(model, [GONE]).model, KEPT, forgotten=[GONE]).forgotten
    assert after is not None
    assert (after.contexts, after.held, after.silent) == (3, 0, 3)
    assert (after.units, after.idle, after.ok) == (0, 0, True)
    words = "\0".join(["3", *GONE[0], ""]).encode()
    assert after.sentences == (sha256(words).hexdigest(),)


def test_contexts_that_the_corpus_has_too() -> None:
    """A causal model sees prefixes; these may be those of other sentences."""
    model = made([*KEPT, GONE], causal=True)
    found = rankone.certify(model, [*KEPT, GONE], forgotten=[(["a", "b", "a"], ["X", "Y", "X"])])
    left = found.forgotten
    assert left is not None
    assert (left.contexts, left.held) == (3, 2)
    same = rankone.certify(model, [*KEPT, GONE], forgotten=[GONE]).forgotten
    assert same is not None
    assert (same.held, same.contexts, same.units) == (3, 3, 0)


def test_units_that_serve_others_are_not_idle() -> None:
    corpus = rankone.builtin_corpus(120)
    model = made(corpus)
    sentence = next(s for s in corpus.sentences if len(s.tokens) > 6)
    found = rankone.forget(model, [sentence])
    rest = [s for s in corpus.sentences if s.tokens != sentence.tokens]
    left = rankone.certify(found.model, rest, forgotten=[sentence]).forgotten
    assert left is not None
    assert left.units > left.idle == 0
    assert left.silent < left.contexts - left.held


def test_sentences_longer_than_the_table_of_positions() -> None:
    model = made(KEPT)
    long = [(["a"] * 9, ["X"] * 9)]
    left = rankone.certify(model, KEPT, forgotten=long).forgotten
    assert left is not None
    assert left.contexts == 9


def test_it_is_checked_again(tmp_path: Path) -> None:
    model = rankone.forget(made([*KEPT, GONE]), [GONE]).model
    path = rankone.certify(model, KEPT, forgotten=[GONE]).save(tmp_path / "c.json")
    old = read_certificate(path)
    assert rankone.check_certificate(old, model, KEPT, forgotten=[GONE]).ok
    (reason,) = rankone.check_certificate(old, model, KEPT).reasons
    assert "--forgotten" in reason
    assert old.forgotten is not None
    for name, value in (("silent", 2), ("held", 1), ("sentences", ("0",)), ("units", 1)):
        false = replace(old, forgotten=replace(old.forgotten, **{name: value}))
        (reason,) = rankone.check_certificate(false, model, KEPT, forgotten=[GONE]).reasons
        assert "something else" in reason


def test_networks_without_gates_are_refused() -> None:
    model = rankone.memorize(Corpus.from_sentences(KEPT)).model
    with pytest.raises(ModelError, match="gates are proved"):
        rankone.certify(model, KEPT, forgotten=[GONE])


def test_on_the_command_line(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    def written(name: str, pairs: Any) -> str:
        rows = ("\n".join(map(" ".join, zip(*pair, strict=True))) for pair in pairs)
        (tmp_path / name).write_text("\n\n".join(rows) + "\n")
        return str(tmp_path / name)

    def run(*arguments: str) -> tuple[int, Any]:
        monkeypatch.setattr(sys, "argv", ["rankone", *arguments, "--json"])
        with pytest.raises(SystemExit) as left:
            main()
        return int(left.value.code or 0), json.loads(capsys.readouterr().out)

    whole, rest, gone = written("w", [*KEPT, GONE]), written("r", KEPT), written("g", [GONE])
    model, less = str(tmp_path / "model"), str(tmp_path / "less")
    run("memorize", whole, "--construction", "gated", "--editable", "--out", model)
    assert run("edit", model, "--forget", gone, "--out", less)[1]["forgotten"] == 1
    code, found = run("certify", less, rest, "--forgotten", gone)
    assert code == 0
    assert found["forgotten"]["anew"] is True
    again = ("--check", f"{less}/certificate.json")
    assert run("certify", less, rest, "--forgotten", gone, *again)[0] == 0
    assert run("certify", less, rest, *again)[0] == 1
    code, found = run("certify", model, rest, "--forgotten", gone)
    assert code == 1
    assert found["forgotten"]["anew"] is False
