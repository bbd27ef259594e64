"""What every task must keep: those of the table, and two toys that only this test knows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import get_args

import pytest
import torch
from hypothesis import assume, given
from torch import nn

import corpora
import rankone
import tasks
from rankone import Corpus, choices
from rankone.corpus.targets import choose_targets
from rankone.corpus.tasks import TASKS
from rankone.errors import CorpusError, SettingError
from rankone.nn import Architecture, Model, TokenClassifier
from rankone.nn.scores import score

Asked = tuple[list[str], int, str, int]  # the words, the place of the token, what is wanted, line

every = pytest.mark.parametrize("task", tasks.ALL)


def asked(sentences: corpora.Sentences, corpus: Corpus) -> Iterator[Asked]:
    """What the corpus asks, token by token."""
    wanted = iter(corpus.label_ids.tolist())
    for number, (words, _) in enumerate(sentences, start=1):
        for k, label in zip(range(len(words)), wanted, strict=False):
            if label >= 0:
                yield words, k, corpus.label_names[label], number


def counts(
    sentences: corpora.Sentences, corpus: Corpus, look: corpora.Look
) -> dict[Hashable, Counter[str]]:
    """How often each context carries each label."""
    seen: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
    for words, k, label, _ in asked(sentences, corpus):
        seen[look(words, k)][label] += 1
    return seen


def test_names_to_choose_from_are_those_of_the_table() -> None:
    assert get_args(choices.Task) == tuple(TASKS)
    for name, task in TASKS.items():
        assert (task.name, bool(task.description)) == (name, True)


def test_an_unknown_task_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown task 'chess'"):
        Corpus.from_sentences(corpora.spelled("ab xy"), task="chess")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="unknown task 'chess'"):
        rankone.read_corpus("toy", task="chess")  # type: ignore[arg-type]


TARGETS: dict[str, Callable[[list[str], list[str]], list[str | None]]] = {
    "tags": lambda _, labels: [*labels],
    "toy-last": lambda _, labels: [*[None] * (len(labels) - 1), labels[-1]],
    "toy-next": lambda words, _: [*words[1:], None],
}


@pytest.mark.parametrize("task", TARGETS)
@given(sentences=corpora.sentences())
def test_each_task_asks_what_it_says(sentences: corpora.Sentences, task: str) -> None:
    corpus = tasks.corpus_of(sentences, task)
    targets = [target for pair in sentences for target in TARGETS[task](*pair)]
    names = [*corpus.label_names, None]
    assert [names[i] for i in corpus.label_ids.tolist()] == targets


@every
@given(sentences=corpora.sentences())
def test_labels_are_numbered_as_they_are_asked(sentences: corpora.Sentences, task: str) -> None:
    corpus = tasks.corpus_of(sentences, task)
    names = [label for _, _, label, _ in asked(sentences, corpus)]
    assert corpus.label_names == tuple(dict.fromkeys(names))
    assert corpus.labelled == bool(names)
    assert corpus.asked.tolist() == [i for i, label in enumerate(corpus.label_ids) if label != -1]
    shown = [label for sentence in corpus.sentences for label in sentence.labels]
    others = set(range(len(shown))) - {*corpus.asked.tolist()}
    assert [shown[i] for i in corpus.asked] == names
    assert {shown[i] for i in others} <= {"_"}


@every
@given(sentences=corpora.sentences())
def test_the_audit_counts_what_is_asked(sentences: corpora.Sentences, task: str) -> None:
    corpus = tasks.corpus_of(sentences, task)
    rows = list(asked(sentences, corpus))
    if not rows:
        with pytest.raises(CorpusError, match="no labels"):
            rankone.inspect(corpus)
        return
    audit = rankone.inspect(corpus)
    assert (audit.task, audit.asked, audit.tokens) == (task, len(rows), corpus.n_tokens)
    assert audit.labels == Counter(label for _, _, label, _ in rows)
    for name, ceiling in audit.ceilings.items():
        seen = counts(sentences, corpus, corpora.LOOKS[name]).values()
        errors = sum(c.total() - max(c.values()) for c in seen)
        assert (ceiling.errors, ceiling.accuracy) == (errors, (len(rows) - errors) / len(rows))
    assert ("asked" in audit.to_json()) == (task != "tags")


@every
@given(sentences=corpora.sentences())
def test_conflicts_are_rows_that_are_asked(sentences: corpora.Sentences, task: str) -> None:
    corpus = tasks.corpus_of(sentences, task)
    assume(corpus.labelled)
    audit, recited = rankone.inspect(corpus), task == "next"
    look = corpora.LOOKS["prefix" if recited else "sequence"]
    lines: defaultdict[Hashable, dict[str, list[int]]] = defaultdict(dict)
    for words, k, label, line in asked(sentences, corpus):
        lines[look(words, k)].setdefault(label, []).append(line)
    found = [conflict.labels for conflict in audit.conflicts]
    wanted = [labels for labels in lines.values() if len(labels) > 1]
    if recited:  # those that cost the most come first, and copies of a sentence agree
        assert Counter(map(str, map(sorted, map(dict.items, found)))) == Counter(
            map(str, map(sorted, map(dict.items, wanted)))
        )
        assert audit.disagreeing_sequences == audit.disagreeing_copies == 0
        return
    assert found == wanted
    at_odds = {key[1] for key, labels in lines.items() if len(labels) > 1}  # type: ignore[index]
    assert audit.disagreeing_sequences == len(at_odds)
    copies = Counter(tuple(words) for words, _ in sentences)
    assert audit.disagreeing_copies == sum(copies[words] for words in at_odds)


@every
@pytest.mark.parametrize(
    ("how", "look"),
    [
        ({"positions": True, "causal": False}, "sequence"),
        ({"positions": True, "causal": True}, "prefix"),
        ({"positions": False, "causal": False}, "proportions"),
        ({"positions": False, "causal": True}, "prefix proportions"),
    ],
)
@given(sentences=corpora.sentences())
def test_a_token_gets_the_label_its_context_is_most_asked_for(
    sentences: corpora.Sentences, task: str, how: dict[str, bool], look: str
) -> None:
    corpus = tasks.corpus_of(sentences, task)
    targets = choose_targets([corpus], **how, strict=False)
    seen = counts(sentences, corpus, corpora.LOOKS[look])
    tokens = [(words, k) for words, _ in sentences for k in range(len(words))]
    keys = [corpora.LOOKS[look](*token) for token in tokens]
    labels = targets.parts[0].labels.tolist()
    # most_common keeps the order of first appearance among equals
    expected = [seen[key].most_common(1)[0][0] if key in seen else None for key in keys]
    assert [None if i < 0 else corpus.label_names[i] for i in labels] == expected
    assert targets.parts[0].contexts.tolist() == [keys.index(key) for key in keys]
    assert targets.unavoidable == sum(c.total() - max(c.values()) for c in seen.values())


def always_first(corpus: Corpus) -> Model:
    """A model that says the first label, whatever the word."""
    shape = Architecture(vocabulary=len(corpus.vocabulary) + 1, labels=2, dim=1, hidden=0, depth=0)
    table, head = nn.Parameter(torch.ones(shape.vocabulary, 1).double()), nn.Linear(1, 2).double()
    with torch.no_grad():
        head.weight.copy_(torch.tensor([[1.0], [0.0]]))
        head.bias.zero_()
    network = TokenClassifier.assemble(shape, table, None, [], head)
    return Model(network, corpus.vocabulary, (corpus.label_names[0], "none of the corpus"))


@every
@given(sentences=corpora.sentences())
def test_scores_count_what_is_asked(sentences: corpora.Sentences, task: str) -> None:
    corpus = tasks.corpus_of(sentences, task)
    assume(corpus.labelled)
    found = score(always_first(corpus), corpus)
    names = [label for _, _, label, _ in asked(sentences, corpus)]
    assert (found.tokens, found.right) == (len(names), names.count(names[0]))
    assert found.accuracy == names.count(names[0]) / len(names)
    assert found.f1 is None


def test_entity_tags_of_another_task_are_no_entities() -> None:
    sentences = [(["a", "b"], ["B-X", "I-X"]), (["a"], ["O"])]
    assert tasks.corpus_of(sentences, "tags").scheme == "IOB2"
    assert tasks.corpus_of(sentences, "toy-last").scheme is None


@every
def test_files_and_built_in_corpora_are_read_for_the_task(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.register(monkeypatch)
    path = tmp_path / "a.conll"
    path.write_text("A X\nb Y\na X\n\nB Y\n")
    how = {"task": task, "lower": True}
    corpus = rankone.read_corpus(path, **how)  # type: ignore[arg-type]
    sentences = [(["a", "b", "a"], ["X", "Y", "X"]), (["b"], ["Y"])]
    same = tasks.corpus_of(sentences, task)
    assert corpus.label_ids.tolist() == same.label_ids.tolist()
    assert (corpus.label_names, corpus.task) == (same.label_names, task)
    assert corpus.reading["task"] == task
    assert same.reading.get("task", "tags") == task
    assert not rankone.read_corpus(path, labelled=False, **how).labelled  # type: ignore[arg-type]
    toy = rankone.read_corpus("toy", **how)  # type: ignore[arg-type]
    plain = [(s.tokens, s.labels) for s in rankone.read_corpus("toy").sentences]
    assert toy.label_ids.tolist() == tasks.corpus_of(plain, task).label_ids.tolist()
    assert (toy.reading["lower"], toy.reading.get("task", "tags")) == (True, task)


def test_a_task_that_needs_no_labels_takes_any_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks.register(monkeypatch)
    path = tmp_path / "a.txt"
    path.write_text("a rose is a rose\nand so\n")
    text = rankone.read_corpus(path, format="text", task="toy-next")  # type: ignore[arg-type]
    assert text.label_names == ("rose", "is", "a", "so")
    model = always_first(text)
    model.reading |= text.reading
    again = model.read(path, format="text")
    assert (again.task, again.label_names) == ("toy-next", text.label_names)
    with pytest.raises(CorpusError, match="plain text has no labels"):
        rankone.read_corpus(path, format="text", task="toy-last")  # type: ignore[arg-type]
