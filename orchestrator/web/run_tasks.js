// The tasks of one run: a table in which groups open, and what is at work now.

import { el, show } from './dom.js';
import { count, plural, score } from './format.js';
import { forest, nameCell, nameFilter, openNodes } from './groups.js';
import { bar } from './progress.js';
import { linkTo } from './router.js';
import { isOver } from './store.js';
import { Table } from './table.js';

const kFilterFrom = 8;   // tasks from which on there is a filter
const kAtWorkMax = 6;

const sum = (list, member) => list.reduce((total, one) => total + (one[member] ?? 0), 0);

function isAtWork(task) {
  return task.headline === null && (task.generated > 0 || task.scored > 0);
}

// Whether the samples file of a task is there.
const isReady = (run, task) => (isOver(run) ? task.scored > 0 : task.headline !== null || Boolean(run.scores?.[task.task]));

export class RunTasks {
  #id;
  #run = null;
  #truncated = {};  // answers that ran into max_gen_toks, by task; of a run that is over
  #text = '';
  #filter = el('div', { class: 'fields' });
  #none = el('p', { class: 'muted' }, 'No task has such a name.');
  #table;
  node;

  constructor(id) {
    this.#id = id;
    this.#table = new Table({
      caption: 'Score with its standard error, and documents generated and scored',
      idOf: (row) => row.task,
      columns: this.#columns(),
    });
    this.#none.hidden = true;
    this.node = el('section', { 'aria-labelledby': 'tasks' },
      el('div', { class: 'head-row' }, el('h2', { id: 'tasks' }, 'Tasks'), this.#filter), this.#table.node, this.#none);
    this.node.hidden = true;
  }

  #columns() {
    const of = (done, all) => (all === null ? '\u2013' : `${count(done)} of ${count(all)}`);
    return [
      { label: 'Task', header: true, class: 'breaks', value: (row) => row.task, key: (row) => [row.place.open, row.score?.metric, row.scored, row.documents],
        cell: (row) => [nameCell(row.place, () => this.render()), this.#below(row)] },
      { label: 'Metric', class: 'wide', value: (row) => row.score?.metric ?? null, cell: (row) => row.score?.metric ?? '\u2013' },
      { label: 'Score', class: 'number', value: (row) => row.score?.value ?? null, key: (row) => score(row.score), cell: (row) => score(row.score) },
      { label: 'Scored', class: 'number wide', value: (row) => row.scored, key: (row) => [row.scored, row.documents], cell: (row) => of(row.scored, row.documents) },
      { label: 'Generated', class: 'number wide', value: (row) => row.generated, key: (row) => [row.generated, row.documents],
        cell: (row) => of(row.generated, row.documents) },
      { label: 'Truncated', class: 'number wide', value: (row) => row.truncated?.truncated ?? null, key: (row) => row.truncated,
        cell: (row) => (row.truncated ? of(row.truncated.truncated, row.truncated.answers) : '\u2013') },
      { label: 'Samples', key: (row) => [row.ready, row.some, row.place.node.group], cell: (row) => this.#samplesOf(row) },
    ];
  }

  // What a narrow screen shows below the name, since it has no room for the columns.
  #below(row) {
    const parts = [row.score?.metric, !isOver(this.#run) && row.documents !== null ? `${count(row.scored)} of ${count(row.documents)} scored` : null].filter(Boolean);
    return parts.length > 0 ? el('div', { class: `small muted narrow under level-${Math.min(row.place.depth, 4)}` }, parts.join(' \u00b7 ')) : null;
  }

  #samplesOf(row) {
    if (row.place.node.group || row.documents === null) return null;
    if (!row.some) return el('span', { class: 'muted whole' }, isOver(this.#run) ? '\u2013' : 'not yet');
    return el('a', { href: linkTo('samples', [], { a: this.#id, task: row.task }), class: 'whole', 'data-step': true,
      'aria-label': row.ready ? `Samples of ${row.task}` : `Samples of ${row.task} so far` }, row.ready ? 'read' : 'so far');
  }

  setTruncated(truncated) {
    this.#truncated = truncated;
    this.render();
  }

  setRun(run) {
    this.#run = run;
    this.render();
  }

  render() {
    const run = this.#run;
    const tasks = run.progress.tasks;
    this.node.hidden = tasks.length === 0;
    const known = new Map(tasks.map((task) => [task.task, task]));
    for (const name of Object.keys(run.scores ?? {})) {  // of a run whose groups are not known
      if (!known.has(name) && !Object.hasOwn(run.groups ?? {}, name)) known.set(name, { task: name, documents: null });
    }
    const roots = forest(known.keys(), run.groups ?? {});
    const nodes = openNodes(roots, this.#text);
    const rows = new Map();
    const rowOf = (place) => {
      if (!rows.has(place.node.name)) rows.set(place.node.name, this.#rowOf(place, place.node.leaves.map((leaf) => known.get(leaf))));
      return rows.get(place.node.name);
    };
    for (const place of nodes) {
      const row = rowOf(place);
      row.chain = [...place.above.map((node) => rows.get(node.name)), row];
    }
    show(this.#filter, tasks.length >= kFilterFrom, () => (tasks.length >= kFilterFrom ? nameFilter(this.#text, (text) => {
      this.#text = text;
      this.render();
    }) : []));
    this.#table.setRows([...rows.values()]);
    this.#none.hidden = rows.size > 0;
    this.#table.node.hidden = rows.size === 0;
  }

  #rowOf(place, tasks) {
    const run = this.#run;
    const cut = tasks.map((task) => this.#truncated[task.task]).filter(Boolean);
    const task = tasks[0];
    return { task: place.node.name, place, score: run.scores?.[place.node.name] ?? null,
      documents: tasks.every((one) => one.documents === null) ? null : sum(tasks, 'documents'), generated: sum(tasks, 'generated'), scored: sum(tasks, 'scored'),
      truncated: cut.length > 0 ? { truncated: sum(cut, 'truncated'), answers: sum(cut, 'answers') } : null,
      ready: isReady(run, task), some: isReady(run, task) || (!isOver(run) && task.scored > 0) };
  }
}

/** What of a run is at work now, for its progress: some tasks with bars, and how many are done and waiting. */
export function atWork(run) {
  const tasks = run.progress.tasks;
  if (tasks.length < 2) return null;
  const working = tasks.filter(isAtWork).sort((a, b) => (b.generated + b.scored) / b.documents - (a.generated + a.scored) / a.documents);
  const done = tasks.filter((task) => task.headline !== null).length;
  const waiting = tasks.length - done - working.length;
  return [
    el('p', { class: 'small muted' }, `Tasks: ${count(working.length)} at work, ${count(done)} done, ${count(waiting)} waiting`),
    working.length === 0 ? null : el('ul', { class: 'at-work' }, working.slice(0, kAtWorkMax).map((task) => el('li', {},
      el('div', { class: 'spread small' }, el('strong', {}, task.task), el('span', { class: 'muted' }, task.scored > 0 ? `${count(task.scored)} of ${count(task.documents)} scored` : `${count(task.generated)} of ${count(task.documents)} generated`)),
      bar(`${task.task}: progress`, task.generated + task.scored, 2 * task.documents)))),
    working.length > kAtWorkMax ? el('p', { class: 'small muted' }, `and ${plural(working.length - kAtWorkMax, 'more task')} at work`) : null,
  ];
}
