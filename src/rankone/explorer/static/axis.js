// A window on the line of numbers that keeps all digits: from the whole line down to a gap of 1e-9.
//
// Places are differences from an anchor, itself a number of the line. The difference of two numbers
// that are near each other is exact, so nothing is lost however far the anchor is from 0.

const FINEST = 2 ** -50; // of the anchor: narrower, the numbers of float64 are a few pixels apart

export class Axis {
  constructor(low, high, width) {
    this.width = width;
    this.frame(low, high);
  }

  // Show the numbers from low to high.
  frame(low, high) {
    this.anchor = low + (high - low) / 2;
    this.center = 0;
    this.span = this.limited(high - low || 1);
  }

  // Show a number in the middle, with so much on both sides together.
  focus(x, span) {
    this.anchor = x;
    this.center = 0;
    this.span = this.limited(span);
  }

  limited(span) {
    const least = Math.max(Math.abs(this.anchor) * FINEST * 8, Number.MIN_VALUE * 1e10);
    return Math.min(Math.max(span, least), 1e300);
  }

  // The pixel of a number, and the number at a pixel relative to the anchor.
  pixel(x) { return ((x - this.anchor - this.center) / this.span + 0.5) * this.width; }
  offset(pixel) { return this.center + (pixel / this.width - 0.5) * this.span; }
  number(pixel) { return this.anchor + this.offset(pixel); }

  zoom(factor, pixel = this.width / 2) {
    const share = pixel / this.width - 0.5, at = this.center + share * this.span;
    this.span = this.limited(this.span * factor);
    this.center = at - share * this.span;
    this.settle();
  }

  pan(pixels) {
    this.center += (pixels / this.width) * this.span;
    this.settle();
  }

  // Move the anchor to the middle; what the sum rounds away stays in `center`.
  settle() {
    if (Math.abs(this.center) <= this.span) return;
    const {anchor, center} = this, sum = anchor + center, part = sum - anchor;
    this.anchor = sum;
    this.center = anchor - (sum - part) + (center - part); // Knuth's two-sum
  }

  // Ticks about so many pixels apart. Where the numbers of the window share their leading digits,
  // `base` is the anchor and ticks say how far from it they are.
  ticks(apart = 110) {
    const rough = (this.span * apart) / this.width, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
    const low = this.offset(0), high = this.offset(this.width), found = [];
    const relative = this.span < 1e-5 * Math.abs(this.anchor + this.center);
    const start = relative ? 0 : this.anchor;
    const first = Math.ceil((start + low) / step), last = Math.floor((start + high) / step);
    for (let m = first; m <= last && found.length < 100; m++) {
      found.push({pixel: ((m * step - start - this.center) / this.span + 0.5) * this.width, value: m * step});
    }
    return {base: relative ? this.anchor : null, step, ticks: found};
  }
}
