// Samples of a run, or of two side by side.

import { announce, el, empty, problem, show } from './dom.js';
import { count, plural, runLines, titleOf } from './format.js';
import { taskOptions } from './groups.js';
import { countsOfOne, countsOfTwo, loadMarks } from './marks.js';
import { kMeant, kShown, kShownOfOne, pairsOf, searched } from './pairs.js';
import { linkTo, rewrite } from './router.js';
import { sampleArticle } from './sample.js';
import { badge } from './states.js';
import { isOver, loadRun, loadRuns } from './store.js';

const kPage = 10;
const kRuns = 200;
const kSearchWaitMs = 350;  // after the last key
const kSayEvery = 500;      // documents read by a search

// Whether a run has samples: tasks that are done, or at work.
const hasSamples = (run) => Object.keys(run.scores ?? {}).length > 0 || (!isOver(run) && run.progress.scored > 0);
const tasksOf = (run) => run.progress.tasks.map((task) => task.task);

class SamplesView {
  #parameters;
  #runs = [];
  #filters = [];
  #counts = {};     // documents of each choice
  #soFar = [];      // [run, {scored, documents}] of runs whose task is at work
  #pairs = [];      // found so far
  #source = null;
  #read = 0;        // documents that a search has read
  #query = 0;       // an earlier search stops reading
  #ended = false;  // the source has no more pairs
  #at = 0;  // number of the page's first pair
  #turn = 0;  // answers to earlier questions are dropped
  #lead = el('p', { class: 'lead' });
  #fields = el('div', { class: 'fields' });
  #modes = el('div', { class: 'chips', role: 'group', 'aria-label': 'Documents to show' });
  #search;
  #partial = el('div');
  #list = el('div');
  #pages = el('div', { class: 'pages' });

  constructor(main, parameters) {
    this.#parameters = parameters;
    this.#search = el('input', { type: 'search', value: parameters.text ?? '', 'data-key': 'filter', placeholder: 'in prompts and answers',
      oninput: () => this.#searchSoon() });
    main.append(el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, parameters.b ? 'Samples side by side' : 'Samples'), this.#lead)),
      el('section', { 'aria-label': 'What is shown' }, this.#fields,
        el('div', { class: 'fields below' }, this.#modes, el('label', {}, 'Search', this.#search)), this.#partial),
      el('section', { 'aria-label': 'Samples' }, this.#list, this.#pages));
  }

  async start() {
    try {
      const page = await loadRuns({ limit: kRuns });
      this.#runs = page.runs.filter(hasSamples);
      for (const id of [this.#parameters.a, this.#parameters.b]) {
        if (id && !this.#runs.some((run) => run.id === id)) this.#runs.unshift(await loadRun(id));
      }
      this.#parameters.a ??= this.#runs[0]?.id;
      await this.#restart();
    } catch (error) {
      show(this.#list, String(error), () => problem(error));
    }
  }

  end() {
    ++this.#turn;
    ++this.#query;
    clearTimeout(this.#soon);
  }

  #run(id) {
    return this.#runs.find((run) => run.id === id) ?? null;
  }

  #soon = 0;
  #searchSoon() {
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => this.#change({ text: this.#search.value.trim() }), kSearchWaitMs);
  }

  async #change(change) {
    this.#parameters = { ...this.#parameters, ...change };
    for (const name of Object.keys(this.#parameters)) if (!this.#parameters[name]) delete this.#parameters[name];
    document.querySelector('main h1').textContent = this.#parameters.b ? 'Samples side by side' : 'Samples';
    rewrite('samples', [], this.#parameters);
    await this.#restart();
  }

  async #restart() {
    const turn = ++this.#turn;
    const left = this.#run(this.#parameters.a), right = this.#run(this.#parameters.b);
    if (!left) {
      show(this.#list, 'none', () => empty('No run has samples yet.', 'They are there as soon as documents are scored.'));
      return;
    }
    const tasks = tasksOf(left).filter((task) => !right || tasksOf(right).includes(task));
    if (tasks.length === 0) {
      this.#renderFields(left, right, tasks, '');
      this.#soFar = [];
      this.#renderModes({}, '');
      show(this.#list, 'no-task', () => empty('These two runs have no task in common.', 'Choose another one.'));
      show(this.#pages, '', () => []);
      return;
    }
    const task = tasks.includes(this.#parameters.task) ? this.#parameters.task : tasks[0];
    const modes = right ? kShown : kShownOfOne;
    const mode = Object.hasOwn(modes, this.#parameters.show ?? '') ? this.#parameters.show : right ? 'differ' : 'all';
    this.#renderFields(left, right, tasks, task);
    try {
      const filter = await this.#loadCounts(left, right, task);
      if (turn !== this.#turn) return;
      this.#renderFields(left, right, tasks, task, filter);
      this.#renderModes(modes, mode);
      const text = this.#parameters.text ?? '';
      const pairs = pairsOf(left.id, right?.id ?? null, task, filter, mode);
      this.#read = 0;
      const query = ++this.#query;
      this.#source = text === '' ? pairs : searched(pairs, text, () => this.#onRead(query));
      this.#pairs = [];
      this.#at = 0;
      this.#ended = false;
      await this.#showPage(turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      show(this.#list, String(error) + turn, () => (error.status === 409 ? empty('No samples yet.', 'They are there as soon as documents of the task are scored.') : problem(error)));
      show(this.#pages, '', () => []);
    }
  }

  // Returns the filter to show. Another task may not have the one of the address.
  async #loadCounts(left, right, task) {
    const wanted = this.#parameters.filter;
    const load = (run, filter) => loadMarks(run.id, task, filter);
    let mine = await load(left, wanted);
    let filter = wanted;
    if (!mine.filters.includes(wanted)) {
      [filter] = mine.filters;
      if (wanted) mine = await load(left, filter);
    }
    const theirs = right ? await load(right, filter) : null;
    this.#filters = mine.filters;
    this.#soFar = [[left, mine.soFar], [right, theirs?.soFar]].filter(([, soFar]) => soFar);
    this.#counts = theirs ? countsOfTwo(mine.marks, theirs.marks) : countsOfOne(mine.marks);
    return filter;
  }

  // A search may read a whole file: it says how far it is.
  #onRead(query) {
    if (query !== this.#query) throw new Error('another search has begun');
    if (++this.#read % kSayEvery === 0) this.#lead.textContent = `Searching, ${count(this.#read)} documents read`;
  }

  // Looks for one pair more than the page holds, to know whether there is a next page.
  async #showPage(turn) {
    while (!this.#ended && this.#pairs.length <= this.#at + kPage) {
      const next = await this.#source.next();
      if (turn !== this.#turn) return;
      if (next.done) this.#ended = true;
      else this.#pairs.push(next.value);
    }
    const runs = [this.#run(this.#parameters.a), this.#run(this.#parameters.b)].filter(Boolean);
    const names = runs.length > 1 && titleOf(runs[0]) === titleOf(runs[1]) ? runLines(runs) : runs.map(titleOf);
    const page = this.#pairs.slice(this.#at, this.#at + kPage);
    show(this.#list, [turn, this.#at], () => (page.length > 0 ? page.map((pair) => sampleArticle(pair, names))
      : empty('No document is like that.', this.#parameters.text ? 'Clear the search, or choose to see all documents.' : 'Choose to see all documents.')));
    const more = this.#pairs.length > this.#at + kPage;
    const known = this.#ended ? ` of ${count(this.#pairs.length)}` : ', more follow';
    show(this.#lead, [turn, this.#at, known], () => (page.length > 0
      ? `${count(this.#at + 1)} to ${count(this.#at + page.length)}${known}; ${this.#soFar.length > 0 ? `${plural(this.#counts.all, 'document')} so far` : `the task has ${plural(this.#counts.all, 'document')}`}`
      : `None of ${plural(this.#counts.all, 'document')}${this.#soFar.length > 0 ? ' so far' : ''}`));
    show(this.#pages, [turn, this.#at, more], () => (this.#at === 0 && !more ? [] : [
      el('button', { type: 'button', 'data-key': 'previous', disabled: this.#at === 0, onclick: () => this.#go(-kPage) }, 'Previous'),
      el('button', { type: 'button', 'data-key': 'next', disabled: !more, onclick: () => this.#go(kPage) }, 'Next'),
    ]));
    announce(this.#lead.textContent);
  }

  async #go(by) {
    const turn = ++this.#turn;
    this.#at = Math.max(0, this.#at + by);
    try {
      await this.#showPage(turn);
      this.#list.querySelector('article')?.focus({ preventScroll: true });
      window.scrollTo(0, 0);
    } catch (error) {
      if (turn === this.#turn) show(this.#list, String(error) + turn, () => problem(error));
    }
  }

  // The choices of documents, each with its number of documents.
  #renderModes(modes, mode) {
    this.#renderPartial();
    this.#modes.setAttribute('aria-label', this.#soFar.length > 0 ? 'Documents to show, of those scored so far' : 'Documents to show');
    show(this.#modes, [modes, mode, this.#counts], () => Object.entries(modes).map(([value, label]) => el('button', {
      type: 'button', class: 'chip', 'aria-pressed': String(value === mode), title: kMeant[value] ?? null, 'data-group': `show-${value}`,
      onclick: () => this.#change({ show: value }) }, el('span', {}, label), ' ', el('span', { class: 'chip-count' }, count(this.#counts[value])))));
  }

  // What of tasks at work is shown. The numbers stand still until somebody asks for newer ones.
  #renderPartial() {
    show(this.#partial, this.#soFar.map(([run, soFar]) => [run.id, titleOf(run), soFar]), () => (this.#soFar.length === 0 ? [] : el('div', { class: 'so-far' },
      badge('so far'), this.#soFar.map(([run, soFar]) => el('span', {}, el('strong', {}, titleOf(run)), ` is at work: ${count(soFar.scored)} of ${plural(soFar.documents, 'document')} scored so far`)),
      el('button', { type: 'button', 'data-key': 'again', onclick: () => this.#restart() }, 'Look again'))));
  }

  #renderFields(left, right, tasks, task, filter) {
    const option = (value, label, chosen) => el('option', { value, selected: value === chosen }, label);
    const select = (label, name, options) => el('label', {}, label, el('select', { onchange: (event) => this.#change({ [name]: event.target.value }) }, options));
    const lines = runLines(this.#runs);
    const runOptions = (chosen) => this.#runs.map((run, index) => option(run.id, lines[index], chosen));
    const groups = { ...left.groups, ...right?.groups };
    show(this.#fields, [left.id, right?.id, tasks, task, groups, filter, this.#filters, lines], () => [
      select(right ? 'Left' : 'Run', 'a', runOptions(left.id)),
      select(right ? 'Right' : 'Compare with', 'b', [option('', right ? 'none' : '\u2013', right?.id ?? ''), ...runOptions(right?.id)]),
      select('Task', 'task', taskOptions(tasks, groups, (name) => option(name, name, task))),
      filter !== undefined && this.#filters.length > 1 ? select('Filter', 'filter', this.#filters.map((name) => option(name, name, filter))) : null,
      el('a', { href: linkTo('run', [left.id]), class: 'beside' }, right ? 'To the left run' : 'To the run'),
    ]);
  }
}

export function openSamples(main, parts, parameters) {
  const view = new SamplesView(main, parameters);
  view.start();
  return () => view.end();
}
