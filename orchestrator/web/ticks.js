// Round numbers for axes.

/** About `count` round values within [from, to]. */
export function niceTicks(from, to, count) {
  const range = to - from;
  if (!(range > 0)) return [from];
  const rough = range / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(from / step - 1e-9); tick * step <= to + step * 1e-9; ++tick) ticks.push(Number((tick * step).toPrecision(12)));
  return ticks;
}
