// Samples of a run, or of two side by side.

import { announce, el, empty, problem, show } from './dom.js';
import { count, plural, time } from './format.js';
import { find, runPath } from './api.js';
import { firstSample, kShown, kShownOfOne, pairsOf } from './pairs.js';
import { linkTo, rewrite } from './router.js';
import { sampleArticle } from './sample.js';
import { loadRun, loadRuns } from './store.js';

const kPage = 10;
const kRuns = 200;

const tasksOf = (run) => run.progress.tasks.map((task) => task.task);

/** The filters for which results.json has scores of the task. Its keys are "metric,filter". */
async function filtersOf(run, task) {
  const results = await find(runPath(run, 'results'));
  const entry = results?.results?.[task] ?? {};
  const names = Object.keys(entry).filter((key) => key.includes(',') && !key.split(',')[0].endsWith('_stderr'));
  return [...new Set(names.map((key) => key.slice(key.indexOf(',') + 1)))];
}

class SamplesView {
  #parameters;
  #runs = [];
  #filters = [];
  #total = 0;
  #pairs = [];      // found so far
  #source = null;
  #ended = false;  // the source has no more pairs
  #at = 0;  // number of the page's first pair
  #turn = 0;  // answers to earlier questions are dropped
  #lead = el('p', { class: 'lead' });
  #fields = el('div', { class: 'fields' });
  #list = el('div');
  #pages = el('div', { class: 'pages' });

  constructor(main, parameters) {
    this.#parameters = parameters;
    main.append(el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, parameters.b ? 'Samples side by side' : 'Samples'), this.#lead)),
      el('section', { 'aria-label': 'What is shown' }, this.#fields), el('section', { 'aria-label': 'Samples' }, this.#list, this.#pages));
  }

  async start() {
    try {
      const page = await loadRuns({ limit: kRuns });
      this.#runs = page.runs.filter((run) => Object.keys(run.scores ?? {}).length > 0);
      for (const id of [this.#parameters.a, this.#parameters.b]) {
        if (id && !this.#runs.some((run) => run.id === id)) this.#runs.unshift(await loadRun(id));
      }
      this.#parameters.a ??= this.#runs[0]?.id;
      await this.#restart();
    } catch (error) {
      show(this.#list, String(error), () => problem(error));
    }
  }

  #run(id) {
    return this.#runs.find((run) => run.id === id) ?? null;
  }

  async #change(change) {
    this.#parameters = { ...this.#parameters, ...change };
    for (const name of Object.keys(this.#parameters)) if (!this.#parameters[name]) delete this.#parameters[name];
    document.querySelector('main h1').textContent = this.#parameters.b ? 'Samples side by side' : 'Samples';
    await this.#restart();
    rewrite('samples', [], this.#parameters);
  }

  async #restart() {
    const turn = ++this.#turn;
    const left = this.#run(this.#parameters.a), right = this.#run(this.#parameters.b);
    if (!left) {
      show(this.#list, 'none', () => empty('No run has samples yet.', 'They are there as soon as a task is done.'));
      return;
    }
    const tasks = tasksOf(left).filter((task) => !right || tasksOf(right).includes(task));
    if (tasks.length === 0) {
      this.#renderFields(left, right, tasks, '', {});
      show(this.#list, 'no-task', () => empty('These two runs have no task in common.', 'Choose another one.'));
      show(this.#pages, '', () => []);
      return;
    }
    const task = tasks.includes(this.#parameters.task) ? this.#parameters.task : tasks[0];
    const modes = right ? kShown : kShownOfOne;
    const mode = Object.hasOwn(modes, this.#parameters.show ?? '') ? this.#parameters.show : right ? 'differ' : 'all';
    this.#renderFields(left, right, tasks, task, modes, mode);
    try {
      const [first, filters] = await Promise.all([firstSample(left.id, task), filtersOf(left.id, task)]);
      if (turn !== this.#turn) return;
      this.#filters = filters.length > 0 ? filters : [first.filter];
      this.#total = first.total / Math.max(1, this.#filters.length);
      const filter = this.#filters.includes(this.#parameters.filter) ? this.#parameters.filter : this.#filters[0];
      this.#renderFields(left, right, tasks, task, modes, mode, filter);
      this.#source = pairsOf(left.id, right?.id ?? null, task, filter, mode);
      this.#pairs = [];
      this.#at = 0;
      this.#ended = false;
      await this.#showPage(turn);
    } catch (error) {
      if (turn !== this.#turn) return;
      show(this.#list, String(error) + turn, () => (error.status === 409 ? empty('No samples yet.', 'They are there as soon as the task is done.') : problem(error)));
      show(this.#pages, '', () => []);
    }
  }

  // Looks for one pair more than the page holds, to know whether there is a next page.
  async #showPage(turn) {
    while (!this.#ended && this.#pairs.length <= this.#at + kPage) {
      const next = await this.#source.next();
      if (turn !== this.#turn) return;
      if (next.done) this.#ended = true;
      else this.#pairs.push(next.value);
    }
    const names = [this.#run(this.#parameters.a), this.#run(this.#parameters.b)].filter(Boolean).map((run) => run.name || run.id);
    const page = this.#pairs.slice(this.#at, this.#at + kPage);
    show(this.#list, [turn, this.#at], () => (page.length > 0 ? page.map((pair) => sampleArticle(pair, names))
      : empty('No document is like that.', 'Choose to see all documents.')));
    const more = this.#pairs.length > this.#at + kPage;
    const known = this.#ended ? ` of ${count(this.#pairs.length)}` : ', more follow';
    show(this.#lead, [turn, this.#at, known], () => (page.length > 0
      ? `${count(this.#at + 1)} to ${count(this.#at + page.length)}${known}; the task has ${plural(this.#total, 'document')}`
      : `None of ${plural(this.#total, 'document')}`));
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
      show(this.#list, String(error) + turn, () => problem(error));
    }
  }

  #renderFields(left, right, tasks, task, modes, mode, filter) {
    const option = (value, label, chosen) => el('option', { value, selected: value === chosen }, label);
    const select = (label, name, options) => el('label', {}, label, el('select', { onchange: (event) => this.#change({ [name]: event.target.value }) }, options));
    const runOptions = (chosen) => this.#runs.map((run) => option(run.id, `${run.name} \u00b7 ${time(run.created)}`, chosen));
    show(this.#fields, [left.id, right?.id, tasks, task, mode, filter, this.#filters, this.#runs.map((run) => run.id)], () => [
      select(right ? 'Left' : 'Run', 'a', runOptions(left.id)),
      select(right ? 'Right' : 'Compare with', 'b', [option('', right ? 'none' : '\u2013', right?.id ?? ''), ...runOptions(right?.id)]),
      select('Task', 'task', tasks.map((name) => option(name, name, task))),
      filter !== undefined && this.#filters.length > 1 ? select('Filter', 'filter', this.#filters.map((name) => option(name, name, filter))) : null,
      mode === undefined ? null : select('Show', 'show', Object.entries(modes).map(([value, label]) => option(value, label, mode))),
      el('a', { href: linkTo('run', [left.id]), class: 'beside' }, right ? 'To the left run' : 'To the run'),
    ]);
  }
}

export function openSamples(main, parts, parameters) {
  new SamplesView(main, parameters).start();
}
