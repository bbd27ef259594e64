// The line (or the group) of a word: which number a token has, and what the readout makes of numbers.
//
// `line`: the readout sees s = a^T H only, and its output is a piecewise linear function of s.
// `group`: units of a word's group see averages of several heads; drawn along one direction.
// `lead`: any other network; the number is how far the chosen label's logit is ahead.

import {argmax} from "./model.js";
import {breath} from "./dom.js";

const SLICE = 14; // milliseconds of work without a pause
const LOGITS = 4e8; // multiplications that the lead of all tokens may take

export function kindOf(network) {
  const last = network.blocks.at(-1).feedforward.kind;
  return {rank1: "line", gated: "group"}[last] ?? "lead";
}

// How many numbers a token has.
export const widthOf = (network) => (kindOf(network) === "group" ? network.blocks.at(-1).feedforward.reads.length : 1);

export function numbersOf(network, run, t) {
  const layer = network.blocks.at(-1).feedforward, kind = kindOf(network);
  if (kind === "line") return [network.number(layer, run.before, t)];
  if (kind === "group") return Array.from(layer.reads, (i) => run.before[t * network.dim + i]);
  return [lead(network.logits(run, t))];
}

function lead(logits) {
  const best = argmax(logits);
  let next = -Infinity;
  logits.forEach((x, c) => { if (c !== best && x > next) next = x; });
  return logits[best] - next;
}

// The numbers of every token of a corpus, one row each; null where that would take too long.
export async function corpusNumbers(network, corpus, tell) {
  const width = widthOf(network), n = corpus.tokens.length;
  if (kindOf(network) === "lead" && n * (network.head.weight.length + network.dim * 64) > LOGITS) return null;
  const out = new Float64Array(n * width);
  let paused = performance.now();
  for (let s = 0; s < corpus.size; s++) {
    const [a, b] = corpus.bounds(s);
    if (b - a > 4096 && !network.quick(b - a)) return null;
    const run = network.run(Array.from(corpus.tokens.subarray(a, b), (i) => Math.min(i, corpus.known)));
    for (let t = 0; t < b - a; t++) out.set(numbersOf(network, run, t), (a + t) * width);
    if (performance.now() - paused > SLICE) {
      tell(s / corpus.size);
      await breath();
      paused = performance.now();
    }
  }
  tell(1);
  return out;
}

// The output y as a function of s, where the head's label numbers make it one: y = s + f(s) up to
// factors. Null for other heads.
export function line(network) {
  const {weight, bias, seen} = network.head, layer = network.blocks.at(-1).feedforward, k = seen.length;
  const p = Float64Array.from({length: k}, (_, i) => weight[i] / 2);
  for (let c = 0; c < bias.length; c++) {
    if (bias[c] !== -((c + 1) ** 2)) return null;
    for (let i = 0; i < k; i++) if (weight[c * k + i] !== 2 * (c + 1) * p[i]) return null;
  }
  const full = new Float64Array(network.dim);
  seen.forEach((at, i) => { full[at] = p[i]; });
  if (full.some((x, i) => x !== layer.direction[i])) return null;
  let rise = 0, base = 0;
  full.forEach((x, i) => { rise += x * layer.out[i]; base += x * layer.bias[i]; });
  const {knots, values} = layer, at = (i) => knots[i] + rise * values[i] + base;
  return {knots, at};
}

// The units that a token can reach, by the direction in which they look, most units first. A
// direction is a list of factors, one for each head. `placed`: all of them are for this place only.
export function directions(network, id, place) {
  const layer = network.blocks.at(-1).feedforward, heads = layer.reads.length, found = new Map();
  const add = (factors) => {
    const key = factors.map((x) => x.toPrecision(9)).join(" ");
    if (!found.has(key)) found.set(key, {factors, units: []});
    return found.get(key);
  };
  const groups = network.groups(layer, id, place);
  let total = 0;
  for (const [g] of groups) {
    for (let j = layer.first[g]; j < layer.first[g + 1]; j++) {
      const slopes = Array.from(layer.slopes.subarray(j * heads, (j + 1) * heads));
      const top = slopes.reduce((a, x) => (Math.abs(x) > Math.abs(a) ? x : a), 0);
      total += 1;
      if (top) add(slopes.map((x) => x / top)).units.push([j, top]);
      else found.set("flat", {factors: null, units: [...(found.get("flat")?.units ?? []), [j, 0]]});
    }
  }
  const flat = found.get("flat")?.units ?? [];
  found.delete("flat");
  for (let h = 0; h < heads; h++) add(Array.from({length: heads}, (_, i) => Number(i === h)));
  const list = [...found.values()].sort((a, b) => b.units.length - a.units.length);
  return {total, flat, list, placed: groups.length > 0 && groups.every(([g]) => layer.group_place[g] > 0)};
}

// Logits of some labels as functions of s = u . a, from the units that look along u: for each label
// a function, and the places where one of them bends.
export function logitsAlong(network, run, t, direction, flat, labels) {
  const layer = network.blocks.at(-1).feedforward, {weight, bias, seen} = network.head;
  const k = seen.length, width = layer.writes.length, d = network.dim;
  const where = new Map(Array.from(seen, (at, i) => [at, i]));
  const columns = Array.from(layer.writes, (at) => where.get(at));
  const constant = labels.map((c) => {
    let sum = bias[c];
    for (let i = 0; i < k; i++) sum += weight[c * k + i] * run.before[t * d + seen[i]];
    return sum;
  });
  const effect = (j, c) => {
    let sum = 0;
    for (let m = 0; m < width; m++) {
      const o = layer.codes[layer.plus[j] * width + m] - layer.codes[layer.minus[j] * width + m];
      if (o && columns[m] !== undefined) sum += weight[c * k + columns[m]] * o * layer.amplitude[j];
    }
    return sum;
  };
  const units = [...direction.units, ...flat].map(([j, gain]) => ({gain, bias: layer.unit_bias[j], effects: labels.map((c) => effect(j, c))}));
  const bends = units.filter(({gain}) => gain).map(({gain, bias: b}) => -b / gain).sort((a, b) => a - b);
  const at = (s) => {
    const out = [...constant];
    for (const unit of units) {
      const x = unit.gain * s + unit.bias;
      if (x > 0) unit.effects.forEach((e, i) => { out[i] += e * x; });
    }
    return out;
  };
  return {bends, at};
}
