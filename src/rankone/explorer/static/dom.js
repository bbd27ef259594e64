// Elements and text. Words, labels and names of files come from strangers: they become text nodes
// and attributes of fixed meaning, never HTML.

export const $ = (selector, home = document) => home.querySelector(selector);

const there = (child) => child !== null && child !== undefined && child !== false;

// Put these in the place of what a node holds; null and false stand for nothing.
export const fill = (node, ...children) => node.replaceChildren(...children.flat(Infinity).filter(there));

export function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter(there));
  return node;
}

export const whole = (n) => n.toLocaleString("en-US");
export const plural = (n, one, many = one + "s") => `${whole(n)} ${n === 1 ? one : many}`;
// A share of almost all is not written as all of it.
export function percent(share, digits = 2) {
  const text = (100 * share).toFixed(digits);
  return share < 1 && Number(text) === 100 && digits < 8 ? percent(share, digits + 1) : text + "%";
}
export const between = (items, comma = ", ") => items.flatMap((item, i) => (i ? [comma, item] : [item]));

// A number with all of its digits, a true minus sign, and a thin space every three digits.
export function exact(x) {
  const [digits, power] = String(Math.abs(x)).split("e"), [left, right] = digits.split(".");
  const grouped = left.replace(/\B(?=(\d{3})+$)/g, "\u2009") + (right ? "." + right.replace(/(\d{3})(?=\d)/g, "$1\u2009") : "");
  return (x < 0 ? "\u2212" : "") + grouped + (power ? ` × 10${superscript(Number(power))}` : "");
}

// A number in four digits.
export function brief(x) {
  if (x === 0) return "0";
  const size = Math.abs(x), sign = x < 0 ? "\u2212" : "";
  if (size >= 1e-3 && size < 1e6) return sign + Number(size.toPrecision(4)).toLocaleString("en-US", {maximumFractionDigits: 8}).replaceAll(",", "\u2009");
  const [digits, power] = size.toExponential(2).split("e");
  return `${sign}${digits.replace(/\.?0+$/, "")} × 10${superscript(Number(power))}`;
}

export const superscript = (n) => String(n).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));

// Characters that cannot be seen, or that turn the text around them, are spelled out.
const UNSEEN = /([\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff])/u;
const LETTERS = 120; // of a word that are shown
export function shown(text) {
  const cut = text.length > LETTERS ? text.slice(0, LETTERS) + "…" : text;
  const parts = cut.split(UNSEEN).filter(Boolean).map((part) => {
    if (part === "\n") return "⏎";
    return UNSEEN.test(part) ? el("span", {class: "code"}, "U+" + part.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")) : part;
  });
  return parts.length ? parts : [el("span", {class: "code"}, "empty")];
}

// The same as plain text, for a canvas and for names that are read aloud.
export const plain = (text) => [...shown(text)].map((part) => (typeof part === "string" ? part : part.textContent)).join("");

// Labels that differ in B-, I- and the like only have one colour; O has none.
const hues = new Map();
const HUES = [255, 60, 150, 350, 300, 100, 200, 25, 125, 230];
export function hue(label) {
  const name = label.replace(/^[BIESLMU]-/, "");
  if (name === "O") return null;
  if (!hues.has(name)) hues.set(name, HUES[hues.size % HUES.length]);
  return hues.get(name);
}

export const chip = (label, more = "", hint = null) =>
  el("span", {class: "chip " + more + (hue(label) === null ? " plain" : ""), "--hue": hue(label), title: hint}, shown(label));

// A colour of a label for a canvas.
export function ink(label, dark, strength = 1) {
  const h = hue(label), alpha = strength < 1 ? ` / ${strength}` : "";
  return h === null ? `oklch(${dark ? 62 : 60}% 0.01 260${alpha})` : `oklch(${dark ? 74 : 56}% 0.145 ${h}${alpha})`;
}

export const dark = () => {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
};

// Lets the browser paint and answer, in the middle of long work.
export const breath = () => new Promise((go) => { setTimeout(go, 0); });
