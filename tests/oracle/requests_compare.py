#!/usr/bin/env python3
"""Compares evald's requests with those that lm-evaluation-harness 0.4.13 builds from the same files.

    requests_compare.py --data-dir DIR --dump PROGRAM [--golden OUT.json]     the built-in tasks
    requests_compare.py --made-up DIR --dump PROGRAM [--golden OUT.jsonl]     the tasks of a folder

--chat FOLDER (a style of tests/golden/chat), --one-turn and --system TEXT give the prompts of
--apply_chat_template, --fewshot_as_multiturn and --system_instruction.
PROGRAM is build/<preset>/evald-requests-dump. For every document the harness's request (context,
continuation, stop strings, sampling), target and choices are digested and compared with PROGRAM's.
The configurations are compared too. Exit status 1 if anything differs. --golden writes the digests (of the
built-in tasks: of each task, and of every 100 documents) or the requests (of the made-up ones).

mmlu is built with num_fewshot 5, as in evald's own file. Nothing is downloaded: datasets.load_dataset reads the
local files. evaluate.load is replaced, since building requests runs no metric.
"""

import argparse
import copy
import functools
import gzip
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"
os.environ.setdefault("LMEVAL_LOG_LEVEL", "ERROR")

import datasets  # noqa: E402
import evaluate  # noqa: E402

MBPP_SPLITS = {"prompt": (1, 10), "test": (11, 510), "validation": (511, 600), "train": (601, 974)}


class NoMetric:
    def compute(self, **kwargs):
        return [{"pass@1": 0.0}]


evaluate.load = lambda *args, **kwargs: NoMetric()


def rows_of(path):
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")
    with opened as file:
        return [json.loads(line) for line in file if line.strip()]


class LocalDatasets:
    """Replaces datasets.load_dataset."""

    def __init__(self, data_dir, own_dir):
        self.data_dir = data_dir
        self.own_dir = own_dir

    def __call__(self, path, name=None, data_files=None, **kwargs):
        if path in ("json", "csv"):
            files = data_files if isinstance(data_files, dict) else {"train": data_files}
            return {split: self.read(path, self.own_dir / file) for split, file in files.items()}
        root = self.data_dir
        if path == "openai/openai_humaneval":
            return {"test": datasets.Dataset.from_list(rows_of(root / "humaneval/HumanEval.jsonl.gz"))}
        if path == "google-research-datasets/mbpp" and name == "full":
            rows = rows_of(root / "mbpp/mbpp.jsonl")
            return {split: datasets.Dataset.from_list([r for r in rows if low <= r["task_id"] <= high])
                    for split, (low, high) in MBPP_SPLITS.items()}
        if path == "openai/gsm8k":
            return {split: datasets.Dataset.from_list(rows_of(root / f"gsm8k/{split}.jsonl")) for split in ("train", "test")}
        if path == "cais/mmlu":
            return {split: datasets.Dataset.from_list(rows_of(root / f"mmlu/{split}/{name}.jsonl")) for split in ("dev", "test")}
        raise SystemExit(f"no local files for the dataset {path}")

    @staticmethod
    def read(kind, path):
        if kind == "csv":
            import pandas
            return datasets.Dataset.from_pandas(pandas.read_csv(path))
        return datasets.Dataset.from_list(rows_of(path))


def function_name(function):
    module = function.__module__
    marker = "lm_eval.tasks."
    parts = (module[len(marker):] if module.startswith(marker) else module).split(".")
    return "!function " + "/".join(parts) + "." + function.__name__


def plain(value):
    if callable(value):
        return function_name(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def config_of(task):
    from dataclasses import fields, is_dataclass

    config = {}
    for field in fields(task.config):
        value = getattr(task.config, field.name)
        if value is None:
            continue
        if is_dataclass(value):
            value = {f.name: getattr(value, f.name) for f in fields(value)}
        config[field.name] = plain(copy.deepcopy(value))
    config.get("metadata", {}).pop("config_source", None)
    return config


def request_of(instance):
    """The request in evald's form."""
    from lm_eval.models.utils import normalize_gen_kwargs

    kind = instance.request_type
    request = {"doc_id": instance.doc_id, "idx": instance.idx, "kind": kind, "context": instance.args[0], "continuation": "", "sampling": ""}
    if kind == "loglikelihood":
        request["continuation"] = instance.args[1]
    elif kind == "generate_until":
        kwargs = normalize_gen_kwargs(instance.args[1], 256)
        sample = bool(kwargs["do_sample"])
        temperature = float(kwargs.get("temperature", 1.0)) if sample else 0.0
        request["sampling"] = "|".join(
            [repr(kwargs["until"]), str(kwargs["max_gen_toks"]), str(sample), repr(temperature),
             repr(float(kwargs.get("top_p", 1.0))), str(int(kwargs.get("top_k", 0)))])
    return request


def digest_text(request, target, choices):
    return "\x1f".join([str(request["doc_id"]), str(request["idx"]), request["kind"], request["context"],
                        request["continuation"], request["sampling"], repr(target), repr(choices)]) + "\x1e"


def prompt_arguments(args):
    """The arguments that the harness's evaluate() passes to build_all_requests, and the same settings for PROGRAM."""
    theirs, ours = {"system_instruction": args.system, "fewshot_as_multiturn": False}, []
    if args.system:
        ours += ["--system", args.system]
    if args.chat:
        from chat_golden import TemplateOnly, load
        theirs |= {"apply_chat_template": True, "fewshot_as_multiturn": not args.one_turn,
                   "chat_template": TemplateOnly(load(args.chat)).apply_chat_template}
        ours += ["--chat", str(args.chat)] + ["--one-turn"] * args.one_turn
    return theirs, ours


def load_tasks(names, include, num_fewshot, prompts):
    from lm_eval.tasks import TaskManager

    manager = TaskManager(include_defaults=False, include_path=include)
    tasks = manager.load(names)["tasks"]
    for name, task in tasks.items():
        if name in num_fewshot:
            task.set_config(key="num_fewshot", value=num_fewshot[name])
        elif task.get_config("num_fewshot") is None:
            task.set_config(key="num_fewshot", value=0)
        task.set_fewshot_seed(seed=1234)
        task.build_all_requests(**prompts)
    return tasks


def digests(task):
    """The digests of the task and of every 100 documents, and the requests."""
    whole, hundreds, requests = hashlib.sha256(), {}, []
    for instance in task.instances:
        request = request_of(instance)
        target = task.doc_to_target(instance.doc)
        choices = task.doc_to_choice(instance.doc) if task.config.doc_to_choice is not None else None
        if isinstance(choices, dict):
            choices = list(choices.values())
        text = digest_text(request, target, choices).encode("utf-8")
        whole.update(text)
        hundreds.setdefault(instance.doc_id // 100, hashlib.sha256()).update(text)
        requests.append({**request, "target": target, "choices": choices})
    return {"documents": len({r["doc_id"] for r in requests}), "requests": len(requests), "hash": whole.hexdigest(),
            "hundreds": [hundreds[key].hexdigest() for key in sorted(hundreds)]}, requests


def first_difference(program, arguments, name, requests):
    """Prints the differences between evald's requests and the harness's."""
    lines = subprocess.run([program, *arguments, "--full", name], check=True, capture_output=True, text=True).stdout.splitlines()
    for ours, theirs in zip((json.loads(line) for line in lines), requests):
        for key in ("doc_id", "idx", "kind", "context", "continuation", "sampling", "target", "choices"):
            if ours[key] != theirs[key]:
                return f"doc {theirs['doc_id']} idx {theirs['idx']} {key}:\n  evald   {ours[key]!r}\n  harness {theirs[key]!r}"
    return f"evald has {len(lines)} requests, the harness {len(requests)}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--made-up", type=Path)
    parser.add_argument("--dump", required=True)
    parser.add_argument("--golden", type=Path)
    parser.add_argument("--chat", type=Path)
    parser.add_argument("--system")
    parser.add_argument("--one-turn", action="store_true")
    args = parser.parse_args()
    prompts, own_prompts = prompt_arguments(args)
    import lm_eval
    import lm_eval.utils

    # The harness compiles a template anew for every document. A cached template gives the same text.
    lm_eval.utils.env.from_string = functools.lru_cache(maxsize=None)(lm_eval.utils.env.from_string)
    loader = LocalDatasets(args.data_dir, args.made_up)
    datasets.load_dataset = loader
    if args.made_up:
        names = sorted(p.stem for p in args.made_up.glob("*.yaml") if p.stem != "group")
        names = ["made_up_" + name for name in names]
        tasks = load_tasks(names, [str(args.made_up)], {}, prompts)
        arguments = ["--task-dir", str(args.made_up)]
    else:
        root = Path(lm_eval.__file__).parent / "tasks"
        include = [str(root / folder) for folder in ("humaneval", "mbpp", "gsm8k", "mmlu/default")]
        names = ["humaneval", "humaneval_instruct", "humaneval_64", "mbpp", "mbpp_instruct", "gsm8k", "gsm8k_cot",
                 "gsm8k_cot_zeroshot", "gsm8k_cot_llama", "gsm8k_cot_self_consistency", "mmlu"]
        from lm_eval.tasks import TaskManager
        manager = TaskManager(include_defaults=False, include_path=include)
        shots = {name: 5 for name in manager.all_subtasks if name.startswith("mmlu_")}
        tasks = load_tasks(names, include, shots, prompts)
        arguments = ["--data-dir", str(args.data_dir)]
    arguments += own_prompts
    ours = {}
    for line in subprocess.run([args.dump, *arguments, *names], check=True, capture_output=True, text=True).stdout.splitlines():
        entry = json.loads(line)
        ours[entry["task"]] = entry
    golden, differing = {}, 0
    if list(ours) != list(tasks):
        print("the order of the tasks differs:", list(ours), list(tasks))
        differing += 1
    rows = []
    for name, task in tasks.items():
        theirs, requests = digests(task)
        mine = ours.get(name, {})
        problems = [key for key in ("documents", "requests", "hash", "hundreds") if mine.get(key) != theirs[key]]
        config = json.loads(json.dumps(config_of(task)))
        mine_config = copy.deepcopy(mine.get("config"))
        if mine_config is not None:
            mine_config.get("metadata", {}).pop("config_source", None)
        if mine_config != config or (mine_config and list(mine_config) != list(config)):
            keys = sorted(k for k in set(config) | set(mine_config or {}) if config.get(k) != (mine_config or {}).get(k))
            problems.append(f"config {keys}: evald {[(mine_config or {}).get(k) for k in keys]}, harness {[config.get(k) for k in keys]}")
        print(f"{name}: {theirs['documents']} documents, {theirs['requests']} requests: {'DIFFERENT ' + str(problems) if problems else 'equal'}")
        if "hash" in problems and mine:
            print(first_difference(args.dump, arguments, name, requests))
        differing += bool(problems)
        golden[name] = theirs
        rows += [{"task": name, **request} for request in requests]
    print(f"lm_eval {lm_eval.__version__ if hasattr(lm_eval, '__version__') else '0.4.13'}: {len(tasks)} tasks, {differing} differences")
    if args.golden and args.made_up:
        args.golden.write_text("".join(json.dumps(row, ensure_ascii=True) + "\n" for row in rows))
    elif args.golden:
        args.golden.write_text(json.dumps(golden, indent=1) + "\n")
    sys.exit(1 if differing else 0)


if __name__ == "__main__":
    main()
