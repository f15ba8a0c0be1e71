#!/usr/bin/env python3
"""Compares evald with an installed lm-evaluation-harness 0.4.13 over its whole library, on made-up documents and answers.

    library_compare.py --evald build/release/evald [--count 1000] [--per-family 3] [--report FILE.json] [NAME...]

Without names, tasks are picked from all families: up to --per-family of each, and each task that has a function whose source
no task before had. For each task the script makes up documents (made_up_rows.py) until the harness can use them. Seeded
answers take the place of a model: the harness gets them from a model class, evald from its engine `replay`. Prompts, filtered
answers, the values of each document, scores and standard errors are compared, numbers to the last bit.

The task files are the harness's own, of the Python that runs this script, which also runs the functions for evald; nothing of
them is kept. Prints a line for each task and the sums by family. Exit status 1 if anything differs.
"""

import argparse
import collections
import copy
import functools
import hashlib
import json
import math
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_MULTIPROC="1",
                  HF_ALLOW_CODE_EVAL="1", LMEVAL_LOG_LEVEL="ERROR")

import made_up_rows  # noqa: E402
import results_harness  # noqa: E402

DOCUMENTS = 12
BATCH = 25
SEARCH_SECONDS = 12
TASK_SECONDS = 90
BOOTSTRAPS = 100


class TooLong(Exception):
    """A task took longer than TASK_SECONDS."""


def limited(seconds):
    """Raises TooLong in this process after so many seconds."""
    def ring(number, frame):
        raise TooLong(f"over {seconds} s")
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)


# ---------------------------------------------------------------- picking tasks


def leaf_files(tasks):
    """(name, file) of every task whose file is YAML, in the order of the names."""
    from lm_eval.tasks import TaskManager
    index = TaskManager(include_defaults=False, include_path=str(tasks))._index
    leaves = [(name, Path(entry.yaml_path)) for name, entry in index.items()
              if entry.kind.name == "TASK" and entry.yaml_path and Path(entry.yaml_path).exists()]
    return sorted(leaves)


def family(tasks, file):
    return file.relative_to(tasks).parts[0]


def digest_of_functions(config):
    sources = {made_up_rows.source_of(function) for function in made_up_rows.functions_of(config)}
    return {hashlib.sha256(source.encode()).hexdigest() for source in sources if source}


def picked(tasks, per_family, count):
    """The tasks to compare: (name, file)."""
    from lm_eval.tasks._yaml_loader import load_yaml
    seen, families, chosen = set(), collections.Counter(), []
    for name, file in leaf_files(tasks):
        try:
            config = load_yaml(file)
        except BaseException:  # an import that is missing here
            continue
        functions = digest_of_functions(config)
        if functions <= seen and families[family(tasks, file)] >= per_family:
            continue
        seen |= functions
        families[family(tasks, file)] += 1
        chosen.append((name, file))
    random.Random("order").shuffle(chosen)
    return chosen[:count]


# ---------------------------------------------------------------- answers


def answer_texts(target):
    target = str(target[0] if isinstance(target, (list, tuple)) and target else target)
    return [target, f" {target}", f"The answer is ({target}).", f"The answer is {target}. So.", target.upper(), "(B)", "B", "12", "",
            "yes", f"\\boxed{{{target}}}", f"Answer: {target}\n\nQuestion", '{"answer": "' + target.replace('"', "'") + '"}', "{}",
            made_up_rows.text(random.Random(target))]


def answer(name, doc_id, idx, repeat, kind, target):
    draw = random.Random(f"{name} {doc_id} {idx} {repeat}")
    if kind == "loglikelihood":
        return (-draw.random() * 20, draw.random() < 0.3)
    return -draw.random() * 200 if kind == "loglikelihood_rolling" else draw.choice(answer_texts(target))


def made_up_model(targets, lines):
    """A model of the harness that makes answers up, and keeps them in `lines` in evald's form, by task."""
    def give(name, doc, doc_id, idx, repeat, kind):
        given = answer(name, doc_id, idx, repeat, kind, targets[name].get(doc_id, ""))
        lines[name].append(line_of(doc_id, idx, repeat, kind, given))
        return given
    return results_harness.answering(give)


def line_of(doc_id, idx, repeat, kind, given):
    line = {"doc_id": doc_id, "idx": idx, "repeat": repeat}
    if kind == "generate_until":
        return {**line, "text": given, "finish": "stop", "tokens_in": 1, "tokens_out": 1, "truncated": 0}
    likelihood, greedy = given if kind == "loglikelihood" else (given, False)
    return {**line, "loglikelihood": likelihood, "is_greedy": greedy, "finish": "scored", "tokens_in": 1, "tokens_out": 1, "truncated": 0}


# ---------------------------------------------------------------- the harness


def evaluate_by_harness(task):
    """Results, samples and the answers in evald's form, for one task object."""
    import lm_eval
    name = task.config.task
    targets, lines = {name: {}}, collections.defaultdict(list)
    for doc_id, doc in enumerate(task.eval_docs):
        targets[name][doc_id] = task.doc_to_target(doc)
    random.seed(0)
    task.set_fewshot_seed(seed=1234)
    found = lm_eval.evaluate(made_up_model(targets, lines), {"tasks": {name: task}}, bootstrap_iters=BOOTSTRAPS,
                             confirm_run_unsafe_code=True)
    samples = [{**sample, "doc": None} for sample in found["samples"][name]]
    return found["results"][name], samples, lines[name]


def splits_of(config):
    splits = {config.get(key) for key in ("training_split", "validation_split", "test_split", "fewshot_split")}
    splits |= {(config.get("fewshot_config") or {}).get("split")}
    return sorted(split for split in splits - {None} if split.isidentifier())


def check_in_memory(config, form):
    """Runs the task on rows of the form, all in memory."""
    import datasets
    from lm_eval.api.task import ConfigurableTask
    data = datasets.DatasetDict({split: datasets.Dataset.from_list(form.rows(split, DOCUMENTS)) for split in splits_of(config)})
    real, datasets.load_dataset = datasets.load_dataset, lambda *args, **kwargs: data
    try:
        task = ConfigurableTask(config={**copy.deepcopy(config), "task": "search", "num_fewshot": config.get("num_fewshot") or 0})
        results, _, _ = evaluate_by_harness(task)
    finally:
        datasets.load_dataset = real
    if len(results) <= 2:
        raise ValueError("no score")


def write_task(file, name, form, config, rows_folder):
    """A task that includes the harness's own, with rows of the form. Returns its name and file."""
    files = {}
    for split in splits_of(config):
        files[split] = str(rows_folder / f"{name}.{split}.jsonl")
        Path(files[split]).write_text("".join(json.dumps(row) + "\n" for row in form.rows(split, DOCUMENTS)))
    own = f"made_up_{name}"
    lines = [f"include: {json.dumps(file.name)}", f"task: {json.dumps(own)}", "tag: null", "dataset_path: json",
             "dataset_name: null", f"dataset_kwargs: {{data_files: {json.dumps(files)}}}"]
    path = file.parent / f"{own}.yaml"
    path.write_text("\n".join(lines) + "\n")
    return own, path


def compute_harness_side(name, file, folder, result):
    """Runs in a process of its own. Puts what the harness finds into the file `result`."""
    sys.stdout = sys.stderr = open(os.devnull, "w")
    try:
        limited(TASK_SECONDS)
        import datasets
        import evaluate
        import logging
        logging.disable(logging.CRITICAL)
        datasets.disable_progress_bars()
        evaluate.load = functools.partial(refuse, "a metric of the hub")
        import lm_eval.utils
        from lm_eval.api.task import ConfigurableTask
        from lm_eval.tasks._yaml_loader import load_yaml
        config = load_yaml(file)
        form = made_up_rows.Form.of(name, config)
        error = made_up_rows.refine(form, lambda f: check_in_memory(config, f), SEARCH_SECONDS)
        if error is not None:
            result.write_text(json.dumps({"why": made_up_rows.error_line(error)[:300]}))
            return
        own, path = write_task(file, name, form, config, folder)
        task = ConfigurableTask(config={**load_yaml(path), "num_fewshot": config.get("num_fewshot") or 0})
        results, samples, lines = evaluate_by_harness(task)
        (folder / "generations").mkdir(exist_ok=True)
        (folder / "generations" / f"{own}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        result.write_text(json.dumps({"own": own, "results": results, "samples": samples}, default=plain))
    except BaseException as error:
        result.write_text(json.dumps({"why": made_up_rows.error_line(error)[:300], "trace": traceback.format_exc()[-1500:]}))


def plain(value):
    """A number of numpy's as Python's; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def refuse(why, *args, **kwargs):
    raise RuntimeError(why)


def by_harness(chosen, folder):
    """What the harness finds for each task: {name: {"own", "results", "samples"} or {"why"}}."""
    context = multiprocessing.get_context("fork")
    found = {}
    for name, file in chosen:
        result = folder / f"{len(found)}.result.json"
        process = context.Process(target=compute_harness_side, args=(name, file, folder, result))
        process.start()
        process.join(TASK_SECONDS + 30)
        if process.is_alive():
            process.kill()
            process.join()
        found[name] = json.loads(result.read_text()) if result.exists() else {"why": "the process died"}
    return found


# ---------------------------------------------------------------- evald


def by_evald(args, folder, tasks, names):
    """({"results"}, {task: samples}), or the error."""
    number = len(list(folder.glob("eval-*.yaml")))
    config = {"tasks": names, "task_dirs": tasks, "task_code": "allow", "task_python": args.python, "bootstrap_iters": BOOTSTRAPS,
              "engine": {"name": "replay", "generations": str(folder / "generations")},
              "output": {"dir": str(folder / "runs"), "name": f"run-{number}"}, "cache_dir": str(folder / "cache"),
              "state_dir": str(folder / "state")}
    path = folder / f"eval-{number}.yaml"
    path.write_text(json.dumps(config))
    done = subprocess.run([args.evald, "run", path, "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        return None, "\n".join(line for line in done.stderr.splitlines() if "warning" not in line)
    run = folder / "runs" / f"run-{number}"
    samples = {name: [json.loads(line) for line in (run / f"samples_{name}.jsonl").read_text().split("\n") if line] for name in names}
    return (json.loads((run / "results.json").read_text())["results"], samples), ""


# ---------------------------------------------------------------- comparing


def equal(a, b):
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, bool) or isinstance(b, bool):
        return str(a) == str(b) or a == b
    return a == b


def arguments_of(sample):
    found = sample["arguments"]
    found = list(found.values()) if isinstance(found, dict) else found
    return [list(item.values()) if isinstance(item, dict) else list(item) for item in found]


def differences(theirs, samples, ours, found):
    for key, value in theirs.items():
        if key not in ("alias", "name", "sample_len", "sample_count") and not equal(value, ours.get(key)):
            yield f"{key}: harness {value!r}, evald {ours.get(key)!r}"
    if len(samples) != len(found):
        yield f"{len(samples)} samples of the harness, {len(found)} of evald"
    for one, other in zip(samples, found):
        place = f"document {one['doc_id']}, filter {one['filter']}"
        mine, yours = arguments_of(one), arguments_of(other)
        texts = [[text for text in item if isinstance(text, str)] for item in mine]
        if texts != [[text for text in item if isinstance(text, str)] for item in yours]:
            yield f"{place}, requests: harness {mine!r}, evald {yours!r}"
        if one["resps"] and isinstance(one["resps"][0][0], str) and not equal(one["filtered_resps"], other["filtered_resps"]):
            yield f"{place}, filtered: harness {one['filtered_resps']!r}, evald {other['filtered_resps']!r}"
        for metric in one["metrics"]:
            if not equal(one[metric], other.get(metric)):
                yield f"{place}, {metric}: harness {one[metric]!r}, evald {other.get(metric)!r}"


def compare_batch(args, tasks, chosen, folder):
    """(name, state, problems) for each task: equal, different, refused by evald, or without documents."""
    theirs = by_harness(chosen, folder)
    usable = {name: found for name, found in theirs.items() if "own" in found}
    roots = sorted({str(tasks / family(tasks, file)) for name, file in chosen if name in usable})
    groups = [list(usable)] if usable else []
    rows = {name: ("no documents", [found["why"]]) for name, found in theirs.items() if name not in usable}
    while groups:
        names = groups.pop()
        ours, error = by_evald(args, folder, roots, [usable[name]["own"] for name in names])
        if ours is None and len(names) > 1:
            middle = len(names) // 2
            groups += [names[:middle], names[middle:]]
            continue
        for name in names:
            if ours is None:
                rows[name] = ("refused", [error])
                continue
            found = usable[name]
            problems = list(differences(found["results"], found["samples"], ours[0][found["own"]], ours[1][found["own"]]))
            rows[name] = ("different" if problems else "equal", problems)
    return [(name, *rows[name]) for name, _ in chosen]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--evald", required=True, type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--per-family", type=int, default=3)
    parser.add_argument("--report", type=Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    args.evald = args.evald.resolve()
    import lm_eval
    sums, rows = collections.defaultdict(collections.Counter), []
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch).resolve()
        scratch.chmod(0o755)
        tasks = scratch / "lm_eval" / "tasks"
        shutil.copytree(Path(lm_eval.__file__).parent / "tasks", tasks)
        chosen = picked(tasks, args.per_family, args.count) if not args.names else [
            (name, file) for name, file in leaf_files(tasks) if name in args.names]
        print(f"{len(chosen)} tasks", flush=True)
        for begin in range(0, len(chosen), BATCH):
            folder = scratch / f"batch-{begin}"
            folder.mkdir()
            batch = chosen[begin:begin + BATCH]
            for (name, state, problems), (_, file) in zip(compare_batch(args, tasks, batch, folder), batch):
                sums[family(tasks, file)][state] += 1
                rows.append({"task": name, "family": family(tasks, file), "state": state, "problems": problems[:5]})
                print(f"{state:13} {name}", *(problem[:400] for problem in problems[:3]), sep="\n      ", flush=True)
            shutil.rmtree(folder)
            if args.report:
                args.report.write_text(json.dumps(rows, indent=1))
    for name, counts in sorted(sums.items()):
        print(name, *(f"{state} {count}" for state, count in sorted(counts.items())), sep="  ")
    total = sum(sums.values(), collections.Counter())
    print("all", *(f"{state} {count}" for state, count in sorted(total.items())), sep="  ")
    return 1 if total["different"] or total["refused"] else 0


if __name__ == "__main__":
    sys.exit(main())
