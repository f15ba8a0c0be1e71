// Makes elements. Text only ever becomes text nodes: nothing here reads markup.

const kSvg = 'http://www.w3.org/2000/svg';

/** Text whose characters that change the direction of writing are spelled out, so that no name looks like
 * another. */
export function visible(text) {
  return text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);
}

const shownText = (child) => (typeof child === 'string' ? visible(child) : child);
const isShown = (child) => child !== null && child !== undefined && child !== false;

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : name === 'href' ? String(value) : visible(String(value)));
  }
  node.append(...children.flat(Infinity).filter(isShown).map(shownText));
  return node;
}

/** An HTML element. Strings among the children become text. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(kSvg, tag), attributes, children);
}

/** A name or a path that a narrow column breaks between its parts. */
export function breakable(text) {
  return text.split(/(?<=[_/.-])/).flatMap((part, index) => (index > 0 ? [el('wbr'), part] : [part]));
}

const shown = new WeakMap();

/** Puts the result of `build` into `node`, unless the last result there was for an equal `key`. So a focus or
 * a selection stays if nothing changed. A focus goes to the new element that does the same as the old one. */
export function show(node, key, build) {
  const text = JSON.stringify(key);
  if (shown.get(node) === text) return;
  shown.set(node, text);
  const focused = node.contains(document.activeElement) && node !== document.activeElement ? document.activeElement : null;
  node.replaceChildren(...[build()].flat(Infinity).filter(isShown).map(shownText));
  if (focused) [...node.querySelectorAll(focused.tagName)].find((other) => isSame(focused, other))?.focus({ preventScroll: true });
}

const isSame = (a, b) => ['data-group', 'data-key', 'href', 'aria-label'].every((name) => a.getAttribute(name) === b.getAttribute(name))
  && (a.tagName !== 'BUTTON' || a.hasAttribute('data-group') || a.textContent === b.textContent);

let counter = 0;
export function freshId(prefix) {
  return `${prefix}-${++counter}`;
}

let waiting = '';
let timer = 0;

/** Says `text` to screen readers, politely. Only the last of several texts within a second is said. */
export function announce(text) {
  waiting = text;
  if (timer) return;
  timer = setTimeout(() => {
    timer = 0;
    document.getElementById('announcer').textContent = visible(waiting);
  }, 1000);
}

/** The content of a place that has no data yet. */
export function empty(title, ...rest) {
  return el('div', { class: 'empty' }, el('strong', {}, title), ...rest);
}

/** An error: the failure and its remedy. */
export function problem(error) {
  return el('div', { class: 'note bad', role: 'alert' }, el('strong', {}, error.message || String(error)),
    error.remedy ? el('p', {}, error.remedy) : null);
}
