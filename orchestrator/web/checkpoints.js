// Tasks × checkpoints of a training run as a table, and curves of one or several training runs.

import { CheckpointTable, topRows } from './checkpoint_table.js';
import { CurvesPanel, kSeriesMax } from './curves_panel.js';
import { el, empty, problem, show } from './dom.js';
import { count } from './format.js';
import { mergedGroups, nameFilter, taskOptions } from './groups.js';
import { linkTo, rewrite } from './router.js';
import { kSeriesBy, readSeries, seriesNames, seriesOf, shortNames, tailNames } from './series.js';
import { badge } from './states.js';
import { loadRun, loadRuns, onChange, runOf } from './store.js';

const kPage = 200;
const kChartsFirst = 6;   // charts that are drawn before anyone chooses
const kComparedMax = 24;  // training runs that are offered
const kFilterFrom = 8;    // tasks from which on there is a filter
const kBaselinesMax = 50; // of a training run

function listIn(text) {
  try {
    const list = JSON.parse(text ?? '[]');
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : [];
  } catch {
    return [];
  }
}

class CheckpointsView {
  #runs = new Map();
  #next = null;
  #parameters;
  #wanted;
  #ready = false;
  #failure = el('div');
  #choice = el('div', { class: 'fields' });
  #compare = el('div', { class: 'compare', role: 'group', 'aria-label': 'Training runs to compare with' });
  #nothing = el('div');
  #filter = el('div', { class: 'fields' });
  #beside = el('section', { 'aria-labelledby': 'beside' }, el('h2', { id: 'beside' }, 'Two checkpoints side by side'), el('div'));
  #more = el('div', { class: 'pages' });
  #table;
  #scores;
  #curves;

  constructor(main, parameters) {
    this.#wanted = parameters.run ?? null;
    this.#parameters = { ...parameters };
    delete this.#parameters.run;
    this.#table = new CheckpointTable(() => this.render(), (task) => this.#toggle(task));
    this.#curves = new CurvesPanel((change) => this.#change(change));
    this.#scores = el('section', { 'aria-labelledby': 'scores' }, el('div', { class: 'head-row' }, el('h2', { id: 'scores' }, 'Scores'), this.#filter), this.#table.node);
    main.append(el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, 'Checkpoints'),
      el('p', { class: 'lead' }, 'Scores of training runs, by task and step')), this.#choice), this.#compare, this.#failure, this.#nothing, this.#scores, this.#curves.node, this.#beside, this.#more);
    this.#hideAll(true);
  }

  #hideAll(hidden) {
    for (const part of [this.#scores, this.#curves.node, this.#beside]) part.hidden = hidden;
  }

  async load(cursor = '') {
    try {
      const page = await loadRuns({ limit: kPage, cursor });
      for (const run of page.runs) this.#runs.set(run.id, run);
      this.#next = page.next;
      if (this.#wanted) {
        const run = this.#runs.get(this.#wanted) ?? await loadRun(this.#wanted);
        this.#runs.set(run.id, run);
        this.#parameters.series = seriesOf(run, this.#by());
        this.#wanted = null;
      }
      show(this.#failure, '', () => []);
      this.#ready = true;
    } catch (error) {
      show(this.#failure, String(error), () => problem(error));
    }
    this.render();
  }

  onChange(ids) {
    for (const id of ids) {
      const run = runOf(id);
      if (run) this.#runs.set(id, run);
    }
    this.render();
  }

  #by() {
    return Object.hasOwn(kSeriesBy, this.#parameters.by ?? '') ? this.#parameters.by : 'folder';
  }

  #change(change) {
    this.#parameters = { ...this.#parameters, ...change };
    for (const name of Object.keys(this.#parameters)) if (!this.#parameters[name]) delete this.#parameters[name];
    rewrite('checkpoints', [], this.#parameters);
    this.render();
  }

  render() {
    if (!this.#ready) return;
    const names = seriesNames(this.#runs.values(), this.#by());
    const main = names.includes(this.#parameters.series) ? this.#parameters.series : names[0] ?? null;
    const also = listIn(this.#parameters.also).filter((name) => names.includes(name) && name !== main).slice(0, kSeriesMax - 1);
    this.#renderChoice(names, main, also);
    show(this.#more, [this.#next, this.#runs.size], () => (this.#next === null ? [] : [
      el('button', { type: 'button', onclick: () => this.load(this.#next) }, 'Look further back'),
      el('span', { class: 'muted small' }, `Seen: the newest ${count(this.#runs.size)} runs`)]));
    const series = main === null ? null : readSeries(this.#runs.values(), main, this.#by());
    this.#hideAll(series === null || series.tasks.length === 0);
    show(this.#nothing, [main, series?.tasks.length > 0, series?.checkpoints.map((one) => [one.run.id, one.run.state])], () => this.#nothingOf(series));
    if (series === null || series.tasks.length === 0) return;
    this.#renderSeries(series, also.map((name) => readSeries(this.#runs.values(), name, this.#by())), names);
  }

  #renderSeries(series, others, names) {
    const shown = [series, ...others];
    const groups = mergedGroups(series.checkpoints.flatMap((one) => one.runs));
    const drawn = this.#drawn(series, groups);
    show(this.#filter, series.tasks.length >= kFilterFrom, () => (series.tasks.length >= kFilterFrom
      ? nameFilter(this.#parameters.text ?? '', (text) => this.#change({ text })) : []));
    this.#table.render(series, { groups, text: this.#parameters.text ?? '', drawn: new Set(drawn) });
    const short = shortNames(shown.map((one) => one.name));
    this.#curves.render(shown, short, drawn, this.#baselines(shown, names), this.#parameters);
    this.#renderBeside(series, groups);
  }

  #drawn(series, groups) {
    if (this.#parameters.charts === undefined) return topRows(series.tasks, groups).filter((name) => series.tasks.includes(name)).slice(0, kChartsFirst);
    return this.#parameters.charts.split(' ').filter((name) => series.tasks.includes(name));
  }

  #toggle(task) {
    const series = readSeries(this.#runs.values(), this.#mainName(), this.#by());
    const drawn = this.#drawn(series, mergedGroups(series.checkpoints.flatMap((one) => one.runs)));
    const now = drawn.includes(task) ? drawn.filter((name) => name !== task) : [...drawn, task];
    this.#change({ charts: now.join(' ') || '-' });
  }

  #mainName() {
    const names = seriesNames(this.#runs.values(), this.#by());
    return names.includes(this.#parameters.series) ? this.#parameters.series : names[0];
  }

  // Checkpoints whose scores may be drawn as a line: those of the training runs shown come first.
  #baselines(shown, names) {
    const others = names.filter((name) => !shown.some((one) => one.name === name)).map((name) => readSeries(this.#runs.values(), name, this.#by()));
    return [...shown, ...others].flatMap((series) => series.checkpoints.filter((one) => one.scores.size > 0).slice(-kBaselinesMax)
      .map((one) => ({ path: one.path, name: one.name, series: series.name, scores: one.scores })));
  }

  #renderChoice(names, main, also) {
    show(this.#choice, [names, main, also, this.#by()], () => {
      if (names.length === 0) return [];
      const tails = tailNames(names);
      return [
        el('label', {}, 'Training run by', el('select', { onchange: (event) => this.#change({ by: event.target.value, series: '', also: '' }) },
          Object.entries(kSeriesBy).map(([value, words]) => el('option', { value, selected: value === this.#by() }, words)))),
        names.length < 2 ? null : el('label', {}, 'Training run', el('select', { onchange: (event) => this.#change({ series: event.target.value, also: '', charts: '' }) },
          names.map((name) => el('option', { value: name, selected: name === main, title: name }, tails.get(name))))),
      ];
    });
    show(this.#compare, [names, main, also], () => {
      const others = names.filter((name) => name !== main).slice(0, kComparedMax);
      if (others.length === 0) return [];
      const short = tailNames(names);
      return [el('span', { class: 'muted small' }, 'Compare with'), others.map((name) => el('button', { type: 'button', class: 'chip', title: name,
        'data-group': `also-${name}`, 'aria-pressed': String(also.includes(name)), disabled: !also.includes(name) && also.length >= kSeriesMax - 1,
        onclick: () => this.#change({ also: JSON.stringify(also.includes(name) ? also.filter((other) => other !== name) : [...also, name]) }) }, short.get(name)))];
    });
  }

  #nothingOf(series) {
    if (series === null) {
      return empty('No checkpoint has been evaluated yet.', 'Submit one: ', el('code', {}, 'evald submit eval.yaml'),
        ', or watch a folder: ', el('code', {}, 'evald watch --checkpoints DIR eval.yaml'));
    }
    if (series.tasks.length > 0) return [];
    return el('section', {}, empty('No scores yet.', 'They appear as soon as a task is done.'),
      el('ul', {}, series.checkpoints.slice(0, 20).map((one) => el('li', {}, el('a', { href: linkTo('run', [one.run.id]) }, one.name), ' ', badge(one.run.state)))));
  }

  #renderBeside(series, groups) {
    const scored = series.checkpoints.filter((one) => one.scores.size > 0);
    const tasks = series.tasks.filter((task) => !Object.hasOwn(groups, task));
    show(this.#beside.lastElementChild, [series.name, tasks, scored.map((one) => [one.path, [...one.scores.values()].map(({ run }) => run.id)])], () => {
      if (scored.length < 2) return el('p', { class: 'muted' }, 'It is shown as soon as two checkpoints have scores.');
      return this.#besideOf(scored, tasks, groups);
    });
  }

  #besideOf(scored, tasks, groups) {
    const select = (label, chosen) => {
      const node = el('select', {}, scored.map((one) => el('option', { value: one.path, selected: one === chosen }, one.name)));
      return [node, el('label', {}, label, node)];
    };
    const [left, leftLabel] = select('Left', scored.at(-2));
    const [right, rightLabel] = select('Right', scored.at(-1));
    const task = el('select', {}, taskOptions(tasks, groups, (name) => el('option', { value: name }, name)));
    const go = () => {
      const find = (path) => scored.find((one) => one.path === path).scores.get(task.value)?.run.id;
      location.hash = linkTo('samples', [], { a: find(left.value), b: find(right.value), task: task.value, show: 'differ' });
    };
    return el('div', { class: 'fields panel' }, leftLabel, rightLabel, el('label', {}, 'Task', task),
      el('button', { type: 'button', class: 'primary', onclick: go }, 'Read the samples'));
  }
}

export function openCheckpoints(main, parts, parameters) {
  const view = new CheckpointsView(main, parameters);
  view.load();
  return onChange((ids) => view.onChange(ids));
}
