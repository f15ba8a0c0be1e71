// Groups of tasks: a tree of names, and the rows of it that are open.

import { breakable, el } from './dom.js';
import { plural } from './format.js';

/** The trees of `tasks` under `groups` ({group: [tasks and groups in it]}): nodes {name, group, children,
 * leaves} in the order of their first tasks. A task in several groups stands in the first of them, and a
 * group without tasks is left out. */
export function forest(tasks, groups) {
  const parents = parentsIn(groups);
  const nodes = new Map();
  const roots = [];
  const nodeOf = (name, group) => {
    if (nodes.has(name)) return nodes.get(name);
    const node = { name, group, children: [], leaves: [] };
    nodes.set(name, node);
    (parents.has(name) ? nodeOf(parents.get(name), true).children : roots).push(node);
    return node;
  };
  for (const task of tasks) {
    nodeOf(task, false);
    for (let name = task; name !== undefined; name = parents.get(name)) nodes.get(name).leaves.push(task);
  }
  return roots;
}

// The first group of each name. A link that would close a circle is left out.
function parentsIn(groups) {
  const parents = new Map();
  const isBelow = (name, other) => {
    for (let at = name; at !== undefined; at = parents.get(at)) if (at === other) return true;
    return false;
  };
  for (const [group, children] of Object.entries(groups)) {
    for (const child of children) if (!parents.has(child) && !isBelow(group, child)) parents.set(child, group);
  }
  return parents;
}

/** The groups of several runs as one. */
export function mergedGroups(runs) {
  const all = {};
  for (const run of runs) {
    for (const [group, children] of Object.entries(run.groups ?? {})) all[group] = [...new Set([...(all[group] ?? []), ...children])];
  }
  return all;
}

// The groups that a person has opened or closed, for as long as the page lives.
const chosen = new Map();

/** The nodes to show, each with its depth, whether it is open, and the nodes above it: {node, depth, open,
 * above}. A text leaves the names that hold it, and what is above and below these. */
export function openNodes(roots, text = '') {
  const wanted = text.trim().toLowerCase();
  const has = (node) => node.name.toLowerCase().includes(wanted);
  const holds = (node) => has(node) || node.children.some(holds);
  const found = [];
  const visit = (node, above, within) => {
    if (!within && !holds(node)) return;
    const lone = roots.length === 1 && above.length === 0;
    const searched = wanted !== '' && !within && !has(node);
    const open = node.group && (searched || (chosen.get(node.name) ?? lone));
    found.push({ node, depth: above.length, open, above });
    if (open) for (const child of node.children) visit(child, [...above, node], within || has(node));
  };
  for (const root of roots) visit(root, [], wanted === '');
  return found;
}

export function setOpen(name, open) {
  chosen.set(name, open);
}

/** The name of a row: of a group as a button that opens it. `changed` is called after that. */
export function nameCell({ node, depth, open }, changed) {
  const level = `level-${Math.min(depth, 4)}`;
  if (!node.group) return el('span', { class: `leaf ${level}` }, breakable(node.name));
  return el('button', { type: 'button', class: `tree ${level}`, 'aria-expanded': String(open), 'data-group': node.name,
    onclick: () => {
      setOpen(node.name, !open);
      changed();
    } }, el('span', {}, breakable(node.name), ' ', el('span', { class: 'muted small whole' }, plural(node.leaves.length, 'task'))));
}

/** A field that filters names. */
export function nameFilter(value, changed) {
  return el('label', {}, 'Filter by name', el('input', { type: 'search', value, 'data-key': 'filter', autocomplete: 'off', spellcheck: 'false',
    oninput: (event) => changed(event.target.value) }));
}

/** Options for tasks, those of a group under its name. */
export function taskOptions(tasks, groups, option) {
  return forest(tasks, groups).map((node) => (node.group ? el('optgroup', { label: node.name }, node.leaves.map(option)) : option(node.name)));
}
