// Constructions side by side: one picture that is switched between figures, and the table.

import {unpack} from "./data.js";
import {theme} from "./theme.js";
import {$, brief, el, fill, plain, shown, whole} from "./dom.js";

const FIGURES = { // what can be drawn, and what it says
  parameters: ["parameters", "Numbers in the matrices, without the tables of words and positions."],
  nonzero: ["other than 0", "Parameters that are not 0."],
  bits: ["bits", "Bits of the longest parameter: numerator and denominator in lowest terms, or 64 for float64."],
  bits_total: ["all bits", "Bits of all parameters together."],
  layers: ["layers", "Blocks of attention and feed-forward."],
  width: ["width", "The largest of the dimension and the numbers of hidden units."],
  digits: ["digits", "Decimal digits that the certificate works with."],
  seconds: ["seconds", "Time to build and certify."],
};
const COLUMNS = ["layers", "attentions", "heads", "width", "parameters", "nonzero", "distinct", "bits", "bits_total", "digits", "contexts", "wrong", "unavoidable", "outcome", "seconds"];
const HUES = [255, 60, 150, 350, 300, 100, 200, 25, 125, 230];

async function start() {
  theme(() => {});
  const {rows} = await unpack($("#data").textContent);
  const families = [...new Set(rows.map((row) => row.construction))];
  const nameOf = (row) => row.construction + (row.variant ? ` ${row.variant}` : "");
  const nodes = rows.map((row) => {
    const bar = el("i", {"--hue": HUES[families.indexOf(row.construction) % HUES.length]}), value = el("span", {});
    return {row, bar, value, node: el("li", {class: `column ${row.outcome ?? "none"}`}, el("span", {class: "name"}, shown(nameOf(row))), el("span", {class: "track"}, bar, value))};
  });
  fill($("#chart"), nodes.map(({node}) => node));
  const text = (x) => (x === null ? "–" : Number.isInteger(x) ? (x < 1e9 ? whole(x) : brief(x)) : typeof x === "number" ? x.toFixed(2) : x);

  // Bars are logarithmic: from 1, or a power of ten below the smallest.
  function draw(name) {
    const values = rows.map((row) => row[name]).filter((x) => x !== null && x > 0);
    const low = Math.min(0, Math.floor(Math.log10(Math.min(1, ...values)))), high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values, 1)) - 1e-9));
    $("#chart").style.setProperty("--decades", high - low);
    for (const {row, bar, value, node} of nodes) {
      const x = row.outcome === null && row.parameters === null ? null : row[name];
      bar.style.setProperty("--share", x > 0 ? (Math.log10(x) - low) / (high - low) : 0);
      bar.hidden = x === null;
      fill(value, x === null ? shown(row.reason ?? "not built") : text(x), row.outcome && row.outcome !== "certified" && x !== null ? ` (${row.outcome})` : "");
      node.classList.toggle("none", x === null);
    }
    const order = [...nodes].sort((a, b) => (a.row[name] ?? Infinity) - (b.row[name] ?? Infinity));
    $("#chart").append(...order.map(({node}) => node));
    fill($("#caption"), el("b", {}, FIGURES[name][0][0].toUpperCase() + FIGURES[name][0].slice(1), ". "), `${FIGURES[name][1]} Each line is a power of ten; the smallest comes first.`);
    try { history.replaceState(null, "", "#" + name); } catch { /* a page that may not have an address */ }
  }
  const asked = location.hash.slice(1), first = asked in FIGURES ? asked : "parameters";
  $("#switch").append(...Object.entries(FIGURES).map(([name, [title]]) =>
    el("label", {}, el("input", {type: "radio", name: "figure", value: name, checked: name === first, onchange: () => draw(name)}), el("span", {}, title))));
  draw(first);
  fill($("#table"), el("table", {}, el("thead", {}, el("tr", {}, el("th", {scope: "col"}, "construction"), COLUMNS.map((name) => el("th", {scope: "col", class: "number"}, name.replace("_", " "))))),
    el("tbody", {}, rows.map((row) => el("tr", {title: row.reason === null ? null : plain(row.reason)}, el("th", {scope: "row"}, shown(nameOf(row))), COLUMNS.map((name) => el("td", {class: "number"}, row[name] === null ? "–" : text(row[name]))))))));
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  $("#failed").hidden = false;
  $("#failed").textContent = `This page cannot be shown: ${error.message}`;
  throw error;
});
