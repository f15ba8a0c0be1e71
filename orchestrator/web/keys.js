// Single keys. They have no effect while a person types or a dialog is open, and a person can
// switch them off.

import { dialogIsOpen, openDialog } from './dialogs.js';
import { el } from './dom.js';

const kKey = 'evald.keys';
const kHelp = [
  ['1, 2, 3, 4', 'runs, checkpoints, samples, fleet'],
  ['j, k', 'next, previous run or sample'],
  ['Enter', 'open the run'],
  ['n, p', 'next, previous page'],
  ['/', 'to the filter or the search'],
  ['t', 'light, dark or as the system says'],
  ['\u2190, \u2192', 'in a chart: from point to point; in a timeline: earlier, later'],
  ['\u2191, \u2193', 'in a chart: from line to line'],
  ['+, \u2212, 0', 'in a timeline: nearer, farther, whole'],
  ['?', 'these keys'],
];

function enabled() {
  try {
    return localStorage.getItem(kKey) !== 'off';
  } catch {
    return true;
  }
}

function setEnabled(on) {
  try {
    localStorage.setItem(kKey, on ? 'on' : 'off');
  } catch {
    // Storage is forbidden: the keys stay on.
  }
}

function showHelp() {
  openDialog('Keys', (close) => [
    el('table', {}, el('caption', { class: 'unseen' }, 'Keys and what they do'),
      el('tbody', {}, kHelp.map(([keys, what]) => el('tr', {},
        el('th', { scope: 'row' }, keys.split(', ').map((key, index) => [index ? ' ' : '', el('kbd', {}, key)])),
        el('td', {}, what))))),
    el('label', {}, el('input', { type: 'checkbox', checked: enabled(), onchange: (event) => setEnabled(event.target.checked) }),
      'Single keys are on'),
    el('div', { class: 'buttons' }, el('button', { type: 'button', autofocus: true, onclick: () => close(null) }, 'Close')),
  ]);
}

// Elements to step through are marked with data-step: links of runs, samples.
function step(by) {
  const stops = [...document.querySelectorAll('main [data-step]')].filter((stop) => stop.getClientRects().length > 0);
  if (stops.length === 0) return;
  const at = stops.findIndex((stop) => stop === document.activeElement || stop.contains(document.activeElement));
  const next = stops[at < 0 ? (by > 0 ? 0 : stops.length - 1) : Math.min(stops.length - 1, Math.max(0, at + by))];
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: 'nearest' });
}

function press(selector) {
  const button = document.querySelector(selector);
  if (button && !button.disabled) button.click();
}

const kActions = {
  1: () => { location.hash = '#/'; },
  2: () => { location.hash = '#/checkpoints'; },
  3: () => { location.hash = '#/samples'; },
  4: () => { location.hash = '#/fleet'; },
  j: () => step(1),
  k: () => step(-1),
  n: () => press('main [data-key="next"]'),
  p: () => press('main [data-key="previous"]'),
  '/': () => document.querySelector('main [data-key="filter"]')?.focus(),
  t: () => press('#theme'),
  '?': showHelp,
};

export function startKeys() {
  document.getElementById('help').addEventListener('click', showHelp);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented || dialogIsOpen()) return;
    if (event.target.closest('input, select, textarea, [contenteditable]') || !enabled()) return;
    if (!Object.hasOwn(kActions, event.key)) return;
    event.preventDefault();
    kActions[event.key]();
  });
}
