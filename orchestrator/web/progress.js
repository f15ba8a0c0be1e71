// The progress of a run: bars with their numbers.

import { el } from './dom.js';
import { bytes, count, duration, percent } from './format.js';

/** The progress of the whole run, 0 to 1. Generation counts half and scoring counts half. */
export function shareOf(run) {
  const { documents, generated, scored } = run.progress;
  return documents > 0 ? (generated + scored) / (2 * documents) : 0;
}

export function bar(label, done, total, kind) {
  return el('progress', { 'aria-label': label, max: total > 0 ? total : 1, value: total > 0 ? Math.min(done, total) : 0, class: kind });
}

/** "42.5 documents/s, about 16 s left". */
export function rateOf(run) {
  const { documents_per_second: rate, remaining_seconds: left } = run.progress;
  const parts = [];
  if (rate) parts.push(`${rate < 100 ? rate.toFixed(1) : count(Math.round(rate))} documents/s`);
  if (typeof left === 'number') parts.push(`about ${duration(left)} left`);
  return parts.join(', ');
}

export function percentOf(run) {
  return percent(Math.floor(shareOf(run) * 100) / 100);
}

const amount = (phase, value) => (phase.unit === 'bytes' ? bytes(value) : count(value));

/** A phase in one line and a bar. Its rate stands above all phases (rateOf). */
export function phaseRow(phase) {
  const note = / documents\/s$/.test(phase.note) ? '' : phase.note;
  const of = phase.total > 0 ? `${amount(phase, phase.done)} of ${amount(phase, phase.total)}` : amount(phase, phase.done);
  const unit = phase.unit === 'bytes' ? '' : ` ${phase.unit}`;
  return el('div', {},
    el('div', { class: 'spread small' }, el('span', {}, phase.name),
      el('span', { class: 'muted' }, `${of}${unit}${note ? ` \u00b7 ${note}` : ''}`)),
    bar(phase.name, phase.done, phase.total, phase.total > 0 && phase.done >= phase.total ? 'good' : null));
}
