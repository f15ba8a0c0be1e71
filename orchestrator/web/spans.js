// The stretches of time in a run's timeline.json (Trace Event Format), read and thinned for drawing.

const kKnown = new Set(['generate', 'pull', 'stage', 'prepare', 'score', 'idle']);

export const kindOf = (name) => (kKnown.has(name) ? name : 'other');

/** {rows: [{name, spans: [{name, begin, end, args}]}], end}. Times are microseconds. Rows keep their order.
 * Each row's spans are ordered by their begin. */
export function readTrace(trace) {
  const rows = new Map();
  const row = (tid) => {
    if (!rows.has(tid)) rows.set(tid, { name: `row ${tid}`, order: tid, spans: [] });
    return rows.get(tid);
  };
  let end = 0;
  for (const event of trace.traceEvents ?? []) {
    if (event.ph === 'M' && event.name === 'thread_name') row(event.tid).name = String(event.args.name);
    if (event.ph === 'M' && event.name === 'thread_sort_index') row(event.tid).order = event.args.sort_index;
    if (event.ph !== 'X') continue;
    row(event.tid).spans.push({ name: String(event.name), begin: event.ts, end: event.ts + event.dur, args: event.args ?? {} });
    end = Math.max(end, event.ts + event.dur);
  }
  end = Math.max(end, Number(trace.otherData?.['live until'] ?? 0));
  const list = [...rows.values()].sort((a, b) => a.order - b.order);
  for (const one of list) one.spans.sort((a, b) => a.begin - b.begin);
  return { rows: list, end };
}

/** A row's spans within [from, to). Two spans of one name are joined if less than `gap` lies between them and
 * at least one of them is shorter than `gap`, so no more spans are drawn than there are pixels. */
export function thin(spans, from, to, gap) {
  const joined = [];
  const last = new Map();  // name -> the span that may grow
  for (const span of spans) {
    if (span.end <= from || span.begin >= to) continue;
    const before = last.get(span.name);
    const short = before && (span.end - span.begin < gap || before.end - before.begin < gap);
    if (short && span.begin - before.end < gap) {
      before.end = Math.max(before.end, span.end);
      before.count += 1;
      continue;
    }
    const copy = { ...span, begin: Math.max(span.begin, from), end: Math.min(span.end, to), count: 1 };
    last.set(span.name, copy);
    joined.push(copy);
  }
  return joined;
}

/** Seconds that the row spent in spans of each name. Overlaps count once. */
export function secondsByName(spans) {
  const until = new Map();
  const seconds = new Map();
  for (const span of spans) {
    const begin = Math.max(span.begin, until.get(span.name) ?? 0);
    if (span.end <= begin) continue;
    seconds.set(span.name, (seconds.get(span.name) ?? 0) + (span.end - begin) / 1e6);
    until.set(span.name, span.end);
  }
  return seconds;
}
