// Server-Sent Events over fetch(), since EventSource cannot send a token. After a lost connection
// the stream goes on after the last event seen.

import { send } from './api.js';

const kFirstWaitMs = 1_000;
const kLongestWaitMs = 30_000;
const kSilenceMs = 45_000;  // the service gives a sign of life every 15 s

/** Cuts a stream of text into events (https://html.spec.whatwg.org/multipage/server-sent-events.html). */
export class EventParser {
  #rest = '';
  #id = '';
  #type = '';
  #data = [];

  /** Returns the events that end in `text`: {id, type, data}. */
  push(text) {
    this.#rest += text;
    const lines = this.#rest.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop();
    const events = [];
    for (const line of lines) this.#line(line, events);
    return events;
  }

  #line(line, events) {
    if (line === '') {
      if (this.#data.length > 0) events.push({ id: this.#id, type: this.#type || 'message', data: this.#data.join('\n') });
      this.#type = '';
      this.#data = [];
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return;  // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id') this.#id = value;
    if (name === 'event') this.#type = value;
    if (name === 'data') this.#data.push(value);
  }
}

// A browser has six connections for all pages of one service together. A page that nobody looks at,
// or that is kept for the Back button, must not hold one.
const visible = () => document.visibilityState !== 'hidden';
const shown = () => (visible() ? Promise.resolve() : new Promise((resolve) => {
  document.addEventListener('visibilitychange', () => resolve(shown()), { once: true });
}));

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Follows `path` while the page is visible. `onEvent` gets each event's JSON. `onState` gets "connecting",
 * "live" or "lost", and whether events may be missing since the page was last live. */
export async function follow(path, onEvent, onState) {
  let last = '';
  let wait = kFirstWaitMs;
  for (;;) {
    await shown();
    const stop = new AbortController();
    const hide = () => visible() || stop.abort();
    document.addEventListener('visibilitychange', hide);
    let watchdog = 0;
    const alive = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => stop.abort(), kSilenceMs);
    };
    try {
      alive();
      const response = await send(path, { signal: stop.signal, cache: 'no-store', headers: last ? { 'Last-Event-ID': last } : {} });
      if (!response.ok) throw new Error(`the server answered ${response.status}`);
      onState('live', last === '');
      wait = kFirstWaitMs;
      const parser = new EventParser();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        alive();
        for (const event of parser.push(piece.value)) {
          if (event.id) last = event.id;
          onEvent(JSON.parse(event.data));
        }
      }
    } catch (error) {
      if (error.status === 401) return onState('lost');  // no token was given
    } finally {
      clearTimeout(watchdog);
      document.removeEventListener('visibilitychange', hide);
    }
    if (!visible()) {
      onState('connecting');
      continue;
    }
    onState('lost');
    await sleep(wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, kLongestWaitMs);
  }
}
