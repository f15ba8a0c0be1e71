// What people wrote about a run: its title, tags and note.

import { openDialog } from './dialogs.js';
import { el } from './dom.js';

const kTagsMax = 20;
const kTagLengthMax = 50;

export function tagsOf(run) {
  return (run.tags ?? []).length === 0 ? null : el('ul', { class: 'tags', 'aria-label': 'Tags' }, run.tags.map((tag) => el('li', {}, tag)));
}

/** What a run's head shows below its name. */
export function labelsOf(run) {
  return [run.title && run.title !== run.name ? el('p', { class: 'muted small' }, run.name) : null, tagsOf(run), run.note ? el('p', { class: 'run-note' }, run.note) : null];
}

const tagsIn = (text) => [...new Set(text.split(',').map((tag) => tag.trim()).filter(Boolean))];

/** Asks for a run's labels. {title, tags, note}, or null if the dialog was dismissed. */
export function askLabels(run) {
  return openDialog('Name, tags and note', (close) => {
    const title = el('input', { type: 'text', maxlength: 200, value: run.title ?? '', placeholder: run.name, autofocus: true });
    const tags = el('input', { type: 'text', value: (run.tags ?? []).join(', '), placeholder: 'baseline, seed 2' });
    const note = el('input', { type: 'text', maxlength: 2000, value: run.note ?? '' });
    const send = (event) => {
      event.preventDefault();
      const list = tagsIn(tags.value);
      const problem = list.length > kTagsMax ? `At most ${kTagsMax} tags.` : list.some((tag) => [...tag].length > kTagLengthMax) ? `A tag has at most ${kTagLengthMax} characters.` : '';
      tags.setCustomValidity(problem);
      if (tags.reportValidity()) close({ title: title.value.trim(), tags: list, note: note.value.trim() });
    };
    tags.addEventListener('input', () => tags.setCustomValidity(''));
    return el('form', { onsubmit: send },
      el('label', {}, 'Name', title), el('label', {}, 'Tags, with commas between them', tags), el('label', {}, 'Note', note),
      el('div', { class: 'buttons' }, el('button', { type: 'button', onclick: () => close(null) }, 'Leave it'),
        el('button', { type: 'submit', class: 'primary' }, 'Keep it')));
  });
}
