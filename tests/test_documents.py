"""Documents are read through a description of their fields, or refused with the field's name."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from rankone import documents
from rankone.errors import CertificateError, ModelError


@dataclass(frozen=True)
class Part:
    count: Annotated[int, Meta(ge=1, lt=1 << 31)]


@dataclass(frozen=True)
class Document:
    name: str
    part: Part
    share: float | None = None
    more: dict[str, Any] = field(default_factory=dict)


def test_a_document_is_an_instance_of_its_description(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(documents.dump({"name": "é", "part": {"count": 3}, "share": 1}))
    assert documents.read_document(path, Document) == Document("é", Part(3), 1.0)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('{"name": "a"}', "no required field part"),
        ('{"name": ["a"], "part": {"count": 1}}', "name: expected text, got a list"),
        ('{"name": "a", "part": {"count": 0}}', "part.count: expected a whole number >= 1"),
        ('{"name": "a", "part": {"count": 1.5}}', "part.count: expected a whole number, got"),
        ('{"name": "a", "part": {"count": true}}', "part.count: expected a whole number, got"),
        ('{"name": "a", "part": {"count": 2147483648}}', "part.count: expected a whole number"),
        ('{"name": "a", "part": {"count": 1}, "share": 1e400}', "share: number out of range"),
        ('{"name": "a", "part": {"count": 1}, "share": NaN}', "cannot be read"),
        ('{"name": "a", "part": {"count": 1}, "share": Infinity}', "cannot be read"),
        ('{"name": "a", "part": {"count": 1}, "share": "1"}', "share: expected"),
        ('{"name": "\\ud800", "part": {"count": 1}}', "cannot be read"),
        ('{"name": "a\\udc00b", "part": {"count": 1}}', "cannot be read"),
        ("[]", "expected a mapping, got a list"),
        ("", "cannot be read"),
        ('{"name": "a", "part": {"count": 1}} x', "cannot be read"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_field(text: str, what: str) -> None:
    with pytest.raises(CertificateError) as refused:
        documents.parse_document(text, Document, "d.json", CertificateError, "ask again")
    assert refused.value.what.startswith(what)
    assert (refused.value.where, refused.value.remedy) == ("d.json", "ask again")


def test_bytes_that_are_no_text_and_towers_of_brackets_are_refused() -> None:
    deep = 100 * sys.getrecursionlimit()
    for data in (b'{"name": "\xff"}', b'{"more": ' + b'{"a": ' * deep):
        with pytest.raises(ModelError, match="cannot be read"):
            documents.parse_document(data, Document, "d.json")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"name": "a", "part": {"count": 1}, "name": "b"}', "name"),
        ('{"name": "a", "part": {"count": 1, "count": 2}}', "count"),
        ('{"name": "a", "part": {"count": 1}, "more": {"x": [{"y": 1, "y": 1}]}}', "y"),
        ('{"name": "a", "part": {"count": 1}, "na\\u006de": "b"}', "name"),
        ('{"name": "a", "part": {"count": 1}, "x": 1, "name": "b", "x": 2}', "name"),  # the first
    ],
)
def test_a_field_that_is_there_twice_is_refused(tmp_path: Path, text: str, name: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=f" {name}: there are two of this name") as refused:
        documents.read_document(path, Document)
    assert refused.value.where == str(path)


def test_names_may_be_alike_in_different_objects(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    text = '{"name": "a", "part": {"count": 1}, "more": {"name": {"count": 2}}, "x": %s}'
    path.write_text(text % ("9" * 5000))  # a field that nobody reads
    assert documents.read_document(path, Document).more == {"name": {"count": 2}}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file") as refused:
        documents.read_document(tmp_path / "none.json", Document, missing="look elsewhere")
    assert refused.value.remedy == "look elsewhere"
    for odd, why in (
        (tmp_path, "not a file"),
        ("n" * 300, "File name too long"),
        ("a\0b", "embedded null byte"),
    ):
        with pytest.raises(ModelError) as refused:
            documents.read_document(odd, Document)
        assert refused.value.what == f"cannot be read ({why})"


def test_a_part_of_a_document_is_checked_like_a_whole_one() -> None:
    assert documents.convert_document({"count": 2}, Part, "d.json") == Part(2)
    with pytest.raises(ModelError, match="count: expected a whole number"):
        documents.convert_document({"count": "2"}, Part, "d.json")


def test_what_is_written_can_be_read_and_is_never_more_than_json() -> None:
    name = "caf\udce9"  # a file whose name is not text
    assert json.loads(documents.dump({"é": name})) == {"é": "caf?"}
    assert documents.dump(["é"], indent=2) == '[\n  "é"\n]\n'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        documents.dump([float("nan")])
