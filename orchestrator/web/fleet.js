// Hosts with their devices and workers, waiting runs, watched folders, staged checkpoints.

import { get } from './api.js';
import { breakable, el, empty, problem, show, svg } from './dom.js';
import { bytes, percent, plural, time, titleOf } from './format.js';
import { Launchers } from './launchers.js';
import { linkTo } from './router.js';
import { badge } from './states.js';
import { loadRun, loadRuns, nameOfFingerprint, onChange, runOf } from './store.js';
import { Table } from './table.js';

const kPollMs = 2000;
const kStripSeconds = 120;
const kStripSecondsMin = 10;
const kNamed = 50;

const asked = new Set();

/** The run's name; its id until the run is loaded. */
function nameOfRun(id) {
  const run = runOf(id);
  if (!run && !asked.has(id)) {
    asked.add(id);
    loadRun(id).catch(() => {});  // the id stands for it
  }
  return run ? titleOf(run) : id;
}

const runLink = (id, name) => el('a', { href: linkTo('run', [id]), 'data-step': true }, name ?? id);

/** The states of each device since the page was opened, at most of the last two minutes: device -> [{at,
 * state}]. */
const seen = new Map();

function note(workers) {
  const now = Date.now() / 1000;
  for (const worker of workers) {
    const key = `${worker.host}/${worker.device}`;
    const list = seen.get(key) ?? [];
    if (list.at(-1)?.state !== worker.state) list.push({ at: now, state: worker.state });
    while (list.length > 1 && list[1].at < now - kStripSeconds) list.shift();
    seen.set(key, list);
  }
}

// The seconds that a device's strip shows: as many as the page has seen of it, at most two minutes.
function shownSeconds(host, worker) {
  const first = seen.get(`${host}/${worker.device}`)?.[0]?.at ?? Infinity;
  return Math.min(kStripSeconds, Math.max(kStripSecondsMin, Math.ceil(Date.now() / 1000 - first)));
}

function strip(host, worker, seconds) {
  const now = Date.now() / 1000;
  const list = seen.get(`${host}/${worker.device}`) ?? [];
  const bars = list.map((one, index) => {
    const begin = Math.max(0, one.at - (now - seconds));
    const end = (list[index + 1]?.at ?? now) - (now - seconds);
    return svg('rect', { class: one.state, x: begin, y: 0, width: Math.max(0, end - begin), height: 10 }, svg('title', {}, one.state));
  });
  return svg('svg', { class: 'strip', viewBox: `0 0 ${seconds} 10`, preserveAspectRatio: 'none', role: 'img',
    'aria-label': `${worker.device}, last ${ago(seconds)}: now ${worker.state}` }, bars);
}

/** "ends in 12 min"; '' if no end is known. */
function ending(host) {
  if (!host.ends_at || host.state === 'left') return '';
  const minutes = Math.floor((Date.parse(host.ends_at) - Date.now()) / 60000);
  if (minutes < 0) return 'its time limit is over';
  if (minutes < 1) return 'ends in less than a minute';
  return minutes < 120 ? `ends in ${minutes} min` : `ends in ${Math.floor(minutes / 60)} h`;
}

const ago = (seconds) => (seconds < kStripSeconds ? `${seconds} s` : '2 min');

function holds(worker) {
  if (worker.pull) return `pulled ${bytes(worker.pull.done)} of ${bytes(worker.pull.total)}`;
  if (worker.waits) return worker.waits;
  if (!worker.fingerprint) return 'waiting for work';
  return `warm with ${nameOfFingerprint(worker.fingerprint) ?? worker.fingerprint.slice(0, 12)}, waiting for work`;
}

function deviceCard(host, device, worker) {
  const seconds = worker ? shownSeconds(host.id, worker) : 0;
  return el('article', { class: 'panel card' },
    el('div', { class: 'spread' }, el('h3', {}, device.id), worker ? badge(worker.state) : el('span', { class: 'muted small' }, 'no worker')),
    worker ? [
      el('div', {}, strip(host.id, worker, seconds), el('p', { class: 'small muted spread', 'aria-hidden': 'true' }, el('span', { class: 'since' }, `${ago(seconds)} ago`), el('span', {}, 'now'))),
      el('p', { class: 'small' }, worker.run ? ['works on ', runLink(worker.run, nameOfRun(worker.run))] : el('span', { class: 'muted' }, device.set_aside ?? holds(worker))),
      el('p', { class: 'small muted' }, [`worker ${worker.id}`, worker.pid ? `process ${worker.pid}` : null, worker.engine || null,
        worker.trials > 0 ? plural(worker.trials, 'trial') : null, worker.restarts > 0 ? plural(worker.restarts, 'restart') : null].filter(Boolean).join(' \u00b7 ')),
    ] : null);
}

const kQueueColumns = [
  { label: 'Place', class: 'number', value: (row) => row.place, cell: (row) => String(row.place) },
  { label: 'Run', header: true, class: 'breaks', value: (row) => row.run.name, cell: (row) => runLink(row.run.id, row.run.name) },
  { label: 'Priority', class: 'number', value: (row) => row.run.priority, cell: (row) => String(row.run.priority) },
  { label: 'User', class: 'breaks', value: (row) => row.run.user, cell: (row) => row.run.user || '\u2013' },
  { label: 'Submitted', class: 'wide', value: (row) => Date.parse(row.run.created), cell: (row) => time(row.run.created) },
];

const kStagedColumns = [
  { label: 'Checkpoint', header: true, class: 'breaks', value: (one) => nameOfFingerprint(one.fingerprint) ?? one.fingerprint,
    cell: (one) => [nameOfFingerprint(one.fingerprint), ' ', el('code', { title: one.fingerprint }, one.fingerprint.slice(0, 12))] },
  { label: 'Size', class: 'number', value: (one) => one.bytes, cell: (one) => bytes(one.bytes) },
  { label: 'Host', class: 'wide', value: (one) => one.host, cell: (one) => one.host },
  { label: 'In use', class: 'number', value: (one) => one.leases, cell: (one) => (one.leases > 0 ? plural(one.leases, 'lease') : 'no') },
  { label: 'Last used', value: (one) => Date.parse(one.last_used ?? 0), cell: (one) => time(one.last_used) },
];

const kDecisions = { 'submitted': 'submitted', 'passed-over': 'passed over', 'refused': 'refused', 'postponed': 'not submitted yet' };

function lastNote(watch) {
  const note = watch.recent.at(-1);
  if (!note) return '\u2013';
  const words = [`${note.checkpoint} `, note.run ? el('a', { href: linkTo('run', [note.run]) }, kDecisions[note.decision]) : kDecisions[note.decision]];
  return note.detail ? [...words, el('p', { class: 'small muted' }, note.detail)] : words;
}

const kWatchColumns = [
  { label: 'Folder', header: true, class: 'breaks', value: (watch) => watch.checkpoints, key: (watch) => [watch.checkpoints, watch.problem],
    cell: (watch) => [breakable(watch.checkpoints), watch.problem ? el('p', { class: 'small muted' }, watch.problem) : null] },
  { label: 'Which', value: (watch) => watch.which, cell: (watch) => (watch.which === 'every' ? `every ${watch.every}` : watch.which) },
  { label: 'Submitted', class: 'number wide', value: (watch) => watch.submitted, cell: (watch) => String(watch.submitted) },
  { label: 'Last', class: 'breaks', value: (watch) => Date.parse(watch.recent.at(-1)?.time ?? 0), cell: lastNote },
];

/** Whether it is the host of a launcher's job that is over: another job has a host of its own. */
function isGone(host, launchers) {
  return host.state === 'left' && launchers.some(({ name }) => host.id.startsWith(`${name}-`) && /^\d+$/.test(host.id.slice(name.length + 1)));
}

class FleetView {
  #failure = el('div');
  #lead = el('p', { class: 'lead' });
  #launchers = new Launchers((host) => this.#goTo(host), () => this.load());
  #hosts = el('div');
  #queue = el('div');
  #watches = el('div');
  #staged = el('div');
  #queueTable = new Table({ caption: 'Runs that wait, in the order they will start', quiet: true, columns: kQueueColumns, idOf: (row) => row.run.id });
  #watchTable = new Table({ caption: 'Folders whose checkpoints are evaluated as they appear', quiet: true, columns: kWatchColumns, idOf: (watch) => watch.id });
  #stagedTable = new Table({ caption: 'Checkpoints in shared memory', quiet: true, columns: kStagedColumns, idOf: (one) => `${one.host}/${one.fingerprint}` });
  #busy = false;

  constructor(main) {
    main.append(el('div', { class: 'page-head' }, el('div', {}, el('h1', { tabindex: '-1' }, 'Fleet'), this.#lead)), this.#failure, this.#launchers.node, this.#hosts,
      el('section', { 'aria-labelledby': 'queue' }, el('h2', { id: 'queue' }, 'Queue'), this.#queue),
      el('section', { 'aria-labelledby': 'watches' }, el('h2', { id: 'watches' }, 'Watched folders'), this.#watches),
      el('section', { 'aria-labelledby': 'staged' }, el('h2', { id: 'staged' }, 'Staged checkpoints'), this.#staged));
  }

  async load() {
    if (this.#busy || document.visibilityState === 'hidden') return;
    this.#busy = true;
    try {
      const [{ hosts }, { workers }, { queue }, { watches }, { staged }, { launchers }] = await Promise.all(
        ['/v1/hosts', '/v1/workers', '/v1/queue', '/v1/watches', '/v1/staged', '/v1/launchers'].map((path) => get(path)));
      note(workers);
      this.#render(hosts.filter((host) => !isGone(host, launchers)), workers, queue, watches, staged);
      this.#launchers.render(launchers, hosts);
      show(this.#failure, '', () => []);
    } catch (error) {
      show(this.#failure, String(error), () => problem(error));
    }
    this.#busy = false;
  }

  #render(hosts, workers, queue, watches, staged) {
    const working = workers.filter((worker) => worker.state === 'working').length;
    show(this.#lead, [workers.length, working], () => `${plural(workers.length, 'worker')}, ${working} working`);
    this.#renderHosts(hosts, workers);
    this.#queueTable.setRows(queue.map((run, index) => ({ run, place: index + 1 })));
    show(this.#queue, queue.length > 0, () => (queue.length > 0 ? this.#queueTable.node : el('p', { class: 'muted' }, 'Nothing waits.')));
    this.#watchTable.setRows(watches);
    show(this.#watches, watches.length > 0, () => (watches.length > 0 ? this.#watchTable.node
      : el('p', { class: 'muted' }, 'None. ', el('code', {}, 'evald watch --checkpoints DIR eval.yaml'), ' adds one.')));
    this.#stagedTable.setRows(staged);
    show(this.#staged, staged.length > 0, () => (staged.length > 0 ? this.#stagedTable.node
      : empty('No checkpoint is in shared memory.', 'The next run stages its own.')));
  }

  #goTo(host) {
    const node = [...this.#hosts.children].find((one) => one.dataset.host === host);
    node?.scrollIntoView();
    node?.focus({ preventScroll: true });
  }

  #renderHosts(hosts, workers) {
    const known = new Map([...this.#hosts.children].map((node) => [node.dataset.host, node]));
    const nodes = hosts.map((host) => {
      const node = known.get(host.id) ?? el('section', { 'data-host': host.id, tabindex: '-1', 'aria-label': `Host ${host.id}` }, el('div', { class: 'head-row' }), el('div', { class: 'cards' }));
      const [head, cards] = node.children;
      const { total, free } = host.shared_memory;
      const ends = ending(host);
      show(head, [host.state, total, free, ends], () => [el('h2', {}, `Host ${host.id} `, badge(host.state)),
        ends ? el('span', { class: 'muted small' }, ends) : null,
        host.state === 'left' ? null : el('span', { class: 'muted small' }, `shared memory: ${bytes(total - free)} of ${bytes(total)} used${total > 0 ? ` (${percent((total - free) / total)})` : ''}`)]);
      const old = new Map([...cards.children].map((card) => [card.dataset.device, card]));
      const made = host.devices.map((device) => {
        const worker = workers.find((one) => one.host === host.id && one.device === device.id);
        const card = old.get(device.id) ?? el('div', { 'data-device': device.id });
        // The strip moves all the time, so it is the only part that is always made anew.
        show(card, [device, worker ?? null, nameOfFingerprint(worker?.fingerprint), worker?.run ? nameOfRun(worker.run) : null], () => deviceCard(host, device, worker));
        const moving = card.querySelector('.strip');
        if (moving && worker) {
          const seconds = shownSeconds(host.id, worker);
          moving.replaceWith(strip(host.id, worker, seconds));
          card.querySelector('.since').textContent = `${ago(seconds)} ago`;
        }
        return card;
      });
      if (made.length !== cards.children.length || made.some((card, index) => card !== cards.children[index])) cards.replaceChildren(...made);
      return node;
    });
    if (nodes.length !== this.#hosts.children.length || nodes.some((node, index) => node !== this.#hosts.children[index])) this.#hosts.replaceChildren(...nodes);
  }
}

export function openFleet(main) {
  const view = new FleetView(main);
  view.load();
  loadRuns({ limit: kNamed }).then(() => view.load(), () => {});  // names of staged checkpoints
  const timer = setInterval(() => view.load(), kPollMs);
  const off = onChange((ids) => ids.has('') && view.load());
  return () => {
    clearInterval(timer);
    off();
  };
}
