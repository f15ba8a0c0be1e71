// Tasks × checkpoints of a training run, as a table and as curves.

import { breakable, el, empty, problem, show } from './dom.js';
import { count, score } from './format.js';
import { curve } from './curves.js';
import { linkTo, rewrite } from './router.js';
import { readSeries, seriesNames, seriesOf } from './series.js';
import { badge, verdictOf } from './states.js';
import { isOver, loadRun, loadRuns, onChange, runOf } from './store.js';
import { Table } from './table.js';

const kPage = 200;
const kColumnsMax = 12;
const kCurvesMax = 24;

class CheckpointsView {
  #runs = new Map();
  #next = null;
  #series = null;
  #last = null;       // the last column shown; null: the newest
  #curves = kCurvesMax;
  #failure = el('div');
  #choice = el('div', { class: 'fields' });
  #body = el('div');
  #more = el('div', { class: 'pages' });
  #ready = false;
  #wanted;

  constructor(main, parameters) {
    this.#series = parameters.series ?? null;
    this.#wanted = parameters.run ?? null;
    main.append(el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, 'Checkpoints'),
      el('p', { class: 'lead' }, 'Scores of one training run, by task and step')), this.#choice), this.#failure, this.#body, this.#more);
  }

  async load(cursor = '') {
    try {
      const page = await loadRuns({ limit: kPage, cursor });
      for (const run of page.runs) this.#runs.set(run.id, run);
      this.#next = page.next;
      if (this.#wanted) {
        const run = this.#runs.get(this.#wanted) ?? await loadRun(this.#wanted);
        this.#runs.set(run.id, run);
        this.#series = seriesOf(run);
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

  render() {
    if (!this.#ready) return;
    const names = seriesNames(this.#runs.values());
    if (this.#series === null || !names.includes(this.#series)) this.#series = names[0] ?? null;
    show(this.#choice, [names, this.#series], () => (names.length < 2 ? [] : el('label', {}, 'Training run',
      el('select', { onchange: (event) => this.#choose(event.target.value) },
        names.map((name) => el('option', { value: name, selected: name === this.#series }, name))))));
    show(this.#more, this.#next, () => (this.#next === null ? [] : [
      el('button', { type: 'button', onclick: () => this.load(this.#next) }, 'Look further back'),
      el('span', { class: 'muted small' }, `Seen: the newest ${count(this.#runs.size)} runs`)]));
    if (this.#series === null) {
      show(this.#body, 'none', () => empty('No checkpoint has been evaluated yet.', 'Submit one: ', el('code', {}, 'evald submit eval.yaml'),
        ', or watch a folder: ', el('code', {}, 'evald watch --checkpoints DIR eval.yaml')));
      return;
    }
    const series = readSeries(this.#runs.values(), this.#series);
    const key = [this.#series, this.#last, this.#curves, series.tasks,
      series.checkpoints.map((one) => [one.path, one.run.id, one.run.state, verdictOf(one.run), [...one.scores].map(([task, { entry, run }]) => [task, entry, run.id])])];
    show(this.#body, key, () => this.#bodyOf(series));
  }

  #choose(series) {
    this.#series = series;
    this.#last = null;
    rewrite('checkpoints', [], { series });
    this.render();
  }

  #bodyOf(series) {
    if (series.tasks.length === 0) {
      return el('section', {}, empty('No scores yet.', 'They appear as soon as a task is done.'),
        el('ul', {}, series.checkpoints.slice(0, 20).map((one) => el('li', {}, el('a', { href: linkTo('run', [one.run.id]) }, one.name), ' ', badge(one.run.state)))));
    }
    return [
      el('section', { 'aria-labelledby': 'scores' }, el('h2', { id: 'scores' }, 'Scores'), this.#tableOf(series)),
      el('section', { 'aria-labelledby': 'curves' }, el('h2', { id: 'curves' }, 'Curves'), this.#curvesOf(series)),
      el('section', { 'aria-labelledby': 'beside' }, el('h2', { id: 'beside' }, 'Two checkpoints side by side'), this.#beside(series)),
    ];
  }

  #tableOf({ tasks, checkpoints }) {
    const end = this.#last ?? checkpoints.length;
    const shown = checkpoints.slice(Math.max(0, end - kColumnsMax), end);
    const table = new Table({
      caption: 'Score with its standard error; columns are checkpoints, in the order of their steps',
      idOf: (task) => task,
      columns: [
        { label: 'Task', header: true, class: 'pin breaks', value: (task) => task, cell: (task) => breakable(task) },
        ...shown.map((one) => ({ label: one.name, class: 'number', value: (task) => one.scores.get(task)?.entry.value ?? null,
          cell: (task) => {
            const found = one.scores.get(task);
            if (!found) return '\u2013';
            return el('a', { class: 'plain', href: linkTo('samples', [], { a: found.run.id, task }),
              'aria-label': `${task} at ${one.name}: ${score(found.entry)}, samples` }, score(found.entry));
          } })),
      ],
    });
    table.setRows(tasks);
    // The runs themselves are one line below the tasks.
    table.node.querySelector('table').append(el('tfoot', {}, el('tr', {}, el('th', { scope: 'row', class: 'pin' }, 'Run'),
      shown.map((one) => el('td', { class: 'number' }, el('a', { href: linkTo('run', [one.run.id]), 'aria-label': `Run of ${one.name}`, 'data-step': true }, 'open'), ' ',
        verdictOf(one.run) ? badge(verdictOf(one.run)) : isOver(one.run) && one.run.state === 'done' ? null : badge(one.run.state))))));
    if (checkpoints.length <= kColumnsMax) return table.node;
    const move = (by) => {
      this.#last = Math.min(checkpoints.length, Math.max(kColumnsMax, end + by));
      this.render();
    };
    return [table.node, el('div', { class: 'pages' },
      el('button', { type: 'button', 'data-key': 'previous', disabled: end <= kColumnsMax, onclick: () => move(-kColumnsMax) }, 'Earlier steps'),
      el('span', { class: 'muted' }, `${shown[0].name} to ${shown.at(-1).name}, of ${count(checkpoints.length)}`),
      el('button', { type: 'button', 'data-key': 'next', disabled: end >= checkpoints.length, onclick: () => move(kColumnsMax) }, 'Later steps'))];
  }

  #beside({ tasks, checkpoints }) {
    const scored = checkpoints.filter((one) => one.scores.size > 0);
    if (scored.length < 2) return el('p', { class: 'muted' }, 'It is shown as soon as two checkpoints have scores.');
    const select = (label, chosen) => {
      const node = el('select', {}, scored.map((one) => el('option', { value: one.path, selected: one === chosen }, one.name)));
      return [node, el('label', {}, label, node)];
    };
    const [left, leftLabel] = select('Left', scored.at(-2));
    const [right, rightLabel] = select('Right', scored.at(-1));
    const task = el('select', {}, tasks.map((name) => el('option', { value: name }, name)));
    const go = () => {
      const find = (path) => scored.find((one) => one.path === path).scores.get(task.value)?.run.id;
      location.hash = linkTo('samples', [], { a: find(left.value), b: find(right.value), task: task.value, show: 'differ' });
    };
    return el('div', { class: 'fields panel' }, leftLabel, rightLabel, el('label', {}, 'Task', task),
      el('button', { type: 'button', class: 'primary', onclick: go }, 'Read the samples'));
  }

  #curvesOf({ tasks, checkpoints, stepped }) {
    const drawn = tasks.slice(0, this.#curves);
    const figures = drawn.map((task) => curve(task, checkpoints.flatMap((one, index) => {
      const found = one.scores.get(task);
      if (!found) return [];
      const place = stepped ? { x: one.step, label: `step ${count(one.step)}`, short: count(one.step) } : { x: index, label: one.name, short: one.name };
      return [{ ...place, entry: found.entry, run: found.run }];
    })));
    return [
      el('p', { class: 'muted small above' }, 'Lines at the points, or a band, are one standard error. All shares have the same scale, 0 to 1.'),
      el('div', { class: 'cards' }, figures),
      tasks.length > drawn.length ? el('div', { class: 'pages' }, el('button', { type: 'button', onclick: () => { this.#curves += kCurvesMax; this.render(); } },
        `Draw ${Math.min(kCurvesMax, tasks.length - drawn.length)} more of ${tasks.length}`)) : null,
    ];
  }
}

export function openCheckpoints(main, parts, parameters) {
  const view = new CheckpointsView(main, parameters);
  view.load();
  return onChange((ids) => view.onChange(ids));
}
