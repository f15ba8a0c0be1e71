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

/** The training step: the last number in the checkpoint folder's name, or null. */
export function stepOf(checkpoint) {
  const digits = folderName(checkpoint).match(/\d+/g);
  return digits ? Number(digits[digits.length - 1]) : null;
}

export function folderName(path) {
  return path.replace(/\/+$/, '').split('/').pop();
}

export function parentFolder(path) {
  return path.replace(/\/+$/, '').split('/').slice(0, -1).join('/') || '/';
}
