// What is wrong with the labels: ceilings, and contexts that contradict each other.

import {$, between, chip, el, fill, percent, plural, shown, whole} from "./dom.js";

const FIRST = 25, LINES = 8, AROUND = 10;
const INPUTS = { // what a model may see, from least to most
  majority: "nothing: the most frequent label",
  token: "the token alone",
  set: "token, and set of tokens of the sentence",
  multiset: "token, and multiset of tokens",
  prefix: "the sentence up to the token",
  sequence: "the whole sentence, and the place in it",
};

export function findings(app, {open, search}) {
  const {corpus, network} = app, home = $("#findings"), figures = corpus.figures;
  if (!corpus.given) {
    fill(home, el("p", {class: "note"}, "This page was made without a corpus. ", el("code", {}, "rankone explore DIR FILE"), " shows what contradicts itself in FILE."));
    return;
  }
  const {asked, right, unavoidable} = figures, wrong = asked - right;
  const fact = (value, name, query) => el("div", {}, el("dt", {}, name), el("dd", {}, query && value ? el("button", {class: "link", type: "button", onclick: () => search(query)}, whole(value)) : whole(value)));
  const children = [
    el("h2", {}, "What the model gets"),
    el("dl", {class: "facts"}, fact(figures.sentences, "sentences"), fact(figures.tokens, "tokens"),
      figures.labelled ? [fact(right, "labelled as in the file"), fact(wrong, "labelled otherwise", "is:wrong"), fact(unavoidable, "of these at least, whatever the model", "is:unavoidable")] : null,
      fact(figures.unknown, "tokens with unknown words", "is:unknown")),
  ];
  if (!figures.labelled) children.push(el("p", {class: "note"}, "The file has no labels to compare with."));
  const rows = Object.entries(INPUTS).filter(([name]) => figures.ceilings[name]).map(([name, what]) => [what, figures.ceilings[name].errors]);
  const {shape} = network, sees = shape.window ? `the last ${shape.window} tokens` : `${shape.causal ? "the sentence up to the token" : "the sentence"}${shape.positions ? ", and the place in it" : ", without order"}`;
  if (figures.labelled) {
    const most = Math.max(1, unavoidable, ...rows.map(([, errors]) => errors));
    const row = ([what, errors], own) => el("tr", {class: own ? "own" : null}, el("th", {scope: "row"}, what), el("td", {class: "bars"}, el("i", {"--share": errors / most})),
      el("td", {class: "number"}, whole(errors)), el("td", {class: "number"}, percent((asked - errors) / asked)));
    children.push(el("h2", {}, "Ceilings"), el("p", {class: "note"}, "How many labels the best function must get wrong, by what it sees."),
      el("div", {class: "scroll"}, el("table", {}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "a function of"), el("th", {}), el("th", {scope: "col", class: "number"}, "errors"), el("th", {scope: "col", class: "number"}, "ceiling"))),
        el("tbody", {}, rows.map((each) => row(each, false)), row([`this model: ${sees}`, unavoidable], true)))));
    const found = corpus.contradictions(), list = el("ol", {class: "cards"});
    let drawn = 0;
    const more = el("button", {type: "button", onclick: () => add()}, "Show more");
    const add = () => {
      for (const one of found.slice(drawn, drawn + FIRST)) list.append(card(corpus, one, open));
      drawn = Math.min(found.length, drawn + FIRST);
      more.hidden = drawn === found.length;
    };
    add();
    children.push(el("h2", {}, "Contradictions ", el("small", {}, whole(found.length))),
      el("p", {class: "note"}, found.length ? "Contexts that look the same to this model, with more than one label. At most one of the labels can be right." : "None: every context has one label, so a model can get all of them right."), list, more);
  }
  fill(home, ...children);
}

function card(corpus, {context, sides}, open) {
  const s = corpus.sentenceOf(context), [a, b] = corpus.bounds(s), t = context - a, words = corpus.wordsOf(s);
  const from = Math.max(0, t - AROUND), to = Math.min(b - a, t + AROUND + 1);
  const sentence = words.slice(from, to).map((word, i) => (from + i === t ? el("mark", {}, shown(word)) : el("span", {}, shown(word))));
  const link = (token) => { const own = corpus.sentenceOf(token); return el("button", {class: "link", type: "button", onclick: () => open(token)}, `${corpus.place(own, token)[1]} ${whole(corpus.place(own, token)[2])}`); };
  return el("li", {class: "card"},
    el("p", {class: "reading", dir: "auto"}, from ? "… " : "", between(sentence, " "), to < b - a ? " …" : ""),
    el("dl", {class: "sides"}, sides.slice(0, 12).map(([label, tokens]) => [el("dt", {}, chip(corpus.labels[label]), ` ${plural(tokens.length, "token")}`),
      el("dd", {}, between(tokens.slice(0, LINES).map(link)), tokens.length > LINES ? ` and ${whole(tokens.length - LINES)} more` : "")])));
}
