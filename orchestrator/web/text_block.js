// A model's output as text. It is never markup. Long texts are cut until someone asks for the rest,
// and differences are marked.

import { codeRanges } from './code_text.js';
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

// The parts of `text` that `other` lacks: {begin, end}. These are words; if there are too many words, lines; and if
// there are too many lines, nothing.
function changedRanges(text, other) {
  if (other === null || other === text) return [];
  const [pieces, others] = [wordsOf, linesOf].map((cut) => [cut(text), cut(other)])
    .find((both) => both.every((list) => list.length <= kPiecesMax)) ?? [null, null];
  if (pieces === null) return [];
  const found = common(pieces, others);
  const same = (index) => found.has(index) || pieces[index].trim() === '';
  const ranges = [];
  for (let at = 0, index = 0; index < pieces.length; at += pieces[index].length, ++index) {
    if (same(index)) continue;
    if (ranges.at(-1)?.end === at) ranges.at(-1).end += pieces[index].length;
    else ranges.push({ begin: at, end: at + pieces[index].length });
  }
  return ranges;
}

// The text as nodes: what changed is marked, words of code have their colours.
function nodesOf(text, changed, code) {
  const cuts = [...new Set([0, text.length, ...[...changed, ...code].flatMap(({ begin, end }) => [begin, end])])].sort((a, b) => a - b);
  let [mark, word] = [0, 0];
  const nodes = [];
  for (let index = 0; index + 1 < cuts.length; ++index) {
    const begin = cuts[index];
    while (changed[mark]?.end <= begin) ++mark;
    while (code[word]?.end <= begin) ++word;
    const piece = text.slice(begin, cuts[index + 1]);
    const kind = code[word]?.begin <= begin ? code[word].kind : null;
    const node = kind === null ? piece : el('span', { class: `code-${kind}` }, piece);
    const within = changed[mark]?.begin <= begin;
    if (within && nodes.at(-1)?.tagName === 'MARK' && changed[mark].begin !== begin) nodes.at(-1).append(node);
    else nodes.push(within ? el('mark', {}, node) : node);
  }
  return nodes;
}

/** `text` in a block. Words that are not in `other` are marked; if `other` is null, none is. `code`: all of the
 * text is code, and not only what stands between fences. */
export function said(text, other = null, code = false) {
  [text, other] = [visible(text), other === null ? null : visible(other)];
  if (text === '') return el('p', { class: 'said nothing' }, 'nothing');
  const node = el('pre', { class: 'said' });
  if (text.length <= kCut) {
    node.append(...nodesOf(text, changedRanges(text, other !== null && other.length <= kCut ? other : null), codeRanges(text, code)));
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
