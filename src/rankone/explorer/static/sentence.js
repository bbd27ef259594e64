// A sentence: its tokens with labels, what each looks at, and what happens when they are changed.

import {$, between, brief, chip, el, exact, fill, percent, plain, plural, shown} from "./dom.js";
import {argmax} from "./model.js";
import {kindOf, numbersOf} from "./readout.js";

const SIGHT = 512; // tokens that are shown at a time
const MOVERS = 6;

export class SentenceView {
  // `app` has the network, the corpus and the data; `changed` is called when another token is
  // selected, or the sentence is another one.
  constructor(app, changed) {
    Object.assign(this, {app, changed, head: app.network.attending.length - 1, lane: "weight", s: null, words: [], from: 0});
    this.selected = 0;
    this.list = $("#tokens");
    this.list.addEventListener("pointerover", (event) => this.hover(event));
    this.list.addEventListener("pointerleave", () => this.point(null));
    this.list.addEventListener("click", (event) => { const t = this.tokenOf(event); if (t !== null) this.select(t, true); });
    this.list.addEventListener("keydown", (event) => this.key(event));
    this.list.addEventListener("dragstart", (event) => { this.dragged = this.tokenOf(event); event.dataTransfer?.setData("text/plain", ""); });
    this.list.addEventListener("dragover", (event) => { if (this.tokenOf(event) !== null) event.preventDefault(); });
    this.list.addEventListener("drop", (event) => {
      event.preventDefault();
      const t = this.tokenOf(event);
      if (t !== null && this.dragged !== null && t !== this.dragged) this.swap(this.dragged, t);
    });
  }

  tokenOf(event) {
    const node = event.target.closest?.("[data-t]");
    return node ? Number(node.dataset.t) : null;
  }

  // Show sentence s of the corpus.
  open(s, at = null) {
    const {corpus} = this.app, [a] = corpus.bounds(s), words = corpus.wordsOf(s), t = at ?? corpus.striking(s);
    const origin = words.map((word, i) => ({word, at: a + i}));
    this.set(s, origin, t);
  }

  // Show words that somebody typed.
  type(words) { this.set(null, words.map((word) => ({word, at: null})), 0); }

  set(s, items, t) {
    this.s = s;
    this.origin = items;
    this.items = [...items];
    this.before = null;
    this.read(t);
    this.before = this.chosen.slice();
  }

  read(t) {
    const {network, corpus} = this.app, n = this.items.length;
    this.selected = Math.max(0, Math.min(t, n - 1));
    this.pointed = null;
    this.from = Math.floor(this.selected / SIGHT) * SIGHT;
    this.run = network.run(corpus.rows(this.items.map(({word}) => word)));
    this.chosen = [];
    this.draw();
    this.changed();
  }

  // The label of a token, computed when it is asked for.
  label(t) { return this.chosen[t] ??= this.app.network.label(this.run, t); }

  get edited() { return this.items.length !== this.origin.length || this.items.some((item, i) => item !== this.origin[i]); }

  swap(a, b) {
    if (Math.min(a, b) < 0 || Math.max(a, b) >= this.items.length) return;
    [this.items[a], this.items[b]] = [this.items[b], this.items[a]];
    this.read(b);
    this.focus();
  }

  remove(t) {
    if (this.items.length < 2) return;
    this.items.splice(t, 1);
    this.read(Math.min(t, this.items.length - 1));
    this.focus();
  }

  reset() {
    if (!this.edited) return;
    this.items = [...this.origin];
    this.read(Math.min(this.selected, this.items.length - 1));
    this.focus();
  }

  focus() { $(`[data-t="${this.selected}"]`, this.list)?.focus({preventScroll: true}); }

  select(t, focus = false) {
    const n = this.items.length;
    if (t < 0 || t >= n) return;
    const turned = Math.floor(t / SIGHT) * SIGHT !== this.from;
    this.selected = t;
    this.pointed = null;
    if (turned) { this.from = Math.floor(t / SIGHT) * SIGHT; this.draw(); } else this.mark();
    if (focus) this.focus();
    this.changed();
  }

  hover(event) {
    const t = this.tokenOf(event);
    if (t !== null && t !== this.pointed) this.point(t);
  }

  point(t) {
    this.pointed = t;
    this.mark();
    this.changed(true);
  }

  get shownToken() { return this.pointed ?? this.selected; }

  key(event) {
    const t = this.selected, {key} = event;
    if (event.ctrlKey || event.metaKey) return;
    if (event.altKey && (key === "ArrowLeft" || key === "ArrowRight")) this.swap(t, t + (key === "ArrowLeft" ? -1 : 1));
    else if (event.altKey) return;
    else if (key === "ArrowLeft" || key === "ArrowRight") this.select(t + (key === "ArrowLeft" ? -1 : 1), true);
    else if (key === "Home" || key === "End") this.select(key === "Home" ? 0 : this.items.length - 1, true);
    else if (key === "Delete" || key === "Backspace") this.remove(t);
    else if (key === "Escape") this.reset();
    else return;
    event.preventDefault();
  }

  draw() {
    const {corpus, labels, task} = this.app, end = Math.min(this.from + SIGHT, this.items.length);
    const rows = [];
    for (let t = this.from; t < end; t++) {
      const {word, at} = this.items[t], name = labels[this.label(t)];
      const truth = at === null || this.edited ? null : corpus.truth(at);
      const asked = at === null || task !== "class" || t === this.items.length - 1;
      const wrong = truth !== null && truth !== this.chosen[t];
      const unknown = !this.app.knows(word);
      const origin = this.before && this.edited ? this.origin.indexOf(this.items[t]) : -1;
      const moved = origin >= 0 && this.before[origin] !== undefined && this.before[origin] !== this.chosen[t];
      const state = [wrong && (corpus.unavoidable[at] ? "unavoidable" : "wrong"), unknown && "unknown", moved && "moved"].filter(Boolean);
      rows.push(el("li", {"data-t": t, class: "token " + state.join(" "), tabindex: t === this.selected ? 0 : -1, draggable: "true",
        "aria-label": `${plain(word)}: ${plain(name)}${wrong ? `, in the file ${plain(corpus.labels[truth])}` : ""}${unknown ? ", unknown word" : ""}`},
        el("span", {class: "bar"}, el("i", {})),
        el("span", {class: "word", dir: "auto"}, shown(task === "tags" ? word : word.replace(/^ /, "\u00a0"))),
        asked ? chip(name) : null,
        wrong ? el("span", {class: "truth"}, "file: ", shown(corpus.labels[truth])) : null));
    }
    fill(this.list, ...rows);
    this.list.classList.toggle("dense", end - this.from > 120);
    const pager = $("#pager");
    pager.hidden = this.items.length <= SIGHT;
    if (!pager.hidden) fill(pager,
      el("button", {type: "button", disabled: this.from === 0, onclick: () => this.select(this.from - SIGHT)}, "← earlier"),
      ` tokens ${this.from + 1} to ${end} of ${plural(this.items.length, "token")} `,
      el("button", {type: "button", disabled: end === this.items.length, onclick: () => this.select(this.from + SIGHT)}, "later →"));
    this.tools();
    this.mark();
  }

  tools() {
    const {app} = this, {network, corpus} = app, place = this.s === null ? null : corpus.place(this.s);
    const t = () => this.selected;
    const button = (text, title, act, off = false) => el("button", {type: "button", title, onclick: act, disabled: off}, text);
    const where = place === null ? [el("b", {}, "Typed"), ` · ${plural(this.items.length, "token")}`]
      : [el("b", {}, `Sentence ${this.s + 1}`), ` of ${corpus.size.toLocaleString("en-US")} · `, el("span", {class: "file"}, shown(place[0])), ` ${place[1]} ${place[2].toLocaleString("en-US")}`];
    const changedLabels = this.edited ? this.items.filter((item, i) => { const o = this.origin.indexOf(item); return this.before[o] !== undefined && this.before[o] !== this.chosen[i]; }).length : 0;
    const select = network.attending.length < 2 ? null : el("select", {"aria-label": "Head", onchange: (event) => { this.head = Number(event.target.value); this.mark(); }},
      network.attending.map(([b, h], i) => el("option", {value: i, selected: i === this.head}, (network.blocks.length > 1 ? `block ${b + 1}, ` : "") + `head ${h + 1}`)));
    const lanes = [["weight", "how much the token looks at each"], ["pull", "how far its number would move without each"]].map(([name, title]) =>
      el("label", {title}, el("input", {type: "radio", name: "lane", value: name, checked: this.lane === name, onchange: () => { this.lane = name; this.mark(); }}), el("span", {}, name)));
    fill($("#tools"),
      el("p", {class: "where"}, where, this.edited ? el("span", {class: "edited"}, ` · changed: ${plural(changedLabels, "other label")}`) : null),
      el("div", {class: "buttons"},
        el("fieldset", {class: "lanes"}, el("legend", {class: "unseen"}, "Bars"), lanes), select,
        button("⇠ swap", "Swap with the token before (Alt+←)", () => this.swap(t(), t() - 1)),
        button("swap ⇢", "Swap with the token after (Alt+→)", () => this.swap(t(), t() + 1)),
        button("delete", "Delete the token (Del)", () => this.remove(t()), this.items.length < 2),
        button("undo all", "The sentence as it was (Esc)", () => this.reset(), !this.edited)));
  }

  // What the token in question sees: bars over all tokens, and how its number comes about.
  mark() {
    const {network} = this.app, t = this.shownToken, [block, head] = network.attending[this.head];
    const {first, weights} = network.weights(this.run, block, head, t), seen = this.run.seen[block][head];
    const size = network.blocks[block].attention.size;
    const average = seen.average[t * size];
    const pulls = size > 1 ? null : Float64Array.from(weights, (w, i) => (w >= 1 ? 0 : (w * (average - seen.value[first + i])) / (1 - w)));
    const lane = this.lane === "pull" && pulls ? pulls : weights;
    let most = 0;
    for (const x of lane) most = Math.max(most, Math.abs(x));
    for (const node of this.list.children) {
      const i = Number(node.dataset.t), x = lane[i - first];
      const share = x === undefined || !most ? 0 : Math.abs(x) / most;
      node.style.setProperty("--share", share.toFixed(3));
      node.classList.toggle("left", x < 0);
      node.classList.toggle("outside", x === undefined);
      const chosen = i === this.selected;
      node.classList.toggle("selected", chosen);
      node.classList.toggle("pointed", i === t && !chosen);
      node.tabIndex = chosen ? 0 : -1;
    }
    this.describe(t, first, weights, pulls, seen, average);
  }

  describe(t, first, weights, pulls, seen, average) {
    const {app} = this, {network} = app, {word} = this.items[t];
    const name = app.labels[this.label(t)], numbers = numbersOf(network, this.run, t), kind = kindOf(network);
    const movers = Array.from(pulls ?? weights, (x, i) => [Math.abs(x), x, first + i]).filter(([size]) => size > 0).sort((a, b) => b[0] - a[0]).slice(0, MOVERS);
    const listed = movers.map(([, x, i]) => el("span", {class: "mover"}, el("q", {dir: "auto"}, shown(this.items[i].word)), " ",
      pulls ? el("span", {class: x < 0 ? "down" : "up"}, (x > 0 ? "+" : "") + brief(x)) : percent(x, 1)));
    const heading = el("h2", {}, el("span", {class: "word", dir: "auto"}, shown(word)), " ", chip(name), el("small", {}, ` token ${t + 1} of ${this.items.length}`));
    const rows = kind === "line" ? this.sum(t, numbers[0]) : kind === "group" ? this.averages(t, numbers) : [["lead", exact(numbers[0]), "of its label's logit over the next"]];
    const row = ([term, value, note]) => [el("dt", {}, term), el("dd", {}, el("span", {class: "value"}, value), note ? el("small", {}, " ", note) : null)];
    fill($("#about"), heading,
      el("dl", {class: "numbers"}, rows.map(row)),
      el("p", {class: "movers"}, el("span", {}, pulls ? "Without a word, the average of this head would move by " : "It looks most at "), listed.length ? between(listed, " ") : "nothing else", "."),
      this.choice(t));
  }

  // s = word + position + attention.
  sum(t, s) {
    const {network} = this.app, d = network.dim, layer = network.blocks.at(-1).feedforward, {direction} = layer;
    if (network.blocks.length > 1) return [["number s", exact(s), "what the readout sees"]];
    const [a] = network.piece(this.run, t), along = (table, row) => { let sum = 0; for (let i = 0; i < d; i++) if (direction[i]) sum += direction[i] * table[row * d + i]; return sum; };
    const word = along(network.table, this.run.ids[t]), rows = [["word", exact(word), "its cell on the line"]];
    if (network.positions) rows.push(["position", exact(along(network.positions, t - a)), "its slot in the cell"]);
    network.blocks[0].attention.heads.forEach((head, h) => {
      let gain = 0;
      for (let i = 0; i < d; i++) gain += direction[i] * head.output[i];
      rows.push(["attention", exact(gain * this.run.seen[0][h].average[t]), "what the sentence adds"]);
    });
    return [...rows, ["number s", exact(s), "the sum: its context id, which the readout sees"]];
  }

  averages(t, numbers) {
    const {network} = this.app, layer = network.blocks[0].feedforward, [a] = network.piece(this.run, t);
    const groups = network.groups(layer, this.run.ids[t], t - a);
    let units = 0, active = 0;
    for (const [g, fine] of groups) {
      for (let j = layer.first[g]; j < layer.first[g + 1]; j++) {
        let x = layer.unit_bias[j] + layer.penalty[j] * fine;
        numbers.forEach((y, h) => { x += layer.slopes[j * numbers.length + h] * y; });
        units += 1;
        active += x > 0;
      }
    }
    return [...numbers.map((x, h) => [`head ${h + 1}`, exact(x), h ? "" : "average of the values that it sees"]),
      ["units", `${active} of ${units}`, units ? "of its group are active; those of other groups are silent" : "its word has its usual label in every sentence"]];
  }

  choice(t) {
    const {app} = this, logits = app.network.logits(this.run, t), best = argmax(logits);
    const order = Array.from(logits.keys()).sort((a, b) => logits[b] - logits[a]).slice(0, 3);
    const ahead = order.length > 1 ? logits[best] - logits[order[1]] : null;
    return el("p", {class: "choice"}, "Largest logits: ", between(order.map((c) => el("span", {class: "logit"}, chip(app.labels[c]), " ", brief(logits[c]))), " "),
      ahead === null ? "" : `. The first leads by ${brief(ahead)}.`);
  }
}
