// Runs as training runs: the checkpoints of one folder in the order of their steps, and what each
// scored. The newest run that has a score counts.

import { folderName, parentFolder, stepOf } from './format.js';

/** The folder that a run's checkpoint lies in; runs without one stand under their name. */
export function seriesOf(run) {
  return run.checkpoint ? parentFolder(run.checkpoint) : run.name;
}

/** Names of all series, that of the newest run first. */
export function seriesNames(runs) {
  return [...new Set(newestFirst(runs).map(seriesOf))];
}

function newestFirst(runs) {
  return [...runs].sort((a, b) => Date.parse(b.created) - Date.parse(a.created) || b.id.localeCompare(a.id));
}

/** {tasks, checkpoints} of one series. A checkpoint is {path, name, step, run, scores}: `run` is its
 * newest run, `scores` maps a task to {entry, run}. By step, those without one by time. */
export function readSeries(runs, name) {
  const checkpoints = new Map();
  const tasks = new Set();
  for (const run of newestFirst(runs)) {
    if (seriesOf(run) !== name) continue;
    const path = run.checkpoint || run.id;
    if (!checkpoints.has(path)) {
      checkpoints.set(path, { path, name: run.checkpoint ? folderName(path) : run.name, step: stepOf(path), run, scores: new Map() });
    }
    const { scores } = checkpoints.get(path);
    for (const [task, entry] of Object.entries(run.scores ?? {})) {
      tasks.add(task);
      if (!scores.has(task) && typeof entry?.value === 'number') scores.set(task, { entry, run });
    }
  }
  const list = [...checkpoints.values()];
  const stepped = list.length > 0 && list.every((checkpoint) => checkpoint.step !== null);
  list.sort((a, b) => (stepped ? a.step - b.step : Date.parse(a.run.created) - Date.parse(b.run.created)));
  return { tasks: [...tasks].sort(), checkpoints: list, stepped };
}
