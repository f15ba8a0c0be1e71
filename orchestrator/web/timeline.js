// A run's timeline: the work of each device and metric slot over time, and a table of the same
// data.

import { announce, el, freshId, show, svg, visible } from './dom.js';
import { duration, percent } from './format.js';
import { kindOf, readTrace, secondsByName, thin } from './spans.js';
import { Table } from './table.js';
import { niceTicks } from './ticks.js';

const kRow = 24;
const kBar = 15;
const kAxis = 22;
const kNearestUs = 1000;

const kLegend = { stage: 'reading the checkpoint', prepare: 'preparing requests', pull: 'loading weights',
  generate: 'generating', score: 'scoring', idle: 'idle', other: 'other' };

function say(span) {
  const facts = [`${span.name}, ${duration((span.end - span.begin) / 1e6)}, from ${duration(span.begin / 1e6)}`];
  if (span.count > 1) facts.push(`${span.count} in a row`);
  if (Array.isArray(span.args.trials)) facts.push(`trials ${span.args.trials.join(', ')}`);
  if (typeof span.args.task === 'string') facts.push(span.args.task);
  return facts.join('; ');
}

class Timeline {
  #trace;
  #from = 0;
  #to;
  #frame = el('div', { class: 'timeline-frame' });
  #readout = el('p', { class: 'readout', role: 'status' });
  #buttons = {};
  #colours = el('ul', { class: 'legend', 'aria-label': 'Colours' });
  #table = el('div');
  node;

  constructor(trace) {
    this.#trace = trace;
    this.#to = trace.end;
    const button = (name, label, sign) => {
      this.#buttons[name] = el('button', { type: 'button', 'aria-label': label, onclick: () => this.#do(name) }, sign);
      return this.#buttons[name];
    };
    this.node = el('div', {},
      el('div', { class: 'panel' },
        el('div', { class: 'head-row' }, this.#readout,
          el('div', { class: 'buttons' }, button('earlier', 'Earlier', '\u2190'), button('later', 'Later', '\u2192'),
            button('nearer', 'Nearer', '+'), button('farther', 'Farther', '\u2212'), button('whole', 'Whole run', 'All'))),
        this.#frame,
        this.#colours),
      el('details', { class: 'below' }, el('summary', {}, 'The same as a table'), this.#table));
    this.#legend();
    show(this.#table, [Math.round(trace.end / 1e6), trace.rows.length], () => shareTable(trace));
    this.node.addEventListener('keydown', (event) => this.#onKey(event));
    this.#resized = new ResizeObserver(() => this.draw());
    this.#resized.observe(this.#frame);
  }

  /** Shows the timeline of a run that has gone on since. What is looked at stays, unless it was all of it. */
  setTrace(trace) {
    const whole = this.#from === 0 && this.#to >= this.#trace.end;
    this.#trace = trace;
    if (whole) this.#to = trace.end;
    this.#legend();
    show(this.#table, [Math.round(trace.end / 1e6), trace.rows.length], () => shareTable(trace));
    this.draw();
  }

  #legend() {
    const names = new Set(this.#trace.rows.flatMap((row) => row.spans.map((span) => kindOf(span.name))));
    const shown = Object.keys(kLegend).filter((name) => names.has(name));
    show(this.#colours, shown, () => shown.map((name) => el('li', {},
      svg('svg', { 'aria-hidden': 'true', viewBox: '0 0 12 12' }, svg('rect', { class: `span-${name}`, width: 12, height: 12, rx: 2 })),
      `${name}${kLegend[name] === name ? '' : `: ${kLegend[name]}`}`)));
  }

  #resized;
  end() {
    this.#resized.disconnect();
  }

  #onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const what = { ArrowLeft: 'earlier', ArrowRight: 'later', '+': 'nearer', '=': 'nearer', '-': 'farther', 0: 'whole' }[event.key];
    if (!what || event.target.closest('details')) return;
    event.preventDefault();
    this.#do(what);
  }

  #do(what) {
    const length = this.#to - this.#from;
    const middle = (this.#from + this.#to) / 2;
    const half = { nearer: length / 4, farther: length, whole: this.#trace.end }[what] ?? length / 2;
    const shift = { earlier: -length / 4, later: length / 4 }[what] ?? 0;
    const wanted = Math.min(this.#trace.end, Math.max(kNearestUs, half * 2));
    this.#from = Math.min(this.#trace.end - wanted, Math.max(0, middle + shift - wanted / 2));
    this.#to = this.#from + wanted;
    this.draw();
    announce(this.#window());
  }

  #window() {
    return `${duration(this.#from / 1e6)} to ${duration(this.#to / 1e6)} of ${duration(this.#trace.end / 1e6)}`;
  }

  draw() {
    const width = Math.max(240, Math.floor(this.#frame.clientWidth));
    const narrow = width < 560;
    const left = narrow ? 0 : Math.min(190, 12 + 7 * Math.max(...this.#trace.rows.map((row) => row.name.length)));
    const step = narrow ? kRow + 15 : kRow;  // names above the bars
    const height = kAxis + step * this.#trace.rows.length + 4;
    const scale = (width - left) / (this.#to - this.#from);
    const x = (us) => left + (us - this.#from) * scale;
    const title = freshId('title'), desc = freshId('desc');
    const picture = svg('svg', { class: 'timeline', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img',
      'aria-labelledby': `${title} ${desc}`, tabindex: '0' },
    svg('title', { id: title }, 'Timeline'), svg('desc', { id: desc }, this.#describe()));
    for (const tick of niceTicks(this.#from / 1e6, this.#to / 1e6, Math.max(2, Math.floor((width - left) / 90)))) {
      const at = x(tick * 1e6);
      picture.append(svg('line', { class: 'row-line', x1: at, x2: at, y1: kAxis - 5, y2: height }),
        svg('text', { x: at, y: kAxis - 9, 'text-anchor': at > width - 30 ? 'end' : at < left + 20 ? 'start' : 'middle' }, `${+tick.toPrecision(6)} s`));
    }
    this.#trace.rows.forEach((row, index) => {
      const top = kAxis + index * step;
      const y = top + (narrow ? 17 : (kRow - kBar) / 2);
      picture.append(svg('text', { class: 'row-name', x: 0, y: narrow ? top + 12 : y + 12 }, row.name));
      for (const span of thin(row.spans, this.#from, this.#to, 1.5 / scale)) {
        picture.append(svg('rect', { class: `span-${kindOf(span.name)}`, x: x(span.begin), y, height: kBar, rx: 1.5,
          width: Math.max(0.75, (span.end - span.begin) * scale - 0.5) }, svg('title', {}, say(span))));
      }
    });
    const focused = this.#frame.contains(document.activeElement);
    this.#frame.replaceChildren(picture);
    if (focused) picture.focus();
    this.#readout.textContent = visible(this.#window());
    const whole = this.#to - this.#from >= this.#trace.end;
    this.#buttons.earlier.disabled = this.#from <= 0;
    this.#buttons.later.disabled = this.#to >= this.#trace.end;
    this.#buttons.nearer.disabled = this.#to - this.#from <= kNearestUs;
    this.#buttons.farther.disabled = this.#buttons.whole.disabled = whole;
  }

  #describe() {
    return this.#trace.rows.map((row) => {
      const parts = [...secondsByName(row.spans)].map(([name, seconds]) => `${name} ${duration(seconds)}`);
      return `${row.name}: ${parts.join(', ') || 'nothing'}`;
    }).join('. ');
  }
}

function shareTable(trace) {
  const names = [...new Set(trace.rows.flatMap((row) => row.spans.map((span) => span.name)))];
  const table = new Table({
    caption: `Time by row, of ${duration(trace.end / 1e6)} in all`,
    idOf: (row) => row.id,
    columns: [{ label: 'Row', header: true, value: (row) => row.name, cell: (row) => row.name },
      ...names.map((name) => ({ label: name, class: 'number', value: (row) => row.seconds?.get(name) ?? null,
        cell: (row) => (row.seconds.has(name) ? `${duration(row.seconds.get(name))} (${percent(row.seconds.get(name) / (trace.end / 1e6))})` : '\u2013') }))],
  });
  table.setRows(trace.rows.map((row, id) => ({ id, name: row.name, seconds: secondsByName(row.spans) })));
  return table.node;
}

/** {node, setTrace(trace), end()} for a trace as readTrace gives it; null if it is empty. */
export function timelineOf(trace) {
  return trace.rows.length > 0 && trace.end > 0 ? new Timeline(trace) : null;
}
