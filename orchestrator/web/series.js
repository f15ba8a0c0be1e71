// Training runs: the checkpoints of one folder, or those whose runs have one name but for its number, in the
// order of their steps, with their scores. For each score the newest run that has it counts.

import { folderName, parentFolder, stepOf, tokensOf } from './format.js';

/** By what runs belong to one training run. */
export const kSeriesBy = { folder: 'folder', name: 'name' };

/** The series of a run: by "folder" the folder of its checkpoint, by "name" its name without the last number. A
 * run without a checkpoint is listed under its name. */
export function seriesOf(run, by) {
  if (by === 'name') return run.name.replace(/[-_ .]*(?:step[-_ ]?)?\d+$/i, '') || run.name;
  return run.checkpoint ? parentFolder(run.checkpoint) : run.name;
}

/** The names of all series. The newest run's series comes first. */
export function seriesNames(runs, by) {
  return [...new Set(newestFirst(runs).map((run) => seriesOf(run, by)))];
}

function newestFirst(runs) {
  return [...runs].sort((a, b) => Date.parse(b.created) - Date.parse(a.created) || b.id.localeCompare(a.id));
}

/** {name, tasks, checkpoints, stepped} of one series. A checkpoint is {path, name, step, tokens, run, runs,
 * scores}: `runs` are its runs, newest first, `run` is the newest, `scores` maps a task or group to {entry,
 * run}. Checkpoints are ordered by step if all have one, else by time. */
export function readSeries(runs, name, by) {
  const checkpoints = new Map();
  const tasks = new Set();
  for (const run of newestFirst(runs)) {
    if (seriesOf(run, by) !== name) continue;
    const path = run.checkpoint || run.id;
    if (!checkpoints.has(path)) {
      const shown = run.checkpoint ? folderName(path) : run.name;
      checkpoints.set(path, { path, name: shown, step: stepOf(run.checkpoint || run.name), tokens: tokensOf(shown), run, runs: [], scores: new Map() });
    }
    const checkpoint = checkpoints.get(path);
    checkpoint.runs.push(run);
    for (const [task, entry] of Object.entries(run.scores ?? {})) {
      tasks.add(task);
      if (!checkpoint.scores.has(task) && typeof entry?.value === 'number') checkpoint.scores.set(task, { entry, run });
    }
  }
  const list = [...checkpoints.values()];
  const stepped = list.length > 0 && list.every((checkpoint) => checkpoint.step !== null);
  list.sort((a, b) => (stepped ? a.step - b.step : Date.parse(a.run.created) - Date.parse(b.run.created)));
  return { name, tasks: [...tasks].sort(), checkpoints: list, stepped };
}

/** The runs whose scores a checkpoint shows, newest first. */
export function scoredRuns(checkpoint) {
  const shown = new Set([...checkpoint.scores.values()].map(({ run }) => run));
  return checkpoint.runs.filter((run) => shown.has(run));
}

/** The part of the names by which several series differ: without the folders that all have in common. */
export function shortNames(names) {
  const parts = names.map((name) => name.split('/'));
  let shared = 0;
  while (names.length > 1 && parts.every((list) => list.length > shared + 1 && list[shared] === parts[0][shared])) ++shared;
  if (names.length === 1) shared = parts[0].length - 1;
  // A folder "checkpoints" below each training run says nothing.
  let end = 0;
  while (parts.every((list) => list.length - end > shared + 1 && list.at(-1 - end) === parts[0].at(-1 - end)) && names.length > 1) ++end;
  return new Map(names.map((name, index) => [name, parts[index].slice(shared, parts[index].length - end).join('/') || name]));
}

const kGeneric = new Set(['checkpoints', 'checkpoint', 'ckpt', 'ckpts', 'output', 'outputs', 'models']);

/** The end of each name by which it differs from all others, as a name to choose by: "pico-muon" of
 * "/train/pico-muon". A folder that is only called "checkpoints" comes with the one above it. */
export function tailNames(names) {
  const tails = (name, length) => name.split('/').filter(Boolean).slice(-length).join('/');
  return new Map(names.map((name) => {
    const depth = name.split('/').filter(Boolean).length;
    let length = kGeneric.has(tails(name, 1)) ? 2 : 1;
    while (length < depth && names.some((other) => other !== name && tails(other, length) === tails(name, length))) ++length;
    return [name, tails(name, length) || name];
  }));
}

/** Means over `width` neighbouring values, fewer at the ends. */
export function smoothed(values, width) {
  const half = Math.floor(width / 2);
  return values.map((_, at) => {
    const reach = Math.min(half, at, values.length - 1 - at);  // as many on each side
    const near = values.slice(at - reach, at + reach + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}
