"""Names a user may choose from, each list once: commands, settings and files all take it from here.

Nothing is imported, so that `--help` stays quick. The tables behind the names (`READERS`, `TASKS`,
`CONSTRUCTIONS`, `ATTENTIONS`) are tested to hold the same ones.
"""

from __future__ import annotations

from typing import Literal

Format = Literal["auto", "conll", "conllu", "tsv", "jsonl", "text", "parquet"]  # layout of a file
Scheme = Literal["keep", "iob2", "auto"]  # how entity tags are written
Task = Literal["tags", "next", "class"]  # what a corpus asks for
Attention = Literal["rank1", "softmax", "hardmax"]
FeedForward = Literal["rank1", "dense", "gated"]
Readout = Literal["merged", "paper"]
CellReadout = Literal["constant", "linear"]  # what `approximate` fits to a cell
Verify = Literal["sample", "dense"]
# Ways from corpus to weights: that of this project, and those of papers, by author and year
Construction = Literal[
    "yun2020",
    "kim2023",
    "mahdavi2023",
    "kajitsuka2024",
    "kajitsuka2024-deep",
    "kajitsuka2025",
    "madden2024",
    "line",
    "gated",
]
Dtype = Literal["float32", "float64"]
TrainedAttention = Literal["rank1", "theorem2", "softmax"]  # theorem2: rank1, v1 and v2 fixed
Optimizer = Literal["adam", "sgd"]
Schedule = Literal["constant", "linear"]  # of the learning rate
Accuracy = Literal["running", "after"]  # of an epoch: as it runs, or with the weights at its end
EngineName = Literal["here", "disk", "ray"]  # what runs functions over the parts of a corpus
