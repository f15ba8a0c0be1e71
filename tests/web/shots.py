#!/usr/bin/env python3
"""Pictures of every view of the page: a service with 60 tasks (57 of them in groups), 40 checkpoints of three training
runs, a run at work, and the quickstart's checkpoints.

    EVALD_BINARIES=build/release tests/web/shots.py FOLDER [VIEW ...]

writes FOLDER/page-<view>-<width>-<theme>.png for 1400 and 420 pixels, light and dark. `--docs` writes the pictures of
docs/web.md instead, or only the sheets of the named views, with at most 96 colours if pngquant is there."""
import base64
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))

import browser as chromium  # noqa: E402
import made_up_queue  # noqa: E402
from evald_case import QUICKSTART  # noqa: E402
from test_page import Service  # noqa: E402

SUBJECTS = {
    "stem": """abstract_algebra anatomy astronomy college_biology college_chemistry college_computer_science college_mathematics
        college_physics computer_security conceptual_physics electrical_engineering elementary_mathematics high_school_biology
        high_school_chemistry high_school_computer_science high_school_mathematics high_school_physics high_school_statistics
        machine_learning""",
    "other": """business_ethics clinical_knowledge college_medicine global_facts human_aging management marketing medical_genetics
        miscellaneous nutrition professional_accounting professional_medicine virology""",
    "social_sciences": """econometrics high_school_geography high_school_government_and_politics high_school_macroeconomics
        high_school_microeconomics high_school_psychology human_sexuality professional_psychology public_relations
        security_studies sociology us_foreign_policy""",
    "humanities": """formal_logic high_school_european_history high_school_us_history high_school_world_history international_law
        jurisprudence logical_fallacies moral_disputes moral_scenarios philosophy prehistory professional_law world_religions""",
}
OTHERS = {"gsm8k": 120, "triviaqa": 160, "drop": 120}
TASKS = ["mmlu", *OTHERS]
# The training runs: steps between checkpoints, checkpoints, and how good the last one is.
SERIES = {"pico-adam": (500, 14, 0.62), "pico-muon": (500, 13, 0.7), "pico-adam-long-warmup": (1000, 13, 0.55)}

# A document is right for the checkpoints that its targets name; the made-up engine answers with its checkpoint.
TASK = """task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: {name}.jsonl}}}}
output_type: generate_until
test_split: test
doc_to_text: "{{{{question}}}}\\nAnswer:"
doc_to_target: targets
generation_kwargs: {{until: ["\\n"], max_gen_toks: 16, do_sample: false}}
metric_list: [{{metric: exact_match, aggregation: mean, higher_is_better: true}}]
metadata: {{version: 1.0}}
"""
AGGREGATE = "aggregate_metric_list: [{metric: exact_match, aggregation: mean, weight_by_size: true}]\nmetadata: {version: 1}\n"

WIDTHS = {1400: 900, 420: 860}
SHEET_HEIGHT = 1500  # of the pictures in docs/ that show each view in both widths and themes
SCHEMES = ("light", "dark")


def answers():
    """(name of the checkpoint, share of its training) of each checkpoint."""
    for series, (_, count, best) in SERIES.items():
        for number in range(1, count + 2):  # and of the run at work
            yield f"{series}-{number}", best * (1 - math.exp(-3.2 * number / count)) / (1 - math.exp(-3.2))


def write_task(tasks, name, documents, draw):
    (tasks / f"{name}.yaml").write_text(TASK.format(name=name))
    ease = draw.uniform(-0.12, 0.16)
    with open(tasks / f"{name}.jsonl", "w") as out:
        for i in range(documents):
            at = draw.random()
            right = [answer for answer, level in answers() if at < min(0.97, max(0.02, level + ease + draw.gauss(0, 0.05)))]
            out.write(json.dumps({"question": f"{name.replace('_', ' ').capitalize()}, question {i + 1}", "targets": right or ["none"]}) + "\n")


def write_tasks(folder):
    tasks = folder / "tasks"
    draw = random.Random(7)
    for group, subjects in SUBJECTS.items():
        names = [f"mmlu_{subject}" for subject in subjects.split()]
        for name in names:
            write_task(tasks, name, 10, draw)
        (tasks / f"mmlu_{group}.group.yaml").write_text(f"group: mmlu_{group}\ntask: {json.dumps(names)}\n{AGGREGATE}")
    (tasks / "mmlu.group.yaml").write_text(f"group: mmlu\ntask: {json.dumps([f'mmlu_{group}' for group in SUBJECTS])}\n{AGGREGATE}")
    for name, documents in OTHERS.items():
        write_task(tasks, name, documents, draw)


def submit(service, series, number, priority=0, tasks=None, **engine):
    step = SERIES[series][0] * number
    checkpoint = service.folder / "train" / series / f"step-{step:05d}"
    if not checkpoint.exists():
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoint)
    rules = [{"task": "mmlu", "metric": "exact_match", "min": 0.3}, {"task": "gsm8k", "metric": "exact_match", "min": 0.35, "tier": "supporting"}]
    gates = {} if tasks else {"gates": {"rules": rules}}
    return service.submit({"name": f"{series}-step-{step:05d}", "checkpoint": str(checkpoint), "tasks": tasks or TASKS, "task_dirs": ["tasks"],
                           "engine": {"name": "emulated", "delay_ms": 0, "concurrency": 64, "text": f"{series}-{number}", **engine}, **gates},
                          service.folder, "ann" if "adam" in series else "ben", priority)


class Stage:
    """The service, with everything that the pictures show."""

    def __init__(self, folder):
        self.service = Service(folder, **made_up_queue.config(folder))
        write_tasks(folder)
        self.runs = {name: self.service.quickstart(name) for name in ("step-00600", "step-01200")}
        self.runs["code"] = self.service.of_series("code", 100, tasks=("code",), text="    print('half of', n, 'is', n // 2)\n    return n // 2")
        made = {}
        for number in range(1, 15):
            for series, (_, count, _) in SERIES.items():
                if number <= count:
                    made[f"{series}-{number}"] = submit(self.service, series, number)
        self.runs.update(made)
        for run in self.runs.values():
            assert self.service.finished(run)["state"] == "done", self.service.get(f"/v1/runs/{run}")["problems"]
        self.service.change(self.runs["pico-muon-13"], title="the candidate", tags=["seed 2", "for release"], note="Muon, batch 512.")
        # A task that no run has measured has small slices.
        self.runs["so-far"] = self.service.made_up("pico-chat", text="{doc_id}", delay_ms=800, concurrency=2)
        # The task that is looked at while it is at work
        partly = lambda tasks: next((task["task"] for task in tasks if 4 < task["scored"] < task["documents"]), None)
        self.partly = chromium.wait(lambda: partly(self.service.get(f"/v1/runs/{self.runs['so-far']}")["progress"]["tasks"]), "scored documents", 300)
        scored = lambda run: sum(task["scored"] for task in self.service.get(f"/v1/runs/{run}")["progress"]["tasks"])
        self.runs["live"] = submit(self.service, "pico-adam", 15, priority=10, delay_ms=700, concurrency=4)
        self.runs["waiting"] = submit(self.service, "pico-muon", 14, priority=-10, delay_ms=2000)
        chromium.wait(lambda: scored(self.runs["live"]) > 100, "documents of the run at work", 300)
        self.runs["cancelled"] = submit(self.service, "pico-adam-long-warmup", 14, delay_ms=700)
        self.service.cancel(self.runs["cancelled"])

    def views(self):
        """name -> (place, a selector of what must be there)."""
        runs, train = self.runs, self.service.folder / "train"
        also = urllib.parse.quote(json.dumps([str(train / "pico-muon"), str(train / "pico-adam-long-warmup")]))
        return {
            "runs": ("", "tbody tr"),
            "run": (f"run/{runs['live']}", ".at-work progress"),
            "done": (f"run/{runs['pico-muon-13']}", "svg.timeline rect"),
            "checkpoints": (f"checkpoints?run={runs['pico-adam-14']}", "svg.chart"),
            "curves": (f"checkpoints?run={runs['pico-adam-14']}&also={also}&charts=mmlu+gsm8k+triviaqa+drop&smooth=3", "svg.chart"),
            "compare": (f"samples?a={runs['step-00600']}&b={runs['step-01200']}&task=quickstart_math", "article.pair"),
            "code": (f"samples?a={runs['code']}&task=code&show=wrong", "article.pair"),
            "so-far": (f"samples?a={runs['so-far']}&task={self.partly}", "article.pair"),
            "fleet": ("fleet", "main section[data-launcher] .excluded"),
        }


class Camera:
    def __init__(self, stage, folder):
        self.stage = stage
        self.folder = folder
        self.page = chromium.Browser(folder / "chromedriver.log")

    def take(self, name, view, width, scheme, opened=False, height=None):
        place, ready = view
        self.page.size(width, height or WIDTHS.get(width, 900), mobile=width < 600)
        self.page.prefer(scheme)
        self.page.open("about:blank")
        self.page.open(f"{self.stage.service.url}/#/{place}")
        self.page.wait(f"{ready} at {place}", lambda: self.page.count(ready), 60)
        if opened:
            self.page.run("document.querySelector('button.tree[aria-expanded=false]')?.click();")
        path = self.folder / f"{name}.png"
        self.page.screenshot(path, whole=height is None)
        return path

    def everything(self, wanted):
        for name, view in self.stage.views().items():
            if wanted and name not in wanted:
                continue
            for width in WIDTHS:
                for scheme in SCHEMES:
                    self.take(f"page-{name}-{width}-{scheme}", view, width, scheme)

    def for_docs(self, wanted):
        """All pictures of docs/, or the sheets of the wanted views."""
        views = self.stage.views()
        if not wanted:
            self.single_pictures(views)
        for name, view in views.items():
            if wanted and name not in wanted:
                continue
            four = [self.take(f"{width}-{scheme}", view, width, scheme, height=SHEET_HEIGHT) for width in WIDTHS for scheme in SCHEMES]
            self.side_by_side(four, self.folder / f"page-all-{name}.png", sum(WIDTHS) + 8, SHEET_HEIGHT // 2, scale=0.5)

    def single_pictures(self, views):
        few_colours(self.take("page-run", views["run"], 1120, "light", opened=True, height=1250))
        few_colours(self.take("page-checkpoints", views["curves"], 1120, "light", height=1480))
        few_colours(self.take("page-compare", views["compare"], 1120, "light", height=900))
        few_colours(self.take("page-runs-dark", views["runs"], 1120, "dark", height=900))
        halves = [self.take(f"phone-{name}", views[name], 420, "light", height=900) for name in ("runs", "curves")]
        self.side_by_side(halves, self.folder / "page-phone.png", 424 * 2, 904)

    def side_by_side(self, pictures, path, width, height, scale=1):
        images = [f'<img src="data:image/png;base64,{base64.b64encode(one.read_bytes()).decode()}" style="border:1px solid #888">' for one in pictures]
        self.page.size(width, height)
        self.page.open("about:blank")
        style = f"margin:0;display:flex;gap:2px;zoom:{scale}"
        self.page.run("document.body.style = arguments[1]; document.body.innerHTML = arguments[0];", "".join(images), style)
        self.page.wait("the pictures", lambda: self.page.run("return [...document.images].every((one) => one.complete);"), 20)
        self.page.screenshot(path, whole=False)
        few_colours(path)
        for one in pictures:
            one.unlink()


def few_colours(path):
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--nofs", "--speed", "1", "--output", path, "96", path], check=True)


def take(camera, words):
    views = [word for word in words if not word.startswith("--")]
    camera.for_docs(views) if "--docs" in words else camera.everything(views)


def main():
    folder = pathlib.Path(sys.argv[1])
    wanted = sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    scratch = pathlib.Path(os.environ.get("EVALD_SHOTS_SCRATCH") or tempfile.mkdtemp(prefix="evald-shots-"))
    stage = Stage(scratch)
    camera = Camera(stage, folder)
    try:
        take(camera, wanted)
        print(stage.service.url, flush=True)
        while "--stay" in wanted and (line := sys.stdin.readline().split()):
            take(camera, line)
            print("taken", flush=True)
    finally:
        camera.page.close()
        stage.service.stop()
        made_up_queue.end(scratch)
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
