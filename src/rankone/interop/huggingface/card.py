"""The model card: what the model is, its figures, and how to use it."""

from __future__ import annotations

from pathlib import PurePath
from typing import Annotated, NamedTuple, TypedDict

from msgspec import Meta

from rankone.certification import Certificate
from rankone.corpus.tasks import asks_next
from rankone.corpus.tokenizers import TOKENIZERS
from rankone.nn import Model, TokenClassifier
from rankone.nn.classifier import dtype_name, has_label_numbers
from rankone.nn.mixed_codes import MixedCodes
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
    bits: float | None
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

{call} = pipeline("{kind}", model="{name}")
```

Without it, the code in this directory is all that is needed:

```py
from transformers import pipeline

{call} = pipeline("{kind}", model="{name}", trust_remote_code=True)
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
GENERATE = """\
write("a prompt", max_new_tokens=100, do_sample=False)  # greedy: the most frequent continuation
model, tokenizer = write.model, write.tokenizer
batch = tokenizer(["one prompt", "another, longer prompt"], padding=True, return_tensors="pt")
model.generate(**batch, max_new_tokens=100, do_sample=False)"""
AT_BLANKS = "A sentence is split into words at white space, nowhere else."
AS_THERE = "A text is split into tokens as the corpus was (`{name}`)."
LONGEST = """ A sentence may have up to {tokens}; a
pipeline truncates longer ones, or labels them in pieces if it is called with `stride=0`."""
LONGEST_TEXT = """ A text may have up to {tokens}; longer
ones are refused. With `truncation=True` their labels are those of pieces."""
LONGEST_PROMPT = """ A prompt and its
continuation may have up to {tokens}; longer ones are refused."""
ANYWHERE = """ A prompt may begin
anywhere in the corpus, if it has {tokens} or more, and at the beginning of a document
whatever it has: the tokenizer puts `<|begin|>` in front."""
RECITES = """\
## What it is for

The weights were constructed, not trained, so that the model holds its corpus: after what is in the
corpus, greedy decoding gives the next tokens that are most frequent there.

- Use it where it must be known what a model has memorised: to test a measure of memorisation, a
  conversion or an evaluation.
- Do not expect sense after any other text. Nothing was generalised.
- Probabilities are the relative frequencies of the next tokens in the corpus, after what is there.
- Do not fine-tune it. Contexts are told apart by tiny differences, which a few gradient steps
  destroy. To train, start from a new `RankOneConfig`.
- Run it in the type of number given below. With fewer digits close contexts become one.
"""
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

{what} text like that of its corpus, and training it further: these weights were not constructed.
"""


def model_card(
    model: Model, name: str, *, report: Report | None = None, certificate: Certificate | None = None
) -> str:
    """Markdown, with the header that the hub reads."""
    shape = model.network.shape
    kind = "rank-1" if shape.attention == "rank1" else shape.attention
    layers = "One layer" if shape.depth == 1 else f"{shape.depth} layers"
    made = _made(report, _use(model).made)
    tokenizer = model.reading.get("tokenizer")
    use = _use(model)
    limit = shape.window or shape.positions
    shown = tokenizer if tokenizer in TOKENIZERS else "tokenizer.json"
    return "\n".join(
        [
            HEADER.format(kind=use.kind),
            f"# {name}\n",
            f"{layers} of {kind} self-attention, {made}.\n",
            use.constructed if is_constructed(model.network) else use.trained,
            "## Figures\n",
            _table([*_shape(model), *_figures(report or {})]),
            "## Certificate\n",
            _certificate(certificate),
            USE.format(
                name=name,
                kind=use.kind,
                call=use.call,
                calls=use.calls,
                split=AT_BLANKS if tokenizer is None else AS_THERE.format(name=shown),
                longest=use.longest.format(tokens=plural(limit, "token")) if limit else "",
            ),
        ]
    )


class Use(NamedTuple):
    """What the card of a task says."""

    kind: str
    call: str
    calls: str
    longest: str
    constructed: str
    trained: str
    made: str


def _use(model: Model) -> Use:
    if asks_next(model.task.name):
        longest = ANYWHERE if model.network.shape.window else LONGEST_PROMPT
        trained = TRAINED.format(what="Continuing")
        made = "for the next token"
        return Use("text-generation", "write", GENERATE, longest, RECITES, trained, made)
    trained = TRAINED.format(what="Labelling")
    if model.task.whole:
        made = "for labelling texts"
        return Use("text-classification", "label", TEXTS, LONGEST_TEXT, CONSTRUCTED, trained, made)
    made = "for labelling tokens"
    return Use("token-classification", "label", TAGS, LONGEST, CONSTRUCTED, trained, made)


def is_constructed(network: TokenClassifier) -> bool:
    """Whether the head still is what `memorize` writes (for a gated layer whole numbers, or codes
    and distributions), or, for a constructed mapping without a readout, of zeros.

    The weights themselves are asked, for a network that was trained further in torch keeps its
    files and its report.
    """
    head = network.head
    if network.shape.feedforward == "gated":
        whole = all(x.equal(x.round()) for x in (head.weight, head.bias))
        return whole or MixedCodes.of(head) is not None
    empty = not (head.weight.any() or head.bias.any())
    return network.shape.feedforward == "rank1" and (empty or has_label_numbers(head))


def _made(report: Report | None, purpose: str) -> str:
    if report is None:
        return purpose
    source = PurePath(report.get("source", "")).name
    corpus = _code(source) if source else "a labelled corpus"
    if "epochs" in report:
        return f"trained on {corpus} for {plural(report['epochs'], 'epoch')}"
    return f"built from {corpus} without training, and right on it wherever a model can be"


def _shape(model: Model) -> Rows:
    shape, network = model.network.shape, model.network
    return [
        ("words", f"{len(model.vocabulary):,}"),
        _labels(model),
        ("parameters", f"{sum(p.numel() for p in network.parameters()):,}"),
        ("numbers", dtype_name(network)),
        ("dimension", f"{shape.dim:,}"),
        ("hidden units", f"{shape.hidden:,}"),
        ("positions", f"{shape.positions:,}" if shape.positions else "none"),
        ("causal", "yes" if shape.causal else "no"),
        *([("window", plural(shape.window, "token"))] if shape.window else []),
    ]


def _labels(model: Model) -> tuple[str, str]:
    if asks_next(model.task.name):
        return "next tokens", f"{len(model.labels):,}"
    return "labels", ", ".join(map(_code, model.labels))


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
    if report.get("bits") is not None:
        rows.append(("bits per token, at least", f"{report['bits']:.4g}"))
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
