"""What a page holds, what its policy allows, and what is refused before one is made."""

from __future__ import annotations

import fnmatch
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import rankone
from rankone.errors import CorpusError, ModelError, SettingError, SizeError
from rankone.explorer.bundle import bundle
from rankone.explorer.comparison import comparison_page
from rankone.explorer.proof import proof_data
from rankone.explorer.sentences import SentencesData
from rankone.pages import encode, hash_of

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "src" / "rankone" / "explorer" / "static"
ALLOWED = {"default-src", "style-src", "script-src", "base-uri", "form-action"}


class Parts(HTMLParser):
    """The elements of a page with what they hold."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.found.append((f"/{tag}", {}, ""))

    def handle_data(self, data: str) -> None:
        if self.found:
            tag, attributes, text = self.found[-1]
            self.found[-1] = tag, attributes, text + data


def pages() -> dict[str, str]:
    bad = '</title><script>"</script>'
    model = rankone.memorize("toy").model
    rows = rankone.compare("toy", constructions=["line"]).to_json()
    named = comparison_page({**rows, "source": bad})
    return {"explorer": rankone.explore(model, "toy").html, "comparison": named}


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("name", ["explorer", "comparison"])
def test_nothing_runs_but_the_script_of_the_page(made: dict[str, str], name: str) -> None:
    parts = Parts(made[name]).found
    scripts = [(a, text) for tag, a, text in parts if tag == "script"]
    (style,) = (text for tag, _, text in parts if tag == "style")
    (policy,) = (a["content"] or "" for tag, a, _ in parts if tag == "meta" and "http-equiv" in a)
    assert [a.get("type") for a, _ in scripts] == ["text/plain", "module"]
    directives = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert directives["default-src"] == directives["base-uri"] == "'none'"
    assert directives["script-src"] == hash_of(scripts[1][1])
    assert directives["style-src"] == hash_of(style)
    assert directives["require-trusted-types-for"] == "'script'"
    for tag, attributes, _ in parts:
        assert not {"src", "href", "style"} & attributes.keys(), tag
        assert not [key for key in attributes if key.startswith("on")], tag
    assert not re.search(r"https?://", made[name])


def test_titles_are_text(made: dict[str, str]) -> None:
    assert "&lt;/title&gt;&lt;script&gt;" in made["comparison"]
    assert '<script>"' not in made["comparison"]


def test_same_model_same_page(made: dict[str, str]) -> None:
    assert pages()["explorer"] == made["explorer"]


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_scripts_never_make_html_of_text(path: Path) -> None:
    script = path.read_text()
    banned = (
        "innerHTML|outerHTML|insertAdjacent|document.write|eval|Function|fetch|XMLHttp|WebSocket"
    )
    assert not re.search(rf"\b({banned})\b", script)
    assert "</" not in script
    assert "<!--" not in script
    assert script.startswith("// ")


def test_the_parts_are_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["rankone"]
    for path in STATIC.iterdir():
        name = path.relative_to(ROOT / "src" / "rankone").as_posix()
        assert any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def test_modules_become_one_script() -> None:
    modules = {
        "app": 'import {a, $} from "./one.js";\nimport {b} from "./two.js";\nexport const x = a;',
        "one": "export const a = 1;\nexport const $ = 2;\nconst own = 3;",
        "two": 'import {a} from "./one.js";\nexport function b() {}\nexport class C {}',
    }
    text = bundle("app", modules.__getitem__)
    assert [text.index(f"const ${name} =") for name in ("one", "two", "app")] == sorted(
        text.index(f"const ${name} =") for name in modules
    )
    assert "const {a, $} = $one;" in text
    assert "return {a, $};" in text
    assert "return {b, C};" in text
    assert "export" not in text
    assert text.count("const $one") == 1


def test_what_a_page_says_of_a_corpus() -> None:
    """Words and labels that the model lacks come after its own; contexts are those it sees."""
    model = rankone.memorize([(["a", "b"], ["X", "Y"]), (["a", "c"], ["X", "X"])]).model
    rows = [(["a", "z"], ["Y", "Q"]), (["a", "z"], ["X", "Q"]), (["a", "z"], ["X", "X"])]
    corpus = rankone.Corpus.from_sentences([*rows, (["y"], ["X"])])
    data = SentencesData(model, corpus)
    words, labels = [*model.vocabulary, *data.words], [*model.labels, *data.labels]
    arrays, figures = data.arrays(), data.figures()
    assert [words[i] for i in arrays["corpus.tokens"]] == ["a", "z", "a", "z", "a", "z", "y"]
    assert [labels[i - 1] for i in arrays["corpus.gold"]] == ["Y", "Q", "X", "Q", "X", "X", "X"]
    assert arrays["corpus.back"].tolist() == [0, 0, 2, 2, 4, 4, 0]
    assert arrays["corpus.unavoidable"].tolist() == [0, 5]
    assert np.cumsum(arrays["corpus.lines"]).tolist() == corpus.lines.tolist()
    chosen = [labels[i] for i in arrays["corpus.chosen"]]
    assert chosen == [label for sentence in model.predict(corpus) for label in sentence]
    wanted = ["Y", "Q", "X", "Q", "X", "X", "X"]
    assert figures["right"] == sum(a == b for a, b in zip(chosen, wanted, strict=True))
    assert (figures["unavoidable"], figures["unknown"]) == (2, 4)
    assert figures["ceilings"]["sequence"]["errors"] == 2
    assert figures["ceilings"] == rankone.inspect(corpus).to_json()["ceilings"]


def test_what_is_not_asked_has_no_label() -> None:
    texts = rankone.Corpus.from_texts([("A rose.", "good"), ("No.", "bad")], task="class")
    data = SentencesData(rankone.memorize(texts).model, texts)
    assert data.arrays()["corpus.gold"].tolist() == [0, 0, 1, 0, 2]
    assert (data.figures()["asked"], data.figures()["right"]) == (2, 2)


def test_a_certificate_of_other_weights_or_sentences() -> None:
    """The page says whether a certificate is about what it shows."""
    corpus = rankone.read_corpus("toy")
    one, two = (rankone.memorize(corpus, seed=seed).model for seed in (0, 1))
    found = rankone.certify(one, corpus)
    other = rankone.Corpus.from_sentences(corpus.sentences[1:])
    for model, shown, own, same in (
        (one, corpus, True, True),
        (two, corpus, False, True),
        (one, other, True, False),
        (one, None, True, False),
    ):
        data = proof_data(found, model, shown)
        assert data is not None
        assert (data["of_model"], data["of_corpus"]) == (own, same)
    assert proof_data(None, one, corpus) is None


def test_a_corpus_that_does_not_fit_is_refused() -> None:
    model = rankone.memorize("toy").model
    with pytest.raises(CorpusError, match="none of its words"):
        rankone.explore(model, [(["elsewhere"], [model.labels[0]])])
    with pytest.raises(CorpusError, match="none of its labels"):
        rankone.explore(model, [([model.vocabulary[0]], ["elsewhere"])])
    with pytest.raises(SettingError, match="sentences"):
        rankone.explore(model, "toy", sentences=0)


def test_a_page_that_would_be_too_large_says_what_to_leave_out(
    line: rankone.Model, builtin: rankone.Corpus
) -> None:
    whole, alone = rankone.explore(line, builtin).bytes, rankone.explore(line).bytes
    with pytest.raises(SizeError, match=r"smaller model: this one alone takes 0\.\d MB"):
        rankone.explore(line, builtin, limit=alone - 1)
    limit = (whole + alone) // 2
    with pytest.raises(SizeError, match=r"would have 0\.\d MB.*\n.*--sentences \d+") as refused:
        rankone.explore(line, builtin, limit=limit)
    count = int(str(refused.value).rpartition(" ")[2].rstrip(")"))
    fewer = rankone.explore(line, builtin, limit=limit, sentences=count)
    assert count == fewer.sentences > builtin.n_sentences / 4
    assert fewer.tokens == builtin.offsets[count]


def test_more_sentences_than_there_are_is_all() -> None:
    model = rankone.memorize("toy").model
    assert rankone.explore(model, "toy", sentences=3).tokens == 9
    assert rankone.explore(model, "toy", sentences=99).sentences == 10


def test_a_model_without_a_readout_is_refused() -> None:
    network = rankone.memorize("toy").model.network
    network.head.weight.data.zero_()
    network.head.bias.data.zero_()
    model = rankone.Model(network, rankone.memorize("toy").model.vocabulary, ("A",))
    with pytest.raises(ModelError, match="without a readout"):
        rankone.explore(model)


def test_encode_is_safe_in_a_script() -> None:
    assert "<" not in encode({"<!--": "</script>\u2028\ud800"})
