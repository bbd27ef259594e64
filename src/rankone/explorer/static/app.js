// The page: data in, views up, and what leads from one to the other.

import {unpack} from "./data.js";
import {Network} from "./model.js";
import {Corpus, split} from "./corpus.js";
import {SentenceView} from "./sentence.js";
import {Figure} from "./figure.js";
import {findings} from "./findings.js";
import {proof, apart} from "./proof.js";
import {theme} from "./theme.js";
import {$, between, chip, el, fill, plain, plural, shown, whole} from "./dom.js";

const FIRST = 40, AROUND = 7, VIEWS = ["sentence", "findings", "proof"], HINTS = 14;

async function start() {
  theme(() => figure?.plot.draw());
  const data = await unpack($("#data").textContent), corpus = new Corpus(data), network = new Network(data.network, data.arrays);
  $("#data").remove();
  const known = new Set(data.vocabulary), c = data.certificate;
  const app = {data, corpus, network, labels: data.labels, task: data.reading.task ?? "tags", knows: (word) => known.has(word), pair: null};
  const token = ({sentence, position}) => (sentence <= corpus.size && corpus.offsets[sentence - 1] + position <= corpus.offsets[sentence] ? corpus.offsets[sentence - 1] + position - 1 : null);
  if (c?.closest && c.of_corpus && c.of_model) {
    const pair = c.closest.map(token);
    if (!pair.includes(null)) app.pair = pair;
  }
  let figure = null, hits = [], drawn = 0;
  const view = new SentenceView(app, (hovering) => { figure?.show(view, hovering); if (!hovering) { remember(); written(); } });
  const open = (i) => { const s = corpus.sentenceOf(i); turn("sentence"); view.open(s, i - corpus.offsets[s]); current(); scrollTo({top: 0}); };
  figure = new Figure(app, open);

  // Views -------------------------------------------------------------------------------------

  const made = new Set();
  function turn(name) {
    for (const each of VIEWS) {
      $("#" + each).hidden = each !== name;
      $("#tab-" + each).setAttribute("aria-selected", each === name);
      $("#tab-" + each).tabIndex = each === name ? 0 : -1;
    }
    app.view = name;
    if (name === "findings" && !made.has(name)) findings(app, {open, search: (query) => { turn("sentence"); $("#query").value = query; search(); }});
    if (name === "proof") { proof(app, {open, closest: () => { turn("sentence"); figure.closest(); current(); }}); pairNumbers(); }
    made.add(name);
    remember();
  }
  function pairNumbers() {
    if (app.pair && figure.numbers) apart(app.pair.map((i) => Array.from(figure.numbers.subarray(i * figure.width, (i + 1) * figure.width))), figure.kind);
  }
  for (const [k, name] of VIEWS.entries()) {
    const tab = $("#tab-" + name);
    tab.addEventListener("click", () => turn(name));
    tab.addEventListener("keydown", (event) => {
      const step = {ArrowLeft: -1, ArrowRight: 1}[event.key];
      if (!step) return;
      event.stopPropagation();
      const next = VIEWS[(k + step + VIEWS.length) % VIEWS.length];
      turn(next);
      $("#tab-" + next).focus();
    });
  }
  const count = corpus.given && corpus.figures.labelled ? corpus.contradictions().length : null;
  $("output", $("#tab-findings")).value = count ? whole(count) : "";
  $("output", $("#tab-proof")).value = c ? {certified: "✓", refuted: "✗", undecided: "?"}[c.outcome] : "";
  $("#tab-proof").classList.add(c?.outcome ?? "none");

  // Sentences ---------------------------------------------------------------------------------

  function search() {
    hits = corpus.search($("#query").value);
    drawn = 0;
    fill($("#list"));
    $("#count").textContent = !corpus.given ? "No corpus: type a sentence." : hits.length === corpus.size ? plural(corpus.size, "sentence") : `${whole(hits.length)} of ${plural(corpus.size, "sentence")}`;
    more();
  }
  function more() {
    const rows = hits.slice(drawn, drawn + FIRST).map(([s, own]) => {
      const at = own[0] ?? 0, [a, b] = corpus.bounds(s), from = Math.max(0, at - AROUND), to = Math.min(b - a, from + 2 * AROUND);
      const words = Array.from(corpus.tokens.subarray(a + from, a + to), (i) => corpus.words[i]);
      const marked = new Set(own), wrong = () => { for (let i = a; i < b; i++) if (corpus.wrong(i)) return true; return false; };
      return el("li", {"data-s": s}, el("button", {type: "button", onclick: () => { view.open(s, own[0] ?? null); current(); }},
        el("small", {}, whole(corpus.place(s)[2]), wrong() ? el("span", {class: "bad", title: "a label differs from the file"}, " ✗") : null), " ",
        el("span", {dir: "auto"}, from ? "… " : "", between(words.map((word, i) => (marked.has(from + i) ? el("mark", {}, shown(word)) : el("span", {}, shown(word)))), " "), to < b - a ? " …" : "")));
    });
    $("#list").append(...rows);
    drawn += rows.length;
    $("#more").hidden = drawn >= hits.length;
    current();
  }
  function current() {
    for (const row of $("#list").children) row.classList.toggle("current", Number(row.dataset.s) === view.s);
  }
  function beside(step) { // the next or the previous sentence among those that were found
    const k = hits.findIndex(([s]) => s === view.s), next = hits[k < 0 ? 0 : k + step];
    if (!next) return;
    while (drawn <= k + step) more();
    view.open(next[0], next[1][0] ?? null);
    current();
    $("#list .current")?.scrollIntoView({block: "nearest"});
  }
  const hint = (query, text = query) => el("button", {type: "button", class: "hint", onclick: () => { $("#query").value = $("#query").value === query ? "" : query; search(); }}, text);
  if (corpus.given) {
    const counts = new Map();
    if (corpus.figures.labelled && app.task === "tags") for (const g of corpus.gold) if (g) counts.set(g - 1, (counts.get(g - 1) ?? 0) + 1);
    const often = [...counts].sort((x, y) => y[1] - x[1]).slice(0, HINTS).filter(([label]) => !/\s/.test(corpus.labels[label]));
    const {asked, right, unavoidable, unknown} = corpus.figures;
    fill($("#filters"), ...[asked > right && hint("is:wrong", "wrong"), unavoidable > 0 && hint("is:unavoidable", "unavoidable"), unknown > 0 && hint("is:unknown", "unknown words"),
      ...often.map(([label]) => hint("label:" + corpus.labels[label], chip(corpus.labels[label])))].filter(Boolean));
  }
  let typing = 0;
  $("#query").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(search, corpus.size > 2000 ? 150 : 0); });
  $("#more").addEventListener("click", more);
  const joined = () => (app.task === "tags" || !["words", "characters"].includes(data.reading.tokenizer) ? " " : "");
  function written() { // the sentence that is shown can be changed by typing
    if (document.activeElement !== $("#text")) $("#text").value = view.items.slice(0, 60).map(({word}) => plain(word)).join(joined());
  }
  $("#typing").addEventListener("submit", (event) => {
    event.preventDefault();
    const words = split($("#text").value, data.reading);
    if (words.length) { view.type(data.begin ? [data.begin, ...words] : words); current(); }
  });

  // Keys --------------------------------------------------------------------------------------

  addEventListener("keydown", (event) => {
    const typingNow = event.target.matches?.("input[type=search], input[type=text], select");
    if (event.key === "Escape" && typingNow) { event.target.blur(); return; }
    if (typingNow || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
    if (event.key === "/") { event.preventDefault(); turn("sentence"); $("#query").focus(); $("#query").select(); return; }
    if (app.view !== "sentence" || event.target.matches?.("canvas, [role=tab], input")) return;
    if (event.key === "j" || event.key === "k") beside(event.key === "j" ? 1 : -1);
    else if (!$("#tokens").contains(event.target)) view.key(event);
  });

  // The address says what is shown, so that a link leads there.

  function remember() {
    const place = app.view === "sentence" || !app.view ? (view.s === null ? "" : `s=${view.s + 1}&t=${view.selected + 1}`) : app.view;
    try { history.replaceState(null, "", "#" + place); } catch { /* a page that may not have an address */ }
  }
  function recall() {
    const asked = location.hash.slice(1), found = new URLSearchParams(asked), s = Number(found.get("s")) - 1, t = Number(found.get("t")) - 1;
    if (s >= 0 && s < corpus.size) view.open(s, t >= 0 ? t : null);
    else if (corpus.given) view.open(0);
    else view.type(data.vocabulary.slice(0, 5));
    turn(VIEWS.includes(asked) ? asked : "sentence");
    current();
  }

  $("main").hidden = false;
  search();
  recall();
  addEventListener("hashchange", recall);
  document.documentElement.dataset.ready = "true";
  await figure.start();
  pairNumbers();
  document.documentElement.dataset.read = "true";
}

start().catch((error) => {
  $("#failed").hidden = false;
  $("#failed").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
});
