// The written form of values.

const kDash = '\u2013';

const kNotFinite = ['nan', 'inf', '-inf'];

export function number(value, digits = 3) {
  if (kNotFinite.includes(value)) return value;
  if (typeof value !== 'number' || !Number.isFinite(value)) return kDash;
  const text = Math.abs(value) >= 10000 ? value.toPrecision(6) : value.toFixed(digits);
  return Number(text) === 0 ? text.replace('-', '') : text;
}

/** `0.775 ± 0.047`; only the value if its standard error is unknown. */
export function score(entry) {
  if (!entry) return kDash;
  return typeof entry.stderr === 'number' ? `${number(entry.value)} \u00b1 ${number(entry.stderr)}` : number(entry.value);
}

export function count(value) {
  return typeof value === 'number' ? value.toLocaleString('en') : kDash;
}

export function plural(value, one, many = `${one}s`) {
  return `${count(value)} ${value === 1 ? one : many}`;
}

export function percent(share) {
  const value = share * 100;
  return `${value > 0 && value < 0.95 ? value.toFixed(1) : Math.round(value)}\u202f%`;
}

export function bytes(value) {
  if (typeof value !== 'number') return kDash;
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[unit]}`;
}

/** "4.2 s", "3 min 05 s", "2 h 10 min". */
export function duration(seconds) {
  if (typeof seconds !== 'number' || !Number.isFinite(seconds) || seconds < 0) return kDash;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  const two = (value) => String(value).padStart(2, '0');
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  return `${Math.floor(whole / 3600)} h ${two(Math.floor((whole % 3600) / 60))} min`;
}

export function took(run) {
  if (!run.started) return kDash;
  const end = run.ended ? Date.parse(run.ended) : Date.now();
  return duration(Math.max(0, (end - Date.parse(run.started)) / 1000));
}

/** Local time. A time of today without a date, others with their date. */
export function time(text) {
  if (!text) return kDash;
  const date = new Date(text);
  const now = new Date();
  const clock = date.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
  if (date.toDateString() === now.toDateString()) return clock;
  const year = date.getFullYear() === now.getFullYear() ? {} : { year: 'numeric' };
  return `${date.toLocaleDateString([], { month: 'short', day: 'numeric', ...year })}, ${clock.slice(0, 5)}`;
}

/** The training step: the number after "step" in the checkpoint folder's name, else the last number in it, or
 * null. */
export function stepOf(checkpoint) {
  const name = folderName(checkpoint);
  const named = name.match(/step[-_ ]?(\d+)/i);
  if (named) return Number(named[1]);
  const digits = name.match(/\d+/g);
  return digits ? Number(digits[digits.length - 1]) : null;
}

const kUnits = { '': 1, k: 1e3, m: 1e6, b: 1e9, t: 1e12 };

/** The tokens seen in training, if the checkpoint folder's name says so ("step1000-tokens4B"); else null. */
export function tokensOf(checkpoint) {
  const found = folderName(checkpoint).match(/tokens?[-_ ]?(\d+(?:\.\d+)?)([kmbt]?)(?![a-z])/i)
    ?? folderName(checkpoint).match(/(\d+(?:\.\d+)?)([kmbt]?)[-_ ]?tokens?/i);
  return found ? Number(found[1]) * kUnits[found[2].toLowerCase()] : null;
}

/** "1.5 B", "300 M", "1,200": numbers that are large. */
export function largeCount(value) {
  const unit = [[1e12, 'T'], [1e9, 'B'], [1e6, 'M']].find(([size]) => value >= size);
  return unit ? `${Number((value / unit[0]).toPrecision(4))} ${unit[1]}` : count(Math.round(value));
}

export function folderName(path) {
  return path.replace(/\/+$/, '').split('/').pop();
}

export function parentFolder(path) {
  return path.replace(/\/+$/, '').split('/').slice(0, -1).join('/') || '/';
}

/** What a run is called: the title that a person gave it, or its model's name. */
export function titleOf(run) {
  return run.title || run.name || run.id;
}

/** Runs in a line each that tells them from one another: [line, ...] in the order of `runs`. */
export function runLines(runs) {
  const lines = runs.map((run) => {
    const name = run.title && run.title !== run.name ? `${run.title} (${run.name})` : titleOf(run);
    const folder = run.checkpoint ? folderName(run.checkpoint) : '';
    return [name, name.includes(folder) ? null : folder, time(run.created), ...(run.tags ?? [])].filter(Boolean).join(' \u00b7 ');
  });
  return lines.map((line, index) => (lines.indexOf(line) === lines.lastIndexOf(line) ? line : `${line} \u00b7 ${runs[index].id}`));
}
