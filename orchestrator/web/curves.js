// A task's scores over training steps, as a picture. Its points are links to their runs.

import { el, freshId, svg, visible } from './dom.js';
import { count, number, score } from './format.js';
import { linkTo } from './router.js';
import { niceTicks } from './ticks.js';

const kWidth = 360;
const kHeight = 190;
const kLeft = 40;
const kRight = 12;
const kTop = 10;
const kBottom = 24;
const kDenseFrom = 40;  // from this many points on, a band replaces their error bars

function rangeOf(points) {
  const low = Math.min(...points.map((point) => point.entry.value - (point.entry.stderr ?? 0)));
  const high = Math.max(...points.map((point) => point.entry.value + (point.entry.stderr ?? 0)));
  const shares = points.every((point) => point.entry.value >= 0 && point.entry.value <= 1);
  if (shares) return [0, 1];
  const margin = (high - low) * 0.08 || Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

function describe(points) {
  const best = points.reduce((a, b) => (b.entry.value > a.entry.value ? b : a));
  const say = (point) => `${number(point.entry.value)} at ${point.label}`;
  return `${points.length} checkpoints, from ${say(points[0])} to ${say(points.at(-1))}; highest ${say(best)}. The table has all values.`;
}

/** `points`: {x, label, entry, run} in order of x, at least one. */
export function curve(task, points) {
  const [low, high] = rangeOf(points);
  const first = points[0].x, last = points.at(-1).x;
  const x = (value) => (last > first ? kLeft + ((value - first) / (last - first)) * (kWidth - kLeft - kRight) : (kLeft + kWidth - kRight) / 2);
  const y = (value) => kHeight - kBottom - ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (kHeight - kTop - kBottom);
  const title = freshId('title'), desc = freshId('desc');
  const readout = el('p', { class: 'readout' });
  const say = (point) => {
    readout.textContent = visible(`${point.label}: ${score(point.entry)}`);
  };

  const picture = svg('svg', { class: 'chart', viewBox: `0 0 ${kWidth} ${kHeight}`, role: 'group', 'aria-labelledby': title, 'aria-describedby': desc },
    svg('title', { id: title }, `${task} over training steps`),
    svg('desc', { id: desc }, describe(points)));
  for (const tick of niceTicks(low, high, 4)) {
    picture.append(svg('line', { class: 'grid', x1: kLeft, x2: kWidth - kRight, y1: y(tick), y2: y(tick) }),
      svg('text', { x: kLeft - 7, y: y(tick) + 4, 'text-anchor': 'end', 'aria-hidden': 'true' }, String(tick)));
  }
  const labelled = points.length <= 5 ? points.map((point) => point.x) : niceTicks(first, last, 4);
  let free = -Infinity;  // end of the previous label
  for (const value of last > first ? labelled : [first]) {
    const text = points.find((point) => point.x === value)?.short ?? count(value);
    const half = text.length * 3.4;
    const at = Math.min(kWidth - half, Math.max(half, x(value)));
    if (at - half < free + 4) continue;
    free = at + half;
    picture.append(svg('text', { x: at, y: kHeight - 6, 'text-anchor': 'middle', 'aria-hidden': 'true' }, text));
  }
  const path = points.map((point, index) => `${index ? 'L' : 'M'}${x(point.x).toFixed(1)} ${y(point.entry.value).toFixed(1)}`).join('');
  picture.append(svg('path', { class: 'curve', d: path, 'aria-hidden': 'true' }));
  const dense = points.length >= kDenseFrom;
  if (dense) picture.append(svg('path', { class: 'band', d: bandOf(points, x, y), 'aria-hidden': 'true' }));
  const links = points.map((point, index) => {
    const at = x(point.x), error = point.entry.stderr ?? 0;
    return svg('a', { href: linkTo('run', [point.run.id]), tabindex: index === points.length - 1 ? '0' : '-1',
      'aria-label': `${point.label}: ${score(point.entry)}`, onfocus: () => say(point), onmouseenter: () => say(point), onmouseleave: () => say(points.at(-1)) },
    error > 0 && !dense ? svg('line', { class: 'whisker', x1: at, x2: at, y1: y(point.entry.value - error), y2: y(point.entry.value + error) }) : null,
    dense ? null : svg('circle', { class: 'halo', cx: at, cy: y(point.entry.value), r: 9 }),
    svg('circle', { class: 'point', cx: at, cy: y(point.entry.value), r: dense ? 2 : 4 }));
  });
  picture.append(...links);
  picture.addEventListener('keydown', (event) => rove(event, links));
  say(points.at(-1));
  return el('figure', { class: 'figure panel' },
    el('figcaption', {}, el('strong', {}, task), el('span', { class: 'muted small' }, points.at(-1).entry.metric)),
    picture, readout);
}

// One standard error on each side of the curve.
function bandOf(points, x, y) {
  const edge = (sign) => points.map(({ x: step, entry }) => `${x(step).toFixed(1)} ${y(entry.value + sign * (entry.stderr ?? 0)).toFixed(1)}`);
  return `M${edge(1).join('L')}L${edge(-1).reverse().join('L')}Z`;
}

// Each chart is one stop for Tab. Arrow keys go from point to point.
function rove(event, links) {
  const at = links.indexOf(document.activeElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: links.length - 1 }[event.key];
  if (at < 0 || to === undefined || !links[to]) return;
  event.preventDefault();
  links[at].setAttribute('tabindex', '-1');
  links[to].setAttribute('tabindex', '0');
  links[to].focus();
}
