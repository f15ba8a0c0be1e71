// All runs: active ones as cards, waiting ones, and a table of all.

import { get } from './api.js';
import { announce, el, empty, problem, show } from './dom.js';
import { folderName, number, plural, took, time, titleOf } from './format.js';
import { forest } from './groups.js';
import { tagsOf } from './labels.js';
import { bar, percentOf, rateOf, shareOf } from './progress.js';
import { linkTo, rewrite } from './router.js';
import { badge, verdictOf } from './states.js';
import { isOver, keep, loadRuns, onChange, runOf } from './store.js';
import { Table } from './table.js';

const kPage = 50;
const kStates = ['queued', 'preparing', 'running', 'paused', 'cancelling', 'done', 'incomplete', 'failed', 'cancelled'];
const kTick = 1000;
const kScoresMax = 4;

const runLink = (run, attributes) => el('a', { href: linkTo('run', [run.id]), ...attributes }, titleOf(run));

// Groups, and tasks in no group: [name, score].
function topScores(run) {
  const scores = run.scores ?? {};
  const tasks = Object.keys(scores).filter((name) => !Object.hasOwn(run.groups ?? {}, name));
  const tops = forest(tasks, run.groups ?? {}).map((node) => node.name);
  const names = tops.filter((name) => Object.hasOwn(scores, name));
  return (names.length > 0 ? names : tasks).map((name) => [name, scores[name]]);
}

// The scores as one text for screen readers.
function scoresLine(run) {
  const scores = topScores(run);
  if (scores.length === 0) return '';
  const shown = scores.slice(0, 3).map(([task, entry]) => `${task} ${number(entry.value)}`).join(' \u00b7 ');
  return scores.length > 3 ? `${shown} and ${scores.length - 3} more` : shown;
}

function scoresOf(run) {
  const scores = topScores(run);
  return el('ul', { class: 'inline small scores' }, scores.slice(0, kScoresMax).map(([task, entry]) =>
    el('li', {}, el('span', { class: 'muted' }, `${task} `), number(entry.value))),
  scores.length > kScoresMax ? el('li', { class: 'muted' }, `and ${scores.length - kScoresMax} more`) : null);
}

// The model's name and the checkpoint's, where the run is not called so.
function furtherNames(run) {
  const folder = run.checkpoint ? folderName(run.checkpoint) : '';
  return [titleOf(run) === run.name ? null : run.name, run.name.includes(folder) ? null : folder].filter(Boolean);
}

// Title and tags, and what tells this run from others of the same checkpoint.
function nameOf(run) {
  return [runLink(run, { 'data-step': true, title: run.note || null }), tagsOf(run),
    el('div', { class: 'small muted wide' }, [...furtherNames(run), run.id].join(' \u00b7 ')),
    el('div', { class: 'small muted narrow' }, [...furtherNames(run), time(run.created)].join(' \u00b7 ')),
    Object.keys(run.scores ?? {}).length > 0 ? el('div', { class: 'narrow' }, scoresOf(run)) : null];
}

function card(run) {
  const left = rateOf(run);
  return el('article', { class: 'panel card' },
    el('div', { class: 'spread' }, el('h3', {}, runLink(run)), badge(run.state)),
    bar(`${titleOf(run)}: progress`, shareOf(run), 1),
    el('div', { class: 'spread small muted' },
      el('span', {}, `${percentOf(run)} of ${plural(run.progress.documents, 'document')}`),
      el('span', {}, left || `${took(run)} so far`)),
    Object.keys(run.scores ?? {}).length > 0 ? scoresOf(run) : null);
}

const kColumns = [
  { label: 'Run', header: true, class: 'breaks', value: titleOf, key: (run) => [titleOf(run), run.tags, run.note, run.scores, run.created], cell: nameOf },
  { label: 'State', value: (run) => run.state, key: (run) => [run.state, verdictOf(run), isOver(run) ? null : percentOf(run)],
    cell: (run) => [badge(run.state), run.state === 'running' ? el('div', { class: 'small muted' }, percentOf(run)) : null,
      verdictOf(run) ? el('div', { class: 'narrow small muted' }, 'gates ', badge(verdictOf(run))) : null] },
  { label: 'Gates', class: 'wide', value: (run) => verdictOf(run), cell: (run) => (verdictOf(run) ? badge(verdictOf(run)) : el('span', { class: 'muted' }, '\u2013')) },
  { label: 'Scores', class: 'wide', key: (run) => run.scores, cell: scoresOf },
  { label: 'Submitted', class: 'wide', value: (run) => Date.parse(run.created), cell: (run) => el('time', { datetime: run.created }, time(run.created)) },
  { label: 'Took', class: 'number wide', value: (run) => (run.started ? (run.ended ? Date.parse(run.ended) : Date.now()) - Date.parse(run.started) : null),
    key: took, cell: took },
  { label: 'User', class: 'wide breaks', value: (run) => run.user || null, cell: (run) => run.user || el('span', { class: 'muted' }, '\u2013') },
];

class RunsView {
  #active = el('div', { class: 'cards' });
  #waiting = el('div');
  #now = el('section', { 'aria-labelledby': 'now' }, el('h2', { id: 'now' }, 'At work'), this.#active, this.#waiting);
  #lead = el('p', { class: 'lead' });
  #list = el('div');
  #pages = el('div', { class: 'pages' });
  #table = new Table({ caption: 'Runs, newest first', quiet: true, columns: kColumns, idOf: (run) => run.id });
  #cursors = [''];  // cursors of the pages up to this one
  #wanted = this.#cursors;  // cursors of the pages up to the one being loaded
  #turn = 0;  // answers to earlier questions are dropped
  #next = null;
  #runs = [];
  #queue = [];
  #state;
  #text;
  #live = new Map();  // id -> active run
  #seen = new Set();  // ids known; any other id is a new run
  #failure = el('div');

  constructor(main, parameters) {
    this.#state = parameters.state ?? '';
    this.#text = parameters.text ?? '';
    const states = el('select', { onchange: (event) => this.#filter({ state: event.target.value }) },
      el('option', { value: '' }, 'all'), kStates.map((state) => el('option', { value: state, selected: state === this.#state }, state)));
    const text = el('input', { type: 'search', value: this.#text, 'data-key': 'filter', class: 'long', placeholder: 'name, tag, checkpoint, user',
      oninput: (event) => this.#filter({ text: event.target.value }) });
    main.append(
      el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, 'Runs'), this.#lead)),
      this.#failure, this.#now,
      el('section', { 'aria-labelledby': 'all' },
        el('div', { class: 'head-row' }, el('h2', { id: 'all' }, 'All runs'),
          el('div', { class: 'fields' }, el('label', {}, 'State', states), el('label', {}, 'On this page', text))),
        this.#list, this.#pages));
    this.#now.hidden = true;
  }

  async load() {
    const turn = ++this.#turn;
    try {
      const [page, queue] = await Promise.all([
        loadRuns({ limit: kPage, state: this.#state, cursor: this.#wanted.at(-1) }), get('/v1/queue')]);
      if (turn !== this.#turn) return;
      this.#cursors = this.#wanted;
      this.#runs = page.runs;
      this.#next = page.next;
      this.#queue = queue.queue.map(keep);
      await this.#loadLive();
      show(this.#failure, 'none', () => []);
    } catch (error) {
      if (turn !== this.#turn) return;
      show(this.#failure, String(error), () => problem(error));
    }
    this.render();
  }

  // Active runs may be far from the first page, so they are asked for by state.
  async #loadLive() {
    const states = ['running', 'preparing', 'paused', 'cancelling'];
    const pages = await Promise.all(states.map((state) => loadRuns({ state, limit: kPage })));
    this.#live = new Map(pages.flatMap((page) => page.runs).map((run) => [run.id, run]));
    for (const run of [...this.#runs, ...this.#queue, ...this.#live.values()]) this.#seen.add(run.id);
  }

  onChange(ids) {
    let unknown = false;
    for (const id of ids) {
      const run = runOf(id);
      if (!run) continue;
      const queued = this.#queue.some((other) => other.id === id);
      if (isOver(run)) {
        if (this.#live.delete(id)) announce(`${titleOf(run)}: ${run.state}${scoresLine(run) ? `, ${scoresLine(run)}` : ''}`);
      } else if (run.state !== 'queued') {
        this.#live.set(id, run);
      }
      if (queued !== (run.state === 'queued')) this.#reloadQueue();
      if (!this.#seen.has(id)) unknown = true;
      this.#seen.add(id);
    }
    if (unknown && this.#cursors.length === 1) this.#reloadSoon();
    this.render();
  }

  #soon = 0;
  #reloadSoon() {
    this.#soon ||= setTimeout(() => {
      this.#soon = 0;
      this.load();
    }, 1000);
  }

  #queueSoon = 0;
  #reloadQueue() {
    this.#queueSoon ||= setTimeout(async () => {
      this.#queueSoon = 0;
      try {
        this.#queue = (await get('/v1/queue')).queue.map(keep);
        this.render();
      } catch {
        // The next change tries again.
      }
    }, 300);
  }

  end() {
    clearTimeout(this.#soon);
    clearTimeout(this.#queueSoon);
  }

  #filter(change) {
    if (change.state !== undefined) {
      this.#state = change.state;
      this.#wanted = [''];
      this.load();
    } else {
      this.#text = change.text;
      this.render();
    }
    rewrite('', [], { state: this.#state, text: this.#text });
  }

  #go(by) {
    this.#wanted = by > 0 ? [...this.#cursors, this.#next] : this.#cursors.slice(0, -1);
    this.load().then(() => announce(`Page ${this.#cursors.length}`));
  }

  render() {
    const live = [...this.#live.values()].filter((run) => !isOver(run) && run.state !== 'queued')
      .sort((a, b) => Date.parse(a.started ?? a.created) - Date.parse(b.started ?? b.created));
    this.#renderNow(live);
    const wanted = this.#text.trim().toLowerCase();
    const rows = this.#runs.filter((run) => !wanted
      || [run.name, run.id, run.checkpoint, run.user, run.state, run.title ?? '', run.note ?? '', ...(run.tags ?? [])].some((part) => part.toLowerCase().includes(wanted)));
    this.#table.setRows(rows);
    show(this.#list, [rows.length > 0, this.#runs.length > 0, this.#state], () => (rows.length > 0 ? this.#table.node : this.#empty()));
    show(this.#pages, [this.#cursors.length, this.#next], () => this.#pager());
    const parts = [live.length > 0 ? `${plural(live.length, 'run')} at work` : 'Nothing is at work'];
    if (this.#queue.length > 0) parts.push(`${this.#queue.length} waiting`);
    show(this.#lead, parts, () => parts.join(', '));
  }

  #renderNow(live) {
    this.#now.hidden = live.length === 0 && this.#queue.length === 0;
    // Each run has one card. Only changed parts are made anew, so the focus stays.
    const known = new Map([...this.#active.children].map((node) => [node.dataset.run, node]));
    const nodes = live.map((run) => {
      const node = known.get(run.id) ?? el('div', { 'data-run': run.id });
      show(node, [titleOf(run), run.tags, run.state, run.progress, run.scores, took(run)], () => card(run));
      return node;
    });
    if (nodes.length !== this.#active.children.length || nodes.some((node, index) => node !== this.#active.children[index])) {
      this.#active.replaceChildren(...nodes);
    }
    const queue = this.#queue.filter((run) => run.state === 'queued');
    show(this.#waiting, queue.slice(0, 20).map((run) => [run.id, titleOf(run), run.priority]).concat([queue.length]), () => (queue.length === 0 ? [] : [
      el('h3', { id: 'waiting', class: 'muted small' }, 'Waiting, in the order they will start'),
      el('ol', { 'aria-labelledby': 'waiting' }, queue.slice(0, 20).map((run) => el('li', {}, runLink(run),
        run.priority !== 0 ? el('span', { class: 'muted small' }, ` priority ${run.priority}`) : null))),
      queue.length > 20 ? el('p', { class: 'muted small' }, `and ${queue.length - 20} more`) : null,
    ]));
  }

  #empty() {
    if (this.#runs.length > 0) return empty('No run on this page matches.', 'Clear the filter to see them all.');
    if (this.#state) return empty(`No run is ${this.#state}.`, 'Choose another state.');
    return empty('No runs yet.', 'Submit one: ', el('code', {}, 'evald submit eval.yaml'));
  }

  #pager() {
    if (this.#cursors.length === 1 && !this.#next) return [];
    return [
      el('button', { type: 'button', 'data-key': 'previous', disabled: this.#cursors.length === 1, onclick: () => this.#go(-1) }, 'Newer'),
      el('span', { class: 'muted' }, `Page ${this.#cursors.length}`),
      el('button', { type: 'button', 'data-key': 'next', disabled: !this.#next, onclick: () => this.#go(1) }, 'Older'),
    ];
  }
}

export function openRuns(main, parts, parameters) {
  const view = new RunsView(main, parameters);
  view.load();
  const off = onChange((ids) => view.onChange(ids));
  const timer = setInterval(() => view.render(), kTick);
  return () => {
    off();
    clearInterval(timer);
    view.end();
  };
}
