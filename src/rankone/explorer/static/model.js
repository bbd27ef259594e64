// The model: `Evaluator` and `Readout` of rankone.nn in JavaScript, in the network's own precision.
//
// Tokens are rows here. Tables of float32 are Float32Array, so storing rounds; sums of float32 are
// rounded after every step. As in Python, attention and hidden units of the fast kinds are computed
// in float64 and rounded once.

const BLOCK = 1 << 22; // scores that are computed for one sentence without asking

export class Network {
  constructor(description, arrays) {
    const of = (name) => (name === null ? null : arrays[name]);
    const filled = (part) => Object.fromEntries(Object.entries(part).map(([k, v]) => [k, typeof v === "string" && v in arrays ? arrays[v] : v]));
    this.shape = description.shape;
    this.single = description.dtype === "float32";
    this.dtype = description.dtype;
    this.dim = description.dim;
    this.Table = this.single ? Float32Array : Float64Array;
    this.round = this.single ? Math.fround : (x) => x;
    [this.table, this.positions, this.step] = [description.table, description.positions, description.step].map(of);
    this.blocks = description.blocks.map(({attention, feedforward}) => ({
      attention: {...attention, heads: attention.heads.map(filled)},
      feedforward: filled(feedforward),
    }));
    this.head = filled(description.head);
    this.attending = this.blocks.flatMap(({attention}, b) => attention.heads.map((_, h) => [b, h]));
  }

  get causal() { return this.shape.causal || this.shape.window > 0; }

  // Pieces of a sentence that is longer than the table of positions: [first, behind].
  pieces(length) {
    const most = this.shape.positions || length || 1, found = [];
    for (let i = 0; i < length; i += most) found.push([i, Math.min(i + most, length)]);
    return found;
  }

  // X + E of the rows `ids` of the table, the first of them at place `start`.
  embed(ids, start = 0) {
    const d = this.dim, z = new this.Table(ids.length * d), {table, positions, step, round} = this;
    for (let t = 0; t < ids.length; t++) {
      for (let i = 0; i < d; i++) {
        let x = table[ids[t] * d + i];
        if (positions) x += positions[(start + t) * d + i];
        if (step && step[i]) x += round(step[i] * (start + t));
        z[t * d + i] = x;
      }
    }
    return z;
  }

  // What a network makes of a sentence, piece by piece: the features of its tokens, and what each
  // head saw. Labels are found by `labels`, for those tokens only that are asked.
  run(ids) {
    const d = this.dim, features = new this.Table(ids.length * d), n = ids.length;
    const pieces = this.pieces(n);
    const seen = this.blocks.map(({attention}) => attention.heads.map(() => ({
      query: new Float64Array(n * attention.size), key: new Float64Array(n * attention.size),
      value: new Float64Array(n * attention.size), average: new Float64Array(n * attention.size),
    })));
    const before = new this.Table(n * d); // the last block's features before its hidden units
    for (const [a, b] of pieces) {
      const own = ids.slice(a, b), z = this.embed(own);
      this.blocks.forEach((block, i) => {
        this.attend(block.attention, z, own, (h, name, x) => seen[i][h][name].set(x, a * block.attention.size));
        if (i === this.blocks.length - 1) before.set(z, a * d);
        this.feed(block.feedforward, z, own);
      });
      features.set(z, a * d);
    }
    return {ids, pieces, features, before, seen};
  }

  piece(run, t) { return run.pieces.find(([a, b]) => a <= t && t < b); }

  // From which token to which token t of a run may look.
  sees(run, t) {
    const [a, b] = this.piece(run, t);
    const first = this.shape.window ? Math.max(a, t - this.shape.window + 1) : a;
    return [first, this.causal ? t + 1 : b];
  }

  // Attention: adds to z what the heads give; `tell` gets what they saw.
  attend(layer, z, ids, tell) {
    const d = this.dim, n = ids.length, s = layer.size, {round} = this;
    const averages = layer.heads.map((head, h) => {
      const columns = {value: along(head.value, z, n, d, s, round)};
      if (layer.kind === "fading") {
        columns.key = Float64Array.from({length: n}, (_, t) => head.decay * t);
        columns.query = new Float64Array(n).fill(1);
      } else {
        columns.key = along(head.key, z, n, d, s, round);
        columns.query = along(head.query, z, n, d, s, round);
      }
      const average = this.average(layer.kind, columns, n, s);
      if (this.single) for (let i = 0; i < average.length; i++) average[i] = round(average[i]);
      if (tell) for (const [name, x] of Object.entries({...columns, average})) tell(h, name, x);
      return average;
    });
    layer.heads.forEach((head, h) => { // after all of them have looked
      for (let j = 0; j < s; j++) {
        for (let i = 0; i < d; i++) {
          const w = head.output[j * d + i];
          if (w) for (let t = 0; t < n; t++) z[t * d + i] += round(w * averages[h][t * s + j]);
        }
      }
    });
    return z;
  }

  average(kind, {query, key, value}, n, s) {
    const out = new Float64Array(n * s), window = this.shape.window;
    if (s === 1 && kind === "softmax" && !window && !this.causal && same(query)) {
      const weights = softmax(key, query[0], 0, n), average = dot(weights, value, 0);
      return out.fill(average);
    }
    if (s === 1 && kind === "softmax" && !window && this.causal && same(query) && spread(key) * Math.abs(query[0]) <= 600) {
      const extreme = extremal(key, query[0], 0, n);
      let total = 0, sum = 0;
      for (let t = 0; t < n; t++) {
        const weight = Math.exp(query[0] * (key[t] - extreme));
        total += weight;
        sum += weight * value[t];
        out[t] = sum / total;
      }
      return out;
    }
    for (let t = 0; t < n; t++) {
      const first = window ? Math.max(0, t - window + 1) : 0, behind = this.causal ? t + 1 : n;
      const weights = weightsOf(kind, query, key, s, t, first, behind);
      for (let j = 0; j < s; j++) {
        let sum = 0;
        for (let l = 0; l < weights.length; l++) sum += weights[l] * value[(first + l) * s + j];
        out[t * s + j] = sum;
      }
    }
    return out;
  }

  // The weights with which token t of a run looks at the tokens from the first that it sees on.
  weights(run, block, head, t) {
    const layer = this.blocks[block].attention, {query, key} = run.seen[block][head];
    const [first, behind] = this.sees(run, t);
    return {first, weights: weightsOf(layer.kind, query, key, layer.size, t, first, behind)};
  }

  feed(layer, z, ids) {
    if (layer.kind === "rank1") this.folded(layer, z, ids.length);
    else if (layer.kind === "gated") this.gated(layer, z, ids);
    else this.dense(layer, z, ids.length);
  }

  // s = a^T H of one row.
  number(layer, z, t) {
    let s = 0;
    for (let i = 0; i < this.dim; i++) if (layer.direction[i]) s = this.round(s + this.round(layer.direction[i] * z[t * this.dim + i]));
    return s;
  }

  folded(layer, z, n) {
    const d = this.dim, {round} = this;
    for (let t = 0; t < n; t++) {
      const added = round(piecewise(layer, this.number(layer, z, t)));
      for (let i = 0; i < d; i++) z[t * d + i] += round(round(layer.out[i] * added) + layer.bias[i]);
    }
  }

  dense(layer, z, n) {
    const d = this.dim, q = layer.hidden, hidden = new this.Table(q), {weight1, bias1, weight2, bias2} = layer;
    const out = new Float64Array(d);
    for (let t = 0; t < n; t++) {
      for (let j = 0; j < q; j++) {
        let sum = 0;
        for (let i = 0; i < d; i++) sum += weight1[j * d + i] * z[t * d + i];
        hidden[j] = Math.max(0, sum + bias1[j]);
      }
      for (let i = 0; i < d; i++) {
        let sum = 0;
        for (let j = 0; j < q; j++) sum += weight2[i * q + j] * hidden[j];
        out[i] = this.round(sum + bias2[i]);
      }
      for (let i = 0; i < d; i++) z[t * d + i] += out[i];
    }
  }

  // The groups of units that a token can reach: [group, fine of its gates].
  groups(layer, id, place) {
    const word = layer.word[id], found = [];
    if (!word) return found;
    const fine = layer.word_fine[id], spot = layer.place.length ? layer.place[place] : 0;
    for (let g = layer.starts[word]; g < layer.starts[word + 1]; g++) {
      const at = layer.group_place[g];
      if (at === 0) found.push([g, fine]);
      else if (spot && at === spot) found.push([g, fine + layer.place_fine[place]]);
    }
    return found;
  }

  gated(layer, z, ids) {
    const d = this.dim, {reads, writes, first, slopes, codes, plus, minus} = layer;
    const heads = reads.length, width = writes.length, added = new Float64Array(width);
    for (let t = 0; t < ids.length; t++) {
      const found = this.groups(layer, ids[t], t);
      if (!found.length) continue;
      added.fill(0);
      for (const [g, fine] of found) {
        for (let j = first[g]; j < first[g + 1]; j++) {
          let x = layer.unit_bias[j] + layer.penalty[j] * fine;
          for (let h = 0; h < heads; h++) x += slopes[j * heads + h] * z[t * d + reads[h]];
          if (x <= 0) continue;
          for (let m = 0; m < width; m++) {
            const o = codes[plus[j] * width + m] - codes[minus[j] * width + m];
            if (o) added[m] += x * layer.amplitude[j] * o;
          }
        }
      }
      for (let m = 0; m < width; m++) z[t * d + writes[m]] += this.round(added[m]);
    }
  }

  logits(run, t) {
    const {weight, bias, seen} = this.head, d = this.dim, {round} = this;
    const out = new this.Table(bias.length), k = seen.length, x = new Float64Array(k);
    for (let i = 0; i < k; i++) x[i] = run.features[t * d + seen[i]];
    for (let c = 0; c < out.length; c++) {
      let sum = 0;
      for (let i = 0; i < k; i++) sum = round(sum + round(weight[c * k + i] * x[i]));
      out[c] = round(sum + bias[c]);
    }
    return out;
  }

  label(run, t) { return argmax(this.logits(run, t)); }

  labels(run, first = 0, behind = run.ids.length) {
    return Array.from({length: behind - first}, (_, i) => this.label(run, first + i));
  }

  // Whether a run of so many tokens is a matter of a moment.
  quick(n) {
    const heavy = this.blocks.some(({attention}) => attention.kind !== "fading" && attention.size > 1);
    return n <= 512 || (!heavy && n * n * this.attending.length <= BLOCK) || (this.shape.window && n * this.shape.window <= BLOCK);
  }
}

// f of a piecewise linear function: `PiecewiseLinear.__call__`.
export function piecewise({knots, values, slopes, start}, s) {
  const piece = bisect(knots, s), anchor = piece - (piece > start ? 1 : 0);
  return values[anchor] + slopes[piece] * (s - knots[anchor]);
}

// How many numbers of a sorted array are below x.
export function bisect(sorted, x) {
  let a = 0, b = sorted.length;
  while (a < b) {
    const middle = (a + b) >> 1;
    if (sorted[middle] < x) a = middle + 1; else b = middle;
  }
  return a;
}

export function argmax(x) {
  let best = 0;
  for (let i = 1; i < x.length; i++) if (x[i] > x[best]) best = i;
  return best;
}

function along(rows, z, n, d, s, round) {
  const out = new Float64Array(n * s);
  for (let j = 0; j < s; j++) {
    for (let i = 0; i < d; i++) {
      const w = rows[j * d + i];
      if (w) for (let t = 0; t < n; t++) out[t * s + j] = round(out[t * s + j] + round(w * z[t * d + i]));
    }
  }
  return out;
}

function weightsOf(kind, query, key, s, t, first, behind) {
  if (s === 1 && kind !== "hardmax") return softmax(key, query[t], first, behind);
  const scores = new Float64Array(behind - first);
  for (let l = first; l < behind; l++) {
    for (let j = 0; j < s; j++) scores[l - first] += query[t * s + j] * key[l * s + j];
  }
  const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (let l = 0; l < scores.length; l++) total += scores[l] = kind === "hardmax" ? Number(scores[l] === most) : Math.exp(scores[l] - most);
  for (let l = 0; l < scores.length; l++) scores[l] /= total;
  return scores;
}

// e^(y (x_l - x*)) relative to the key with the highest score, and divided by their sum.
function softmax(key, y, first, behind) {
  const extreme = extremal(key, y, first, behind), weights = new Float64Array(behind - first);
  let total = 0;
  for (let l = first; l < behind; l++) total += weights[l - first] = Math.exp(y * (key[l] - extreme));
  for (let l = 0; l < weights.length; l++) weights[l] /= total;
  return weights;
}

function extremal(key, y, first, behind) {
  let extreme = key[first];
  for (let l = first + 1; l < behind; l++) if (y >= 0 ? key[l] > extreme : key[l] < extreme) extreme = key[l];
  return extreme;
}

function dot(weights, value, first) {
  let sum = 0;
  for (let l = 0; l < weights.length; l++) sum += weights[l] * value[first + l];
  return sum;
}

const same = (x) => x.every((y) => y === x[0]);
const spread = (x) => { let low = Infinity, high = -Infinity; for (const y of x) { low = Math.min(low, y); high = Math.max(high, y); } return high - low; };
