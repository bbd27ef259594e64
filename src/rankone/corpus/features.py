"""What `datasets` writes into a Parquet file about its columns: the names of labels."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from rankone.documents import parse_document
from rankone.errors import CorpusError

METADATA = b"huggingface"


def features_of(metadata: Mapping[bytes, bytes] | None, name: str) -> dict[str, Any]:
    """What `datasets` says about the columns."""
    said = (metadata or {}).get(METADATA)
    if said is None:
        return {}
    document = parse_document(said, dict[str, Any], f"{name}, {METADATA.decode()}", CorpusError)
    info = document.get("info")
    features = info.get("features") if isinstance(info, dict) else None
    return {
        key: SimpleNamespace(feature=SimpleNamespace(**_class_label(feature)))
        for key, feature in (features.items() if isinstance(features, dict) else ())
    }


def _class_label(feature: Any) -> dict[str, Any]:
    """The names of the labels, which may be in lists."""
    while not (isinstance(feature, dict) and feature.get("_type") == "ClassLabel"):
        feature = feature.get("feature") if isinstance(feature, dict) else feature
        if isinstance(feature, list) and len(feature) == 1:
            feature = feature[0]
        elif not isinstance(feature, dict):
            return {"names": None}
    names = feature.get("names")
    sound = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return {"names": names if sound else None}
