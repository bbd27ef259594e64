"""How well does `inspect --suspects` find wrong labels, and how long does it take?

    python benchmarks/suspects.py                        made-up errors in three corpora, and time
    python benchmarks/suspects.py FILE CORRECTED OTHER...  against a corrected copy of FILE

Made-up errors are those that annotators make: an entity of another type, a token short or long,
missed or made up; a part of speech that the word has elsewhere. rankone is given nothing but the
files, and then the same probabilities as cleanlab, those of a linear model that has not seen the
sentence; cleanlab scores a sentence by its worst token. Printed are average precision over
sentences and tokens, and the precision of the first 50 findings.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from typing import Any

import numpy as np
from cleanlab.token_classification.rank import get_label_quality_scores

import rankone
from common import SHARED
from rankone import Corpus
from rankone.arrays import Bools, Floats
from rankone.audit.suspects.linear import expected, train
from rankone.audit.suspects.view import View, surveyed
from rankone.corpus.join import join
from rankone.corpus.parted import parted
from rankone.engines import open_engine

SHARE = 0.01  # of the tokens get a wrong label
CORPORA = {
    "WNUT-17": ["wnut17/wnut17train.conll"],
    "CoNLL-2003": ["conll2003/eng.train"],
    "EWT, UPOS": ["ud-english-ewt/en_ewt-ud-train.conllu.gz"],
}


def average_precision(scores: Floats, wrong: Bools) -> float:
    """The mean, over what is wrong, of the precision down to it."""
    hits = wrong[np.argsort(-scores, kind="stable")]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean())


def with_errors(corpus: Corpus, seed: int) -> tuple[Corpus, Bools]:
    """The corpus with wrong labels, and where they are."""
    rng = np.random.default_rng(seed)
    labels = corpus.label_ids.copy()
    names, wanted = list(corpus.label_names), int(SHARE * corpus.n_tokens)
    ends = np.append(np.diff(corpus.sentence_of) > 0, True)
    change = _entity if corpus.scheme else _word
    for token in rng.permutation(corpus.n_tokens).tolist():
        if (labels != corpus.label_ids).sum() >= wanted:
            break
        change(corpus, labels, names, token, ends, rng)
    return replace(corpus, label_ids=labels), labels != corpus.label_ids


def _entity(
    corpus: Corpus, labels: Any, names: list[str], token: int, ends: Bools, rng: Any
) -> None:
    """One entity changed: its type, its end, or whether there is one (IOB2)."""
    number = {name: i for i, name in enumerate(names)}
    types = sorted({name[2:] for name in names if name != "O"})
    tag, kind = names[labels[token]], rng.integers(4)
    if tag == "O":
        word = corpus.vocabulary[corpus.token_ids[token]]
        if kind == 3 and word[:1].isupper():
            labels[token] = number[f"B-{rng.choice(types)}"]
        return
    if tag[0] != "B":
        return
    last = token
    while not ends[last] and names[labels[last + 1]][0] == "I":
        last += 1
    other = str(rng.choice([t for t in types if t != tag[2:]]))
    run = range(token, last + 1)
    if kind == 0:  # another type
        for i in run:
            labels[i] = number.get(f"{names[labels[i]][0]}-{other}", labels[i])
    elif kind == 1:  # missed
        labels[token : last + 1] = number["O"]
    elif kind == 2 and last > token:  # one short at the end
        labels[last] = number["O"]
    elif not ends[last] and names[labels[last + 1]] == "O":  # one too many
        labels[last + 1] = number.get(f"I-{tag[2:]}", labels[last + 1])


def _word(corpus: Corpus, labels: Any, names: list[str], token: int, _: Bools, rng: Any) -> None:
    """Another label that the word has elsewhere, or else any."""
    same = np.flatnonzero(corpus.token_ids == corpus.token_ids[token])
    others = np.unique(corpus.label_ids[same])
    others = others[others != labels[token]]
    labels[token] = rng.choice(others) if len(others) else rng.integers(len(names))


def probabilities(corpus: Corpus) -> Floats:
    """Of a linear model that has not seen the sentence."""
    whole = parted(corpus, open_engine("here"), corpus.n_tokens)
    seen, (place,) = surveyed(whole)
    engine = whole.engine
    models = train(whole, engine.share(seen), [place], len(seen.names), seed=1)
    view = View.of(seen, engine.take(whole.parts[0].columns), place)
    weights = {name: table[name] for table in map(engine.take, models.models) for name in table}
    scores = expected(view, engine.take(models.folds[0])["folds"], weights)
    chances = np.exp(scores.astype(np.float64))
    return np.asarray(chances / chances.sum(axis=1, keepdims=True))


def by_cleanlab(corpus: Corpus, chances: Floats) -> tuple[Floats, Floats]:
    """Scores of tokens and of sentences, larger if more suspicious."""
    tokens = chances[np.arange(corpus.n_tokens), corpus.label_ids]
    cuts = corpus.offsets[1:-1]
    sentences, _ = get_label_quality_scores(
        [part.tolist() for part in np.split(corpus.label_ids, cuts)], np.split(chances, cuts)
    )
    return 1 - tokens, 1 - np.asarray(sentences)


def by_rankone(
    corpus: Corpus, others: list[Corpus], chances: Floats | None
) -> tuple[Floats, Floats, list[list[int]], float]:
    """The same, the tokens of each finding in order, and the seconds that it took."""
    started = time.perf_counter()
    audit = rankone.inspect(corpus, against=others, suspects=corpus.n_tokens, probabilities=chances)
    seconds = time.perf_counter() - started
    tokens = np.zeros(corpus.n_tokens)
    at = {int(line): i for i, line in enumerate(corpus.lines)}
    found = [[at[line] for line in suspect.lines] for suspect in audit.suspects]
    for rank, (run, suspect) in enumerate(zip(found, audit.suspects, strict=True)):
        tokens[run] = np.maximum(tokens[run], suspect.score + 1e-9 * (len(found) - rank))
    return tokens, np.maximum.reduceat(tokens, corpus.offsets[:-1]), found, seconds


def measure(name: str, corpus: Corpus, others: list[Corpus], wrong: Bools) -> None:
    at = np.logical_or.reduceat(wrong, corpus.offsets[:-1])
    whole = join([corpus, *others])
    chances = probabilities(whole)[: corpus.n_tokens, : len(corpus.label_names)]
    chances /= chances.sum(axis=1, keepdims=True)
    tokens, sentences = by_cleanlab(corpus, chances)
    rows: list[tuple[str, Floats, Floats, Any]] = [
        ("cleanlab, a linear model", tokens, sentences, None)
    ]
    for what in ("rankone, files only", "rankone, the same model"):
        given = chances if "model" in what else None
        tokens, sentences, found, _ = by_rankone(corpus, others, given)
        rows.append((what, tokens, sentences, found))
    print(f"{name}: {wrong.sum():,} of {len(wrong):,} labels wrong, in {at.sum():,} sentences")
    for what, tokens, sentences, found in rows:
        first = ""
        if found is not None:
            hits = [wrong[run].any() for run in found[:50]]
            first = f", {np.mean(hits):.2f} of the first 50 findings"
        print(
            f"  {what:26} AP {average_precision(sentences, at):.3f} over sentences, "
            f"{average_precision(tokens, wrong):.3f} over tokens{first}"
        )


def growth() -> None:
    """Seconds for a corpus and for twice as much of it."""
    corpus = rankone.read_corpus(SHARED / CORPORA["CoNLL-2003"][0], scheme="iob2")
    twice = join([corpus, replace(corpus, source="again", files=("again",))])
    for each in (corpus, corpus, twice):  # the first one compiles
        started = time.perf_counter()
        rankone.inspect(each, suspects=100)
        print(f"{each.n_tokens:,} tokens: {time.perf_counter() - started:.2f} s")


def main() -> None:
    if len(sys.argv) > 2:
        files = [rankone.read_corpus(path, scheme="auto") for path in sys.argv[1:]]
        corpus, corrected, *others = files
        truth = [corrected.label_names[i] for i in corrected.label_ids]
        given = [corpus.label_names[i] for i in corpus.label_ids]
        wrong = np.array([a != b for a, b in zip(given, truth, strict=True)])
        measure(corpus.source, corpus, others, wrong)
        return
    growth()
    for name, paths in CORPORA.items():
        corpus = join([rankone.read_corpus(SHARED / path, scheme="auto") for path in paths])
        measure(name, *_noisy(corpus))


def _noisy(corpus: Corpus) -> tuple[Corpus, list[Corpus], Bools]:
    noisy, wrong = with_errors(corpus, seed=0)
    return noisy, [], wrong


if __name__ == "__main__":
    main()
