"""The page of an audit: what it holds, that hostile text stays text, what a browser makes of it."""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import json
import re
import shutil
import subprocess
import tomllib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankone
from rankone.audit import Audit, Comparison, Duplicate, Evidence, Known, Leak, Row, Suspect
from rankone.audit.digest import AROUND, LETTERS, LIMIT, LINES, TEXT, digest, tails
from rankone.audit.page import page
from rankone.audit.verdict import verdict
from rankone.corpus.ceilings import Ceiling
from rankone.corpus.conflicts import Conflict
from rankone.pages import encode

ROOT = Path(__file__).resolve().parents[2]
PARTS = ROOT / "src" / "rankone" / "audit" / "template"
KINDS = ("leaks", "conflicts", "duplicates", "suspects")
HOSTILE = (
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "<!--<script>",
    "]]>&amp;\"'`${document.title='broken'}",
    "javascript:document.title='broken'",
    "\u2028\u2029\u202ereversed\x1b[31m",
    "שלום",
    "مرحبا",
    "👩\u200d👩\u200d👧",
    "__proto__",
    "$script",
)

OTHER = rankone.Corpus.from_sentences([(["maps", "."], ["O", "O"])], source="other")


class Parsed(HTMLParser):
    """The elements of a page, and what its scripts and styles hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.elements[-1][0] if self.elements else "", data))

    def inside(self, tag: str) -> list[str]:
        return [text for of, text in self.texts if of == tag and text.strip()]

    @property
    def data(self) -> Any:
        return json.loads(self.inside("script")[0])


def hostile() -> Audit:
    """An audit in which every word, label and file is hostile, with all kinds of findings."""
    words, bad = list(HOSTILE), HOSTILE[0]
    one = rankone.inspect(
        [(words, words), (words, [*words[1:], "O"]), (["fine"], ["O"]), (["fine"], ["O"])]
    )
    row = Row(f"/home/somebody/{HOSTILE[1]}", 7)
    evidence = Evidence(row.file, 8, bad, " ".join(words), bad)
    suspect = Suspect(
        *(row.file, 7, HOSTILE, " ".join(words[:2]), "B-a I-a", "B-b I-b", 0.5, 1, (7, 8)),
        (evidence,),
    )
    ceilings = {"token": Ceiling(0.5, 1), HOSTILE[1]: Ceiling(0.5, 1)}
    comparison = Comparison(
        "/home/somebody/dev.conll",
        (Leak("exact", HOSTILE, (row,), (Row("/home/somebody/dev.conll", 3),), False),),
        {"here": Known(2, 9, 3, 2, 1, 1, 0), "there": Known(0, 0, 0, 0, 0, 0, 0)},
        {"here": ceilings, "there": ceilings},
    )
    return replace(one, suspects=(suspect,), against=(comparison,))


def large(count: int, words: int, letters: int = 6, rows: int = 2) -> Audit:
    """An audit with that many findings of each kind, in long sentences of long words."""
    sentence = tuple(f"{k:0{letters}}" for k in range(words))
    where = tuple(Row("corpus.conll", line) for line in range(rows))
    evidence = 5 * (Evidence("corpus.conll", 1, "B-X", " ".join(sentence), "same word"),)
    found = rankone.inspect("builtin")
    lines = list(range(rows))
    return replace(
        found,
        inputs=("corpus.conll",),
        conflicts=tuple(
            Conflict(sentence[k % words], k % words + 1, list(sentence), {"A": lines, "B": [0]})
            for k in range(count)
        ),
        duplicates=tuple(Duplicate(sentence, where, True) for _ in range(count)),
        suspects=tuple(
            Suspect(
                *("corpus.conll", k, sentence, sentence[0], "A", "B", 1 - k / count, 1, (k,)),
                evidence,
            )
            for k in range(count)
        ),
        against=(
            Comparison(
                "dev.conll",
                tuple(Leak("near", sentence, where, where, None) for _ in range(count)),
                dict.fromkeys(("here", "there"), Known(2, 9, 3, 2, 1, 1, 0)),
                dict.fromkeys(("here", "there"), found.ceilings),
            ),
        ),
    )


def test_the_mark_of_a_suspect_in_a_long_sentence() -> None:
    """A suspect keeps a part of a long sentence, which does not begin with its first token."""
    words = tuple(f"w{i}" for i in range(200))
    lines = (7, 8)
    found = Suspect("a", 7, words, "w150 w151", "X Y", "Y X", 0.9, 451, lines, start=301)
    (shown,) = digest(replace(large(1, 3), suspects=(found,)))["findings"]["suspects"]
    at, run = shown["mark"]
    assert shown["words"][at : at + run] == ["w150", "w151"]
    assert shown["cut"][0] == 300 + 150 - at


def test_evidence_is_cut_only_if_it_is_long() -> None:
    for letters, shown in ((TEXT, "x" * TEXT), (TEXT + 1, "x" * TEXT + "…")):
        evidence = (Evidence("a", 1, "B-X", "x" * letters, "the word"),)
        found = large(1, 3)
        found = replace(found, suspects=(replace(found.suspects[0], evidence=evidence),))
        (suspect,) = digest(found)["findings"]["suspects"]
        assert suspect["evidence"][0]["text"] == shown


def test_sections_stand_in_order() -> None:
    parsed = Parsed(page(rankone.inspect("builtin")))
    sections = [attributes["id"] for tag, attributes in parsed.elements if tag == "section"]
    assert sections == ["ceilings", "labels", "leaks", "passages", *KINDS[1:]]
    assert parsed.inside("title") == parsed.inside("h1") == ["Audit of builtin"]
    named = {attributes.get("name") for tag, attributes in parsed.elements if tag != "meta"}
    assert {"kind", "q", "label", "file", "score"} <= named


def test_the_data_are_those_of_the_audit() -> None:
    audit = rankone.inspect("builtin", against=[OTHER])
    data, figures = Parsed(page(audit)).data, audit.to_json()
    assert data["ok"] == figures["ok"]
    assert data["verdict"] == verdict(audit)
    assert data["ceilings"] == figures["ceilings"]
    assert dict(data["labels"]) == figures["labels"]
    for name in set(data["figures"]) - {"columns", "labelled", "task"}:
        assert data["figures"][name] == figures[name], name
    assert data["figures"]["labelled"] == figures["tokens"]
    for shown, comparison in zip(data["against"], figures["against"], strict=True):
        assert shown["known"] == comparison["known"]
        assert shown["ceilings"] == comparison["ceilings"]
    assert data["totals"]["duplicates"] == len(data["findings"]["duplicates"]) == 33
    for shown, duplicate in zip(data["findings"]["duplicates"], figures["duplicates"], strict=True):
        assert tuple(shown["words"]) == duplicate["sentence"]
        assert shown["rows"]["at"] == [[None, [row["line"] for row in duplicate["rows"]]]]


def test_rows_name_the_only_file_or_their_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one.conll", tmp_path / "two.conll"
    one.write_text("a X\nb Y\n\na X\nb Z\n")
    two.write_text("a X\nb Q\n")
    alone, across = rankone.inspect(one), rankone.inspect(one, against=[two])
    (conflict,) = digest(alone)["findings"]["conflicts"]
    assert [(side["label"], side["rows"]["at"]) for side in conflict["sides"]] == [
        ("Y", [[0, [2]]]),
        ("Z", [[0, [5]]]),
    ]
    found = digest(across)
    (conflict,) = found["findings"]["conflicts"]
    assert [side["rows"]["at"] for side in conflict["sides"]] == [
        [[0, [2]]],
        [[0, [5]]],
        [[1, [2]]],
    ]
    assert found["files"] == ["one.conll", "two.conll"]
    assert str(tmp_path) not in page(across)


def test_hostile_text_is_data() -> None:
    audit = hostile()
    text = page(audit)
    parsed, harmless = Parsed(text), Parsed(page(rankone.inspect("builtin")))
    assert parsed.elements[0] == harmless.elements[0]
    assert [tag for tag, _ in parsed.elements] == [tag for tag, _ in harmless.elements]
    text.encode()
    found = parsed.data["findings"]
    for kind in KINDS:
        assert found[kind], kind
        assert any(tuple(finding["words"]) == HOSTILE for finding in found[kind]), kind
    assert [label for label, _ in parsed.data["labels"]] == list(audit.labels)
    assert parsed.inside("script")[1] == harmless.inside("script")[1]


@given(st.text(st.characters(exclude_categories=())))
def test_whatever_is_encoded_is_read_back_and_ends_no_element(text: str) -> None:
    encoded = encode([text])
    assert json.loads(encoded) == [text]
    assert not re.search("[<\u2028\u2029]", encoded)
    encoded.encode()


def test_a_hostile_name_is_escaped_in_the_title() -> None:
    audit = replace(rankone.inspect("builtin"), source='<b>"\udcff')
    parsed = Parsed(page(audit))
    assert parsed.inside("h1") == ['Audit of <b>"\\udcff']


def test_the_policy_allows_nothing_but_its_own_style_and_script() -> None:
    parsed = Parsed(page(hostile()))
    (policy,) = (a["content"] for _, a in parsed.elements if "http-equiv" in a)
    rules = dict(rule.split(" ", 1) for rule in (policy or "").split("; "))
    (style,), (_, script) = parsed.inside("style"), parsed.inside("script")
    for rule, code in (("style-src", style), ("script-src", script)):
        digested = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digested}'"
    assert {rules[name] for name in set(rules) - {"style-src", "script-src"}} == {
        "'none'",
        "'script'",
    }
    assert rules["default-src"] == "'none'"


def test_the_page_refers_to_nothing_outside() -> None:
    text = page(rankone.inspect("builtin"))
    assert not re.search(r"https?:|url\(|@import|//[a-z]+\.", text)
    for tag, attributes in Parsed(text).elements:
        assert not {"src", "href", "style", "action", "srcdoc"} & set(attributes), tag
        assert not any(name.startswith("on") for name in attributes), tag


def test_the_script_never_makes_html_of_text() -> None:
    script = (PARTS / "report.js").read_text()
    ways = "innerHTML outerHTML insertAdjacentHTML document.write eval( Function( </ <!--"
    assert not [way for way in ways.split() if way in script]
    assert "</" not in (PARTS / "report.css").read_text()


def test_the_parts_are_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["rankone"]
    for part in PARTS.iterdir():
        name = part.relative_to(ROOT / "src" / "rankone").as_posix()
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns), name


@pytest.mark.parametrize(
    ("count", "words", "letters", "rows"), [(1000, 20, 6, 3), (300, 300, 6, 300), (40, 20, 9000, 2)]
)
def test_a_large_audit_stays_small(count: int, words: int, letters: int, rows: int) -> None:
    audit = large(count, words, letters, rows)
    text = page(audit)
    assert len(text.encode()) < 5_000_000
    data = Parsed(text).data
    assert data["totals"] == dict.fromkeys(KINDS, count)
    kept = {kind: len(found) for kind, found in data["findings"].items()}
    assert all(kept.values())
    if words * letters < 200:  # an ordinary corpus: nothing is left out
        assert kept == data["totals"]


def test_what_is_left_out_is_counted() -> None:
    audit = large(LIMIT + 5, 3)
    found = digest(audit)
    assert {kind: len(of_kind) for kind, of_kind in found["findings"].items()} == dict.fromkeys(
        KINDS, LIMIT
    )
    assert found["totals"] == dict.fromkeys(KINDS, LIMIT + 5)
    assert {len(of_kind) for of_kind in digest(audit, 2)["findings"].values()} == {2}
    apart = (
        Duplicate(("a",), tuple(Row(f"{k}/{j}" + 99 * "x", 1) for j in range(40)), True)
        for k in range(999)
    )
    assert len(encode(digest(replace(audit, duplicates=tuple(apart))))) < 5_000_000
    many = digest(replace(audit, labels={str(k): 1 for k in range(5000)}))
    assert (len(many["labels"]), many["labels_count"]) == (300, 5000)


def test_long_sentences_and_lists_are_cut_around_the_mark() -> None:
    audit = large(200, 200, rows=LINES + 9)
    for k, conflict in enumerate(digest(audit)["findings"]["conflicts"]):
        at, run = conflict["mark"]
        assert (conflict["words"][at], run) == (audit.conflicts[k].token, 1)
        assert sum(conflict["cut"]) + len(conflict["words"]) == 200
        assert len(conflict["words"]) <= 2 * AROUND + 1
        side = conflict["sides"][0]
        assert (len(side["rows"]["at"][0][1]), side["rows"]["count"]) == (LINES, LINES + 9)
    late = replace(audit.conflicts[0], start=11, position=13)
    (shown,) = digest(replace(audit, conflicts=(late,)))["findings"]["conflicts"]
    assert (shown["mark"], shown["cut"]) == ([2, 1], [10, 200 - 2 - 1 - AROUND])
    words = digest(large(1, 2, LETTERS + 1))["findings"]["duplicates"][0]["words"]
    assert [len(word) for word in words] == [LETTERS + 1] * 2
    assert words[0].endswith("…")


def test_a_run_has_a_label_for_each_token_unless_they_cannot_be_told_apart() -> None:
    audit = hostile()
    (run,) = digest(audit)["findings"]["suspects"]
    assert (run["mark"], run["labels"], run["proposals"]) == (
        [0, 2],
        ["B-a", "I-a"],
        ["B-b", "I-b"],
    )
    assert (run["lines"], run["score"], run["evidence_count"]) == ([7, 8], 0.5, 1)
    odd = replace(audit, suspects=(replace(audit.suspects[0], label="a b c"),))
    assert digest(odd)["findings"]["suspects"][0]["labels"] == ["a b c"]


def test_files_are_named_by_as_little_as_tells_them_apart() -> None:
    assert tails([]) == []
    assert tails(["/x/train.conll", "dev.conll"]) == ["train.conll", "dev.conll"]
    assert tails(["/x/a/t", "/y/a/t", "C:\\y\\b\\t"]) == ["x/a/t", "y/a/t", "y/b/t"]
    assert tails(["a/b", "a\\b"]) == ["a/b", "a/b"]


def test_the_verdict_says_how_much_can_be_learnt() -> None:
    words = ["a", "b"]
    odd = rankone.inspect([(words, ["X", "Y"]), (words, ["X", "Z"])])
    assert verdict(odd) == (
        "No model can be right on more than 3 of 4 labels (75.0000%), because equal sentences are "
        "labelled differently in 1 place; there is also 1 repeated sentence."
    )
    across = rankone.inspect([(words, ["X", "Y"])], against=[(words, ["X", "Z"])])
    assert verdict(across) == (
        "The sentence determines all 2 labels, but other splits contradict 1 place; "
        "there is also 1 leak."
    )
    assert verdict(rankone.inspect([(["a"], ["X"])])) == "The sentence determines the only label."
    assert verdict(hostile()).endswith("there is also 1 leak, 2 repeated sentences and 1 suspect.")


BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-sync "
    "--disable-background-networking --disable-component-update --dump-dom"
).split()


def dom(path: Path, view: str = "") -> str:
    """What a browser makes of a page."""
    assert BROWSER
    profile = f"--user-data-dir={path.parent / 'profile'}"
    command = [BROWSER, *OPTIONS, profile, f"{path.as_uri()}#{view}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_a_browser_shows_the_findings_and_runs_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(hostile()), encoding="utf-8")
    text = dom(path)
    main = text[text.index("<main") : text.index("</main>")]
    assert "<main>" in main  # which is hidden until all of it is drawn
    assert Parsed(text).inside("title")[0].startswith("Audit of ")
    assert not re.search("<(img|script|b)[ >]", main)
    assert main.count('class="finding"') == len(HOSTILE) + 2 + 1 + 1
    assert "&lt;img src=x onerror=" in main
    assert "שלום" in main
    assert '<span class="code">U+202E</span>' in main
    assert 'class="change"' in main
    filtered = dom(path, "kind=suspects&q=REVERSED&theme=dark&score=0.4")
    assert 'data-theme="dark"' in filtered
    assert filtered.count('class="finding"') == 1
    assert "<details>" in filtered
    assert 'id="conflicts" hidden' in filtered
    assert dom(path, "q=nothing%20like%20it").count('class="finding"') == 0
    assert dom(path, "kind=conflicts&label=fine").count('class="finding"') == len(HOSTILE)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no chromium")
def test_a_browser_draws_a_large_audit_by_the_chunk(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(large(1500, 20)), encoding="utf-8")
    text = dom(path)
    assert text.count('class="finding"') == 4 * 20
    assert "This page holds the first 1,000 of 1,500" in text
    assert "Show 100 more" in text
