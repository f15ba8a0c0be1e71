// States and outcomes as badges: a sign and a word, so that no meaning depends on colour.

import { el } from './dom.js';

const kStates = {
  queued: ['', '\u25cb'],
  preparing: ['active', '\u25d4'],
  running: ['active', '\u25b6'],
  paused: ['warn', '\u2016'],
  cancelling: ['warn', '\u2026'],
  done: ['good', '\u2713'],
  incomplete: ['bad', '!'],
  failed: ['bad', '\u2715'],
  cancelled: ['', '\u2013'],
  // gates and runs' verdicts
  pass: ['good', '\u2713'],
  fail: ['bad', '\u2715'],
  error: ['bad', '!'],
  inconclusive: ['warn', '?'],
  'not scored': ['bad', '!'],
  // workers
  working: ['active', '\u25b6'],
  idle: ['', '\u25cb'],
  starting: ['active', '\u25d4'],
  waiting: ['warn', '\u25d4'],
  loading: ['active', '\u25d4'],
  restarting: ['warn', '\u21bb'],
  'set aside': ['bad', '\u2715'],
  // jobs of launchers
  submitting: ['', '\u25cb'],
  submitted: ['', '\u25cb'],
  unknown: ['warn', '?'],
  ending: ['', '\u2026'],
  // hosts and documents
  connected: ['good', '\u2713'],
  away: ['bad', '!'],
  left: ['', '\u2013'],
  right: ['good', '\u2713'],
  wrong: ['bad', '\u2715'],
  'cut off': ['warn', '\u2026'],
  'so far': ['active', '\u25d4'],
};

export function badge(word) {
  const [kind, sign] = kStates[word] ?? ['', '\u2022'];
  return el('span', { class: `badge ${kind}` }, el('span', { 'aria-hidden': 'true' }, sign), word);
}

const kExits = {
  0: 'every gate met',
  1: 'a gate failed',
  2: 'configuration or input',
  3: 'incomplete, for a cause outside the model',
  4: 'inconclusive',
};
export const exitMeaning = (status) => kExits[status] ?? '';

/** A run's verdict in a word; null if it has no gates. Takes the word or verdict.json's object. */
export function verdictOf(run) {
  if (!run.verdict) return null;
  return typeof run.verdict === 'string' ? run.verdict : run.verdict.status ?? null;
}
