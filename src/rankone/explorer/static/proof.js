// The certificate: what was proved, with which arithmetic, by which figures; or what refutes it.

import {$, between, chip, el, exact, fill, plural, shown, whole} from "./dom.js";

const CLAIMS = {
  mapping: ["Contexts are told apart", (c) => `Any two of the ${whole(c.contexts)} contexts have context ids more than δ = ${c.delta} apart, and every context id is shorter than r = ${c.r} (Definition 2).`],
  labels: ["Every label is right", (c) => `Of ${plural(c.tokens, "token")}, ${whole(c.wrong ?? 0)} get another label than in the file; any function of the same contexts must get ${whole(c.unavoidable ?? 0)} wrong. ${c.margin === null ? "" : `Outputs stay away from the border between two labels by ${c.margin} of 0.5 at least.`}`],
  float_labels: ["The run in floats agrees", (c) => `The run in ${c.dtype} that predictions are made with chooses the same labels. Its outputs are off by less than ${c.float_distance}.`],
};
const SIGNS = {certified: "✓", refuted: "✗", undecided: "?"};

export function proof(app, {open, closest, number}) {
  const {corpus} = app, c = app.data.certificate, home = $("#proof");
  if (!c) {
    fill(home, el("p", {class: "note"}, "There is no certificate in the model directory. ", el("code", {}, "rankone certify DIR FILE"), " proves or refutes what the weights do, and this page then shows it."));
    return;
  }
  const token = (spot) => {
    const [s, t] = [spot.sentence - 1, spot.position - 1];
    if (!c.of_corpus || s >= corpus.size) return null;
    const [a, b] = corpus.bounds(s);
    return a + t < b ? a + t : null;
  };
  const go = (spot, text) => { const i = token(spot); return i === null ? el("span", {}, text) : el("button", {class: "link", type: "button", onclick: () => open(i)}, text); };
  const witnesses = c.witnesses.map(([sentence, position]) => ({sentence, position}));
  const children = [el("div", {class: "verdict " + c.outcome},
    el("h2", {}, `${SIGNS[c.outcome]} ${c.outcome}`),
    el("p", {}, {certified: "The claims below are proved about these very weights, in exact arithmetic.", refuted: "A claim is disproved: there is a witness.", undecided: "Within its limits, the check neither proved nor disproved all claims."}[c.outcome]),
    c.reason ? el("p", {class: "reason"}, shown(c.reason)) : null,
    witnesses.length ? el("p", {}, witnesses.map((spot, i) => [go(spot, `Go to ${witnesses.length > 1 ? `witness ${i + 1}` : "the witness"}: sentence ${whole(spot.sentence)}, token ${whole(spot.position)}`), " "])) : null)];
  if (!c.of_model) children.push(el("p", {class: "notice"}, "This certificate is about other weights than those of this page: certify again."));
  if (!c.of_corpus && corpus.given) children.push(el("p", {class: "notice"}, "It is about another corpus than the one in this page, so its sentences are not linked."));
  children.push(el("ol", {class: "claims"}, Object.entries(CLAIMS).filter(([name]) => c.claims[name]).map(([name, [title, text]]) =>
    el("li", {class: c.claims[name]}, el("h3", {}, el("span", {class: "sign", "aria-hidden": "true"}, SIGNS[c.claims[name]]), ` ${title} `, el("small", {}, c.claims[name])), c.claims[name] === "certified" ? el("p", {}, text(c)) : null))));
  if (c.closest) {
    const pair = c.closest.map((spot) => context(app, spot, token(spot), open, number));
    children.push(el("h2", {}, "The two closest contexts"), el("div", {class: "pair"}, pair), el("p", {class: "note", id: "apart"}));
    if (app.pair) children.push(el("button", {type: "button", onclick: closest}, "See them on the line"));
  }
  const arithmetic = c.dtype === "exact" ? "fractions, and Arb balls from the first softmax on" : `float64 with bounds on rounding${c.decided.exact ? `, and Arb balls of up to ${whole(c.digits)} digits where that did not decide` : ""}`;
  const rows = [["arithmetic", arithmetic], ["tokens decided in float64", whole(c.decided.float)], ["in Arb", whole(c.decided.exact)], ["undecided", whole(c.decided.undecided)],
    ["any order of sums", c.any_order === null ? "not tried" : c.any_order ? "proved: every run chooses these labels" : "not proved"], ["assuming", c.arithmetic],
    ["token with the smallest margin", c.worst ? go(c.worst, `sentence ${whole(c.worst.sentence)}, token ${whole(c.worst.position)}`) : null],
    ["documents recited", c.documents === null ? null : `${whole(c.recited)} of ${whole(c.documents)}, with ${plural(c.branches, "branch", "branches")}`], ["excess, in nats", c.excess],
    ["corpus", c.source], ["seconds", Object.entries(c.seconds).map(([k, x]) => `${k} ${x.toFixed(2)}`).join(", ")], ...Object.entries(c.hashes).map(([name, hash]) => [`SHA-256 of ${name}`, hash])];
  children.push(el("h2", {}, "Figures"), el("div", {class: "scroll"}, el("table", {class: "plain"}, el("tbody", {}, rows.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) =>
    el("tr", {}, el("th", {scope: "row"}, name), el("td", {class: name.startsWith("SHA") ? "hash" : null}, typeof value === "string" ? shown(value) : value)))))));
  fill(home, ...children);
}

// How far the closest pair is apart, once the numbers of the corpus are known.
export function apart(numbers, kind) {
  const node = $("#apart");
  if (!node || !numbers) return;
  const [a, b] = numbers, far = Math.max(...a.map((x, h) => Math.abs(x - b[h])));
  if (kind !== "lead") fill(node, `Their numbers in this page: `, el("span", {class: "value"}, a.map(exact).join(", ")), " and ", el("span", {class: "value"}, b.map(exact).join(", ")), ", apart by ", el("span", {class: "value"}, String(far)), ".");
}

function context(app, spot, i, open) {
  const {corpus} = app, title = el("p", {class: "where"}, `Sentence ${whole(spot.sentence)}, token ${whole(spot.position)}`, ` · line ${whole(spot.line)}`);
  if (i === null) return el("div", {class: "card"}, title);
  const s = spot.sentence - 1, t = spot.position - 1, words = corpus.wordsOf(s);
  const from = Math.max(0, t - 20), to = Math.min(words.length, t + 21);
  return el("div", {class: "card"}, title,
    el("p", {class: "reading", dir: "auto"}, from ? "… " : "", between(words.slice(from, to).map((word, k) => (from + k === t ? el("mark", {}, shown(word)) : el("span", {}, shown(word)))), " "), to < words.length ? " …" : ""),
    el("p", {}, chip(corpus.labels[corpus.chosen[i]]), " ", el("button", {class: "link", type: "button", onclick: () => open(i)}, "open the sentence")));
}
