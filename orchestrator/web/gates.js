// A run's verdict: the condition of each gate and its outcome (docs/gates.md).

import { el } from './dom.js';
import { count, number } from './format.js';
import { badge, exitMeaning } from './states.js';
import { Table } from './table.js';

const interval = (gate) => (typeof gate.lower === 'number'
  ? `${number(gate.drop)} (${number(gate.lower)} to ${number(gate.upper)})` : '\u2013');

const kColumns = [
  { label: 'Gate', header: true, class: 'breaks', value: (gate) => gate.name,
    cell: (gate) => [gate.name, gate.cause ? el('div', { class: 'small muted' }, gate.cause) : null] },
  { label: 'Outcome', value: (gate) => gate.outcome, cell: (gate) => badge(gate.outcome) },
  { label: 'Rule', class: 'wide', value: (gate) => gate.rule,
    cell: (gate) => [el('span', { class: 'whole' }, gate.rule), el('div', { class: 'small muted' }, gate.tier)] },
  { label: 'Value', class: 'number', value: (gate) => gate.candidate, cell: (gate) => number(gate.candidate) },
  { label: 'Baseline', class: 'number wide', value: (gate) => gate.baseline, cell: (gate) => number(gate.baseline) },
  { label: 'Drop (interval)', class: 'number wide', value: (gate) => gate.drop, cell: interval },
  { label: 'Lost, gained', class: 'number wide', value: (gate) => gate.lost,
    cell: (gate) => (typeof gate.lost === 'number' ? `${count(gate.lost)}, ${count(gate.gained)}` : '\u2013') },
];

/** Nodes for a verdict.json. */
export function gatesOf(verdict) {
  const table = new Table({ caption: 'Gates: a drop is positive if the run is worse than its baseline', columns: kColumns,
    idOf: (gate) => gate.name });
  table.setRows(verdict.gates ?? []);
  return [
    el('p', { class: 'above' }, badge(verdict.status), ` ${verdict.summary ?? ''}`,
      verdict.baseline ? el('span', { class: 'muted' }, ` against ${verdict.baseline}`) : null,
      el('span', { class: 'muted' }, ` (exit status ${verdict.exit_status}: ${exitMeaning(verdict.exit_status)})`)),
    (verdict.gates ?? []).length > 0 ? table.node : null,
  ];
}
