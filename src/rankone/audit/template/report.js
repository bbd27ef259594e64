
"use strict";
// Turns the data of an audit into the page. Words, labels and names of files come from strangers:
// they become text nodes and attributes of fixed meaning, never HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const TASK = data.figures.task, OF_TEXTS = TASK === "next" || TASK === "class", ONE = OF_TEXTS ? "document" : "sentence";
const ABSENT = [OF_TEXTS && "suspects", !data.text && "passages"].filter(Boolean);
const KINDS = ["leaks", "passages", "conflicts", "duplicates", "suspects"].filter((kind) => !ABSENT.includes(kind));
const FIRST = 20, MORE = 100; // findings of a list at first, and with every "show more"
const INPUTS = { // what a model may see, from least to most
  majority: "nothing: the most frequent label",
  token: "the token alone",
  set: "token and set of tokens in the sentence",
  multiset: "token and multiset of tokens",
  prefix: "the sentence up to the token",
  sequence: "the whole sentence and the position",
};

const OF_DOCUMENTS = {
  majority: "nothing: the most frequent label",
  token: "the last token alone",
  set: "last token and set of tokens",
  multiset: "last token and multiset of tokens",
  sequence: "the whole document",
};
const LEAKS = "Documents that another split holds too. An exact leak is the same tokens; a near one differs in case, digits, punctuation or spaces only.";
const NOTES = { // where a corpus of texts needs other words
  next: {
    ceilings: "The best that any model of the next token can do on this text, by how many tokens it sees. A prefix is all of the document so far.",
    leaks: LEAKS,
    conflicts: "Contexts that go on in different ways, those that cost the most errors first.",
    duplicates: "Documents that stand in the corpus more than once.",
  },
  class: {
    ceilings: "How many labels the best model must get wrong, by what it sees of the document.",
    labels: "How often each label is that of a document.",
    leaks: LEAKS,
    conflicts: "Equal documents with different labels. At most one of the labels can be learnt.",
    duplicates: "Documents that stand in the corpus more than once.",
  },
};

// Small things -----------------------------------------------------------------------------------

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "share") node.style.setProperty("--share", value);
    else node.setAttribute(name, value);
  }
  node.append(...children.flat());
  return node;
}

const $ = (selector) => document.querySelector(selector);
const number = (n) => n.toLocaleString("en-US");
const percent = (share, digits = 2) => (100 * share).toFixed(digits) + "%";
const plural = (n, one, many = one + "s") => `${number(n)} ${n === 1 ? one : many}`;

// Characters that cannot be seen, or that turn the text around them, are spelled out.
const UNSEEN = /([\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff])/u;
const shown = (text) => text.split(UNSEEN).filter(Boolean).map((part) =>
  UNSEEN.test(part) ? el("span", {class: "code"}, "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")) : part);

const file = (i) => el("span", {class: "file"}, shown(i === null ? "made in Python" : data.files[i]));
const between = (items, comma = ", ") => items.flatMap((item, i) => (i ? [comma, item] : [item]));

// Labels that differ in B-, I- and the like only have one colour; O has none.
const hues = new Map();
function hue(label) {
  const name = label.replace(/^[BIESLMU]-/, "");
  if (name === "O") return "none";
  if (!hues.has(name)) hues.set(name, hues.size % 10);
  return hues.get(name);
}
const chip = (label, more = "") => el("span", {class: "chip" + more, "data-hue": hue(label)}, shown(label));

function table(head, rows) {
  const cells = (row) => row.map((cell) => (cell instanceof Node ? cell : el("td", {class: "number"}, cell)));
  const header = el("tr", {}, head.map((name, i) => el("th", {scope: "col", class: i ? "number" : ""}, name)));
  return el("div", {class: "scroll"}, el("table", {},
    el("thead", {}, header), el("tbody", {}, rows.map((row) => el("tr", {}, cells(row))))));
}

function sentence(finding, mark) {
  const [before, after] = finding.cut, [first, run] = finding.mark.length ? finding.mark : [0, 0];
  const parts = finding.words.map((word, i) => {
    const token = el("span", {class: "token"}, shown(word));
    return i >= first && i < first + run ? mark(token, i - first) : token;
  });
  if (before) parts.unshift(el("span", {class: "cut"}, `(${plural(before, "token")} before)`));
  if (after) parts.push(el("span", {class: "cut"}, `(${plural(after, "token")} after)`));
  return el("p", {class: "sentence", dir: "auto"}, between(parts, " "));
}

function lines(i, numbers) {
  const unit = (i === null ? ONE : "line") + (numbers.length > 1 ? "s" : "");
  return [...(i === null ? [] : [file(i), " "]), `${unit} ${numbers.join(", ")}`];
}

function places(rows) {
  const listed = rows.at.map(([, numbers]) => numbers.length).reduce((a, b) => a + b, 0);
  const more = rows.count > listed ? [` and ${number(rows.count - listed)} more`] : [];
  return [...between(rows.at.map(([i, numbers]) => el("span", {}, lines(i, numbers))), "; "), ...more];
}

const terms = (pairs) => el("dl", {class: "places"}, pairs.flatMap(([term, ...what]) => [el("dt", {}, term), el("dd", {}, ...what)]));
const agreement = (agree) => agree === null ? [] : el("span", {class: agree ? "good" : "bad"}, agree ? "✓ labels agree" : "✗ labels differ");

// One function per kind of finding ---------------------------------------------------------------

const DRAW = {
  leaks: (leak) => [
    el("div", {class: "head"}, el("span", {class: "rank"}, leak.kind), agreement(leak.agree)),
    sentence(leak),
    terms([["here", places(leak.here)], ["there", places(leak.there)]]),
  ],
  conflicts: (conflict) => {
    const more = conflict.sides_count - conflict.sides.length;
    return [
      sentence(conflict, (token) => el("mark", {}, token)),
      terms([...conflict.sides.map((side) => [chip(side.label), places(side.rows)]),
        ...(more ? [["…", `and ${plural(more, "more label")}`]] : [])]),
    ];
  },
  passages: (passage) => {
    const more = passage.next_count - passage.next.length;
    const chips = passage.next.map(([token, count]) => el("span", {}, chip(token), ` ${number(count)}`));
    return [
      el("div", {class: "head"}, el("span", {class: "rank"}, plural(passage.length, "token")), el("span", {}, plural(passage.rows.count, "copy", "copies"))),
      sentence(passage),
      terms([["at", places(passage.rows)], ["then", ...between(chips), more ? ` and ${number(more)} more` : ""]]),
    ];
  },
  duplicates: (duplicate) => [
    el("div", {class: "head"}, el("span", {class: "rank"}, plural(duplicate.rows.count, "copy", "copies")), agreement(duplicate.agree)),
    sentence(duplicate),
    terms([["at", places(duplicate.rows)]]),
  ],
  suspects: (suspect) => {
    const {labels, proposals, score, evidence} = suspect, [first, last] = suspect.lines;
    const each = labels.length === suspect.mark[1] && proposals.length === labels.length;
    const change = (k) => {
      const [old, better] = each ? [labels[k], proposals[k]] : [labels.join(" "), proposals.join(" ")];
      const arrow = el("span", {}, el("span", {"aria-hidden": "true"}, "→"), el("span", {class: "unseen"}, "should be"));
      return el("span", {class: "change"}, between([chip(old, " old"), arrow, chip(better)], " "));
    };
    const proofs = el("ol", {class: "evidence"}, evidence.map((row) => el("li", {},
      el("div", {class: "head"}, chip(row.label), el("span", {}, lines(row.file, [row.line])), el("span", {}, shown(row.alike))),
      el("p", {dir: "auto"}, shown(row.text)))));
    const left = suspect.evidence_count - evidence.length;
    if (left) proofs.append(el("li", {}, `and ${plural(left, "more row")}`));
    return [
      el("div", {class: "head"},
        el("span", {class: "rank"}, `#${suspect.rank}`),
        el("span", {}, `score ${score.toFixed(3)} `, el("span", {class: "meter", share: score})),
        el("span", {}, lines(suspect.file, [first === last ? first : `${first}–${last}`]))),
      sentence(suspect, (token, k) => el("mark", {class: "fix", "data-hue": hue(each ? proposals[k] : proposals[0])},
        token, ...(each || k === 0 ? [" ", change(k)] : []))),
      evidence.length ? el("details", {}, el("summary", {}, `Evidence: ${plural(suspect.evidence_count, "row")}`), proofs) : [],
    ];
  },
};

// What the filters look at ------------------------------------------------------------------------

const rowsOf = (finding) => [finding.here, finding.there, finding.rows, ...(finding.sides || []).map((side) => side.rows)].filter(Boolean);
const fold = (text) => text.normalize("NFKC").toLowerCase();

for (const kind of KINDS) data.findings[kind].forEach((finding, i) => {
  finding.rank = i + 1;
  finding.names = new Set(rowsOf(finding).flatMap((rows) => rows.at.map(([i]) => data.files[i])));
  if ("file" in finding) finding.names.add(data.files[finding.file]);
  finding.tags = new Set(data.text ? [] : [...(finding.labels || []), ...(finding.proposals || []), ...(finding.sides || []).map((side) => side.label)]);
  finding.text = fold([finding.words.join(" "), ...[...finding.names].filter(Boolean)].join("\n"));
});

function matches(finding, wanted) {
  return (!wanted.label || finding.tags.has(wanted.label))
    && (!wanted.file || finding.names.has(wanted.file))
    && (finding.score === undefined || finding.score >= wanted.score)
    && finding.text.includes(wanted.q);
}

// A list that grows by the chunk -------------------------------------------------------------------

function list(found, kind) {
  const items = el("ol", {}), count = el("span", {}), button = el("button", {type: "button"});
  const grow = (by) => {
    const added = found.slice(items.children.length, items.children.length + by)
      .map((finding) => el("li", {class: "finding"}, DRAW[kind](finding).flat()));
    items.append(...added);
    const left = found.length - items.children.length;
    button.textContent = `Show ${Math.min(left, MORE)} more`;
    button.hidden = !left;
    count.textContent = left ? `${number(items.children.length)} of ${number(found.length)} shown` : "";
    return added[0];
  };
  button.addEventListener("click", () => {
    const first = grow(MORE);
    first.tabIndex = -1;
    first.focus();
  });
  grow(FIRST);
  return el("div", {class: "list"}, items, el("div", {class: "more"}, button, count));
}

// The parts that stay as they are --------------------------------------------------------------------

function drawHeader() {
  const {figures} = data, unit = figures.format === "python" ? ONE : "line";
  $("#verdict").dataset.ok = data.ok;
  const rest = data.own_count - data.own.length;
  $("#sources").append("Corpus: ", ...between(data.own.map(file)), rest ? ` and ${number(rest)} more` : "",
    ...(data.against.length ? [". Compared with: ", ...between(data.against.map((other) => el("span", {}, between(other.files.map(file)))))] : []), ".");
  const facts = [
    [ONE + "s", number(figures.sentences)],
    ["tokens", number(figures.tokens)],
    ["different tokens", number(figures.vocabulary)],
    ...(OF_TEXTS || figures.labelled === figures.tokens ? [] : [["labelled tokens", number(figures.labelled)]]),
    [`tokens in the longest ${ONE} (${unit}\u00a0${figures.longest_line})`, number(figures.longest)],
    [`tokens per ${ONE}`, figures.mean_length.toFixed(2)],
    ...(OF_TEXTS ? [] : [["sentences with a repeated token", number(figures.sentences_with_repeated_token)]]),
    [`surplus copies of a ${ONE}`, number(figures.surplus_copies)],
    ...(data.text ? [] : [[`repeated ${ONE}s at odds`, number(figures.disagreeing_sequences)]]),
  ];
  $("#figures").append(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  const how = [figures.format === "python" ? "" : figures.format, figures.columns, figures.scheme ? `entity tags in ${figures.scheme}` : ""].filter(Boolean);
  $("#made").append(`Made by rankone ${data.version}.`, ...(how.length ? [" Read as ", ...shown(how.join(", ")), "."] : []));
}

const SEEN = TASK === "class" ? OF_DOCUMENTS : INPUTS;
const ordered = (ceilings) => [...new Set([...Object.keys(SEEN), ...Object.keys(ceilings)])].filter((name) => name in ceilings && (TASK !== "class" || name in SEEN));
const input = (name) => el("th", {scope: "row"}, SEEN[name] || name);

function drawText() {
  const {ceilings, enough} = data.text;
  const seen = (row) => el("th", {scope: "row"}, row.window ? plural(row.window, "token") : "prefix");
  $("#ceilings").append(table(["a model that sees", "", "contexts", "determined", "must get wrong", "can reach", "bits per token", "perplexity at least"], ceilings.map((row) =>
    [seen(row), el("td", {class: "bar", share: 1 - row.accuracy}), number(row.contexts), `${number(row.determined)} (${percent(row.share)})`, number(row.errors),
      percent(row.accuracy, 4), Number(row.bits.toPrecision(4)).toString(), Number(row.perplexity.toPrecision(6)).toString()])),
  el("p", {class: "note"}, `Windows of ${plural(enough, "token")} or more say as much as prefixes.`));
  $("#labels").remove();
}

function drawOverview() {
  if (data.text) return drawText();
  const most = Math.max(1, ...Object.values(data.ceilings).map((ceiling) => ceiling.errors));
  $("#ceilings").append(table(["a model that sees", "", "must get wrong", "can reach"], ordered(data.ceilings).map((name) => {
    const {accuracy, errors} = data.ceilings[name];
    return [input(name), el("td", {class: "bar", share: errors / most}), number(errors), percent(accuracy, 4)];
  })));
  const rows = data.labels.map(([label, count]) => {
    const share = count / data.figures.labelled;
    return [el("th", {scope: "row"}, chip(label)), el("td", {class: "bar", "data-hue": hue(label), share}), number(count), percent(share)];
  });
  const head = ["label", "", OF_TEXTS ? "documents" : "tokens", "share"], several = 15, rest = data.labels_count - rows.length;
  $("#labels output").textContent = number(data.labels_count);
  $("#labels").append(table(head, rows.slice(0, several)));
  if (rows.length > several) $("#labels").append(el("details", {}, el("summary", {}, plural(rows.length - several, "more label")),
    table(head, rows.slice(several)), rest ? el("p", {class: "note"}, `and ${number(rest)} rarer ones`) : ""));
}

function drawComparison(other) {
  const names = between(other.files.map(file)), {known, ceilings} = other, sides = ["here", "there"];
  const cell = (n, of) => el("td", {class: "number share", share: of ? n / of : 0}, number(n), " ", el("small", {}, `of ${number(of)} (${percent(of ? n / of : 0)})`));
  const row = (name, key, of) => [el("th", {scope: "row"}, name), ...sides.map((side) => cell(known[side][key], known[side][of]))];
  const group = (name) => el("tr", {class: "group"}, el("th", {colspan: 3, scope: "colgroup"}, name));
  const more = ordered(ceilings.here);
  const grid = table(["", "of this corpus, the other split holds", "of the other split, this corpus holds"], [
    row(`${ONE}s, exactly`, "exact", "sentences"),
    row(`${ONE}s, nearly`, "near", "sentences"),
    row("tokens, by their word", "words", "tokens"),
    row("tokens, by word and neighbours", "windows", "tokens"),
    row(`tokens, by the whole ${ONE}`, "contexts", "tokens"),
  ]);
  if (more.length) grid.querySelector("tbody").append(group("Best accuracy of a model that has memorised the other side and sees"),
    ...more.map((name) => el("tr", {}, input(name), sides.map((side) => {
      const {accuracy, errors} = ceilings[side][name];
      return el("td", {class: "number share", share: 0}, percent(accuracy, 4), " ", el("small", {}, `(${number(errors)} wrong)`));
    }))));
  return el("div", {class: "comparison"}, el("h3", {}, "Against ", ...names), grid, el("div", {class: "list"}));
}

function drawNotes() {
  for (const kind of KINDS) {
    const total = data.totals[kind], held = data.findings[kind].length;
    if (held < total) $("#" + kind).append(el("p", {class: "left-out"},
      `This page holds the first ${number(held)} of ${number(total)}; ${data.text ? "--json may list more" : "the rows file and --json list all"}.`));
    if (kind === "leaks") $("#leaks").append(...data.against.map(drawComparison));
    else $("#" + kind).append(el("div", {class: "list"}));
  }
  if (!data.against.length) $("#leaks").append(el("p", {class: "none"}, "Not compared with another split."));
}

// The filters, and the address that holds them ---------------------------------------------------------

const form = $("#filters"), fields = form.elements, FIELDS = ["kind", "q", "label", "file", "score"];
const choices = (name) => [...(fields[name].options || fields[name])].map((choice) => choice.value);

function drawFilters() {
  const labels = new Set([...data.labels.map(([label]) => label), ...KINDS.flatMap((kind) => data.findings[kind].flatMap((finding) => [...finding.tags]))]);
  fields.label.append(...[...labels].map((name) => el("option", {value: name}, name)));
  fields.file.append(...data.files.map((name) => el("option", {value: name}, name)));
  fields.file.parentElement.hidden = data.files.length < 2;
  fields.score.parentElement.hidden = !data.totals.suspects;
  fields.label.parentElement.hidden = Boolean(data.text);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { writeAddress(); render(); });
  form.addEventListener("reset", () => setTimeout(() => { writeAddress(); render(); }));
  addEventListener("hashchange", () => { readAddress(); render(); });
  addEventListener("keydown", (event) => {
    const typing = event.target.matches("input:not([type=radio]), select, textarea");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    fields.q.focus();
  });
}

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) {
    const value = asked.get(name) || "", known = name === "score" ? value >= 0 : name === "q" || choices(name).includes(value);
    fields[name].value = known ? value : name === "kind" ? "all" : "";
  }
  document.documentElement.dataset.theme = asked.get("theme") || "";
}

function writeAddress() {
  const asked = new URLSearchParams();
  for (const name of FIELDS) if (fields[name].value && (name !== "kind" || fields.kind.value !== "all")) asked.set(name, fields[name].value);
  const {theme} = document.documentElement.dataset;
  if (theme) asked.set("theme", theme);
  history.replaceState(null, "", "#" + asked);
}

function render() {
  const kind = fields.kind.value === "all" ? "" : fields.kind.value;
  const wanted = {q: fold(fields.q.value.trim()), label: fields.label.value, file: fields.file.value, score: Number(fields.score.value) || 0};
  const outputs = Object.fromEntries([...form.querySelectorAll("[name=kind]")].map((radio) => [radio.value, radio.parentElement.querySelector("output")]));
  let all = 0;
  for (const name of KINDS) {
    const held = data.findings[name], found = held.filter((finding) => matches(finding, wanted)), section = $("#" + name);
    const filtered = found.length < held.length, count = filtered ? found.length : data.totals[name];
    all += count;
    outputs[name].textContent = number(count);
    section.hidden = Boolean(kind) && kind !== name;
    section.querySelector("h2 output").textContent = filtered ? `${number(found.length)} of ${number(held.length)} match` : number(count);
    section.querySelectorAll(".list").forEach((old, i) => {
      const own = name === "leaks" ? found.filter((leak) => leak.against === i) : found;
      const empty = filtered ? "None match the filters." + (wanted.label && !held.some((finding) => finding.tags.size) ? " Findings of this kind have no label." : "") : "None.";
      old.replaceWith(own.length && !section.hidden ? list(own, name) : el("div", {class: "list"}, el("p", {class: "none"}, empty)));
    });
  }
  outputs.all.textContent = number(all);
  $("#overview").hidden = Boolean(kind);
}

// All of it ----------------------------------------------------------------------------------------------

for (const kind of ABSENT) {
  $("#" + kind).remove();
  form.querySelector(`[value=${kind}]`).parentElement.remove();
}
for (const [section, note] of Object.entries(NOTES[TASK] || {})) $(`#${section} .note`).textContent = note;
drawHeader();
drawOverview();
drawNotes();
drawFilters();
readAddress();
render();
for (const part of [form, $("main")]) part.hidden = false;

const folded = () => document.querySelectorAll("details:not([open])");
addEventListener("beforeprint", () => folded().forEach((node) => { node.open = true; node.dataset.folded = ""; }));
addEventListener("afterprint", () => document.querySelectorAll("[data-folded]").forEach((node) => { node.open = false; delete node.dataset.folded; }));
