// Tasks × checkpoints of a training run. Groups open, and a button in each row draws its curve.

import { breakable, el, show, svg } from './dom.js';
import { count, score, time, titleOf } from './format.js';
import { forest, nameCell, openNodes } from './groups.js';
import { linkTo } from './router.js';
import { scoredRuns } from './series.js';
import { badge, verdictOf } from './states.js';
import { isOver } from './store.js';
import { Table } from './table.js';

const kColumnsMax = 12;
const kRunsNamed = 3;  // runs of one checkpoint whose scores are shown

/** The rows at the top: groups and tasks in no group. */
export function topRows(tasks, groups) {
  return forest(tasks.filter((task) => !Object.hasOwn(groups, task)), groups).map((node) => node.name);
}

export class CheckpointTable {
  #changed;
  #toggle;
  #last = null;       // the last column shown; null: the newest
  #key = '';
  #table = null;
  #series = null;
  #state = null;      // {groups, text, drawn}
  #place = el('div');
  #pages = el('div', { class: 'pages' });
  node;

  /** `changed()` renders the view anew; `toggle(task)` draws or removes a task's curve. */
  constructor(changed, toggle) {
    this.#changed = changed;
    this.#toggle = toggle;
    this.node = el('div', {}, this.#place, this.#pages);
  }

  /** `state`: the `groups` of the runs, the `text` that filters names, and the names that are `drawn`. */
  render(series, state) {
    this.#series = series;
    this.#state = state;
    const { checkpoints } = series;
    const end = Math.min(this.#last ?? checkpoints.length, checkpoints.length);
    const shown = checkpoints.slice(Math.max(0, end - kColumnsMax), end);
    const key = JSON.stringify([series.name, shown.map((one) => [one.path, one.runs.map((run) => [run.id, run.state, verdictOf(run), titleOf(run)]), one.scores.size])]);
    const fresh = key !== this.#key;
    if (fresh) {
      this.#key = key;
      this.#table = this.#make(shown);
    }
    const tasks = series.tasks.filter((task) => !Object.hasOwn(state.groups, task));
    const rows = new Map();
    for (const place of openNodes(forest(tasks, state.groups), state.text)) {
      const row = { name: place.node.name, place };
      row.chain = [...place.above.map((node) => rows.get(node.name)), row];
      rows.set(row.name, row);
    }
    this.#table.setRows([...rows.values()]);
    show(this.#place, [key, rows.size > 0], () => (rows.size > 0 ? this.#table.node : el('p', { class: 'muted' }, 'No task has such a name.')));
    if (fresh) this.#showNewest();
    this.#renderPages(shown, end);
  }

  // A window that is too narrow for all columns begins at the newest.
  #showNewest() {
    requestAnimationFrame(() => {
      const { node } = this.#table;
      node.scrollLeft = node.scrollWidth;
    });
  }

  #make(shown) {
    const table = new Table({
      caption: 'Score with its standard error; columns are checkpoints, in the order of their steps',
      idOf: (row) => row.name,
      columns: [
        { label: 'Task', header: true, class: 'pin breaks', value: (row) => row.name, key: (row) => [row.place.open, this.#state.drawn.has(row.name)],
          cell: (row) => el('div', { class: 'with-tool' }, this.#drawButton(row.name), nameCell(row.place, this.#changed)) },
        ...shown.map((one) => ({ label: one.name, class: 'number', value: (row) => one.scores.get(row.name)?.entry.value ?? null,
          key: (row) => one.scores.get(row.name)?.entry ?? null, cell: (row) => this.#scoreCell(one, row) })),
      ],
    });
    table.node.querySelector('table').append(el('tfoot', {}, el('tr', {}, el('th', { scope: 'row', class: 'pin' }, 'Run'),
      shown.map((one) => el('td', { class: 'number' }, runsOf(one))))));
    return table;
  }

  #drawButton(name) {
    const drawn = this.#state.drawn.has(name);
    return el('button', { type: 'button', class: 'draw', 'aria-pressed': String(drawn), 'aria-label': `Curve of ${name}`, title: drawn ? 'Remove the curve' : 'Draw the curve',
      'data-group': `draw-${name}`, onclick: () => this.#toggle(name) },
    svg('svg', { viewBox: '0 0 16 16', 'aria-hidden': 'true' }, svg('path', { d: 'M1 13C5 13 5 4 9 6S13 3 15 2' })));
  }

  #scoreCell(one, row) {
    const found = one.scores.get(row.name);
    if (!found) return '\u2013';
    if (row.place.node.group) return score(found.entry);
    return el('a', { class: 'plain', href: linkTo('samples', [], { a: found.run.id, task: row.name }),
      'aria-label': `${row.name} at ${one.name}: ${score(found.entry)}, samples` }, score(found.entry));
  }

  #renderPages(shown, end) {
    const { length } = this.#series.checkpoints;
    const move = (by) => {
      this.#last = Math.min(length, Math.max(kColumnsMax, end + by));
      this.#changed();
    };
    show(this.#pages, [length, end, shown[0]?.name], () => (length <= kColumnsMax ? [] : [
      el('button', { type: 'button', 'data-key': 'previous', disabled: end <= kColumnsMax, onclick: () => move(-kColumnsMax) }, 'Earlier steps'),
      el('span', { class: 'muted' }, `${shown[0].name} to ${shown.at(-1).name}, of ${count(length)}`),
      el('button', { type: 'button', 'data-key': 'next', disabled: end >= length, onclick: () => move(kColumnsMax) }, 'Later steps')]));
  }
}

// The runs whose scores the column shows, and, apart from them, a newer run without scores.
function runsOf(one) {
  const scored = scoredRuns(one);
  const several = one.runs.length > 1;
  const named = (run) => el('a', { href: linkTo('run', [run.id]), 'aria-label': `Run of ${one.name}, ${time(run.created)}`, 'data-step': true, title: run.note || null },
    run.title ? breakable(run.title) : several ? time(run.created) : 'open');
  const newest = scored.includes(one.run) ? null : el('div', { class: 'small newest' }, scored.length > 0 ? 'newest: ' : null,
    el('a', { href: linkTo('run', [one.run.id]), 'aria-label': `Newest run of ${one.name}, ${one.run.state}`, 'data-step': true }, scored.length > 0 ? time(one.run.created) : 'open'), ' ', badge(one.run.state));
  return [
    scored.slice(0, kRunsNamed).map((run) => el('div', {}, named(run), ' ', verdictOf(run) ? badge(verdictOf(run)) : isOver(run) && run.state === 'done' ? null : badge(run.state))),
    scored.length > kRunsNamed ? el('div', { class: 'small muted' }, `and ${scored.length - kRunsNamed} more`) : null,
    newest,
  ];
}
