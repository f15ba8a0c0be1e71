// Stands before fetch() and plays a service with very many runs and samples.
(() => {
  const kRuns = 10000, kSamples = 100000;
  window.asked = [];
  const run = (n) => ({ id: `r${n}`, name: `step-${n}`, user: 'ci', priority: 0, state: 'done', checkpoint: `/train/step-${n}`, fingerprint: null,
    created: new Date(1.7e12 + n * 1e5).toISOString(), started: new Date(1.7e12 + n * 1e5).toISOString(), ended: new Date(1.7e12 + n * 1e5 + 5e4).toISOString(),
    directory: '/x', progress: { documents: kSamples, generated: kSamples, scored: kSamples, documents_per_second: null, remaining_seconds: null, phases: [],
      tasks: Array.from({ length: 60 }, (_, t) => ({ task: `task_${t}`, documents: kSamples, generated: kSamples, scored: kSamples, headline: 'acc' })) },
    exit_status: 0, problems: [], verdict: null, title: '', tags: [], note: '', groups: { many: Array.from({ length: 58 }, (_, t) => `task_${t}`) },
    scores: Object.fromEntries(Array.from({ length: 60 }, (_, t) => [`task_${t}`, { metric: 'acc', value: (n + t) % 100 / 100, stderr: 0.01 }])) });
  const sample = (d, right) => ({ doc_id: d, filter: 'none', correct: right, scores: { acc: right ? 1 : 0 }, prompt: `question ${d}`, continuations: [],
    answers: [['answer '.repeat(200) + d]], filtered: ['x'], target: 'x', doc: { d } });
  const json = (value, status = 200) => new Response(JSON.stringify(value), { status, headers: { 'Content-Type': 'application/json' } });
  window.fetch = async (path) => {
    const url = new URL(path, location);
    window.asked.push(url.pathname + url.search);
    const get = (name) => url.searchParams.get(name);
    if (url.pathname === '/v1/events') return new Response(new ReadableStream({ start() {} }));
    if (url.pathname === '/v1/queue') return json({ queue: [] });
    const limit = Number(get('limit') ?? 50);
    const found = url.pathname.match(/^\/v1\/runs(?:\/r(\d+)(?:\/samples\/(.*)|\/marks\/(.*)|\/(.*))?)?$/);
    if (!found) return json({ detail: 'none' }, 404);
    if (found[4]) return json({ detail: 'none' }, 404);
    const right = (d) => d % 1000 === 999 ? Number(found[1]) === 1 : true;
    if (found[3]) {
      return json({ run: 'r', task: found[3], filters: ['none'], filter: 'none', documents: Array.from({ length: kSamples }, (_, d) => d),
        marks: Array.from({ length: kSamples }, (_, d) => (right(d) ? 'r' : 'w')).join(''), next: null });
    }
    if (found[2]) {
      const samples = [];
      let d = Number(get('cursor') ?? 0);
      for (; d < kSamples && samples.length < limit; ++d) if (get('correct') === null || String(right(d)) === get('correct')) samples.push(sample(d, right(d)));
      return json({ run: 'r', task: found[2], total: kSamples, samples, next: d < kSamples ? String(d) : null });
    }
    if (found[1]) return json(run(Number(found[1])));
    if (get('state') && get('state') !== 'done') return json({ runs: [], next: null });
    const top = Number(get('cursor') ?? kRuns);
    const runs = Array.from({ length: Math.min(limit, top) }, (_, i) => run(top - i));
    return json({ runs, next: top > limit ? String(top - limit) : null });
  };
})();
