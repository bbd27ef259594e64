// The sentences of the page, and what can be found in them.

const NEAR = 40; // tokens from the start of a sentence: what is seen when it is opened

export class Corpus {
  constructor(data) {
    const {arrays} = data, of = (name) => arrays["corpus." + name];
    this.figures = data.corpus;
    this.known = data.vocabulary.length;
    this.words = [...data.vocabulary, ...(data.corpus?.words ?? [])];
    this.labels = [...data.labels, ...(data.corpus?.labels ?? [])];
    this.given = data.corpus !== null;
    if (!this.given) return;
    [this.tokens, this.gold, this.chosen, this.back, this.fileOf] = ["tokens", "gold", "chosen", "back", "files"].map(of);
    const lengths = of("lengths"), steps = of("lines"), n = this.tokens.length;
    this.offsets = new Uint32Array(lengths.length + 1);
    lengths.forEach((length, i) => { this.offsets[i + 1] = this.offsets[i] + length; });
    this.lines = new Uint32Array(n);
    for (let i = 0, line = 0; i < n; i++) this.lines[i] = line += steps[i];
    this.unavoidable = new Uint8Array(n);
    for (const i of of("unavoidable")) this.unavoidable[i] = 1;
  }

  get size() { return this.given ? this.offsets.length - 1 : 0; }

  // The label of a token in the file, null where none is asked.
  truth(i) { return this.gold[i] ? this.gold[i] - 1 : null; }
  wrong(i) { return this.gold[i] > 0 && this.gold[i] - 1 !== this.chosen[i]; }

  bounds(s) { return [this.offsets[s], this.offsets[s + 1]]; }

  sentenceOf(token) {
    let a = 0, b = this.size;
    while (b - a > 1) { const middle = (a + b) >> 1; if (this.offsets[middle] <= token) a = middle; else b = middle; }
    return a;
  }

  wordsOf(s) {
    const [a, b] = this.bounds(s);
    return Array.from(this.tokens.subarray(a, b), (i) => this.words[i]);
  }

  // The token to look at first: a wrong one, or one that has not the most frequent label.
  striking(s) {
    const [a, b] = this.bounds(s);
    if (this.usual === undefined) {
      const counts = new Uint32Array(this.labels.length);
      for (const label of this.chosen) counts[label]++;
      this.usual = counts.indexOf(counts.reduce((x, y) => Math.max(x, y), 0));
    }
    for (const fits of [(i) => this.wrong(i), (i) => this.chosen[i] !== this.usual]) for (let i = a; i < Math.min(b, a + NEAR); i++) if (fits(i)) return i - a;
    return 0;
  }

  // Where a sentence or token stands: a file and a line.
  place(s, token = this.offsets[s]) {
    const {files, format} = this.figures, unit = format === "python" ? "sentence" : "line";
    return [files[this.fileOf[s]], unit, this.lines[token]];
  }

  // Rows of the model's table for words.
  rows(words) {
    this.index ??= new Map(this.words.slice(0, this.known).map((word, i) => [word, i]));
    return words.map((word) => this.index.get(word) ?? this.known);
  }

  // Contexts with several labels: for each, its tokens by label.
  contradictions() {
    if (this.found) return this.found;
    const first = new Map(), contested = new Set();
    const n = this.given ? this.tokens.length : 0;
    for (let i = 0; i < n; i++) {
      if (!this.gold[i]) continue;
      const context = i - this.back[i], label = first.get(context);
      if (label === undefined) first.set(context, this.gold[i]);
      else if (label !== this.gold[i]) contested.add(context);
    }
    const sides = new Map([...contested].map((context) => [context, new Map()]));
    for (let i = 0; i < n; i++) {
      const own = this.gold[i] ? sides.get(i - this.back[i]) : undefined;
      if (!own) continue;
      const label = this.gold[i] - 1;
      if (!own.has(label)) own.set(label, []);
      own.get(label).push(i);
    }
    this.found = [...sides].map(([context, by]) => ({context, sides: [...by].sort((a, b) => b[1].length - a[1].length)}));
    return this.found;
  }

  // Sentences that fit a query: words that occur in it, `label:X`, `is:wrong`, `is:unavoidable`,
  // `is:unknown`. For each, its number and the tokens that were looked for. Conditions on tokens
  // hold for one and the same token; every word occurs somewhere.
  search(query) {
    const parts = query.trim().split(/\s+/).filter(Boolean), tests = [], wanted = [];
    for (const part of parts) {
      const [, what, value] = /^(label|given|is):(.*)$/i.exec(part) ?? [];
      const labels = value === undefined ? [] : this.labels.flatMap((name, i) => (name.toLowerCase() === value.toLowerCase() ? [i] : []));
      if (what === "label") tests.push((i) => labels.includes(this.chosen[i]) || labels.includes(this.gold[i] - 1));
      else if (what === "given") tests.push((i) => labels.includes(this.gold[i] - 1));
      else if (what === "is" && value === "wrong") tests.push((i) => this.wrong(i));
      else if (what === "is" && value === "unavoidable") tests.push((i) => this.unavoidable[i] === 1);
      else if (what === "is" && value === "unknown") tests.push((i) => this.tokens[i] >= this.known);
      else wanted.push(this.matching(part));
    }
    const found = [];
    for (let s = 0; s < this.size; s++) {
      const [a, b] = this.bounds(s), hits = [];
      let all = true;
      if (tests.length) {
        for (let i = a; i < b; i++) if (tests.every((test) => test(i))) hits.push(i - a);
        all = hits.length > 0;
      }
      for (const words of wanted) {
        if (!all) break;
        let seen = false;
        for (let i = a; i < b; i++) if (words[this.tokens[i]]) { seen = true; if (!tests.length) hits.push(i - a); }
        all = seen;
      }
      if (all) found.push([s, hits]);
    }
    return found;
  }

  // Which words are the one looked for, whatever their case; if there are none, which begin so.
  matching(part) {
    const asked = part.toLowerCase(), flags = new Uint8Array(this.words.length);
    this.lower ??= this.words.map((word) => word.trim().toLowerCase());
    let any = false;
    this.lower.forEach((word, i) => { if (word === asked) { flags[i] = 1; any = true; } });
    if (!any) this.lower.forEach((word, i) => { if (word.startsWith(asked)) flags[i] = 1; });
    return flags;
  }
}

// How a text becomes tokens, as `rankone predict` does it for a file of this kind.
export function split(text, reading) {
  const given = reading.lower ? text.toLowerCase() : text;
  if (reading.tokenizer === "words") return given.match(/ ?[\p{L}\p{N}_]+| ?[^\p{L}\p{N}_\s]|\r\n|\s/gu) ?? [];
  if (reading.tokenizer === "characters") return [...given];
  if (reading.tokenizer === "bytes") return [...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0"));
  return given.split(/\s+/).filter(Boolean);
}
