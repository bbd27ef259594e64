// The picture of a line: context ids as ticks, the readout above them, on a canvas.

import {Axis} from "./axis.js";
import {bisect} from "./model.js";
import {dark, exact, brief, ink, plain} from "./dom.js";

const LEFT = 74, RIGHT = 14, TOP = 14, RUG = 62, BOTTOM = 30;

// `scene` is what there is to see:
//   xs, tokens: sorted numbers and the tokens that have them; labels: the label of each token;
//   strong: whether a token belongs to the word; curve: {knots, at} or {bends, at, names};
//   marks: [{x, name, main}], names of all labels.
export class Plot {
  constructor(canvas, {hover, pick, moved}) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.axis = new Axis(-1, 1, 600);
    this.height = 320;
    this.hover = hover;
    this.pick = pick;
    this.seen = moved;
    this.pointers = new Map();
    new ResizeObserver(() => this.resize()).observe(canvas);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const across = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (across) this.axis.pan(event.deltaX); else this.axis.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))), this.at(event));
      this.draw();
    }, {passive: false});
    canvas.addEventListener("pointerdown", (event) => { this.pointers.set(event.pointerId, event); canvas.setPointerCapture(event.pointerId); this.moved = 0; });
    canvas.addEventListener("pointermove", (event) => this.move(event));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (event) => {
      this.pointers.delete(event.pointerId);
      if (name === "pointerup" && this.moved < 4) { const token = this.nearest(event); if (token !== null) this.pick(token); }
    });
    canvas.addEventListener("pointerleave", () => { if (!this.pointers.size) this.hover(null, 0); });
    canvas.addEventListener("dblclick", (event) => { this.axis.zoom(0.1, this.at(event)); this.draw(); });
    canvas.addEventListener("keydown", (event) => {
      const step = this.axis.width / 8, moves = {ArrowLeft: -step, ArrowRight: step};
      const zooms = {"+": 0.5, "=": 0.5, "-": 2, ArrowUp: 0.5, ArrowDown: 2, PageUp: 0.05, PageDown: 20};
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key in moves) this.axis.pan(moves[event.key]);
      else if (event.key in zooms) this.axis.zoom(zooms[event.key]);
      else return;
      event.preventDefault();
      event.stopPropagation();
      this.draw();
    });
  }

  at(event) { return event.clientX - this.canvas.getBoundingClientRect().left - LEFT; }

  move(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return this.hover(this.nearest(event), this.at(event) + LEFT);
    if (this.pointers.size === 2) {
      const [other] = [...this.pointers.values()].filter((p) => p.pointerId !== event.pointerId);
      const was = Math.abs(before.clientX - other.clientX), is = Math.abs(event.clientX - other.clientX);
      if (was > 8 && is > 8) this.axis.zoom(was / is, (this.at(event) + this.at(other)) / 2);
    } else {
      this.axis.pan(before.clientX - event.clientX);
    }
    this.moved += Math.abs(before.clientX - event.clientX);
    this.pointers.set(event.pointerId, event);
    return this.draw();
  }

  // The token under the pointer, if one is near.
  nearest(event) {
    const {scene} = this, pixel = this.at(event);
    if (!scene || !scene.xs.length) return null;
    const i = this.first(pixel);
    let best = null, least = 9;
    for (const k of [i - 1, i]) {
      if (k < 0 || k >= scene.xs.length) continue;
      const far = Math.abs(this.axis.pixel(scene.xs[k]) - pixel);
      if (far < least) { least = far; best = scene.tokens[k]; }
    }
    return best;
  }

  // How many points are left of a pixel.
  first(pixel) {
    const {axis, scene} = this, aim = axis.offset(pixel);
    let a = 0, b = scene.xs.length;
    while (a < b) { const m = (a + b) >> 1; if (scene.xs[m] - axis.anchor < aim) a = m + 1; else b = m; }
    return a;
  }

  resize() {
    const box = this.canvas.getBoundingClientRect(), scale = devicePixelRatio || 1;
    if (!box.width) return;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * scale);
    this.canvas.height = Math.round(box.height * scale);
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.axis.width = Math.max(80, box.width - LEFT - RIGHT);
    this.draw();
  }

  show(scene) { this.scene = scene; this.draw(); }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.paint(); this.seen(); });
  }

  paint() {
    const {context: c, axis, scene} = this, night = dark();
    const width = axis.width + LEFT + RIGHT, floor = this.height - BOTTOM, top = floor - RUG;
    const soft = night ? "#a3a8b2" : "#5c626d", rule = night ? "#33373e" : "#e3e0da", strong = night ? "#e6e4df" : "#1d2026";
    c.clearRect(0, 0, width, this.height);
    c.font = "12px system-ui, sans-serif";
    this.ticks(c, floor, soft, rule);
    if (!scene) return;
    c.save();
    c.beginPath();
    c.rect(LEFT, 0, axis.width, this.height);
    c.clip();
    c.translate(LEFT, 0);
    const seen = this.points(c, floor, night);
    c.save();
    c.beginPath();
    c.rect(0, TOP, axis.width, top - TOP + 4);
    c.clip();
    const names = scene.curve ? this.curves(c, top, night, seen) : [];
    c.restore();
    for (const {x, main} of scene.marks) {
      const pixel = axis.pixel(x);
      if (pixel < -20 || pixel > axis.width + 20) continue;
      c.strokeStyle = strong;
      c.globalAlpha = main ? 1 : 0.45;
      c.lineWidth = main ? 1.25 : 1;
      c.setLineDash(main ? [] : [3, 3]);
      line(c, pixel, TOP, pixel, floor);
      c.setLineDash([]);
      c.fillStyle = strong;
      c.beginPath();
      c.moveTo(pixel - 5, floor + 7); c.lineTo(pixel + 5, floor + 7); c.lineTo(pixel, floor); c.fill();
      c.globalAlpha = 1;
    }
    c.restore();
    c.textAlign = "right";
    for (const {y, text, label} of names) {
      c.fillStyle = label === null ? soft : ink(label, night);
      c.fillText(fitting(c, text, LEFT - 14), LEFT - 8, y + 4);
    }
    c.fillStyle = soft;
    c.fillText("contexts", LEFT - 8, floor - RUG / 2 + 6);
  }

  ticks(c, floor, soft, rule) {
    const {axis} = this, {base, step, ticks} = axis.ticks();
    const decimals = Math.max(0, Math.min(20, -Math.floor(Math.log10(step) + 1e-9)));
    c.textAlign = "center";
    for (const {pixel, value} of ticks) {
      c.strokeStyle = rule;
      line(c, LEFT + pixel, TOP, LEFT + pixel, floor);
      c.fillStyle = soft;
      let text;
      if (base !== null) text = value === 0 ? "0" : (value > 0 ? "+" : "\u2212") + brief(Math.abs(Number(value.toPrecision(6))));
      else text = decimals > 8 ? brief(Number(value.toPrecision(8))) : exact(Number(value.toFixed(decimals)));
      const half = c.measureText(text).width / 2;
      c.fillText(text, Math.min(Math.max(LEFT + pixel, half), LEFT + axis.width + RIGHT - half), floor + 20);
    }
    c.strokeStyle = soft;
    line(c, LEFT, floor + 0.5, LEFT + axis.width, floor + 0.5);
    this.base = base;
  }

  // The context ids in sight; returns which labels they have, as counts.
  points(c, floor, night) {
    const {axis, scene} = this, seen = new Map();
    const a = this.first(-3), b = this.first(axis.width + 3), stride = Math.max(1, (b - a) / (axis.width * 5));
    const drawn = new Set(), late = [];
    const tick = (pixel, label, own) => {
      c.strokeStyle = ink(scene.names[label], night, own ? 1 : 0.5);
      c.lineWidth = own ? 1.75 : 1;
      line(c, pixel, floor - (own ? 44 : 22), pixel, floor - 1);
    };
    for (let k = a; k < b; k = Math.floor(k + stride)) {
      const token = scene.tokens[k], label = scene.labels[token], own = scene.strong(token);
      const pixel = axis.pixel(scene.xs[k]), key = `${Math.round(pixel * 2)} ${label} ${own}`;
      if (own || !scene.anyStrong) seen.set(label, (seen.get(label) ?? 0) + 1);
      if (drawn.has(key)) continue;
      drawn.add(key);
      if (own) late.push([pixel, label]); else tick(pixel, label, false);
    }
    for (const [pixel, label] of late) tick(pixel, label, true);
    this.inSight = {count: b - a};
    return seen;
  }

  // The readout: y over s for a line, the logit of each label for a group.
  curves(c, floor, night, seen) {
    const {axis, scene} = this, {curve} = scene;
    const lines = curve.knots ? [this.steps(curve)] : this.bent(curve);
    let low = Infinity, high = -Infinity;
    for (const {points} of lines) for (const [x, y] of points) if (x > -1 && x < axis.width + 1) { low = Math.min(low, y); high = Math.max(high, y); }
    if (curve.knots) {
      [low, high] = [low - 0.5, high + 0.5]; // a model that is not right may leave the labels behind
    } else {
      [low, high] = [Math.max(low, -3), Math.min(high, 6)];
    }
    if (!(high > low)) [low, high] = [low - 1, low + 1];
    const room = floor - TOP - 16, y = (value) => TOP + 8 + (1 - (value - low) / (high - low)) * room;
    const shownNames = [];
    if (curve.knots) {
      const apart = room / (high - low), wanted = new Set(seen.keys());
      for (let label = Math.max(0, Math.ceil(low) - 1); label < Math.min(high, scene.names.length); label++) {
        if (apart < 13 && !wanted.has(label)) continue;
        c.strokeStyle = ink(scene.names[label], night, 0.25);
        line(c, 0, y(label + 1), axis.width, y(label + 1));
        if (shownNames.every((other) => Math.abs(other.y - y(label + 1)) >= 12)) shownNames.push({y: y(label + 1), text: plain(scene.names[label]), label: scene.names[label]});
      }
    } else {
      lines.forEach(({label}, i) => shownNames.push({y: TOP + 10 + i * 15, text: plain(scene.names[label]), label: scene.names[label]}));
    }
    if (!shownNames.length) for (const value of [low, high]) shownNames.push({y: y(value), text: brief(value), label: null}); // no label is near
    c.lineJoin = "round";
    for (const {label, points} of lines) {
      c.beginPath();
      points.forEach(([x, value], i) => (i ? c.lineTo(x, y(value)) : c.moveTo(x, y(value))));
      c.strokeStyle = label === null ? (night ? "#e6e4df" : "#1d2026") : ink(scene.names[label], night);
      c.lineWidth = 1.75;
      c.setLineDash(label !== null && /^[IE]-/.test(scene.names[label]) ? [7, 4] : []); // it has the colour of its B-
      c.stroke();
      c.setLineDash([]);
    }
    return shownNames;
  }

  steps({knots, at}) {
    const {axis} = this, point = (i) => [axis.pixel(knots[i]), at(i)];
    let a = this.firstKnot(knots, -2) - 1, b = this.firstKnot(knots, axis.width + 2);
    a = Math.max(a, 0);
    b = Math.min(b, knots.length - 1);
    const stride = Math.max(1, Math.floor((b - a) / (axis.width * 8))), points = [];
    for (let i = a; i <= b; i += stride) points.push(point(i));
    if (points.length && points[0][0] > 0) points.unshift([-10, points[0][1]]);
    if (points.length && points.at(-1)[0] < axis.width) points.push([axis.width + 10, points.at(-1)[1]]);
    return {label: null, points: inside(points, axis.width)};
  }

  firstKnot(knots, pixel) {
    const {axis} = this, aim = axis.offset(pixel);
    let a = 0, b = knots.length;
    while (a < b) { const m = (a + b) >> 1; if (knots[m] - axis.anchor < aim) a = m + 1; else b = m; }
    return a;
  }

  bent({bends, at, labels}) {
    const {axis} = this, low = axis.number(0), high = axis.number(axis.width);
    let own = bends.slice(bisect(bends, low), bisect(bends, high));
    const stride = Math.ceil(own.length / 2000);
    if (stride > 1) own = own.filter((_, i) => i % stride === 0);
    const places = [[0, low], ...own.map((x) => [axis.pixel(x), x]), [axis.width, high]];
    const values = places.map(([, x]) => at(x));
    return labels.map((label, i) => ({label, points: places.map(([pixel], k) => [pixel, values[k][i]])}));
  }
}

function line(c, x, y, x2, y2) {
  c.beginPath();
  c.moveTo(x, y);
  c.lineTo(x2, y2);
  c.stroke();
}

function fitting(c, text, room) {
  let cut = text;
  while (cut.length > 1 && c.measureText(cut).width > room) cut = cut.slice(0, -2) + "…";
  return cut;
}

// A polyline between the two edges only: where a far away end is off the window, the line is cut
// at the edge, so that what is drawn near it has the right slope.
function inside(points, width) {
  const found = [];
  const cross = ([x, y], [x2, y2], edge) => [edge, x2 === x ? y2 : y + ((edge - x) / (x2 - x)) * (y2 - y)];
  for (let i = 0; i < points.length; i++) {
    const [p, q] = [points[i], points[i + 1]];
    if (p[0] >= 0 && p[0] <= width) found.push(p);
    if (!q) continue;
    for (const edge of p[0] < q[0] ? [0, width] : [width, 0]) {
      if ((p[0] < edge && q[0] > edge) || (p[0] > edge && q[0] < edge)) found.push(cross(p, q, edge));
    }
  }
  return found.length ? found : [[0, 0], [width, 0]];
}
