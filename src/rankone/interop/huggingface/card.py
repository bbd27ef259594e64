"""The model card: what the model is, its figures, and how to use it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, TypedDict

from msgspec import Meta

from rankone.certification import Certificate
from rankone.corpus.tokenizers import TOKENIZERS
from rankone.nn import Model, TokenClassifier
from rankone.nn.classifier import dtype_name, has_label_numbers
from rankone.plural import plural

Rows = list[tuple[str, str]]
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]
Share = Annotated[float, Meta(ge=0, le=1)]


class Ceiling(TypedDict):
    accuracy: Share


class Report(TypedDict, total=False):
    """report.json of `memorize` or `train`, as far as the card shows it."""

    source: str
    weights: str
    epochs: Count
    tokens: Annotated[int, Meta(ge=1, lt=1 << 62)]
    asked: Annotated[int, Meta(ge=1, lt=1 << 62)]
    sentences: Count
    wrong: Count
    ceilings: dict[str, Ceiling]
    unavoidable: Count
    margin: float


HEADER = """\
---
library_name: transformers
pipeline_tag: {kind}
tags:
- rankone
- {kind}
---
"""
USE = """\
## Use

With [rankone] installed (`pip install 'rankone[hf]'`):

```py
import rankone.interop.huggingface  # registers the model with transformers
from transformers import pipeline

label = pipeline("{kind}", model="{name}")
```

Without it, the code in this directory is all that is needed:

```py
from transformers import pipeline

label = pipeline("{kind}", model="{name}", trust_remote_code=True)
```

Then

```py
{calls}
```

{split} One that is not in the vocabulary gets
the last row of the token table.{longest}

[rankone]: https://arxiv.org/abs/2307.14023
"""
TAGS = """\
label("words with blanks between them , as in the corpus")
label(["words", "that", "are", "split"], is_split_into_words=True)
label(["every", "label"], is_split_into_words=True, ignore_labels=[])"""
TEXTS = """\
label("one text")
label(["one text", "another text"], batch_size=2)"""
AT_BLANKS = "A sentence is split into words at white space, nowhere else."
AS_THERE = "A text is split into tokens as the corpus was (`{name}`)."
LONGEST = """ A sentence may have up to {tokens}; a
pipeline truncates longer ones, or labels them in pieces if it is called with `stride=0`."""
LONGEST_TEXT = """ A text may have up to {tokens}; longer
ones are refused. With `truncation=True` their labels are those of pieces."""
CONSTRUCTED = """\
## What it is for

The weights were constructed, not trained.

- Use them where a model is needed that is known to be right on its corpus: to test a pipeline, a
  conversion or an evaluation, or to study the construction.
- Do not expect right labels on other text. A context that is not in the corpus gets the label of
  whatever context is next to it on a line; nothing was generalised.
- Do not fine-tune them. Contexts are told apart by tiny differences, which a few gradient steps
  destroy: two epochs of `Trainer` took such a model from 99.97 % to 93.5 % of its own corpus.
  Putting the model into training mode gives a warning. To train, start from a new `RankOneConfig`.
- Run them in the type of number given below. With fewer digits close contexts become one.
- Scores of a pipeline say nothing of confidence: the best two logits are 1 apart in any context.
"""
TRAINED = """\
## What it is for

Labelling text like that of its corpus, and training it further: these weights were not constructed.
"""


def model_card(
    model: Model, name: str, *, report: Report | None = None, certificate: Certificate | None = None
) -> str:
    """Markdown, with the header that the hub reads."""
    shape = model.network.shape
    kind = "rank-1" if shape.attention == "rank1" else shape.attention
    layers = "One layer" if shape.depth == 1 else f"{shape.depth} layers"
    made = _made(report, "texts" if model.task.whole else "tokens")
    whole, tokenizer = model.task.whole, model.reading.get("tokenizer")
    longest = (LONGEST_TEXT if whole else LONGEST).format(tokens=plural(shape.positions, "token"))
    shown = tokenizer if tokenizer in TOKENIZERS else "tokenizer.json"
    kind_of_task = "text-classification" if whole else "token-classification"
    return "\n".join(
        [
            HEADER.format(kind=kind_of_task),
            f"# {name}\n",
            f"{layers} of {kind} self-attention, {made}.\n",
            CONSTRUCTED if is_constructed(model.network) else TRAINED,
            "## Figures\n",
            _table([*_shape(model), *_figures(report or {})]),
            "## Certificate\n",
            _certificate(certificate),
            USE.format(
                name=name,
                kind=kind_of_task,
                calls=TEXTS if whole else TAGS,
                split=AT_BLANKS if tokenizer is None else AS_THERE.format(name=shown),
                longest=longest if shape.positions else "",
            ),
        ]
    )


def is_constructed(network: TokenClassifier) -> bool:
    """Whether the head still is what `memorize` writes (whole numbers, for a gated layer), or, for
    a constructed mapping without a readout, of zeros.

    The weights themselves are asked, for a network that was trained further in torch keeps its
    files and its report.
    """
    head = network.head
    if network.shape.feedforward == "gated":
        return all(x.equal(x.round()) for x in (head.weight, head.bias))
    empty = not (head.weight.any() or head.bias.any())
    return network.shape.feedforward == "rank1" and (empty or has_label_numbers(head))


def _made(report: Report | None, units: str) -> str:
    if report is None:
        return f"for labelling {units}"
    source = PurePath(report.get("source", "")).name
    corpus = _code(source) if source else "a labelled corpus"
    if "epochs" in report:
        return f"trained on {corpus} for {plural(report['epochs'], 'epoch')}"
    return f"built from {corpus} without training, and right on it wherever a model can be"


def _shape(model: Model) -> Rows:
    shape, network = model.network.shape, model.network
    return [
        ("words", f"{len(model.vocabulary):,}"),
        ("labels", ", ".join(map(_code, model.labels))),
        ("parameters", f"{sum(p.numel() for p in network.parameters()):,}"),
        ("numbers", dtype_name(network)),
        ("dimension", f"{shape.dim:,}"),
        ("hidden units", f"{shape.hidden:,}"),
        ("positions", f"{shape.positions:,}" if shape.positions else "none"),
        ("causal", "yes" if shape.causal else "no"),
    ]


def _figures(report: Report) -> Rows:
    """Those of `memorize` and of `train` that are there."""
    rows: Rows = []
    if "tokens" in report and "wrong" in report and "sentences" in report:
        tokens, wrong = report["tokens"], report["wrong"]
        asked = report.get("asked", tokens)
        corpus = f"{plural(tokens, 'token')} in {plural(report['sentences'], 'sentence')}"
        rows.append(("size of the corpus", corpus))
        rows.append(("labelled right", f"{asked - wrong:,} ({1 - wrong / asked:.4%})"))
    ceilings = report.get("ceilings", {})
    for name, title in (("input", "ceiling of any model"), ("token", "ceiling of the token alone")):
        if name in ceilings:
            rows.append((title, f"{ceilings[name]['accuracy']:.4%}"))
    if "unavoidable" in report:
        rows.append(("wrong in any model", f"{report['unavoidable']:,}"))
    if "margin" in report:
        rows.append(("margin (labels are 1 apart)", f"{report['margin']:.6f}"))
    return rows


def _certificate(certificate: Certificate | None) -> str:
    if certificate is None:
        return "None: the figures above were measured, not proved. `rankone certify` proves them.\n"
    corpus = _code(PurePath(certificate.source).name)
    rows = [
        ("outcome", f"**{certificate.outcome.value}**"),
        ("corpus", f"{corpus}, {plural(certificate.tokens, 'token')}"),
        ("contexts apart by more than", certificate.delta),
        (f"{certificate.dtype} run off by less than", certificate.float_distance),
    ]
    if certificate.labels is not None:
        rows.insert(2, ("labels", certificate.labels.value))
        rows.insert(
            3, ("wrong", f"{certificate.wrong:,} ({certificate.unavoidable:,} unavoidable)")
        )
    if certificate.margin is not None:
        rows.append(("margin", f"{certificate.margin:.6f}"))
    if certificate.reason is not None:
        rows.append(("reason", certificate.reason))
    return "In interval arithmetic, of these weights and this corpus:\n\n" + _table(rows)


def _table(rows: Rows) -> str:
    cells = [(name, value.replace("|", "\\|").replace("\n", " ")) for name, value in rows]
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {cell} |" for name, cell in cells), ""])


def _code(text: str) -> str:
    text = " ".join(text.split("\n"))
    return f"`` {text} ``" if "`" in text else f"`{text}`"
