// The chosen charts of one or several training runs, how they are drawn, and files made of them.

import { find, runPath } from './api.js';
import { chartOf, kColours, lineClass } from './chart.js';
import { el, show, svg } from './dom.js';
import { csvOf, download, fileName, pngOf, svgText } from './export.js';
import { count, largeCount } from './format.js';
import { smoothed } from './series.js';
import { verdictOf } from './states.js';

const kAxes = { step: 'step', tokens: 'tokens seen' };
const kSmooth = { '': 'none', 3: '3 checkpoints', 5: '5 checkpoints', 9: '9 checkpoints' };
const kSpreads = { bars: 'bars', band: 'band', none: 'none' };
const kScales = { '': '0 to 1', fitted: 'as the values' };
const kNarrowPx = 640;
const kBarsMax = 40;  // checkpoints from which on a band replaces bars
const kTokensKey = 'evald.tokens-per-step';

/** The tokens per step that a person gave for each training run. */
function givenTokens() {
  try {
    return JSON.parse(localStorage.getItem(kTokensKey)) ?? {};
  } catch {
    return {};  // storage is forbidden or holds something else
  }
}

function giveTokens(series, value) {
  try {
    localStorage.setItem(kTokensKey, JSON.stringify({ ...givenTokens(), [series]: value }));
  } catch {
    // The number is asked for again next time.
  }
}

/** The bounds that a verdict's gates set for a task: {value, label}. */
export function boundsOf(verdict, task) {
  const bounds = [];
  for (const gate of verdict?.gates ?? []) {
    const [, kind, text] = gate.task === task ? gate.rule.match(/^(min|max|max_drop|max_relative_drop) ([-+.\deE]+)/) ?? [] : [];
    if (!kind) continue;
    const bound = Number(text);
    if (kind === 'min' || kind === 'max') bounds.push({ value: bound, label: `gate: ${kind} ${text}` });
    else if (typeof gate.baseline === 'number') {
      const drop = kind === 'max_drop' ? bound : bound * Math.abs(gate.baseline);
      const lowerIsBetter = typeof gate.candidate === 'number' && gate.drop && Math.sign(gate.candidate - gate.baseline) === Math.sign(gate.drop);
      bounds.push({ value: gate.baseline + (lowerIsBetter ? drop : -drop), label: `gate: ${kind} ${text}` });
    }
  }
  return bounds;
}

export class CurvesPanel {
  #parameters;
  #change;
  #verdicts = new Map();  // run's id -> verdict.json or null
  #series = [];
  #names = new Map();
  #tasks = [];
  #baselines = [];
  #fields = el('div', { class: 'fields panel controls' });
  #tokens = el('div', { class: 'fields' });
  #legend = el('ul', { class: 'legend', 'aria-label': 'Training runs' });
  #cards = el('div', { class: 'cards charts' });
  node;

  /** `change(parameters)` keeps new parameters in the address and renders the view anew. */
  constructor(change) {
    this.#change = change;
    this.node = el('section', { 'aria-labelledby': 'curves' }, el('div', { class: 'head-row' }, el('h2', { id: 'curves' }, 'Curves'),
      el('button', { type: 'button', onclick: () => this.#saveCsv() }, 'Save as CSV')), this.#fields, this.#tokens, this.#legend, this.#cards);
  }

  /** `series`: as readSeries gives them, the one of the table first. `names`: their short names. `baselines`:
   * [{path, name, series, scores}]. */
  render(series, names, tasks, baselines, parameters) {
    [this.#series, this.#names, this.#tasks, this.#baselines, this.#parameters] = [series, names, tasks, baselines, parameters];
    this.#renderFields();
    this.#renderTokens();
    show(this.#legend, [...names], () => (series.length < 2 ? [] : series.map((one, index) => el('li', {},
      svg('svg', { class: 'swatch', 'aria-hidden': 'true', viewBox: '0 0 28 10' }, svg('path', { class: `curve ${lineClass(index)}`, d: 'M1 5H27' })), names.get(one.name)))));
    const baseline = this.#baseline();
    const bounds = this.#parameters.gates !== 'off';
    if (bounds) this.#loadVerdicts();
    const key = [this.#options(), tasks, [...names], baseline?.path, series.map((one) => one.checkpoints.map((checkpoint) =>
      [checkpoint.path, ...tasks.map((task) => checkpoint.scores.get(task)?.entry ?? null)])), bounds ? [...this.#verdicts.keys()] : null, givenTokens()];
    show(this.#cards, key, () => (tasks.length === 0 ? el('p', { class: 'muted' }, 'Choose the tasks to draw in the table above.')
      : tasks.map((task) => this.#card(task, baseline))));
  }

  #options() {
    const most = Math.max(0, ...this.#series.map((one) => one.checkpoints.length));
    const { x, smooth, spread, scale } = this.#parameters;
    return { narrow: window.innerWidth < kNarrowPx, axis: x === 'tokens' ? 'tokens' : 'step', smooth: Number(smooth ?? 0) || 1, fitted: scale === 'fitted',
      spread: Object.hasOwn(kSpreads, spread ?? '') ? spread : most >= kBarsMax || this.#series.length > 1 ? 'band' : 'bars' };
  }

  #baseline() {
    return this.#baselines.find((one) => one.path === this.#parameters.baseline) ?? null;
  }

  #renderFields() {
    const options = this.#options();
    const select = (label, name, choices, chosen) => el('label', {}, label, el('select', { 'aria-label': label, onchange: (event) => this.#change({ [name]: event.target.value }) },
      Object.entries(choices).map(([value, words]) => el('option', { value, selected: value === chosen }, words))));
    const groups = Map.groupBy(this.#baselines, (one) => one.series);
    show(this.#fields, [options, this.#parameters.gates, this.#parameters.baseline, this.#baselines.map((one) => one.path)], () => [
      select('Across', 'x', kAxes, options.axis),
      select('Smoothing', 'smooth', kSmooth, options.smooth === 1 ? '' : String(options.smooth)),
      select('Standard error', 'spread', kSpreads, options.spread),
      select('Scale', 'scale', kScales, options.fitted ? 'fitted' : ''),
      el('label', {}, 'Baseline', el('select', { 'aria-label': 'Baseline', onchange: (event) => this.#change({ baseline: event.target.value }) },
        el('option', { value: '' }, 'none'), [...groups].map(([name, list]) => el('optgroup', { label: name },
          list.map((one) => el('option', { value: one.path, selected: one.path === this.#parameters.baseline }, one.name)))))),
      select('Gates', 'gates', { '': 'drawn in', off: 'left out' }, this.#parameters.gates ?? ''),
    ]);
  }

  // Training runs whose checkpoints do not say in their names how many tokens they have seen.
  #renderTokens() {
    const unknown = this.#options().axis === 'tokens' ? this.#series.filter((one) => one.checkpoints.some((checkpoint) => checkpoint.tokens === null)) : [];
    show(this.#tokens, unknown.map((one) => one.name), () => unknown.map((one) => el('label', {}, `Tokens per step of ${this.#names.get(one.name)}`,
      el('input', { type: 'number', min: 1, step: 'any', value: givenTokens()[one.name], onchange: (event) => {
        giveTokens(one.name, event.target.valueAsNumber > 0 ? event.target.valueAsNumber : null);
        this.#change({});
      } }))));
  }

  #linesOf(task) {
    const { axis } = this.#options();
    const stepped = this.#series.every((one) => one.stepped);
    return this.#series.map((series, index) => {
      const perStep = givenTokens()[series.name];
      const place = (checkpoint, at) => {
        if (axis === 'tokens') {
          const tokens = checkpoint.tokens ?? (perStep && checkpoint.step !== null ? checkpoint.step * perStep : null);
          return tokens === null ? null : { x: tokens, place: `${largeCount(tokens)} tokens`, short: largeCount(tokens) };
        }
        return stepped ? { x: checkpoint.step, place: `step ${count(checkpoint.step)}`, short: count(checkpoint.step) }
          : { x: at, place: checkpoint.name, short: checkpoint.name };
      };
      const points = series.checkpoints.flatMap((checkpoint, at) => {
        const found = checkpoint.scores.get(task);
        const where = found ? place(checkpoint, at) : null;
        return where ? [{ ...where, entry: found.entry, run: found.run, checkpoint }] : [];
      }).sort((a, b) => a.x - b.x);
      return { name: this.#names.get(series.name), index, points };
    }).filter((line) => line.points.length > 0);
  }

  #card(task, baseline) {
    const lines = this.#linesOf(task);
    if (lines.length === 0) {
      return el('figure', { class: 'figure panel' }, el('figcaption', {}, el('strong', {}, task)),
        el('p', { class: 'muted' }, this.#options().axis === 'tokens' ? 'How many tokens a step has is not known; give the number above.' : 'No scores yet.'));
    }
    const options = this.#options();
    const level = baseline?.scores.get(task);
    const bounds = this.#parameters.gates === 'off' ? [] : this.#series.flatMap((series) => boundsOf(this.#verdictOf(series), task));
    const distinct = [...new Map(bounds.map((bound) => [bound.value, bound])).values()];
    const { figure, picture } = chartOf(task, lines, { ...options, short: options.axis === 'tokens' ? largeCount : null,
      baseline: level ? { value: level.entry.value, label: baseline.name } : null, bounds: distinct });
    const save = (ending, make) => el('button', { type: 'button', class: 'quiet', 'aria-label': `Save the chart of ${task} as ${ending.toUpperCase()}`,
      onclick: async () => download(fileName(task, ending), ending === 'svg' ? 'image/svg+xml' : 'image/png', await make(picture, task)) }, ending.toUpperCase());
    figure.append(el('div', { class: 'buttons chart-files' }, save('svg', svgText), save('png', pngOf)));
    return figure;
  }

  // The newest run of a training run that has a verdict.
  #judged(series) {
    return [...series.checkpoints].reverse().map((checkpoint) => checkpoint.runs.find((run) => verdictOf(run))).find(Boolean) ?? null;
  }

  #verdictOf(series) {
    const run = this.#judged(series);
    return run ? this.#verdicts.get(run.id) ?? null : null;
  }

  #loadVerdicts() {
    for (const series of this.#series) {
      const run = this.#judged(series);
      if (!run || this.#verdicts.has(run.id)) continue;
      this.#verdicts.set(run.id, null);
      find(runPath(run.id, 'verdict')).then((verdict) => {
        this.#verdicts.delete(run.id);  // a new place: the charts are drawn anew
        this.#verdicts.set(run.id, verdict);
        this.#verdicts.set(`${run.id} loaded`, null);
        this.#change({});
      }, () => {});
    }
  }

  #saveCsv() {
    const { smooth } = this.#options();
    const rows = [['training_run', 'checkpoint', 'step', 'tokens', 'task', 'metric', 'value', 'stderr', ...(smooth > 1 ? ['smoothed'] : []), 'run', 'submitted']];
    for (const task of this.#tasks) {
      for (const series of this.#series) {
        const scored = series.checkpoints.filter((checkpoint) => checkpoint.scores.has(task));
        const means = smoothed(scored.map((checkpoint) => checkpoint.scores.get(task).entry.value), smooth);
        const perStep = givenTokens()[series.name];
        scored.forEach((checkpoint, at) => {
          const { entry, run } = checkpoint.scores.get(task);
          const tokens = checkpoint.tokens ?? (perStep && checkpoint.step !== null ? checkpoint.step * perStep : null);
          rows.push([series.name, checkpoint.name, checkpoint.step, tokens, task, entry.metric, entry.value, entry.stderr, ...(smooth > 1 ? [means[at]] : []), run.id, run.created]);
        });
      }
    }
    download('evald-curves.csv', 'text/csv', csvOf(rows));
  }
}

export const kSeriesMax = kColours;
