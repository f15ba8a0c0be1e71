#!/usr/bin/env python3
"""Compares the documents that evald makes for tasks with a custom_dataset, such as RULER's, with those of
lm-evaluation-harness 0.4.13, byte for byte.

    python3 tests/oracle/ruler_compare.py --evald build/release/evald --python VENV/bin/python \\
        --checkpoint examples/quickstart/checkpoints/step-01200 --lengths 1024,2048 --data DATA ruler_vt ruler_fwe

VENV has lm_eval[ruler] and transformers. DATA has the files that the tasks ask for (docs/task-code.md). Each task is made
in a process of its own on both sides. The harness gets the files of DATA in the place of the network.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parents[2]

# Runs in the venv: the documents of one task, as the harness makes them at the beginning of a run.
HARNESS = r"""
import json, os, random, sys
order = json.loads(sys.argv[1])
sys.path.insert(0, order["runtime"])
import datasets, numpy, requests
from evald_task import custom
class Data:
    known = {}
    def ask(self, path):
        path = os.path.join(order["data"], path.removeprefix("data/"))
        return {"file": open(path, "rb").read().decode("latin-1")} if order["data"] and os.path.isfile(path) else {}
lent = custom.Lent(Data(), "no tokenizer", "data")
from lm_eval.tasks import TaskManager
with custom.offline(lent):
    manager = TaskManager(metadata={"pretrained": order["checkpoint"], "max_seq_lengths": order["lengths"]})
    random.seed(0)
    numpy.random.seed(1234)
    loaded = manager.load([order["task"]])
task = loaded["tasks"][order["task"]]
json.dump(list(task.test_docs()), open(order["out"], "w"))
"""


def harness_documents(arguments, task, folder):
    out = folder / "harness.json"
    order = {"task": task, "checkpoint": str(arguments.checkpoint), "lengths": arguments.lengths, "data": str(arguments.data or ""),
             "out": str(out), "runtime": str(HERE / "task_code" / "runtime")}
    subprocess.run([arguments.python, "-c", HARNESS, json.dumps(order)], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "HF_HUB_OFFLINE": "1"})
    return json.loads(out.read_text())


def evald_documents(arguments, task, folder):
    tasks = subprocess.run([arguments.python, "-c", "import lm_eval.tasks; print(lm_eval.tasks.__path__[0])"], check=True,
                           capture_output=True, text=True).stdout.strip()
    config = {"checkpoint": str(arguments.checkpoint), "tasks": [{"task": task, "metadata": {"max_seq_lengths": arguments.lengths}}],
              "task_dirs": [f"{tasks}/ruler"], "task_code": "allow", "task_python": arguments.python, "engine": {"name": "emulated"},
              "cache_dir": str(folder / "cache"), "state_dir": str(folder / "state"), "output": {"dir": str(folder / "runs")}}
    if arguments.data:
        config["data_dir"] = str(arguments.data)
    (folder / "eval.yaml").write_text(json.dumps(config))
    subprocess.run([arguments.evald, "run", folder / "eval.yaml", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    path, = (folder / "cache" / "prepared").glob("*/documents.jsonl")
    return [json.loads(line)["doc"] for line in path.read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evald", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--checkpoint", required=True, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--lengths", type=lambda text: [int(length) for length in text.split(",")], default=[1024])
    parser.add_argument("--data", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("tasks", nargs="+")
    arguments = parser.parse_args()
    different = 0
    for task in arguments.tasks:
        with tempfile.TemporaryDirectory(prefix="evald-ruler-") as scratch:
            folder = pathlib.Path(scratch)
            theirs, ours = harness_documents(arguments, task, folder), evald_documents(arguments, task, folder)
        others = [i for i, (one, other) in enumerate(zip(ours, theirs)) if json.dumps(one) != json.dumps(other)]
        same = not others and len(ours) == len(theirs)
        different += not same
        print(f"{task}: {len(theirs)} documents, {sum(len(doc['input']) for doc in theirs):,} characters: "
              + ("equal" if same else f"{len(ours)} of evald's, different: {others[:5]}"))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
