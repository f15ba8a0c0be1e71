// Which documents of a task are right and which are wrong, and how many of two runs differ.

import { get, runPath } from './api.js';

/** {filters, marks, soFar}: all filters of the task, and for one of them a map from document to 'r', 'w' or '-'.
 * `soFar` is {scored, documents} of a task at work, else null. */
export async function loadMarks(run, task, filter) {
  const marks = new Map();
  let filters = [];
  let cursor = '';
  let soFar = null;
  do {
    const page = await get(runPath(run, 'marks', task), { filter, cursor });
    filters = page.filters;
    soFar = page.so_far;
    page.documents.forEach((document, index) => marks.set(document, page.marks[index]));
    cursor = page.next;
  } while (cursor !== null);
  return { filters, marks, soFar };
}

/** The number of documents of each choice of one run (kShownOfOne). */
export function countsOfOne(marks) {
  const counts = { all: marks.size, right: 0, wrong: 0 };
  for (const mark of marks.values()) {
    if (mark === 'r') ++counts.right;
    if (mark === 'w') ++counts.wrong;
  }
  return counts;
}

const kNames = { rr: 'both-right', ww: 'both-wrong', rw: 'lost', wr: 'gained' };

/** The number of documents of each choice of two runs (kShown). Only "all" counts documents that one of them
 * lacks, or that are neither right nor wrong. */
export function countsOfTwo(left, right) {
  const counts = { lost: 0, gained: 0, 'both-wrong': 0, 'both-right': 0, all: new Set([...left.keys(), ...right.keys()]).size };
  for (const [document, mark] of left) {
    const name = kNames[mark + (right.get(document) ?? '')];
    if (name) ++counts[name];
  }
  return { differ: counts.lost + counts.gained, ...counts };
}
