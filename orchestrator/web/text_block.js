// A model's output as text. It is never markup. Long texts are cut until someone asks for the rest,
// and differences are marked.

import { el, visible } from './dom.js';
import { count } from './format.js';

const kCut = 4000;
const kPiecesMax = 800;

// Which of `pieces` are in `other` too, in the same order (longest common subsequence).
function common(pieces, other) {
  const rows = pieces.length, columns = other.length;
  const length = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1));
  for (let i = rows - 1; i >= 0; --i) {
    for (let j = columns - 1; j >= 0; --j) {
      length[i][j] = pieces[i] === other[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = new Set();
  for (let i = 0, j = 0; i < rows && j < columns;) {
    if (pieces[i] === other[j]) {
      found.add(i++);
      ++j;
    } else if (length[i + 1][j] >= length[i][j + 1]) ++i;
    else ++j;
  }
  return found;
}

const wordsOf = (text) => text.match(/[\p{L}\p{N}_.]+|\s+|[^\s]/gu) ?? [];
const linesOf = (text) => text.match(/[^\n]*\n|[^\n]+/g) ?? [];

// Marks the words of `text` that `other` lacks. If there are too many words it marks lines, and if there are too
// many lines it marks nothing.
function marked(text, other) {
  if (other === null || other === text) return [text];
  const [pieces, others] = [wordsOf, linesOf].map((cut) => [cut(text), cut(other)])
    .find((both) => both.every((list) => list.length <= kPiecesMax)) ?? [null, null];
  if (pieces === null) return [text];
  const found = common(pieces, others);
  const same = (index) => found.has(index) || pieces[index].trim() === '';
  const nodes = [];
  for (let begin = 0, end = 0; begin < pieces.length; begin = end) {
    while (end < pieces.length && same(end) === same(begin)) ++end;
    const run = pieces.slice(begin, end).join('');
    nodes.push(same(begin) ? run : el('mark', {}, run));
  }
  return nodes;
}

/** `text` in a block. Words that are not in `other` are marked; if `other` is null, none is. */
export function said(text, other = null) {
  [text, other] = [visible(text), other === null ? null : visible(other)];
  if (text === '') return el('p', { class: 'said nothing' }, 'nothing');
  const node = el('pre', { class: 'said' });
  if (text.length <= kCut) {
    node.append(...marked(text, other !== null && other.length <= kCut ? other : null));
    return node;
  }
  node.append(text.slice(0, kCut), '\u2026');
  const more = el('button', { type: 'button', onclick: () => {
    node.replaceChildren(text);
    more.remove();
  } }, `Show all ${count(text.length)} characters`);
  return [node, el('div', {}, more)];
}

/** Any JSON value as text. */
export function asText(value) {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 1);
}
