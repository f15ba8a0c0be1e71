// One document with the answers of one or two runs.

import { el } from './dom.js';
import { number } from './format.js';
import { asText, said } from './text_block.js';
import { badge } from './states.js';

const kQuestionMax = 600;
const kEnds = { failed: 'failed', timeout: 'timed out', killed: 'was killed' };

/** Whether the answers are log-likelihoods of given continuations. */
const isChoice = (sample) => sample.continuations.length > 0
  && sample.answers.every((one) => Array.isArray(one?.[0]) && one[0].length === 2);

const answersOf = (sample) => sample.answers.flat().map(asText);

/** The thinking before the answer of this index, folded; null if there was none. */
function thinkingOf(sample, index) {
  const text = sample.thinking ? asText(sample.thinking.flat()[index] ?? '') : '';
  return text === '' ? null : el('details', {}, el('summary', {}, 'The thinking before the answer'), said(text));
}

function choices(sample) {
  const values = sample.answers.map((one) => Number(one[0][0]));
  const best = values.indexOf(Math.max(...values));
  const target = Number.isInteger(Number(sample.target)) ? Number(sample.target) : -1;
  return el('table', { class: 'choices' },
    el('caption', { class: 'unseen' }, 'Log-likelihood of each choice'),
    el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Choice'), el('th', { scope: 'col', class: 'number' }, 'Log-likelihood'),
      el('th', { scope: 'col' }, el('span', { class: 'unseen' }, 'Notes')))),
    el('tbody', {}, values.map((value, index) => el('tr', { class: index === best ? 'chosen' : null },
      el('th', { scope: 'row', class: 'breaks' }, sample.continuations[index] ?? `choice ${index}`),
      el('td', { class: 'number' }, number(value)),
      el('td', {}, [index === best ? 'chosen' : null, index === target ? 'the answer' : null].filter(Boolean).join(', '))))));
}

/** How the programs of a sample ended: a list of {status, detail}; empty if it is no code. */
function programsOf(sample) {
  return [sample.detail?.[sample.filter] ?? []].flat(Infinity).filter((one) => typeof one?.status === 'string');
}

function failuresOf(programs) {
  const several = programs.length > 1;
  return programs.map((program, index) => (program.status === 'passed' ? null : el('div', { class: 'failure' },
    el('p', { class: 'small' }, el('strong', {}, several ? `Program ${index + 1} ` : 'The program ', kEnds[program.status] ?? program.status)),
    program.detail && program.detail !== kEnds[program.status] ? el('pre', { class: 'said error' }, String(program.detail).replace(/^failed: /, '')) : null,
    program.output ? [el('p', { class: 'small muted' }, 'It had printed'), said(program.output)] : null)));
}

const isTruncated = (sample, index) => (sample.truncated ?? []).flat()[index] === true;

function scoresOf(sample) {
  return Object.entries(sample.scores).map(([name, value]) => `${name} ${typeof value === 'number' ? number(value) : asText(value)}`).join(' \u00b7 ');
}

function side(name, sample, other) {
  if (!sample) return el('div', { class: 'side' }, el('div', { class: 'side-head' }, el('strong', {}, name)), el('p', { class: 'muted' }, 'This run did not evaluate the document.'));
  const programs = programsOf(sample);
  const others = other && !isChoice(other) ? answersOf(other) : [];
  const body = isChoice(sample) ? choices(sample)
    : answersOf(sample).map((text, index) => [thinkingOf(sample, index), said(text, other ? others[index] ?? '' : null, programs.length > 0),
      isTruncated(sample, index) ? el('p', { class: 'small' }, badge('cut off'), el('span', { class: 'muted' }, ' ran into max_gen_toks')) : null]);
  const filtered = sample.filtered === null || isChoice(sample) ? null : asText([sample.filtered].flat(2).length === 1 ? [sample.filtered].flat(2)[0] : sample.filtered);
  const same = filtered !== null && answersOf(sample).some((text) => text.trim() === filtered.trim());
  return el('div', { class: 'side' },
    el('div', { class: 'side-head' }, el('strong', {}, name), sample.correct === null ? null : badge(sample.correct ? 'right' : 'wrong'),
      el('span', { class: 'muted small' }, scoresOf(sample))),
    body,
    failuresOf(programs),
    filtered === null || same ? null : filtered.length <= 80
      ? el('p', { class: 'small' }, el('span', { class: 'muted' }, 'Taken as the answer: '), el('code', {}, filtered))
      : el('details', {}, el('summary', {}, 'What was scored'), said(filtered, null, programs.length > 0)));
}

// The part of the prompt that belongs to this document alone: the text after the last blank line.
function questionOf(prompt) {
  const end = prompt.trimEnd();
  const start = Math.max(end.lastIndexOf('\n\n') + 2, 0);
  const text = (end.lastIndexOf('\n\n') < 0 ? end : end.slice(start));
  return text.length > kQuestionMax ? `\u2026${text.slice(-kQuestionMax)}` : text;
}

/** An article for {left, right}. `names` are the runs' names. */
export function sampleArticle(pair, names) {
  const one = pair.left ?? pair.right;
  const two = names.length > 1;
  const otherPrompt = two && pair.left && pair.right && pair.left.prompt !== pair.right.prompt ? pair.right.prompt : null;
  const otherDocument = two && pair.left && pair.right && JSON.stringify(pair.left.doc) !== JSON.stringify(pair.right.doc);
  const target = one.target === null || isChoice(one) ? null : asText(one.target);
  const isCode = [pair.left, pair.right].some((sample) => sample && programsOf(sample).length > 0);
  return el('article', { class: 'panel pair', 'data-step': true, tabindex: '-1', 'aria-label': `Document ${one.doc_id}` },
    el('header', {}, el('h2', {}, `Document ${one.doc_id}`),
      target !== null && target.length <= 60 && !target.includes('\n') ? el('span', { class: 'small' }, el('span', { class: 'muted' }, 'Expected: '), el('code', {}, target)) : null),
    otherDocument ? el('p', { class: 'note bad' }, 'The two runs have different documents under this number.') : null,
    one.prompt === null ? null : el('div', { class: isCode ? 'question code' : 'question' }, questionOf(one.prompt)),
    el('div', { class: 'folds' },
      one.prompt === null ? null : el('details', {}, el('summary', {}, otherPrompt === null ? 'The whole prompt' : 'The whole prompt, left'), said(one.prompt)),
      otherPrompt === null ? null : el('details', {}, el('summary', {}, 'The whole prompt, right: another one'), said(otherPrompt, one.prompt)),
      target !== null && (target.length > 60 || target.includes('\n')) ? el('details', {}, el('summary', {}, 'What was expected'), said(target)) : null),
    el('div', { class: two ? 'sides' : 'sides one' }, side(names[0], pair.left, two ? pair.right : null), two ? side(names[1], pair.right, pair.left) : null));
}
