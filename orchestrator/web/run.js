// One run: its description, progress, scores, gates and timeline.

import { find, patch, post, runPath, token } from './api.js';
import { confirmed, openDialog } from './dialogs.js';
import { announce, el, empty, problem, show, visible } from './dom.js';
import { plural, took, time, titleOf } from './format.js';
import { gatesOf } from './gates.js';
import { askLabels, labelsOf } from './labels.js';
import { bar, percentOf, phaseRow, rateOf, shareOf } from './progress.js';
import { linkTo } from './router.js';
import { atWork, RunTasks } from './run_tasks.js';
import { readTrace } from './spans.js';
import { badge, exitMeaning, verdictOf } from './states.js';
import { isOver, keep, loadRun, onChange } from './store.js';
import { timelineOf } from './timeline.js';

const kTickMs = 1000;
const kTimelineMs = 3000;
const kAnnounceEvery = 0.25;

const fact = (name, value, broad) => (value ? el('div', { class: broad ? 'broad' : null }, el('dt', {}, name), el('dd', {}, value)) : null);

class RunView {
  #id;
  #run = null;
  #head = el('div', { class: 'page-head' });
  #failure = el('div');
  #problems = el('div');
  #progress = el('section', { 'aria-label': 'Progress' });
  #gates = el('section', { 'aria-labelledby': 'gates' }, el('h2', { id: 'gates' }, 'Gates'));
  #timeline = el('section', { 'aria-labelledby': 'timeline' }, el('h2', { id: 'timeline' }, 'Timeline'));
  #facts = el('section', { 'aria-labelledby': 'facts' }, el('h2', { id: 'facts' }, 'About this run'));
  #drawn = null;     // the timeline
  #asking = false;   // for the timeline so far
  #askedMs = 0;
  #filesLoaded = false;
  #ended = false;
  #said = -1;
  #state = '';
  #title = el('h1', { tabindex: '-1' });
  #badges = el('span', { class: 'buttons' });
  #actions = el('div', { class: 'buttons' });
  #lead = el('p', { class: 'lead' });
  #labels = el('div', { class: 'labels' });
  #tasks;

  constructor(main, id) {
    this.#id = id;
    this.#title.textContent = visible(id);
    this.#head.append(el('div', {}, el('div', { class: 'title' }, this.#title, this.#badges), this.#lead, this.#labels), this.#actions);
    this.#tasks = new RunTasks(id);
    main.append(this.#head, this.#failure, this.#problems, this.#progress, this.#tasks.node, this.#gates, this.#timeline, this.#facts);
    for (const part of [this.#gates, this.#timeline, this.#facts]) part.hidden = true;
  }

  async load() {
    try {
      this.#run = await loadRun(this.#id);
      document.title = `${titleOf(this.#run)} \u00b7 evald`;
      show(this.#failure, '', () => []);
      this.render();
    } catch (error) {
      show(this.#failure, String(error), () => (error.status === 404
        ? empty('There is no such run here.', el('a', { href: '#/' }, 'All runs')) : problem(error)));
    }
  }

  end() {
    this.#ended = true;
    this.#drawn?.end();
  }

  render() {
    const run = this.#run;
    if (!run) return;
    show(this.#title, titleOf(run), () => titleOf(run));
    show(this.#badges, [run.state, verdictOf(run)], () => [badge(run.state), verdictOf(run) ? [el('span', { class: 'muted small' }, 'gates'), badge(verdictOf(run))] : null]);
    show(this.#lead, [run.state, run.started, run.exit_status, took(run)], () => this.#leadOf(run));
    show(this.#labels, [run.name, run.title, run.tags, run.note], () => labelsOf(run));
    show(this.#actions, [run.state, run.priority, token() !== ''], () => this.#actionsOf(run));
    show(this.#problems, run.problems, () => (run.problems.length === 0 ? [] : el('div', { class: 'note bad' },
      el('strong', {}, plural(run.problems.length, 'problem')), el('ul', {}, run.problems.map((text) => el('li', {}, text))))));
    show(this.#progress, isOver(run) ? run.state : [run.progress, took(run)], () => this.#progressOf(run));
    this.#tasks.setRun(run);
    show(this.#facts, [run.id, run.ended, run.fingerprint, run.started], () => this.#factsOf(run));
    this.#facts.hidden = false;
    this.#tell(run);
    if (isOver(run) && !this.#filesLoaded) this.#loadFiles();
    if (!isOver(run)) this.#loadLiveTimeline();
  }

  #leadOf(run) {
    if (!run.started) return `Submitted ${time(run.created)}`;
    const exit = run.exit_status > 0 || verdictOf(run) ? `, exit status ${run.exit_status} (${exitMeaning(run.exit_status)})` : '';
    return isOver(run) ? `Took ${took(run)}${exit}` : `${took(run)} so far`;
  }

  #progressOf(run) {
    if (isOver(run)) return [];
    if (run.state === 'queued') {
      return el('p', { class: 'note' }, 'It waits for its turn. Runs of higher priority go first.');
    }
    return el('div', { class: 'panel card' },
      el('div', { class: 'spread' }, el('strong', {}, percentOf(run)), el('span', { class: 'muted' }, rateOf(run))),
      bar('The whole run', shareOf(run), 1),
      el('div', { class: 'phases' }, run.progress.phases.map(phaseRow)), atWork(run));
  }

  #factsOf(run) {
    const facts = [
      fact('Run', el('code', {}, run.id), true), fact('Checkpoint', el('code', {}, run.checkpoint || '\u2013'), true),
      fact('Folder', el('code', {}, run.directory), true),
      fact('Fingerprint', run.fingerprint ? el('code', {}, run.fingerprint) : null, true),
      fact('Submitted', time(run.created)), fact('Started', run.started ? time(run.started) : null),
      fact('Ended', run.ended ? time(run.ended) : null), fact('User', run.user), fact('Priority', String(run.priority))];
    return [el('h2', { id: 'facts' }, 'About this run'), el('dl', { class: 'facts panel' }, facts)];
  }

  // The run's progress is said aloud at each quarter and at the end.
  #tell(run) {
    const quarter = Math.floor(shareOf(run) / kAnnounceEvery);
    if (this.#state && this.#state !== run.state) announce(`The run is ${run.state}`);
    else if (!isOver(run) && this.#said >= 0 && quarter > this.#said) announce(`${percentOf(run)} done`);
    this.#said = quarter;
    this.#state = run.state;
  }

  // The timeline so far. It is asked for again every few seconds while the page is looked at.
  async #loadLiveTimeline() {
    if (this.#asking || Date.now() - this.#askedMs < kTimelineMs || document.visibilityState === 'hidden') return;
    this.#asking = true;
    try {
      const json = await find(runPath(this.#id, 'timeline'));
      if (!this.#ended && json && !this.#filesLoaded) this.#drawTimeline(json);
    } catch {
      // It is asked for again.
    }
    this.#asking = false;
    this.#askedMs = Date.now();
  }

  // Returns whether there is anything to draw.
  #drawTimeline(json) {
    const trace = readTrace(json);
    if (this.#drawn) this.#drawn.setTrace(trace);
    else this.#drawn = timelineOf(trace);
    if (this.#drawn) show(this.#timeline, 'drawn', () => [el('h2', { id: 'timeline' }, 'Timeline'), this.#drawn.node]);
    this.#timeline.hidden = !this.#drawn;
  }

  async #loadFiles() {
    this.#filesLoaded = true;
    const part = async (section, name, build) => {
      try {
        const json = await find(runPath(this.#id, name));
        if (this.#ended) return;
        const nodes = json ? build(json) : null;
        section.hidden = !nodes;
        if (nodes) show(section, 'loaded', () => [section.querySelector('h2') ?? [], nodes]);
      } catch (error) {
        section.hidden = false;
        show(section, String(error), () => [section.querySelector('h2') ?? [], problem(error)]);
      }
    };
    await Promise.all([
      find(runPath(this.#id, 'timeline')).then((json) => {
        if (json && !this.#ended) this.#drawTimeline(json);
      }, (error) => {
        this.#timeline.hidden = false;
        show(this.#timeline, String(error), () => [el('h2', { id: 'timeline' }, 'Timeline'), problem(error)]);
      }),
      verdictOf(this.#run) ? part(this.#gates, 'verdict', gatesOf) : null,
      this.#run.state === 'done' ? this.#loadTruncated() : null,
    ]);
  }

  // Only a run that is done has results.
  async #loadTruncated() {
    const results = await find(runPath(this.#id, 'results')).catch(() => null);
    if (this.#ended || !results?.evald?.truncated_answers) return;
    this.#tasks.setTruncated(results.evald.truncated_answers);
  }

  #actionsOf(run) {
    const button = (label, action, danger) => el('button', { type: 'button', class: danger ? 'danger' : null, onclick: action }, label);
    const label = button('Name, tags, note', () => this.#label(run));
    const compare = el('a', { href: linkTo('checkpoints', [], { run: run.id }) }, 'Compare checkpoints');
    if (isOver(run)) {
      // The browser itself opens a report, and it sends no token.
      return [compare, label, run.state === 'done' ? null : button('Resume', () => this.#act('resume')), run.state === 'done' && token() === ''
        ? el('a', { href: runPath(run.id, 'report'), target: '_blank', rel: 'noopener' }, 'Report') : null];
    }
    return [
      compare, label,
      run.state === 'cancelling' ? null : run.state === 'paused' ? button('Resume', () => this.#act('resume')) : button('Pause', () => this.#act('pause')),
      button(`Priority ${run.priority}`, () => this.#changePriority(run)),
      run.state === 'cancelling' ? null : button('Cancel', () => this.#cancel(run), true),
    ];
  }

  async #act(action) {
    await this.#try(() => post(runPath(this.#id, action)));
  }

  async #try(work) {
    try {
      keep(await work());
      show(this.#failure, '', () => []);
    } catch (error) {
      show(this.#failure, String(error) + Date.now(), () => problem(error));
    }
    this.render();
  }

  async #cancel(run) {
    if (await confirmed(`Cancel ${titleOf(run)}?`, 'What it has computed so far stays in its folder.', 'Cancel the run')) await this.#act('cancel');
  }

  async #label(run) {
    const labels = await askLabels(run);
    if (labels !== null) await this.#try(() => patch(runPath(this.#id), labels));
  }

  async #changePriority(run) {
    const priority = await openDialog('Priority', (close) => {
      const input = el('input', { type: 'number', min: -100, max: 100, step: 1, required: true, value: run.priority, autofocus: true });
      return el('form', { onsubmit: (event) => { event.preventDefault(); close(input.valueAsNumber); } },
        el('label', {}, 'From \u2212100 to 100; higher goes first', input),
        el('div', { class: 'buttons' }, el('button', { type: 'button', onclick: () => close(null) }, 'Leave it'),
          el('button', { type: 'submit', class: 'primary' }, 'Change it')));
    });
    if (priority !== null) await this.#try(() => patch(runPath(this.#id), { priority }));
  }
}

export function openRun(main, parts) {
  const view = new RunView(main, parts[0] ?? '');
  view.load();
  const off = onChange((ids) => ids.has(parts[0]) && view.render());
  const timer = setInterval(() => view.render(), kTickMs);
  return () => {
    off();
    clearInterval(timer);
    view.end();
  };
}
