"""The same labels everywhere, what each way costs, how fast a model loads and rankone starts.

For CoNLL-2003 and EWT the memorised model labels its whole training file by rankone's own predict,
by transformers (the model alone, and the pipeline around it) and by onnxruntime. The words of EWT
as one text are memorised, too, and continued by transformers. One thread each.
Ways are timed in turns, so that what else the machine does slows all of them alike.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial, wraps
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

import rankone
from common import best, data_folder, fresh, ratio, table
from rankone.corpus import Corpus
from rankone.interop.huggingface import (
    RankOneForCausalLM,
    RankOneForTokenClassification,
    export_hf,
)
from rankone.nn import Architecture, Evaluator, Model, TokenClassifier

BATCH = 32
ROUNDS = 5
PART = 1500  # sentences that a pipeline is timed on
WINDOW, MORE = 32, 100  # tokens of a prompt, and after it
Seconds = tuple[float, float]
Labels = list[tuple[str, ...]]
Label = Callable[[list[list[str]]], Labels]


def main() -> None:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    quiet = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    fresh(measure, data_folder(__doc__ or ""), **one_thread, **quiet)
    starting()


def measure(folder: Path) -> None:
    conll, ewt = "conll2003/eng.train", "ud-english-ewt/en_ewt-ud-train.conllu.gz"
    corpora = {
        "CoNLL-2003": rankone.read_corpus(folder / conll, scheme="iob2"),
        "EWT": rankone.read_corpus(folder / ewt),
    }
    models = {name: rankone.memorize(corpus).model for name, corpus in corpora.items()}
    with tempfile.TemporaryDirectory() as scratch:
        for name, corpus in corpora.items():
            labels_everywhere(name, corpus, models[name], Path(scratch))
        generating(corpora["EWT"], Path(scratch))
        loading(models, Path(scratch))


def generating(corpus: Corpus, scratch: Path) -> None:
    """Tokens per second of `generate`, what of it is the text, and how much time is ours."""
    words = [word for sentence in corpus.sentences for word in sentence.tokens]
    text, rows = Corpus.from_texts([" ".join(words)], window=WINDOW), []
    for dtype in ("float32", "float64"):
        home = scratch / f"next-{dtype}"
        export_hf(rankone.memorize(text, dtype=dtype).model, home)
        model, tokenizer = (
            kind.from_pretrained(home) for kind in (AutoModelForCausalLM, AutoTokenizer)
        )
        ids = tokenizer(" ".join(words), add_special_tokens=False)["input_ids"]
        for batch in (1, 50):
            rng = np.random.default_rng(0)
            starts = rng.integers(0, len(ids) - WINDOW - MORE, batch)
            given, wanted = (
                torch.tensor([ids[i + a : i + b] for i in starts.tolist()])
                for a, b in ((0, WINDOW), (WINDOW, WINDOW + MORE))
            )
            options: dict[str, Any] = {"max_new_tokens": MORE, "do_sample": False}
            options["attention_mask"] = torch.ones_like(given)
            right = (model.generate(given, **options)[:, WINDOW:] == wanted).all(1).sum()
            whole, ours = min(shares(model, given, options) for _ in range(ROUNDS))
            speed = f"{batch * MORE / whole:,.0f}"
            rows.append([dtype, str(batch), f"{right} of {batch}", speed, f"{ours / whole:.0%}"])
    print(f"\n{len(ids):,} tokens, a window of {WINDOW}")
    table(["numbers", "batch", "continued as the text", "tokens/s", "of it the model"], rows)


def shares(model: RankOneForCausalLM, given: Tensor, options: dict[str, Any]) -> Seconds:
    """What `generate` takes, and what of it the forward passes take."""
    forward, inside = model.forward, [0.0]

    @wraps(forward)
    def timed(*args: object, **kwargs: object) -> object:
        start = perf_counter()
        found = forward(*args, **kwargs)
        inside[0] += perf_counter() - start
        return found

    model.__dict__["forward"] = timed
    try:
        start = perf_counter()
        model.generate(given, **options)
        return perf_counter() - start, inside[0]
    finally:
        del model.__dict__["forward"]


def labels_everywhere(name: str, corpus: Corpus, model: Model, scratch: Path) -> None:
    """Tokens per second of each way, and what differs from predict."""
    home, graph = scratch / f"{name}-hf", scratch / f"{name}.onnx"
    export_hf(model, home)
    exported = rankone.export_onnx(model, graph, corpus=corpus)
    print(
        f"{name}: {corpus.n_tokens:,} tokens; ONNX checked on all of them by the exporter, ", end=""
    )
    print(f"largest logit difference {exported.difference:.1e}\n")
    sentences = [list(sentence.tokens) for sentence in corpus.sentences]
    ways: dict[str, tuple[Label, int]] = {
        "rankone predict": (model.predict, len(sentences)),
        f"onnxruntime, batches of {BATCH}": (onnx(graph, model), len(sentences)),
        f"transformers model, batches of {BATCH}": (forward(home, model), len(sentences)),
        f"pipeline, batches of {BATCH}": (pipe(home, BATCH), PART),
        "pipeline, one by one": (pipe(home, 1), PART),
    }
    expected = model.predict(sentences)
    differ = {
        way: sum(
            a != b
            for found, wanted in zip(label(sentences), expected, strict=True)
            for a, b in zip(found, wanted, strict=True)
        )
        for way, (label, _) in ways.items()
    }
    times = dict.fromkeys(ways, float("inf"))  # per token
    for _ in range(ROUNDS):
        for way, (label, count) in ways.items():
            tokens = sum(map(len, sentences[:count]))
            seconds = best(partial(label, sentences[:count]), 1)
            times[way] = min(times[way], seconds / tokens)
    least = times["rankone predict"]
    rows = [
        [way, f"{1 / seconds:,.0f}", ratio(seconds, least), f"{differ[way]}"]
        for way, seconds in times.items()
    ]
    table([name, "tokens per second", "time / predict", "labels that differ"], rows)
    print(f"Largest logit difference of transformers: {difference(home, model, corpus):.1e}\n")


def padded(model: Model, words: list[list[str]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array(list(map(len, words)))
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, dtype=np.int64)
    ids[mask] = model.rows([word for sentence in words for word in sentence])
    return ids, mask.astype(np.int64)


def batches(sentences: list[list[str]]) -> list[list[list[str]]]:
    return [sentences[i : i + BATCH] for i in range(0, len(sentences), BATCH)]


def named(model: Model, logits: np.ndarray, mask: np.ndarray) -> Labels:
    rows = logits.argmax(-1)
    return [
        tuple(model.labels[i] for i in row[: real.sum()])
        for row, real in zip(rows, mask, strict=True)
    ]


def onnx(path: Path, model: Model) -> Label:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options)

    def label(sentences: list[list[str]]) -> Labels:
        found: Labels = []
        for batch in batches(sentences):
            ids, mask = padded(model, batch)
            given = {"input_ids": ids, "attention_mask": mask}
            found += named(model, session.run(["logits"], given)[0], mask)
        return found

    return label


def forward(home: Path, model: Model) -> Label:
    network = RankOneForTokenClassification.from_pretrained(home)

    @torch.no_grad()
    def label(sentences: list[list[str]]) -> Labels:
        found: Labels = []
        for batch in batches(sentences):
            ids, mask = padded(model, batch)
            logits = network(torch.from_numpy(ids), attention_mask=torch.from_numpy(mask)).logits
            found += named(model, logits.numpy(), mask)
        return found

    return label


def pipe(home: Path, batch: int) -> Label:
    from transformers import pipeline

    run = pipeline("token-classification", model=str(home), ignore_labels=[])

    def label(sentences: list[list[str]]) -> Labels:
        found = run(sentences, is_split_into_words=True, batch_size=batch)
        return [tuple(token["entity"] for token in sentence) for sentence in found]

    return label


@torch.no_grad()
def difference(home: Path, model: Model, corpus: Corpus) -> float:
    """Of transformers' logits and those that predict decides by, over the whole corpus."""
    network = RankOneForTokenClassification.from_pretrained(home)
    rows = model.rows(corpus.vocabulary)[corpus.token_ids]
    weight, bias = model.network.head.weight.numpy(), model.network.head.bias.numpy()
    ours = Evaluator(model.network).run(
        rows, corpus.offsets, lambda z: (weight @ z + bias[:, None]).T.copy()
    )
    largest = 0.0
    for a, b in pairwise(corpus.offsets.tolist()):
        theirs = network(torch.from_numpy(rows[a:b])[None]).logits[0].numpy()
        largest = max(largest, float(np.abs(theirs - ours[a:b]).max()))
    return largest


def loading(models: dict[str, Model], scratch: Path) -> None:
    """`rankone.load` beside reading all bytes of the same weights with safetensors."""
    words = models["CoNLL-2003"].vocabulary
    shape = Architecture(len(words) + 1, 9, dim=128, hidden=512, positions=113)
    trained = Model(TokenClassifier(shape), words, models["CoNLL-2003"].labels)
    rows = []
    for name, model in {**models, "dimension 128, as trained": trained}.items():
        home = scratch / f"{name}-own"
        model.save(home)
        weights = home / "model.safetensors"
        ways: list[Callable[[], object]] = [
            partial(load_file, weights),
            lambda path=weights: [t.clone() for t in load_file(path).values()],
            partial(rankone.load, home),
            lambda path=home: rankone.load(path).vocabulary,
        ]
        mapped, read, ours, with_words = (best(way, 60) for way in ways)
        times = [f"{1e3 * seconds:.2f}" for seconds in (mapped, read, ours)]
        size = f"{weights.stat().st_size / 1e6:.1f}"
        rows.append([name, size, *times, ratio(ours, read), ratio(with_words, read)])
    head = ["model", "MB", "mapped, ms", "read, ms", "rankone.load, ms"]
    table([*head, "load / read", "with the words taken apart"], rows)


def starting() -> None:
    """Wall time of whole processes, best of several, one after the other."""
    program = str(Path(sys.executable).with_name("rankone"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "python -c 'import rankone'": [sys.executable, "-c", "import rankone"],
        "rankone --help": [program, "--help"],
        "rankone memorize --help": [program, "memorize", "--help"],
    }
    times = dict.fromkeys(commands, float("inf"))
    for _ in range(15):
        for name, command in commands.items():
            run = lambda command=command: subprocess.run(command, capture_output=True)  # noqa: E731
            times[name] = min(times[name], best(run, 1))
    table(["process", "seconds"], [[name, f"{seconds:.3f}"] for name, seconds in times.items()])


if __name__ == "__main__":
    main()
