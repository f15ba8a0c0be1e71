// Files made of what the page shows: CSV, SVG and PNG. They are made here and go nowhere else.

import { svg } from './dom.js';

const kDrawn = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-size', 'font-family', 'text-anchor'];
const kScale = 2;  // pixels of a PNG for each of the picture
const kMargin = 16;
const kTitle = 26;

export function download(name, type, data) {
  const url = URL.createObjectURL(new Blob([data], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// A value that a spreadsheet would take for a formula begins with an apostrophe.
function cell(value) {
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(String(value ?? '')) ? `'${value}` : String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows of values as CSV (RFC 4180). */
export function csvOf(rows) {
  return rows.map((row) => row.map(cell).join(',')).join('\r\n') + '\r\n';
}

/** A name for a file: letters, digits and dashes of `text`. */
export const fileName = (text, ending) => `${text.replaceAll(/[^\p{L}\p{N}._-]+/gu, '-').replace(/^-+/, '')}.${ending}`;

const shapesOf = (picture) => [...picture.querySelectorAll('path, line, rect, circle, text')].filter((node) => !node.classList.contains('halo'));

/** The picture as an SVG file of its own: with its colours as they are now, and without links. */
export function svgText(picture, title) {
  const [, , width, height] = picture.getAttribute('viewBox').split(' ').map(Number);
  const copy = svg('svg', { viewBox: `${-kMargin} ${-kTitle - kMargin / 2} ${width + 2 * kMargin} ${height + kTitle + kMargin}` });
  const ground = svg('rect', { x: -kMargin, y: -kTitle - kMargin / 2, width: width + 2 * kMargin, height: height + kTitle + kMargin, fill: groundOf(picture) });
  const style = getComputedStyle(picture.closest('figure') ?? picture);
  const head = svg('text', { x: 0, y: -8, fill: style.color, 'font-size': '14px', 'font-weight': '600', 'font-family': style.fontFamily }, title);
  copy.append(ground, head);
  for (const shape of shapesOf(picture)) {
    const plain = shape.cloneNode(false);
    if (shape.tagName === 'text') plain.textContent = shape.textContent;
    const computed = getComputedStyle(shape);
    for (const name of kDrawn) if (computed.getPropertyValue(name)) plain.setAttribute(name, computed.getPropertyValue(name));
    plain.removeAttribute('class');
    plain.removeAttribute('aria-hidden');
    copy.append(plain);
  }
  return new XMLSerializer().serializeToString(copy);
}

const groundOf = (picture) => getComputedStyle(picture.closest('.panel') ?? document.body).backgroundColor;

// Draws one shape of an SVG as it is shown.
function drawShape(context, shape) {
  const style = getComputedStyle(shape);
  const at = (name) => Number(shape.getAttribute(name) ?? 0);
  context.globalAlpha = Number(style.opacity);
  if (shape.tagName === 'text') {
    context.fillStyle = style.fill;
    context.font = `${style.fontSize} ${style.fontFamily}`;
    context.textAlign = { middle: 'center', end: 'right' }[style.textAnchor] ?? 'left';
    context.fillText(shape.textContent, at('x'), at('y'));
    return;
  }
  const path = shape.tagName === 'path' ? new Path2D(shape.getAttribute('d')) : new Path2D();
  if (shape.tagName === 'line') {
    path.moveTo(at('x1'), at('y1'));
    path.lineTo(at('x2'), at('y2'));
  }
  if (shape.tagName === 'rect') path.rect(at('x'), at('y'), at('width'), at('height'));
  if (shape.tagName === 'circle') path.arc(at('cx'), at('cy'), at('r'), 0, 2 * Math.PI);
  if (style.fill !== 'none' && shape.tagName !== 'line') {
    context.fillStyle = style.fill;
    context.fill(path);
  }
  if (style.stroke === 'none') return;
  context.strokeStyle = style.stroke;
  context.lineWidth = parseFloat(style.strokeWidth);
  context.lineJoin = 'round';
  context.setLineDash(style.strokeDasharray === 'none' ? [] : style.strokeDasharray.split(/[ ,]+/).map(parseFloat));
  context.stroke(path);
}

/** The picture as a PNG: a promise of a Blob. */
export function pngOf(picture, title) {
  const [, , width, height] = picture.getAttribute('viewBox').split(' ').map(Number);
  const canvas = document.createElement('canvas');
  canvas.width = (width + 2 * kMargin) * kScale;
  canvas.height = (height + kTitle + kMargin) * kScale;
  const context = canvas.getContext('2d');
  context.fillStyle = groundOf(picture);
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.scale(kScale, kScale);
  context.translate(kMargin, kTitle + kMargin / 2);
  const style = getComputedStyle(picture.closest('figure') ?? picture);
  context.fillStyle = style.color;
  context.font = `600 14px ${style.fontFamily}`;
  context.fillText(title, 0, -8);
  for (const shape of shapesOf(picture)) drawShape(context, shape);
  return new Promise((resolve) => canvas.toBlob(resolve, 'image/png'));
}
