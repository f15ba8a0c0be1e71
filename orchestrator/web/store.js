// The runs that the page has seen, updated by the service's events.

import { get, runPath } from './api.js';
import { follow } from './events.js';

const kBatchMs = 200;
const kRefreshMs = 400;
const kOver = new Set(['done', 'incomplete', 'failed', 'cancelled']);

const runs = new Map();
const listeners = new Set();
let changed = new Set();
let batch = 0;
const refreshing = new Map();

export const isOver = (run) => kOver.has(run.state);
export const runOf = (id) => runs.get(id);

/** The name of a checkpoint in the runs seen, or null. */
export function nameOfFingerprint(fingerprint) {
  for (const run of runs.values()) if (fingerprint && run.fingerprint === fingerprint) return run.name;
  return null;
}

/** Calls `listener(ids)` a moment after runs changed. An id "" means that the workers changed. Returns a
 * function that ends the calls. */
export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function touch(id) {
  changed.add(id);
  batch ||= setTimeout(() => {
    batch = 0;
    const ids = changed;
    changed = new Set();
    for (const listener of [...listeners]) listener(ids);
  }, kBatchMs);
}

/** Keeps `run`. Returns the kept object, which stays the same one for each run. */
export function keep(run) {
  const known = runs.get(run.id);
  if (known) Object.assign(known, run);
  else runs.set(run.id, run);
  touch(run.id);
  return runs.get(run.id);
}

export async function loadRun(id) {
  return keep(await get(runPath(id)));
}

/** A page of runs, newest first: {runs, next}. */
export async function loadRuns(parameters) {
  const page = await get('/v1/runs', parameters);
  return { runs: page.runs.map(keep), next: page.next };
}

// Several events of one run cost one request.
function refresh(id) {
  if (refreshing.has(id)) return;
  refreshing.set(id, setTimeout(async () => {
    refreshing.delete(id);
    try {
      await loadRun(id);
    } catch {
      // The next event tries again.
    }
  }, kRefreshMs));
}

function onEvent(event) {
  if (!event.run) return touch('');
  const run = runs.get(event.run);
  if (run && event.type === 'run.progress' && !isOver(run)) run.progress = event.data;
  if (run && event.type === 'run.state') run.state = event.data.state;
  if (event.type !== 'run.progress' || !run) refresh(event.run);
  if (run) touch(event.run);
}

/** Follows the service from now on. `onState` as in follow(). */
export function startFollowing(onState) {
  follow('/v1/events', onEvent, (state, fresh) => {
    if (state === 'live' && fresh) {
      for (const run of runs.values()) if (!isOver(run)) refresh(run.id);
    }
    onState(state);
  });
}
