// Dialogs: the browser's own element, which keeps the focus inside and gives it back.

import { el, freshId } from './dom.js';

/** Opens a dialog and resolves with what `close` was called with, null when it was dismissed.
 * `build(close)` gives the content. */
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

/** Asks before something that cannot be undone; true when it shall be done. */
export async function confirmed(title, text, action) {
  return (await openDialog(title, (close) => [
    el('p', {}, text),
    el('div', { class: 'buttons' },
      el('button', { type: 'button', autofocus: true, onclick: () => close(false) }, 'Leave it'),
      el('button', { type: 'button', class: 'danger', onclick: () => close(true) }, action)),
  ])) === true;
}
