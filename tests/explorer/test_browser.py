"""The page in a browser: what is seen, clicked and typed, and that hostile text stays text."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankone
from rankone.explorer.server import serving

HOSTILE = (
    "</script><script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "<!--<script>",
    "javascript:document.title='broken'",
    "\u202ereversed",
    "__proto__",
    "constructor",
    "$data",
    "שלום",
)
NARROW = {"viewport": {"width": 360, "height": 740}}
Opened = Callable[..., Any]
READ = "html[data-read]"


def saved(model: Any, corpus: Any, path: Path, **settings: Any) -> str:
    """The address of a page on disk."""
    (file,) = rankone.explore(model, corpus, **settings).save(path)
    return file.as_uri()


def words(page: Any) -> list[str]:
    found: list[str] = page.locator("#tokens .word").all_text_contents()
    return found


def labels(page: Any) -> list[str]:
    found: list[str] = page.locator("#tokens .chip").all_text_contents()
    return found


def number(page: Any) -> float:
    """The last figure of the selected token: its number, of a network with a line."""
    text = page.locator("#about .numbers .value").last.text_content()
    return float(text.replace("\u2009", "").replace("\u2212", "-"))


def said(page: Any, place: str, text: Any) -> None:
    """Wait until it says so there. (The page's own policy forbids to wait for a function.)"""
    from playwright.sync_api import expect

    expect(page.locator(place)).to_have_text(text)


@pytest.fixture(scope="module")
def demo(line: rankone.Model, builtin: rankone.Corpus, tmp_path_factory: Any) -> str:
    certificate = rankone.certify(line, builtin)
    home = tmp_path_factory.mktemp("demo")
    return saved(line, builtin, home / "demo.html", certificate=certificate)


def test_a_sentence(opened: Opened, demo: str, line: rankone.Model, builtin: Any) -> None:
    """Words, labels and number are those of the model, also of a sentence that was changed or
    typed; and a link leads back to what is shown."""
    sentence = builtin.sentences[657]
    with opened(f"{demo}#s=658&t=2") as page:
        assert words(page) == sentence.tokens
        assert labels(page) == sentence.labels
        assert page.locator(".token.selected .word").text_content() == sentence.tokens[1]
        before = number(page)
        page.locator(".token.selected").press("Alt+ArrowRight")
        swapped = [*sentence.tokens]
        swapped[1], swapped[2] = swapped[2], swapped[1]
        assert words(page) == swapped
        assert labels(page) == line.predict([swapped])[0]
        assert number(page) != before
        page.locator(".token.selected").press("Delete")
        assert words(page) == [swapped[0], swapped[1], *swapped[3:]]
        assert labels(page) == line.predict([words(page)])[0]
        page.keyboard.press("Escape")
        assert words(page) == sentence.tokens
        page.locator("[data-t='0']").drag_to(page.locator("[data-t='3']"))
        moved = [*sentence.tokens]
        moved[0], moved[3] = moved[3], moved[0]
        assert words(page) == moved
        page.fill("#text", "Paris visited Dakota and zebras .")
        page.press("#text", "Enter")
        assert labels(page) == line.predict([words(page)])[0]
        assert page.locator(".token.unknown .word").all_text_contents() == ["zebras"]
        assert "#" in page.url
        page.click("#list li:nth-child(3) button")
        assert words(page) == builtin.sentences[2].tokens
        chosen = int(page.locator(".selected").get_attribute("data-t"))
        assert page.url.endswith(f"#s=3&t={chosen + 1}")


def test_bars_are_the_weights_of_attention(
    opened: Opened, demo: str, line: rankone.Model, builtin: Any
) -> None:
    """The bar of a token is its weight, relative to the largest; and without a word the average
    moves by as much as the page says."""
    with opened(f"{demo}#s=5&t=1") as page:
        given = builtin.sentences[4].tokens
        bars = page.locator(".token").evaluate_all(
            "nodes => nodes.map((x) => +x.style.getPropertyValue('--share'))"
        )
        network = line.network
        z = network.embed(np_tensor(line.rows(given)))[0].detach().numpy()
        attention = network.blocks[0].attention
        key, query, out = (
            x.detach().numpy() for x in (attention.v1, attention.v2, attention.output)
        )
        scores = (z @ key) * (z[0] @ query)
        weights = np.exp(scores - scores.max())
        assert bars == pytest.approx(weights / weights.max(), abs=6e-4)
        page.click("text=pull")
        word = page.locator(".mover q").first.text_content()
        moved = page.locator(".mover > span").first.text_content()
        at = given.index(word)
        values = z @ key
        share = weights / weights.sum()
        rest = np.delete(share, at) @ np.delete(values, at) / np.delete(share, at).sum()
        wanted = rest - share @ values
        assert float(moved.replace("\u2212", "-")) == pytest.approx(wanted, rel=1e-3)
        assert out.any()
        page.hover("[data-t='2']")
        assert page.locator(".pointed").get_attribute("data-t") == "2"
        assert "token 3" in page.locator("#about h2").text_content()


def np_tensor(rows: Any) -> Any:
    import torch

    return torch.from_numpy(rows)[None]


def test_search_and_keys(opened: Opened, demo: str, builtin: Any) -> None:
    sentences = [(i, s.tokens, s.labels) for i, s in enumerate(builtin.sentences, 1)]
    wanted = [i for i, own, tags in sentences if "Dakota" in own and "B-LOC" in tags]
    with opened(demo) as page:
        page.keyboard.press("/")
        page.keyboard.type("dakota label:B-LOC")
        said(page, "#count", f"{len(wanted)} of 2,000 sentences")
        page.keyboard.press("Escape")
        page.keyboard.press("j")
        assert f"s={wanted[0]}&" in page.url
        page.keyboard.press("j")
        assert f"s={wanted[1]}&" in page.url
        page.keyboard.press("k")
        assert f"s={wanted[0]}&" in page.url
        page.keyboard.press("Home")
        page.keyboard.press("ArrowRight")
        assert page.url.endswith("t=2")
        page.fill("#query", "is:wrong")
        said(page, "#count", "0 of 2,000 sentences")


def test_the_line_and_the_closest_pair(opened: Opened, demo: str) -> None:
    """From the whole line down to the smallest gap of the certificate, which then fills a sixth of
    the window."""
    with opened(demo) as page:
        page.wait_for_selector(READ)
        page.click("text=whole line")
        said(page, "#under", re.compile("^Window [3-9]\u2009\\d\\d\\d wide"))
        page.click("text=closest pair")
        said(page, "#under", re.compile("^Window 7.16 . 10\u207b\u2077 wide, around"))
        there = page.locator("#under").text_content()
        page.focus("#plot")
        page.keyboard.press("+")
        said(page, "#under", re.compile("^Window 3.58 "))
        for key in ("-", "ArrowRight", "ArrowLeft"):
            page.keyboard.press(key)
        said(page, "#under", there)
        page.click("#tab-proof")
        assert "apart by 1.1937" in page.locator("#apart").text_content()
        page.click("text=See them on the line")
        assert page.locator("#sentence").is_visible()


def test_a_refuted_model_leads_to_the_witness(opened: Opened, tmp_path: Path) -> None:
    corpus = rankone.read_corpus("toy")
    model = rankone.memorize(corpus).model
    layer = model.network.blocks[0].feedforward
    layer.bias1.data[0] += 40
    certificate = rankone.certify(model, corpus)
    assert certificate.outcome == "refuted"
    url = saved(model, corpus, tmp_path / "page.html", certificate=certificate)
    with opened(f"{url}#proof") as page:
        assert "refuted" in page.locator(".verdict h2").text_content()
        assert certificate.reason in page.locator(".reason").text_content()
        page.click("text=Go to")
        chosen = page.locator(".token.selected")
        assert "wrong" in chosen.get_attribute("class")
        assert "file:" in chosen.text_content()
        page.fill("#query", "is:wrong")
        page.wait_for_selector("#list li mark")
        assert certificate.wrong == sum(
            a != b
            for s, found in zip(corpus.sentences, model.predict(corpus), strict=True)
            for a, b in zip(s.labels, found, strict=True)
        )


def test_contradictions_lead_to_their_sentences(opened: Opened, tmp_path: Path) -> None:
    rows = [
        (["a", "b"], ["X", "Y"]),
        (["c"], ["X"]),
        (["a", "b"], ["X", "Z"]),
        (["a", "b"], ["X", "Y"]),
    ]
    corpus = rankone.Corpus.from_sentences(rows)
    url = saved(rankone.memorize(corpus).model, corpus, tmp_path / "page.html")
    with opened(f"{url}#findings") as page:
        card = page.locator(".cards .card")
        assert card.count() == 1
        assert card.locator("mark").text_content() == "b"
        assert card.locator("dt").all_text_contents() == ["Y 2 tokens", "Z 1 token"]
        assert page.locator("tr.own .number").all_text_contents() == ["1", "85.71%"]
        card.get_by_role("button", name="sentence 3").click()
        assert page.url.endswith("#s=3&t=2")
        assert page.locator(".token.unavoidable .truth").text_content() == "file: Z"


def test_the_group_of_a_word(opened: Opened, tmp_path: Path, builtin: rankone.Corpus) -> None:
    some = rankone.Corpus.from_sentences(builtin.sentences[:200])
    model = rankone.memorize(some, construction="gated").model
    url = saved(model, some, tmp_path / "page.html", certificate=rankone.certify(model, some))
    with opened(url) as page:
        page.wait_for_selector(READ)
        assert "The group of" in page.locator("#caption").text_content()
        assert page.locator("#about .numbers dt").all_text_contents()[-1] == "units"
        page.click("text=closest pair")
        page.select_option("#zooms select", index=1)
        page.locator("#plot").hover()
        assert labels(page) == some.sentences[int(page.url.split("s=")[1].split("&")[0]) - 1].labels


def test_a_window_over_a_text_begins_with_its_mark(opened: Opened, tmp_path: Path) -> None:
    text = rankone.Corpus.from_texts(["A rose is a rose is a rose."], window=3)
    model = rankone.memorize(text).model
    with opened(saved(model, text, tmp_path / "page.html")) as page:
        page.fill("#text", "A rose is a")
        page.press("#text", "Enter")
        assert words(page)[1:] == ["A", "\u00a0rose", "\u00a0is", "\u00a0a"]
        said = [label.replace("\u00a0", " ") for label in labels(page)]
        assert said == model.predict([["<|begin|>", "A", " rose", " is", " a"]])[0]


@pytest.mark.parametrize("construction", ["line", "gated"])
def test_hostile_text_is_text(opened: Opened, tmp_path: Path, construction: Any) -> None:
    """Words, labels, the names of files, and what is typed."""
    rows = [
        ([*HOSTILE], [*HOSTILE]),
        ([*HOSTILE], [*HOSTILE[1:], HOSTILE[0]]),
        (["a"], [HOSTILE[0]]),
    ]
    corpus = rankone.Corpus.from_sentences(rows, source=HOSTILE[1])
    model = rankone.memorize(corpus, construction=construction).model
    certificate = rankone.certify(model, corpus)
    url = saved(model, corpus, tmp_path / "page.html", certificate=certificate)
    with opened(url) as page:
        page.wait_for_selector(READ)
        title = page.title()
        assert words(page)[0] == HOSTILE[0]
        assert words(page)[5:] == [*HOSTILE[5:]]
        assert words(page)[4] == "U+202Ereversed"
        page.fill("#text", HOSTILE[1])
        page.press("#text", "Enter")
        page.fill("#query", HOSTILE[1])
        for tab in ("findings", "proof"):
            page.click(f"#tab-{tab}")
        page.click("#tab-sentence")
        page.locator("#plot").hover()
        assert page.locator("img, iframe, object, embed, script").count() == 1  # the page's own
        assert page.title() == title == "model"


def test_512_tokens_without_a_stutter(opened: Opened, tmp_path: Path) -> None:
    """Hovering over every token: well under a frame of 30 milliseconds each, on the whole."""
    words_ = [f"w{i % 97}" for i in range(512)]
    rows = [(words_, [f"L{i % 7}" for i in range(512)]), (["w1", "w2"], ["L0", "L1"])]
    corpus = rankone.Corpus.from_sentences(rows)
    model = rankone.memorize(corpus).model
    with opened(saved(model, corpus, tmp_path / "page.html")) as page:
        assert len(words(page)) == 512
        each = page.evaluate(
            """async () => {
              const nodes = [...document.querySelectorAll(".token")].slice(0, 60);
              const start = performance.now();
              for (const node of nodes) {
                node.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
                node.getBoundingClientRect();
                await new Promise((go) => setTimeout(go, 0));
              }
              return (performance.now() - start) / nodes.length;
            }"""
        )
        assert each < 60


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_narrow_and_dark(opened: Opened, demo: str, scheme: str) -> None:
    """Nothing is wider than the window, and the colours are those that were asked for."""
    with opened(demo, color_scheme=scheme, **NARROW) as page:
        for tab in ("sentence", "findings", "proof"):
            page.click(f"#tab-{tab}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, tab
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, paper[4:-1].split(","))) > 3 * 128
        assert light == (scheme == "light")
        page.click("#theme")
        page.click("#theme")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_a_comparison(opened: Opened, tmp_path: Path) -> None:
    found = rankone.compare("toy", constructions=["line", "kajitsuka2024-deep"])
    found.save(tmp_path / "out", plots=False)
    url = (tmp_path / "out" / "comparison.html").as_uri()
    with opened(url) as page:
        for name, title in (("parameters", "parameters"), ("bits", "bits"), ("layers", "layers")):
            page.click(f"#switch >> text='{title}'")
            rows = sorted(found.rows, key=lambda row: getattr(row, name))
            shown = page.locator("#chart .track span").all_text_contents()
            assert [int(x.replace(",", "")) for x in shown] == [getattr(r, name) for r in rows]
            assert page.url.endswith(f"#{name}")
        assert page.locator("tbody tr").count() == len(found.rows)


def test_a_served_page_is_the_same(opened: Opened) -> None:
    html = rankone.explore(rankone.memorize("toy").model, "toy").html
    with serving(html) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            with opened(server.url) as page:
                assert len(words(page)) == 3
        finally:
            server.shutdown()
            thread.join()
