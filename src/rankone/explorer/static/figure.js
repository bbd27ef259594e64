// The figure under a sentence: the line of all context ids, or the group of the selected word.

import {$, between, brief, chip, el, exact, fill, plain, plural, shown} from "./dom.js";
import {Plot} from "./plot.js";
import {corpusNumbers, directions, kindOf, line, logitsAlong, numbersOf, widthOf} from "./readout.js";

const CURVES = 12; // labels whose logits are drawn
const AROUND = 6;

export class Figure {
  constructor(app, open) {
    Object.assign(this, {app, open, kind: kindOf(app.network), width: widthOf(app.network), chosen: 0, numbers: null, sorted: null});
    this.steps = this.kind === "line" ? line(app.network) : null;
    $("#figure").classList.toggle("low", this.kind === "lead" || (this.kind === "line" && !this.steps));
    this.plot = new Plot($("#plot"), {hover: (token, pixel) => this.under(token, pixel), pick: (token) => this.pick(token), moved: () => this.under(null)});
  }

  // Read all sentences, a little at a time.
  async start() {
    const {network, corpus} = this.app;
    if (!corpus.given) return;
    this.numbers = await corpusNumbers(network, corpus, (share) => { if (share < 1) this.progress(share); });
    this.ready = true;
    this.sorted = null;
    if (this.sentence) this.show(this.sentence);
  }

  progress(share) { $("#under").textContent = `Reading the corpus: ${Math.round(100 * share)} %`; }

  // Show the token that a sentence view is about; `hovering` changes only the marks.
  show(sentence, hovering = false) {
    this.sentence = sentence;
    const t = sentence.selected, word = sentence.run.ids[t], place = t - this.app.network.piece(sentence.run, t)[0];
    this.place = place;
    const key = `${word} ${this.kind === "group" ? place : ""}`;
    if (!hovering) {
      this.found = this.kind === "group" ? directions(this.app.network, word, place) : null;
      if (this.found && (this.key !== key || !this.found.list[this.chosen])) this.chosen = 0;
      this.own(t);
    }
    this.scene(hovering);
    if (!hovering && (this.key !== key || !this.framed)) { this.key = key; this.frame("word"); }
    if (!hovering) this.captions();
  }

  along(numbers) {
    const factors = this.found?.list[this.chosen]?.factors;
    return factors ? factors.reduce((sum, u, h) => sum + u * numbers[h], 0) : numbers[0];
  }

  value(token) { return this.along(this.numbers.subarray(token * this.width, (token + 1) * this.width)); }

  // The points of the figure, sorted: all of the line, or those of the word.
  own(t) {
    const {corpus} = this.app, word = Math.min(this.sentence.run.ids[t], corpus.known);
    this.word = word;
    if (!this.numbers) { this.sorted = {xs: new Float64Array(0), tokens: new Uint32Array(0)}; return; }
    const placed = this.found?.placed, longest = this.app.network.shape.positions || Infinity;
    const same = this.kind === "group" ? `${word} ${placed ? this.place : ""} ${this.found.list[this.chosen]?.factors}` : "all";
    if (this.sorted?.same === same) return;
    const n = corpus.tokens.length;
    let tokens = Uint32Array.from({length: n}, (_, i) => i);
    if (this.kind === "group") tokens = tokens.filter((i) => Math.min(corpus.tokens[i], corpus.known) === word);
    if (placed) tokens = tokens.filter((i) => (i - corpus.offsets[corpus.sentenceOf(i)]) % longest === this.place);
    const values = new Float64Array(n);
    for (const i of tokens) values[i] = this.value(i);
    tokens.sort((a, b) => values[a] - values[b]);
    this.sorted = {same, tokens, xs: Float64Array.from(tokens, (i) => values[i])};
  }

  scene() {
    const {app, sentence} = this, {corpus, network} = app, t = sentence.selected, shownToken = sentence.shownToken;
    const marks = [{x: this.along(numbersOf(network, sentence.run, t)), main: true}];
    if (shownToken !== t && (this.kind !== "group" || sentence.run.ids[shownToken] === sentence.run.ids[t])) {
      marks.push({x: this.along(numbersOf(network, sentence.run, shownToken)), main: false});
    }
    if (this.paired) marks.push(...this.gap().map((x) => ({x, main: false})));
    const {xs, tokens} = this.sorted;
    const strong = this.kind === "group" ? () => true : (i) => Math.min(corpus.tokens[i], corpus.known) === this.word;
    let curve = this.steps;
    if (this.kind === "group" && this.found.list.length) {
      const labels = this.labels(t), direction = this.found.list[this.chosen];
      const place = logitsAlong(network, sentence.run, t, direction, this.found.flat, labels);
      curve = {...place, labels};
    }
    this.plot.show({xs, tokens, labels: corpus.given ? corpus.chosen : [], names: corpus.labels, strong, anyStrong: true, curve, marks});
  }

  // The labels whose logits are drawn: that of the token, and those of its word's other contexts.
  labels(t) {
    const {corpus} = this.app, found = new Map([[this.sentence.label(t), Infinity]]);
    for (const i of this.sorted.tokens) found.set(corpus.chosen[i], (found.get(corpus.chosen[i]) ?? 0) + 1);
    return [...found].sort((a, b) => b[1] - a[1]).slice(0, CURVES).map(([label]) => label);
  }

  get mark() { return this.plot.scene.marks[0].x; }

  frame(what) {
    this.paired = what === "gap";
    this.scene();
    const {axis} = this.plot, {xs, tokens} = this.sorted, {corpus} = this.app;
    this.framed = this.ready || !corpus.given;
    let own = xs;
    if (what === "word" && this.kind !== "group") own = xs.filter((_, k) => Math.min(corpus.tokens[tokens[k]], corpus.known) === this.word);
    if (what === "all" && this.steps && !xs.length) own = this.steps.knots;
    if (what === "gap") {
      const [a, b] = this.gap();
      axis.focus(a + (b - a) / 2, Math.abs(b - a) * 6 || Math.abs(a) * 1e-14);
    } else if (what === "token") {
      axis.focus(this.mark, this.nearest() * 6);
    } else {
      const low = Math.min(own[0] ?? this.mark, this.mark), high = Math.max(own.at(-1) ?? this.mark, this.mark);
      const room = (high - low) * 0.06 || Math.max(Math.abs(low) * 1e-6, 1e-6);
      axis.frame(low - room, high + room);
    }
    this.plot.draw();
  }

  // How far the nearest other context of the selected token is.
  nearest() {
    const {xs} = this.sorted, x = this.mark;
    let least = Infinity;
    for (const y of xs) { const far = Math.abs(y - x); if (far > 0 && far < least) least = far; }
    return Number.isFinite(least) ? least : 1;
  }

  // The numbers of the closest pair of the certificate, where both are on this line.
  gap() {
    const pair = this.app.pair;
    return pair && this.numbers ? pair.map((i) => this.value(i)) : null;
  }

  captions() {
    const {app, sentence} = this, {corpus} = app, {xs, tokens} = this.sorted, t = sentence.selected;
    const word = sentence.items[t].word, own = this.kind === "group" ? tokens.length : tokens.filter((i) => Math.min(corpus.tokens[i], corpus.known) === this.word).length;
    const title = {
      line: ["The line. ", "Each tick is a context id, coloured by its label; tall ones are those of ", el("q", {dir: "auto"}, shown(word)), `${this.numbers ? ` (${plural(own, "token")})` : ""}. The curve above is the readout: it sends each number to the number of a label.`],
      group: ["The group of ", el("q", {dir: "auto"}, shown(word)), `${this.found?.placed ? ` at place ${this.place + 1}` : ""}. Each tick is one of its ${this.numbers ? plural(own, "context id") : "context ids"}, seen along one direction; the curves are the logits that its hidden units make of it.`],
      lead: ["Leads. ", "This network has no readout of one number. Each tick is a token: how far the logit of its label is ahead of the next."],
    }[this.kind];
    fill($("#caption"), el("b", {}, title[0]), ...title.slice(1));
    const button = (text, title2, act, off = false) => el("button", {type: "button", title: title2, disabled: off, onclick: act}, text);
    const zoom = (factor) => () => { this.plot.axis.zoom(factor); this.plot.draw(); };
    const pair = app.pair && this.numbers && this.kind !== "lead";
    const list = this.found?.list ?? [];
    const name = ({factors, units}) => {
      const one = factors.findIndex((u) => u === 1 && factors.filter(Boolean).length === 1);
      return (one >= 0 ? `head ${one + 1}` : `(${factors.map((u) => brief(u)).join(", ")})`) + (units.length ? `: ${plural(units.length, "unit")}` : "");
    };
    const choice = list.length < 2 ? null : el("select", {"aria-label": "Direction", onchange: (event) => { this.chosen = Number(event.target.value); this.own(t); this.scene(); this.frame("word"); this.captions(); }},
      list.slice(0, 40).map((direction, i) => el("option", {value: i, selected: i === this.chosen}, name(direction))));
    fill($("#zooms"),
      this.kind === "line" || this.kind === "lead" ? button("whole line", "All context ids", () => this.frame("all")) : null,
      button(this.kind === "group" ? "whole group" : "word", "All contexts of the word", () => this.frame("word")),
      button("token", "The token and its nearest neighbour", () => this.frame("token")),
      pair ? button("closest pair", "The two closest contexts of the certificate", () => this.closest()) : null,
      button("−", "Wider (−)", zoom(2.5)), button("+", "Closer (+)", zoom(0.4)), choice);
  }

  // Go to the closest pair of the certificate: its first token, and both in the window.
  closest() {
    this.key = null;
    this.open(this.app.pair[0]);
    if (this.kind === "group") this.widest();
    this.frame("gap");
    this.plot.canvas.focus();
  }

  // The head in which the pair is farthest apart: their distance is the largest over heads.
  widest() {
    const [a, b] = this.app.pair, {list} = this.found;
    let most = -1;
    list.forEach((_, i) => { const before = this.chosen; this.chosen = i; const far = Math.abs(this.value(a) - this.value(b)); if (far > most) most = far; else this.chosen = before; });
    this.own(this.sentence.selected);
    this.scene();
    this.captions();
  }

  under(token) {
    const {app} = this, {corpus} = app, {axis} = this.plot;
    if (token === null) {
      if (!this.sentence) return;
      const direction = this.found?.list[this.chosen], rest = this.found ? this.found.total - direction.units.length - this.found.flat.length : 0;
      fill($("#under"), ...[
        this.plot.axis ? `Window ${brief(axis.span)} wide` : "",
        axis.span < 1e-5 * Math.abs(axis.anchor) ? `, around ${exact(axis.anchor)}` : "",
        this.paired ? `; the two closest contexts of the certificate are ${brief(Math.abs(this.gap()[1] - this.gap()[0]))} apart` : "",
        rest > 0 ? `; ${plural(rest, "unit")} of the group ${rest === 1 ? "looks" : "look"} along other directions` : "",
        corpus.given && !this.ready ? "; reading the corpus" : corpus.given && !this.numbers ? "; the corpus is too large to draw for this network" : "", "."].filter(Boolean));
      return;
    }
    const s = corpus.sentenceOf(token), [a] = corpus.bounds(s), t = token - a, words = corpus.wordsOf(s);
    const part = (from, to) => words.slice(Math.max(0, from), to).map(plain).join(" ");
    fill($("#under"), chip(corpus.labels[corpus.chosen[token]]), " ", exact(this.value(token)), " · ",
      el("span", {class: "excerpt"}, t > AROUND ? "… " : "", part(t - AROUND, t), " ", el("mark", {}, shown(words[t])), " ", part(t + 1, t + 1 + AROUND), t + 1 + AROUND < words.length ? " …" : ""));
  }

  pick(token) { this.open(token); }
}
