"""Gates from end to end: exit statuses, and equal statements in all reports."""
import html.parser
import json
import os
import re
import unittest
import xml.etree.ElementTree as ElementTree

from evald_case import BINARIES, QUICKSTART, EvaldCase
from service_case import Service

MATH = {"task": "quickstart_math", "metric": "exact_match", "filter": "strict-match"}
SUMS = {"task": "sums", "metric": "exact_match"}


class Page(html.parser.HTMLParser):
    """Reads the cells of every table by its caption, and finds elements that a page must not have."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.tags, self.references, self.cell, self.caption = {}, set(), [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.references += [value for name, value in attributes if name in ("src", "href", "srcset")]
        if tag in ("td", "th", "caption"):
            self.cell = ""
        if tag == "tr":
            self.tables[self.caption].append([])

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self.caption = self.cell
            self.tables[self.caption] = []
        elif tag in ("td", "th"):
            self.tables[self.caption][-1].append(self.cell)
        if tag in ("td", "th", "caption"):
            self.cell = None


def markdown_rows(text, first):
    """The rows of the table whose header begins with `first`."""
    lines = text.split("\n")
    start = next(i for i, line in enumerate(lines) if line.startswith(f"| {first} |"))
    rows = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        rows.append([re.sub(r"\\(.)", r"\1", cell.strip()) for cell in cells])
    return rows


def annotations(out):
    found = []
    for line in out.splitlines():
        match = re.fullmatch(r"::(error|warning|notice) title=(.*?)::(.*)", line)
        if match:
            unescape = lambda text: re.sub(r"%([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), text)
            found.append((match.group(1), unescape(match.group(2)), unescape(match.group(3))))
    return found


class GatesCase(EvaldCase):
    def policy(self, *rules, **top):
        path = self.folder / "gates.yaml"
        path.write_text(json.dumps({**top, "rules": list(rules)}, indent=1))
        return path

    def environment(self):
        self.summary = self.folder / "summary.md"
        plain = {k: v for k, v in os.environ.items() if not k.startswith("GITHUB_")}
        return dict(plain, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(self.summary))

    def check_reports(self, verdict, out, status):
        """JUnit, Markdown, HTML, annotations and the summary agree with verdict.json."""
        gates = {gate["name"]: gate for gate in verdict["gates"]}
        self.assertEqual(verdict["exit_status"], status)
        page = Page((self.folder / "report.html").read_text())
        rows = page.tables["Every gate and what became of it"][1:]
        self.assertEqual({row[0]: row[2] for row in rows}, {name: g["outcome"] for name, g in gates.items()})
        self.assertEqual({row[0]: row[5] for row in rows}, {name: g["cause"] for name, g in gates.items()})
        self.assertFalse(page.tags & {"script", "link", "img", "iframe"})
        self.assertEqual(page.references, [])
        markdown = (self.folder / "report.md").read_text()
        rows = markdown_rows(markdown, "Gate")
        self.assertEqual({row[0]: row[2].split(" ", 1)[1] for row in rows}, {name: g["outcome"] for name, g in gates.items()})
        self.assertEqual(self.summary.read_text(), markdown)
        self.check_junit(gates, status)
        shown = annotations(out)
        blocking = {name for name, gate in gates.items() if gate["blocks"]}
        errors = {title.split(": ", 1)[1] for level, title, _ in shown if level == "error" and title.startswith("evald gate ")}
        self.assertEqual(errors, blocking)
        self.assertEqual(shown[-1][0], "notice")
        self.assertIn(verdict["summary"], shown[-1][2])

    def check_junit(self, gates, status):
        root = ElementTree.parse(self.folder / "junit.xml").getroot()
        cases = {case.get("name"): case for case in root.iter("testcase") if case.get("classname") != "evald.run"}
        self.assertEqual(set(cases), set(gates))
        for name, gate in gates.items():
            kinds = [child.tag for child in cases[name] if child.tag != "system-out"]
            expected = [] if gate["outcome"] == "pass" else ["skipped"] if not gate["blocks"] else \
                ["failure"] if gate["outcome"] == "fail" else ["error"]
            self.assertEqual(kinds, expected, name)
            for child in cases[name]:
                self.assertIn(gate["cause"], child.get("message", child.text))
        bad = int(root.get("failures")) + int(root.get("errors"))
        self.assertEqual(bad > 0, status != 0)
        self.assertEqual(int(root.get("tests")), len(list(root.iter("testcase"))))

    def reports(self):
        return ["--junit", self.folder / "junit.xml", "--markdown", self.folder / "report.md",
                "--html", self.folder / "report.html"]


class Quickstart(GatesCase):
    """The example's checkpoints: one from early and one from late in training."""

    def evaluate(self, step, *arguments, **options):
        return self.evald("run", QUICKSTART / "eval.yaml", "--quiet", "--set", f"checkpoint=checkpoints/step-{step}",
                          "--set", f"output.dir={self.folder / 'runs'}", "--set", f"output.name=step-{step}",
                          "--set", f"state_dir={self.folder / 'state'}", "--set", f"cache_dir={self.folder / 'cache'}",
                          "--set", f"staging.root={self.folder / 'staging'}", *arguments, **options)

    def test_the_early_checkpoint_fails_the_last_passes_and_too_few_documents_decide_nothing(self):
        policy = self.policy({**MATH, "min": 0.9}, {**MATH, "min": 0.6, "confident": True, "name": "math, surely"},
                             {"task": "quickstart_choice", "metric": "acc", "min": 0.99, "tier": "supporting"})
        early = self.evaluate("00100", "--gates", policy, *self.reports(), env=self.environment())
        self.assertEqual(early.returncode, 1, early.stderr)
        verdict = json.loads((self.folder / "runs/step-00100/verdict.json").read_text())
        self.assertEqual([gate["outcome"] for gate in verdict["gates"]], ["fail"] * 3)
        self.check_reports(verdict, early.stdout, 1)
        self.summary.unlink()

        # The late checkpoint meets the gates, and is not worse than the early one.
        policy = self.policy({**MATH, "min": 0.9}, {**MATH, "max_drop": 0}, baseline=str(self.folder / "runs/step-00100"))
        last = self.evaluate("01200", "--gates", policy, *self.reports(), env=self.environment())
        self.assertEqual(last.returncode, 0, last.stderr + last.stdout)
        verdict = json.loads((self.folder / "runs/step-01200/verdict.json").read_text())
        self.check_reports(verdict, last.stdout, 0)
        self.assertEqual((self.folder / "runs/step-01200/report.html").read_text(), (self.folder / "report.html").read_text())
        results = json.loads((self.folder / "runs/step-01200/results.json").read_text())
        value = results["results"]["quickstart_math"]["exact_match,strict-match"]
        self.assertEqual(verdict["gates"][0]["candidate"], value, "the value is the one in the results")
        self.summary.unlink()

        # Compared the other way round, the early checkpoint is worse. A program reads this verdict.
        policy = self.policy({**MATH, "max_drop": 0.05}, {"task": "quickstart_code", "metric": "pass@1", "max_relative_drop": 0.1})
        pair = (self.folder / "runs/step-00100", self.folder / "runs/step-01200")
        worse = self.evald("compare", *pair, "--gates", policy, *self.reports(), env=self.environment())
        self.assertEqual(worse.returncode, 1, worse.stderr)
        document = json.loads(self.evald("compare", *pair, "--gates", policy, "--json").stdout)
        self.assertEqual(document["exit_status"], 1)
        self.check_reports(document["verdict"], worse.stdout, 1)
        self.summary.unlink()
        math = next(row for row in document["verdict"]["comparisons"] if row["filter"] == "strict-match")
        self.assertEqual((math["candidate"], math["baseline"], math["pairs"]), (0.0125, value, 80))
        self.assertAlmostEqual((math["lost"] - math["gained"]) / 80, value - 0.0125)

        # Five documents are too few for a decision.
        policy = self.policy({**MATH, "max_drop": 0})
        few = self.evaluate("01200", "--set", "output.name=few", "--set", "tasks=[{task: quickstart_math, limit: 5}]",
                            "--gates", policy, "--baseline", self.folder / "runs/step-01200", *self.reports(),
                            env=self.environment())
        self.assertEqual(few.returncode, 4, few.stderr + few.stdout)
        verdict = json.loads((self.folder / "runs/few/verdict.json").read_text())
        self.assertEqual(verdict["gates"][0]["pairs"], 5)
        self.assertEqual(verdict["gates"][0]["only_baseline"], 75)
        self.check_reports(verdict, few.stdout, 4)


class MadeUp(GatesCase):
    """Answers of the emulated engine. They are right for the documents that a test chooses."""

    def evaluate(self, name, right, documents=200, extra=(), **changes):
        self.make_suite(sums=documents)
        answers = [f" {i}" if right(i) else " x" for i in range(documents)]
        with open(self.tasks / "sums.jsonl", "w") as out:
            for i in range(documents):
                out.write(json.dumps({"question": f"Number {i}?", "answer": f" {i}"}) + "\n")
        generations = self.folder / f"answers-{name}" / "sums"
        generations.mkdir(parents=True)
        with open(generations / "1.1.jsonl", "w") as out:
            for i, answer in enumerate(answers):
                out.write(json.dumps({"doc_id": i, "idx": 0, "repeat": 0, "text": answer, "finish": "stop",
                                      "tokens_in": 1, "tokens_out": 1, "truncated": 0}) + "\n")
        config = self.write_config(tasks=["sums"], engine={"name": "replay", "generations": str(generations.parent)},
                                   output={"dir": "runs", "name": name}, **changes)
        return self.evald("run", config, "--quiet", "--json", *extra)

    def test_eval_yaml_holds_gates_and_the_json_document_the_verdict(self):
        base = self.evaluate("base", lambda i: i % 2)
        self.assertEqual(base.returncode, 0, base.stderr)
        self.assertNotIn("verdict", json.loads(base.stdout))
        self.assertTrue((self.folder / "runs/base/report.html").exists())
        self.assertFalse((self.folder / "runs/base/verdict.json").exists())
        gates = {"baseline": "runs/base", "rules": [{**SUMS, "max_drop": 0}]}
        worse = self.evaluate("worse", lambda i: i % 2 and i > 40, gates=gates)
        self.assertEqual(worse.returncode, 1, worse.stderr)
        document = json.loads(worse.stdout)
        self.assertEqual(document["exit_status"], 1)
        gate = document["verdict"]["gates"][0]
        self.assertEqual((gate["lost"], gate["gained"], gate["pairs"]), (20, 0, 200))
        self.assertEqual(gate["p_fail"], 0.5 ** 20)
        self.assertEqual(document["verdict"], json.loads((self.folder / "runs/worse/verdict.json").read_text()))
        same = self.evaluate("same", lambda i: i % 2, gates=gates)
        self.assertEqual(same.returncode, 0, same.stdout)
        plan = self.evald("validate", self.folder / "eval.yaml")
        self.assertIn("sums exact_match: max_drop 0", plan.stdout)

    def test_a_report_may_go_to_a_pipe(self):
        self.assertEqual(self.evaluate("base", lambda i: i % 2).returncode, 0)
        run = self.folder / "runs/base"
        done = self.evald("compare", run, run, "--json", "--markdown", "/dev/stderr")
        self.assertEqual(done.returncode, 0)
        self.assertIn("## evald: pass", done.stderr)
        self.assertEqual(len(done.stdout.splitlines()), 1)

    def test_only_critical_gates_set_the_exit_status(self):
        gates = {"rules": [{**SUMS, "min": 0.9, "tier": "advisory"}, {**SUMS, "min": 0.8, "tier": "supporting"},
                           {**SUMS, "min": 0.1}]}
        done = self.evaluate("one", lambda i: i % 2, gates=gates, extra=self.reports())
        self.assertEqual(done.returncode, 0, done.stderr)
        verdict = json.loads(done.stdout)["verdict"]
        self.assertEqual([gate["outcome"] for gate in verdict["gates"]], ["fail", "fail", "pass"])
        self.check_junit({gate["name"]: gate for gate in verdict["gates"]}, 0)

    def test_the_last_run_is_a_baseline(self):
        last = self.folder / "runs/last"
        self.assertEqual(self.evaluate("one", lambda i: i % 2).returncode, 0)
        self.assertEqual(os.readlink(last), "one")
        policy = self.policy({**SUMS, "max_drop": 0.01})
        worse = self.evaluate("two", lambda i: i % 4 == 0, extra=["--gates", policy, "--baseline", last])
        self.assertEqual(worse.returncode, 1, worse.stderr)
        self.assertEqual(os.readlink(last), "two", "the last run is the one that ended last, whatever its verdict")
        verdict = json.loads((self.folder / "runs/two/verdict.json").read_text())
        self.assertEqual((verdict["gates"][0]["candidate"], verdict["gates"][0]["baseline"]), (0.25, 0.5))

    def test_the_harnesss_results_are_a_baseline(self):
        self.assertEqual(self.evaluate("base", lambda i: i % 2).returncode, 0)
        harness = self.folder / "harness"
        harness.mkdir()
        results = json.loads((self.folder / "runs/base/results.json").read_text())
        results.pop("evald")
        (harness / "results_2026-01-01T00-00-00.000001.json").write_text(json.dumps(results))
        samples = (self.folder / "runs/base/samples_sums.jsonl").read_text()
        (harness / "samples_sums_2026-01-01T00-00-00.000001.jsonl").write_text(samples)
        policy = self.policy({**SUMS, "max_drop": 0.01})
        for baseline in (harness, harness / "results_2026-01-01T00-00-00.000001.json"):
            done = self.evald("compare", self.folder / "runs/base", baseline, "--gates", policy)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        without = harness / "alone" / "results_x.json"
        without.parent.mkdir()
        without.write_text(json.dumps(results))
        refused = self.evald("run", self.folder / "eval.yaml", "--gates", policy, "--baseline", without)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--log_samples", refused.stderr)

    def test_another_document_is_no_pair(self):
        self.assertEqual(self.evaluate("base", lambda i: i % 2).returncode, 0)
        samples = self.folder / "runs/base/samples_sums.jsonl"
        lines = samples.read_text().splitlines()
        line = json.loads(lines[7])
        line["doc_hash"] = "0" * 64
        (self.folder / "other").mkdir()
        (self.folder / "other/results.json").write_text((self.folder / "runs/base/results.json").read_text())
        (self.folder / "other/samples_sums.jsonl").write_text("\n".join([*lines[:7], json.dumps(line), *lines[8:]]) + "\n")
        done = self.evald("compare", self.folder / "runs/base", self.folder / "other", "--gates",
                          self.policy({**SUMS, "max_drop": 0}))
        self.assertEqual(done.returncode, 2)
        self.assertIn("document 7 is not the same", done.stdout)
        # Results that do not agree with their samples are refused too.
        results = json.loads((self.folder / "runs/base/results.json").read_text())
        results["results"]["sums"]["exact_match,none"] = 0.75
        (self.folder / "other/results.json").write_text(json.dumps(results))
        done = self.evald("compare", self.folder / "other", self.folder / "runs/base", "--gates",
                          self.policy({**SUMS, "max_drop": 0}))
        self.assertEqual(done.returncode, 2)
        self.assertIn("its samples give 0.5", done.stdout)

    def test_bad_gates_are_refused_before_anything_runs(self):
        self.make_suite()
        cases = [({"rules": [{**SUMS, "max_dorp": 0}]}, r"gates.yaml:\d+: unknown key 'rules\[0\].max_dorp'|needs one of"),
                 ({"rules": [{**SUMS, "min": 0.5, "teir": "advisory"}]}, r"gates.yaml:\d+: unknown key .*did you mean 'tier'"),
                 ({"rules": [{**SUMS, "max_drop": 0}]}, r"gates.yaml:6: key 'rules\[0\].max_drop': needs a baseline"),
                 ({"rules": [{**SUMS, "mn": 0.5}]}, r"gates.yaml:6: unknown key 'rules\[0\].mn'; did you mean 'min'\?"),
                 ({"rules": [{**SUMS, "min": 0, "metric": "exact_mach"}]},
                  r"gates.yaml:5: key 'rules\[0\].metric': 'sums' has no metric 'exact_mach'; did you mean 'exact_match'\?; it has exact_match"),
                 ({"rules": [{**SUMS, "min": 0, "filter": "non"}]},
                  r"gates.yaml:7: key 'rules\[0\].filter': 'sums' has no 'exact_match' for a filter 'non'; did you mean 'none'\?"),
                 ({"rules": [{"task": "all", "metric": "acc", "min": 0}]}, r"'all' has no metrics; it is a heading; name one of sums, choice"),
                 ({"rules": [{**SUMS, "task": "smus", "min": 0}]}, "gates.yaml:4: key 'rules.0..task': 'smus' is not evaluated; did you mean 'sums'"),
                 ({"baseline": "nowhere", "rules": [{**SUMS, "max_drop": 0}]}, "gates.yaml:2: key 'baseline': .*nowhere: no such file"),
                 ({"baseline": "tasks", "rules": [{**SUMS, "max_drop": 0}]},
                  "gates.yaml:2: key 'baseline': .*tasks: holds no results files; name a run's folder or a results file"),
                 ({"baseline": "other.json", "rules": [{**SUMS, "max_drop": 0}]},
                  r"gates.yaml:5: key 'rules\[0\].task': no results of 'sums' in .*other.json"),
                 ({"baseline": "less.json", "rules": [{**SUMS, "max_drop": 0}]},
                  r"gates.yaml:6: key 'rules\[0\].metric': 'sums' has no metric 'exact_match' in .*less.json; it has acc"),
                 ({"baseline": "begun", "rules": [{**SUMS, "max_drop": 0}]}, "gates.yaml:2: key 'baseline': .*begun: this run is not complete")]
        (self.folder / "other.json").write_text(json.dumps({"results": {"choice": {"acc,none": 1}}}))
        (self.folder / "less.json").write_text(json.dumps({"results": {"sums": {"acc,none": 1}}}))
        (self.folder / "begun").mkdir()
        (self.folder / "begun/run.json").write_text("{}")
        (self.tasks / "all.yaml").write_text("group: all\ntask: [sums, choice]\n")
        for policy, message in cases:
            (self.folder / "gates.yaml").write_text(json.dumps(policy, indent=1))
            config = self.write_config(tasks=["all"])
            for command in (["run", config, "--quiet"], ["validate", config]):
                with self.subTest(message, command=command[0]):
                    done = self.evald(*command, "--gates", self.folder / "gates.yaml")
                    self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                    self.assertRegex(done.stderr, message)
                    self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.folder / "runs").exists())

    def test_a_metric_that_is_not_served_is_told_before_anything_runs(self):
        self.make_suite()
        text = (self.tasks / "sums.yaml").read_text()
        for wrong, message in [(text.replace("metric: exact_match", "metric: exact_mach"), "'exact_mach' is not served for generate_until"),
                               (text + "filter_list: [{name: f, filter: [{function: regx}]}]\n", "did you mean 'regex'")]:
            (self.tasks / "sums.yaml").write_text(wrong)
            for command in (["run", self.write_config(), "--quiet"], ["validate", self.write_config()]):
                done = self.evald(*command)
                self.assertEqual(done.returncode, 2, done.stderr + done.stdout)
                self.assertRegex(done.stderr, "sums.yaml:1: task 'sums'.*" + message)
        self.assertFalse((self.folder / "runs").exists())

    def test_an_incomplete_run_is_3_whatever_the_gates(self):
        self.make_suite(sums=20, choice=20)
        gates = {"rules": [{**SUMS, "min": 0.9}, {"task": "choice", "metric": "acc", "min": 0.5, "tier": "advisory"}]}
        config = self.write_config(gates=gates, engine={"name": "emulated", "fail_rate": 1},
                                   workers={"count": 1, "max_attempts": 1})
        done = self.evald("run", config, "--json", "--quiet", *self.reports())
        self.assertEqual(done.returncode, 3, done.stderr)
        verdict = json.loads(done.stdout)["verdict"]
        self.assertEqual({gate["outcome"] for gate in verdict["gates"]}, {"not scored"})
        self.assertEqual(verdict["status"], "incomplete")
        self.check_junit({gate["name"]: gate for gate in verdict["gates"]}, 3)


class Submitted(Service):
    def refusal(self, **changes):
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated", "delay_ms": 2}, **changes}
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        self.assertEqual(status, 422, body)
        return json.loads(body)["detail"]

    def test_gates_that_could_only_fail_are_refused_with_the_submission(self):
        self.make_suite(5, 5)
        self.serve()
        self.assertRegex(self.refusal(gates={"rules": [{**SUMS, "metric": "exact_mach", "min": 0}]}),
                         r"key 'gates.rules\[0\].metric': 'sums' has no metric 'exact_mach'; did you mean 'exact_match'")
        self.assertRegex(self.refusal(gates={"rules": [{"task": "choice", "metric": "acc", "min": 0}]}), "'choice' is not evaluated")
        self.assertRegex(self.refusal(gates={"baseline": str(self.folder / "nowhere"), "rules": [{**SUMS, "max_drop": 0}]}),
                         r"key 'gates.baseline': .*nowhere: no such file or folder")
        # A run without results yet may have them by the time the gates are judged.
        (self.folder / "begun").mkdir()
        (self.folder / "begun/run.json").write_text("{}")
        self.submit(gates={"baseline": str(self.folder / "begun"), "rules": [{**SUMS, "max_drop": 0}]}, tasks=["sums"])


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
