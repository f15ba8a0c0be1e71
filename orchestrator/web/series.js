// Training runs: the checkpoints of one folder in the order of their steps, with their scores. For
// each score the newest run that has it counts.

import { folderName, parentFolder, stepOf } from './format.js';

/** The folder of a run's checkpoint. A run without a checkpoint is listed under its name. */
export function seriesOf(run) {
  return run.checkpoint ? parentFolder(run.checkpoint) : run.name;
}

/** The names of all series. The newest run's series comes first. */
export function seriesNames(runs) {
  return [...new Set(newestFirst(runs).map(seriesOf))];
}

function newestFirst(runs) {
  return [...runs].sort((a, b) => Date.parse(b.created) - Date.parse(a.created) || b.id.localeCompare(a.id));
}

/** {tasks, checkpoints} of one series. A checkpoint is {path, name, step, run, scores}: `run` is its newest
 * run, `scores` maps a task to {entry, run}. Checkpoints are ordered by step if all have one, else by time. */
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
