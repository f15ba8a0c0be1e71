"""Parts of lm_eval 0.4.13 for the oracle of scores (results.py): its tasks over local data, answers
from a function instead of a model, and its results beside a suite that evald can score.

A suite is a folder (or one JSON object of the same content, "suite" in the golden files):
    suite.json                   {"tasks": [name], "groups": [...], "bootstrap_iters": n}
    <task>/task.json             evald's TaskDefinition
    <task>/documents.jsonl       {"doc_id", "doc", "target", "choices", "requests": [...]}
    <task>/generations.jsonl     evald's generation lines
"""

import gzip
import json
import math
import os
import subprocess
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", DISABLE_MULTIPROC="1", HF_ALLOW_CODE_EVAL="1")


class CodeEval:
    """The code_eval metric of Hugging Face evaluate: program = candidate + newline + test, a fresh interpreter for
    each program, unbiased pass@k."""

    def __init__(self, python):
        self.python = python
        self.cache = {}

    def passes(self, program):
        if program not in self.cache:
            runner = "import sys; exec(compile(sys.stdin.read(), '<string>', 'exec'), {'__name__': '__main__'})"
            try:
                with tempfile.TemporaryDirectory() as folder:
                    done = subprocess.run([self.python, "-c", runner], input=program.encode("utf-8", "replace"),
                                          capture_output=True, timeout=20, cwd=folder)
                self.cache[program] = done.returncode == 0
            except subprocess.TimeoutExpired:
                self.cache[program] = False
        return self.cache[program]

    def compute(self, references, predictions, k):
        import numpy as np

        def estimate(n, c, k):
            return 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))

        outcomes = [[self.passes(c + "\n" + test) for c in candidates]
                    for candidates, test in zip(predictions, references)]
        return {f"pass@{kk}": np.array([estimate(len(o), sum(o), kk) for o in outcomes]).mean()
                for kk in k if all(len(o) >= kk for o in outcomes)}, outcomes


def read_lines(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as f:
        return [json.loads(line) for line in f.read().split("\n") if line.strip()]


def local_dataset(data, path, name):
    """The rows of datasets.load_dataset(path, name), from local files."""
    join = lambda *parts: os.path.join(data, *parts)
    if path == "openai/gsm8k":
        return {s: read_lines(join("gsm8k", f"{s}.jsonl")) for s in ("train", "test")}
    if path == "openai/openai_humaneval":
        return {"test": read_lines(join("humaneval", "HumanEval.jsonl.gz"))}
    if path == "google-research-datasets/mbpp":
        rows = read_lines(join("mbpp", "mbpp.jsonl"))
        return {"test": [r for r in rows if 11 <= r["task_id"] <= 510]}
    if path == "cais/mmlu":
        return {s: read_lines(join("mmlu", s, f"{name}.jsonl")) for s in ("dev", "test")}
    raise SystemExit(f"no local data for {path}")


def patch(data, python):
    """Makes lm_eval read local data and run code with `python`. Call it before tasks are loaded."""
    import datasets
    import evaluate

    code_eval = CodeEval(python)
    evaluate.load = lambda name, *a, **k: code_eval
    datasets.load_dataset = lambda path, name=None, **k: datasets.DatasetDict(
        {split: datasets.Dataset.from_list(rows) for split, rows in local_dataset(data, path, name).items()})


def answering(answer, rolling=None):
    """An LM whose answers are answer(task_name, doc, doc_id, idx, repeat, request_type)."""
    from lm_eval.api.model import LM

    class Answers(LM):
        def _all(self, requests, kind):
            counts = {}
            out = []
            for r in requests:
                repeat = counts.get(id(r), 0)
                counts[id(r)] = repeat + 1
                out.append(answer(r.task_name, r.doc, r.doc_id, r.idx, repeat, kind))
            return out

        def loglikelihood(self, requests):
            return self._all(requests, "loglikelihood")

        def loglikelihood_rolling(self, requests):
            return self._all(requests, "loglikelihood_rolling")

        def generate_until(self, requests):
            return self._all(requests, "generate_until")

    return Answers()


def function_name(task, function):
    """evald's name of a task's function: "<folder>/utils.<name>"."""
    folder = "mbpp" if "mbpp" in task else "humaneval"
    return f"{folder}/utils.{function.__name__}"


def definition(name, task):
    """evald's TaskDefinition for lm_eval's task object."""
    from lm_eval.api.registry import AGGREGATION_REGISTRY, get_metric_aggregation, is_higher_better

    names = {v: k for k, v in AGGREGATION_REGISTRY.items()}
    config = task.config
    metrics = []
    for spec in config.metric_list or [{"metric": m} for m in task._metric_fn_list]:
        metric = spec["metric"]
        called = callable(metric)
        shown = metric.__name__ if called else metric
        metrics.append({
            "metric": shown,
            "function": function_name(name, metric) if called else "",
            "aggregation": spec.get("aggregation") or names[get_metric_aggregation(metric)],
            "higher_is_better": spec["higher_is_better"] if "higher_is_better" in spec else is_higher_better(metric),
            "kwargs": {k: v for k, v in spec.items() if k not in ("metric", "aggregation", "higher_is_better", "hf_evaluate")},
        })
    filters = []
    for pipeline in config.filter_list or [{"name": "none", "filter": [{"function": "take_first"}]}]:
        steps = []
        for step in pipeline["filter"]:
            kwargs = {k: v for k, v in step.items() if k != "function"}
            if "filter_fn" in kwargs:
                kwargs["filter_fn"] = "!function " + function_name(name, kwargs["filter_fn"])
            steps.append({"function": step["function"], "kwargs": kwargs})
        filters.append({"name": pipeline["name"], "steps": steps})
    shown = {"task": name, "output_type": config.output_type}
    if config.generation_kwargs is not None:
        shown["generation_kwargs"] = config.generation_kwargs
    return {
        "name": name, "alias": config.task_alias or name, "version": task.VERSION, "output_type": config.output_type,
        "repeats": config.repeats, "num_fewshot": config.num_fewshot or 0, "unsafe_code": bool(config.unsafe_code),
        "multiple_target": bool(task.multiple_target), "multiple_input": bool(task.multiple_input),
        "process_results": "", "metrics": metrics, "filters": filters,
        "original_documents": len(task.eval_docs), "effective_documents": len({i.doc_id for i in task.instances}),
        "config": shown, "sources": {},
    }


def loglikelihood(value):
    return str(value) if math.isinf(value) or math.isnan(value) else value


def suite_task(name, task):
    """Documents and generations of a task after lm_eval has evaluated the task."""
    by_doc = {}
    for instance in task.instances:
        by_doc.setdefault(instance.doc_id, []).append(instance)
    documents, generations = [], []
    for doc_id, instances in sorted(by_doc.items()):
        instances.sort(key=lambda i: i.idx)
        doc = instances[0].doc
        requests = []
        for i in instances:
            r = {"kind": i.request_type, "context": i.args[0]}
            if i.request_type == "loglikelihood":
                r["continuation"] = i.args[1]
            requests.append(r)
            for repeat, resp in enumerate(i.resps):
                line = {"doc_id": doc_id, "idx": i.idx, "repeat": repeat}
                if i.request_type == "generate_until":
                    line |= {"text": resp, "finish": "stop"}
                elif i.request_type == "loglikelihood":
                    line |= {"loglikelihood": loglikelihood(resp[0]), "is_greedy": resp[1]}
                else:
                    line |= {"loglikelihood": loglikelihood(resp)}
                generations.append(line | {"tokens_in": 0, "tokens_out": 0, "truncated": 0})
        documents.append({"doc_id": doc_id, "doc": doc, "target": task.doc_to_target(doc),
                          "choices": task.doc_to_choice(doc) if task.config.doc_to_choice is not None else None,
                          "requests": requests})
    return {"task": definition(name, task), "documents": documents, "generations": generations}


def suite_group(group):
    metrics = [{"metric": m.metric, "aggregation": "mean", "weight_by_size": m.weight_by_size, "filters": m.filter_list or []}
               for m in group.aggregate_metric_list or []]
    version = (group.metadata or {}).get("version")
    return {"name": group.name, "alias": group.alias or group.name, "version": version, "children": group.child_names, "metrics": metrics}


def evaluate(loaded, answer, limit, bootstrap_iters):
    """lm_eval's results (as JSON) and the suite from which they were made."""
    from lm_eval.evaluator import evaluate as run
    from lm_eval.utils import handle_non_serializable

    results = run(lm=answering(answer), task_dict=loaded, limit=limit, bootstrap_iters=bootstrap_iters,
                  log_samples=True, confirm_run_unsafe_code=True)
    suite = {"tasks": list(loaded["tasks"]), "groups": [suite_group(g) for g in loaded["groups"].values()],
             "bootstrap_iters": bootstrap_iters,
             "data": {name: suite_task(name, task) for name, task in loaded["tasks"].items()}}
    return json.loads(json.dumps(results, default=handle_non_serializable)), suite


def write_suite(suite, folder):
    def dump(path, rows):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(r, ensure_ascii=False) + "\n" for r in rows)

    dump(os.path.join(folder, "suite.json"), [{k: v for k, v in suite.items() if k != "data"}])
    for name, data in suite["data"].items():
        dump(os.path.join(folder, name, "task.json"), [data["task"]])
        dump(os.path.join(folder, name, "documents.jsonl"), data["documents"])
        dump(os.path.join(folder, name, "generations.jsonl"), data["generations"])


def compare(ours, theirs):
    """Prints all differences in results, groups, n-samples, higher_is_better, n-shot and versions, to the last
    digit."""
    differences = 0
    for key in ("results", "groups", "group_subtasks", "n-samples", "higher_is_better", "n-shot", "versions"):
        for name in sorted(set(theirs.get(key, {})) | set(ours.get(key, {}))):
            a, b = ours.get(key, {}).get(name), theirs.get(key, {}).get(name)
            if a != b or json.dumps(a, sort_keys=True) != json.dumps(b, sort_keys=True):
                differences += 1
                print(f"DIFFERS {key}[{name}]\n  evald   {json.dumps(a)}\n  lm_eval {json.dumps(b)}", file=sys.stderr)
    return differences
