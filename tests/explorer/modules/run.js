// The labels that a network chooses for a corpus, and the numbers of its tokens.

import {unpack} from "./data.js";
import {Network} from "./model.js";
import {numbersOf} from "./readout.js";
export async function main(text) {
  const data = await unpack(text), network = new Network(data.network, data.arrays);
  const {["corpus.tokens"]: tokens, ["corpus.lengths"]: lengths} = data.arrays;
  const labels = [], numbers = [];
  let at = 0;
  for (const n of lengths) {
    const run = network.run(Array.from(tokens.subarray(at, at += n), (i) => Math.min(i, data.known)));
    labels.push(network.labels(run));
    for (let t = 0; t < n; t++) numbers.push(numbersOf(network, run, t));
  }
  return [labels.flat(), numbers.flat()];
}
