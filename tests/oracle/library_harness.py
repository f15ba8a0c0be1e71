"""The harness's side of library_compare.py: one task of lm-evaluation-harness 0.4.13 on made-up documents and answers.

    library_harness.py NAME FILE SEED RESULT     evaluates the task of a file once more, in a new interpreter

Each task is searched for documents, and then evaluated, in two processes forked from one that has imported everything. So
the evaluated task's modules are as they are after their import, whatever the search has done with them.
"""

import collections
import copy
import functools
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", DISABLE_MULTIPROC="1",
                  HF_ALLOW_CODE_EVAL="1", LMEVAL_LOG_LEVEL="ERROR")
CACHE = tempfile.TemporaryDirectory(prefix="evald-library-")  # what earlier runs left there would change results
os.environ.setdefault("HF_DATASETS_CACHE", CACHE.name)

import known_forms  # noqa: E402
import made_up_rows  # noqa: E402
import results_harness  # noqa: E402

DOCUMENTS = 12
OWN = "made_up_"  # begins the names of the tasks on made-up documents
SEARCH_SECONDS = 3
TASK_SECONDS = 90
BOOTSTRAPS = 100
HOPELESS = "of the hub|'NoneType' object is not callable|on the Hub|name '\\w+' is not defined"  # no row helps
COMPARED = ("versions", "n-shot", "higher_is_better", "n-samples")


class TooLong(Exception):
    """A task took longer than TASK_SECONDS."""


def limited(seconds):
    """Raises TooLong in this process after so many seconds."""
    def ring(number, frame):
        raise TooLong(f"over {seconds} s")
    signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)


def import_everything():
    """Imports the harness, so that a forked process need not, and takes the hub's place."""
    import logging
    import datasets
    import evaluate
    import lm_eval.evaluator  # noqa: F401
    import lm_eval.loggers  # noqa: F401
    import lm_eval.utils
    import torch  # noqa: F401
    import transformers  # noqa: F401
    logging.disable(logging.CRITICAL)
    datasets.disable_progress_bars()
    lm_eval.utils.env.from_string = functools.lru_cache(maxsize=None)(lm_eval.utils.env.from_string)
    programs = results_harness.CodeEval(sys.executable)

    def load(name, *args, **kwargs):
        if name == "code_eval":
            return programs
        raise RuntimeError(f"the metric {name} of the hub")
    evaluate.load = load


# ---------------------------------------------------------------- answers


def answer_texts(target):
    target = str(target[0] if isinstance(target, (list, tuple)) and target else target)
    return [target, f" {target}", f"The answer is ({target}).", f"The answer is {target}. So.", target.upper(), "(B)", "B", "12", "",
            "yes", f"\\boxed{{{target}}}", f"Answer: {target}\n\nQuestion", '{"answer": "' + target.replace('"', "'") + '"}', "{}",
            made_up_rows.text(random.Random(target))]


def answer(name, doc_id, idx, repeat, kind, target, doc):
    draw = random.Random(f"{name} {doc_id} {idx} {repeat}")
    if kind == "loglikelihood":
        return (-draw.random() * 20, draw.random() < 0.3)
    if kind == "loglikelihood_rolling":
        return -draw.random() * 200
    known = known_forms.answers_of(name.removeprefix(OWN), doc)
    return draw.choice(known or answer_texts(target))


def made_up_model(targets, texts, lines):
    """A model of the harness that makes answers up, and keeps them in `lines` in evald's form. `texts` has earlier answers."""
    def give(name, doc, doc_id, idx, repeat, kind):
        given = answer(name, doc_id, idx, repeat, kind, targets.get(doc_id, ""), doc)
        if kind == "generate_until":
            given = texts.get((doc_id, idx, repeat), given)
        lines.append(line_of(doc_id, idx, repeat, kind, given))
        return given
    return results_harness.answering(give)


def line_of(doc_id, idx, repeat, kind, given):
    line = {"doc_id": doc_id, "idx": idx, "repeat": repeat}
    if kind == "generate_until":
        return {**line, "text": given, "finish": "stop", "tokens_in": 1, "tokens_out": 1, "truncated": 0}
    values = {"loglikelihood": given[0], "is_greedy": given[1]} if kind == "loglikelihood" else {"loglikelihood": given}
    return {**line, **values, "finish": "scored", "tokens_in": 1, "tokens_out": 1, "truncated": 0}


# ---------------------------------------------------------------- one task


def seed_all(seed):
    """What the harness's command line seeds before it makes tasks."""
    import numpy
    import torch
    random.seed(seed)
    numpy.random.seed(1234 + seed)
    torch.manual_seed(1234 + seed)


def evaluated(config, bootstraps, seed=0, texts=None):
    """What the harness finds for one task, and the answers in evald's form. `texts` has the answers of an earlier run."""
    import lm_eval
    from lm_eval.api.task import ConfigurableTask
    seed_all(seed)
    task = ConfigurableTask(config={**config, "num_fewshot": config.get("num_fewshot") or 0})
    targets, lines = {}, []
    state = random.getstate()
    for doc_id, doc in enumerate(task.task_docs):
        targets[doc_id] = task.doc_to_target(doc)
    random.setstate(state)
    task.set_fewshot_seed(seed=1234)
    found = lm_eval.evaluate(made_up_model(targets, texts or {}, lines), {"tasks": {task.config.task: task}}, bootstrap_iters=bootstraps,
                             confirm_run_unsafe_code=True)
    return found, lines


def splits_of(config):
    splits = {config.get(key) for key in ("training_split", "validation_split", "test_split", "fewshot_split")}
    splits |= {(config.get("fewshot_config") or {}).get("split")}
    return sorted(splits - {None})


def check_in_memory(config, form):
    """Runs the task on rows of the form, all in memory."""
    import datasets
    own = OWN + form.name
    data = datasets.DatasetDict({split: datasets.Dataset.from_list(form.rows(split, DOCUMENTS)) for split in splits_of(config)})
    real, datasets.load_dataset = datasets.load_dataset, lambda *args, **kwargs: data
    try:
        found, _ = evaluated({**copy.deepcopy(config), "task": own}, 0)
    finally:
        datasets.load_dataset = real
    if len(found["results"][own]) <= 4:  # alias, name, sample_len, sample_count
        raise ValueError("no score")


def write_task(file, name, form, config, rows_folder):
    """A task that includes the harness's own, with rows of the form. Returns its name and file."""
    files = {}
    for number, split in enumerate(splits_of(config)):
        files[split] = str(rows_folder / f"{name}.{number}.jsonl")
        Path(files[split]).write_text("".join(json.dumps(row) + "\n" for row in form.rows(split, DOCUMENTS)))
    own = OWN + name
    lines = [f"include: {json.dumps(file.name)}", f"task: {json.dumps(own)}", "tag: null", "custom_dataset: null", "dataset_path: json",
             "dataset_name: null", f"dataset_kwargs: {{data_files: {json.dumps(files)}}}"]
    path = file.parent / f"{own}.yaml"
    path.write_text("\n".join(lines) + "\n")
    return own, path


def samples_file(own, samples, folder):
    """The harness's own samples file."""
    from lm_eval.loggers import EvaluationTracker
    place = SimpleNamespace(output_path=folder, general_config_tracker=SimpleNamespace(model_name_sanitized="model"), date_id="date",
                            api=None, push_samples_to_hub=False)
    file = folder / "model" / f"samples_{own}_date.jsonl"
    if file.exists():
        file.unlink()
    EvaluationTracker.save_results_samples(place, own, samples)
    return file


def plain(value):
    """A number of numpy's as Python's; anything else as text."""
    return value.item() if hasattr(value, "item") else str(value)


def evaluate_file(own, path, folder, seed, texts=None):
    """Evaluates the task of a file on its rows. Returns the harness's results and the answers."""
    from lm_eval.tasks._yaml_loader import load_yaml
    found, lines = evaluated(load_yaml(path), BOOTSTRAPS, seed, texts)
    folder.mkdir(exist_ok=True)
    file = samples_file(own, found["samples"][own], folder)
    others = {key: found[key].get(own) for key in COMPARED}
    return {"own": own, "path": str(path), "results": found["results"][own], "others": others, "samples": str(file)}, lines


# ---------------------------------------------------------------- processes


def in_fork(work, *args, seconds):
    """What work(*args) returns in a forked process, as JSON; {"why"} if it raised anything or took too long."""
    reader, writer = os.pipe()

    def child():
        os.close(reader)
        sys.stdout = sys.stderr = open(os.devnull, "w")
        try:
            limited(seconds)
            answer = json.dumps(work(*args), default=plain)
        except BaseException as error:
            answer = json.dumps({"why": made_up_rows.error_line(error)[:300], "trace": traceback.format_exc()[-3000:]})
        with os.fdopen(writer, "w") as out:
            out.write(answer)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    os.close(writer)
    timer = signal.signal(signal.SIGALRM, lambda *_: process.kill())
    signal.alarm(seconds + 30)
    with os.fdopen(reader) as answered:
        text = answered.read()
    signal.alarm(0)
    signal.signal(signal.SIGALRM, timer)
    process.join()
    return json.loads(text) if text else {"why": "the process died"}


def known_form(name):
    """The form of a task that known_forms.py has, or None."""
    make = known_forms.row_of(name)
    return made_up_rows.KnownForm(name, make) if make else None


def search(name, file):
    """The kinds of columns that the harness can use."""
    from lm_eval.tasks._yaml_loader import load_yaml
    config = {**load_yaml(file), "custom_dataset": None}
    form = known_form(name) or made_up_rows.Form.of(name, config)
    tries = [0]

    def check(form):
        tries[0] += 1
        check_in_memory(config, form)
    error = made_up_rows.refine(form, check, SEARCH_SECONDS, HOPELESS)
    if error is not None:
        trace = "".join(traceback.format_exception(error))[-3000:]
        return {"why": made_up_rows.error_line(error)[:300], "trace": trace, "kinds": form.kinds, "tries": tries[0]}
    return {"kinds": form.kinds, "tries": tries[0]}


def evaluate_task(name, file, kinds, folder):
    from lm_eval.tasks._yaml_loader import load_yaml
    form = known_form(name) or made_up_rows.Form(name)
    form.kinds = kinds
    own, path = write_task(file, name, form, load_yaml(file), folder)
    found, lines = evaluate_file(own, path, folder, 0)
    (folder / "generations").mkdir(exist_ok=True)
    (folder / "generations" / f"{own}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return found


def by_harness(name, file, folder):
    """What the harness finds for a task: {"own", "results", "others", "samples"}, or {"why"}."""
    found = in_fork(search, name, file, seconds=10 * SEARCH_SECONDS)
    if "why" in found:
        return found
    return {**in_fork(evaluate_task, name, file, found["kinds"], folder, seconds=TASK_SECONDS), "tries": found["tries"]}


def texts_of(generations):
    """The generated texts of a file of answers."""
    lines = [json.loads(line) for line in generations.read_text().splitlines()]
    return {(line["doc_id"], line["idx"], line["repeat"]): line["text"] for line in lines if "text" in line}


def second_run(found, folder):
    """What the harness finds when it is run again with the same answers: datasets has kept on disk what functions made."""
    texts = texts_of(folder / "generations" / f"{found['own']}.jsonl")
    return in_fork(lambda: evaluate_file(found["own"], Path(found["path"]), folder / "second", 0, texts)[0], seconds=TASK_SECONDS)


def once_more(found, folder):
    """What the harness finds with the same answers, but other seeds and another order of sets, in a new interpreter."""
    again = folder / "again"
    again.mkdir(exist_ok=True)
    result = again / f"{found['own']}.json"
    environment = {**os.environ, "PYTHONHASHSEED": "7", "HF_DATASETS_CACHE": str(again / "cache")}
    subprocess.run([sys.executable, __file__, found["own"], found["path"], "7", result], env=environment, capture_output=True, timeout=300)
    return json.loads(result.read_text()) if result.exists() else {"why": "the process died"}


def main():
    own, path, seed, result = sys.argv[1:]
    result = Path(result)
    import_everything()
    texts = texts_of(result.parent.parent / "generations" / f"{own}.jsonl")
    result.write_text(json.dumps(in_fork(lambda: evaluate_file(own, Path(path), result.parent, int(seed), texts)[0], seconds=TASK_SECONDS)))


if __name__ == "__main__":
    main()
