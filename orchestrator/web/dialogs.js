// Dialogs: the browser's own element, which keeps the focus inside and gives it back when it
// closes.

import { el, freshId } from './dom.js';

/** Opens a dialog. Resolves with the argument of `close`, or null if the dialog was dismissed. `build(close)`
 * returns the content. */
export function openDialog(title, build) {
  return new Promise((resolve) => {
    const id = freshId('dialog');
    let answer = null;
    const dialog = el('dialog', { 'aria-labelledby': id });
    const close = (value) => {
      answer = value;
      dialog.close();
    };
    dialog.append(el('div', { class: 'stack' }, el('h2', { id }, title), build(close)));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function dialogIsOpen() {
  return document.querySelector('dialog[open]') !== null;
}

/** Asks before an action that cannot be undone. True if the person agrees. */
export async function confirmed(title, text, action) {
  return (await openDialog(title, (close) => [
    el('p', {}, text),
    el('div', { class: 'buttons' },
      el('button', { type: 'button', autofocus: true, onclick: () => close(false) }, 'Leave it'),
      el('button', { type: 'button', class: 'danger', onclick: () => close(true) }, action)),
  ])) === true;
}
