// Samples of two runs, document by document. Both files are in the order of their documents, so two
// cursors are enough for files of any length.

import { get, runPath } from './api.js';

const kPage = 50;

/** The samples of one run's task. Pages are loaded as they are needed. `correct`: true, false, or undefined
 * for both. */
export async function* samplesOf(run, task, filter, correct) {
  let cursor = '';
  do {
    const page = await get(runPath(run, 'samples', task), { filter, correct, limit: kPage, cursor });
    yield* page.samples;
    cursor = page.next;
  } while (cursor !== null);
}

/** {left, right} of equal doc_id. With `outer` also documents that one side lacks (null). */
async function* joined(left, right, outer) {
  let a = await left.next();
  let b = await right.next();
  while (!a.done || !b.done) {
    const order = a.done ? 1 : b.done ? -1 : a.value.doc_id - b.value.doc_id;
    if (order === 0) yield { left: a.value, right: b.value };
    else if (outer) yield order < 0 ? { left: a.value, right: null } : { left: null, right: b.value };
    else if (a.done || b.done) return;
    const nextA = order <= 0 ? left.next() : null;
    const nextB = order >= 0 ? right.next() : null;
    if (nextA) a = await nextA;
    if (nextB) b = await nextB;
  }
}

const docOf = (pair) => (pair.left ?? pair.right).doc_id;

// Merges two sequences of pairs in the order of their documents.
async function* merged(one, other) {
  let a = await one.next();
  let b = await other.next();
  while (!a.done || !b.done) {
    if (b.done || (!a.done && docOf(a.value) <= docOf(b.value))) {
      yield a.value;
      a = await one.next();
    } else {
      yield b.value;
      b = await other.next();
    }
  }
}

/** The choices of samples to look at, and their labels. */
export const kShown = {
  differ: 'lost or gained',
  lost: 'lost',
  gained: 'gained',
  'both-wrong': 'both wrong',
  'both-right': 'both right',
  all: 'all documents',
};
/** What a choice means, where its label does not say it. */
export const kMeant = {
  differ: 'one right, one wrong',
  lost: 'the left one is right, the right one is wrong',
  gained: 'the left one is wrong, the right one is right',
};
export const kShownOfOne = { all: 'all documents', wrong: 'wrong ones', right: 'right ones' };

/** Pairs of samples. If `b` is null, each pair has only a left side. */
export function pairsOf(a, b, task, filter, shown) {
  const left = (correct) => samplesOf(a, task, filter, correct);
  const right = (correct) => samplesOf(b, task, filter, correct);
  if (b === null) {
    return joined(left(shown === 'all' ? undefined : shown === 'right'), (async function* none() {})(), true);
  }
  switch (shown) {
    case 'lost': return joined(left(true), right(false), false);
    case 'gained': return joined(left(false), right(true), false);
    case 'both-wrong': return joined(left(false), right(false), false);
    case 'both-right': return joined(left(true), right(true), false);
    case 'all': return joined(left(undefined), right(undefined), true);
    default: return merged(joined(left(true), right(false), false), joined(left(false), right(true), false));
  }
}

const textsOf = (sample) => (sample ? [sample.prompt, sample.answers, sample.thinking, sample.filtered, sample.target, sample.continuations] : []);

function holds(value, wanted) {
  if (Array.isArray(value)) return value.some((one) => holds(one, wanted));
  return typeof value === 'string' && value.toLowerCase().includes(wanted);
}

/** Those of the pairs whose prompts, answers or targets hold `text`, in whatever case. `onRead` is called for
 * each pair that is read. */
export async function* searched(pairs, text, onRead) {
  const wanted = text.toLowerCase();
  for await (const pair of pairs) {
    onRead();
    if (holds([textsOf(pair.left), textsOf(pair.right)], wanted)) yield pair;
  }
}
