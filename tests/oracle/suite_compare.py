#!/usr/bin/env python3
"""Compares evald's built-in tasks of a suite with lm-evaluation-harness 0.4.13: requests, targets, choices and the
settings of each task, on made-up documents.

    VENV/bin/python tests/oracle/suite_compare.py --dump build/release/evald-requests-dump [--suite base]

VENV has lm_eval. Each task has the number of examples that the suite gives it. The harness's own examples of BBH are
written into the data first, since evald has them there. GPQA is left out. Step by step, the harness draws the order of
its choices at random, without a seed. With examples, it draws a new order each time that it looks at the documents: the
prompts have the third, and the answers that are scored the fourth (lm_eval/api/task.py, evaluator.py).
"""
import argparse
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import requests_compare as compare  # replaces evaluate.load, and keeps the hub away

HERE = Path(__file__).resolve().parents[2]
UNSEEDED = ("gpqa_main_n_shot", "gpqa_diamond_cot_zeroshot")
PARTIAL = "a partial function, which has no name"


class Splits(dict):
    """The harness loads splits that a task names, and then uses none of their rows."""

    def __missing__(self, split):
        return next(iter(self.values()))


def load_from(data):
    """datasets.load_dataset for files of examples/suite/make_data.py."""
    def load(path, name=None, **settings):
        last = path.rsplit("/", 1)[-1]
        if path == "cais/mmlu":
            files = {split: data / "mmlu" / split / f"{name}.jsonl" for split in ("dev", "test")}
        elif path == "openai/openai_humaneval":
            files = {"test": data / "humaneval" / "HumanEval.jsonl"}
        else:
            folder = data / last / name if name and (data / last / name).is_dir() else data / last
            files = {file.stem: file for file in folder.glob("*.jsonl")}
        return Splits({split: compare.datasets.Dataset.from_list(compare.rows_of(file)) for split, file in files.items()})
    return load


def write_examples(data):
    """The examples of the harness's files for BBH."""
    import lm_eval
    import yaml
    for file in (Path(lm_eval.__file__).parent / "tasks" / "bbh" / "cot_fewshot").glob("*.yaml"):
        task = yaml.safe_load(file.read_text())
        if "dataset_name" in task:
            rows = "".join(json.dumps(row) + "\n" for row in task["fewshot_config"]["samples"])
            (data / "bbh" / task["dataset_name"] / "fewshot.jsonl").write_text(rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--dump", required=True)
    parser.add_argument("--suite", default="base")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="evald-suite-") as scratch:
        sys.exit(1 if differences(arguments, Path(scratch)) else 0)


def differences(arguments, data):
    subprocess.run([sys.executable, HERE / "examples" / "suite" / "make_data.py", data], check=True)
    write_examples(data)
    compare.datasets.load_dataset = load_from(data)
    name_of = compare.function_name
    compare.function_name = lambda function: PARTIAL if isinstance(function, functools.partial) else name_of(function)
    import lm_eval.utils
    from lm_eval.tasks import TaskManager
    lm_eval.utils.env.from_string = functools.lru_cache(maxsize=None)(lm_eval.utils.env.from_string)
    lines = subprocess.run([arguments.dump, "--data-dir", str(data), arguments.suite], check=True, capture_output=True, text=True).stdout
    manager, differing, count = TaskManager(), [], 0
    for ours in map(json.loads, lines.splitlines()):
        name = ours["task"]
        if name.endswith(UNSEEDED):
            continue
        count += 1
        task = manager.load([name])["tasks"][name]
        for key in ("num_fewshot", "repeats", "generation_kwargs"):  # those of the suite
            if key in ours["config"]:
                task.set_config(key=key, value=ours["config"][key])
        task.set_fewshot_seed(seed=1234)
        task.build_all_requests()
        theirs, requests = compare.digests(task)
        problems = [key for key in ("documents", "requests", "hash") if ours[key] != theirs[key]]
        mine, config = ours["config"], json.loads(json.dumps(compare.config_of(task)))
        keys = sorted(key for key in set(config) | set(mine) if key not in ("metadata", "fewshot_config", "fewshot_split", "sample_metrics")
                      and config.get(key) not in (mine.get(key), PARTIAL))
        problems += [f"{key}: evald {mine.get(key)!r}, harness {config.get(key)!r}" for key in keys]
        if config["metadata"]["version"] != mine["metadata"]["version"]:
            problems.append(f"version: {mine['metadata']['version']}, harness {config['metadata']['version']}")
        if problems:
            differing.append(name)
            print(f"{name}: DIFFERENT {problems}")
        if "hash" in problems:
            print(compare.first_difference(arguments.dump, ["--data-dir", str(data)], name, requests))
    print(f"{arguments.suite}: {count} tasks compared, {len(differing)} differences")
    return differing


if __name__ == "__main__":
    main()
