// Launchers: the jobs that bring nodes, the nodes that are excluded, and what goes wrong.

import { post } from './api.js';
import { announce, breakable, el, empty, problem, show } from './dom.js';
import { number, plural, time } from './format.js';
import { badge } from './states.js';
import { Table } from './table.js';

const kDash = '\u2013';
const kPlainWords = new Set(['pending', 'running']);
const kHere = new Set(['working', 'idle']);

const countOf = (jobs, ...states) => jobs.filter((job) => states.includes(job.state)).length;

// "since 14:05", "expected 14:05"
function startOf(job) {
  if (job.started_at) return `since ${time(job.started_at)}`;
  return job.starts_at ? `expected ${time(job.starts_at)}` : kDash;
}

// The launcher's word where it says more than the state does; on a phone the reason, too.
function stateCell(job) {
  const plain = !job.word || kPlainWords.has(job.word.toLowerCase());
  return [badge(job.state), plain ? null : el('p', { class: 'small muted' }, job.word),
    el('p', { class: 'small muted narrow' }, job.why ?? job.reason)];
}

/** `row` is {job, goTo}; goTo is null if the job's host is not here. */
function hostCell({ job, goTo }) {
  return goTo ? el('button', { type: 'button', class: 'link', 'aria-label': `Go to host ${job.host}`, onclick: goTo }, job.host) : kDash;
}

const kColumns = [
  { label: 'Job', header: true, value: ({ job }) => job.job ?? job.name, cell: ({ job }) => job.job ?? job.name },
  { label: 'State', value: ({ job }) => job.state, key: ({ job }) => [job.state, job.word, job.why, job.reason], cell: ({ job }) => stateCell(job) },
  { label: 'Node', value: ({ job }) => job.node, cell: ({ job }) => job.node ?? kDash },
  { label: 'Start', value: ({ job }) => Date.parse(job.started_at ?? job.starts_at), key: ({ job }) => startOf(job),
    cell: ({ job }) => startOf(job) },
  { label: 'Ends', class: 'whole', value: ({ job }) => Date.parse(job.ends_at), key: ({ job }) => time(job.ends_at), cell: ({ job }) => time(job.ends_at) },
  { label: 'Host', class: 'whole', value: ({ job }) => job.host, key: (row) => [row.job.host, row.goTo !== null], cell: hostCell },
  { label: 'Reason', class: 'breaks wide', value: ({ job }) => job.why ?? job.reason, cell: ({ job }) => job.why ?? job.reason ?? kDash },
];

function facts({ nodes, jobs, ...launcher }) {
  const waiting = countOf(jobs, 'submitting', 'submitted', 'waiting');
  const starting = countOf(jobs, 'starting');
  const most = launcher.node_hours_per_day;
  const fact = (name, value) => el('div', {}, el('dt', {}, name), el('dd', {}, value));
  return el('dl', { class: 'facts' },
    fact('Nodes here', `${jobs.filter((job) => kHere.has(job.state)).length} of at most ${nodes.max}`),
    fact('Wanted', nodes.min > 0 ? `${nodes.wanted}, at least ${nodes.min}` : String(nodes.wanted)),
    fact('On their way', [waiting > 0 ? `${waiting} waiting` : null, starting > 0 ? `${starting} starting` : null].filter(Boolean).join(', ') || 'none'),
    fact('Node hours in 24 h', `${number(launcher.node_hours, 1)}${most === null ? '' : ` of ${most}`}`));
}

/** The section of one launcher. */
class LauncherPanel {
  #launcher;
  #changed;
  #head = el('div', { class: 'head-row' });
  #facts = el('div');
  #problems = el('div');
  #excluded = el('div');
  #failure = el('div');
  #jobs = el('div');
  #table;
  node;

  constructor(name, changed) {
    this.#changed = changed;
    this.#table = new Table({ caption: `Jobs of launcher ${name}`, quiet: true, columns: kColumns, idOf: ({ job }) => job.name });
    this.node = el('section', { 'data-launcher': name, 'aria-label': `Launcher ${name}` }, this.#head,
      el('div', { class: 'panel launcher' }, this.#facts, this.#problems, this.#excluded, this.#failure), this.#jobs);
  }

  /** `goTo(host)` is null for a host that is not here. */
  render(launcher, goTo) {
    this.#launcher = launcher;
    const { name, kind, jobs, excluded, problems, next_try_at } = launcher;
    show(this.#head, [name, kind], () => el('h2', {}, `Launcher ${name}`, name === kind ? null : el('span', { class: 'muted small' }, ` ${kind}`)));
    show(this.#facts, [launcher.nodes, jobs.map((job) => job.state), number(launcher.node_hours, 1), launcher.node_hours_per_day], () => facts(launcher));
    // What is excluded has a list of its own.
    const others = problems.filter((text) => !excluded.some(({ node }) => text.startsWith(`node ${node} is not asked for`)));
    if (next_try_at) others.push(`No job is submitted before ${time(next_try_at)}.`);
    show(this.#problems, others, () => (others.length > 0 ? el('div', { class: 'note bad' }, others.map((text) => el('p', {}, breakable(text)))) : []));
    show(this.#excluded, excluded, () => (excluded.length > 0 ? this.#excludedPart(excluded) : []));
    this.#table.setRows(jobs.map((job) => ({ job, goTo: goTo(job.host) })));
    show(this.#jobs, jobs.length > 0, () => (jobs.length > 0 ? this.#table.node : empty('No jobs.', 'Nodes are asked for when work is open.')));
  }

  #excludedPart(excluded) {
    return [el('h3', {}, `${plural(excluded.length, 'node')} not asked for`),
      el('ul', { class: 'excluded' }, excluded.map(({ node, why }) => el('li', {},
        el('div', { class: 'spread' }, el('strong', {}, node),
          el('button', { type: 'button', 'aria-label': `Ask again for node ${node}`, onclick: (event) => this.#release(node, event.currentTarget) }, 'Ask again')),
        el('p', { class: 'small muted' }, breakable(why)))))];
  }

  async #release(node, button) {
    button.disabled = true;
    const { name } = this.#launcher;
    try {
      await post(`/v1/launchers/${encodeURIComponent(name)}/nodes/${encodeURIComponent(node)}/release`);
      show(this.#failure, '', () => []);
      announce(`Node ${node} is asked for again`);
      this.#changed();
    } catch (error) {
      show(this.#failure, String(error) + Date.now(), () => problem(error));
      button.disabled = false;
    }
  }
}

/** The sections of all launchers. `goTo(host)` shows a host; `changed()` is called after a node was released. */
export class Launchers {
  #panels = new Map();
  #goTo;
  #changed;
  node = el('div', { class: 'launchers' });

  constructor(goTo, changed) {
    this.#goTo = goTo;
    this.#changed = changed;
  }

  render(launchers, hosts) {
    const here = new Set(hosts.filter((host) => host.state !== 'left').map((host) => host.id));
    const nodes = launchers.map((launcher) => {
      if (!this.#panels.has(launcher.name)) this.#panels.set(launcher.name, new LauncherPanel(launcher.name, this.#changed));
      const panel = this.#panels.get(launcher.name);
      panel.render(launcher, (host) => (here.has(host) ? () => this.#goTo(host) : null));
      return panel.node;
    });
    const place = [...this.node.children];
    if (nodes.length !== place.length || nodes.some((node, index) => node !== place[index])) this.node.replaceChildren(...nodes);
  }
}
