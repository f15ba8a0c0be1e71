// Asks for the token if a server requires one.

import { openDialog } from './dialogs.js';
import { el } from './dom.js';

let asking = null;

/** The token that a person gives, or null. There is one dialog, however many requests wait for it. */
export function askToken(refused) {
  asking ??= openDialog('This server wants a token', (close) => {
    const input = el('input', { type: 'password', autocomplete: 'off', spellcheck: 'false', required: true, autofocus: true });
    return el('form', {
      onsubmit: (event) => {
        event.preventDefault();
        close(input.value.trim());
      },
    },
    refused ? el('p', { class: 'note bad', role: 'alert' }, 'That token is not known here.') : null,
    el('p', { class: 'muted' }, 'It is sent with each request and forgotten when this tab is closed.'),
    el('label', {}, 'Token', input),
    el('div', { class: 'buttons' },
      el('button', { type: 'button', onclick: () => close(null) }, 'Not now'),
      el('button', { type: 'submit', class: 'primary' }, 'Use it')));
  }).finally(() => {
    asking = null;
  });
  return asking;
}
