"""Training beside the same network written plainly in PyTorch, and under the Hugging Face Trainer.

The plain one: token table and positions as `nn.Embedding`, an `nn.TransformerEncoderLayer` with one
head, a linear head; batches in random order, padded; `torch.optim.Adam` over all weights, the whole
token table in every step. Sentences, dimension, hidden size (4 times the dimension), batch size,
learning rate, float32 and threads are the same for all. So are subnormal numbers, taken as 0:
otherwise the moments that Adam lets decay would slow the others down. Loss and right labels are
counted, under the Trainer the loss alone. Contenders are run in turns and the best time of each is
taken, so that ratios are those of one machine at one time. `--quick` takes the first 2,000
sentences; it is kinder to the others, whose token table is then smaller.
"""

from __future__ import annotations

import argparse
import gc
import inspect
import math
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

import common
from rankone import Corpus, Settings, read_corpus
from rankone.kernels.compiled import sentences as loops
from rankone.training import loop
from rankone.training.batches import batches
from rankone.training.initial import initial
from rankone.training.log import Log
from rankone.training.optimizer import BETA1, BETA2, EPSILON
from rankone.training.processes import Processes, arithmetic
from rankone.training.state import Run

IGNORED = -100  # the label of padding
DIMS = (32, 128)
DEPTHS = (1, 2, 4, 8)
EPOCHS = (1, 2, 5, 10, 20)
STRAIGHT = 0.1  # relative; times like n^1.5 would be off their nearest line by 0.2 to 0.3
FLAT = 0.01  # of the peak; a token table kept from every epoch would be 0.1 on CoNLL-2003
MISSING = "not installed: pip install transformers accelerate"
REST = "the rest: right labels, sums"
Figures = tuple[float, float | None]  # of an epoch: loss and accuracy
Watched = dict[str, list[tuple[Any, str]]]  # parts of an epoch: functions, by owner and name


@dataclass(frozen=True)
class Asked:
    """What the command line said; `threads` are those that torch takes by itself."""

    source: str
    quick: bool
    threads: int

    @property
    def turns(self) -> int:
        return 3

    def corpus(self, most: int = 0) -> Corpus:
        """The first sentences, or all."""
        most = most or (2_000 if self.quick else 0)
        corpus = read_corpus(self.source, scheme="auto")
        return Corpus.from_sentences(corpus.sentences[:most]) if most else corpus


class Ours:
    """`fit`, an epoch at a time."""

    def __init__(self, corpus: Corpus, settings: Settings) -> None:
        self.corpus, self.settings = corpus, settings
        self.run = Run(initial(corpus, settings), settings, Processes())

    def epoch(self) -> Figures:
        self.fit(self.run.place.epoch + 1, Log(None))
        line = self.run.place.curve[-1]
        return line["loss"], line["accuracy"]

    def fit(self, epochs: int, log: Log) -> None:
        self.run.settings = replace(self.settings, epochs=epochs)
        nothing: Any = lambda *_: None  # noqa: E731
        loop.fit(self.run, self.corpus, lambda _: [], log, nothing, nothing, nothing)

    def watched(self) -> Watched:
        network: Any = self.run.network
        block = network.blocks[0]
        return {
            "batches": [(loop, "batches")],
            "embedding": [(functional, "embedding"), (network, "ragged")],
            "attention": [(block.attention, "ragged")],
            "attention: the compiled loops": [(loops, "attend")],
            "feed-forward": [(block.feedforward, "forward")],
            "head and loss": [(network.head, "forward"), (functional, "cross_entropy")],
            "backward": [(torch.autograd, "grad")],
            "backward: the compiled loops": [(loops, "turn")],
            "optimizer": [(self.run.optimizer, "step")],
        }


class Network(nn.Module):
    """As one writes it, and as the Trainer wants it: loss and logits by name."""

    def __init__(self, corpus: Corpus, dim: int) -> None:
        super().__init__()
        self.padding = len(corpus.vocabulary)
        self.table = nn.Embedding(self.padding + 1, dim, padding_idx=self.padding)
        self.positions = nn.Embedding(corpus.longest, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 1, 4 * dim, dropout=0.0, batch_first=True)
        self.head = nn.Linear(dim, len(corpus.label_names))

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        x = self.table(input_ids) + self.positions(torch.arange(input_ids.shape[1]))
        logits = self.head(self.layer(x, src_key_padding_mask=input_ids == self.padding))
        flat = logits.flatten(0, 1), labels.flatten()
        return {"loss": functional.cross_entropy(*flat, ignore_index=IGNORED), "logits": logits}


class Plain:
    """The loop that one writes around it."""

    def __init__(self, corpus: Corpus, settings: Settings, **how: bool) -> None:
        torch.manual_seed(settings.seed)
        self.network, self.size = Network(corpus, settings.dim), settings.batch_size
        weights, betas = self.network.parameters(), (BETA1, BETA2)
        self.optimizer = torch.optim.Adam(weights, settings.lr, betas, EPSILON, **how)
        ids, labels = torch.from_numpy(corpus.token_ids), torch.from_numpy(corpus.label_ids)
        at = [slice(*bounds) for bounds in pairwise(corpus.offsets.tolist())]
        self.sentences = [{"input_ids": ids[one], "labels": labels[one]} for one in at]

    def collate(self, chosen: list[dict[str, Tensor]]) -> dict[str, Tensor]:
        padding = {"input_ids": self.network.padding, "labels": IGNORED}
        return {k: pad_sequence([s[k] for s in chosen], True, by) for k, by in padding.items()}

    def batches(self) -> Iterator[dict[str, Tensor]]:
        for some in torch.split(torch.randperm(len(self.sentences)), self.size):
            yield self.collate([self.sentences[i] for i in some.tolist()])

    def epoch(self) -> Figures:
        total, right, tokens = 0.0, 0, 0
        for batch in self.batches():
            found = self.network(**batch)
            self.optimizer.zero_grad()
            found["loss"].backward()
            self.optimizer.step()
            real = int((batch["labels"] != IGNORED).sum())
            total += found["loss"].item() * real
            right += int((found["logits"].argmax(-1) == batch["labels"]).sum())
            tokens += real
        return total / tokens, right / tokens

    def watched(self) -> Watched:
        network, layer = self.network, self.network.layer
        return {
            "batches": [(self, "batches")],
            "embedding": [(functional, "embedding"), (network, "forward")],
            "attention": [(layer, "_sa_block")],
            "feed-forward": [(layer, "_ff_block")],
            "skips and normalisation": [(layer, "forward")],
            "head and loss": [(network.head, "forward"), (functional, "cross_entropy")],
            "backward": [(Tensor, "backward")],
            "optimizer": [(self.optimizer, "zero_grad"), (self.optimizer, "step")],
        }


def under_trainer(corpus: Corpus, settings: Settings, folder: str) -> Callable[[], Figures] | None:
    """An epoch under the Trainer, with its own choice of Adam; None if it is not there."""
    try:
        import accelerate  # noqa: F401  (the Trainer asks for it late)
        from transformers import PrinterCallback, Trainer, TrainingArguments
    except ImportError:
        return None
    plain = Plain(corpus, settings)
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=settings.batch_size,
        num_train_epochs=1,
        learning_rate=settings.lr,
        lr_scheduler_type="constant",
        adam_beta1=BETA1,
        adam_beta2=BETA2,
        adam_epsilon=EPSILON,
        max_grad_norm=0.0,
        logging_strategy="no",
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        dataloader_pin_memory=False,
        remove_unused_columns=False,
    )
    data: Any = plain.sentences
    trainer = Trainer(plain.network, arguments, plain.collate, train_dataset=data)
    trainer.remove_callback(PrinterCallback)
    return lambda: (trainer.train().training_loss, None)


@dataclass
class Best:
    """The shortest time, what the work returned then, and what it returned the first time."""

    seconds: float = math.inf
    result: Any = None
    first: Any = None


def race(contenders: Mapping[str, Callable[[], Any]], turns: int) -> dict[str, Best]:
    found = {name: Best() for name in contenders}
    for turn in range(turns):
        for name, best in found.items():
            gc.collect()
            time.sleep(common.PAUSE)
            started = time.perf_counter()
            result = contenders[name]()
            taken = time.perf_counter() - started
            if taken < best.seconds:
                best.seconds, best.result = taken, result
            if not turn:
                best.first = result
    return found


def epoch(asked: Asked) -> None:
    """One epoch at depth 1."""
    corpus = asked.corpus()
    rows, targets = [], []
    for dim in DIMS:
        for threads in sorted({1, asked.threads}):
            settings, case = Settings(dim=dim), f"dim {dim}, threads {threads}"
            with arithmetic(threads), tempfile.TemporaryDirectory() as folder:
                contenders = {
                    "ours": Ours(corpus, settings).epoch,
                    "plain": Plain(corpus, settings).epoch,
                    "plain, its Adam fused": Plain(corpus, settings, fused=True).epoch,
                    "Trainer": under_trainer(corpus, settings, folder),
                }
                found = race({k: work for k, work in contenders.items() if work}, asked.turns)
            for name in contenders:
                if name not in found:
                    rows.append([f"{case}: {name}", MISSING, *["-"] * 4])
                    continue
                seconds, (loss, accuracy) = found[name].seconds, found[name].first
                ratio = seconds / found["ours"].seconds
                row = [f"{seconds:.2f}", f"{corpus.n_tokens / seconds:,.0f}", f"{ratio:.2f}"]
                row += [f"{loss:.3f}", "-" if accuracy is None else f"{accuracy:.3f}"]
                rows.append([f"{case}: {name}", *row])
                bound = {"plain": 2.0, "Trainer": 3.0}.get(name)
                if bound:
                    targets.append((f"{case}: {name} / ours", "at least", bound, ratio))
    print(f"{size(corpus)}.\n")
    header = "epoch; seconds; tokens/s; / ours; loss of the first epoch; accuracy"
    common.table(header.split("; "), rows)
    common.against(*targets)


class Clock:
    """Seconds by part. At any time one part runs, the innermost, so they add up to the whole."""

    def __init__(self) -> None:
        self.seconds, self.inside, self.since = {REST: 0.0}, [REST], time.perf_counter()

    def tick(self) -> None:
        now, part = time.perf_counter(), self.inside[-1]
        self.seconds[part] = self.seconds.get(part, 0.0) + now - self.since
        self.since = now

    def timed(self, part: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **named: Any) -> Any:
            self.tick()
            self.inside.append(part)
            try:
                return work(*given, **named)
            finally:
                self.tick()
                self.inside.pop()

        def items(*given: Any, **named: Any) -> Iterator[Any]:
            return iter(self.timed(part, partial(next, work(*given, **named), None)), None)

        return items if inspect.isgeneratorfunction(work) else run


def split(contender: Ours | Plain) -> dict[str, float]:
    """An epoch, by parts."""
    with ExitStack() as stack:
        clock = Clock()
        for part, functions in contender.watched().items():
            for owner, name in functions:
                timed = clock.timed(part, getattr(owner, name))
                stack.enter_context(mock.patch.object(owner, name, timed))
        contender.epoch()
        clock.tick()
    return clock.seconds


def products(sizes: list[int], dim: int) -> Callable[[], None]:
    """The six matrix products of a feed-forward layer, forward and backward, for each batch."""
    tokens, hidden = torch.rand(max(sizes), dim), torch.rand(max(sizes), 4 * dim)
    up, down = torch.rand(4 * dim, dim), torch.rand(dim, 4 * dim)

    def work() -> None:
        for n in sizes:
            x, h = tokens[:n], hidden[:n]
            for a, b in ((x, up.T), (h, down.T), (x.T, h), (x, down), (h.T, x), (h, up)):
                torch.mm(a, b)

    return work


def where(asked: Asked) -> None:
    """Where the time of an epoch goes, by 1 thread, and the least that its shapes would take."""
    corpus = asked.corpus()
    for dim in DIMS:
        settings = Settings(dim=dim)
        with arithmetic(1):
            ours, plain = Ours(corpus, settings), Plain(corpus, settings)
            order = batches(corpus, plain.size, seed=0, epoch=0, first=0, processes=Processes())
            real = [batch.asked for batch in order]
            padded = [batch["labels"].numel() for batch in plain.batches()]
            work = {"ours": partial(split, ours), "plain": partial(split, plain)}
            floors = {"real": products(real, dim), "padded": products(padded, dim)}
            found = race({**work, **floors}, asked.turns)
        parts = [*dict.fromkeys([*ours.watched(), *plain.watched()]), REST]
        columns = []
        for name, floor in zip(work, floors, strict=True):
            seconds, least = found[name].result, found[floor].seconds
            whole = sum(seconds.values())
            column = [seconds.get(part) for part in parts] + [whole, least]
            columns.append(["-" if s is None else f"{s * 1e3:,.0f}" for s in column])
            columns.append(["-" if s is None else f"{s / whole:.1%}" for s in column])
            print(f"dim {dim}, {name}: {whole / least:.1f} times its feed-forward products.")
        print(f"Padding makes {sum(padded) / sum(real):.2f} tokens of one.\n")
        names = [*parts, "the whole", "feed-forward products alone"]
        rows = [list(row) for row in zip(names, *columns, strict=True)]
        common.table([f"dim {dim}", "ours ms", "share", "plain ms", "share"], rows)


def depth(asked: Asked) -> None:
    """One epoch by depth, beside the nearest line; distances are relative to the seconds."""
    corpus = asked.corpus(500 if asked.quick else 2_000)
    with arithmetic(1):
        contenders = {str(n): Ours(corpus, Settings(depth=n)).epoch for n in DEPTHS}
        found = race(contenders, 3 * asked.turns)
    seconds = np.array([best.seconds for best in found.values()])
    b, a = np.polyfit(DEPTHS, seconds, 1, w=1 / seconds)
    line = a + b * np.array(DEPTHS)
    off = seconds / line - 1
    columns = found, *([f"{x:.3f}" for x in each] for each in (seconds, line))
    rows = [list(row) for row in zip(*columns, [f"{x:+.1%}" for x in off], strict=True)]
    print(f"{size(corpus)}; dim 32, 1 thread.\n")
    common.table(["depth", "seconds", f"{a:.3f} + {b:.3f} depth", "off"], rows)
    common.against(
        ("largest distance from the line", "at most", STRAIGHT, float(np.abs(off).max()))
    )


class Watch(Log):
    """In place of a log: kB of memory after every epoch, the peak so far and resident now."""

    def __init__(self) -> None:
        super().__init__(None)
        self.seen: dict[int, tuple[int, int]] = {}

    def add(self, line: Mapping[str, float]) -> None:
        self.seen[int(line["epoch"])] = (
            common.resident("VmHWM") >> 10,
            common.resident("VmRSS") >> 10,
        )


def memory_seen(asked: Asked) -> dict[int, tuple[int, int]]:
    watch = Watch()
    with arithmetic(1):
        Ours(asked.corpus(), Settings()).fit(EPOCHS[-1], watch)
    return watch.seen


def memory(asked: Asked) -> None:
    """Memory of a process that trains, dim 32; growth is per epoch since the row above."""
    try:
        seen = common.fresh(memory_seen, asked)
    except OSError:
        print("The system does not tell.\n")
        return
    rows = [[str(n), *(f"{x:,}" for x in seen[n]), "-"] for n in EPOCHS]
    for row, (a, b) in zip(rows[1:], pairwise(EPOCHS), strict=True):
        row[-1] = f"{(seen[b][0] - seen[a][0]) / (b - a):.1f}"
    common.table(["after epoch", "peak kB", "resident kB", "growth of the peak, kB"], rows)
    second, last = EPOCHS[1], EPOCHS[-1]
    grown = seen[last][0] / seen[second][0] - 1
    common.against((f"growth of the peak from epoch {second} to {last}", "at most", FLAT, grown))


def size(corpus: Corpus) -> str:
    counts = corpus.n_sentences, corpus.n_tokens, len(corpus.vocabulary)
    return "{:,} sentences, {:,} tokens, {:,} words".format(*counts)


SECTIONS: dict[str, Callable[[Asked], None]] = {
    work.__name__: work for work in (epoch, where, depth, memory)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of {', '.join(SECTIONS)}")
    parser.add_argument("--quick", action="store_true", help="2,000 sentences")
    file = str(common.SHARED / "conll2003" / "eng.train")
    parser.add_argument("--corpus", default=file, help="a labelled file, or `builtin`")
    arguments = parser.parse_args()
    unknown = set(arguments.sections) - set(SECTIONS)
    if unknown:
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(SECTIONS)}")
    asked = Asked(arguments.corpus, arguments.quick, torch.get_num_threads())
    print(f"{platform.machine()}, {asked.threads} threads, torch {torch.__version__}\n")
    for name, work in SECTIONS.items():
        if not arguments.sections or name in arguments.sections:
            print(f"## {name}\n\n{work.__doc__}\n", flush=True)
            work(asked)


if __name__ == "__main__":
    main()
