// A window on the line after many moves around a number.

import {Axis} from "./axis.js";
export function main(x, gap, moves) {
  const axis = new Axis(-1e8, 1e8, 1000);
  axis.zoom(1e-3, axis.pixel(x));
  for (const [kind, by] of moves) kind === "zoom" ? axis.zoom(by, axis.pixel(x)) : axis.pan(by);
  const {base, ticks} = axis.ticks(), before = axis.pixel(x);
  axis.pan(3000.25);
  axis.pan(-3005.25);
  const shift = axis.pixel(x) - before;
  const scale = (ticks[1].value - ticks[0].value) / (ticks[1].pixel - ticks[0].pixel);
  return [axis.pixel(x + gap) - axis.pixel(x), axis.span, base, ticks.length, scale, shift];
}
