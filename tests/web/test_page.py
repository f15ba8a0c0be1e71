"""The web page in a real Chromium, against the real service and the example checkpoints."""
import csv
import decimal
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
import urllib.parse
import urllib.request
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import browser as chromium  # noqa: E402
import checks  # noqa: E402
import made_up_queue  # noqa: E402
from evald_case import BINARIES, CHOICE_TASK, QUICKSTART, SOURCE, SUMS_TASK  # noqa: E402

CODE_TASK = r"""task: code
dataset_path: json
dataset_kwargs: {data_files: {test: code.jsonl}}
output_type: generate_until
test_split: test
unsafe_code: true
doc_to_text: "{{prompt}}"
doc_to_target: "{{test}}"
generation_kwargs: {until: ["\nclass"], max_gen_toks: 64, do_sample: false}
metric_list: [{metric: !function humaneval/utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}]
filter_list: [{name: create_test, filter: [{function: custom, filter_fn: !function humaneval/utils.build_predictions}]}]
metadata: {version: 1.0}
"""
STEPS = ["step-00100", "step-00350", "step-00600", "step-01200"]
TASKS = ["quickstart_choice", "quickstart_code", "quickstart_math"]
SHOTS = os.environ.get("EVALD_SCREENSHOTS", "")   # a folder for pictures of every view
AXE = os.environ.get("EVALD_AXE", "")             # axe.min.js, to be asked as well where there is one
MARKUP = "<script>window.owned = 1</script><img src=x onerror=\"window.owned = 2\"><b>{doc_id}</b>\u202e"
TOKEN = "a-token-for-the-test-of-the-page"


class Service:
    """evald serve over a scratch folder."""

    def __init__(self, folder, tokens=False, **config):
        """`config`: further keys of serve.yaml."""
        self.folder = folder
        self.config = config
        self.port = 0  # any; a later life has that of the first
        self.tokens = folder / "tokens" if tokens else None
        if tokens:
            self.tokens.write_text(f"ann read sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n")
            self.tokens.chmod(0o600)
        tasks = folder / "tasks"
        tasks.mkdir()
        (tasks / "sums.yaml").write_text(SUMS_TASK)
        (tasks / "choice.yaml").write_text(CHOICE_TASK)
        # A group of groups, with scores of its own; its tasks have other names than those above.
        for name in ("left_sums", "right_sums"):
            (tasks / f"{name}.yaml").write_text(SUMS_TASK.replace("task: sums\n", f"task: {name}\n"))
        (tasks / "code.yaml").write_text(CODE_TASK)
        shown = "aggregate_metric_list: [{metric: exact_match, aggregation: mean, weight_by_size: true}]\nmetadata: {version: 1}\n"
        (tasks / "inner.yaml").write_text("group: inner\ntask: [left_sums, right_sums]\n" + shown)
        (tasks / "outer.yaml").write_text("group: outer\ntask: [inner, sums]\n" + shown)
        with open(tasks / "code.jsonl", "w") as out:
            for i in range(6):
                out.write(json.dumps({"prompt": "def half(n):\n", "test": f"assert half({2 * i}) == {i if i % 2 else i + 1}, 'half of {2 * i}'"}) + "\n")
        with open(tasks / "sums.jsonl", "w") as out:
            for i in range(120):
                out.write(json.dumps({"question": f"What is {i} plus <i>1</i>?", "answer": str(i + 1)}) + "\n")
        with open(tasks / "choice.jsonl", "w") as out:
            for i in range(60):
                out.write(json.dumps({"question": f"Which letter is number {i}?", "answer": i % 4}) + "\n")
        self.start()

    def start(self):
        config = {"listen": f"127.0.0.1:{self.port}", "state_dir": "state", "cache_dir": "cache",
                  "workers": {"count": 2, "threads": 1}, "metrics": {"processes": 2},
                  "staging": {"root": str(self.folder / "staging")}, **self.config}
        if self.tokens:
            config["tokens"] = str(self.tokens)
        (self.folder / "serve.yaml").write_text(json.dumps(config))
        with open(self.folder / "serve.log", "a") as log:
            self.process = subprocess.Popen([BINARIES / "evald", "serve", self.folder / "serve.yaml", "--json"],
                                            stdout=subprocess.PIPE, stderr=log, text=True,
                                            preexec_fn=chromium.die_with_parent)
        said = json.loads(self.process.stdout.readline())
        self.url, self.port = said["url"], said["port"]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        try:
            self.process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=120) as answer:
            return json.load(answer)

    def submit(self, config, base, user="", priority=0):
        body = json.dumps({"config": config, "base": str(base), "user": user, "priority": priority}).encode()
        request = urllib.request.Request(self.url + "/v1/runs", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)["id"]

    def cancel(self, run):
        request = urllib.request.Request(f"{self.url}/v1/runs/{run}/cancel", b"", method="POST")
        urllib.request.urlopen(request, timeout=120).read()

    def made_up(self, name, priority=0, **engine):
        """A run of the emulated engine: 180 documents."""
        rules = [{"task": "sums", "metric": "exact_match", "min": 0.5},
                 {"task": "choice", "metric": "acc", "min": 0.05, "tier": "supporting"}]
        return self.submit({"name": name, "tasks": ["sums", "choice"], "task_dirs": ["tasks"],
                            "engine": {"name": "emulated", "concurrency": 4, **engine}, "gates": {"rules": rules}},
                           self.folder, "<b>ben</b>", priority)

    def of_series(self, series, step, tasks=("outer", "choice"), **engine):
        """A run of a made-up checkpoint: gates only where its tasks are the group's."""
        checkpoint = self.folder / "train" / series / f"step-{step}"
        if not checkpoint.exists():
            shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoint)
        config = {"name": f"{series}-{step}", "checkpoint": str(checkpoint), "tasks": list(tasks), "task_dirs": ["tasks"],
                  "engine": {"name": "emulated", **engine}}
        if "outer" in tasks:
            config["gates"] = {"rules": [{"task": "outer", "metric": "exact_match", "min": 0.25}]}
        return self.submit(config, self.folder, "ann")

    def change(self, run, **labels):
        request = urllib.request.Request(f"{self.url}/v1/runs/{run}", json.dumps(labels).encode(), {"Content-Type": "application/json"}, method="PATCH")
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def quickstart(self, step):
        return self.submit({"checkpoint": f"checkpoints/{step}", "tasks": TASKS, "task_dirs": ["tasks"],
                            "engine": {"name": "native"}}, QUICKSTART, "ann")

    def finished(self, run, seconds=600):
        over = ("done", "incomplete", "failed", "cancelled")
        return chromium.wait(lambda: (now := self.get(f"/v1/runs/{run}"))["state"] in over and now, "the run's end", seconds)

    def samples(self, run, task, filter):
        found, cursor = [], ""
        while cursor is not None:
            page = self.get(f"/v1/runs/{run}/samples/{task}?filter={filter}&limit=200&cursor={cursor or 0}")
            found += page["samples"]
            cursor = page["next"]
        return found


def three(value):
    # As a browser rounds: halves away from zero.
    return str(decimal.Decimal(value).quantize(decimal.Decimal("0.001"), decimal.ROUND_HALF_UP))


def score(entry):
    return f"{three(entry['value'])} \u00b1 {three(entry['stderr'])}"


@unittest.skipIf(chromium.missing(), chromium.missing())
class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-web-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.service = Service(cls.folder)
        cls.addClassCleanup(lambda: cls.service.stop())
        cls.browser = chromium.Browser(cls.folder / "chromedriver.log")
        cls.addClassCleanup(cls.browser.close)
        cls.ids = {step: cls.service.quickstart(step) for step in STEPS}
        cls.ids["markup"] = cls.service.made_up("markup", text=MARKUP)
        cls.runs = {name: cls.service.finished(run) for name, run in cls.ids.items()}
        for name, run in cls.runs.items():
            assert run["state"] == "done", (name, run)

    def setUp(self):
        self.page = self.browser
        self.page.size(1280, 900)
        self.page.prefer("light")
        self.page.complaints()

    def tearDown(self):
        # Whatever was done: the policy refused nothing, no script failed, nothing a model wrote ran.
        noise = [line for line in self.page.complaints() if not self.expected(line)]
        self.assertEqual(noise, [])
        self.assertIsNone(self.page.run("return window.owned ?? null;"))

    @staticmethod
    def expected(line):
        return "ERR_CONNECTION_REFUSED" in line or "ERR_INCOMPLETE_CHUNKED" in line or "401 (Unauthorized)" in line \
            or "ERR_EMPTY_RESPONSE" in line or "ERR_CONNECTION_RESET" in line

    def go(self, place, ready="main h1"):
        self.page.open("about:blank")
        self.page.open(f"{self.service.url}/#/{place}")
        self.page.wait(f"{ready} at {place}", lambda: self.page.count(ready))

    def compare(self, task, show="differ"):
        self.go(f"samples?a={self.ids['step-00600']}&b={self.ids['step-01200']}&task={task}&show={show}", "article.pair")

    VIEWS = {"runs": ("", "tbody tr"), "run": ("run/{step-01200}", "svg.timeline rect"),
             "gates": ("run/{markup}", "section .badge.bad"), "checkpoints": ("checkpoints?run={step-01200}", "svg.chart"),
             "samples": ("samples?a={step-00600}&b={step-01200}&task=quickstart_math", "article.pair"),
             "choices": ("samples?a={step-00100}&b={step-01200}&task=quickstart_choice", "table.choices"),
             "grouped": ("run/{north-200}", "button.tree[data-group=outer]"),
             "several": ("checkpoints?run={north-200}&also={south}&charts=outer+inner&smooth=3", "svg.chart .bound"),
             "truncated": ("samples?a={north-200}&task=left_sums", "article.pair"),
             "fleet": ("fleet", "svg.strip"), "missing": ("nothing", ".empty")}

    def each_view(self):
        for name, (place, ready) in self.VIEWS.items():
            with self.subTest(view=name):
                self.go(place.format(**self.ids, **self.grouped(), south=urllib.parse.quote(json.dumps([str(self.service.folder / "train" / "south")]))), ready)
                self.page.run("for (const button of document.querySelectorAll('button.tree[aria-expanded=false]')) button.click();")
                yield name

    # ---- what is shown

    def test_runs_are_listed_newest_first(self):
        self.go("", "tbody tr")
        names = self.page.texts("tbody th a")
        self.assertEqual([name for name in names if name in self.ids], ["markup", *reversed(STEPS)])
        self.assertIn("0.775", self.page.texts("tbody tr")[names.index("step-01200")])
        self.page.run("document.querySelector('input[type=search]').value = '01200';"
                      "document.querySelector('input[type=search]').dispatchEvent(new Event('input'));")
        self.page.wait("the filter", lambda: self.page.texts("tbody th a") == ["step-01200"])
        self.page.choose(".fields select", "failed")
        self.page.wait("nothing failed", lambda: "No run is failed" in self.page.text(".empty"))

    def test_table_and_curves_have_the_services_numbers(self):
        self.go(f"checkpoints?run={self.ids['step-00100']}", "svg.chart")
        self.assertEqual([t.split()[0] for t in self.page.texts("thead th")], ["Task", *STEPS])
        for row, task in enumerate(TASKS, 1):
            cells = self.page.texts(f"tbody tr:nth-child({row}) td")
            self.assertEqual(cells, [score(self.runs[step]["scores"][task]) for step in STEPS])
            labels = self.page.run("return [...document.querySelectorAll('figure')][arguments[0]].querySelectorAll('a').values()"
                                   ".map((a) => a.getAttribute('aria-label')).toArray();", row - 1)
            self.assertEqual(labels, [f"step {int(step[5:]):,}: {score(self.runs[step]['scores'][task])}" for step in STEPS])
            heights = self.page.run("return [...document.querySelectorAll('figure')][arguments[0]].querySelectorAll('circle.point')"
                                    ".values().map((c) => Number(c.getAttribute('cy'))).toArray();", row - 1)
            places = self.page.run("return [...document.querySelectorAll('figure')][arguments[0]].querySelectorAll('circle.point')"
                                   ".values().map((c) => Number(c.getAttribute('cx'))).toArray();", row - 1)
            values = [self.runs[step]["scores"][task]["value"] for step in STEPS]
            # Both axes are straight: a point is where its step and value put it.
            for points, numbers in ((heights, values), (places, [int(step[5:]) for step in STEPS])):
                slopes = [(b - a) / (y - x) for a, b, x, y in zip(points, points[1:], numbers, numbers[1:]) if x != y]
                for slope in slopes:
                    self.assertAlmostEqual(slope / slopes[0], 1, 3)

    def test_a_run_shows_scores_timeline_and_facts(self):
        self.go(f"run/{self.ids['step-01200']}", "svg.timeline rect")
        text = self.page.text("main")
        for task in TASKS:
            self.assertIn(score(self.runs["step-01200"]["scores"][task]), text)
        self.assertIn(self.runs["step-01200"]["checkpoint"], text)
        rows = self.page.run("return [...document.querySelectorAll('svg.timeline text.row-name')].map((node) => node.textContent);")
        trace = self.service.get(f"/v1/runs/{self.ids['step-01200']}/timeline")["traceEvents"]
        self.assertEqual(rows, [event["args"]["name"] for event in trace if event["name"] == "thread_name"])
        for kind in ("generate", "score", "stage"):
            self.assertGreater(self.page.count(f"svg.timeline rect.span-{kind}"), 0)
        # The table beside the picture says the same as the trace; a worker may have the next trial begun before one ends.
        # Which worker got something to do is not the page's.
        generated = [event for event in trace if event["ph"] == "X" and event["name"] == "generate"]
        thread, row = next((event["tid"], event["args"]["name"]) for event in trace if event["name"] == "thread_name"
                           and event["tid"] == generated[0]["tid"])
        spans = sorted((event["ts"], event["ts"] + event["dur"]) for event in generated if event["tid"] == thread)
        ends = [0, *itertools.accumulate((end for _, end in spans), max)]
        busy = sum(max(0, end - max(begin, before)) for (begin, end), before in zip(spans, ends)) / 1e6
        shown = self.page.run(f"""const table = document.querySelector('details table');
            const column = [...table.tHead.rows[0].cells].findIndex((cell) => cell.textContent === 'generate');
            const row = [...table.tBodies[0].rows].find((row) => row.cells[0].textContent === {json.dumps(row)});
            return row.cells[column].textContent;""")
        minutes, seconds = re.match(r"(?:(\d+) min )?([\d.]+) s", shown).groups()
        self.assertAlmostEqual(int(minutes or 0) * 60 + float(seconds), busy, delta=0.5 if busy >= 10 else 0.06)
        # Nearer and back by keys.
        whole = self.page.text(".readout")
        self.page.run("document.querySelector('svg.timeline').focus();")
        self.page.press("+", "ArrowRight")
        self.assertNotEqual(self.page.text(".readout"), whole)
        self.assertEqual(self.page.run("return document.activeElement.getAttribute('class');"), "timeline", "the focus stays")
        self.page.press("0")
        self.assertEqual(self.page.text(".readout"), whole)

    def test_gates(self):
        self.go(f"run/{self.ids['markup']}", "section .badge.bad")
        rows = self.page.texts("section[aria-labelledby=gates] tbody tr")
        self.assertEqual(len(rows), 2)
        self.assertIn("fail", rows[0])
        self.assertIn("pass", rows[1])
        self.assertIn("exit status 1", self.page.text("section[aria-labelledby=gates]"))
        report = self.page.run("return [...document.querySelectorAll('a')].find((a) => a.textContent === 'Report')?.href;")
        with urllib.request.urlopen(report) as answer:
            self.assertIn("text/html", answer.headers["Content-Type"])

    def test_samples_side_by_side(self):
        left = {s["doc_id"]: s for s in self.service.samples(self.ids["step-00600"], "quickstart_math", "strict-match")}
        right = {s["doc_id"]: s for s in self.service.samples(self.ids["step-01200"], "quickstart_math", "strict-match")}
        expected = {"differ": lambda a, b: a != b, "lost": lambda a, b: a and not b, "gained": lambda a, b: b and not a,
                    "both-wrong": lambda a, b: not a and not b, "both-right": lambda a, b: a and b, "all": lambda a, b: True}
        for show, rule in expected.items():
            with self.subTest(show=show):
                wanted = [f"Document {doc}" for doc in sorted(left) if rule(left[doc]["correct"], right[doc]["correct"])]
                self.go(f"samples?a={self.ids['step-00600']}&b={self.ids['step-01200']}&task=quickstart_math&show={show}",
                        "article.pair, .empty")
                found = self.page.texts("article.pair h2")
                while self.page.count("[data-key=next]:not(:disabled)"):
                    first = self.page.texts("article.pair h2")[0]
                    self.page.press("n")
                    self.page.wait("the next page", lambda: self.page.texts("article.pair h2")[0] != first)
                    found += self.page.texts("article.pair h2")
                self.assertEqual(found, wanted)
        self.compare("quickstart_math")
        number = int(self.page.text("article.pair h2").split()[1])
        answers = self.page.run("return [...document.querySelector('article.pair').querySelectorAll('.side .said')].map((n) => n.textContent);")
        self.assertEqual(answers, [left[number]["answers"][0][0], right[number]["answers"][0][0]])
        self.assertGreater(self.page.count(".side mark"), 0)
        # Another filter is another set of scores.
        self.assertEqual(self.page.run("return [...document.querySelectorAll('select')].map((s) => [...s.options].map((o) => o.value))"
                                       "[3];"), ["strict-match", "flexible-extract"])

    def test_what_models_write_is_text(self):
        self.go(f"samples?a={self.ids['markup']}&task=sums", "article.pair")
        said = self.page.run("return document.querySelector('.side .said').textContent;")
        # What turns the direction of writing is written out.
        self.assertEqual(said, MARKUP.replace("{doc_id}", "0").replace("\u202e", "\\u202e"))
        self.assertEqual(self.page.count("main script, main img, main .said b, main .question i"), 0)
        self.assertIn("<i>1</i>", self.page.text(".question"))
        self.go(f"run/{self.ids['markup']}", "dl")
        self.assertIn("<b>ben</b>", self.page.text("dl"))

    def test_thinking_is_folded_above_its_answer_and_truncated_answers_are_counted(self):
        run = self.service.made_up("thinks", delay_ms=0, text="<b>So {doc_id}...</think>\n42", think_end_token="</think>")
        self.service.finished(run)
        self.go(f"samples?a={run}&task=sums", "article.pair")
        side = "document.querySelector('.side')"
        self.assertEqual(self.page.run(f"return {side}.querySelector('details summary').textContent;"),
                         "The thinking before the answer")
        said = self.page.run(f"return [...{side}.querySelectorAll('.said')].map((node) => node.textContent);")
        self.assertEqual(said, ["<b>So 0...</think>\n", "42"])
        counts = self.service.get(f"/v1/runs/{run}/results")["evald"]["truncated_answers"]
        self.assertEqual(list(counts), ["sums"])
        shown = "{truncated} of {answers}".format(**counts["sums"])
        self.go(f"run/{run}", "dl")
        self.page.wait("the truncated answers", lambda: "Truncated" in self.page.text("table") and shown in self.page.text("table"))

    # ---- groups, several training runs, samples

    def grouped(self):
        """Two training runs with groups, made once: their runs by name."""
        if not hasattr(Page, "made"):
            Page.made = {f"{series}-{step}": self.service.of_series(series, step, text=text)
                         for series, step, text in (("north", 100, "1"), ("north", 200, "{doc_id}"), ("south", 100, "2"), ("south", 200, "3"))}
            for run in Page.made.values():
                self.assertEqual(self.service.finished(run)["state"], "done")
        return Page.made

    def series(self, name, **parameters):
        found = {"series": str(self.service.folder / "train" / name), **parameters}
        return "checkpoints?" + urllib.parse.urlencode(found, quote_via=urllib.parse.quote)

    def task_names(self):
        return self.page.run("""const rows = document.querySelectorAll('section:is([aria-labelledby=tasks], [aria-labelledby=scores]) tbody th');
            return [...rows].map((th) => th.querySelector('.tree, .leaf').textContent.split(' ')[0]);""")

    def test_a_group_is_one_row_that_opens(self):
        run = self.grouped()["north-100"]
        now = self.service.get(f"/v1/runs/{run}")
        self.assertEqual(now["groups"], {"outer": ["inner", "sums"], "inner": ["left_sums", "right_sums"]})
        self.go(f"run/{run}", "section[aria-labelledby=tasks] tbody tr")
        names = self.task_names
        self.assertEqual(names(), ["outer", "choice"])
        row = self.page.text("section[aria-labelledby=tasks] tbody tr")
        self.assertIn(score(now["scores"]["outer"]), row)
        self.assertIn("360 of 360", row, "the documents of all its tasks")
        # By keyboard alone; the focus stays where it was.
        self.page.run("document.querySelector('button.tree[data-group=outer]').focus();")
        self.page.press("Enter")
        self.assertEqual(names(), ["outer", "inner", "sums", "choice"])
        self.assertEqual(self.page.run("return [document.activeElement.dataset.group, document.activeElement.getAttribute('aria-expanded')];"), ["outer", "true"])
        self.page.click("button.tree[data-group=inner]")
        self.assertEqual(names(), ["outer", "inner", "left_sums", "right_sums", "sums", "choice"])
        # Sorting keeps what belongs together together.
        self.page.run("document.querySelector('section[aria-labelledby=tasks] th button.sort').click();")
        self.page.run("document.querySelector('section[aria-labelledby=tasks] th button.sort').click();")
        self.assertEqual(names(), ["outer", "sums", "inner", "right_sums", "left_sums", "choice"])
        self.page.click("button.tree[data-group=outer]")
        self.assertEqual(names(), ["outer", "choice"])

    def test_charts_are_chosen_and_names_filtered(self):
        self.grouped()
        self.go(self.series("north"), "svg.chart")
        charts = lambda: self.page.texts("figure figcaption strong")
        self.assertEqual(charts(), ["choice", "outer"])
        self.page.click("button[aria-label='Curve of choice']")
        self.assertEqual(charts(), ["outer"])
        self.page.run("const g = document.querySelector('button.tree[data-group=outer]'); if (g.getAttribute('aria-expanded') === 'false') g.click();")
        self.page.click("button[aria-label='Curve of inner']")
        self.assertEqual(charts(), ["outer", "inner"])
        address = self.page.run("return location.hash;")
        self.go(address[2:], "svg.chart")
        self.assertEqual(charts(), ["outer", "inner"], "the address keeps the choice")
        self.page.click("button.tree[data-group=outer]")
        self.assertEqual(self.page.run("return document.querySelector(\"button[aria-label='Curve of inner']\").getAttribute('aria-pressed');"), "true")
        self.assertIn("gate: min 0.25", self.page.wait("the gate", lambda: self.page.text("svg.chart .bound-name") or self.page.run(
            "return document.querySelector('svg.chart .bound-name')?.textContent;")))

    def test_the_filter_of_names_finds_within_closed_groups(self):
        self.grouped()
        self.go(self.series("north", text="right"), "tbody tr")
        self.assertEqual(self.task_names(), ["outer", "inner", "right_sums"])

    def test_training_runs_over_one_another(self):
        self.grouped()
        also = json.dumps([str(self.service.folder / "train" / "south")])
        baseline = str(self.service.folder / "train" / "south" / "step-200")
        self.go(self.series("north", also=also, charts="outer", baseline=baseline, smooth=3), "svg.chart .baseline")
        self.assertEqual(self.page.texts("ul.legend li"), ["north", "south"])
        labels = self.page.run("return [...document.querySelectorAll('svg.chart a')].map((a) => a.getAttribute('aria-label'));")
        made = {name: self.service.get(f"/v1/runs/{run}")["scores"]["outer"] for name, run in Page.made.items()}
        self.assertEqual(labels, [f"{series}, step {step}: {score(made[f'{series}-{step}'])}" for series in ("north", "south") for step in (100, 200)])
        self.assertEqual(self.page.count("svg.chart path.band"), 2)
        self.assertIn(f"step-200: {three(made['south-200']['value'])}", self.page.run("return document.querySelector('.baseline title').textContent;"))
        # Arrow keys go along a line and to the next one.
        self.page.run("document.querySelector('svg.chart a[tabindex=\"0\"]').focus();")
        self.page.press("ArrowDown")
        self.assertTrue(self.page.focused()[1].startswith("south, step 200"), self.page.focused())
        # By tokens: these names do not say them, so a number for each training run is asked for.
        self.page.choose("select[aria-label=Across]", "tokens")
        self.page.wait("the question", lambda: self.page.count("input[type=number]") == 2)
        self.page.run("""for (const [index, input] of [...document.querySelectorAll('input[type=number]')].entries()) {
            input.value = [1e6, 3e6][index]; input.dispatchEvent(new Event('change')); }""")
        self.page.wait("tokens", lambda: "south, 600 M tokens" in str(self.page.run(
            "return [...document.querySelectorAll('svg.chart a')].map((a) => a.getAttribute('aria-label'));")))
        self.page.run("localStorage.clear();")

    def test_rules_of_names_groups_and_bounds(self):
        self.go("", "tbody tr")
        found = self.page.run_async("""
            const [format, series, groups, panel, code] = await Promise.all(['format', 'series', 'groups', 'curves_panel', 'code_text'].map((name) => import(`/assets/${name}.js`)));
            const names = (nodes) => nodes.map((node) => (node.group ? [node.name, ...names(node.children)] : node.name));
            const gate = (rule, more) => panel.boundsOf({gates: [{task: 't', rule, ...more}]}, 't').map((bound) => bound.value);
            return {
              steps: ['step-300', 'stage1-step1000-tokens5B', 'checkpoint_7', 'final'].map(format.stepOf),
              tokens: ['stage1-step1000-tokens5B', 'step-300', '1.5T-tokens', 'tokens_300M'].map(format.tokensOf),
              series: [['a-step-0100', 'name'], ['a-7', 'name'], ['7', 'name']].map(([name, by]) => series.seriesOf({name, checkpoint: '/x/y/z'}, by)),
              folder: series.seriesOf({name: 'a', checkpoint: '/x/y/z'}, 'folder'),
              short: [...series.shortNames(['/t/a/checkpoints', '/t/b/checkpoints']).values(), ...series.shortNames(['/t/a']).values()],
              smoothed: series.smoothed([0, 3, 6, 0], 3),
              forest: names(groups.forest(['x', 'y', 'z'], {g: ['h', 'z'], h: ['x', 'g'], empty: ['none'], other: ['z']})),
              bounds: [gate('min 0.5'), gate('max 2 (confident)'), gate('max_drop 0.1', {baseline: 0.6, candidate: 0.5, drop: 0.1}),
                gate('max_relative_drop 0.5', {baseline: 10, candidate: 12, drop: 2}), gate('max_drop 0.1', {baseline: 'nan'})],
              code: code.codeRanges('Look: ```\\nfor x\\n``` for', true).length,
            };""")
        self.assertEqual(found["steps"], [300, 1000, 7, None])
        self.assertEqual(found["tokens"], [5e9, None, 1.5e12, 3e8])
        self.assertEqual((found["series"], found["folder"]), (["a", "a", "7"], "/x/y"))
        self.assertEqual(found["short"], ["a", "b", "a"])
        self.assertEqual(found["smoothed"], [0, 3, 3, 0])
        self.assertEqual(found["forest"], [["g", ["h", "x"], "z"], "y"])
        self.assertEqual([[round(value, 6) for value in bounds] for bounds in found["bounds"]], [[0.5], [2], [0.5], [15], []])
        self.assertEqual(found["code"], 1)

    def test_charts_are_saved_as_files(self):
        self.grouped()
        self.go(self.series("north", charts="outer", also=json.dumps([str(self.service.folder / "train" / "south")])), "svg.chart")
        # What would be saved is caught where the browser is told to save.
        self.page.run("""window.saved = [];
            URL.createObjectURL = (blob) => { window.saved.push(blob); return 'about:blank'; };
            HTMLAnchorElement.prototype.click = function () { window.names = [...(window.names ?? []), this.download]; };""")
        self.page.run("""[...document.querySelectorAll('button')].find((b) => b.textContent === 'Save as CSV').dispatchEvent(new MouseEvent('click'));
            for (const ending of ['SVG', 'PNG']) document.querySelector(`button[aria-label="Save the chart of outer as ${ending}"]`).dispatchEvent(new MouseEvent('click'));""")
        self.page.wait("three files", lambda: self.page.run("return window.saved.length;") == 3)
        self.assertEqual(sorted(self.page.run("return window.names;")), ["evald-curves.csv", "outer.png", "outer.svg"])
        csv_text, svg, png = self.page.run_async("""const of = (type) => window.saved.find((blob) => blob.type === type);
            return [await of('text/csv').text(), await of('image/svg+xml').text(), [...new Uint8Array(await of('image/png').arrayBuffer()).slice(0, 24)]];""")
        rows = list(csv.DictReader(csv_text.splitlines()))
        self.assertEqual([(row["checkpoint"], row["step"], row["task"]) for row in rows], [("step-100", "100", "outer"), ("step-200", "200", "outer")] * 2)
        self.assertEqual(float(rows[0]["value"]), self.service.get(f"/v1/runs/{Page.made['north-100']}")["scores"]["outer"]["value"])
        root = xml.etree.ElementTree.fromstring(svg)
        self.assertGreater(len(list(root)), 10)
        self.assertNotIn("class=", svg, "colours are in the file")
        self.assertEqual(bytes(png[:8]), b"\x89PNG\r\n\x1a\n")
        self.assertGreater(int.from_bytes(bytes(png[16:20]), "big"), 600)

    def test_a_failed_newest_run_does_not_stand_beside_anothers_scores(self):
        good = self.service.of_series("east", 100, tasks=("choice",))
        self.assertEqual(self.service.finished(good)["state"], "done")
        bad = self.service.of_series("east", 100, tasks=("choice",), fail_rate=1.0)
        state = self.service.finished(bad)["state"]
        self.assertNotEqual(state, "done")
        self.go(self.series("east"), "tfoot td")
        links = self.page.run("return [...document.querySelectorAll('tfoot td a')].map((a) => a.getAttribute('href'));")
        self.assertEqual(links, [f"#/run/{good}", f"#/run/{bad}"])
        self.assertIn("newest:", self.page.text("tfoot td .newest"))
        self.assertIn(state, self.page.text("tfoot td .newest"))

    def test_samples_are_counted_and_searched(self):
        left = {s["doc_id"]: s["correct"] for s in self.service.samples(self.ids["step-00600"], "quickstart_math", "strict-match")}
        right = {s["doc_id"]: s["correct"] for s in self.service.samples(self.ids["step-01200"], "quickstart_math", "strict-match")}
        self.compare("quickstart_math")
        chips = dict(text.rsplit(None, 1) for text in self.page.texts(".chips .chip"))
        count = lambda a, b: str(sum(left[doc] is a and right[doc] is b for doc in left))
        self.assertEqual((chips["lost"], chips["gained"], chips["both wrong"], chips["both right"], chips["all documents"]),
                         (count(True, False), count(False, True), count(False, False), count(True, True), str(len(left))))
        self.assertEqual(self.page.text("nav a[aria-current]"), "Samples")
        self.page.click("button[data-group=show-all]")
        self.page.wait("all", lambda: "show=all" in self.page.run("return location.hash;") and self.page.count("article.pair") == 10)
        wanted = next(s for s in self.service.samples(self.ids["step-01200"], "quickstart_math", "strict-match") if s["doc_id"] == 17)
        words = wanted["prompt"].strip().rsplit("\n\n", 1)[-1][:40].upper()
        self.page.press("/")
        self.page.type(words)
        self.page.wait("what is searched for", lambda: 0 < self.page.count("article.pair") < 10
                       and "Document 17" in self.page.texts("article.pair h2"))
        for text in self.page.run("return [...document.querySelectorAll('article.pair')].map((node) => node.textContent);"):
            self.assertIn(words, text.upper())

    def test_programs_and_truncated_answers_on_their_cards(self):
        run = self.service.of_series("west", 100, tasks=("code",), text="    # the half\n    return n // 2", tokens_out=100)
        self.assertEqual(self.service.finished(run)["state"], "done")
        self.go(f"samples?a={run}&task=code", "article.pair")
        cards = self.page.texts("article.pair")
        for number, card in enumerate(cards):
            self.assertEqual("The program failed" in card, number % 2 == 0, card)
        self.assertIn("AssertionError: half of 0", cards[0])
        self.assertTrue(all("cut off" in card for card in cards), cards[0])
        said = self.page.run("""const node = document.querySelector('.side .said');
            return [getComputedStyle(node).fontFamily, node.textContent, ...['comment', 'word', 'number'].map((kind) => node.querySelector(`.code-${kind}`).textContent)];""")
        self.assertIn("monospace", said[0])
        self.assertEqual(said[1:], ["    # the half\n    return n // 2", "# the half", "return", "2"])

    def test_what_a_failed_program_printed_is_on_its_card(self):
        run = self.service.of_series("west", 200, tasks=("code",), text="    print('halving', n)\n    return n // 2")
        self.assertEqual(self.service.finished(run)["state"], "done")
        self.go(f"samples?a={run}&task=code", "article.pair")
        cards = self.page.texts("article.pair")
        for number, card in enumerate(cards):
            self.assertEqual("It had printed" in card and f"halving {2 * number}" in card, number % 2 == 0, card)

    def test_samples_of_a_task_at_work_are_those_so_far(self):
        run = self.service.made_up("at-work", delay_ms=300, concurrency=2)
        self.addCleanup(self.service.cancel, run)
        of = lambda: self.service.get(f"/v1/runs/{run}")["progress"]["tasks"]
        self.page.wait("scored documents", lambda: next((task["scored"] for task in of() if task["task"] == "sums"), 0))
        self.go(f"run/{run}", "#tasks")
        self.page.wait("a way to them", lambda: "so far" in self.page.texts("main td a"))
        self.go(f"samples?a={run}&task=sums", "article.pair")
        first = self.service.get(f"/v1/runs/{run}/samples/sums?limit=200")
        self.assertEqual(first["so_far"]["documents"], 120)
        self.assertLess(first["so_far"]["scored"], 120)
        self.assertEqual(first["total"], first["so_far"]["scored"])
        self.assertIn("so far", self.page.text(".so-far .badge"))
        self.assertRegex(self.page.text(".so-far"), r"at-work is at work: \d+ of 120 documents scored so far")
        self.assertRegex(self.page.text(".lead"), r"\d+ documents? so far$")
        shown = lambda: int(re.search(r"(\d+) of 120", self.page.text(".so-far")).group(1))
        before = shown()
        self.page.wait("more of them", lambda: (self.page.click(".so-far button"), self.page.wait("the page", lambda: self.page.count("article.pair")), shown() > before)[-1])
        self.assertEqual(self.page.run(checks.STRUCTURE), [])
        self.assertEqual(checks.unnamed(self.page), [])

    def test_runs_have_names_tags_and_notes(self):
        run = self.ids["markup"]
        self.go(f"run/{run}", ".page-head button")
        self.page.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Name, tags, note').click();")
        self.page.wait("the dialog", lambda: self.page.count("dialog[open]"))
        self.page.type("<i>warm</i>")
        self.page.press("Tab")
        self.page.type("seed 2, final,seed 2")
        self.page.press("Tab")
        self.page.type("As before.")
        self.page.press("Enter")
        self.page.wait("the name", lambda: self.page.text("main h1") == "<i>warm</i>")
        now = self.service.get(f"/v1/runs/{run}")
        self.assertEqual((now["title"], now["tags"], now["note"]), ("<i>warm</i>", ["seed 2", "final"], "As before."))
        self.assertIn("As before.", self.page.text(".labels"))
        # They are there in the next life of the service, and in the list.
        self.service.stop()
        self.service.start()
        self.assertEqual(self.service.get(f"/v1/runs/{run}")["title"], "<i>warm</i>")
        self.go("", "tbody tr")
        self.page.wait("it is in the list", lambda: "<i>warm</i>" in self.page.texts("tbody th a"))
        self.assertEqual(self.service.change(run, title="", tags=[], note="")["title"], "")
        self.page.wait("its old name", lambda: "markup" in self.page.texts("tbody th a"))

    # ---- live

    def test_progress_is_live(self):
        self.go("", "tbody tr")
        before = self.page.count("tbody tr")
        self.page.run("window.stays = true;")
        run = self.service.made_up("slow", delay_ms=3000)  # for minutes: it is cancelled before
        self.page.wait("the run's card", lambda: "slow" in self.page.text(".card"))
        self.page.wait("its row", lambda: self.page.count("tbody tr") == before + 1)
        bar = "return document.querySelector('.card progress')?.value ?? -1;"
        first = self.page.wait("progress", lambda: self.page.run(bar) > 0 and self.page.run(bar))
        self.page.wait("more progress", lambda: self.page.run(bar) > first)
        self.go(f"run/{run}", "progress")
        self.page.wait("what is at work", lambda: "at work" in self.page.text("main") and self.page.count(".at-work li"))
        self.page.wait("the timeline so far", lambda: self.page.count("svg.timeline rect.span-generate"))
        self.page.wait("documents", lambda: re.search(r"generate\s+[1-9]\d* of 180 documents", self.page.text("main")))
        # One that waits for the workers of the first, which has the higher priority.
        other = self.service.made_up("quick", priority=-1)
        self.go(f"run/{other}", ".page-head button")
        self.page.run("window.stays = true;")
        self.service.cancel(run)
        self.page.wait("the end", lambda: self.page.text("main .badge").endswith("done"))
        self.page.wait("the timeline", lambda: self.page.count("svg.timeline rect"))
        self.page.wait("that it is said", lambda: "The run is done" in self.page.text("#announcer"))
        self.assertTrue(self.page.run("return window.stays;"), "all without loading the page anew")

    def test_pause_priority_cancel(self):
        run = self.service.made_up("held", delay_ms=10000)
        self.go(f"run/{run}", ".page-head button")
        button = lambda label: self.page.run("""const button = [...document.querySelectorAll('button')].find((b) => b.textContent.startsWith(arguments[0])
            && !b.disabled); if (button) button.click(); return Boolean(button);""", label)
        self.page.wait("Pause", lambda: button("Pause"))
        self.page.wait("paused", lambda: self.service.get(f"/v1/runs/{run}")["state"] == "paused")
        self.page.wait("Priority", lambda: button("Priority"))
        self.page.wait("the dialog", lambda: self.page.count("dialog[open]"))
        self.page.run("document.querySelector('dialog input').value = '7';")
        self.page.press("Enter")
        self.page.wait("priority 7", lambda: self.service.get(f"/v1/runs/{run}")["priority"] == 7)
        self.page.wait("Cancel", lambda: button("Cancel"))
        self.page.wait("the question", lambda: self.page.count("dialog[open]"))
        self.assertEqual(self.page.focused()[1], "Leave it", "Enter by mistake cancels nothing")
        button("Cancel the run")
        self.page.wait("cancelled", lambda: "cancelled" in self.page.text("main .badge"))

    def test_a_lost_connection_comes_back(self):
        self.go("", "tbody tr")
        self.page.wait("live", lambda: self.page.text("#link-state") == "Live")
        self.service.stop(signal.SIGKILL)
        self.page.wait("lost", lambda: "No connection" in self.page.text("#link-state"))
        self.service.start()
        self.page.wait("live again", lambda: self.page.text("#link-state") == "Live")
        rows = self.page.count("tbody tr")
        run = self.service.made_up("after", delay_ms=0)
        self.page.wait("a new run", lambda: self.page.count("tbody tr") == rows + 1)
        self.service.finished(run)

    def test_pages_that_were_left_hold_no_connection(self):
        # A browser has six connections to a host; each page follows events over one of them.
        for _ in range(3):
            for place in ("", "checkpoints", "fleet", f"run/{self.ids['step-01200']}"):
                self.page.open("about:blank")
                self.page.open(f"{self.service.url}/#/{place}")
                self.page.wait("live", lambda: self.page.text("#link-state") == "Live")
        streams = lambda: int(re.search(r"^evald_http_event_streams (\d+)$", self.metrics(), re.M).group(1))
        self.page.wait("only one follower", lambda: streams() == 1)

    def check_structure(self, name):
        """Of the view that is shown: what a screen reader gets."""
        self.assertEqual(self.page.run(checks.STRUCTURE), [], name)
        self.assertEqual(checks.unnamed(self.page), [], name)
        if AXE:
            self.page.run(pathlib.Path(AXE).read_text() + "; window.axe = axe;")
            found = self.page.run_async("""const result = await window.axe.run();
                return result.violations.map((v) => [v.id, v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160))]);""")
            self.assertEqual(found, [], name)

    def metrics(self):
        with urllib.request.urlopen(self.service.url + "/metrics", timeout=120) as answer:
            return answer.read().decode()

    def test_watched_folders_are_shown(self):
        folder = self.folder / "watched"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", folder / "step-00100")
        body = json.dumps({"checkpoints": str(folder), "settle_s": 0.2, "base": str(self.folder), "config": {
            "tasks": ["choice"], "task_dirs": ["tasks"], "engine": {"name": "emulated"}}}).encode()
        request = urllib.request.Request(self.service.url + "/v1/watches", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            watch = json.load(answer)["id"]
        self.go("fleet", "svg.strip")
        self.page.wait("the watch", lambda: "step-00100 submitted" in self.page.text("main section[aria-labelledby=watches]"))
        self.assertIn(str(folder), self.page.text("main section[aria-labelledby=watches]"))
        for run in self.service.get("/v1/runs?state=running")["runs"]:
            self.service.finished(run["id"])
        request = urllib.request.Request(f"{self.service.url}/v1/watches/{watch}", method="DELETE")
        urllib.request.urlopen(request, timeout=120).read()
        self.page.wait("no watch", lambda: "None." in self.page.text("main section[aria-labelledby=watches]"))

    def test_a_host_that_left_is_said_to_have_left(self):
        command = [BINARIES / "evald", "agent", "--server", self.service.url, "--name", "north", "--root", self.folder / "north",
                   "--staging-root", self.folder / "north" / "staging", "--devices", "cpu:0", "--metric-processes", "1"]
        with open(self.folder / "north.log", "a") as log:
            agent = subprocess.Popen(command, stderr=log, preexec_fn=chromium.die_with_parent)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        host = "main section[data-host=north]"
        self.go("fleet", host)
        self.page.wait("a device of the host", lambda: "connected" in self.page.text(host) and "cpu:0" in self.page.text(host))
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(180), 0)
        self.page.wait("it left", lambda: self.page.text(host + " .badge").endswith("left") and self.page.text(host + " h3") == "")

    def test_launchers(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-web-", dir=self.folder))
        service = Service(folder, **made_up_queue.config(folder))
        self.addCleanup(made_up_queue.end, folder)
        self.addCleanup(service.stop)
        service.made_up("much", delay_ms=3000)
        launcher = "main section[data-launcher=queue]"
        shown = lambda: self.page.text(launcher)
        self.page.open("about:blank")
        self.page.open(f"{service.url}/#/fleet")
        self.page.wait("a node that works", lambda: self.page.count(f"{launcher} tbody tr") == 3 and "working" in shown())
        self.page.wait("jobs that wait", lambda: shown().count("Resources") == 2 and shown().count("expected") == 2)
        job = service.get("/v1/launchers")["launchers"][0]["jobs"][0]
        row = next(row for row in self.page.texts(f"{launcher} tbody tr") if "working" in row)
        for text in ("n2", "since", job["host"]):
            self.assertIn(text, row)
        self.assertIn("1 of at most 3", self.page.text(f"{launcher} dl"))
        # A node that failed is named with the reason, and asked for again when a person says so.
        self.page.wait("the excluded node", lambda: "n7" in self.page.text(f"{launcher} .excluded"))
        self.assertIn("its agent has not come; the launcher says over", self.page.text(f"{launcher} .excluded"))
        self.assertNotIn("is not asked for: ", shown(), "the sentence stands there once")
        for width, scheme in itertools.product((1280, 420), ("light", "dark")):
            self.page.size(width, 900, mobile=width < 600)
            self.page.prefer(scheme)
            name = f"{width} {scheme}"
            self.check_structure(name)
            self.assertEqual(self.page.run(checks.CONTRAST)["found"], [], name)
            self.assertIsNone(checks.overflow(self.page), name)
            if SHOTS:
                self.page.screenshot(f"{SHOTS}/launchers-{width}-{scheme}.png")
        self.page.size(1280, 900)
        self.page.run("document.querySelector('button.link').click();")
        self.assertEqual(self.page.run("return document.activeElement.dataset.host;"), job["host"], "the job's host has the focus")
        self.page.run("document.querySelector('.excluded button').click();")
        self.page.wait("no excluded node", lambda: self.page.count(f"{launcher} .excluded") == 0)
        self.assertEqual(service.get("/v1/launchers")["launchers"][0]["excluded"], [])
        # The host of a job that is over is shown no more; the service remembers it for a while.
        made_up_queue.end(folder, job["job"])
        self.page.wait("no such host", lambda: self.page.count(f"main section[data-host={job['host']}]") == 0, 120)
        self.assertIn((job["host"], "left"), [(host["id"], host["state"]) for host in service.get("/v1/hosts")["hosts"]])

    def test_a_token_is_asked_for(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-web-", dir=self.folder))
        service = Service(folder, tokens=True)
        self.addCleanup(service.stop)
        self.page.open(service.url + "/")
        self.page.wait("the dialog", lambda: self.page.count("dialog[open] input[type=password]") == 1)
        self.page.type("not-the-token-of-this-server")
        self.page.press("Enter")
        self.page.wait("refused", lambda: "not known" in self.page.text("dialog[open]"))
        self.page.type(TOKEN)
        self.page.press("Enter")
        self.page.wait("the empty list", lambda: "No runs yet" in self.page.text("main"))
        self.assertIn("evald submit", self.page.text(".empty"))
        self.page.wait("live", lambda: self.page.text("#link-state") == "Live")
        self.assertEqual(self.page.run("return [localStorage.length, sessionStorage.length, document.cookie];"), [0, 1, ""])
        self.page.open(service.url + "/")
        self.page.wait("no question again", lambda: "No runs yet" in self.page.text("main"))

    # ---- for everyone

    def test_keyboard(self):
        self.go("", "tbody tr")
        self.page.press("Tab")
        self.assertEqual(self.page.focused(), ["a", "Skip to the content"])
        self.page.press("Enter")
        self.assertEqual(self.page.focused()[0], "main")
        self.page.press("2")
        self.page.wait("checkpoints", lambda: self.page.text("main h1") == "Checkpoints")
        self.page.wait("the heading's focus", lambda: self.page.focused() == ["h1", "Checkpoints"])
        self.page.press("3")
        self.page.wait("the samples", lambda: self.page.text("main h1") == "Samples")
        self.page.press("4")
        self.page.wait("the fleet", lambda: self.page.text("main h1") == "Fleet")
        self.page.press("1")
        # A page that is being left shows its own rows until the next one's have come.
        self.page.wait("the runs", lambda: self.page.text("main h1") == "Runs" and self.page.count("tbody th a") > 2)
        names = self.page.texts("tbody th a")
        self.page.press("j", "j", "j", "k")
        self.assertEqual(self.page.focused(), ["a", names[1]])
        self.page.press("Enter")
        self.page.wait("the run", lambda: self.page.text("main h1") == names[1])
        self.page.press("?")
        self.page.wait("help", lambda: self.page.count("dialog[open]"))
        self.page.press("2")  # does nothing while a dialog is open
        self.page.press("Escape")
        self.page.wait("no help", lambda: not self.page.count("dialog[open]"))
        self.assertEqual(self.page.text("main h1"), names[1])
        self.page.press("t")
        self.assertEqual(self.page.run("return document.documentElement.dataset.theme;"), "light")
        self.page.press("t", "t")
        self.assertIsNone(self.page.run("return document.documentElement.dataset.theme ?? null;"))

    def test_sorting_by_keyboard(self):
        self.go(f"checkpoints?run={self.ids['step-00100']}", "svg.chart")
        self.page.run("document.querySelectorAll('th button.sort')[4].focus();")
        self.page.press("Enter")
        values = self.page.texts("tbody td:nth-child(5)")
        self.assertEqual(values, sorted(values, reverse=True))
        self.assertEqual(self.page.run("return document.querySelectorAll('thead th')[4].getAttribute('aria-sort');"), "descending")
        self.page.press("Enter")
        self.assertEqual(self.page.texts("tbody td:nth-child(5)"), sorted(values))
        self.page.press("Enter")
        self.assertEqual(self.page.texts("tbody th"), TASKS)

    def test_points_of_a_chart_by_keyboard(self):
        self.go(f"checkpoints?run={self.ids['step-00100']}", "svg.chart")
        self.page.run("document.querySelector('svg.chart a[tabindex=\"0\"]').focus();")
        self.assertIn("step 1,200", self.page.focused()[1])
        self.page.press("ArrowLeft", "ArrowLeft")
        self.assertEqual(self.page.focused()[1], f"step 350: {score(self.runs['step-00350']['scores'][TASKS[0]])}")
        self.assertEqual(self.page.text("figure .readout"), self.page.focused()[1])
        self.page.press("Home")
        self.page.press("Enter")
        self.page.wait("the run", lambda: self.page.text("main h1") == "step-00100")

    def test_every_stop_of_tab_can_be_seen(self):
        for name in self.each_view():
            stops = self.page.run("return document.querySelectorAll('a[href], button:not(:disabled), select, input, [tabindex=\"0\"]').length;")
            seen = 0
            for _ in range(min(stops, 40)):
                self.page.press("Tab")
                shown = self.page.run("""const node = document.activeElement;
                    if (node === document.body) return 'body';
                    const box = node.getBoundingClientRect();
                    const ring = getComputedStyle(node).outlineStyle !== 'none' || node.querySelector('.halo') !== null
                        && getComputedStyle(node.querySelector('.halo')).stroke !== 'none';
                    return ring && box.width > 0 && box.bottom > 0 && box.top < innerHeight ? 'seen' : node.outerHTML.slice(0, 120);""")
                if shown == "body":
                    break
                self.assertEqual(shown, "seen", name)
                seen += 1
            self.assertGreater(seen, 5, name)

    def test_names_roles_and_structure(self):
        for name in self.each_view():
            self.check_structure(name)

    def test_contrast_in_light_and_dark(self):
        for scheme in ("light", "dark"):
            self.page.prefer(scheme)
            for name in self.each_view():
                self.page.run("document.querySelectorAll('details').forEach((node) => { node.open = true; });")
                result = self.page.run(checks.CONTRAST)
                self.assertEqual(result["found"], [], f"{name} {scheme}")
                self.assertGreater(result["texts"], 8)
                if SHOTS:
                    self.page.run("document.querySelectorAll('details').forEach((node) => { node.open = false; });")
                    self.page.screenshot(f"{SHOTS}/{name}-{scheme}.png")

    def test_the_switch_of_colours(self):
        self.page.prefer("dark")
        ground = "return getComputedStyle(document.body).backgroundColor;"
        self.go("", "tbody tr")
        self.assertEqual(self.page.text("#theme"), "Colours: auto", "it says what it sets")
        dark = self.page.run(ground)
        self.page.click("#theme")
        light = self.page.run(ground)
        self.assertNotEqual(light, dark)
        self.go("", "tbody tr")
        self.assertEqual(self.page.run(ground), light, "it is remembered")
        self.page.click("#theme")
        self.assertEqual(self.page.run(ground), dark)
        self.page.click("#theme")
        self.page.run("localStorage.clear();")

    def test_a_phone_shows_scores_in_the_list_of_runs(self):
        self.page.size(360, 740, mobile=True)
        self.go("", "tbody tr")
        rows = self.page.texts("tbody tr")
        self.assertTrue(any("quickstart_math" in row and "0.775" in row for row in rows), rows[:3])

    def test_phone_width(self):
        for width in (360, 320):
            self.page.size(width, 740, mobile=True)
            for name in self.each_view():
                self.page.run("document.querySelectorAll('details').forEach((node) => { node.open = true; });")
                self.assertIsNone(checks.overflow(self.page), f"{name} at {width}")
                if SHOTS and width == 360:
                    self.page.run("document.querySelectorAll('details').forEach((node) => { node.open = false; });")
                    self.page.screenshot(f"{SHOTS}/{name}-phone.png")

    # ---- on its own

    def test_nothing_comes_from_elsewhere(self):
        for name in self.each_view():
            origins = set(self.page.run("return performance.getEntriesByType('resource').map((entry) => new URL(entry.name).origin);"))
            self.assertEqual(origins, {self.service.url}, name)
        for file in sorted((SOURCE / "orchestrator" / "web").iterdir()):
            if file.suffix in (".js", ".html", ".css", ".svg"):
                text = file.read_text()
                self.assertIsNone(re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc|javascript:", text), file)
                self.assertIsNone(re.search(r"(src|href|url|import)[^\n]{0,20}https?://", text), file)

    def test_ten_thousand_runs_and_a_hundred_thousand_samples(self):
        script = self.page.devtools("Page.addScriptToEvaluateOnNewDocument", source=(HERE / "fake_service.js").read_text())
        self.addCleanup(lambda: self.page.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"]))
        self.go("", "tbody tr")
        self.assertEqual(self.page.count("tbody tr"), 50)
        for page in (2, 3):
            self.page.press("n")
            self.page.wait("the next page", lambda: f"Page {page}" in self.page.text(".pages"))
        self.page.wait("its rows", lambda: self.page.text("tbody th a") == "step-9900")
        self.go("checkpoints", "svg.chart")
        self.assertLess(self.page.run("return document.querySelectorAll('*').length;"), 15000)
        self.assertEqual(len(self.page.run("return window.asked.filter((path) => path.startsWith('/v1/runs'));")), 1)
        self.go("samples?a=r1&b=r2&task=task_0&show=gained", ".empty")
        self.go("samples?a=r1&b=r2&task=task_0&show=lost", "article.pair")
        self.assertEqual(self.page.texts("article.pair h2")[:2], ["Document 999", "Document 1999"])
        self.assertLess(self.page.run("return window.asked.length;"), 450)
        self.go("samples?a=r1&b=r2&task=task_0&show=all", "article.pair")
        self.assertEqual(self.page.count("article.pair"), 10)
        self.assertLess(self.page.run("return window.asked.length;"), 12)


if __name__ == "__main__":
    unittest.main(verbosity=2)
