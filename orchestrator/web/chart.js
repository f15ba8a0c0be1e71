// A task's scores over training, as a picture: one line for each training run. Points are links to their runs.

import { el, freshId, svg, visible } from './dom.js';
import { count, number, score } from './format.js';
import { linkTo } from './router.js';
import { smoothed } from './series.js';
import { niceTicks } from './ticks.js';

const kWide = [480, 250];
const kNarrow = [360, 230];
const kLeft = 42;
const kRight = 14;
const kTop = 12;
const kBottom = 26;
const kDenseFrom = 40;  // points from which on they are small

export const kColours = 6;

/** The class of a line: its colour and its dashes. */
export const lineClass = (index) => `series-${index % kColours}`;

const errorOf = (point) => point.entry.stderr ?? 0;

function rangeOf(points, extra, fitted) {
  const values = [...points.flatMap((point) => [point.entry.value - errorOf(point), point.entry.value + errorOf(point)]), ...extra];
  const low = Math.min(...values), high = Math.max(...values);
  const shares = [...points.map((point) => point.entry.value), ...extra].every((value) => value >= 0 && value <= 1);
  if (shares && !fitted) return [0, 1];
  const margin = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  return shares ? [Math.max(0, low - margin), Math.min(1, high + margin)] : [low - margin, high + margin];
}

function describe(lines) {
  return lines.map(({ name, points }) => {
    const best = points.reduce((a, b) => (b.entry.value > a.entry.value ? b : a));
    const say = (point) => `${number(point.entry.value)} at ${point.place}`;
    return `${lines.length > 1 ? `${name}: ` : ''}${points.length} checkpoints, from ${say(points[0])} to ${say(points.at(-1))}; highest ${say(best)}`;
  }).join('. ') + '. The table has all values.';
}

// A mark of another shape for each line.
function mark(line, cx, cy, r) {
  const shape = line.index % 3;
  if (shape === 0) return svg('circle', { class: 'point', cx, cy, r });
  if (shape === 1) return svg('rect', { class: 'point', x: cx - r, y: cy - r, width: 2 * r, height: 2 * r });
  return svg('path', { class: 'point', d: `M${cx} ${cy - r * 1.3}L${cx + r * 1.3} ${cy}L${cx} ${cy + r * 1.3}L${cx - r * 1.3} ${cy}Z` });
}

class Chart {
  #task;
  #lines;
  #options;
  #x;
  #y;
  #range;
  #width;
  #height;
  #ends;
  #readout = el('p', { class: 'readout' });
  picture;

  constructor(task, lines, options) {
    this.#task = task;
    this.#lines = lines;
    this.#options = options;
    [this.#width, this.#height] = options.narrow ? kNarrow : kWide;
    const points = lines.flatMap((line) => line.points);
    const levels = [...(options.baseline ? [options.baseline.value] : []), ...options.bounds.map((bound) => bound.value)];
    const [low, high] = this.#range = rangeOf(points, levels, options.fitted);
    const first = Math.min(...points.map((point) => point.x)), last = Math.max(...points.map((point) => point.x));
    this.#ends = [first, last];
    this.#x = (value) => (last > first ? kLeft + ((value - first) / (last - first)) * (this.#width - kLeft - kRight) : (kLeft + this.#width - kRight) / 2);
    this.#y = (value) => this.#height - kBottom - ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (this.#height - kTop - kBottom);
    const title = freshId('title'), desc = freshId('desc');
    this.picture = svg('svg', { class: 'chart', viewBox: `0 0 ${this.#width} ${this.#height}`, role: 'group', 'aria-labelledby': title, 'aria-describedby': desc },
      svg('title', { id: title }, `${task} over training`), svg('desc', { id: desc }, describe(lines)));
    this.#drawAxes(points);
    this.#drawLevels();
    for (const line of lines) this.#drawLine(line);
    const links = lines.map((line) => this.#linksOf(line));
    this.picture.append(...links.flat());
    links.at(0).at(-1).setAttribute('tabindex', '0');
    this.picture.addEventListener('keydown', (event) => rove(event, links));
    this.#say(lines[0], lines[0].points.at(-1));
  }

  get figure() {
    const metric = this.#lines[0].points.at(-1).entry.metric;
    return el('figure', { class: 'figure panel' },
      el('figcaption', {}, el('strong', {}, this.#task), el('span', { class: 'muted small' }, metric)), this.picture, this.#readout);
  }

  #label(line, point) {
    return `${this.#lines.length > 1 ? `${line.name}, ` : ''}${point.place}: ${score(point.entry)}`;
  }

  #say(line, point) {
    this.#readout.textContent = visible(this.#label(line, point));
  }

  #drawAxes(points) {
    const [low, high] = this.#range;
    const text = (attributes, words) => svg('text', { 'aria-hidden': 'true', ...attributes }, words);
    for (const tick of niceTicks(low, high, 4)) {
      this.picture.append(svg('line', { class: 'grid', x1: kLeft, x2: this.#width - kRight, y1: this.#y(tick), y2: this.#y(tick) }),
        text({ x: kLeft - 7, y: this.#y(tick) + 4, 'text-anchor': 'end' }, String(tick)));
    }
    const places = [...new Set(points.map((point) => point.x))].sort((a, b) => a - b);
    const [first, last] = this.#ends;
    const labelled = places.length <= 5 ? places : niceTicks(first, last, 5);
    const short = this.#options.short ?? ((value) => points.find((point) => point.x === value)?.short ?? count(value));
    let free = -Infinity;  // end of the previous label
    for (const value of last > first ? labelled : [first]) {
      const words = short(value);
      const half = words.length * 3.4;
      const at = Math.min(this.#width - half, Math.max(half, this.#x(value)));
      if (at - half < free + 6) continue;
      free = at + half;
      this.picture.append(text({ x: at, y: this.#height - 7, 'text-anchor': 'middle' }, words));
    }
  }

  // Lines from side to side: the baseline's score, and the bounds of gates.
  #drawLevels() {
    const levels = [...(this.#options.baseline ? [{ ...this.#options.baseline, kind: 'baseline' }] : []), ...this.#options.bounds.map((bound) => ({ ...bound, kind: 'bound' }))];
    for (const { value, label, kind } of levels) {
      const y = this.#y(value);
      const under = y < kTop + 14;
      this.picture.append(svg('line', { class: kind, x1: kLeft, x2: this.#width - kRight, y1: y, y2: y }, svg('title', {}, `${label}: ${number(value)}`)),
        svg('text', { class: `${kind}-name`, x: kind === 'bound' ? this.#width - kRight : kLeft + 4, y: under ? y + 12 : y - 4,
          'text-anchor': kind === 'bound' ? 'end' : 'start', 'aria-hidden': 'true' }, label));
    }
  }

  #drawLine(line) {
    const { points } = line;
    const values = this.#options.smooth > 1 ? smoothed(points.map((point) => point.entry.value), this.#options.smooth) : points.map((point) => point.entry.value);
    const kind = lineClass(line.index);
    if (this.#options.spread === 'band') this.picture.append(svg('path', { class: `band ${kind}`, d: this.#bandOf(points, values), 'aria-hidden': 'true' }));
    const path = points.map((point, index) => `${index ? 'L' : 'M'}${this.#x(point.x).toFixed(1)} ${this.#y(values[index]).toFixed(1)}`).join('');
    this.picture.append(svg('path', { class: `curve ${kind}`, d: path, 'aria-hidden': 'true' }));
  }

  // One standard error on each side of the curve.
  #bandOf(points, values) {
    const edge = (sign) => points.map((point, index) => `${this.#x(point.x).toFixed(1)} ${this.#y(values[index] + sign * errorOf(point)).toFixed(1)}`);
    return `M${edge(1).join('L')}L${edge(-1).reverse().join('L')}Z`;
  }

  #linksOf(line) {
    const dense = line.points.length >= kDenseFrom;
    const faint = this.#options.smooth > 1;
    return line.points.map((point) => {
      const at = this.#x(point.x), y = this.#y(point.entry.value), error = errorOf(point);
      const say = () => this.#say(line, point);
      return svg('a', { class: `${lineClass(line.index)}${faint ? ' faint' : ''}`, href: linkTo('run', [point.run.id]), tabindex: '-1',
        'aria-label': this.#label(line, point), onfocus: say, onmouseenter: say, onmouseleave: () => this.#say(this.#lines[0], this.#lines[0].points.at(-1)) },
      error > 0 && this.#options.spread === 'bars' ? svg('line', { class: 'whisker', x1: at, x2: at, y1: this.#y(point.entry.value - error), y2: this.#y(point.entry.value + error) }) : null,
      svg('circle', { class: 'halo', cx: at, cy: y, r: dense ? 5 : 9 }), mark(line, at, y, dense || faint ? 2 : 3.5));
    });
  }
}

// Each chart is one stop for Tab. Left and right go along a line, up and down to the next line.
function rove(event, links) {
  const line = links.findIndex((list) => list.includes(document.activeElement));
  if (line < 0) return;
  const at = links[line].indexOf(document.activeElement);
  const beside = (other) => links[other]?.[Math.min(at, links[other].length - 1)];
  const to = { ArrowLeft: links[line][at - 1], ArrowRight: links[line][at + 1], Home: links[line][0], End: links[line].at(-1),
    ArrowUp: beside(line - 1), ArrowDown: beside(line + 1) }[event.key];
  if (!to) return;
  event.preventDefault();
  document.activeElement.setAttribute('tabindex', '-1');
  to.setAttribute('tabindex', '0');
  to.focus();
}

/** {figure, picture} of a task. `lines`: {name, index, points} with points {x, place, short, entry, run} in order
 * of x, at least one. `options`: {spread: "bars", "band" or "none"; smooth: over how many points; narrow: for a narrow screen; fitted: whether
 * the axis of shares ends where the values do; baseline: {value, label} or null; bounds: [{value, label}]}. */
export function chartOf(task, lines, options) {
  const chart = new Chart(task, lines, options);
  return { figure: chart.figure, picture: chart.picture };
}
